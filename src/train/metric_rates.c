/* Metrics of what was given which class: accuracy, precision, recall, F1, IoU. */
#include "base/error.h"
#include "train/measure.h"

static const char *const average_words[] = {"macro", "micro", "binary", NULL};
static const stk_key average_keys[] = {
    {.name = "average",
     .type = STK_KEY_WORD,
     .words = average_words,
     .default_value = "macro",
     .doc = "macro: the mean over classes; micro: of all counts together; binary: of class 1 of two."},
    STK_METRIC_END};

/* [4,K]: hits, predicted, labelled, and (first) how many there are. */
static int64_t count(const stk_measure_plan *plan)
{
    return 4 * plan->n_classes;
}

static stk_value find_hits(const stk_counted *c, stk_value predicted)
{
    return stk_mul(c->weight, stk_cast_to(stk_equal(predicted, c->y), STK_F64));
}

static stk_value build(const stk_measure_plan *plan, const stk_counted *c)
{
    int64_t k = c->n_classes;
    stk_value part[4];
    if (plan->are_classes) {
        stk_value predicted = stk_argmax(c->x, 1, false);
        part[0] = stk_counted_add_by(c, c->y, find_hits(c, predicted), k);
        part[1] = stk_counted_add_by(c, predicted, c->weight, k);
        part[2] = stk_counted_add_by(c, c->y, c->weight, k);
    } else {
        stk_value yes = stk_cast_to(stk_greater(c->x, stk_counted_constant(c, STK_F32, 0)), STK_F64);
        stk_value is = stk_cast_to(stk_greater_equal(c->y, stk_counted_constant(c, STK_F32, 0.5)), STK_F64);
        part[0] = stk_counted_columns(c, stk_mul(yes, is));
        part[1] = stk_counted_columns(c, yes);
        part[2] = stk_counted_columns(c, is);
    }
    part[3] = stk_counted_all(c, k);
    return stk_concat(part, 4, 0);
}

static const stk_measure_sums rates = {.count = count, .build = build};

static stk_status check(const stk_measure_plan *plan, const stk_measure *m)
{
    const char *name = stk_measure_name(m->kind);
    if ((unsigned)m->average > STK_AVERAGE_BINARY)
        return stk_fail(STK_INVALID, "metric '%s': there is no average %d", name, (int)m->average);
    if (m->average == STK_AVERAGE_BINARY && plan->n_classes != 2)
        return stk_fail(STK_INVALID, "metric '%s': the average 'binary' is for two classes, and there are %lld", name,
                        (long long)plan->n_classes);
    return STK_OK;
}

static double rate(stk_measure_kind kind, double hits, double predicted, double labelled)
{
    switch (kind) {
    case STK_MEASURE_PRECISION: return stk_measure_divide(hits, predicted);
    case STK_MEASURE_RECALL: return stk_measure_divide(hits, labelled);
    case STK_MEASURE_F1: return stk_measure_divide(2 * hits, predicted + labelled);
    default: return stk_measure_divide(hits, predicted + labelled - hits);
    }
}

static double finish(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss)
{
    (void)loss;
    int64_t n = plan->n_classes, n_there = 0;
    const double *hits = sums, *predicted = sums + n, *labelled = sums + 2 * n;
    double total[3] = {0}, mean = 0;
    for (int64_t i = 0; i < n; i++) {
        total[0] += hits[i];
        total[1] += predicted[i];
        total[2] += labelled[i];
        /* A class that nobody has and nobody was given is not there. */
        if (predicted[i] + labelled[i] == 0) continue;
        mean += rate(m->kind, hits[i], predicted[i], labelled[i]);
        n_there++;
    }
    if (m->kind == STK_MEASURE_ACCURACY) {
        double count = sums[3 * n];
        if (plan->are_classes) return stk_measure_divide(total[0], count);
        /* Yes that is yes, and no that is no. */
        return stk_measure_divide(count * (double)n - total[1] - total[2] + 2 * total[0], count * (double)n);
    }
    if (m->average == STK_AVERAGE_MICRO) return rate(m->kind, total[0], total[1], total[2]);
    if (m->average == STK_AVERAGE_BINARY) return rate(m->kind, hits[1], predicted[1], labelled[1]);
    return stk_measure_divide(mean, (double)n_there);
}

#define RATE_OF(name_, doc_)                                                                                           \
    {                                                                                                                  \
        .key = {.name = name_, .type = STK_KEY_MAP, .keys = average_keys, .doc = doc_}, .of_classes = true,            \
        .of_labels = true, .sums = &rates, .check = check, .finish = finish                                            \
    }
const stk_measure_class stk_measure_class_accuracy = {
    .key = {.name = "accuracy",
            .type = STK_KEY_NONE,
            .doc = "The share of classes, positions or labels that is right."},
    .of_classes = true,
    .of_labels = true,
    .sums = &rates,
    .check = check,
    .finish = finish,
};
const stk_measure_class stk_measure_class_precision =
    RATE_OF("precision", "Of what was given a class, the share that is of it.");
const stk_measure_class stk_measure_class_recall =
    RATE_OF("recall", "Of what is of a class, the share that was given it.");
const stk_measure_class stk_measure_class_f1 = RATE_OF("f1", "The harmonic mean of both.");
const stk_measure_class stk_measure_class_iou = RATE_OF("iou", "Intersection over union, of positions or samples.");
