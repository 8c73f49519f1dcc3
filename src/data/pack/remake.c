#include "data/pack/remake.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/codec/jpeg.h"
#include "data/codec/jpeg_transcode.h"
#include "data/stage/resample.h"

enum { USUAL_QUALITY = 90, LEAST_BYTES = 8192 }; /* of a file whose entry points are worth keeping */

void stk_remake_work_free(stk_remake_work *work)
{
    stk_jpeg_reader_close(work->reader);
    stk_scratch_free(&work->pixels);
    stk_scratch_free(&work->resized);
    stk_scratch_free(&work->resize);
    free(work->made);
    *work = (stk_remake_work){0};
}

static stk_status get_reader(stk_remake_work *work)
{
    return work->reader ? STK_OK : stk_jpeg_reader_open(&work->reader);
}

/* --- pixels --- */

typedef struct picture {
    int64_t height, width;
    int channels;
    uint8_t *pixels;
} picture;

static stk_status decode(stk_span src, stk_image_format format, stk_remake_work *work, picture *out)
{
    /* Byte 25 of a PNG is its colour type: 0 and 4 are grey. */
    bool is_grey = format == STK_IMAGE_JPEG
                       ? stk_jpeg_components(src) == 1
                       : format == STK_IMAGE_PNG && src.n > 25 && (src.data[25] == 0 || src.data[25] == 4);
    STK_RETURN_IF_ERROR(stk_image_size(src, &out->height, &out->width));
    out->channels = is_grey ? 1 : 3;
    size_t n = (size_t)out->height * (size_t)out->width * (size_t)out->channels;
    if (!(out->pixels = stk_scratch_get(&work->pixels, n + STK_ROW_SLACK))) return STK_NO_MEMORY; /* it says why */
    return stk_image_decode(src, out->channels, out->pixels);
}

/* The shorter side becomes `shorter`, as by resize_shorter. */
static stk_status shrink(picture *p, int64_t shorter, stk_remake_work *work)
{
    int64_t least = p->height < p->width ? p->height : p->width, most = p->height + p->width - least;
    int64_t longer = most * shorter / least;
    picture to = {p->height < p->width ? shorter : longer, p->height < p->width ? longer : shorter, p->channels, NULL};
    size_t n = (size_t)to.height * (size_t)to.width * (size_t)to.channels;
    if (!(to.pixels = stk_scratch_get(&work->resized, n + STK_ROW_SLACK))) return STK_NO_MEMORY;
    stk_field_type from_type = {STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(p->height, p->width, p->channels))};
    stk_field_type to_type = {STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(to.height, to.width, to.channels))};
    stk_item src = {from_type, p->pixels, (size_t)p->height * (size_t)p->width * (size_t)p->channels};
    stk_item dst = {to_type, to.pixels, n};
    stk_sampling how = {.filter = STK_FILTER_BILINEAR, .like = STK_LIKE_PIL, .antialias = true};
    STK_RETURN_IF_ERROR(stk_resample(&src, (stk_rect){0, 0, p->height, p->width}, how, &dst, &work->resize));
    *p = to;
    return STK_OK;
}

/* --- what else a JPEG holds --- */

/* The next segment of a JPEG's header at *at, and what follows it; false at the first one of the image itself. */
static bool next_segment(stk_span jpeg, size_t *at, stk_span *segment, uint8_t *marker)
{
    const uint8_t *p = jpeg.data + *at;
    if (jpeg.n - *at < 4 || p[0] != 0xFF) return false;
    size_t n = 2 + ((size_t)p[2] << 8 | p[3]);
    *marker = p[1];
    if (n < 4 || n > jpeg.n - *at || *marker < 0xE0 || (*marker > 0xEF && *marker != 0xFE)) return false;
    *segment = (stk_span){p, n};
    *at += n;
    return true;
}

/* EXIF and colour profiles of src into `made`, after its own JFIF header. */
static stk_status keep_markers(stk_span src, uint8_t **made, size_t *n_made)
{
    size_t at = 2, n_kept = 0, after = 2;
    stk_span segment;
    uint8_t marker;
    while (next_segment(src, &at, &segment, &marker))
        if (marker == 0xE1 || marker == 0xE2) n_kept += segment.n;
    if (n_kept == 0) return STK_OK;
    uint8_t *out = malloc(*n_made + n_kept);
    if (!out) return stk_fail_memory(*n_made + n_kept);
    if (!next_segment((stk_span){*made, *n_made}, &after, &segment, &marker)) after = 2;
    memcpy(out, *made, after);
    size_t n = after;
    for (at = 2; next_segment(src, &at, &segment, &marker);) {
        if (marker != 0xE1 && marker != 0xE2) continue;
        memcpy(out + n, segment.data, segment.n);
        n += segment.n;
    }
    memcpy(out + n, *made + after, *n_made - after);
    free(*made);
    *made = out;
    *n_made += n_kept;
    return STK_OK;
}

