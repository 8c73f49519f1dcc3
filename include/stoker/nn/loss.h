/* Losses beyond nn.h's: one number for each sample, f32 [N], of which training minimises the mean.
 *
 * Everything is a mean over the numbers of one sample first. Where positions or classes do not count alike, the loss
 * comes with what each sample counts for; with it as stk_model_loss_weight the mean over a batch, whole or in parts, is
 * PyTorch's. Arguments that do not fit are the graph's error, with the shapes. Threads: one at a time for each model.
 */
#ifndef STOKER_NN_LOSS_H
#define STOKER_NN_LOSS_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_cross_entropy_config {
    double smoothing;            /* in [0,1): the share of each label that goes to all classes alike */
    const double *class_weights; /* [n_class_weights], borrowed until the call returns; NULL: 1 for all */
    int64_t n_class_weights;     /* as many as there are classes, 4096 at most */
    bool ignores;                /* positions whose label is ignore_index do not count */
    int64_t ignore_index;        /* of any value, as -100 or 255; a sample without any other position has loss 0 */
} stk_cross_entropy_config;
/* logits [N,...,C]; labels i32 [N,...] or f32 [N,...,C] of shares. With weights and smoothing as PyTorch: each share is
 * multiplied by the weight of its class. *weight becomes what each sample counts for, [N]: the sum of the weights of
 * its labels, ignored ones left out; or no value (id -1), where all count alike. With weight NULL the loss is divided
 * by the number of positions instead. */
STK_API stk_value stk_cross_entropy_with(stk_value logits, stk_value labels, const stk_cross_entropy_config *config,
                                         stk_value *weight);

/* Each number of x a class of its own: x [N,...] logits, y [N,...] in [0,1], of the same shape. positive_weight
 * multiplies what y = 1 costs, above 0; 1 as a rule. Stable for any x. */
STK_API stk_value stk_binary_cross_entropy(stk_value x, stk_value y, double positive_weight);

/* |x - y|. */
STK_API stk_value stk_mean_absolute_error(stk_value x, stk_value y);
/* (x - y)^2 / 2 up to |x - y| = delta, and straight on from there; delta is above 0, 1 as a rule. Huber
 * 1964. */
STK_API stk_value stk_huber(stk_value x, stk_value y, double delta);

/* 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth), sums over the positions of a sample, meaned over classes.
 * logits [N,...,C]; y i32 [N,...], when p is a softmax, or f32 like the logits, when p is a sigmoid. Milletari et al.
 * 2016, with plain sums in the denominator. */
STK_API stk_value stk_dice(stk_value logits, stk_value y, double smooth);

/* max(|a - p| - |a - n| + margin, 0) of rows [N,D], Euclidean, with PyTorch's 1e-6 in each difference. Schroff et al.
 * 2015. */
STK_API stk_value stk_triplet(stk_value anchor, stk_value positive, stk_value negative, double margin);

/* Which triplets of a batch count. */
typedef enum stk_triplet_mining {
    /* Each row with the farthest of its class and the nearest of another: Hermans et al. 2017, "batch hard". */
    STK_TRIPLET_HARD,
    /* Each pair of a class with the nearest row of another that is farther off than the pair is apart, or, where there
     * is none, with the farthest: Schroff et al. 2015. Memory grows with the cube of the batch. */
    STK_TRIPLET_SEMI_HARD
} stk_triplet_mining;

/* max(|a - p| - |a - n| + margin, 0) of triplets that are found in the batch: rows [N,D], labels i32 [N]. For each row
 * as anchor, [N]; of several triplets the mean. *weight becomes how many triplets it has, f32 [N]: 0 where its class
 * has no other row here, or there is no other class. weight may be NULL. */
STK_API stk_value stk_triplet_mined(stk_value rows, stk_value labels, stk_triplet_mining mining, double margin,
                                    stk_value *weight);

#ifdef __cplusplus
}
#endif
#endif
