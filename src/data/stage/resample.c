#include "data/stage/resample.h"

#include <math.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "data/stage/resample_kernels.h"
#include "data/stage/taps.h"

/* A weight below 2 fits in an i16; so does what the first pass keeps where it does not round to whole values: 255 <<
 * FRACTION_BITS, and for bicubic, which may reach from -100 to 355, one bit less. */
enum { WEIGHT_BITS = 14, FRACTION_BITS = 7, CUBIC_FRACTION_BITS = 6 };
enum { ALIGNMENT = 64 };

struct stk_resampler {
    const stk_resample_kernels *kernels;
    stk_columns columns;
    stk_rect needs;

    /* of output row i: its rows [row_first[i], row_first[i] + row_count[i]) of the input, row_weight [i, most_rows] */
    int32_t *row_first, *row_count;
    int16_t *row_weight;
    int most_rows, row_shift;

    int16_t *slots; /* [n_slots, stride]: input row i, its columns mixed (rows_first: as it is), in slot i % n_slots */
    const int16_t **row;
    int n_slots;
    int64_t stride;
    int64_t i_out, n_made; /* n_made: rows below this number are made, or were never needed */
    uint8_t *out;
    int n_out;      /* values of a row, in whole groups */
    uint8_t *input; /* a place for one input row and its slack */

    bool rows_first;
    int n_in;       /* values of an input row, in whole groups */
    uint8_t *mixed; /* [n_in] and slack: rows mixed, before columns are */
    int16_t *wide;  /* [n_out] and slack: the result before it is u8 */
};

/* Pillow 13's order: rows are mixed before columns where the height loses more than twice what the width does. The
 * order counts where a pass rounds to u8. */
static bool takes_rows_first(const stk_resample_config *config)
{
    int64_t lost = config->height - config->to_height;
    return config->how.like == STK_LIKE_PIL && config->how.antialias && config->how.filter != STK_FILTER_NEAREST &&
           lost > 0 && lost > 2 * (config->width - config->to_width);
}

/* --- taps in fixed point --- */

/* The taps of one axis, as f32 and in the order of the outputs. */
typedef struct float_taps {
    int32_t *first, *count; /* [n] */
    float *weight;          /* [n, most] */
    int64_t n, most;
    int64_t low, high; /* all inputs that count: [low, high) */
    int64_t most_used; /* the largest count */
} float_taps;

static size_t float_taps_bytes(int64_t n, int64_t most)
{
    return (size_t)n * (2 * sizeof(int32_t) + (size_t)most * sizeof(float));
}

static float_taps get_taps(const stk_axis *axis, char *memory)
{
    float_taps t = {.n = axis->n, .most = stk_axis_most_taps(axis), .low = axis->n_in};
    t.weight = (float *)(void *)memory;
    t.first = (int32_t *)(void *)(t.weight + t.n * t.most);
    t.count = t.first + t.n;
    stk_axis_taps(axis, t.first, t.count, t.weight);
    for (int64_t i = 0; i < t.n; i++) {
        const float *w = t.weight + i * t.most;
        int64_t first = t.first[i], n = t.count[i];
        while (n > 1 && w[n - 1] == 0)
            n--;
        t.count[i] = (int32_t)n;
        if (first < t.low) t.low = first;
        if (first + n > t.high) t.high = first + n;
        if (n > t.most_used) t.most_used = n;
    }
    return t;
}

/* What rounding a weight leaves goes into the next one, so that their sum stays 1: what is flat stays as it is. */
static void fix_weights(const float *weight, int64_t n, int16_t *fixed)
{
    float left = 0;
    for (int64_t k = 0; k < n; k++) {
        float exact = weight[k] * (float)(1 << WEIGHT_BITS) + left, whole = rintf(exact);
        fixed[k] = (int16_t)whole;
        left = exact - whole;
    }
}

/* --- starting --- */

/* Columns past the last are copies of nothing: weight 0. No tap lies past the row's end but for a few of weight 0. */
static void fill_columns(stk_resampler *r, const float_taps *t, int32_t *first, int16_t *weight)
{
    const stk_columns *c = &r->columns;
    int64_t width = r->needs.width, last = width > c->n_taps ? width - c->n_taps : 0;
    memset(first, 0, (size_t)c->n * sizeof(*first));
    memset(weight, 0, (size_t)c->n * (size_t)c->n_taps * sizeof(*weight));
    for (int64_t i = 0; i < t->n; i++) {
        int64_t at = t->first[i] - t->low, begin = at < last ? at : last;
        first[i] = (int32_t)begin;
        fix_weights(t->weight + i * t->most, t->count[i], weight + i * c->n_taps + at - begin);
    }
}

/* See stk_columns. */
static void fill_paired(const stk_columns *c, int16_t *paired)
{
    for (int i = 0; i < c->n; i++) {
        const int16_t *w = c->weight + (int64_t)i * c->n_taps;
        int16_t *to = paired + (int64_t)(i / 4 * 2 + (i & 1)) * c->n_taps * 8 + (i / 2 & 1) * 8;
        for (int t = 0; t < c->n_taps; t += 2, to += 16)
            for (int k = 0; k < 8; k++)
                to[k] = k < 6 ? w[t + (k & 1)] : 0;
    }
}

