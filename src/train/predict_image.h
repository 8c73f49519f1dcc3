/* One image file as a network's input: the stages of evaluation, as a data set has them. Threads: one at a time for
 * each data set. */
#ifndef STK_TRAIN_PREDICT_IMAGE_H
#define STK_TRAIN_PREDICT_IMAGE_H

#include "base/file.h"
#include "stoker/classify.h"
#include "train/recipe.h"

/* dst: room for one sample of the field 'image'. dataset: part i_part's. Errors do not name the file. */
stk_status stk_predict_image(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, stk_span bytes,
                             void *dst);

/* The likeliest of score[n], likeliest first, which are spoilt. Names are the data set's. */
void stk_predict_top(float *score, int64_t n, const stk_dataset *dataset, stk_prediction *out, int n_top, int *n_out);

#endif
