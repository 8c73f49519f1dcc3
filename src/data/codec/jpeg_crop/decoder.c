#include "data/codec/jpeg_crop/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"

static const stk_status REFUSED = STK_UNSUPPORTED;
enum { ALIGNMENT = 64 };

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- where things are --- */

/* The MCUs that hold samples [first, last] of a component and, where it is interpolated, their neighbours. */
static void span_of(int64_t first, int64_t last, int factor, int factor_max, int64_t n_samples, int *begin, int *end)
{
    int scale = factor_max / factor;
    int64_t low = first / scale, high = last / scale;
    if (scale > 1) {
        low = low > 0 ? low - 1 : 0;
        high = min_i64(high + 1, n_samples - 1);
    }
    *begin = (int)(low / (8 * factor));
    *end = (int)(high / (8 * factor)) + 1;
}

static void place_rect(stk_jpeg_decoder *d)
{
    const stk_jpeg_header *h = &d->header;
    const stk_rect *r = &d->rect;
    d->mcus_across = (int)ceil_div(h->width, 8 * h->hmax);
    d->mcus_down = (int)ceil_div(h->height, 8 * h->vmax);
    d->mcu_left = d->mcus_across;
    d->mcu_top = d->mcus_down;
    d->mcu_right = d->mcu_bottom = 0;
    for (int i = 0; i < d->n_planes; i++) {
        const stk_jpeg_component *c = &h->component[i];
        stk_jpeg_plane *p = &d->plane[i];
        int begin, end;
        p->width = (int)ceil_div((int64_t)h->width * c->h, h->hmax);
        p->height = (int)ceil_div((int64_t)h->height * c->v, h->vmax);
        span_of(r->left, r->left + r->width - 1, c->h, h->hmax, p->width, &begin, &end);
        if (begin < d->mcu_left) d->mcu_left = begin;
        if (end > d->mcu_right) d->mcu_right = end;
        span_of(r->top, r->top + r->height - 1, c->v, h->vmax, p->height, &begin, &end);
        if (begin < d->mcu_top) d->mcu_top = begin;
        if (end > d->mcu_bottom) d->mcu_bottom = end;
    }
}

/* Lays out planes, coefficients and rows in memory, or only counts the bytes when memory is NULL. */
static size_t lay_out(stk_jpeg_decoder *d, uint8_t *memory)
{
    const stk_jpeg_header *h = &d->header;
    size_t used = 0;
    for (int i = 0; i < d->n_planes; i++) {
        const stk_jpeg_component *c = &h->component[i];
        stk_jpeg_plane *p = &d->plane[i];
        int groups = (d->mcu_right - d->mcu_left) * c->h + STK_JPEG_GROUP - 1;
        p->n_blocks = groups / STK_JPEG_GROUP * STK_JPEG_GROUP;
        p->n_rows = 8 * c->v * (h->vmax > 1 ? 2 : 1);
        p->stride = stk_round_up(8 * (size_t)p->n_blocks + 2 * STK_JPEG_PAD, ALIGNMENT);
        p->left = d->mcu_left * 8 * c->h;
        if (memory) p->data = memory + used + STK_JPEG_PAD;
        used += p->stride * (size_t)p->n_rows;
        if (memory) p->coefs = (int16_t *)(void *)(memory + used);
        used += (size_t)c->v * (size_t)p->n_blocks * 64 * sizeof(int16_t);
    }
    for (int i = 0; i < 2; i++) {
        if (memory) d->chroma[i] = memory + used;
        used += d->plane[0].stride + 2 * STK_JPEG_PAD;
    }
    return used;
}

static stk_status get_memory(stk_jpeg_decoder *d)
{
    size_t bytes = stk_round_up(lay_out(d, NULL), ALIGNMENT);
    if (bytes > d->memory.n_bytes) {
        if (!stk_block_get(&d->memory, bytes)) return STK_NO_MEMORY;
        memset(d->memory.data, 0, d->memory.n_bytes); /* kernels read beyond the last samples */
    }
    (void)lay_out(d, d->memory.data);
    for (int i = 0; i < d->n_planes; i++) {
        const stk_jpeg_plane *p = &d->plane[i];
        memset(p->coefs, 0, (size_t)d->header.component[i].v * (size_t)p->n_blocks * 64 * sizeof(int16_t));
    }
    return STK_OK;
}

/* --- starting --- */

