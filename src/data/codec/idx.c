#include "data/codec/idx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"

stk_status stk_idx_parse(stk_span bytes, stk_shape *shape, const uint8_t **data)
{
    const uint8_t *p = bytes.data;
    if (bytes.n < 4 || p[0] || p[1]) return stk_fail(STK_CORRUPT, "not an IDX file");
    if (p[2] != 0x08) return stk_fail(STK_UNSUPPORTED, "IDX element type 0x%02x; only u8 (0x08) is supported", p[2]);
    if (p[3] < 1 || p[3] > 4) return stk_fail(STK_CORRUPT, "IDX rank %d; 1 to 4 are possible", p[3]);
    *shape = (stk_shape){.rank = p[3]};
    size_t header = 4 + 4 * (size_t)p[3], n = 1;
    if (bytes.n < header) return stk_fail(STK_CORRUPT, "the IDX header is cut short");
    for (int i = 0; i < shape->rank; i++) {
        const uint8_t *q = p + 4 + 4 * i;
        uint32_t dim = (uint32_t)q[0] << 24 | (uint32_t)q[1] << 16 | (uint32_t)q[2] << 8 | q[3];
        shape->dim[i] = dim;
        if (dim == 0) return stk_fail(STK_CORRUPT, "dimension %d of its IDX header is 0", i);
        if (n > bytes.n / dim) /* No shape may ask for more than the file has. */
            return stk_fail(STK_CORRUPT, "the file has %zu bytes of data, fewer than its IDX header says",
                            bytes.n - header);
        n *= dim;
    }
    if (n != bytes.n - header)
        return stk_fail(STK_CORRUPT, "the file has %zu bytes of data, its IDX header says %zu", bytes.n - header, n);
    *data = p + header;
    return STK_OK;
}

bool stk_is_gzip(stk_span bytes)
{
    return bytes.n >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b;
}

/* The size that the last four bytes promise; only a first guess, since it is modulo 2^32 and of the last member. */
static size_t guess_size(stk_span compressed, size_t most_bytes)
{
    if (compressed.n < 18) return 1;
    const uint8_t *p = compressed.data + compressed.n - 4;
    size_t n = (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (n / 1032 > compressed.n) n = 0; /* Deflate never shrinks by more, so the guess is a lie. */
    return n < most_bytes ? n + 1 : most_bytes;
}

stk_status stk_gunzip(stk_span compressed, size_t most_bytes, uint8_t **out, size_t *n)
{
    stk_status status = STK_OK;
    z_stream z = {0};
    size_t capacity = guess_size(compressed, most_bytes), used = 0, at = 0;
    uint8_t *buffer = stk_array_get(capacity);
    if (!buffer) return stk_fail_memory(capacity);
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        free(buffer);
        return stk_fail_memory(1 << 16);
    }
    for (int result = Z_OK; result != Z_STREAM_END;) {
        if (used == capacity) {
            if (capacity >= most_bytes)
                STK_TRY(stk_fail(STK_CORRUPT, "it inflates to more than %zu bytes", most_bytes));
            size_t grown = capacity < most_bytes / 2 ? 2 * capacity + 4096 : most_bytes;
            uint8_t *p = realloc(buffer, grown);
            if (!p) STK_TRY(stk_fail_memory(grown));
            buffer = p;
            capacity = grown;
        }
        z.next_in = (Bytef *)(compressed.data + at);
        z.avail_in = compressed.n - at < UINT_MAX ? (uInt)(compressed.n - at) : UINT_MAX;
        z.next_out = buffer + used;
        z.avail_out = capacity - used < UINT_MAX ? (uInt)(capacity - used) : UINT_MAX;
        uInt in = z.avail_in, room = z.avail_out;
        result = inflate(&z, Z_NO_FLUSH);
        at += in - z.avail_in;
        used += room - z.avail_out;
        if (result == Z_OK && z.avail_out && at == compressed.n) result = Z_BUF_ERROR;
        if (result == Z_OK || result == Z_STREAM_END || (result == Z_BUF_ERROR && !z.avail_out)) continue;
        STK_TRY(stk_fail(STK_CORRUPT, "the gzip data are %s", result == Z_BUF_ERROR ? "cut short" : "damaged"));
    }
    *out = buffer;
    *n = used;
    buffer = NULL;
done:
    inflateEnd(&z);
    free(buffer);
    return status;
}
