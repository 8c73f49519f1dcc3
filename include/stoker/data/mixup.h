/* Mixup and cutmix: each sample of a whole batch mixed with its neighbour, labels and all, as torchvision.transforms.v2
 * does it. Zhang et al. 2018, Yun et al. 2019.
 *
 * A share lambda is drawn for each batch from Beta(alpha, alpha), by the key (seed, epoch, batch). Mixup makes
 * lambda * x[i] + (1 - lambda) * x[i - 1] of the images; cutmix puts a rectangle of image i - 1 into image i, where
 * 1 - lambda is its share of the area; x[-1] is the batch's last sample. Labels are mixed by the same share.
 */
#ifndef STOKER_DATA_MIXUP_H
#define STOKER_DATA_MIXUP_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both work on the fields "image" and "label" after all stages, and need labels f32 [n_classes]: apply stk_one_hot to
 * them. With both, one of the two is drawn for each batch, by half and half. alpha above 0, up to 1,000; 1: every share
 * is equally likely, less: mostly near 0 or 1. */

/* Images f32 of any shape. */
STK_API void stk_dataset_mixup(stk_dataset *dataset, double alpha);
/* Images [H,W,C] of any type, or [C,H,W] where the last stage is stk_layout_channels_first. */
STK_API void stk_dataset_cutmix(stk_dataset *dataset, double alpha);

#ifdef __cplusplus
}
#endif
#endif