static bool get_tables(stk_jpeg_decoder *d)
{
    const stk_jpeg_header *h = &d->header;
    bool parses = !d->whole || d->n_planes < h->n_components || d->index;
    stk_jpeg_scan_block *block = d->scan.block;
    d->scan.n_blocks = 0;
    for (int i = 0; i < h->n_components; i++) {
        const stk_jpeg_component *c = &h->component[i];
        stk_jpeg_scan_block b = {.i_component = i, .step = 64 * (size_t)c->h};
        b.dc = stk_jpeg_dc_table_of(&d->tables, h->dc[c->dc]);
        b.ac = stk_jpeg_ac_table_of(&d->tables, h->ac[c->ac], i < d->n_planes, parses);
        if (!b.dc || !b.ac) return false;
        for (int k = 0; k < c->h * c->v; k++)
            block[d->scan.n_blocks++] = b;
    }
    return true;
}

/* --- entry points: of each row of MCUs d->per_row, evenly spaced from its first MCU on --- */

/* The column of a row's entry number i; per_row: the row's end. */
static int column_of(const stk_jpeg_decoder *d, int i)
{
    return (int)((int64_t)i * d->mcus_across / d->per_row);
}

/* A row's last entry that is not behind a column. */
static int entry_before(const stk_jpeg_decoder *d, int column)
{
    int i = (int)(((int64_t)column + 1) * d->per_row / d->mcus_across);
    if (i >= d->per_row) i = d->per_row - 1;
    while (i > 0 && column_of(d, i) > column)
        i--;
    return i;
}

static bool is_sound(const stk_jpeg_decoder *d, const stk_jpeg_entry *e)
{
    return e->offset >= d->header.scan && e->offset <= d->encoded.n && e->bit <= 7;
}

/* On from entry number i of the index; `likely`: how many of the file's bytes will be wanted from there. */
static void start_at(stk_jpeg_decoder *d, int64_t i, size_t likely)
{
    const stk_jpeg_entry *e = &d->index->entry[i];
    d->mcu_row = (int)(i / d->per_row);
    d->mcu_column = column_of(d, (int)(i % d->per_row));
    stk_jpeg_scan_start_at(&d->scan, d->encoded, e->offset, e->bit,
                           (int64_t)d->mcu_row * d->mcus_across + d->mcu_column, d->header.restart_interval,
                           (const int[3]){e->dc[0], e->dc[1], e->dc[2]}, likely);
}

/* At the rectangle's first MCU, or the last entry before it that is known. */
static void start_scan(stk_jpeg_decoder *d)
{
    const stk_jpeg_header *h = &d->header;
    d->scan.kernels = d->kernels;
    d->scan.marks = d->index && d->index->n_known < d->index->n;
    if (d->index && d->index->n_known > 0) {
        int64_t i = (int64_t)d->mcu_top * d->per_row + entry_before(d, d->mcu_left);
        if (i > d->index->n_known - 1) i = d->index->n_known - 1;
        if (is_sound(d, &d->index->entry[i])) {
            start_at(d, i, STK_JPEG_CHUNK);
            return;
        }
    }
    d->mcu_row = d->mcu_column = 0;
    stk_jpeg_scan_start_at(&d->scan, d->encoded, h->scan, 0, 0, h->restart_interval, (const int[3]){0}, STK_JPEG_CHUNK);
}

stk_status stk_jpeg_decoder_begin(stk_jpeg_decoder *d, stk_span encoded, stk_rect rect, int channels,
                                  stk_jpeg_index *index)
{
    const stk_jpeg_header *h = &d->header;
    if (encoded.n > UINT32_MAX || !stk_jpeg_read_header(encoded, &d->header)) return REFUSED;
    if (rect.top < 0 || rect.left < 0 || rect.height < 1 || rect.width < 1 || rect.height > h->height - rect.top ||
        rect.width > h->width - rect.left)
        return REFUSED;
    d->encoded = encoded;
    d->rect = rect;
    d->channels = channels;
    d->whole = rect.height == h->height && rect.width == h->width;
    d->n_planes = channels == 1 ? 1 : h->n_components;
    d->y = rect.top;
    place_rect(d);
    if (index && index->n == 0 && d->mcus_down <= STK_JPEG_MOST_ROWS) index->n = d->mcus_down;
    d->per_row = index ? index->n / d->mcus_down : 0;
    d->index = d->per_row > 0 && d->per_row <= d->mcus_across && index->n == d->per_row * d->mcus_down ? index : NULL;
    if (!get_tables(d)) return REFUSED;
    stk_status status = get_memory(d);
    if (status == STK_OK) start_scan(d);
    return status;
}

