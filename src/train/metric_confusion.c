/* The confusion matrix: no number, but counts for result.json and the report. */
#include "base/error.h"
#include "train/measure.h"

/* [K,K]: label, predicted. */
static int64_t count(const stk_measure_plan *plan)
{
    return plan->n_classes * plan->n_classes;
}

static stk_value build(const stk_measure_plan *plan, const stk_counted *c)
{
    (void)plan;
    stk_value k = stk_counted_constant(c, STK_I32, (double)c->n_classes);
    stk_value cell = stk_add(stk_mul(c->y, k), stk_argmax(c->x, 1, false));
    return stk_counted_add_by(c, cell, c->weight, c->n_classes * c->n_classes);
}

static const stk_measure_sums cells = {.count = count, .build = build};

static stk_status check(const stk_measure_plan *plan, const stk_measure *m)
{
    (void)m;
    if (plan->n_classes <= STK_MOST_CONFUSION) return STK_OK;
    return stk_fail(STK_INVALID, "a confusion matrix of %lld classes is too large; %d at most",
                    (long long)plan->n_classes, STK_MOST_CONFUSION);
}

const stk_measure_class stk_measure_class_confusion = {
    .key = {.name = "confusion",
            .type = STK_KEY_NONE,
            .doc = "Counts of label and class given, in result.json and as a picture in the report."},
    .of_classes = true,
    .sums = &cells,
    .check = check,
};
