/* NIfTI headers of both versions and byte orders.
 *
 * covers: data/codec/nifti.c
 */
#include <stdlib.h>

#include "data/codec/nifti.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_nifti h;
    stk_span start = {data, size < STK_NIFTI_HEADER ? size : STK_NIFTI_HEADER};
    if (stk_nifti_parse(start, size, &h) != STK_OK) return 0;
    /* What it promises must be there. */
    uint64_t n = stk_number_bytes(h.number);
    for (int i = 0; i < 3; i++)
        n *= (uint64_t)h.side[i];
    n *= (uint64_t)h.n_channels;
    if (h.data_at > size || n > size - h.data_at) abort();
    int64_t n_numbers = (int64_t)(n / stk_number_bytes(h.number));
    double numbers[64];
    for (int64_t i = 0; i < n_numbers; i += 64)
        stk_number_read(h.number, h.swapped, data + h.data_at + (size_t)i * stk_number_bytes(h.number),
                        n_numbers - i < 64 ? n_numbers - i : 64, numbers);
    return 0;
}
