#include "optim/update.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/query.h"
#include "optim/average.h"
#include "optim/groups.h"
#include "optim/lookahead.h"
#include "optim/no_decay.h"
#include "optim/optimizer.h"

/* One parameter and its gradient. */
typedef struct target {
    stk_value param, grad;
    const stk_param_group *group; /* NULL: none */
} target;

static stk_status check_options(const stk_optim_options *options)
{
    if (!(options->clip_norm >= 0))
        return stk_fail(STK_INVALID, "the clipping norm is %g, and must be 0 or more", options->clip_norm);
    return stk_optimizer_check(&options->optimizer);
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

/* The rate in the dtype that the update of such a parameter wants. */
static stk_value fit_rate(stk_value lr, stk_value param)
{
    return stk_value_dtype(param) == STK_F64 ? stk_cast_to(lr, STK_F64) : lr;
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

stk_status stk_optim_build(stk_graph *graph, stk_value loss, const stk_optim_options *options)
{
    const stk_optimizer *o = &options->optimizer;
    const stk_optimizer_class *class = stk_optimizer_class_of(o->kind);
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
    if (class->counts) step = stk_graph_scalar_input(graph, "step", STK_I64);
    for (int i = 0; i < n; i++) {
        stk_optim_step s = {targets[i].param, targets[i].grad, loss, lr, step, o->weight_decay, o};
        const stk_param_group *group = targets[i].group;
        stk_value rate = rate_of(graph, group, lr, options->epoch_steps);
        if (group && group->weight_decay >= 0) s.weight_decay = group->weight_decay;
        if (stk_no_decay_matches(graph, targets[i].param.id, options->no_decay)) s.weight_decay = 0;
        s.lr = fit_rate(rate, targets[i].param);
        class->add(&s);
    }
    STK_TRY(stk_lookahead_build(graph, &options->lookahead, n_statistics, options->n_steps));
    status = stk_average_build(graph, &options->average);
done:
    free(targets);
    return stk_graph_keep_error(graph, status);
}
