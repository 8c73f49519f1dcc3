/* See codec/tfrecord_writer.h. */
#include "data/codec/tfrecord_writer.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/new_file.h"

enum { BUFFER_BYTES = 256 << 10, MOST_A_CALL = 1 << 30 };

struct stk_tfrecord_writer {
    char *path;
    stk_new_file file;
    bool packs;
    z_stream z; /* where packs */
    uint8_t *buffer;
    size_t n; /* bytes in buffer that wait to be written */
};

static stk_status flush(stk_tfrecord_writer *w)
{
    size_t n = w->n;
    w->n = 0;
    return stk_write_all(w->file.fd, w->path, w->buffer, n);
}

static stk_status add_packed(stk_tfrecord_writer *w, const uint8_t *p, size_t n, int how)
{
    for (;;) {
        size_t part = n < MOST_A_CALL ? n : MOST_A_CALL;
        w->z.next_in = (Bytef *)(uintptr_t)p;
        w->z.avail_in = (uInt)part;
        w->z.next_out = w->buffer + w->n;
        w->z.avail_out = (uInt)(BUFFER_BYTES - w->n);
        int result = deflate(&w->z, part == n ? how : Z_NO_FLUSH);
        size_t used = part - w->z.avail_in;
        p += used;
        n -= used;
        w->n = BUFFER_BYTES - w->z.avail_out;
        if (result == Z_STREAM_ERROR) return stk_fail(STK_INTERNAL, "deflate failed");
        if (w->n == BUFFER_BYTES) STK_RETURN_IF_ERROR(flush(w));
        if (how == Z_FINISH ? result == Z_STREAM_END : n == 0) return STK_OK;
    }
}

static stk_status add_bytes(stk_tfrecord_writer *w, const void *bytes, size_t n)
{
    if (w->packs) return add_packed(w, bytes, n, Z_NO_FLUSH);
    if (n > BUFFER_BYTES - w->n) STK_RETURN_IF_ERROR(flush(w));
    if (n > BUFFER_BYTES) return stk_write_all(w->file.fd, w->path, bytes, n);
    memcpy(w->buffer + w->n, bytes, n);
    w->n += n;
    return STK_OK;
}

stk_status stk_tfrecord_writer_open(const char *path, stk_tfrecord_packing packing, stk_tfrecord_writer **out)
{
    stk_status status = STK_OK;
    *out = NULL;
    stk_tfrecord_writer *w = calloc(1, sizeof(*w));
    if (!w) return stk_fail_memory(sizeof(*w));
    w->file.fd = -1;
    w->path = strdup(path);
    w->buffer = malloc(BUFFER_BYTES);
    if (!w->path || !w->buffer) STK_TRY(stk_fail_memory(BUFFER_BYTES));
    if (packing != STK_TFRECORD_PLAIN) {
        int window = packing == STK_TFRECORD_GZIP ? 15 + 16 : 15;
        if (deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            STK_TRY(stk_fail_memory(1 << 18));
        w->packs = true;
    }
    STK_TRY(stk_new_file_begin(&w->file, w->path));
    *out = w;
    return STK_OK;
done:
    stk_tfrecord_writer_free(w);
    return status;
}

stk_status stk_tfrecord_writer_add(stk_tfrecord_writer *writer, stk_span data)
{
    uint8_t header[STK_TFRECORD_HEADER_BYTES], footer[4];
    stk_tfrecord_frame(data, header, footer);
    STK_RETURN_IF_ERROR(add_bytes(writer, header, sizeof(header)));
    STK_RETURN_IF_ERROR(add_bytes(writer, data.data, data.n));
    return add_bytes(writer, footer, sizeof(footer));
}

stk_status stk_tfrecord_writer_finish(stk_tfrecord_writer *writer)
{
    if (writer->packs) STK_RETURN_IF_ERROR(add_packed(writer, (const uint8_t *)"", 0, Z_FINISH));
    STK_RETURN_IF_ERROR(flush(writer));
    return stk_new_file_finish(&writer->file, false);
}

void stk_tfrecord_writer_free(stk_tfrecord_writer *writer)
{
    if (!writer) return;
    if (writer->packs) deflateEnd(&writer->z);
    stk_new_file_end(&writer->file);
    free(writer->buffer);
    free(writer->path);
    free(writer);
}
