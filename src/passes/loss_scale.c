/* Loss scale: gradients of 16-bit values are made from a larger loss, so that small ones do not become 0.
 *
 *   grad(loss, p)   becomes   grad(loss * scale, p) * (1 / scale)
 *
 * for every p, before clipping and the optimiser, which see the true gradients. A fixed scale ends there. A dynamic one
 * (Micikevicius et al. 2018, section 3.2; the arithmetic is torch.amp.GradScaler's) also looks whether all gradients
 * are finite:
 *
 *   a step whose gradients are not is skipped: every variable keeps its content, by a select and not by a branch on the
 *   host; the scale shrinks
 *   after `every` finite steps in a row the scale grows, unless it would become infinite
 *
 * The first of these is done without a dynamic scale, too, where steps are to be skipped (on_nan: skip).
 *
 * The optimiser's step number counts the steps that were not skipped. All state lies in variables, which checkpoints
 * keep: loss_scale.scale, .n_finite (in a row), .n_skipped (in all) and .n_skipped_in_a_row. The outputs "loss_scale",
 * "n_skipped" and "n_skipped_in_a_row" are f64 scalars: the scale of this step, the others as they are after it.
 *
 * Whether all are finite is read off one sum: it is finite just when its terms are, short of overflow, which a smaller
 * scale cures as well. A micro-batch's gradients are summed up before: one scale holds for a whole window.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

typedef struct scaler {
    stk_graph *graph;
    const stk_loss_scale *settings;
    bool has_scale, is_dynamic, skips; /* skips: steps whose gradients are not finite */
    int32_t n_nodes, n_values;         /* before the pass */
    bool *after_grad;                  /* by value: a gradient or what depends on one */
    int32_t *replace;                  /* by value */
    stk_value scale, inverse;          /* f32 [] */
    stk_value finite;                  /* bool [] */
    stk_value n_skipped;               /* i64 [], before this step */
} scaler;

static stk_value scalar(const scaler *s, stk_dtype dtype, double value)
{
    return stk_graph_constant(s->graph, dtype, (stk_shape){.rank = 0}, value);
}

static stk_value state(const scaler *s, const char *name, stk_dtype dtype, double first)
{
    return stk_graph_variable(s->graph, name, dtype, (stk_shape){.rank = 0}, (stk_init){STK_INIT_CONSTANT, first},
                              false);
}

static void mark_after_grad(scaler *s)
{
    const stk_graph *graph = s->graph;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool after = node->op == STK_OP_grad;
        for (int j = 0; j < node->n_in; j++)
            after = after || s->after_grad[node->in[j]];
        for (int j = 0; j < node->n_out; j++)
            s->after_grad[node->first_out + j] = after;
    }
}

/* The scale and its inverse, which is taken in f64. */
static void make_scale(scaler *s)
{
    s->scale = s->is_dynamic ? state(s, "loss_scale.scale", STK_F32, s->settings->initial)
                             : scalar(s, STK_F32, s->settings->initial);
    s->inverse = stk_cast_to(stk_div(scalar(s, STK_F64, 1), stk_cast_to(s->scale, STK_F64)), STK_F32);
}

/* The sum of x in f32: NaN where some element is not finite. */
static stk_value sum_up(stk_value x)
{
    if (stk_value_shape(x).rank > 0) x = stk_reduce_sum(x, 0);
    return stk_cast_to(x, STK_F32);
}

/* Replaces every grad node, and adds up all gradients for `finite`. */
static stk_status scale_gradients(scaler *s)
{
    stk_graph *graph = s->graph;
    stk_value total = {graph, -1}, scaled = {graph, -1};
    int32_t y = -1; /* of `scaled` */
    for (int32_t i = 0; i < s->n_nodes; i++) {
        stk_node node = graph->node[i]; /* A copy: the array moves. */
        if (node.op != STK_OP_grad) continue;
        stk_value grad = stk_value_of(graph, node.first_out), loss = stk_value_of(graph, node.in[0]);
        if (s->has_scale && node.in[0] != y) scaled = stk_mul(loss, stk_cast_to(s->scale, stk_value_dtype(loss)));
        y = node.in[0];
        if (s->has_scale) grad = stk_grad(scaled, stk_value_of(graph, node.in[1]));
        stk_value sum = sum_up(grad);
        total = total.id < 0 ? sum : stk_add(total, sum);
        if (s->has_scale) grad = stk_mul(grad, stk_cast_to(s->inverse, stk_value_dtype(grad)));
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
        s->replace[node.first_out] = grad.id;
    }
    if (total.id < 0) return stk_fail(STK_INVALID, "there is no gradient to scale");
    s->finite = stk_less_equal(stk_abs(total), scalar(s, STK_F32, FLT_MAX));
    return stk_graph_status(graph);
}

