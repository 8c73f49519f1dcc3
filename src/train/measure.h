/* Metrics: their part of a graph, and what the sums come to. See stoker/train/metric.h.
 *
 * The sums of all groups that the measures need lie one after the other in one vector of f64, which is an output of the
 * graph. Threads: one at a time.
 */
#ifndef STK_TRAIN_MEASURE_H
#define STK_TRAIN_MEASURE_H

#include "graph/graph.h"
#include "stoker/train/metric.h"

enum { STK_AUC_BINS = 8192, STK_MOST_AUC = 64, STK_MOST_NEIGHBOURS = 99999 };

typedef enum stk_measure_group {
    STK_GROUP_RATES,     /* [4,K]: hits, predicted, labelled, and (first) how many there are */
    STK_GROUP_AUC,       /* [K,2,bins] */
    STK_GROUP_TOP,       /* hits of each of STK_MOST_MEASURES, and (last) how many there are */
    STK_GROUP_CONFUSION, /* [K,K]: label, predicted */
    STK_GROUP_ERRORS,    /* [5,K]: squares and sizes of errors, sum and squares of targets, (first) how many */
    STK_N_GROUPS
} stk_measure_group;

typedef struct stk_measure_plan {
    stk_measure list[STK_MOST_MEASURES];
    int n;
    bool are_classes;                /* the target holds class numbers; else it is like the output */
    int64_t n_classes;               /* K: the last side of the output */
    int64_t start[STK_N_GROUPS + 1]; /* of each group in the sums; the end */
} stk_measure_plan;

/* Its name with its number, as in metrics.jsonl: "f1", "top3". */
void stk_measure_text(const stk_measure *measure, char out[16]);
/* What the measures need for a model with that output and target; says which of them does not fit. shares: the target
 * holds shares of classes. n 0: nothing. */
stk_status stk_measure_plan_make(const stk_measure *list, int n, stk_value output, stk_value target, bool shares,
                                 stk_measure_plan *out);
/* The sums over the rows of a bound graph as one value f64 [plan's end]. weight f32 [N] is 0 for rows that do not
 * count, or none; with `ignores`, labels of ignore_index do not count. */
stk_value stk_measure_build(const stk_measure_plan *plan, stk_value output, stk_value target, stk_value weight,
                            bool ignores, int64_t ignore_index);
/* The values by sums and the mean loss; accuracy goes to *accuracy where it is among them, and confusion is no value.
 * Returns how many there are in out [STK_MOST_MEASURES]. */
int stk_measure_finish(const stk_measure_plan *plan, const double *sums, double loss, stk_measured *out,
                       double *accuracy);

#endif
