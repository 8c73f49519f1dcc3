/* Metrics besides the loss: what is counted while training and evaluating, and what it comes to.
 *
 * All of them are sums over samples, made in f64 inside of the compiled step and added up over an epoch, so that they
 * are exact, the same for any cut into batches, and part of a checkpoint: a run that is resumed in the middle of an
 * epoch ends it with the same numbers. They compare the model's output with its target (stk_model_target): class
 * numbers, several labels a sample, or numbers, by the shapes and by which metrics are asked for.
 */
#ifndef STOKER_TRAIN_METRIC_H
#define STOKER_TRAIN_METRIC_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every metric, once: X(STK_MEASURE_..., name). */
#define STK_MEASURE_LIST(X)                                                                                            \
    /* Of classes [N,...,C] next to numbers i32 [N,...], and of labels [N,...,K], where a logit above 0 means yes. */  \
    X(ACCURACY, accuracy) /* the share that is right */                                                                \
    X(PRECISION, precision)                                                                                            \
    X(RECALL, recall)                                                                                                  \
    X(F1, f1)                                                                                                          \
    X(IOU, iou) /* the Jaccard index */                                                                                \
    /* The area under the ROC curve: of the label, or of each class against the rest. Scores fall into 8192 bins, and  \
     * pairs in one bin count half. */                                                                                 \
    X(AUC, auc)                                                                                                        \
    /* Of classes only. */                                                                                             \
    X(TOP_K, top_k)                                                                                                    \
    X(CONFUSION, confusion)                                                                                            \
    /* Of numbers. */                                                                                                  \
    X(MSE, mse)                                                                                                        \
    X(RMSE, rmse)                                                                                                      \
    X(MAE, mae)                                                                                                        \
    X(R2, r2) /* 1 - squares of the error / squares around the mean, meaned over the last axis */                      \
    /* exp of the mean loss. */                                                                                        \
    X(PERPLEXITY, perplexity)                                                                                          \
    /* Of rows [N,D] next to numbers i32 [N], in evaluation only: the share whose k nearest others, of the whole data  \
     * set, hold one of their class. Euclidean; of equally near ones those of other classes come first. Rows that are  \
     * alone in their class do not count. Its time grows with the square of N. */                                      \
    X(RECALL_AT, recall_at)

typedef enum stk_measure_kind {
#define X(KIND, name) STK_MEASURE_##KIND,
    STK_MEASURE_LIST(X)
#undef X
        STK_N_MEASURES
} stk_measure_kind;

/* How precision, recall, F1 and IoU of several classes become one number: the mean over the classes that are there, one
 * number of all counts together, or that of class 1 alone. 0 / 0 counts as 0, as in scikit-learn. */
typedef enum stk_average_kind { STK_AVERAGE_MACRO, STK_AVERAGE_MICRO, STK_AVERAGE_BINARY } stk_average_kind;

typedef struct stk_measure {
    stk_measure_kind kind;
    int k; /* TOP_K and RECALL_AT */
    stk_average_kind average;
} stk_measure;

enum { STK_MOST_MEASURES = 16, STK_MOST_CONFUSION = 512 };

typedef struct stk_measured {
    char name[16]; /* "f1", "top3" */
    double value;  /* NAN: it has none, as the AUC of labels that are all alike */
} stk_measured;

/* "precision", "top_k"; NULL past the last. */
STK_API const char *stk_measure_name(stk_measure_kind kind);

#ifdef __cplusplus
}
#endif
#endif