/* --- rows of MCUs --- */

/* Where the scan stands now, at an entry's MCU: adds that entry. False: damaged. */
static bool note_entry(stk_jpeg_decoder *d)
{
    stk_jpeg_index *index = d->index;
    if (!index || index->n_known >= index->n) return true;
    int i = entry_before(d, d->mcu_column);
    if (column_of(d, i) != d->mcu_column || index->n_known != d->mcu_row * d->per_row + i) return true;
    size_t offset;
    int bit;
    if (!stk_jpeg_scan_place(&d->scan, d->encoded, &offset, &bit)) return false;
    stk_jpeg_entry e = {.offset = (uint32_t)offset, .bit = (uint16_t)bit};
    for (int c = 0; c < 3; c++) {
        e.dc[c] = (int16_t)d->scan.dc[c];
        if (e.dc[c] != d->scan.dc[c]) return true;
    }
    index->entry[index->n_known++] = e;
    return true;
}

/* Parses up to a column of this row; entries that are wanted are noted on the way. */
static bool pass_to(stk_jpeg_decoder *d, int column)
{
    bool notes = d->index && d->index->n_known < d->index->n;
    while (d->mcu_column < column) {
        int next = column;
        if (notes) {
            if (!note_entry(d)) return false;
            int at = column_of(d, entry_before(d, d->mcu_column) + 1);
            if (at < next) next = at;
        }
        if (!stk_jpeg_scan_mcus(&d->scan, next - d->mcu_column, false)) return false;
        d->mcu_column = next;
    }
    return true;
}

static void next_row(stk_jpeg_decoder *d)
{
    d->mcu_row++;
    d->mcu_column = 0;
}

static bool skip_row(stk_jpeg_decoder *d)
{
    if (!pass_to(d, d->mcus_across)) return false;
    next_row(d);
    return true;
}

static void aim_blocks(stk_jpeg_decoder *d)
{
    stk_jpeg_scan_block *block = d->scan.block;
    for (int i = 0; i < d->header.n_components; i++) {
        const stk_jpeg_component *c = &d->header.component[i];
        const stk_jpeg_plane *p = &d->plane[i];
        for (int v = 0; v < c->v; v++)
            for (int h = 0; h < c->h; h++, block++)
                block->coefs = i < d->n_planes ? p->coefs + ((size_t)v * (size_t)p->n_blocks + (size_t)h) * 64 : NULL;
    }
}

/* Coefficients to samples; the outermost columns are repeated beyond the image for the interpolation. */
static void transform_row(stk_jpeg_decoder *d)
{
    for (int i = 0; i < d->n_planes; i++) {
        const stk_jpeg_component *c = &d->header.component[i];
        const stk_jpeg_plane *p = &d->plane[i];
        int n = (d->mcu_right - d->mcu_left) * c->h, right = p->width - p->left;
        uint8_t *rows = p->data + (size_t)(d->mcu_row * 8 * c->v % p->n_rows) * p->stride;
        for (int v = 0; v < c->v; v++)
            d->kernels->idct(p->coefs + (size_t)v * (size_t)p->n_blocks * 64, n, d->header.quant[c->quant],
                             rows + (size_t)(8 * v) * p->stride, p->stride);
        for (int y = 0; y < 8 * c->v && c->h < d->header.hmax; y++) {
            uint8_t *row = rows + (size_t)y * p->stride;
            if (!p->left) row[-1] = row[0];
            if (right <= 8 * n) row[right] = row[right - 1];
        }
    }
}

/* From behind the rectangle in this row to its first MCU in the next one: jumped, as far as entries are known and so
 * many bytes are left out that opening a window there costs less. */
static bool pass_rest(stk_jpeg_decoder *d)
{
    enum { LEAST_BYTES = 250 };
    const stk_jpeg_index *index = d->index;
    if (!index || d->scan.marks) return skip_row(d);
    int64_t row = (int64_t)d->mcu_row * d->per_row;
    int64_t here = row + entry_before(d, d->mcu_right), to = row + d->per_row + entry_before(d, d->mcu_left);
    int64_t end = row + d->per_row + entry_before(d, d->mcu_right - 1) + 1; /* of what the next row needs */
    if (end >= index->n_known) return skip_row(d);
    const stk_jpeg_entry *e = index->entry;
    int i = (int)(here - row), begin = column_of(d, i);
    int64_t n_between = (int64_t)e[here + 1].offset - e[here].offset, n_likely = (int64_t)e[end].offset - e[to].offset;
    int64_t at = e[here].offset + n_between * (d->mcu_right - begin) / (column_of(d, i + 1) - begin);
    if (!is_sound(d, &e[to]) || n_likely < 0 || e[to].offset - at < LEAST_BYTES) return skip_row(d);
    start_at(d, to, (size_t)n_likely + 2 * STK_JPEG_LOOK_AHEAD);
    return true;
}

