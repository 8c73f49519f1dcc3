/* The sums of metrics as nodes of a graph whose rows are bound. See train/measure.h. */
#include "graph/query.h"
#include "tensor/shape.h"
#include "train/measure.h"

stk_value stk_counted_constant(const stk_counted *c, stk_dtype dtype, double value)
{
    return stk_graph_constant(c->graph, dtype, (stk_shape){0}, value);
}

/* Row weights for each position [n], and 0 for labels that are ignored, which become class 0. */
static void set_weights(stk_counted *c, stk_value row_weight, int64_t n_rows, bool ignores, int64_t ignore_index)
{
    stk_shape each = STK_SHAPE(n_rows, c->n / n_rows);
    c->weight = stk_graph_constant(c->graph, STK_F64, STK_SHAPE(c->n), 1);
    if (row_weight.id >= 0) {
        stk_value w = stk_cast_to(stk_reshape(row_weight, STK_SHAPE(n_rows, 1)), STK_F64);
        c->weight = stk_reshape(stk_broadcast(w, each), STK_SHAPE(c->n));
    }
    if (!ignores) return;
    stk_value counts = stk_not_equal(c->y, stk_counted_constant(c, STK_I32, (double)ignore_index));
    c->weight = stk_mul(c->weight, stk_cast_to(counts, STK_F64));
    c->y = stk_select(counts, c->y, stk_counted_constant(c, STK_I32, 0));
}

stk_value stk_counted_add_by(const stk_counted *c, stk_value ids, stk_value what, int64_t n)
{
    return stk_scatter_add(stk_graph_constant(c->graph, STK_F64, STK_SHAPE(n), 0), ids, what, 0);
}

stk_value stk_counted_columns(const stk_counted *c, stk_value x)
{
    return stk_reduce_sum(stk_mul(x, stk_reshape(c->weight, STK_SHAPE(c->n, 1))), 1);
}

stk_value stk_counted_all(const stk_counted *c, int64_t n)
{
    stk_value sum = stk_reshape(stk_reduce_sum(c->weight, 0), STK_SHAPE(1));
    return stk_pad(sum, (int64_t[]){0}, (int64_t[]){n - 1}, 0);
}

stk_value stk_measure_build(const stk_measure_plan *plan, stk_value output, stk_value target, stk_value weight,
                            bool ignores, int64_t ignore_index)
{
    stk_graph *graph = output.graph;
    stk_value part[STK_N_MEASURES];
    int n = 0;
    int64_t k = plan->n_classes, n_rows = stk_value_shape(output).dim[0];
    stk_counted c = {.graph = graph, .n = stk_shape_count(stk_value_shape(output)) / k, .n_classes = k};
    c.x = stk_reshape(output, STK_SHAPE(c.n, k));
    if (stk_value_dtype(c.x) != STK_F32) c.x = stk_cast_to(c.x, STK_F32);
    bool are_numbers = stk_value_dtype(target) == STK_I32 && plan->are_classes;
    c.y = stk_reshape(target, are_numbers ? STK_SHAPE(c.n) : STK_SHAPE(c.n, k));
    if (!are_numbers && plan->are_classes) c.y = stk_argmax(c.y, 1, false);
    set_weights(&c, weight, n_rows, ignores && are_numbers, ignore_index);
    int64_t at = 0;
    for (int kind = 0; kind < STK_N_MEASURES; kind++) {
        const stk_measure_sums *sums = stk_measure_class_of((stk_measure_kind)kind)->sums;
        if (!stk_measure_needs(plan, sums) || plan->start[kind] != at) continue;
        at += sums->count(plan);
        part[n++] = sums->build(plan, &c);
    }
    return n == 1 ? part[0] : stk_concat(part, n, 0);
}