static void fill_rows(stk_resampler *r, const float_taps *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        r->row_first[i] = (int32_t)(t->first[i] - t->low);
        r->row_count[i] = t->count[i];
        fix_weights(t->weight + i * t->most, t->count[i], r->row_weight + i * r->most_rows);
    }
}

/* Takes bytes from the front of the memory, or only counts them. */
static void *take(char *memory, size_t *used, size_t bytes)
{
    void *p = memory ? memory + *used : NULL;
    *used += stk_round_up(bytes, ALIGNMENT);
    return p;
}

stk_status stk_resampler_begin(const stk_resample_config *config, stk_scratch *scratch, stk_resampler **out)
{
    const stk_rect *keep = &config->keep;
    const stk_axis x = {config->width, config->to_width, keep->left, keep->width, config->how, config->flipped};
    const stk_axis y = {config->height, config->to_height, keep->top, keep->height, config->how, false};
    int64_t most_x = stk_axis_most_taps(&x), most_y = stk_axis_most_taps(&y), channels = config->channels;
    int64_t n = stk_round_up_i64(x.n, STK_COLUMN_GROUP), most_columns = stk_round_up_i64(most_x, STK_COLUMN_TAPS);
    int64_t n_out = stk_round_up_i64(n * channels, STK_ROW_GROUP);
    bool rows_first = takes_rows_first(config);
    int64_t n_in = rows_first ? stk_round_up_i64(config->width * channels, STK_ROW_GROUP) : 0;
    int64_t stride = (rows_first ? n_in : n_out) + STK_ROW_GROUP;
    char *memory = NULL, *float_memory_x = NULL, *float_memory_y = NULL;
    stk_resampler *r = NULL;
    int32_t *first = NULL;
    int16_t *weight = NULL, *paired = NULL;
    size_t n_weights = (size_t)(n * most_columns);
    /* Once to count the bytes, once to place things. */
    for (int i = 0; i < 2; i++) {
        size_t used = 0;
        r = take(memory, &used, sizeof(*r));
        float_memory_x = take(memory, &used, float_taps_bytes(x.n, most_x));
        float_memory_y = take(memory, &used, float_taps_bytes(y.n, most_y));
        first = take(memory, &used, (size_t)n * sizeof(*first));
        weight = take(memory, &used, n_weights * sizeof(*weight));
        if (channels == 3) paired = take(memory, &used, 4 * n_weights * sizeof(*paired));
        int32_t *row_first = take(memory, &used, (size_t)y.n * sizeof(*row_first));
        int32_t *row_count = take(memory, &used, (size_t)y.n * sizeof(*row_count));
        int16_t *row_weight = take(memory, &used, (size_t)(y.n * most_y) * sizeof(*row_weight));
        int16_t *slots = take(memory, &used, (size_t)(most_y * stride) * sizeof(*slots));
        const int16_t **row = take(memory, &used, (size_t)most_y * sizeof(*row));
        uint8_t *bytes = take(memory, &used, (size_t)n_out + STK_ROW_SLACK);
        uint8_t *input = take(memory, &used, (size_t)(config->width * channels) + STK_ROW_SLACK);
        uint8_t *mixed = take(memory, &used, rows_first ? (size_t)n_in + STK_ROW_SLACK : 0);
        int16_t *wide = take(memory, &used, rows_first ? (size_t)(n_out + STK_ROW_GROUP) * sizeof(*wide) : 0);
        if (memory) {
            *r = (stk_resampler){.row_first = row_first,
                                 .row_count = row_count,
                                 .row_weight = row_weight,
                                 .slots = slots,
                                 .row = row,
                                 .out = bytes,
                                 .input = input,
                                 .rows_first = rows_first,
                                 .n_in = (int)n_in,
                                 .mixed = mixed,
                                 .wide = wide};
        } else {
            memory = stk_scratch_get(scratch, used);
            if (!memory) return STK_NO_MEMORY;
        }
    }
    float_taps tx = get_taps(&x, float_memory_x), ty = get_taps(&y, float_memory_y);
    bool rounded = config->how.antialias;
    int fraction = rounded ? 0 : config->how.filter == STK_FILTER_BICUBIC ? CUBIC_FRACTION_BITS : FRACTION_BITS;
    r->kernels = stk_resample_kernels_choose();
    r->needs = (stk_rect){ty.low, tx.low, ty.high - ty.low, tx.high - tx.low};
    r->columns = (stk_columns){.first = first,
                               .weight = weight,
                               .paired = paired,
                               .n_taps = (int)stk_round_up_i64(tx.most_used, STK_COLUMN_TAPS),
                               .n = (int)n,
                               .channels = (int)channels,
                               .shift = WEIGHT_BITS - fraction,
                               .low = rounded ? 0 : INT16_MIN,
                               .high = rounded ? UINT8_MAX : INT16_MAX};
    r->most_rows = (int)most_y;
    r->row_shift = WEIGHT_BITS + fraction;
    r->n_slots = (int)most_y;
    r->stride = stride;
    r->n_out = (int)n_out;
    fill_columns(r, &tx, first, weight);
    if (paired) fill_paired(&r->columns, paired);
    fill_rows(r, &ty);
    /* The last group of a row is read in whole. */
    memset(r->slots, 0, (size_t)(most_y * stride) * sizeof(*r->slots));
    *out = r;
    return STK_OK;
}