/* The optimiser counts the steps that were done: its readers of "step" get step - n_skipped. */
static void count_real_steps(scaler *s)
{
    stk_graph *graph = s->graph;
    stk_value step = stk_graph_find(graph, STK_OP_input, "step");
    if (step.id < 0) return;
    stk_value real = stk_sub(step, s->n_skipped);
    for (int32_t i = 0; i < s->n_nodes && real.id >= 0; i++) {
        const stk_node *node = &graph->node[i];
        if (!node->n_out || !s->after_grad[node->first_out]) continue;
        for (int j = 0; j < node->n_in; j++)
            if (node->in[j] == step.id) node->in[j] = real.id;
    }
}

/* Every variable keeps its content where the step is skipped. */
static void select_updates(scaler *s)
{
    stk_graph *graph = s->graph;
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t variable = graph->root[i].variable, value = graph->root[i].value;
        if (variable < 0) continue;
        stk_value kept = stk_select(s->finite, stk_value_of(graph, s->replace[value]), stk_value_of(graph, variable));
        if (kept.id >= 0) graph->root[i].value = kept.id;
    }
}

/* The scale after this step. */
static void update_scale(scaler *s)
{
    stk_graph *graph = s->graph;
    stk_value zero = scalar(s, STK_I64, 0), one = scalar(s, STK_I64, 1);
    stk_value n_finite = state(s, "loss_scale.n_finite", STK_I64, 0);
    stk_value run = stk_add(n_finite, one);
    stk_value is_due = stk_greater_equal(run, scalar(s, STK_I64, (double)s->settings->every));
    stk_value larger = stk_mul(s->scale, scalar(s, STK_F32, s->settings->growth));
    stk_value grown = stk_select(stk_less_equal(larger, scalar(s, STK_F32, FLT_MAX)), larger, s->scale);
    stk_value smaller = stk_mul(s->scale, scalar(s, STK_F32, s->settings->backoff));
    stk_graph_update(graph, s->scale, stk_select(s->finite, stk_select(is_due, grown, s->scale), smaller));
    stk_graph_update(graph, n_finite, stk_select(s->finite, stk_select(is_due, zero, run), zero));
}

/* How many steps were skipped, with this one. */
static void count_skipped(scaler *s)
{
    stk_graph *graph = s->graph;
    stk_value zero = scalar(s, STK_I64, 0), one = scalar(s, STK_I64, 1);
    stk_value in_a_row = state(s, "loss_scale.n_skipped_in_a_row", STK_I64, 0);
    stk_value n_skipped = stk_select(s->finite, s->n_skipped, stk_add(s->n_skipped, one));
    stk_value row = stk_select(s->finite, zero, stk_add(in_a_row, one));
    stk_graph_update(graph, s->n_skipped, n_skipped);
    stk_graph_update(graph, in_a_row, row);
    stk_graph_output(graph, "n_skipped", stk_cast_to(n_skipped, STK_F64));
    stk_graph_output(graph, "n_skipped_in_a_row", stk_cast_to(row, STK_F64));
}

static bool has_grad(const stk_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_grad) return true;
    return false;
}

stk_status pass_loss_scale(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    const stk_loss_scale *settings = options ? &options->loss_scale : NULL;
    bool has_scale = settings && settings->kind >= STK_LOSS_SCALE_FIXED, is_dynamic = false;
    if (!settings || (!has_scale && !options->skip_nonfinite) || !has_grad(graph)) return STK_OK;
    is_dynamic = settings->kind == STK_LOSS_SCALE_DYNAMIC;
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_values + 1;
    int32_t *replace = NULL;
    scaler s = {.graph = graph,
                .settings = settings,
                .n_nodes = graph->n_nodes,
                .n_values = graph->n_values,
                .has_scale = has_scale,
                .is_dynamic = is_dynamic,
                .skips = is_dynamic || options->skip_nonfinite};
    s.after_grad = calloc(n, sizeof(*s.after_grad));
    s.replace = stk_pass_identity(graph, 0);
    if (!s.after_grad || !s.replace) STK_TRY(stk_fail_memory(n * sizeof(*s.replace)));
    mark_after_grad(&s);
    if (has_scale) make_scale(&s);
    STK_TRY(scale_gradients(&s));
    if (s.skips) {
        s.n_skipped = state(&s, "loss_scale.n_skipped", STK_I64, 0);
        count_real_steps(&s);
        select_updates(&s);
        count_skipped(&s);
    }
    if (is_dynamic) update_scale(&s);
    if (has_scale) stk_graph_output(graph, "loss_scale", stk_cast_to(s.scale, STK_F64));
    STK_TRY(stk_graph_status(graph));
    replace = stk_pass_identity(graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    memcpy(replace, s.replace, (size_t)s.n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(s.after_grad);
    free(s.replace);
    free(replace);
    return status;
}
