#include "optim/update.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/query.h"
#include "optim/average.h"
#include "optim/groups.h"
#include "optim/lookahead.h"
#include "optim/no_decay.h"
#include "optim/step.h"

/* One parameter and its gradient. */
typedef struct target {
    stk_value param, grad;
    const stk_param_group *group; /* NULL: none */
} target;

static stk_status check_share(const char *what, double value)
{
    if (value >= 0 && value < 1) return STK_OK;
    return stk_fail(STK_INVALID, "optimizer: %s is %g, and must be in [0,1)", what, value);
}

static stk_status check_options(const stk_optim_options *options)
{
    const stk_optimizer *o = &options->optimizer;
    if (!(options->clip_norm >= 0))
        return stk_fail(STK_INVALID, "the clipping norm is %g, and must be 0 or more", options->clip_norm);
    if (o->weight_decay != o->weight_decay) return stk_fail(STK_INVALID, "optimizer: weight decay is not a number");
    switch (o->kind) {
    case STK_OPTIMIZER_SGD:
        STK_RETURN_IF_ERROR(check_share("momentum", o->momentum));
        if (o->nesterov && o->momentum == 0) return stk_fail(STK_INVALID, "optimizer: nesterov needs a momentum");
        return STK_OK;
    case STK_OPTIMIZER_RMSPROP:
    case STK_OPTIMIZER_LARS: STK_RETURN_IF_ERROR(check_share("momentum", o->momentum)); break;
    case STK_OPTIMIZER_MUON:
        STK_RETURN_IF_ERROR(check_share("momentum", o->momentum));
        if (!(o->rest_lr >= 0))
            return stk_fail(STK_INVALID, "optimizer: rest_lr is %g, and must be 0 or more", o->rest_lr);
        if (!(o->lr > 0)) return stk_fail(STK_INVALID, "optimizer: lr is %g, and must be more than 0", o->lr);
        break;
    case STK_OPTIMIZER_ADAM:
    case STK_OPTIMIZER_ADAMW:
    case STK_OPTIMIZER_ADAGRAD:
    case STK_OPTIMIZER_LAMB: break;
    default: return stk_fail(STK_INVALID, "optimizer: there is no kind %d", (int)o->kind);
    }
    if (o->kind != STK_OPTIMIZER_ADAGRAD && o->kind != STK_OPTIMIZER_LARS) {
        if (o->kind != STK_OPTIMIZER_RMSPROP) STK_RETURN_IF_ERROR(check_share("beta1", o->beta1));
        STK_RETURN_IF_ERROR(check_share("beta2", o->beta2));
    }
    if (o->eps > 0) return STK_OK;
    return stk_fail(STK_INVALID, "optimizer: eps is %g, and must be more than 0", o->eps);
}

static stk_status check_loss(const stk_graph *graph, stk_value loss)
{
    if (loss.graph != graph || loss.id < 0 || loss.id >= graph->n_values)
        return stk_fail(STK_INVALID, "the loss is no value of the graph");
    stk_tensor_desc desc = graph->value[loss.id].desc;
    char text[STK_SHAPE_TEXT_BYTES];
    if (desc.shape.rank == 0 && stk_dtype_is_float(desc.dtype)) return STK_OK;
    return stk_fail(STK_INVALID, "the loss to train on is %s, and must be a float scalar", stk_desc_text(desc, text));
}

/* The trainable variables that loss depends on, in the graph's order. Returned in *out: free with free(). */
static stk_status find_targets(stk_graph *graph, stk_value loss, const stk_optim_options *options, target **out, int *n)
{
    size_t n_nodes = (size_t)graph->n_nodes;
    bool *needed = calloc(n_nodes, sizeof(*needed));
    target *found = calloc(n_nodes, sizeof(*found));
    stk_status status = STK_OK;
    *n = 0;
    if (!needed || !found) STK_TRY(stk_fail_memory(n_nodes * sizeof(*found)));
    stk_graph_mark_needed(loss, needed);
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (!needed[i] || node->op != STK_OP_variable || !node->attrs.leaf.trainable) continue;
        const stk_param_group *group = stk_group_of(options->groups, options->n_groups, node->name);
        if (group && group->frozen) continue;
        found[*n].group = group;
        found[(*n)++].param = stk_value_of(graph, node->first_out);
    }
    if (*n == 0) STK_TRY(stk_fail(STK_INVALID, "nothing to train: the loss depends on no trainable variable"));
    *out = found;
    found = NULL;
done:
    free(found);
    free(needed);
    return status;
}

static stk_value make_scalar(stk_graph *graph, double value)
{
    return stk_graph_constant(graph, STK_F32, (stk_shape){.rank = 0}, value);
}

