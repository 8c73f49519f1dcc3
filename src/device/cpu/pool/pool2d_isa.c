#include "device/cpu/pool/pool2d.h"

#include <math.h>

#define T       float
#define MASK    int32_t
#define NAME(x) x##_f32
#include "device/cpu/pool/pool2d_tmpl.h"
#undef T
#undef MASK
#undef NAME

#define T       double
#define MASK    int64_t
#define NAME(x) x##_f64
#include "device/cpu/pool/pool2d_tmpl.h"
#undef NAME

/* --- bf16 --- */

#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/simd/half_vec.h"

static inline vec_bits bits_in(vec x)
{
    vec_bits bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline vec vec_of(vec_bits bits)
{
    vec x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* All of a comparison's lanes are 0 or -1. */
static inline vec_bits wins(vec x, vec best)
{
    return (vec_bits)(x > best) | (vec_bits)(x != x);
}

static void max_bf16(int64_t n_channels, const stk_pool_taps *taps, const void *src, void *dst)
{
    enum { LEAST = 0xff80 }; /* minus infinity */
    const uint16_t *x = src;
    uint16_t *y = dst;
    int64_t c = 0;
    for (; taps->n > 0 && c + LANES <= n_channels; c += LANES) {
        vec best = load_bf16(x + taps->offset[0] + c);
        for (int tap = 1; tap < taps->n; tap++) {
            vec v = load_bf16(x + taps->offset[tap] + c);
            vec_bits is_larger = wins(v, best);
            best = vec_of((is_larger & bits_in(v)) | (~is_larger & bits_in(best)));
        }
        /* One of the inputs: nothing is to be rounded. */
        *(vec_half *)(y + c) = __builtin_convertvector(bits_in(best) >> 16, vec_half);
    }
    for (; c < n_channels; c++) {
        uint16_t best = taps->n > 0 ? x[taps->offset[0] + c] : LEAST;
        for (int tap = 1; tap < taps->n; tap++) {
            uint16_t v = x[taps->offset[tap] + c];
            float number = bf16_to_f32(v);
            if (number > bf16_to_f32(best) || number != number) best = v;
        }
        y[c] = best;
    }
}

static void max_grad_bf16(int64_t n_channels, const stk_pool_taps *taps, const int64_t *to, const uint16_t *x,
                          const uint16_t *y, const uint16_t *dy, float *sums)
{
    int64_t c = 0;
    for (; c + LANES <= n_channels; c += LANES) {
        vec most = load_bf16(y + c);
        vec_bits d = bits_in(load_bf16(dy + c)), left = (vec_bits)(most == most) | (vec_bits)(most != most);
        vec_bits is_nan = (vec_bits)(most != most);
        for (int tap = 0; tap < taps->n; tap++) {
            vec v = load_bf16(x + taps->offset[tap] + c), *sum = (vec *)(sums + to[tap] + c);
            vec_bits hit = left & ((vec_bits)(v == most) | ((vec_bits)(v != v) & is_nan));
            *sum += vec_of(hit & d);
            left &= ~hit;
        }
    }
    for (; c < n_channels; c++)
        for (int tap = 0; tap < taps->n; tap++) {
            if (!is_max_f32(bf16_to_f32(x[taps->offset[tap] + c]), bf16_to_f32(y[c]))) continue;
            sums[to[tap] + c] += bf16_to_f32(dy[c]);
            break;
        }
}

/* --- whole rows of windows --- */

static inline vec_half half_of(vec x)
{
    return __builtin_convertvector(bits_in(x) >> 16, vec_half);
}

#ifdef __AVX512BW__
static inline vec load_part_f32(const float *from, int64_t n)
{
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}

static inline void store_part_f32(float *to, vec x, int64_t n)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)x);
}

static inline vec load_part_bf16(const uint16_t *from, int64_t n)
{
    __m256i some = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
    return (vec)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(some), 16));
}

static inline void store_part_bf16(uint16_t *to, vec x, int64_t n)
{
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), (__m256i)half_of(x));
}
#else
static inline vec load_part_f32(const float *from, int64_t n)
{
    float some[LANES] = {0};
    memcpy(some, from, (size_t)n * sizeof(*from));
    return *(const vec *)some;
}

static inline void store_part_f32(float *to, vec x, int64_t n)
{
    memcpy(to, &x, (size_t)n * sizeof(*to));
}

static inline vec load_part_bf16(const uint16_t *from, int64_t n)
{
    uint16_t some[LANES] = {0};
    memcpy(some, from, (size_t)n * sizeof(*from));
    return load_bf16(some);
}

static inline void store_part_bf16(uint16_t *to, vec x, int64_t n)
{
    vec_half half = half_of(x);
    memcpy(to, &half, (size_t)n * sizeof(*to));
}
#endif

#define S                   float
#define LOAD(p)             (*(const vec *)(p))
#define STORE(p, v)         (*(vec *)(p) = (v))
#define LOAD_PART(p, n)     load_part_f32(p, n)
#define STORE_PART(p, v, n) store_part_f32(p, v, n)
#define NAME(x)             x##_f32
#include "device/cpu/pool/pool2d_rows_tmpl.h"
#undef S
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef NAME

#define S                   uint16_t
#define LOAD(p)             load_bf16(p)
#define STORE(p, v)         (*(vec_half *)(p) = half_of(v))
#define LOAD_PART(p, n)     load_part_bf16(p, n)
#define STORE_PART(p, v, n) store_part_bf16(p, v, n)
#define NAME(x)             x##_bf16
#include "device/cpu/pool/pool2d_rows_tmpl.h"

const stk_pool_table STK_ISA_NAME(stk_pool) = {.f32 = {max_f32, avg_f32, max_grad_f32, avg_grad_f32},
                                               .f64 = {max_f64, avg_f64, max_grad_f64, avg_grad_f64},
                                               .bf16 = {max_bf16, max_grad_bf16},
                                               .f32_rows = {max_row_f32, max_grad_row_f32},
                                               .bf16_rows = {max_row_bf16, max_grad_row_bf16}};
