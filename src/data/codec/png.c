/* PNG through libpng: 16 bits to 8 by their high byte, palettes expanded, transparency dropped, grey and RGB turned
 * into each other as PIL does. Every chunk that does not change these pixels is passed over unread, so that colour
 * profiles cannot alter them and compressed texts cannot cost memory.
 */
#include "data/codec/png.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/image.h"

typedef struct reader {
    stk_span rest;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    uint8_t *rgb;   /* of a colour image that becomes grey */
    bool no_memory; /* an allocation failed: no fault of the file */
    bool cut;       /* the bytes ended too early */
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

/* In front of each piece of memory lies what it is charged to. */
enum { BEFORE = 64 };

static png_voidp allocate(png_structp png, png_alloc_size_t n)
{
    stk_block *block = malloc(BEFORE + n);
    if (block && stk_memory_charge(stk_memory_in_use(), n) == STK_OK) {
        *block = (stk_block){.n_bytes = n, .memory = stk_memory_in_use()};
        return (char *)block + BEFORE;
    }
    free(block);
    ((reader *)png_get_mem_ptr(png))->no_memory = true;
    return NULL;
}

static void release(png_structp png, png_voidp p)
{
    (void)png;
    if (!p) return;
    stk_block *block = (stk_block *)(void *)((char *)p - BEFORE);
    stk_memory_release(block->memory, block->n_bytes);
    free(block);
}

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->rest.n) {
        r->cut = true;
        png_error(png, "truncated");
    }
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
        return stk_fail(STK_CORRUPT, "truncated PNG: it has no header");
    *width = read_u32(encoded.data + 16);
    *height = read_u32(encoded.data + 20);
    return STK_OK;
}

static void set_stored(const reader *r)
{
    int type = png_get_color_type(r->png, r->info);
    if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY)
        png_error(r->png, "it holds colours, not one number a pixel");
    if (png_get_bit_depth(r->png, r->info) == 16) png_error(r->png, "numbers of 16 bits are not supported");
    png_set_packing(r->png);
}

/* Asks libpng for 8-bit grey or RGB, and tells whether RGB is still to be made grey here. */
static bool set_transforms(const reader *r, int channels)
{
    bool is_colour = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR;
    png_set_palette_to_rgb(r->png);
    png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    if (channels == 3 && !is_colour) png_set_gray_to_rgb(r->png);
    return channels == 1 && is_colour;
}

/* False when libpng has jumped out. What is allocated lies in *r, which outlives the jump. */
static bool read_image(reader *r, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    size_t n_pixels = (size_t)height * (size_t)width, row;
    if (setjmp(png_jmpbuf(r->png))) return false;
    r->info = png_create_info_struct(r->png);
    if (!r->info) png_error(r->png, "out of memory");
    png_set_read_fn(r->png, r, read_bytes);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(r->png, r->info);
    bool is_stored = channels == STK_PNG_STORED, to_grey = !is_stored && set_transforms(r, channels);
    if (is_stored) set_stored(r);
    (void)png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    row = (size_t)width * (to_grey ? 3 : is_stored ? 1 : (size_t)channels);
    if (png_get_image_height(r->png, r->info) != (png_uint_32)height || png_get_rowbytes(r->png, r->info) != row)
        png_error(r->png, "unusual pixel format");
    if (to_grey) r->rgb = png_malloc(r->png, n_pixels * 3);
    r->rows = png_malloc(r->png, (size_t)height * sizeof(*r->rows));
    for (int64_t y = 0; y < height; y++)
        r->rows[y] = (to_grey ? r->rgb : dst) + (size_t)y * row;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    if (to_grey) stk_image_make_grey(r->rgb, dst, n_pixels);
    return true;
}

stk_status stk_png_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    reader r = {.rest = encoded};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning, &r, allocate, release);
    if (!r.png) return stk_fail_memory(4096);
    bool good = read_image(&r, height, width, channels, dst);
    release(r.png, r.rgb);
    release(r.png, (void *)r.rows);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    if (good) return STK_OK;
    if (r.no_memory) return stk_fail(STK_NO_MEMORY, "cannot allocate memory for a PNG");
    return r.cut ? stk_fail(STK_CORRUPT, "truncated PNG") : stk_fail(STK_CORRUPT, "damaged PNG: %s", r.text);
}

stk_status stk_png_encode(const uint8_t *src, int64_t height, int64_t width, int channels, uint8_t **out,
                          size_t *n_bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    *out = NULL;
    *n_bytes = 0;
    if (height < 1 || width < 1 || height > 65535 || width > 65535 || (channels != 1 && channels != 3))
        return stk_fail(STK_INVALID, "a PNG of %lld x %lld pixels and %d channels cannot be made", (long long)height,
                        (long long)width, channels);
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *bytes = malloc(n);
    if (!bytes) return stk_fail_memory(n);
    if (!png_image_write_to_memory(&image, bytes, &n, 0, src, 0, NULL)) {
        free(bytes);
        return stk_fail(STK_INTERNAL, "cannot make a PNG: %s", image.message);
    }
    *out = bytes;
    *n_bytes = n;
    return STK_OK;
}
