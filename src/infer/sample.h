/* Drawing a token by its logits. Threads: one at a time for each scratch. */
#ifndef STK_INFER_SAMPLE_H
#define STK_INFER_SAMPLE_H

#include "stoker/train/generate.h"

typedef struct stk_candidate {
    float logit;
    int32_t token;
} stk_candidate;

/* logits [n], n >= 1; scratch [n]. draw: the number of this draw, which makes another random number of the seed. */
stk_status stk_sample(const float *logits, int64_t n, const stk_sampling *sampling, uint64_t draw,
                      stk_candidate *scratch, int32_t *token);

#endif
