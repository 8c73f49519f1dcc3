/* See codec/tfrecord.h. */
#include "data/codec/tfrecord.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"
#include "base/memory.h"
#include "data/codec/window.h"

enum { LONG_RECORD_BYTES = 16 << 10 };

stk_status stk_tfrecord_parse_header(const uint8_t header[STK_TFRECORD_HEADER_BYTES], uint64_t *n_data)
{
    if (stk_crc32c_mask(stk_crc32c(header, 8)) != stk_little32(header + 8))
        return stk_fail(STK_CORRUPT, "the CRC of its length is wrong");
    *n_data = stk_little64(header);
    return STK_OK;
}

stk_status stk_tfrecord_parse(stk_span record, stk_span *data)
{
    uint64_t n = 0;
    if (record.n < STK_TFRECORD_FRAME_BYTES) return stk_fail(STK_CORRUPT, "the record is cut short");
    STK_RETURN_IF_ERROR(stk_tfrecord_parse_header(record.data, &n));
    if (n != record.n - STK_TFRECORD_FRAME_BYTES)
        return stk_fail(STK_CORRUPT, "the record's length is %llu, not %zu as when it was indexed",
                        (unsigned long long)n, record.n - STK_TFRECORD_FRAME_BYTES);
    *data = (stk_span){record.data + STK_TFRECORD_HEADER_BYTES, (size_t)n};
    if (stk_crc32c_mask(stk_crc32c(data->data, data->n)) != stk_little32(data->data + data->n))
        return stk_fail(STK_CORRUPT, "the CRC of its data is wrong");
    return STK_OK;
}

static stk_status add_start(uint64_t **start, int64_t *n, int64_t *capacity, uint64_t at)
{
    if (*n == *capacity) {
        int64_t grown = 2 * *capacity + 1024;
        STK_RETURN_IF_ERROR(stk_memory_hold((size_t)(grown - *capacity) * sizeof(**start)));
        *capacity = grown;
        uint64_t *p = realloc(*start, (size_t)grown * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)grown * sizeof(*p));
        *start = p;
    }
    (*start)[(*n)++] = at;
    return STK_OK;
}

/* Bytes of the whole record at byte `at`; n_before: of the one before it. */
static stk_status measure_record(stk_window *w, uint64_t at, uint64_t n_before, uint64_t *n)
{
    const uint8_t *header;
    uint64_t n_left = w->input->n_bytes - at, n_data;
    if (n_left < STK_TFRECORD_FRAME_BYTES)
        return stk_fail(STK_CORRUPT, "it is cut short: only %llu bytes are left", (unsigned long long)n_left);
    bool far = n_before > LONG_RECORD_BYTES;
    STK_RETURN_IF_ERROR(stk_window_get(w, at, STK_TFRECORD_HEADER_BYTES, far, &header));
    STK_RETURN_IF_ERROR(stk_tfrecord_parse_header(header, &n_data));
    if (n_data > n_left - STK_TFRECORD_FRAME_BYTES)
        return stk_fail(STK_CORRUPT, "it is cut short: its length is %llu, and %llu bytes are left",
                        (unsigned long long)n_data, (unsigned long long)(n_left - STK_TFRECORD_FRAME_BYTES));
    *n = n_data + STK_TFRECORD_FRAME_BYTES;
    return STK_OK;
}

stk_status stk_tfrecord_find(const stk_input *input, uint64_t **start, int64_t *n_records)
{
    stk_window w;
    int64_t capacity = 0;
    stk_status status = STK_OK;
    *start = NULL;
    *n_records = 0;
    STK_RETURN_IF_ERROR(stk_window_open(input, &w));
    for (uint64_t at = 0, n = 0; at < input->n_bytes; at += n) {
        status = measure_record(&w, at, n, &n);
        if (status != STK_OK)
            STK_TRY(
                stk_fail_prefix(status, "record %lld at byte %llu: ", (long long)*n_records, (unsigned long long)at));
        STK_TRY(add_start(start, n_records, &capacity, at));
    }
done:
    stk_window_close(&w);
    stk_memory_let_go((size_t)capacity * sizeof(**start));
    if (status != STK_OK) {
        free(*start);
        *start = NULL;
    }
    return status;
}

void stk_tfrecord_frame(stk_span data, uint8_t header[STK_TFRECORD_HEADER_BYTES], uint8_t footer[4])
{
    stk_put_little64(header, data.n);
    stk_put_little32(header + 8, stk_crc32c_mask(stk_crc32c(header, 8)));
    stk_put_little32(footer, stk_crc32c_mask(stk_crc32c(data.data, data.n)));
}

stk_tfrecord_packing stk_tfrecord_packing_of(stk_span start)
{
    uint64_t n;
    const uint8_t *p = start.data;
    /* A length may look like a magic number, but not with its CRC. */
    if (start.n >= STK_TFRECORD_HEADER_BYTES && stk_tfrecord_parse_header(p, &n) == STK_OK) return STK_TFRECORD_PLAIN;
    if (start.n >= 2 && p[0] == 0x1f && p[1] == 0x8b) return STK_TFRECORD_GZIP;
    if (start.n >= 2 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[0] << 8 | p[1]) % 31 == 0) return STK_TFRECORD_ZLIB;
    return STK_TFRECORD_PLAIN;
}
