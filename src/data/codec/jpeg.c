/* JPEG through libjpeg-turbo: ISLOW and fancy upsampling, so that pixels are those of PIL and OpenCV. A warning (cut
 * data, bad markers) counts as corrupt. Errors come back by longjmp, as the library wants it.
 */
#include "data/codec/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/error.h"

typedef struct error_state {
    struct jpeg_error_mgr base;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
} error_state;

static void on_error(j_common_ptr info)
{
    error_state *state = (error_state *)info->err;
    info->err->format_message(info, state->text);
    longjmp(state->jump, 1);
}

/* Level -1 is a warning: the data are damaged though the library would go on. */
static void on_message(j_common_ptr info, int level)
{
    if (level < 0) on_error(info);
}

static void no_output(j_common_ptr info)
{
    (void)info;
}

static void init_errors(error_state *state, struct jpeg_error_mgr **err)
{
    *err = jpeg_std_error(&state->base);
    state->base.error_exit = on_error;
    state->base.emit_message = on_message;
    state->base.output_message = no_output;
}

static uint32_t read_u16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

stk_status stk_jpeg_size(stk_span encoded, int64_t *height, int64_t *width)
{
    const uint8_t *p = encoded.data, *end = encoded.data + encoded.n;
    /* Walk the markers to the frame header (SOF0-15, but not DHT, JPG and DAC): far cheaper than the library's set-up.
     */
    for (p += 2; end - p >= 4;) {
        if (*p != 0xFF) break;
        while (end - p >= 4 && p[1] == 0xFF)
            p++;
        uint8_t marker = p[1];
        uint32_t n = read_u16(p + 2);
        if (n < 2 || (size_t)(end - p) < 2 + (size_t)n) break;
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
            if (n < 8) break;
            *height = read_u16(p + 5);
            *width = read_u16(p + 7);
            return STK_OK;
        }
        if (marker == 0xDA || marker == 0xD9) break;
        p += 2 + n;
    }
    return stk_fail(STK_CORRUPT, "truncated JPEG: it has no frame header");
}

static stk_status check_colours(const struct jpeg_decompress_struct *info)
{
    if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK)
        return stk_fail(STK_UNSUPPORTED, "CMYK JPEGs are not supported; convert the file to RGB");
    return STK_OK;
}

stk_status stk_jpeg_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    struct jpeg_decompress_struct info;
    error_state errors;
    stk_status status = STK_OK;
    memset(&info, 0, sizeof(info));
    init_errors(&errors, &info.err);
    if (setjmp(errors.jump)) {
        jpeg_destroy_decompress(&info);
        return stk_fail(STK_CORRUPT, "damaged JPEG: %s", errors.text);
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, encoded.data, (unsigned long)encoded.n);
    jpeg_read_header(&info, TRUE);
    status = check_colours(&info);
    if (status != STK_OK) goto done;
    if ((int64_t)info.image_height != height || (int64_t)info.image_width != width) {
        status = stk_fail(STK_CORRUPT, "damaged JPEG: two frame headers");
        goto done;
    }
    info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[16];
        int n = 0;
        for (; n < 16 && info.output_scanline + (JDIMENSION)n < info.output_height; n++)
            rows[n] = dst + ((size_t)info.output_scanline + (size_t)n) * (size_t)width * (size_t)channels;
        jpeg_read_scanlines(&info, rows, (JDIMENSION)n);
    }
    jpeg_finish_decompress(&info);
done:
    jpeg_destroy_decompress(&info);
    return status;
}

stk_status stk_jpeg_encode(const uint8_t *src, int64_t height, int64_t width, int channels, int quality, uint8_t **out,
                           size_t *n_bytes)
{
    struct jpeg_compress_struct info;
    error_state errors;
    unsigned char *volatile buffer_kept = NULL; /* volatile: read after longjmp */
    unsigned char *buffer = NULL;
    unsigned long n = 0;
    if (height < 1 || width < 1 || height > 65500 || width > 65500 || (channels != 1 && channels != 3))
        return stk_fail(STK_INVALID, "cannot write an image of %lld x %lld x %d as JPEG", (long long)height,
                        (long long)width, channels);
    memset(&info, 0, sizeof(info));
    init_errors(&errors, &info.err);
    if (setjmp(errors.jump)) {
        jpeg_destroy_compress(&info);
        free(buffer_kept);
        return stk_fail(STK_NO_MEMORY, "cannot write a JPEG: %s", errors.text);
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &buffer, &n);
    info.image_height = (JDIMENSION)height;
    info.image_width = (JDIMENSION)width;
    info.input_components = channels;
    info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(src + (size_t)info.next_scanline * (size_t)width * (size_t)channels);
        jpeg_write_scanlines(&info, &row, 1);
        buffer_kept = buffer;
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    *out = buffer;
    *n_bytes = n;
    return STK_OK;
}
