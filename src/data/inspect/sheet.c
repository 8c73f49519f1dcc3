/* See stoker/data/sheet.h. Pictures stand in cells of one size, each with a line of text below. */
#include "stoker/data/sheet.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "data/codec/image.h"
#include "data/dataset/dataset.h"
#include "data/inspect/font.h"
#include "data/inspect/undo.h"

enum { MOST_SIDE = 256, GAP = 6, SMALL = 96, LARGE = 384, LEAST_CELL = 60, MOST_SHEET_PIXELS = 1 << 28, PAPER = 250 };

typedef struct sheet {
    const stk_dataset *dataset;
    stk_undo undo;
    /* one sample's image */
    stk_dtype dtype;
    int64_t height, width;
    int channels;
    bool planar; /* [C,H,W] */
    /* the label */
    int i_label; /* field; -1: none */
    stk_tensor_desc label;
    /* the page */
    int64_t enlarge, reduce; /* one of them is 1 */
    int64_t picture_height, picture_width, cell_height, cell_width, letter;
    int64_t n_rows, n_columns;
    int64_t page_width, page_height;
    uint8_t *page; /* [page_height, page_width, channels] */
} sheet;

/* --- planning --- */

static stk_status plan_field(sheet *s, const char *field)
{
    stk_shape shape;
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_dataset_field(s->dataset, field, true, &s->dtype, &shape));
    bool fits = shape.rank == 3 && stk_shape_known(shape) && (s->dtype == STK_U8 || s->dtype == STK_F32);
    bool last = fits && (shape.dim[2] == 1 || shape.dim[2] == 3),
         first = fits && (shape.dim[0] == 1 || shape.dim[0] == 3);
    if (!last && !first)
        return stk_fail(STK_UNSUPPORTED, "field '%s' is %s: only u8 and f32 images of 1 or 3 channels can be shown",
                        field, stk_desc_text(stk_desc_make(s->dtype, shape), text));
    s->planar = !last;
    s->channels = (int)shape.dim[last ? 2 : 0];
    s->height = shape.dim[last ? 0 : 1];
    s->width = shape.dim[last ? 1 : 2];
    stk_undo_init(&s->undo, &s->dataset->chain[stk_dataset_find_field(s->dataset, field)], s->channels);
    return STK_OK;
}

static void plan_label(sheet *s)
{
    const stk_source *source = s->dataset->source;
    s->i_label = -1;
    for (int i = 0; i < source->n_fields; i++)
        if (!strcmp(source->field[i].name, "label")) s->i_label = i;
    if (s->i_label < 0) return;
    s->label = stk_chain_type(&s->dataset->chain[s->i_label])->desc;
    bool is_number = s->label.shape.rank == 0 && (s->label.dtype == STK_I32 || s->label.dtype == STK_F32);
    bool is_vector = s->label.shape.rank == 1 && s->label.dtype == STK_F32 && s->label.shape.dim[0] > 0;
    if (!is_number && !is_vector) s->i_label = -1;
}

/* Thumbnails are enlarged and photographs reduced until they may stand side by side. */
static stk_status plan_page(sheet *s, const stk_sheet_config *config, int64_t n_samples)
{
    int64_t side = s->height > s->width ? s->height : s->width;
    s->enlarge = side * 2 <= SMALL ? SMALL / side : 1;
    s->reduce = side > LARGE ? (side + LARGE - 1) / LARGE : 1;
    s->picture_height = (s->height * s->enlarge + s->reduce - 1) / s->reduce;
    s->picture_width = (s->width * s->enlarge + s->reduce - 1) / s->reduce;
    s->letter = s->picture_width >= 200 ? 2 : 1;
    s->cell_width = (s->picture_width < LEAST_CELL ? LEAST_CELL : s->picture_width) + GAP;
    s->cell_height = s->picture_height + (s->i_label < 0 ? 0 : s->letter * STK_FONT_HEIGHT + 2) + GAP;
    s->n_columns = config->n_columns ? config->n_columns : 8;
    s->n_rows = config->n_rows ? config->n_rows : 4;
    if (s->n_columns > n_samples) s->n_columns = n_samples;
    if (s->n_rows > (n_samples + s->n_columns - 1) / s->n_columns)
        s->n_rows = (n_samples + s->n_columns - 1) / s->n_columns;
    s->page_width = s->n_columns * s->cell_width + GAP;
    s->page_height = s->n_rows * s->cell_height + GAP;
    if (s->page_width * s->page_height > MOST_SHEET_PIXELS || s->page_width > 65535 || s->page_height > 65535)
        return stk_fail(STK_INVALID, "a sheet of %" PRId64 " x %" PRId64 " pixels is too large: ask for fewer pictures",
                        s->page_height, s->page_width);
    size_t bytes = (size_t)(s->page_width * s->page_height * s->channels);
    s->page = malloc(bytes);
    if (!s->page) return stk_fail_memory(bytes);
    memset(s->page, PAPER, bytes);
    return STK_OK;
}

