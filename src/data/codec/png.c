/* PNG through libpng: 16 bits to 8, palettes expanded, transparency dropped, grey and RGB turned into each other. */
#include "data/codec/png.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/error.h"

typedef struct reader {
    stk_span rest;
    char text[160];
} reader;

static void on_error(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof(r->text), "%s", text);
    png_longjmp(png, 1);
}

/* libpng's warnings are about metadata (colour profiles, text), which do not change pixels. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->rest.n) png_error(png, "truncated");
    memcpy(out, r->rest.data, n);
    r->rest.data += n;
    r->rest.n -= n;
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

stk_status stk_png_size(stk_span encoded, int64_t *height, int64_t *width)
{
    if (encoded.n < 24 || memcmp(encoded.data + 12, "IHDR", 4))
        return stk_fail(STK_CORRUPT, "truncated PNG: no header");
    *width = read_u32(encoded.data + 16);
    *height = read_u32(encoded.data + 20);
    return STK_OK;
}

/* Asks libpng for 8-bit grey or RGB. */
static void set_transforms(png_structp png, png_infop info, int channels)
{
    png_byte colour = png_get_color_type(png, info);
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    if (channels == 3 && !(colour & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    /* The weights of ITU-R 601, as PIL and OpenCV use them. */
    if (channels == 1 && (colour & PNG_COLOR_MASK_COLOR))
        png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
}

stk_status stk_png_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    reader r = {.rest = encoded};
    png_infop volatile info = NULL;
    png_bytep *volatile rows = NULL;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    if (!png) return stk_fail_memory(4096);
    if (setjmp(png_jmpbuf(png))) {
        png_infop doomed = info;
        png_destroy_read_struct(&png, doomed ? &doomed : NULL, NULL);
        free((void *)rows);
        return stk_fail(STK_CORRUPT, "damaged PNG: %s", r.text);
    }
    info = png_create_info_struct(png);
    if (!info) png_error(png, "out of memory");
    png_set_read_fn(png, &r, read_bytes);
    png_read_info(png, info);
    if (png_get_image_height(png, info) != (png_uint_32)height || png_get_image_width(png, info) != (png_uint_32)width)
        png_error(png, "two headers");
    set_transforms(png, info, channels);
    (void)png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width * (size_t)channels) png_error(png, "unusual pixel format");
    rows = malloc((size_t)height * sizeof(*rows));
    if (!rows) png_error(png, "out of memory");
    for (int64_t y = 0; y < height; y++)
        rows[y] = dst + (size_t)y * (size_t)width * (size_t)channels;
    png_read_image(png, rows);
    png_read_end(png, NULL);
    png_infop doomed = info;
    png_destroy_read_struct(&png, &doomed, NULL);
    free((void *)rows);
    return STK_OK;
}
