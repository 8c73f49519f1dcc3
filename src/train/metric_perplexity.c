/* exp of the mean loss, of which training counts the sum in any case. */
#include <math.h>

#include "train/measure.h"

static double finish(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss)
{
    (void)plan;
    (void)m;
    (void)sums;
    return exp(loss);
}

const stk_measure_class stk_measure_class_perplexity = {
    .key = {.name = "perplexity", .type = STK_KEY_NONE, .doc = "exp of the mean loss."},
    .of_classes = true,
    .of_labels = true,
    .of_numbers = true,
    .less_is_better = true,
    .finish = finish,
};