/* --- pictures --- */

static float value_at(const sheet *s, const void *image, int64_t y, int64_t x, int c)
{
    int64_t i = s->planar ? (c * s->height + y) * s->width + x : (y * s->width + x) * s->channels + c;
    return s->dtype == STK_U8 ? (float)((const uint8_t *)image)[i] : ((const float *)image)[i];
}

/* Where nothing is known of the values, the least becomes black and the most white. */
static stk_undo spread(const sheet *s, const void *image)
{
    stk_undo undo = {.known = true};
    float low = INFINITY, high = -INFINITY;
    for (int64_t y = 0; y < s->height; y++)
        for (int64_t x = 0; x < s->width; x++)
            for (int c = 0; c < s->channels; c++) {
                float v = value_at(s, image, y, x, c);
                if (v < low) low = v;
                if (v > high) high = v;
            }
    for (int c = 0; c < s->channels; c++) {
        undo.low[c] = low;
        undo.high[c] = high > low ? high : low + 1;
    }
    return undo;
}

/* Pixel (y, x) of the picture: one of the image, or the mean of reduce x reduce of them. */
static uint8_t pixel(const sheet *s, const stk_undo *undo, const void *image, int64_t y, int64_t x, int c)
{
    int64_t n = s->reduce, y0 = y * n / s->enlarge, x0 = x * n / s->enlarge, count = 0;
    float sum = 0;
    for (int64_t v = y0; v < y0 + n && v < s->height; v++)
        for (int64_t u = x0; u < x0 + n && u < s->width; u++, count++)
            sum += value_at(s, image, v, u, c);
    return stk_undo_value(undo, c, sum / (float)count);
}

static uint8_t *page_at(const sheet *s, int64_t y, int64_t x)
{
    return s->page + (y * s->page_width + x) * s->channels;
}

static void draw_picture(const sheet *s, const void *image, int64_t top, int64_t left)
{
    stk_undo undo = s->undo.known ? s->undo : spread(s, image);
    left += (s->cell_width - GAP - s->picture_width) / 2;
    for (int64_t y = 0; y < s->picture_height; y++)
        for (int64_t x = 0; x < s->picture_width; x++)
            for (int c = 0; c < s->channels; c++)
                page_at(s, top + y, left + x)[c] = pixel(s, &undo, image, y, x, c);
}

/* --- labels --- */

static void draw_letter(const sheet *s, unsigned char letter, int64_t top, int64_t left)
{
    int64_t n = s->letter;
    for (int64_t y = 0; y < STK_FONT_HEIGHT * n; y++)
        for (int64_t x = 0; x < (STK_FONT_WIDTH - 1) * n; x++)
            if (stk_font_column(letter, (int)(x / n)) >> (y / n) & 1)
                memset(page_at(s, top + y, left + x), 0, (size_t)s->channels);
}

/* In the middle; what does not fit is cut off. */
static void draw_text(const sheet *s, const char *text, int64_t top, int64_t left)
{
    int64_t step = STK_FONT_WIDTH * s->letter, most = (s->cell_width - GAP) / step, n = (int64_t)stk_font_count(text);
    if (n > most) n = most;
    left += (s->cell_width - GAP - n * step) / 2;
    for (; *text && n > 0; text++) {
        if (((unsigned char)*text & 0xC0) == 0x80) continue;
        draw_letter(s, (unsigned char)*text, top, left);
        left += step;
        n--;
    }
}

static void name_class(const sheet *s, int64_t i, char *out, size_t out_bytes)
{
    const char *const *names;
    int64_t n = stk_dataset_classes(s->dataset, &names);
    if (names && i >= 0 && i < n)
        snprintf(out, out_bytes, "%s", names[i]);
    else
        snprintf(out, out_bytes, "%" PRId64, i);
}

/* A class, a number, or of a vector the likeliest class with its share. */
static void label_text(const sheet *s, const void *label, char *out, size_t out_bytes)
{
    if (s->label.dtype == STK_I32) {
        name_class(s, *(const int32_t *)label, out, out_bytes);
        return;
    }
    const float *x = label;
    if (s->label.shape.rank == 0) {
        snprintf(out, out_bytes, "%g", (double)x[0]);
        return;
    }
    int64_t best = 0;
    for (int64_t i = 1; i < s->label.shape.dim[0]; i++)
        if (x[i] > x[best]) best = i;
    name_class(s, best, out, out_bytes - 8);
    size_t n = strlen(out);
    if (x[best] < 0.995f) snprintf(out + n, out_bytes - n, " %.0f%%", (double)x[best] * 100);
}

