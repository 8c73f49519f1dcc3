#include "data/stage/resample.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/simd.h"

/* For each output position: which inputs count, and how much. */
typedef struct taps {
    int32_t *first; /* [n_out] */
    int32_t *count; /* [n_out] */
    float *weight;  /* [n_out, most] */
    int64_t n_out, most;
} taps;

static int64_t most_taps(int64_t n_in, int64_t n_out, bool antialias)
{
    double scale = (double)n_in / (double)n_out;
    return antialias && scale > 1 ? 2 * (int64_t)ceil(scale) + 1 : 2;
}

static size_t taps_bytes(int64_t n_out, int64_t most)
{
    return (size_t)n_out * (2 * sizeof(int32_t) + (size_t)most * sizeof(float));
}

static taps place_taps(char *memory, int64_t n_out, int64_t most)
{
    taps t = {.n_out = n_out, .most = most};
    t.first = (int32_t *)(void *)memory;
    t.count = t.first + n_out;
    t.weight = (float *)(void *)(t.count + n_out);
    return t;
}

static void fill_taps_antialiased(taps *t, int64_t n_in)
{
    double scale = (double)n_in / (double)t->n_out, width = scale > 1 ? scale : 1;
    for (int64_t i = 0; i < t->n_out; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0;
        int64_t first = (int64_t)(centre - width + 0.5), last = (int64_t)(centre + width + 0.5);
        float *w = t->weight + i * t->most;
        if (first < 0) first = 0;
        if (last > n_in) last = n_in;
        if (last - first > t->most) last = first + t->most;
        for (int64_t k = first; k < last; k++) {
            double distance = fabs(((double)k - centre + 0.5) / width);
            w[k - first] = distance < 1 ? (float)(1 - distance) : 0;
            sum += (double)w[k - first];
        }
        for (int64_t k = first; k < last; k++)
            w[k - first] = (float)((double)w[k - first] / sum);
        t->first[i] = (int32_t)first;
        t->count[i] = (int32_t)(last - first);
    }
}

static void fill_taps_plain(taps *t, int64_t n_in)
{
    double scale = (double)n_in / (double)t->n_out;
    for (int64_t i = 0; i < t->n_out; i++) {
        double x = ((double)i + 0.5) * scale - 0.5;
        if (x < 0) x = 0;
        int64_t first = (int64_t)x;
        if (first > n_in - 1) first = n_in - 1;
        double share = x - (double)first;
        t->first[i] = (int32_t)first;
        t->count[i] = first + 1 < n_in ? 2 : 1;
        t->weight[i * t->most] = t->count[i] == 2 ? (float)(1 - share) : 1;
        t->weight[i * t->most + 1] = (float)share;
    }
}

static void fill_taps(taps *t, int64_t n_in, bool antialias)
{
    if (antialias)
        fill_taps_antialiased(t, n_in);
    else
        fill_taps_plain(t, n_in);
}

/* Sums are not negative, so that cutting the fraction off rounds down. The sum of weights may exceed 1 by a rounding.
 */
static inline float round_to_u8(float x)
{
    x = (float)(int32_t)(x + 0.5f);
    return x > 255 ? 255 : x;
}

STK_SIMD_CLONES
static void widen(const uint8_t *restrict src, float *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

STK_SIMD_CLONES
static void round_row(float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = round_to_u8(row[i]);
}

STK_SIMD_CLONES
static void narrow(const float *restrict src, uint8_t *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int32_t)round_to_u8(src[i]);
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
    stk_rectangle from;
    taps x;
    bool is_u8, rounded;
    int64_t channels, n_slots, stride; /* stride: floats of a slot */
    float *slots, *wide;               /* wide: one source row as f32 */
    int64_t n_made;                    /* rows below this number are made, or were never needed */
} window;

static const float *slot_of(const window *w, int64_t i_row)
{
    return w->slots + i_row % w->n_slots * w->stride;
}

static void make_row(window *w, int64_t i_row)
{
    size_t element = w->is_u8 ? 1 : sizeof(float);
    int64_t width = w->src->type.desc.shape.dim[1], n = w->from.width * w->channels;
    const char *src =
        (const char *)w->src->data + (size_t)(((w->from.top + i_row) * width + w->from.left) * w->channels) * element;
    float *dst = w->slots + i_row % w->n_slots * w->stride;
    if (w->is_u8)
        widen((const uint8_t *)src, w->wide, n);
    else
        memcpy(w->wide, src, (size_t)n * sizeof(float));
    mix_columns(w->wide, &w->x, w->channels, dst);
    /* PIL rounds between its passes; so does everything that is compared with it. */
    if (w->rounded) round_row(dst, w->x.n_out * w->channels);
}

/* Memory for n floats and four more, a multiple of 64 bytes. */
static int64_t padded(int64_t n)
{
    return (n + 4 + 15) / 16 * 16;
}

stk_status stk_resample(const stk_item *src, stk_rectangle from, bool antialias, stk_item *dst, stk_scratch *scratch)
{
    const int64_t *to = dst->type.desc.shape.dim;
    bool is_u8 = src->type.desc.dtype == STK_U8;
    int64_t row = to[1] * to[2], stride = padded(row), wide = padded(from.width * to[2]);
    int64_t most_x = most_taps(from.width, to[1], antialias), most_y = most_taps(from.height, to[0], antialias);
    size_t n_floats = (size_t)((most_y + 1) * stride + wide), n_bytes = n_floats * sizeof(float);
    size_t x_bytes = taps_bytes(to[1], most_x);
    char *memory = stk_scratch_get(scratch, n_bytes + x_bytes + taps_bytes(to[0], most_y));
    if (!memory) return stk_fail_memory(n_bytes);
    float *floats = (float *)(void *)memory, *sum = floats + most_y * stride;
    window w = {.src = src, .from = from, .is_u8 = is_u8, .rounded = is_u8 && antialias, .channels = to[2]};
    w.n_slots = most_y;
    w.stride = stride;
    w.slots = floats;
    w.wide = sum + stride;
    w.wide[from.width * to[2]] = 0; /* read with the last pixel, and not used */
    w.x = place_taps(memory + n_bytes, to[1], most_x);
    taps y = place_taps(memory + n_bytes + x_bytes, to[0], most_y);
    fill_taps(&w.x, from.width, antialias);
    fill_taps(&y, from.height, antialias);
    for (int64_t i = 0; i < to[0]; i++) {
        int64_t first = y.first[i], end = first + y.count[i];
        /* Both ends only grow from one output row to the next, so each source row is made once at most. */
        for (w.n_made = w.n_made < first ? first : w.n_made; w.n_made < end; w.n_made++)
            make_row(&w, w.n_made);
        float *out = is_u8 ? sum : (float *)dst->data + i * row;
        for (int64_t k = first; k < end; k++)
            add_row(slot_of(&w, k), y.weight[i * y.most + k - first], k == first, out, row);
        if (is_u8) narrow(sum, (uint8_t *)dst->data + i * row, row);
    }
    return STK_OK;
}
