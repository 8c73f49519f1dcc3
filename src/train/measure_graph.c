/* The sums of metrics as nodes of a graph whose rows are bound. See train/measure.h. */
#include "graph/query.h"
#include "tensor/shape.h"
#include "train/measure.h"

static stk_value constant(stk_graph *graph, stk_dtype dtype, double value)
{
    return stk_graph_constant(graph, dtype, (stk_shape){0}, value);
}

static stk_value zeros(stk_graph *graph, int64_t n)
{
    return stk_graph_constant(graph, STK_F64, STK_SHAPE(n), 0);
}

/* What is counted: all positions of all rows as lists. */
typedef struct counted {
    stk_graph *graph;
    int64_t n, n_classes;
    stk_value x;      /* [n,K] f32 */
    stk_value y;      /* i32 [n], or f32 [n,K] */
    stk_value weight; /* f64 [n]: 1, or 0 where a position does not count */
} counted;

/* Row weights for each position [n], and 0 for labels that are ignored, which become class 0. */
static void set_weights(counted *c, stk_value row_weight, int64_t n_rows, bool ignores, int64_t ignore_index)
{
    stk_shape each = STK_SHAPE(n_rows, c->n / n_rows);
    c->weight = stk_graph_constant(c->graph, STK_F64, STK_SHAPE(c->n), 1);
    if (row_weight.id >= 0) {
        stk_value w = stk_cast_to(stk_reshape(row_weight, STK_SHAPE(n_rows, 1)), STK_F64);
        c->weight = stk_reshape(stk_broadcast(w, each), STK_SHAPE(c->n));
    }
    if (!ignores) return;
    stk_value counts = stk_not_equal(c->y, constant(c->graph, STK_I32, (double)ignore_index));
    c->weight = stk_mul(c->weight, stk_cast_to(counts, STK_F64));
    c->y = stk_select(counts, c->y, constant(c->graph, STK_I32, 0));
}

static stk_value add_by(const counted *c, stk_value ids, stk_value what, int64_t n)
{
    return stk_scatter_add(zeros(c->graph, n), ids, what, 0);
}

/* [n,K] times the weights [n], summed over n: f64 [K]. */
static stk_value sum_columns(const counted *c, stk_value x)
{
    return stk_reduce_sum(stk_mul(x, stk_reshape(c->weight, STK_SHAPE(c->n, 1))), 1);
}

/* How many positions count, as the first of K numbers. */
static stk_value count_all(const counted *c, int64_t n)
{
    stk_value sum = stk_reshape(stk_reduce_sum(c->weight, 0), STK_SHAPE(1));
    return stk_pad(sum, (int64_t[]){0}, (int64_t[]){n - 1}, 0);
}

static stk_value find_hits(const counted *c, stk_value predicted)
{
    return stk_mul(c->weight, stk_cast_to(stk_equal(predicted, c->y), STK_F64));
}

static stk_value build_rates(const stk_measure_plan *plan, const counted *c)
{
    int64_t k = c->n_classes;
    stk_value part[4];
    if (plan->are_classes) {
        stk_value predicted = stk_argmax(c->x, 1, false);
        part[0] = add_by(c, c->y, find_hits(c, predicted), k);
        part[1] = add_by(c, predicted, c->weight, k);
        part[2] = add_by(c, c->y, c->weight, k);
    } else {
        stk_value yes = stk_cast_to(stk_greater(c->x, constant(c->graph, STK_F32, 0)), STK_F64);
        stk_value is = stk_cast_to(stk_greater_equal(c->y, constant(c->graph, STK_F32, 0.5)), STK_F64);
        part[0] = sum_columns(c, stk_mul(yes, is));
        part[1] = sum_columns(c, yes);
        part[2] = sum_columns(c, is);
    }
    part[3] = count_all(c, k);
    return stk_concat(part, 4, 0);
}

static stk_value build_confusion(const counted *c)
{
    stk_value k = constant(c->graph, STK_I32, (double)c->n_classes);
    stk_value cell = stk_add(stk_mul(c->y, k), stk_argmax(c->x, 1, false));
    return add_by(c, cell, c->weight, c->n_classes * c->n_classes);
}

/* The last of the group's places counts all. */
static stk_value build_top(const stk_measure_plan *plan, const counted *c)
{
    stk_value part[STK_MOST_MEASURES + 1], none = zeros(c->graph, 1);
    for (int i = 0; i < STK_MOST_MEASURES; i++) {
        part[i] = none;
        if (i >= plan->n || plan->list[i].kind != STK_MEASURE_TOP_K) continue;
        stk_value hits = stk_cast_to(stk_in_top_k(c->x, c->y, plan->list[i].k), STK_F64);
        part[i] = stk_reshape(stk_reduce_sum(stk_mul(hits, c->weight), 0), STK_SHAPE(1));
    }
    part[STK_MOST_MEASURES] = stk_reshape(stk_reduce_sum(c->weight, 0), STK_SHAPE(1));
    return stk_concat(part, STK_MOST_MEASURES + 1, 0);
}

/* Scores [n,K], of which only the order counts: logits, the difference of two of them, or the logit of each class's
 * share. */
