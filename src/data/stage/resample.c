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

static float round_to_u8(float x)
{
    x = floorf(x + 0.5f);
    return x < 0 ? 0 : x > 255 ? 255 : x;
}

/* One row: src [n_in, C] u8 or f32 -> dst [n_out, C] f32. */
static void resample_row(const void *src, bool is_u8, const taps *t, int64_t channels, bool rounded, float *dst)
{
    for (int64_t i = 0; i < t->n_out; i++) {
        const float *w = t->weight + i * t->most;
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0;
            int64_t at = (int64_t)t->first[i] * channels + c;
            for (int32_t k = 0; k < t->count[i]; k++, at += channels)
                sum += w[k] * (is_u8 ? (float)((const uint8_t *)src)[at] : ((const float *)src)[at]);
            dst[i * channels + c] = rounded ? round_to_u8(sum) : sum;
        }
    }
}

STK_SIMD_CLONES
static void add_row(const float *restrict src, float w, float *restrict sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += w * src[i];
}

static void store_row(const float *sum, bool is_u8, void *dst, int64_t n)
{
    if (!is_u8) {
        memcpy(dst, sum, (size_t)n * sizeof(*sum));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = (uint8_t)round_to_u8(sum[i]);
}

stk_status stk_resample(const stk_item *src, stk_rectangle from, bool antialias, stk_item *dst, stk_scratch *scratch)
{
    const int64_t *to = dst->type.desc.shape.dim, *dim = src->type.desc.shape.dim;
    bool is_u8 = src->type.desc.dtype == STK_U8;
    int64_t channels = to[2], row = to[1] * channels;
    int64_t most_x = most_taps(from.width, to[1], antialias), most_y = most_taps(from.height, to[0], antialias);
    size_t x_bytes = taps_bytes(to[1], most_x), y_bytes = taps_bytes(to[0], most_y);
    size_t rows_bytes = (size_t)((from.height + 1) * row) * sizeof(float),
           element = stk_dtype_bytes(src->type.desc.dtype);
    char *memory = stk_scratch_get(scratch, rows_bytes + x_bytes + y_bytes);
    if (!memory) return stk_fail_memory(rows_bytes + x_bytes + y_bytes);
    float *rows = (float *)(void *)memory, *sum = rows + from.height * row;
    taps x = place_taps(memory + rows_bytes, to[1], most_x);
    taps y = place_taps(memory + rows_bytes + x_bytes, to[0], most_y);
    fill_taps(&x, from.width, antialias);
    fill_taps(&y, from.height, antialias);
    for (int64_t i = 0; i < from.height; i++) {
        size_t at = (size_t)((from.top + i) * dim[1] + from.left) * (size_t)channels * element;
        /* PIL rounds between its passes; so does everything that is compared with it. */
        resample_row((const char *)src->data + at, is_u8, &x, channels, is_u8 && antialias, rows + i * row);
    }
    for (int64_t i = 0; i < to[0]; i++) {
        memset(sum, 0, (size_t)row * sizeof(*sum));
        for (int32_t k = 0; k < y.count[i]; k++)
            add_row(rows + (y.first[i] + k) * row, y.weight[i * y.most + k], sum, row);
        store_row(sum, is_u8, (char *)dst->data + (size_t)(i * row) * element, row);
    }
    return STK_OK;
}
