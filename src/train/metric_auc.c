/* The area under the ROC curve, by bins of scores. */
#include <math.h>

#include "base/error.h"
#include "train/measure.h"

/* [K,2,bins]; of two classes one curve. */
static int64_t count(const stk_measure_plan *plan)
{
    return (plan->are_classes && plan->n_classes == 2 ? 1 : plan->n_classes) * 2 * STK_AUC_BINS;
}

/* Scores [n,K], of which only the order counts: logits, the difference of two of them, or the logit of each class's
 * share. */
static stk_value make_scores(const stk_measure_plan *plan, const stk_counted *c)
{
    if (!plan->are_classes) return c->x;
    if (c->n_classes == 2) {
        stk_value both[2];
        for (int64_t i = 0; i < 2; i++)
            both[i] = stk_slice(c->x, (int64_t[]){0, i}, (int64_t[]){c->n, i + 1}, (int64_t[]){1, 1});
        return stk_sub(both[1], both[0]);
    }
    stk_value p = stk_softmax(c->x), tiny = stk_counted_constant(c, STK_F32, 1e-30);
    stk_value rest = stk_sub(stk_counted_constant(c, STK_F32, 1), p);
    return stk_sub(stk_log(stk_max(p, tiny)), stk_log(stk_max(rest, tiny)));
}

/* yes [n,K] as i32 0 or 1. */
static stk_value make_answers(const stk_measure_plan *plan, const stk_counted *c)
{
    if (!plan->are_classes) return stk_cast_to(stk_greater_equal(c->y, stk_counted_constant(c, STK_F32, 0.5)), STK_I32);
    stk_value y = stk_reshape(c->y, STK_SHAPE(c->n, 1));
    if (c->n_classes == 2) return y;
    return stk_cast_to(stk_equal(y, stk_iota(c->graph, STK_I32, STK_SHAPE(1, c->n_classes), 1)), STK_I32);
}

static stk_value build(const stk_measure_plan *plan, const stk_counted *c)
{
    stk_graph *graph = c->graph;
    stk_value s = make_scores(plan, c), limit = stk_counted_constant(c, STK_F32, 1e30);
    int64_t k = stk_value_shape(s).dim[1];
    /* s / (1 + |s|) in (-1,1), which keeps the order and is finest where logits are small. */
    s = stk_max(stk_min(s, limit), stk_neg(limit));
    s = stk_div(s, stk_shift_by(stk_abs(s), 1));
    stk_value bin = stk_floor(stk_scale_by(stk_shift_by(s, 1), 0.5 * STK_AUC_BINS));
    bin =
        stk_max(stk_min(bin, stk_counted_constant(c, STK_F32, STK_AUC_BINS - 1)), stk_counted_constant(c, STK_F32, 0));
    stk_value base = stk_mul(stk_iota(graph, STK_I32, STK_SHAPE(1, k), 1), stk_counted_constant(c, STK_I32, 2));
    base = stk_mul(stk_add(make_answers(plan, c), base), stk_counted_constant(c, STK_I32, STK_AUC_BINS));
    stk_value ids = stk_reshape(stk_add(stk_cast_to(bin, STK_I32), base), STK_SHAPE(c->n * k));
    stk_value weight = stk_broadcast(stk_reshape(c->weight, STK_SHAPE(c->n, 1)), STK_SHAPE(c->n, k));
    return stk_counted_add_by(c, ids, stk_reshape(weight, STK_SHAPE(c->n * k)), k * 2 * STK_AUC_BINS);
}

static const stk_measure_sums bins = {.count = count, .build = build};

static stk_status check(const stk_measure_plan *plan, const stk_measure *m)
{
    (void)m;
    if (plan->n_classes <= STK_MOST_AUC) return STK_OK;
    return stk_fail(STK_INVALID, "metric 'auc' takes %d classes or labels at most, and there are %lld", STK_MOST_AUC,
                    (long long)plan->n_classes);
}

/* The share of pairs, one of each kind, whose order is right. */
static double area(const double *no, const double *yes)
{
    double below = 0, pairs = 0, n_yes = 0;
    for (int i = 0; i < STK_AUC_BINS; i++) {
        pairs += yes[i] * (below + 0.5 * no[i]);
        below += no[i];
        n_yes += yes[i];
    }
    return below > 0 && n_yes > 0 ? pairs / (below * n_yes) : (double)NAN;
}

static double finish(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss)
{
    (void)m;
    (void)loss;
    int64_t n = count(plan) / (2 * STK_AUC_BINS), n_there = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = area(sums + 2 * i * STK_AUC_BINS, sums + (2 * i + 1) * STK_AUC_BINS);
        if (isnan(a)) continue;
        sum += a;
        n_there++;
    }
    return n_there ? sum / (double)n_there : (double)NAN;
}

const stk_measure_class stk_measure_class_auc = {
    .key = {.name = "auc", .type = STK_KEY_NONE, .doc = "The area under the ROC curve, by 8192 bins of scores."},
    .of_classes = true,
    .of_labels = true,
    .sums = &bins,
    .check = check,
    .finish = finish,
};
