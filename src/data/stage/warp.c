#include "data/stage/warp.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { FRACTION_BITS = 32, WEIGHT_BITS = 14 };

stk_warp stk_warp_make(const stk_warp_config *c)
{
    const double degree = 3.14159265358979323846 / 180;
    double angle = c->angle * degree, shear_x = c->shear_x * degree, shear_y = c->shear_y * degree;
    /* Turning times both shears; its determinant is 1. */
    double a = cos(angle - shear_y) / cos(shear_y), b = -(a * tan(shear_x) + sin(angle));
    double d = sin(angle - shear_y) / cos(shear_y), e = cos(angle) - d * tan(shear_x);
    stk_warp w = {.xx = e / c->scale, .xy = -b / c->scale, .yx = -d / c->scale, .yy = a / c->scale};
    double x = c->centre_x + c->move_x, y = c->centre_y + c->move_y;
    w.x0 = c->centre_x - w.xx * x - w.xy * y;
    w.y0 = c->centre_y - w.yx * x - w.yy * y;
    return w;
}

/* --- one image --- */

typedef struct picture {
    const uint8_t *src;
    int64_t height, width;
    int channels;
    uint8_t fill;
} picture;

/* Where a row of the output is taken from: pixel i from (x + i * step_x, y + i * step_y). */
typedef struct walk {
    int64_t x, y, step_x, step_y;
} walk;

static int64_t fixed(double place)
{
    /* Far outside is far outside; a row's steps must not overflow. */
    const double most = 0x1p29;
    return (int64_t)llrint((place > most ? most : place < -most ? -most : place) * 0x1p32);
}

static walk walk_row(const stk_warp *w, const picture *p, int64_t i_row)
{
    double x = 0.5 - 0.5 * (double)p->width, y = (double)i_row + 0.5 - 0.5 * (double)p->height;
    return (walk){fixed(w->xx * x + w->xy * y + w->x0 + 0.5 * (double)p->width - 0.5),
                  fixed(w->yx * x + w->yy * y + w->y0 + 0.5 * (double)p->height - 0.5), fixed(w->xx), fixed(w->yx)};
}

static inline __attribute__((always_inline)) void nearest_row(const picture *p, walk w, int channels, uint8_t *dst)
{
    const int64_t half = INT64_C(1) << (FRACTION_BITS - 1);
    int64_t x = w.x + half, y = w.y + half;
    for (int64_t i = 0; i < p->width; i++, x += w.step_x, y += w.step_y, dst += channels) {
        uint64_t column = (uint64_t)(x >> FRACTION_BITS), row = (uint64_t)(y >> FRACTION_BITS);
        if (column < (uint64_t)p->width && row < (uint64_t)p->height)
            memcpy(dst, p->src + ((int64_t)row * p->width + (int64_t)column) * channels, (size_t)channels);
        else
            memset(dst, p->fill, (size_t)channels);
    }
}

/* --- bilinear --- */

/* Weights, two 16-bit ones in each: of the pixel here and the one right of it, and of the two below; their sum is
 * 1 << WEIGHT_BITS. Kept in registers: parts that are stored would be waited for. */
typedef struct corners {
    uint32_t above, below;
} corners;

static inline corners weigh(int64_t x, int64_t y)
{
    uint32_t a = (uint32_t)x >> (FRACTION_BITS - WEIGHT_BITS), b = (uint32_t)y >> (FRACTION_BITS - WEIGHT_BITS);
    uint32_t both = (a * b + (1u << (WEIGHT_BITS - 1))) >> WEIGHT_BITS;
    return (corners){((1u << WEIGHT_BITS) - (a + b - both)) | (a - both) << 16, (b - both) | both << 16};
}

static inline int weight_of(corners c, int i)
{
    return (int)((i < 2 ? c.above : c.below) >> 16 * (i & 1) & 0xFFFF);
}

