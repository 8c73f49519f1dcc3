/* A trained network that classifies image files, without what trains one. It is read from one file in safetensors that
 * `stoker export RUN --safetensors` wrote, which has the network, the classes and the stages of evaluation in its
 * metadata; a file is decoded, resized and normalised exactly as the evaluation of training does it, and the answers
 * are those of `stoker predict`, also for images of other sizes (stk_run_predict in stoker/train/run.h).
 *
 * Nothing here needs trainers, optimisers, checkpoints or runs: a program that is linked with libstoker.a has none of
 * them. Memory is the weights and little else: they are read from the file one after the other. Threads: one at a time
 * for each classifier.
 */
#ifndef STOKER_TRAIN_CLASSIFY_H
#define STOKER_TRAIN_CLASSIFY_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_classifier stk_classifier;

typedef struct stk_classifier_options {
    const char *device; /* NULL: cpu */
    int n_threads;      /* 0: as many as cores */
} stk_classifier_options;

/* options may be NULL. STK_UNSUPPORTED: the file does not say which network it is of. */
STK_API stk_status stk_classifier_open(const char *file, const stk_classifier_options *options, stk_classifier **out);
STK_API void stk_classifier_close(stk_classifier *classifier); /* accepts NULL */

/* What a network's output says, by the loss that it was trained with. */
typedef enum stk_prediction_kind {
    STK_PREDICTION_CLASS, /* one of them is right, and probabilities add up to 1: cross_entropy */
    STK_PREDICTION_LABEL, /* each is right or not: bce */
    STK_PREDICTION_NUMBER /* the output itself: mse, mae, huber */
} stk_prediction_kind;

typedef struct stk_prediction {
    int64_t class_number;   /* the output's index */
    const char *class_name; /* NULL where classes have no names. Borrowed from what predicts */
    double probability;     /* or the number */
    stk_prediction_kind kind;
} stk_prediction;

/* The n_top likeliest classes of one image file, likeliest first, or its first n_top numbers in their order; *n_out may
 * be less where there are fewer. */
STK_API stk_status stk_classifier_predict(stk_classifier *classifier, const char *image, stk_prediction *out, int n_top,
                                          int *n_out);

#ifdef __cplusplus
}
#endif
#endif
