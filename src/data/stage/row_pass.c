#include "data/stage/row_pass.h"

#include <string.h>

#include "base/error.h"
#include "data/stage/affine.h"
#include "data/stage/resample.h"

void stk_row_pass_work_free(stk_row_pass_work *work)
{
    stk_scratch_free(&work->image);
    stk_scratch_free(&work->resize);
    stk_scratch_free(&work->row);
    stk_scratch_free(&work->entries);
    *work = (stk_row_pass_work){0};
}

/* --- where rows come from --- */

typedef struct row_source {
    stk_jpeg_reader *reader; /* NULL: the whole image lies in `pixels` */
    const uint8_t *pixels;
    size_t stride;
    stk_rect part; /* that is read */
    int channels;
    int64_t i_next; /* the reader's row */
    uint8_t *place; /* for one row of the reader */
    stk_jpeg_index known;
} row_source;

/* Room for the entries of any file, where an index wants them. */
static stk_jpeg_index *index_to_learn(stk_row_pass_work *work)
{
    stk_jpeg_entry *entry = stk_scratch_get(&work->entries, STK_JPEG_MOST_ROWS * sizeof(*entry));
    work->learned = (stk_jpeg_index){.entry = entry};
    return entry ? &work->learned : NULL;
}

static stk_status begin_jpeg(row_source *s, stk_span encoded, stk_rect part, int channels, stk_row_pass_work *work)
{
    const stk_jpeg_hint *hint = &work->hint;
    /* All entries are known, so that the reader writes none. */
    s->known = (stk_jpeg_index){(stk_jpeg_entry *)(uintptr_t)hint->entry, hint->n_entries, hint->n_entries};
    stk_jpeg_index *index = hint->n_entries ? &s->known : hint->mcu_index ? index_to_learn(work) : NULL;
    return stk_jpeg_reader_begin(s->reader, encoded, part, channels, index);
}

static stk_status open_rows(row_source *s, const stk_view *view, stk_span encoded, stk_rect part, int channels,
                            stk_row_pass_work *work)
{
    bool whole = part.height == view->image_height && part.width == view->image_width;
    *s = (row_source){.part = part, .channels = channels, .stride = (size_t)view->image_width * (size_t)channels};
    if (stk_image_format_of(encoded) == STK_IMAGE_JPEG) {
        s->reader = stk_jpeg_reader_of_thread();
        if (s->reader && whole && !stk_jpeg_reader_is_fast(s->reader)) s->reader = NULL;
        if (s->reader) return begin_jpeg(s, encoded, part, channels, work);
    }
    size_t n = (size_t)view->image_height * s->stride;
    uint8_t *pixels = stk_scratch_get(&work->image, n + STK_ROW_SLACK);
    if (!pixels) return STK_NO_MEMORY;
    s->pixels = pixels;
    return stk_image_decode(encoded, channels, pixels);
}

/* Row i_row of the part; numbers rise. */
static stk_status read_row(void *user, int64_t i_row, const uint8_t **row)
{
    row_source *s = user;
    if (!s->reader) {
        *row = s->pixels + (size_t)(s->part.top + i_row) * s->stride + (size_t)s->part.left * (size_t)s->channels;
        return STK_OK;
    }
    if (i_row > s->i_next) STK_RETURN_IF_ERROR(stk_jpeg_reader_skip(s->reader, i_row - s->i_next));
    s->i_next = i_row + 1;
    *row = s->place;
    return stk_jpeg_reader_rows(s->reader, 1, s->place, (size_t)s->part.width * (size_t)s->channels);
}

/* --- where they go --- */

typedef struct row_sink {
    bool is_f32;
    stk_affine affine;
    int64_t n; /* values of a row */
    char *at;
} row_sink;

static row_sink open_sink(const stk_view *view, int channels, void *dst)
{
    row_sink s = {.is_f32 = view->is_f32, .n = view->width * channels, .at = dst};
    if (s.is_f32) stk_affine_init(&s.affine, view->a, view->b, channels);
    return s;
}

