/* JPEG through libjpeg-turbo: ISLOW and fancy upsampling, so that pixels are those of PIL and OpenCV. A warning (cut
 * data, bad markers) counts as corrupt. Errors come back by longjmp, as the library wants it. Baseline files are read
 * by our own decoder where it is faster (jpeg_crop.h); the pixels are the same.
 */
#include "data/codec/jpeg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/jpeg_errors.h"

static uint32_t read_u16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* The frame header from its precision on: P, Y, X, Nf. NULL: there is none. */
static const uint8_t *find_frame(stk_span encoded)
{
    const uint8_t *p = encoded.data, *end = encoded.data + encoded.n;
    /* Walk the markers to the frame header (SOF0-15, but not DHT, JPG and DAC): far cheaper than the library's set-up.
     */
    for (p += 2; end - p >= 4;) {
        if (*p != 0xFF) break;
        while (end - p > 4 && p[1] == 0xFF)
            p++;
        uint8_t marker = p[1];
        uint32_t n = read_u16(p + 2);
        if (n < 2 || (size_t)(end - p) < 2 + (size_t)n) break;
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
            return n < 8 ? NULL : p + 4;
        }
        if (marker == 0xDA || marker == 0xD9) break;
        p += 2 + n;
    }
    return NULL;
}

stk_status stk_jpeg_size(stk_span encoded, int64_t *height, int64_t *width)
{
    const uint8_t *frame = find_frame(encoded);
    if (!frame) return stk_fail(STK_CORRUPT, "truncated JPEG: it has no frame header");
    *height = read_u16(frame + 1);
    *width = read_u16(frame + 3);
    return STK_OK;
}

int stk_jpeg_components(stk_span encoded)
{
    const uint8_t *frame = find_frame(encoded);
    return frame ? frame[5] : 0;
}

/* Real progressive files have about ten scans. A few bytes a scan can ask for a pass over the whole image, so that
 * without a bound a small file could keep a worker busy for hours. */
enum { MOST_SCANS = 500 };
enum { MOST_CHANNELS = 4 /* inks */ };

typedef struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_progress_mgr progress;
    stk_jpeg_errors errors;
    uint8_t *row;   /* of the whole image's width, where only a part is wanted */
    size_t charged; /* bytes that the library is about to take */
} decoder;

/* A file of several scans is kept whole, as coefficients; of others the library keeps some rows. */
static size_t library_bytes(struct jpeg_decompress_struct *info)
{
    size_t n = (size_t)info->image_width * 256 + (64 << 10);
    for (int i = 0; i < info->num_components && jpeg_has_multiple_scans(info); i++)
        n += (size_t)(info->comp_info[i].width_in_blocks + 8) * (info->comp_info[i].height_in_blocks + 8) *
             sizeof(JBLOCK);
    return n;
}

static void check_scans(j_common_ptr info)
{
    decoder *d = (decoder *)info;
    if (d->info.input_scan_number <= MOST_SCANS) return;
    d->errors.base.msg_code = 0;
    snprintf(d->errors.text, sizeof(d->errors.text), "more than %d scans", MOST_SCANS);
    longjmp(d->errors.jump, 1);
}

static void read_rows(struct jpeg_decompress_struct *info, size_t row_bytes, uint8_t *dst)
{
    while (info->output_scanline < info->output_height) {
        JSAMPROW rows[16];
        JDIMENSION n = 0;
        for (; n < 16 && info->output_scanline + n < info->output_height; n++)
            rows[n] = dst + (size_t)(info->output_scanline + n) * row_bytes;
        jpeg_read_scanlines(info, rows, n);
    }
}

/* Four inks of n pixels, as Adobe's programs write them, which is inverted -> RGB or grey, with Pillow's
 * rounding. */
