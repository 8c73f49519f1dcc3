/* IDX from memory, plain or gzip, as the source tells them apart.
 *
 * covers: data/codec/idx.c
 */
#include <stdlib.h>

#include "data/codec/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 16 << 20 };

static void parse(stk_span bytes)
{
    stk_shape shape;
    const uint8_t *elements;
    if (stk_idx_parse(bytes, &shape, &elements) != STK_OK) return;
    /* What it promises must be there: exactly the rest of the bytes. */
    if (elements + stk_shape_count(shape) != bytes.data + bytes.n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span bytes = {data, size};
    uint8_t *inflated;
    size_t n;
    parse(bytes);
    if (stk_gunzip(bytes, MOST_BYTES, &inflated, &n) != STK_OK) return 0;
    if (n > MOST_BYTES) abort();
    parse((stk_span){inflated, n});
    free(inflated);
    return 0;
}
