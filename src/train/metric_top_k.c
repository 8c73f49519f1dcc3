/* Whether the class is among the k largest outputs. */
#include "base/error.h"
#include "train/measure.h"

static const stk_key keys[] = {
    {.name = "k", .type = STK_KEY_INT, .least = 1, .most = 1e6, .required = true, .doc = "How many guesses there are."},
    STK_METRIC_END};

/* Hits of each of STK_MOST_MEASURES, and (last) how many there are. */
static int64_t count(const stk_measure_plan *plan)
{
    (void)plan;
    return STK_MOST_MEASURES + 1;
}

/* The last of the places counts all. */
static stk_value build(const stk_measure_plan *plan, const stk_counted *c)
{
    stk_value part[STK_MOST_MEASURES + 1], none = stk_graph_constant(c->graph, STK_F64, STK_SHAPE(1), 0);
    for (int i = 0; i < STK_MOST_MEASURES; i++) {
        part[i] = none;
        if (i >= plan->n || plan->list[i].kind != STK_MEASURE_TOP_K) continue;
        stk_value hits = stk_cast_to(stk_in_top_k(c->x, c->y, plan->list[i].k), STK_F64);
        part[i] = stk_reshape(stk_reduce_sum(stk_mul(hits, c->weight), 0), STK_SHAPE(1));
    }
    part[STK_MOST_MEASURES] = stk_reshape(stk_reduce_sum(c->weight, 0), STK_SHAPE(1));
    return stk_concat(part, STK_MOST_MEASURES + 1, 0);
}

static const stk_measure_sums hits = {.count = count, .build = build};

static stk_status check(const stk_measure_plan *plan, const stk_measure *m)
{
    if (m->k >= 1 && m->k <= plan->n_classes) return STK_OK;
    return stk_fail(STK_INVALID, "metric 'top_k': k is %d, and must be from 1 to the %lld classes", m->k,
                    (long long)plan->n_classes);
}

static double finish(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss)
{
    (void)loss;
    return stk_measure_divide(sums[m - plan->list], sums[STK_MOST_MEASURES]);
}

const stk_measure_class stk_measure_class_top_k = {
    .key = {.name = "top_k", .type = STK_KEY_MAP, .keys = keys, .doc = "The share whose class is among the k largest."},
    .prefix = "top",
    .of_classes = true,
    .sums = &hits,
    .check = check,
    .finish = finish,
};
