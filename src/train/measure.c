/* What sums come to. See train/measure.h. */
#include "train/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/shape.h"

static const struct {
    const char *name;
    stk_measure_group group;
    bool of_classes, of_labels, of_numbers;
} kinds[STK_N_MEASURES] = {[STK_MEASURE_ACCURACY] = {"accuracy", STK_GROUP_RATES, true, true, false},
                           [STK_MEASURE_PRECISION] = {"precision", STK_GROUP_RATES, true, true, false},
                           [STK_MEASURE_RECALL] = {"recall", STK_GROUP_RATES, true, true, false},
                           [STK_MEASURE_F1] = {"f1", STK_GROUP_RATES, true, true, false},
                           [STK_MEASURE_IOU] = {"iou", STK_GROUP_RATES, true, true, false},
                           [STK_MEASURE_AUC] = {"auc", STK_GROUP_AUC, true, true, false},
                           [STK_MEASURE_TOP_K] = {"top", STK_GROUP_TOP, true, false, false},
                           [STK_MEASURE_CONFUSION] = {"confusion", STK_GROUP_CONFUSION, true, false, false},
                           [STK_MEASURE_MSE] = {"mse", STK_GROUP_ERRORS, false, false, true},
                           [STK_MEASURE_RMSE] = {"rmse", STK_GROUP_ERRORS, false, false, true},
                           [STK_MEASURE_MAE] = {"mae", STK_GROUP_ERRORS, false, false, true},
                           [STK_MEASURE_R2] = {"r2", STK_GROUP_ERRORS, false, false, true},
                           [STK_MEASURE_PERPLEXITY] = {"perplexity", STK_N_GROUPS, true, true, true},
                           [STK_MEASURE_RECALL_AT] = {"recall_at", STK_N_GROUPS, true, false, false}};

const char *stk_measure_name(stk_measure_kind kind)
{
    return (unsigned)kind < STK_N_MEASURES ? kinds[kind].name : NULL;
}

void stk_measure_text(const stk_measure *measure, char out[16])
{
    if (measure->kind == STK_MEASURE_TOP_K)
        snprintf(out, 16, "top%d", measure->k);
    else if (measure->kind == STK_MEASURE_RECALL_AT)
        snprintf(out, 16, "recall_at_%u", (unsigned)measure->k % 100000u);
    else
        snprintf(out, 16, "%s", kinds[measure->kind].name);
}

static int64_t group_size(const stk_measure_plan *plan, stk_measure_group group)
{
    int64_t k = plan->n_classes;
    switch (group) {
    case STK_GROUP_RATES: return 4 * k;
    case STK_GROUP_AUC: return (plan->are_classes && k == 2 ? 1 : k) * 2 * STK_AUC_BINS;
    case STK_GROUP_TOP: return STK_MOST_MEASURES + 1;
    case STK_GROUP_CONFUSION: return k * k;
    case STK_GROUP_ERRORS: return 5 * k;
    case STK_N_GROUPS: break;
    }
    return 0;
}

static stk_status check_one(const stk_measure_plan *plan, const stk_measure *m)
{
    int64_t k = plan->n_classes;
    const char *name = kinds[m->kind].name;
    bool fits = plan->are_classes ? kinds[m->kind].of_classes : kinds[m->kind].of_labels || kinds[m->kind].of_numbers;
    if (!fits)
        return stk_fail(STK_INVALID,
                        plan->are_classes ? "metric '%s' is of numbers, and the target holds classes"
                                          : "metric '%s' is of classes, and the target holds no class numbers",
                        name);
    if (m->kind == STK_MEASURE_CONFUSION && k > STK_MOST_CONFUSION)
        return stk_fail(STK_INVALID, "a confusion matrix of %lld classes is too large; %d at most", (long long)k,
                        STK_MOST_CONFUSION);
    if (m->kind == STK_MEASURE_AUC && k > STK_MOST_AUC)
        return stk_fail(STK_INVALID, "metric 'auc' takes %d classes or labels at most, and there are %lld",
                        STK_MOST_AUC, (long long)k);
    if (m->kind == STK_MEASURE_TOP_K && (m->k < 1 || m->k > k))
        return stk_fail(STK_INVALID, "metric 'top_k': k is %d, and must be from 1 to the %lld classes", m->k,
                        (long long)k);
    if (m->kind == STK_MEASURE_RECALL_AT && (m->k < 1 || m->k > STK_MOST_NEIGHBOURS))
        return stk_fail(STK_INVALID, "metric 'recall_at': k is %d, and must be from 1 to %d", m->k,
                        STK_MOST_NEIGHBOURS);
    if (m->average == STK_AVERAGE_BINARY && k != 2 && kinds[m->kind].group == STK_GROUP_RATES)
        return stk_fail(STK_INVALID, "metric '%s': the average 'binary' is for two classes, and there are %lld", name,
                        (long long)k);
    return STK_OK;
}

