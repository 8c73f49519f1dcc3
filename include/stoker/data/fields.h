/* Samples of several images: an image and its mask, two views, a photograph and its depth. Crops, flips and turns are
 * drawn once for all of them.
 */
#ifndef STOKER_DATA_FIELDS_H
#define STOKER_DATA_FIELDS_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Images that belong together, one folder for each field: photos/a/1.jpg and masks/a/1.png are one sample, since their
 * paths below the folders agree but for the ending. All JPEG, PNG and WebP files at any depth, sorted by path; a file
 * without a partner is an error. Fields: names[i] (encoded), i < n_fields. Everything is borrowed until the call
 * returns. */
STK_API stk_dataset *stk_dataset_pairs(const char *const *names, const char *const *folders, int n_fields);

/* PNG -> u8 [H,W,1], the numbers as they are stored: of a palette the index, of grey the value, whatever the bits. Any
 * other file is refused, since colours and JPEG do not keep class numbers. */
STK_API stk_stage *stk_decode_mask(void);

/* Applies stage to several fields with the same draws; takes it. The first n_images fields are images; the n_masks
 * after them are masks, whose values are never mixed (nearest, no antialiasing) and whose outside is 0. Stages that
 * move pixels only: resize, crops, flips, rotation, affine, pad. At each such stage the fields of a sample must be
 * equally large; others are an error of the record. */
STK_API void stk_dataset_apply_together(stk_dataset *dataset, const char *const *fields, int n_images, int n_masks,
                                        stk_stage *stage);

#ifdef __cplusplus
}
#endif
#endif