static void scale_gradients(target *t, int n, stk_value factor)
{
    for (int i = 0; i < n; i++)
        t[i].grad = stk_mul(t[i].grad, stk_cast_to(factor, stk_value_dtype(t[i].grad)));
}

/* The norm of all gradients together, which becomes an output. */
static stk_value add_norm(stk_graph *graph, const target *t, int n)
{
    stk_value total = {graph, -1};
    for (int i = 0; i < n; i++) {
        stk_value sum = stk_square(t[i].grad);
        if (stk_value_shape(sum).rank > 0) sum = stk_reduce_sum(sum, 0);
        if (stk_value_dtype(sum) != STK_F32) sum = stk_cast_to(sum, STK_F32);
        total = i ? stk_add(total, sum) : sum;
    }
    stk_value norm = stk_sqrt(total);
    stk_graph_output(graph, "grad_norm", norm);
    return norm;
}

/* Scales all gradients so that their common norm is at most clip; as torch.nn.utils.clip_grad_norm_, which adds 1e-6.
 */
static void clip_gradients(stk_graph *graph, target *t, int n, stk_value norm, double clip)
{
    stk_value share = stk_div(make_scalar(graph, clip), stk_shift_by(norm, 1e-6));
    share = stk_min(make_scalar(graph, 1), share);
    for (int i = 0; i < n; i++) {
        stk_dtype dtype = stk_value_dtype(t[i].grad);
        t[i].grad = stk_mul(t[i].grad, dtype == STK_F32 ? share : stk_cast_to(share, dtype));
    }
}

static void keep_gradients(stk_graph *graph, const target *t, int n)
{
    for (int i = 0; i < n; i++) {
        stk_text name = {0};
        stk_text_add(&name, "grad/%s", stk_value_node(t[i].param)->name);
        if (stk_graph_keep_error(graph, stk_text_status(&name)) == STK_OK)
            stk_graph_output(graph, stk_text_get(&name), t[i].grad);
        stk_text_free(&name);
    }
}

stk_value stk_optim_state(stk_value param, const char *part)
{
    stk_graph *graph = param.graph;
    const stk_node *node = stk_value_node(param);
    stk_value state = stk_value_none(graph);
    stk_text name = {0};
    if (!node) return state;
    stk_text_add(&name, "%s.%s", node->name, part);
    if (stk_graph_keep_error(graph, stk_text_status(&name)) == STK_OK)
        state = stk_graph_variable(graph, stk_text_get(&name), stk_value_dtype(param), stk_value_shape(param),
                                   (stk_init){STK_INIT_CONSTANT, 0}, false);
    stk_text_free(&name);
    return state;
}

/* Adds the node and lets its outputs become the variables in[0 .. n_state]. */
static void add_update(stk_graph *graph, stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in, int n_state)
{
    stk_value y = stk_graph_add(graph, op, attrs, in, n_in);
    for (int i = 0; i <= n_state; i++)
        stk_graph_update(graph, in[i], stk_value_sibling(y, i));
}

/* The rate in the dtype that the update of such a parameter wants. */
static stk_value fit_rate(stk_value lr, stk_value param)
{
    return stk_value_dtype(param) == STK_F64 ? stk_cast_to(lr, STK_F64) : lr;
}

static void add_sgd(const target *t, const stk_optimizer *o, double weight_decay, stk_value lr)
{
    stk_graph *graph = t->param.graph;
    stk_attrs attrs = stk_attrs_zero();
    attrs.sgd.momentum = o->momentum;
    attrs.sgd.weight_decay = weight_decay;
    attrs.sgd.nesterov = o->nesterov;
    attrs.sgd.like_keras = o->like_keras;
    if (o->momentum == 0) {
        add_update(graph, STK_OP_sgd_update, &attrs, (stk_value[]){t->param, t->grad, lr}, 3, 0);
    } else {
        stk_value velocity = stk_optim_state(t->param, "velocity");
        add_update(graph, STK_OP_sgd_update, &attrs, (stk_value[]){t->param, velocity, t->grad, lr}, 4, 1);
    }
}

static void add_adam(const target *t, const stk_optimizer *o, double weight_decay, stk_value lr, stk_value step)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.adam.beta1 = o->beta1;
    attrs.adam.beta2 = o->beta2;
    attrs.adam.eps = o->eps;
    attrs.adam.weight_decay = weight_decay;
    attrs.adam.decoupled = o->kind != STK_OPTIMIZER_ADAM || o->like_keras;
    attrs.adam.like_keras = o->like_keras;
    stk_value m = stk_optim_state(t->param, "m"), v = stk_optim_state(t->param, "v");
    add_update(t->param.graph, STK_OP_adam_update, &attrs, (stk_value[]){t->param, m, v, t->grad, lr, step}, 6, 2);
}

