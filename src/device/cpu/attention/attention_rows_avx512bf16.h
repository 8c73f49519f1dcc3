/* Attention's arithmetic on one row of scores in one pass, from f32 to the bf16 that the next product reads. For
 * attention_avx512bf16.c only; what the same is elsewhere is in attention_rows_tmpl.h.
 *
 * bf16 of a row lie where its f32 began, and are written behind where those are read.
 */
#ifndef STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_AVX512BF16_H
#define STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_AVX512BF16_H

#include <immintrin.h>

#include "device/cpu/attention/attention_rows.h"

enum { LANES = 16 };

/* Which keys of a row count: those seen, where the mask (NULL: none) is true. Bit by bit, what dropout keeps of them.
 */
typedef struct row_keys {
    int64_t n, seen; /* what lies behind those seen becomes 0, up to a multiple of a tile's depth */
    const uint8_t *mask;
    const uint32_t *keeps; /* NULL: all */
} row_keys;

static inline __mmask16 first_lanes(int64_t n)
{
    return n >= LANES ? (__mmask16)-1 : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

static inline __mmask16 counted_lanes(const row_keys *keys, int64_t i)
{
    __mmask16 lanes = first_lanes(keys->seen - i);
    if (!keys->mask) return lanes;
    __m128i bytes = _mm_maskz_loadu_epi8(lanes, keys->mask + i);
    return _mm_test_epi8_mask(bytes, bytes);
}

static inline __mmask16 kept_lanes(const row_keys *keys, int64_t i)
{
    return (__mmask16)(keys->keeps[i / 32] >> i % 32);
}

static inline int64_t padded_keys(const row_keys *keys)
{
    return stk_round_up_i64(keys->n, 2 * LANES);
}

static inline void store_rounded(uint16_t *to, __m512 x)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

/* e^x to 2 units in the last place, as exp_f32 has it. A NaN stays one. */
static inline __m512 exp_lanes(__m512 x)
{
    /* Below, e^x is 0 and -inf has no rest. */
    __m512 near = _mm512_max_ps(_mm512_set1_ps(-110.0f), x);
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(near, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), near);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    __m512 rr = _mm512_mul_ps(r, r);
    __m512 low = _mm512_fmadd_ps(_mm512_set1_ps(1.666651479e-01f), r, _mm512_set1_ps(4.999999305e-01f));
    __m512 high = _mm512_fmadd_ps(_mm512_set1_ps(8.369419043e-03f), r, _mm512_set1_ps(4.166845683e-02f));
    high = _mm512_fmadd_ps(_mm512_set1_ps(1.381314236e-03f), rr, high);
    __m512 p = _mm512_fmadd_ps(_mm512_fmadd_ps(high, rr, low), rr, r);
    return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

/* The largest of factor * x, -inf where no key counts. A NaN is passed over here: it comes out of the sum. */
static float find_most(const row_keys *keys, float factor, const float *x)
{
    __m512 most = _mm512_set1_ps(-INFINITY), f = _mm512_set1_ps(factor);
    for (int64_t i = 0; i < keys->seen; i += LANES) {
        __mmask16 lanes = counted_lanes(keys, i);
        most = _mm512_mask_max_ps(most, lanes, _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), f), most);
    }
    return _mm512_reduce_max_ps(most);
}

/* x becomes e^(factor * x - from); their sum. What dropout takes away counts in it. */
static float exp_row(const row_keys *keys, float factor, float from, float *x)
{
    uint16_t *to = (uint16_t *)(void *)x;
    __m512 sum = _mm512_setzero_ps(), f = _mm512_set1_ps(factor), away = _mm512_set1_ps(from);
    for (int64_t i = 0; i < padded_keys(keys); i += LANES) {
        __m512 e = _mm512_setzero_ps();
        if (i < keys->seen) {
            __mmask16 lanes = counted_lanes(keys, i);
            e = _mm512_maskz_mov_ps(lanes, exp_lanes(_mm512_fmsub_ps(_mm512_maskz_loadu_ps(lanes, x + i), f, away)));
            sum = _mm512_add_ps(sum, e);
            if (keys->keeps) e = _mm512_maskz_mov_ps(kept_lanes(keys, i), e);
        }
        store_rounded(to + i, e);
    }
    return _mm512_reduce_add_ps(sum);
}

typedef struct grad_numbers {
    float scale, lse, dot;
    float factor; /* of dropout: 1 / (1 - rate) */
} grad_numbers;

/* From scores x to weights p, and from dp (in dx) to the scores' gradients: ds = p (dp - dot) scale. */
static void grad_scores(const row_keys *keys, const grad_numbers *k, float *x, float *dx)
{
    uint16_t *to = (uint16_t *)(void *)x, *dto = (uint16_t *)(void *)dx;
    __m512 scale = _mm512_set1_ps(k->scale), lse = _mm512_set1_ps(k->lse), dot = _mm512_set1_ps(k->dot);
    __m512 factor = _mm512_set1_ps(k->factor);
    for (int64_t i = 0; i < padded_keys(keys); i += LANES) {
        __m512 p = _mm512_setzero_ps(), ds = p;
        if (i < keys->seen) {
            __mmask16 lanes = counted_lanes(keys, i);
            __m512 d = _mm512_maskz_loadu_ps(lanes, dx + i);
            ds = p = exp_lanes(_mm512_fmsub_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale, lse));
            if (keys->keeps) {
                __mmask16 kept = kept_lanes(keys, i);
                p = _mm512_maskz_mul_ps(kept, p, factor);
                d = _mm512_maskz_mul_ps(kept, d, factor);
            }
            p = _mm512_maskz_mov_ps(lanes, p);
            ds = _mm512_maskz_mul_ps(lanes, _mm512_mul_ps(ds, _mm512_sub_ps(d, dot)), scale);
        }
        store_rounded(to + i, p);
        store_rounded(dto + i, ds);
    }
}

/* Of n <= MOST_KEYS keys, bit by bit; see draw_bits. */
static void draw_kept(const stk_attention_call *call, int64_t n, int64_t h, int64_t t, int64_t s, int64_t n_keys,
                      uint32_t keeps[MOST_KEYS / 32])
{
    uint16_t bits[MOST_DRAWN];
    int32_t limit = stk_dropout_limit(call->rate);
    draw_bits(call, n, h, t, s, n_keys, bits);
    for (int64_t i = 0; i < n_keys; i += 32) {
        __mmask32 kept = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(bits + i), _mm512_set1_epi16((short)limit));
        keeps[i / 32] = limit > UINT16_MAX ? 0 : kept;
    }
}

/* The sum of a[i] * b[i]. */
static inline float dot_row(int64_t n, const uint16_t *a, const uint16_t *b)
{
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 2 * LANES) {
        __mmask32 lanes = n - i >= 2 * LANES ? ~(__mmask32)0 : ((__mmask32)1 << (n - i)) - 1;
        sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_maskz_loadu_epi16(lanes, a + i),
                               (__m512bh)_mm512_maskz_loadu_epi16(lanes, b + i));
    }
    return _mm512_reduce_add_ps(sum);
}

static inline void write_row(int64_t n, const float *x, float factor, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += LANES) {
        __mmask16 lanes = first_lanes(n - i);
        __m512 y = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_set1_ps(factor));
        _mm256_mask_storeu_epi16(to + i, lanes, (__m256i)_mm512_cvtneps_pbh(y));
    }
}

#endif