stk_rect stk_resampler_needs(const stk_resampler *resampler)
{
    return resampler->needs;
}

uint8_t *stk_resampler_input(stk_resampler *resampler)
{
    return resampler->input;
}

/* --- rows --- */

static int16_t *slot_of(const stk_resampler *r, int64_t i_row)
{
    return r->slots + i_row % r->n_slots * r->stride;
}

/* Of an input row where rows are mixed first. */
static void widen(const uint8_t *restrict src, int64_t n, int16_t *restrict dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i];
}

static void narrow(const int16_t *restrict src, int64_t n, uint8_t *restrict dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint8_t)src[i];
}

stk_status stk_resampler_row(stk_resampler *r, stk_row_fn read, void *user, const uint8_t **row)
{
    int64_t i = r->i_out++, first = r->row_first[i], n = r->row_count[i];
    /* Both ends only grow from one output row to the next, so each input row is made once at most. */
    for (r->n_made = r->n_made < first ? first : r->n_made; r->n_made < first + n; r->n_made++) {
        const uint8_t *src;
        STK_RETURN_IF_ERROR(read(user, r->n_made, &src));
        if (r->rows_first)
            widen(src, r->needs.width * r->columns.channels, slot_of(r, r->n_made));
        else
            r->kernels->columns(src, &r->columns, slot_of(r, r->n_made));
    }
    for (int64_t k = 0; k < n; k++)
        r->row[k] = slot_of(r, first + k);
    const int16_t *weight = r->row_weight + i * r->most_rows;
    *row = r->out;
    if (!r->rows_first) {
        r->kernels->rows(r->row, weight, (int)n, r->n_out, r->row_shift, r->out);
        return STK_OK;
    }
    r->kernels->rows(r->row, weight, (int)n, r->n_in, r->row_shift, r->mixed);
    r->kernels->columns(r->mixed, &r->columns, r->wide);
    narrow(r->wide, r->n_out, r->out);
    return STK_OK;
}

/* --- whole images in memory --- */

typedef struct array_rows {
    const stk_item *src;
    int64_t top, left, width; /* of the needed part */
    uint8_t *last;            /* a copy of the image's last row, as nothing may be read after it */
} array_rows;

static stk_status read_array(void *user, int64_t i_row, const uint8_t **row)
{
    const array_rows *a = user;
    const int64_t *dim = a->src->type.desc.shape.dim;
    int64_t y = a->top + i_row;
    *row = (const uint8_t *)a->src->data + (y * dim[1] + a->left) * dim[2];
    /* The rows after this one stand for the slack, if they are long enough. */
    int64_t after = ((dim[0] - y) * dim[1] - a->left - a->width) * dim[2];
    if (after >= STK_ROW_SLACK) return STK_OK;
    memcpy(a->last, *row, (size_t)(a->width * dim[2]));
    *row = a->last;
    return STK_OK;
}

static stk_status resample_u8(const stk_item *src, stk_rect from, stk_sampling how, stk_item *dst, stk_scratch *scratch)
{
    const int64_t *to = dst->type.desc.shape.dim;
    stk_resample_config config = {.height = from.height,
                                  .width = from.width,
                                  .channels = to[2],
                                  .to_height = to[0],
                                  .to_width = to[1],
                                  .keep = {0, 0, to[0], to[1]},
                                  .how = how};
    stk_resampler *resampler;
    STK_RETURN_IF_ERROR(stk_resampler_begin(&config, scratch, &resampler));
    stk_rect needs = stk_resampler_needs(resampler);
    size_t row_bytes = (size_t)(to[1] * to[2]);
    array_rows rows = {src, from.top + needs.top, from.left + needs.left, needs.width, stk_resampler_input(resampler)};
    for (int64_t i = 0; i < to[0]; i++) {
        const uint8_t *row;
        STK_RETURN_IF_ERROR(stk_resampler_row(resampler, read_array, &rows, &row));
        memcpy((uint8_t *)dst->data + (size_t)i * row_bytes, row, row_bytes);
    }
    return STK_OK;
}

stk_status stk_resample(const stk_item *src, stk_rect from, stk_sampling how, stk_item *dst, stk_scratch *scratch)
{
    bool is_u8 = dst->type.desc.dtype == STK_U8;
    return (is_u8 ? resample_u8 : stk_resample_f32)(src, from, how, dst, scratch);
}
