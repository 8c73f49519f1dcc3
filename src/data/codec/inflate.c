/* See codec/inflate.h. */
#include "data/codec/inflate.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"

enum { BLOCK_BYTES = 256 << 10 };

static stk_status inflate_all(const stk_input *file, int fd, const char *path, uint64_t most_bytes, uint8_t *in,
                              uint8_t *out)
{
    z_stream z = {0};
    stk_status status = STK_OK;
    uint64_t at = 0, n_written = 0;
    int result = Z_OK;
    if (inflateInit2(&z, 15 + 32) != Z_OK) return stk_fail_memory(1 << 16);
    do {
        if (z.avail_in == 0) {
            z.avail_in = file->n_bytes - at < BLOCK_BYTES ? (uInt)(file->n_bytes - at) : BLOCK_BYTES;
            STK_TRY(stk_input_read(file, at, in, z.avail_in));
            z.next_in = in;
            at += z.avail_in;
        }
        if (result == Z_STREAM_END && inflateReset(&z) != Z_OK) STK_TRY(stk_fail(STK_INTERNAL, "inflate failed"));
        z.next_out = out;
        z.avail_out = BLOCK_BYTES;
        result = inflate(&z, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            STK_TRY(stk_fail(STK_CORRUPT, "the compressed data are damaged near byte %llu",
                             (unsigned long long)(at - z.avail_in)));
        n_written += BLOCK_BYTES - z.avail_out;
        if (n_written > most_bytes)
            STK_TRY(stk_fail(STK_CORRUPT, "it unpacks to more than %llu bytes, which cannot be right",
                             (unsigned long long)most_bytes));
        STK_TRY(stk_write_all(fd, path, out, BLOCK_BYTES - z.avail_out));
    } while (z.avail_in > 0 || at < file->n_bytes || (z.avail_out == 0 && result != Z_STREAM_END));
    if (result != Z_STREAM_END) status = stk_fail(STK_CORRUPT, "the compressed data are cut short");
done:
    inflateEnd(&z);
    return status;
}

stk_status stk_inflate_to(const stk_input *file, int fd, const char *path, uint64_t most_bytes)
{
    uint8_t *blocks = malloc(2 * BLOCK_BYTES);
    if (!blocks) return stk_fail_memory(2 * BLOCK_BYTES);
    stk_status status = inflate_all(file, fd, path, most_bytes, blocks, blocks + BLOCK_BYTES);
    free(blocks);
    return status;
}
