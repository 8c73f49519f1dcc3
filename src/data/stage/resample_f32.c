/* Resizing in f32; see resample.h. */
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "data/stage/resample.h"
#include "data/stage/simd.h"
#include "data/stage/taps.h"

/* For each output position: which inputs count, and how much. */
typedef struct taps {
    int32_t *first; /* [n_out] */
    int32_t *count; /* [n_out] */
    float *weight;  /* [n_out, most] */
    int64_t n_out, most;
} taps;

static size_t taps_bytes(int64_t n_out, int64_t most)
{
    return (size_t)n_out * (2 * sizeof(int32_t) + (size_t)most * sizeof(float));
}

static taps make_taps(char *memory, const stk_axis *axis)
{
    taps t = {.n_out = axis->n, .most = stk_axis_most_taps(axis)};
    t.first = (int32_t *)(void *)memory;
    t.count = t.first + t.n_out;
    t.weight = (float *)(void *)(t.count + t.n_out);
    stk_axis_taps(axis, t.first, t.count, t.weight);
    return t;
}

/* Four floats at any address. */
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));

/* One row: src [n_in, C] -> dst [n_out, C]. RGB is taken four floats at a time: the fourth is overwritten by the next
 * pixel, and both rows have room for one float more. */
static void mix_columns(const float *src, const taps *t, int64_t channels, float *dst)
{
    for (int64_t i = 0; i < t->n_out; i++) {
        const float *w = t->weight + i * t->most, *at = src + t->first[i] * channels;
        float *to = dst + i * channels;
        if (channels == 3) {
            f32x4 sum = {0};
            for (int32_t k = 0; k < t->count[i]; k++)
                sum += *(const f32x4 *)(const void *)(at + 3 * k) * w[k];
            *(f32x4 *)(void *)to = sum;
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < t->count[i]; k++)
                sum += at[k * channels + c] * w[k];
            to[c] = sum;
        }
    }
}

/* dst = src * w, or dst + src * w. */
STK_SIMD_CLONES
static void add_row(const float *restrict src, float w, bool first, float *restrict dst, int64_t n)
{
    if (first)
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i] * w;
    else
        for (int64_t i = 0; i < n; i++)
            dst[i] += src[i] * w;
}

/* The rows of the source that are at work: row i, its columns mixed, lies in slot i % n_slots. */
typedef struct window {
    const stk_item *src;
    stk_rect from;
    taps x;
    int64_t channels, n_slots, stride; /* stride: floats of a slot */
    float *slots, *wide;               /* wide: one source row, and room for a float more */
    int64_t n_made;                    /* rows below this number are made, or were never needed */
} window;

static float *slot_of(const window *w, int64_t i_row)
{
    return w->slots + i_row % w->n_slots * w->stride;
}

STK_SIMD_CLONES
static void widen_row(const uint8_t *restrict src, float *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

static void make_row(window *w, int64_t i_row)
{
    int64_t width = w->src->type.desc.shape.dim[1], n = w->from.width * w->channels;
    int64_t at = ((w->from.top + i_row) * width + w->from.left) * w->channels;
    if (w->src->type.desc.dtype == STK_U8)
        widen_row((const uint8_t *)w->src->data + at, w->wide, n);
    else
        memcpy(w->wide, (const float *)w->src->data + at, (size_t)n * sizeof(float));
    mix_columns(w->wide, &w->x, w->channels, slot_of(w, i_row));
}

/* Memory for n floats and four more, a multiple of 64 bytes. */
static int64_t padded(int64_t n)
{
    return stk_round_up_i64(n + 4, 16);
}

stk_status stk_resample_f32(const stk_item *src, stk_rect from, stk_sampling how, stk_item *dst, stk_scratch *scratch)
{
    const int64_t *to = dst->type.desc.shape.dim;
    const stk_axis x_axis = {from.width, to[1], 0, to[1], how, false};
    const stk_axis y_axis = {from.height, to[0], 0, to[0], how, false};
    int64_t row = to[1] * to[2], most_y = stk_axis_most_taps(&y_axis);
    window w = {.src = src, .from = from, .channels = to[2], .n_slots = most_y, .stride = padded(row)};
    size_t n_bytes = (size_t)(most_y * w.stride + padded(from.width * to[2])) * sizeof(float);
    size_t x_bytes = taps_bytes(to[1], stk_axis_most_taps(&x_axis));
    char *memory = stk_scratch_get(scratch, n_bytes + x_bytes + taps_bytes(to[0], most_y));
    if (!memory) return STK_NO_MEMORY;
    w.slots = (float *)(void *)memory;
    w.wide = w.slots + most_y * w.stride;
    w.wide[from.width * to[2]] = 0; /* read with the last pixel, and not used */
    w.x = make_taps(memory + n_bytes, &x_axis);
    taps y = make_taps(memory + n_bytes + x_bytes, &y_axis);
    for (int64_t i = 0; i < to[0]; i++) {
        int64_t first = y.first[i], end = first + y.count[i];
        /* Both ends only grow from one output row to the next, so each source row is made once at most. */
        for (w.n_made = w.n_made < first ? first : w.n_made; w.n_made < end; w.n_made++)
            make_row(&w, w.n_made);
        for (int64_t k = first; k < end; k++)
            add_row(slot_of(&w, k), y.weight[i * y.most + k - first], k == first, (float *)dst->data + i * row, row);
    }
    return STK_OK;
}