static stk_value make_scores(const stk_measure_plan *plan, const counted *c)
{
    if (!plan->are_classes) return c->x;
    if (c->n_classes == 2) {
        stk_value both[2];
        for (int64_t i = 0; i < 2; i++)
            both[i] = stk_slice(c->x, (int64_t[]){0, i}, (int64_t[]){c->n, i + 1}, (int64_t[]){1, 1});
        return stk_sub(both[1], both[0]);
    }
    stk_value p = stk_softmax(c->x), tiny = constant(c->graph, STK_F32, 1e-30);
    stk_value rest = stk_sub(constant(c->graph, STK_F32, 1), p);
    return stk_sub(stk_log(stk_max(p, tiny)), stk_log(stk_max(rest, tiny)));
}

/* yes [n,K] as i32 0 or 1. */
static stk_value make_answers(const stk_measure_plan *plan, const counted *c)
{
    if (!plan->are_classes) return stk_cast_to(stk_greater_equal(c->y, constant(c->graph, STK_F32, 0.5)), STK_I32);
    stk_value y = stk_reshape(c->y, STK_SHAPE(c->n, 1));
    if (c->n_classes == 2) return y;
    return stk_cast_to(stk_equal(y, stk_iota(c->graph, STK_I32, STK_SHAPE(1, c->n_classes), 1)), STK_I32);
}

static stk_value build_auc(const stk_measure_plan *plan, const counted *c)
{
    stk_graph *graph = c->graph;
    stk_value s = make_scores(plan, c), limit = constant(graph, STK_F32, 1e30);
    int64_t k = stk_value_shape(s).dim[1];
    /* s / (1 + |s|) in (-1,1), which keeps the order and is finest where logits are small. */
    s = stk_max(stk_min(s, limit), stk_neg(limit));
    s = stk_div(s, stk_shift_by(stk_abs(s), 1));
    stk_value bin = stk_floor(stk_scale_by(stk_shift_by(s, 1), 0.5 * STK_AUC_BINS));
    bin = stk_max(stk_min(bin, constant(graph, STK_F32, STK_AUC_BINS - 1)), constant(graph, STK_F32, 0));
    stk_value base = stk_mul(stk_iota(graph, STK_I32, STK_SHAPE(1, k), 1), constant(graph, STK_I32, 2));
    base = stk_mul(stk_add(make_answers(plan, c), base), constant(graph, STK_I32, STK_AUC_BINS));
    stk_value ids = stk_reshape(stk_add(stk_cast_to(bin, STK_I32), base), STK_SHAPE(c->n * k));
    stk_value weight = stk_broadcast(stk_reshape(c->weight, STK_SHAPE(c->n, 1)), STK_SHAPE(c->n, k));
    return add_by(c, ids, stk_reshape(weight, STK_SHAPE(c->n * k)), k * 2 * STK_AUC_BINS);
}

static stk_value build_errors(const counted *c)
{
    stk_value x = stk_cast_to(c->x, STK_F64), y = stk_cast_to(c->y, STK_F64), d = stk_sub(x, y);
    stk_value part[5] = {sum_columns(c, stk_square(d)), sum_columns(c, stk_abs(d)), sum_columns(c, y),
                         sum_columns(c, stk_square(y)), count_all(c, c->n_classes)};
    return stk_concat(part, 5, 0);
}

stk_value stk_measure_build(const stk_measure_plan *plan, stk_value output, stk_value target, stk_value weight,
                            bool ignores, int64_t ignore_index)
{
    stk_graph *graph = output.graph;
    stk_value part[STK_N_GROUPS];
    int n = 0;
    int64_t k = plan->n_classes, n_rows = stk_value_shape(output).dim[0];
    counted c = {.graph = graph, .n = stk_shape_count(stk_value_shape(output)) / k, .n_classes = k};
    c.x = stk_reshape(output, STK_SHAPE(c.n, k));
    if (stk_value_dtype(c.x) != STK_F32) c.x = stk_cast_to(c.x, STK_F32);
    bool are_numbers = stk_value_dtype(target) == STK_I32 && plan->are_classes;
    c.y = stk_reshape(target, are_numbers ? STK_SHAPE(c.n) : STK_SHAPE(c.n, k));
    if (!are_numbers && plan->are_classes) c.y = stk_argmax(c.y, 1, false);
    set_weights(&c, weight, n_rows, ignores && are_numbers, ignore_index);
    for (int g = 0; g < STK_N_GROUPS; g++) {
        if (plan->start[g + 1] == plan->start[g]) continue;
        switch ((stk_measure_group)g) {
        case STK_GROUP_RATES: part[n++] = build_rates(plan, &c); break;
        case STK_GROUP_AUC: part[n++] = build_auc(plan, &c); break;
        case STK_GROUP_TOP: part[n++] = build_top(plan, &c); break;
        case STK_GROUP_CONFUSION: part[n++] = build_confusion(&c); break;
        case STK_GROUP_ERRORS: part[n++] = build_errors(&c); break;
        case STK_N_GROUPS: break;
        }
    }
    return n == 1 ? part[0] : stk_concat(part, n, 0);
}
