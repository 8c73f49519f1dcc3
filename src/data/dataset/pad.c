/* See data/dataset/pad.h. pad_plan.c makes the plans. */
#include "data/dataset/pad.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void stk_pad_plan_free(stk_pad_plan *pad)
{
    free(pad->lengths);
    *pad = (stk_pad_plan){0};
}

void stk_pad_plan_fill(const stk_pad_plan *pad, void *to, size_t n)
{
    unsigned char *dst = to;
    size_t done = pad->value_bytes < n ? pad->value_bytes : n;
    memcpy(dst, pad->value, done);
    for (; done < n; done *= 2)
        memcpy(dst + done, dst, done < n - done ? done : n - done);
}

stk_status stk_pad_plan_finish(const stk_pad_plan *pad, const stk_item *got, int64_t n_elements, void *dst,
                               int32_t *length)
{
    int64_t n = got->type.desc.shape.dim[0];
    if (n > pad->most) n = pad->most;
    if (n > n_elements && pad->fixed)
        return stk_fail(STK_MISMATCH,
                        "is %lld long, and batches are padded to %lld: pad to more, or cut it with 'max_length'",
                        (long long)n, (long long)n_elements);
    if (n > n_elements)
        return stk_fail(STK_MISMATCH,
                        "is %lld long, and was shorter when lengths were asked for: where a stage draws lengths at "
                        "random, pad to one 'length'",
                        (long long)n);
    size_t n_bytes = (size_t)n * pad->element_bytes, row_bytes = (size_t)n_elements * pad->element_bytes;
    if (got->data != dst && n_bytes) memcpy(dst, got->data, n_bytes);
    if (row_bytes > n_bytes) stk_pad_plan_fill(pad, (unsigned char *)dst + n_bytes, row_bytes - n_bytes);
    *length = (int32_t)n;
    return STK_OK;
}