static void write_row(row_sink *s, const uint8_t *row)
{
    if (s->is_f32)
        stk_affine_u8(&s->affine, row, (float *)(void *)s->at, s->n);
    else
        memcpy(s->at, row, (size_t)s->n);
    s->at += (size_t)s->n * (s->is_f32 ? sizeof(float) : 1);
}

/* --- resized --- */

static stk_status run_resized(const stk_view *view, stk_span encoded, int channels, row_sink *sink,
                              stk_row_pass_work *work)
{
    stk_resample_config config = {.height = view->from.height,
                                  .width = view->from.width,
                                  .channels = channels,
                                  .to_height = view->to_height,
                                  .to_width = view->to_width,
                                  .keep = view->keep,
                                  .how = view->how,
                                  .flipped = view->flipped};
    stk_resampler *resampler;
    row_source source;
    STK_RETURN_IF_ERROR(stk_resampler_begin(&config, &work->resize, &resampler));
    stk_rect part = stk_resampler_needs(resampler);
    part.top += view->from.top;
    part.left += view->from.left;
    STK_RETURN_IF_ERROR(open_rows(&source, view, encoded, part, channels, work));
    source.place = stk_resampler_input(resampler);
    for (int64_t i = 0; i < view->height; i++) {
        const uint8_t *row;
        STK_RETURN_IF_ERROR(stk_resampler_row(resampler, read_row, &source, &row));
        write_row(sink, row);
    }
    return STK_OK;
}

/* --- only cut --- */

static void flip(uint8_t *row, int64_t width, int channels)
{
    uint8_t *a = row, *b = row + (width - 1) * channels;
    for (; a < b; a += channels, b -= channels)
        for (int c = 0; c < channels; c++) {
            uint8_t kept = a[c];
            a[c] = b[c];
            b[c] = kept;
        }
}

/* What of [from, from + n) lies in [0, size): its beginning, and in *n_inside its length, which may be 0. */
static int64_t clip(int64_t from, int64_t n, int64_t size, int64_t *n_inside)
{
    int64_t begin = from < 0 ? 0 : from, end = from + n < size ? from + n : size;
    *n_inside = end > begin ? end - begin : 0;
    return begin;
}

static stk_status run_cut(const stk_view *view, stk_span encoded, int channels, row_sink *sink, stk_row_pass_work *work)
{
    const stk_rect *from = &view->from;
    stk_rect part;
    row_source source = {0};
    size_t pixel = (size_t)channels, row_bytes = (size_t)from->width * pixel;
    uint8_t *row = stk_scratch_get(&work->row, 2 * (row_bytes + STK_ROW_SLACK));
    if (!row) return STK_NO_MEMORY;
    part.top = clip(from->top, from->height, view->image_height, &part.height);
    part.left = clip(from->left, from->width, view->image_width, &part.width);
    bool is_empty = part.height == 0 || part.width == 0;
    if (!is_empty) STK_RETURN_IF_ERROR(open_rows(&source, view, encoded, part, channels, work));
    source.place = row + row_bytes + STK_ROW_SLACK;
    size_t n_left = (size_t)(part.left - from->left) * pixel, n_middle = (size_t)part.width * pixel;
    for (int64_t i = 0; i < from->height; i++) {
        int64_t y = from->top + i - part.top;
        if (is_empty || y < 0 || y >= part.height) {
            memset(row, 0, row_bytes);
        } else {
            const uint8_t *inside;
            STK_RETURN_IF_ERROR(read_row(&source, y, &inside));
            memset(row, 0, n_left);
            memcpy(row + n_left, inside, n_middle);
            memset(row + n_left + n_middle, 0, row_bytes - n_left - n_middle);
            if (view->flipped) flip(row, from->width, channels);
        }
        write_row(sink, row);
    }
    return STK_OK;
}

stk_status stk_row_pass_run(const stk_view *view, stk_span encoded, int channels, void *dst, stk_row_pass_work *work)
{
    row_sink sink = open_sink(view, channels, dst);
    work->learned.n = 0;
    return (view->resized ? run_resized : run_cut)(view, encoded, channels, &sink, work);
}
