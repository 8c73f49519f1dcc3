/* Samples made of random numbers: for measuring a network, or a pipeline's stages, without any data.
 *
 * A field of numbers with a fraction is uniform with mean 0 and deviation 1; whole numbers are uniform below a limit.
 * Sample i is a function of (seed, i) alone. Threads: as for every data set.
 */
#ifndef STOKER_DATA_RANDOM_H
#define STOKER_DATA_RANDOM_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_synthetic_field {
    const char *name; /* "image", "label", "tokens" */
    stk_dtype dtype;
    stk_shape sample; /* shape of one sample; rank 0: one number */
    int64_t below;    /* whole numbers are 0 to below - 1; 0: all that the type has from 0 on. Floats: 0 */
} stk_synthetic_field;

/* Never NULL; an error stays inside for stk_dataset_status. fields and their names are borrowed until the call returns.
 * A loader of such a data set without stages, padding or cache makes one batch, the first of epoch 0, and delivers it
 * again and again without copying anything: all of its slots are one, and loading costs no time. With stages every
 * sample is made and goes through them each time. */
STK_API stk_dataset *stk_dataset_synthetic(int64_t n_samples, const stk_synthetic_field *fields, int n_fields,
                                           uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