static bool read_row(stk_jpeg_decoder *d)
{
    bool last = d->mcu_row + 1 == d->mcu_bottom;
    if (!pass_to(d, d->mcu_left) || !note_entry(d)) return false;
    aim_blocks(d);
    if (!stk_jpeg_scan_mcus(&d->scan, d->mcu_right - d->mcu_left, true)) return false;
    d->mcu_column = d->mcu_right;
    transform_row(d);
    if (!last) return pass_rest(d);
    if (d->whole && !stk_jpeg_scan_finish(&d->scan)) return false;
    next_row(d);
    return true;
}

/* --- rows of pixels --- */

static const uint8_t *row_of(const stk_jpeg_plane *p, int64_t y)
{
    return p->data + (size_t)(y % p->n_rows) * p->stride;
}

/* The chroma row that is interpolated with row y / 2 for row y. */
static int64_t far_row(const stk_jpeg_plane *p, int64_t y)
{
    int64_t far = y & 1 ? y / 2 + 1 : y / 2 - 1;
    return far < 0 ? 0 : min_i64(far, p->height - 1);
}

/* Chroma samples for columns [rect.left, rect.left + rect.width) of row y. */
static const uint8_t *upsample(stk_jpeg_decoder *d, int i_chroma, int64_t y)
{
    const stk_jpeg_plane *p = &d->plane[1 + i_chroma];
    const stk_jpeg_kernels *kernels = d->kernels;
    int hmax = d->header.hmax, vmax = d->header.vmax, left = (int)d->rect.left, right = left + (int)d->rect.width;
    const uint8_t *near = row_of(p, y / vmax) + left / hmax - p->left;
    uint8_t *dst = d->chroma[i_chroma];
    if (hmax == 1 && vmax == 1) return near;
    int n = (right - 1) / hmax - left / hmax + 1;
    if (vmax == 1) {
        kernels->upsample_h2v1(near, n, dst);
        return dst + left % hmax;
    }
    const uint8_t *far = row_of(p, far_row(p, y)) + left / hmax - p->left;
    if (hmax == 1)
        kernels->upsample_h1v2(near, far, !(y & 1), n, dst);
    else
        kernels->upsample_h2v2(near, far, n, dst);
    return dst + left % hmax;
}

static void write_row(stk_jpeg_decoder *d, int64_t y, uint8_t *dst)
{
    const uint8_t *luma = row_of(&d->plane[0], y) + d->rect.left - d->plane[0].left;
    int n = (int)d->rect.width;
    if (d->channels == 1)
        memcpy(dst, luma, (size_t)n);
    else if (d->n_planes == 1)
        d->kernels->grey_rgb(luma, n, dst);
    else
        d->kernels->rgb(luma, upsample(d, 0, y), upsample(d, 1, y), n, dst);
}

/* The row of MCUs that must have been read for row y. */
static int needed_row(const stk_jpeg_decoder *d, int64_t y)
{
    int64_t need = y / (8 * d->header.vmax);
    if (d->n_planes == 3 && d->header.vmax == 2) {
        int64_t far = far_row(&d->plane[1], y) / 8;
        if (far > need) need = far;
    }
    return (int)need;
}

stk_status stk_jpeg_decoder_rows(stk_jpeg_decoder *d, int64_t n, uint8_t *dst, size_t stride)
{
    for (; n > 0; n--, d->y++, dst += stride) {
        while (d->mcu_row < d->mcu_top)
            if (!skip_row(d)) return REFUSED;
        while (d->mcu_row <= needed_row(d, d->y))
            if (!read_row(d)) return REFUSED;
        write_row(d, d->y, dst);
    }
    return STK_OK;
}

stk_status stk_jpeg_decoder_skip_to_end(stk_jpeg_decoder *d)
{
    d->mcu_top = d->mcus_down;
    start_scan(d);
    while (d->mcu_row < d->mcus_down)
        if (!skip_row(d)) return REFUSED;
    return stk_jpeg_scan_finish(&d->scan) ? STK_OK : REFUSED;
}
