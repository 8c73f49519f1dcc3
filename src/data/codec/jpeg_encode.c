/* Writing JPEG through libjpeg-turbo; see codec/image.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/codec/jpeg_errors.h"

typedef struct encoder {
    struct jpeg_compress_struct info;
    stk_jpeg_errors errors;
    unsigned char *buffer;
    unsigned long n;
} encoder;

static stk_status encode(encoder *e, const uint8_t *src, int64_t height, int64_t width, int channels, int quality)
{
    struct jpeg_compress_struct *info = &e->info;
    size_t row_bytes = (size_t)width * (size_t)channels;
    if (setjmp(e->errors.jump)) {
        /* Where the buffer lies is known to the library only, until it hands it over. */
        if (e->buffer) info->dest->term_destination(info);
        return stk_jpeg_fail(&e->errors);
    }
    jpeg_create_compress(info);
    jpeg_mem_dest(info, &e->buffer, &e->n);
    info->image_height = (JDIMENSION)height;
    info->image_width = (JDIMENSION)width;
    info->input_components = channels;
    info->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, quality, TRUE);
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(src + (size_t)info->next_scanline * row_bytes);
        jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
    return STK_OK;
}

stk_status stk_jpeg_encode(const uint8_t *src, int64_t height, int64_t width, int channels, int quality, uint8_t **out,
                           size_t *n_bytes)
{
    if (height < 1 || width < 1 || height > 65500 || width > 65500 || (channels != 1 && channels != 3))
        return stk_fail(STK_INVALID, "cannot write an image of %lld x %lld x %d as JPEG", (long long)height,
                        (long long)width, channels);
    if (quality < 1 || quality > 100)
        return stk_fail(STK_INVALID, "a JPEG of quality %d cannot be written; 1 to 100 are possible", quality);
    encoder e = {.buffer = NULL};
    memset(&e.info, 0, sizeof(e.info));
    stk_jpeg_errors_init(&e.errors, &e.info.err);
    stk_status status = encode(&e, src, height, width, channels, quality);
    jpeg_destroy_compress(&e.info);
    if (status != STK_OK) {
        free(e.buffer);
        return status;
    }
    *out = e.buffer;
    *n_bytes = e.n;
    return STK_OK;
}