static void mix_with_fill(const picture *p, int64_t x, int64_t y, uint8_t *dst)
{
    int64_t column = x >> FRACTION_BITS, row = y >> FRACTION_BITS;
    corners c = weigh(x, y);
    for (int k = 0; k < p->channels; k++) {
        int sum = 1 << (WEIGHT_BITS - 1);
        for (int i = 0; i < 4; i++) {
            int64_t at_x = column + (i & 1), at_y = row + (i >> 1);
            bool inside = at_x >= 0 && at_x < p->width && at_y >= 0 && at_y < p->height;
            sum += weight_of(c, i) * (inside ? p->src[(at_y * p->width + at_x) * p->channels + k] : p->fill);
        }
        dst[k] = (uint8_t)(sum >> WEIGHT_BITS);
    }
}

#ifdef __SSE2__
static inline __m128i load_four(const uint8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof(x));
    return _mm_unpacklo_epi8(_mm_cvtsi32_si128(x), _mm_setzero_si128());
}

/* Three channels; four bytes are read at each corner and four are written. */
static inline void mix_inside(const uint8_t *above, const uint8_t *below, corners c, uint8_t *dst)
{
    __m128i a = _mm_unpacklo_epi16(load_four(above), load_four(above + 3));
    __m128i b = _mm_unpacklo_epi16(load_four(below), load_four(below + 3));
    __m128i sum = _mm_add_epi32(_mm_madd_epi16(a, _mm_set1_epi32((int32_t)c.above)),
                                _mm_madd_epi16(b, _mm_set1_epi32((int32_t)c.below)));
    sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (WEIGHT_BITS - 1))), WEIGHT_BITS);
    sum = _mm_packs_epi32(sum, sum);
    int32_t out = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    memcpy(dst, &out, sizeof(out));
}
#else
static inline void mix_inside(const uint8_t *above, const uint8_t *below, corners c, uint8_t *dst)
{
    for (int k = 0; k < 3; k++) {
        int sum = above[k] * weight_of(c, 0) + above[k + 3] * weight_of(c, 1) + below[k] * weight_of(c, 2) +
                  below[k + 3] * weight_of(c, 3) + (1 << (WEIGHT_BITS - 1));
        dst[k] = (uint8_t)(sum >> WEIGHT_BITS);
    }
}
#endif

static void bilinear_row(const picture *p, walk w, uint8_t *dst)
{
    int64_t x = w.x, y = w.y, row_bytes = p->width * 3;
    /* One pixel more must lie behind what is read, and one behind what is written. */
    uint64_t columns = p->channels == 3 && p->width > 2 ? (uint64_t)p->width - 2 : 0;
    uint64_t rows = p->height > 1 ? (uint64_t)p->height - 1 : 0;
    for (int64_t i = 0; i < p->width; i++, x += w.step_x, y += w.step_y, dst += p->channels) {
        uint64_t column = (uint64_t)(x >> FRACTION_BITS), row = (uint64_t)(y >> FRACTION_BITS);
        if (column < columns && row < rows && i < p->width - 1) {
            const uint8_t *above = p->src + (int64_t)row * row_bytes + (int64_t)column * 3;
            mix_inside(above, above + row_bytes, weigh(x, y), dst);
        } else {
            mix_with_fill(p, x, y, dst);
        }
    }
}

void stk_warp_apply(const stk_warp *warp, stk_filter filter, uint8_t fill, const uint8_t *src, uint8_t *dst,
                    int64_t height, int64_t width, int channels)
{
    const picture p = {src, height, width, channels, fill};
    for (int64_t i = 0; i < height; i++, dst += width * channels) {
        walk w = walk_row(warp, &p, i);
        if (filter == STK_FILTER_BILINEAR)
            bilinear_row(&p, w, dst);
        else if (channels == 3)
            nearest_row(&p, w, 3, dst);
        else
            nearest_row(&p, w, channels, dst);
    }
}
