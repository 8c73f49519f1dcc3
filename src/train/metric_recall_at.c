/* Recall@k of rows to compare, by train/neighbours.h; measures.c keeps the rows. */
#include "base/error.h"
#include "train/measure.h"

static const stk_key keys[] = {{.name = "k",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = STK_MOST_NEIGHBOURS,
                                .default_value = "1",
                                .doc = "How many of the nearest are looked at."},
                               STK_METRIC_END};

static stk_status check(const stk_measure_plan *plan, const stk_measure *m)
{
    if (m->k < 1 || m->k > STK_MOST_NEIGHBOURS)
        return stk_fail(STK_INVALID, "metric 'recall_at': k is %d, and must be from 1 to %d", m->k,
                        STK_MOST_NEIGHBOURS);
    if (!plan->is_row)
        return stk_fail(STK_INVALID,
                        "metric 'recall_at' compares one row of numbers a sample, with one label each; the "
                        "model's output has another shape");
    return STK_OK;
}

const stk_measure_class stk_measure_class_recall_at = {
    .key = {.name = "recall_at",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Evaluation only: the share whose k nearest others of the data set hold one of their class."},
    .prefix = "recall_at_",
    .of_classes = true,
    .of_rows = true,
    .check = check,
};