/* --- the sheet --- */

static stk_status draw_all(sheet *s, stk_loader *loader, const char *field, int64_t n)
{
    size_t bytes = stk_desc_bytes(stk_desc_make(s->dtype, STK_SHAPE(s->height, s->width, s->channels)));
    for (int64_t i = 0; i < n;) {
        const stk_batch *batch = stk_loader_next(loader);
        if (!batch) return stk_loader_status(loader);
        const char *images = stk_batch_data(batch, field), *labels = stk_batch_data(batch, "label");
        for (int64_t row = 0; row < stk_batch_count(batch) && i < n; row++, i++) {
            int64_t top = GAP + i / s->n_columns * s->cell_height, left = GAP + i % s->n_columns * s->cell_width;
            char text[128];
            draw_picture(s, images + (size_t)row * bytes, top, left);
            if (s->i_label < 0) continue;
            label_text(s, labels + (size_t)row * stk_desc_bytes(s->label), text, sizeof(text));
            draw_text(s, text, top + s->picture_height + 2, left);
        }
        stk_batch_release(batch);
    }
    return STK_OK;
}

/* The chunk that tells a sheet from other pictures, behind the signature and the header: "Software", by PNG's names. */
enum { MARK_AT = 33, MARK_BYTES = 27 };
static const char mark[MARK_BYTES + 1] = "\0\0\0\x0ftEXtSoftware\0Stoker\xd6\x12\x2f\xab";

static stk_status add_mark(uint8_t **png, size_t *n)
{
    uint8_t *marked = realloc(*png, *n + MARK_BYTES);
    if (!marked) return stk_fail_memory(*n + MARK_BYTES);
    memmove(marked + MARK_AT + MARK_BYTES, marked + MARK_AT, *n - MARK_AT);
    memcpy(marked + MARK_AT, mark, MARK_BYTES);
    *png = marked;
    *n += MARK_BYTES;
    return STK_OK;
}

static stk_status write_page(const sheet *s, const char *path)
{
    uint8_t *png = NULL;
    size_t n, n_there;
    STK_RETURN_IF_ERROR(stk_png_encode(s->page, s->page_height, s->page_width, s->channels, &png, &n));
    stk_status status = add_mark(&png, &n);
    if (status == STK_OK) status = stk_dir_make_for(path, &n_there);
    if (status == STK_OK) {
        status = stk_file_write_durably(path, png, n);
        if (status != STK_OK) stk_dir_take_back_for(path, n_there);
    }
    free(png);
    return status;
}

stk_status stk_dataset_sheet(const stk_dataset *dataset, const stk_loader_config *loader_config,
                             const stk_sheet_config *config, const char *path, stk_sheet_info *info)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    stk_status status;
    stk_sheet_config defaults = {0};
    stk_loader_config how = loader_config ? *loader_config : stk_loader_config_default();
    stk_loader *loader = NULL;
    sheet s = {.dataset = dataset};
    if (!config) config = &defaults;
    const char *field = config->field ? config->field : "image";
    if (config->n_rows < 0 || config->n_rows > MOST_SIDE || config->n_columns < 0 || config->n_columns > MOST_SIDE)
        return stk_fail(STK_INVALID, "a sheet has 1 to %d rows and columns, not %d and %d", MOST_SIDE, config->n_rows,
                        config->n_columns);
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a sheet of 'stoker data show'", MARK_AT, mark, MARK_BYTES));
    int64_t n_samples = stk_dataset_n_batches(dataset) * stk_dataset_batch_size(dataset),
            count = stk_dataset_count(dataset);
    if (count < 0) return stk_fail(STK_UNSUPPORTED, "a sheet is laid out by the number of samples, which is not known");
    if (n_samples > count) n_samples = count;
    how.i_batch = 0;
    how.n_epochs = 1;
    STK_TRY(stk_loader_open(dataset, &how, &loader));
    STK_TRY(plan_field(&s, field));
    plan_label(&s);
    STK_TRY(plan_page(&s, config, n_samples));
    if (n_samples > s.n_rows * s.n_columns) n_samples = s.n_rows * s.n_columns;
    STK_TRY(draw_all(&s, loader, field, n_samples));
    STK_TRY(write_page(&s, path));
    if (info) *info = (stk_sheet_info){n_samples, s.page_height, s.page_width, s.undo.known};
done:
    stk_loader_close(loader);
    free(s.page);
    return status;
}
