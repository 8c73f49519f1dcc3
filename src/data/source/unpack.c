/* Compressed shards. DEFLATE cannot be entered in its middle, so a file is unpacked once, as a whole, into the cache
 * folder, and read there like any other. What is made of another state of the file has another name.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "data/source/shards.h"
#include "data/source/side_file.h"

enum { BLOCK_BYTES = 256 << 10 };

/* Inflates all of file, of which there may be several streams one after the other, to fd. */
static stk_status inflate_to(const stk_input *file, int fd, const char *path, uint8_t *in, uint8_t *out)
{
    z_stream z = {0};
    stk_status status = STK_OK;
    uint64_t at = 0;
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
        STK_TRY(stk_write_all(fd, path, out, BLOCK_BYTES - z.avail_out));
    } while (z.avail_in > 0 || at < file->n_bytes || (z.avail_out == 0 && result != Z_STREAM_END));
    if (result != Z_STREAM_END) status = stk_fail(STK_CORRUPT, "the compressed data are cut short");
done:
    inflateEnd(&z);
    return status;
}

static stk_status make_file(const stk_input *file, const char *path)
{
    char temporary[PATH_MAX];
    stk_status status = STK_OK;
    uint8_t *blocks = malloc(2 * BLOCK_BYTES);
    if (!blocks) return stk_fail_memory(2 * BLOCK_BYTES);
    int n = snprintf(temporary, sizeof(temporary), "%s.tmp-XXXXXX", path);
    int fd = n < (int)sizeof(temporary) ? mkstemp(temporary) : -1;
    if (fd < 0) STK_TRY(stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(errno)));
    status = inflate_to(file, fd, path, blocks, blocks + BLOCK_BYTES);
    if (status == STK_OK && fsync(fd) < 0)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    close(fd);
    if (status == STK_OK && rename(temporary, path) < 0)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    if (status != STK_OK) unlink(temporary);
done:
    free(blocks);
    return status;
}

stk_status stk_unpack_to_cache(const stk_input *file, char **path)
{
    char place[PATH_MAX];
    *path = NULL;
    stk_status status = stk_cache_path(file, ".unpacked", place, sizeof(place));
    if (status != STK_OK) return stk_fail_prefix(status, "a compressed file needs a place to be unpacked: ");
    if (!stk_path_exists(place)) STK_RETURN_IF_ERROR(make_file(file, place));
    if (!(*path = strdup(place))) return stk_fail_memory(strlen(place));
    return STK_OK;
}
