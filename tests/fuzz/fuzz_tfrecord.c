/* A TFRecord file from memory, as it is and with its CRCs put right, so that lengths are reached behind them.
 *
 * covers: data/codec/tfrecord.c
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/little.h"
#include "data/codec/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All records must lie one after the other and fill the file. */
static void read_records(stk_span file)
{
    stk_input input = stk_input_of_memory(file);
    uint64_t *start, expected = 0;
    int64_t n;
    if (stk_tfrecord_find(&input, &start, &n) != STK_OK) return;
    for (int64_t i = 0; i < n; i++) {
        uint64_t end = i + 1 < n ? start[i + 1] : file.n;
        stk_span data;
        if (start[i] != expected || end > file.n || end < start[i] + STK_TFRECORD_FRAME_BYTES) abort();
        expected = end;
        if (stk_tfrecord_parse((stk_span){file.data + start[i], end - start[i]}, &data) != STK_OK) continue;
        if (data.n + STK_TFRECORD_FRAME_BYTES != end - start[i]) abort();
    }
    if (expected != file.n) abort();
    free(start);
}

static void mend(uint8_t *p, size_t n)
{
    while (n >= STK_TFRECORD_FRAME_BYTES) {
        uint64_t length = stk_little64(p);
        stk_put_little32(p + 8, stk_crc32c_mask(stk_crc32c(p, 8)));
        if (length > n - STK_TFRECORD_FRAME_BYTES) return;
        stk_put_little32(p + 12 + length, stk_crc32c_mask(stk_crc32c(p + 12, length)));
        p += length + STK_TFRECORD_FRAME_BYTES;
        n -= length + STK_TFRECORD_FRAME_BYTES;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    (void)stk_tfrecord_packing_of((stk_span){data, size < 12 ? size : 12});
    read_records((stk_span){data, size});
    mend(copy, size);
    read_records((stk_span){copy, size});
    free(copy);
    return 0;
}
