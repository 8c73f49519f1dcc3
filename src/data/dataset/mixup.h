/* Mixup and cutmix of a whole batch, once it is complete. The public side is stoker/data/mixup.h.
 *
 * Threads: the worker that completes a batch runs it; all is a function of (configuration, key, batch).
 */
#ifndef STK_DATA_DATASET_MIXUP_H
#define STK_DATA_DATASET_MIXUP_H

#include "base/rng.h"
#include "data/codec/image.h"
#include "tensor/shape.h"

typedef struct stk_mixup {
    double mixup_alpha, cutmix_alpha; /* 0: without it */
} stk_mixup;

/* Where the images and labels of a batch lie, and what they are. */
typedef struct stk_mixup_batch {
    int64_t n_rows; /* that are samples */
    void *image;    /* [n_rows, ...] of image_type */
    stk_tensor_desc image_type;
    bool channels_first;
    float *label; /* [n_rows, n_classes] */
    int64_t n_classes;
} stk_mixup_batch;

typedef struct stk_mixup_draw {
    bool is_cut;
    double lambda; /* of cutmix: what the rectangle leaves */
    stk_rect rect; /* of cutmix */
} stk_mixup_draw;

/* From Beta(alpha, alpha). */
double stk_mixup_beta(stk_rng *rng, double alpha);
/* The rectangle for a share and a middle. */
stk_mixup_draw stk_mixup_cut(double lambda, int64_t middle_y, int64_t middle_x, int64_t height, int64_t width);
void stk_mixup_apply(const stk_mixup_draw *draw, const stk_mixup_batch *batch);
/* Draws by (seed, epoch, i_first: the position of the batch's first sample) and applies. */
void stk_mixup_run(const stk_mixup *mixup, uint64_t seed, uint64_t epoch, uint64_t i_first,
                   const stk_mixup_batch *batch);

#endif
