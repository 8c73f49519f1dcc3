/* One image file as a network's input: the stages of evaluation, as a data set has them. Threads: one at a time for
 * each data set. */
#ifndef STK_INFER_PREDICT_IMAGE_H
#define STK_INFER_PREDICT_IMAGE_H

#include "base/file.h"
#include "recipe/recipe.h"
#include "stoker/train/classify.h"

/* dst: room for one sample of the field 'image'. dataset: part i_part's. *fitted: the stages alone do not make the
 * network's input of it, and it was resized before them (data/stage/any_size.h). Errors do not name the file. */
stk_status stk_predict_image(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, stk_span bytes,
                             void *dst, bool *fitted);

/* The same of a file, which is read into *bytes, within the data's memory limit; the caller unloads them. Errors name
 * it. */
stk_status stk_predict_file(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, const char *file,
                            stk_span *bytes, void *dst, bool *fitted);

/* By the recipe's loss. */
stk_prediction_kind stk_predict_kind(const stk_recipe *recipe);
void stk_predict_softmax(float *score, int64_t n);
/* STK_CORRUPT where one is no finite number. score[n], which are spoilt: probabilities of classes, logits of labels, or
 * numbers. Names are the data set's. */
stk_status stk_predict_top(stk_prediction_kind kind, float *score, int64_t n, const stk_dataset *dataset,
                           stk_prediction *out, int n_top, int *n_out);

#endif