/* --- an image --- */

static stk_status encode(const picture *p, stk_span src, stk_image_format format, int quality, stk_remake_work *work,
                         stk_span *out)
{
    bool as_png = format == STK_IMAGE_PNG && quality == 0;
    if (as_png)
        STK_RETURN_IF_ERROR(stk_png_encode(p->pixels, p->height, p->width, p->channels, &work->made, &out->n));
    else
        STK_RETURN_IF_ERROR(stk_jpeg_encode(p->pixels, p->height, p->width, p->channels,
                                            quality ? quality : USUAL_QUALITY, &work->made, &out->n));
    if (format == STK_IMAGE_JPEG) STK_RETURN_IF_ERROR(keep_markers(src, &work->made, &out->n));
    out->data = work->made;
    return STK_OK;
}

/* Pixels encoded again: smaller, or of another quality. */
static stk_status encode_again(stk_span src, stk_image_format format, const stk_pack_options *how,
                               stk_remake_work *work, stk_span *out)
{
    picture p;
    int64_t height, width;
    STK_RETURN_IF_ERROR(stk_image_size(src, &height, &width));
    bool shrinks = how->shorter > 0 && height > how->shorter && width > how->shorter;
    if (!shrinks && how->quality == 0) return STK_OK;
    STK_RETURN_IF_ERROR(decode(src, format, work, &p));
    if (shrinks) STK_RETURN_IF_ERROR(shrink(&p, how->shorter, work));
    return encode(&p, src, format, how->quality, work, out);
}

/* A JPEG that our own decoder does not take, with the same pixels. What cannot be made so stays what it is, damaged
 * files included: whoever reads them is told. */
static stk_status make_baseline(stk_remake_work *work, stk_span *out)
{
    uint8_t *made;
    size_t n;
    STK_RETURN_IF_ERROR(get_reader(work));
    if (stk_jpeg_reader_index_size(work->reader, *out, 0) > 0) return STK_OK;
    stk_status status = stk_jpeg_transcode(*out, &made, &n);
    if (status != STK_OK) return status == STK_NO_MEMORY ? status : STK_OK;
    int size = stk_jpeg_reader_index_size(work->reader, (stk_span){made, n}, 0);
    if (size < 1) {
        free(made);
        return size < 0 ? STK_NO_MEMORY : STK_OK;
    }
    free(work->made);
    work->made = made;
    *out = (stk_span){made, n};
    return STK_OK;
}

stk_status stk_remake(stk_span src, const stk_pack_options *how, stk_remake_work *work, stk_span *out)
{
    stk_image_format format = stk_image_format_of(src);
    free(work->made);
    work->made = NULL;
    *out = src;
    if (how->shorter > 0 || how->quality > 0) STK_RETURN_IF_ERROR(encode_again(src, format, how, work, out));
    if (how->baseline && stk_image_format_of(*out) == STK_IMAGE_JPEG) return make_baseline(work, out);
    return STK_OK;
}

stk_status stk_remake_entries(stk_span encoded, int every, stk_remake_work *work, stk_jpeg_entry **out, int *n)
{
    *out = NULL;
    *n = 0;
    if (encoded.n < LEAST_BYTES || stk_image_format_of(encoded) != STK_IMAGE_JPEG) return STK_OK;
    STK_RETURN_IF_ERROR(get_reader(work));
    int size = stk_jpeg_reader_index_size(work->reader, encoded, every);
    if (size < 1) return size < 0 ? STK_NO_MEMORY : STK_OK;
    stk_jpeg_index index = {malloc((size_t)size * sizeof(**out)), size, 0};
    if (!index.entry) return stk_fail_memory((size_t)size * sizeof(**out));
    stk_status status = stk_jpeg_reader_index(work->reader, encoded, &index);
    if (status == STK_OK && index.n_known == size) {
        *out = index.entry;
        *n = size;
        return STK_OK;
    }
    free(index.entry);
    return status == STK_NO_MEMORY ? status : STK_OK;
}
