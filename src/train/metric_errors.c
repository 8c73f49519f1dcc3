/* Metrics of numbers: how far the output is from the target. */
#include <math.h>

#include "train/measure.h"

/* [5,K]: squares and sizes of errors, sum and squares of targets, (first) how many. */
static int64_t count(const stk_measure_plan *plan)
{
    return 5 * plan->n_classes;
}

static stk_value build(const stk_measure_plan *plan, const stk_counted *c)
{
    (void)plan;
    stk_value x = stk_cast_to(c->x, STK_F64), y = stk_cast_to(c->y, STK_F64), d = stk_sub(x, y);
    stk_value part[5] = {stk_counted_columns(c, stk_square(d)), stk_counted_columns(c, stk_abs(d)),
                         stk_counted_columns(c, y), stk_counted_columns(c, stk_square(y)),
                         stk_counted_all(c, c->n_classes)};
    return stk_concat(part, 5, 0);
}

static const stk_measure_sums errors = {.count = count, .build = build};

static double finish(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss)
{
    (void)loss;
    int64_t k = plan->n_classes;
    double n = sums[4 * k], squares = 0, sizes = 0, r2 = 0;
    if (n == 0) return NAN;
    for (int64_t i = 0; i < k; i++) {
        double mean = sums[2 * k + i] / n, around = sums[3 * k + i] - n * mean * mean;
        squares += sums[i];
        sizes += sums[k + i];
        r2 += around > 0 ? 1 - sums[i] / around : sums[i] == 0 ? 1.0 : 0.0;
    }
    switch (m->kind) {
    case STK_MEASURE_MSE: return squares / (n * (double)k);
    case STK_MEASURE_RMSE: return sqrt(squares / (n * (double)k));
    case STK_MEASURE_MAE: return sizes / (n * (double)k);
    default: return r2 / (double)k;
    }
}

#define ERROR_OF(name_, doc_, less)                                                                                    \
    {                                                                                                                  \
        .key = {.name = name_, .type = STK_KEY_NONE, .doc = doc_}, .of_numbers = true, .less_is_better = less,         \
        .sums = &errors, .finish = finish                                                                              \
    }
const stk_measure_class stk_measure_class_mse = ERROR_OF("mse", "Mean squared error.", true);
const stk_measure_class stk_measure_class_rmse = ERROR_OF("rmse", "Its root.", true);
const stk_measure_class stk_measure_class_mae = ERROR_OF("mae", "Mean absolute error.", true);
const stk_measure_class stk_measure_class_r2 = ERROR_OF("r2", "The share of the variance that is explained.", false);