static void mix_inks(const uint8_t *inks, int64_t n, int channels, uint8_t *dst)
{
    for (int64_t i = 0; i < n; i++, inks += 4, dst += channels) {
        uint32_t rgb[3], light = inks[3];
        for (int c = 0; c < 3; c++) {
            uint32_t taken = (255u - inks[c]) * light + 128;
            rgb[c] = light - (((taken >> 8) + taken) >> 8);
        }
        for (int c = 0; c < channels; c++)
            dst[c] = (uint8_t)rgb[c];
        if (channels == 1) dst[0] = (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    }
}

static void read_inks(decoder *d, const stk_rect *rect, int channels, uint8_t *dst)
{
    while (d->info.output_scanline < d->info.output_height) {
        int64_t y = (int64_t)d->info.output_scanline - rect->top;
        jpeg_read_scanlines(&d->info, &d->row, 1);
        if (y < 0 || y >= rect->height) continue;
        mix_inks(d->row + 4 * rect->left, rect->width, channels, dst + (size_t)(y * rect->width) * (size_t)channels);
    }
}

static void read_part(decoder *d, const stk_rect *rect, int channels, uint8_t *dst)
{
    size_t n = (size_t)rect->width * (size_t)channels, skip = (size_t)rect->left * (size_t)channels;
    while (d->info.output_scanline < d->info.output_height) {
        int64_t y = (int64_t)d->info.output_scanline - rect->top;
        jpeg_read_scanlines(&d->info, &d->row, 1);
        if (y >= 0 && y < rect->height) memcpy(dst + (size_t)y * n, d->row + skip, n);
    }
}

/* The library's objects lie in *d, which outlives its jumps; the caller destroys them. */
static stk_status decode(decoder *d, stk_span encoded, int64_t height, int64_t width, const stk_rect *rect,
                         int channels, uint8_t *dst)
{
    struct jpeg_decompress_struct *info = &d->info;
    if (setjmp(d->errors.jump)) return stk_jpeg_fail(&d->errors);
    jpeg_create_decompress(info);
    d->progress.progress_monitor = check_scans;
    info->progress = &d->progress;
    jpeg_mem_src(info, encoded.data, (unsigned long)encoded.n);
    jpeg_read_header(info, TRUE);
    bool is_inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    if ((int64_t)info->image_height != height || (int64_t)info->image_width != width)
        return stk_fail(STK_CORRUPT, "damaged JPEG: two frame headers");
    if (is_inks && !d->row && !(d->row = malloc((size_t)width * MOST_CHANNELS)))
        return stk_fail_memory((size_t)width * MOST_CHANNELS);
    info->out_color_space = is_inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info->dct_method = JDCT_ISLOW;
    info->do_fancy_upsampling = TRUE;
    STK_RETURN_IF_ERROR(stk_memory_charge(stk_memory_in_use(), library_bytes(info)));
    d->charged = library_bytes(info);
    jpeg_start_decompress(info);
    if (is_inks)
        read_inks(d, rect, channels, dst);
    else if (d->row)
        read_part(d, rect, channels, dst);
    else
        read_rows(info, (size_t)width * (size_t)channels, dst);
    jpeg_finish_decompress(info);
    return STK_OK;
}

stk_status stk_jpeg_decode_by_library(stk_span encoded, int64_t height, int64_t width, const stk_rect *rect,
                                      int channels, uint8_t *dst)
{
    decoder d;
    memset(&d.info, 0, sizeof(d.info));
    memset(&d.progress, 0, sizeof(d.progress));
    stk_jpeg_errors_init(&d.errors, &d.info.err);
    bool is_part = rect->height < height || rect->width < width;
    d.charged = 0;
    d.row = is_part ? malloc((size_t)width * MOST_CHANNELS) : NULL;
    if (is_part && !d.row) return stk_fail_memory((size_t)width * MOST_CHANNELS);
    stk_status status = decode(&d, encoded, height, width, rect, channels, dst);
    jpeg_destroy_decompress(&d.info);
    stk_memory_release(stk_memory_in_use(), d.charged);
    free(d.row);
    return status;
}

stk_status stk_jpeg_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    stk_rect whole = {0, 0, height, width};
    stk_jpeg_reader *reader = stk_jpeg_reader_of_thread();
    if (reader && stk_jpeg_reader_is_fast(reader)) return stk_jpeg_decode_crop(reader, encoded, whole, channels, dst);
    return stk_jpeg_decode_by_library(encoded, height, width, &whole, channels, dst);
}