/* Muon's other parameters: AdamW with its usual eps, at a rate that keeps its share of Muon's. */
static void add_rest(const target *t, const stk_optimizer *o, double weight_decay, stk_value lr, stk_value step)
{
    stk_optimizer adamw = *o;
    adamw.kind = STK_OPTIMIZER_ADAMW;
    adamw.eps = 1e-8;
    add_adam(t, &adamw, weight_decay, stk_scale_by(lr, o->rest_lr / o->lr), step);
}

static void add_step(stk_value loss, const target *t, const stk_optimizer *o, double decay, stk_value lr,
                     stk_value step)
{
    stk_optim_step s = {t->param, t->grad, lr, step, decay, o};
    switch (o->kind) {
    case STK_OPTIMIZER_SGD: add_sgd(t, o, decay, lr); break;
    case STK_OPTIMIZER_RMSPROP: stk_optim_rmsprop(&s); break;
    case STK_OPTIMIZER_ADAGRAD: stk_optim_adagrad(&s); break;
    case STK_OPTIMIZER_LAMB: stk_optim_lamb(&s); break;
    case STK_OPTIMIZER_LARS: stk_optim_lars(&s); break;
    case STK_OPTIMIZER_MUON:
        if (stk_optim_muon_takes(t->param.graph, loss, t->param))
            stk_optim_muon(&s);
        else
            add_rest(t, o, decay, lr, step);
        break;
    default: add_adam(t, o, decay, lr, step); break;
    }
}

/* The rate of a parameter's group, which may end. */
static stk_value rate_of(stk_graph *graph, const stk_param_group *group, stk_value lr, int64_t epoch_steps)
{
    if (!group) return lr;
    if (group->lr_factor != 1) lr = stk_scale_by(lr, group->lr_factor);
    if (group->until_epochs == 0) return lr;
    stk_value step = stk_graph_scalar_input(graph, "step", STK_I64);
    double end = group->until_epochs * (double)epoch_steps;
    stk_value trains = stk_less(stk_cast_to(step, STK_F64), stk_graph_constant(graph, STK_F64, (stk_shape){0}, end));
    return stk_select(trains, lr, make_scalar(graph, 0));
}

static bool needs_step(stk_optimizer_kind kind)
{
    return kind == STK_OPTIMIZER_ADAM || kind == STK_OPTIMIZER_ADAMW || kind == STK_OPTIMIZER_LAMB ||
           kind == STK_OPTIMIZER_MUON;
}

stk_status stk_optim_build(stk_graph *graph, stk_value loss, const stk_optim_options *options)
{
    const stk_optimizer *o = &options->optimizer;
    target *targets = NULL;
    int n = 0, n_statistics = graph->n_roots;
    stk_status status = STK_OK;
    STK_TRY(stk_graph_status(graph));
    STK_TRY(check_options(options));
    STK_TRY(check_loss(graph, loss));
    STK_TRY(stk_groups_check(graph, options->groups, options->n_groups));
    stk_groups_freeze_norms(graph, options->groups, options->n_groups);
    STK_TRY(find_targets(graph, loss, options, &targets, &n));
    for (int i = 0; i < n; i++)
        targets[i].grad = stk_grad(loss, targets[i].param);
    if (options->grad_factor.graph) scale_gradients(targets, n, options->grad_factor);
    if (options->keep_gradients) keep_gradients(graph, targets, n);
    stk_value norm = stk_value_none(graph);
    if (options->grad_norm || options->clip_norm > 0) norm = add_norm(graph, targets, n);
    if (options->clip_norm > 0) clip_gradients(graph, targets, n, norm, options->clip_norm);

    stk_value lr = stk_graph_scalar_input(graph, "lr", STK_F32), step = {graph, -1};
    if (needs_step(o->kind)) step = stk_graph_scalar_input(graph, "step", STK_I64);
    for (int i = 0; i < n; i++) {
        double decay = o->weight_decay > 0 ? o->weight_decay : 0;
        const stk_param_group *group = targets[i].group;
        stk_value rate = rate_of(graph, group, lr, options->epoch_steps);
        if (group && group->weight_decay >= 0) decay = group->weight_decay;
        if (stk_no_decay_matches(graph, targets[i].param.id, options->no_decay)) decay = 0;
        add_step(loss, &targets[i], o, decay, fit_rate(rate, targets[i].param), step);
    }
    STK_TRY(stk_lookahead_build(graph, &options->lookahead, n_statistics, options->n_steps));
    status = stk_average_build(graph, &options->average);
done:
    free(targets);
    return stk_graph_keep_error(graph, status);
}