stk_status stk_measure_plan_make(const stk_measure *list, int n, stk_value output, stk_value target, bool shares,
                                 stk_measure_plan *out)
{
    bool needs[STK_N_GROUPS + 1] = {false};
    *out = (stk_measure_plan){.n = n};
    if (n == 0) return STK_OK;
    if (n < 0 || n > STK_MOST_MEASURES)
        return stk_fail(STK_INVALID, "%d metrics; there may be %d at most", n, STK_MOST_MEASURES);
    if (output.id < 0 || target.id < 0)
        return stk_fail(STK_INVALID, "metrics compare the model's output with its target, and it has not both");
    stk_shape x = stk_value_shape(output), y = stk_value_shape(target);
    out->are_classes = shares || (stk_value_dtype(target) == STK_I32 && y.rank == x.rank - 1);
    out->n_classes = x.rank > 1 ? x.dim[x.rank - 1] : 1;
    if (!out->are_classes && !stk_shape_equal(x, y)) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "metrics cannot compare the output %s with the target %s", stk_shape_text(x, a),
                        stk_desc_text(stk_desc_make(stk_value_dtype(target), y), b));
    }
    for (int i = 0; i < n; i++) {
        out->list[i] = list[i];
        STK_RETURN_IF_ERROR(check_one(out, &list[i]));
        needs[kinds[list[i].kind].group] = true;
    }
    for (int g = 0; g < STK_N_GROUPS; g++)
        out->start[g + 1] = out->start[g] + (needs[g] ? group_size(out, (stk_measure_group)g) : 0);
    return STK_OK;
}

/* --- values --- */

static double divide(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double rate(stk_measure_kind kind, double hits, double predicted, double labelled)
{
    switch (kind) {
    case STK_MEASURE_PRECISION: return divide(hits, predicted);
    case STK_MEASURE_RECALL: return divide(hits, labelled);
    case STK_MEASURE_F1: return divide(2 * hits, predicted + labelled);
    default: return divide(hits, predicted + labelled - hits);
    }
}

static double finish_rate(const stk_measure_plan *plan, const stk_measure *m, const double *sums)
{
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
        if (plan->are_classes) return divide(total[0], count);
        /* Yes that is yes, and no that is no. */
        return divide(count * (double)n - total[1] - total[2] + 2 * total[0], count * (double)n);
    }
    if (m->average == STK_AVERAGE_MICRO) return rate(m->kind, total[0], total[1], total[2]);
    if (m->average == STK_AVERAGE_BINARY) return rate(m->kind, hits[1], predicted[1], labelled[1]);
    return divide(mean, (double)n_there);
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

static double finish_auc(const stk_measure_plan *plan, const double *sums)
{
    int64_t n = group_size(plan, STK_GROUP_AUC) / (2 * STK_AUC_BINS), n_there = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = area(sums + 2 * i * STK_AUC_BINS, sums + (2 * i + 1) * STK_AUC_BINS);
        if (isnan(a)) continue;
        sum += a;
        n_there++;
    }
    return n_there ? sum / (double)n_there : (double)NAN;
}

static double finish_error(const stk_measure_plan *plan, stk_measure_kind kind, const double *sums)
{
    int64_t k = plan->n_classes;
    double n = sums[4 * k], squares = 0, sizes = 0, r2 = 0;
    if (n == 0) return NAN;
    for (int64_t i = 0; i < k; i++) {
        double mean = sums[2 * k + i] / n, around = sums[3 * k + i] - n * mean * mean;
        squares += sums[i];
        sizes += sums[k + i];
        r2 += around > 0 ? 1 - sums[i] / around : sums[i] == 0 ? 1.0 : 0.0;
    }
    switch (kind) {
    case STK_MEASURE_MSE: return squares / (n * (double)k);
    case STK_MEASURE_RMSE: return sqrt(squares / (n * (double)k));
    case STK_MEASURE_MAE: return sizes / (n * (double)k);
    default: return r2 / (double)k;
    }
}

static double count_of(const stk_measure_plan *plan, const double *sums)
{
    return sums[plan->start[STK_GROUP_TOP] + STK_MOST_MEASURES];
}

int stk_measure_finish(const stk_measure_plan *plan, const double *sums, double loss, stk_measured *out,
                       double *accuracy)
{
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        const stk_measure *m = &plan->list[i];
        const double *own = sums + plan->start[kinds[m->kind].group];
        double value = 0;
        if (m->kind == STK_MEASURE_CONFUSION || m->kind == STK_MEASURE_RECALL_AT)
            continue; /* evaluate.c has the rows */
        switch (kinds[m->kind].group) {
        case STK_GROUP_RATES: value = finish_rate(plan, m, own); break;
        case STK_GROUP_AUC: value = finish_auc(plan, own); break;
        case STK_GROUP_TOP: value = divide(own[i], count_of(plan, sums)); break;
        case STK_GROUP_ERRORS: value = finish_error(plan, m->kind, own); break;
        default: value = exp(loss); break;
        }
        if (m->kind == STK_MEASURE_ACCURACY) {
            *accuracy = value;
            continue;
        }
        stk_measure_text(m, out[n].name);
        out[n++].value = value;
    }
    return n;
}
