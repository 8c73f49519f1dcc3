/* Attention's arithmetic on one row of scores in one pass, from f32 to the bf16 that the next product reads. For
 * attention_avx512bf16.c only; what the same is elsewhere is in attention_rows_tmpl.h.
 *
 * bf16 of a row lie where its f32 began, and are written behind where those are read.
 */
#ifndef STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_AVX512BF16_H
#define STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_AVX512BF16_H

#include <immintrin.h>

#include "device/cpu/attention/attention_rows.h"

enum { LANES = 16, PHILOX_ROUNDS = 10 };

/* Which keys of a row count: those seen, where the mask (NULL: none) is true. Bit by bit, what dropout keeps of them.
 */
static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

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

enum { TO_NEAREST = 0 };

/* 2^x to 2 units in the last place, whole powers exactly. A NaN stays one. */
static inline __m512 exp2_lanes(__m512 x)
{
    __m512 r = _mm512_reduce_ps(x, TO_NEAREST); /* 0 of an infinity */
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(1.326472514e-03f), r, _mm512_set1_ps(9.671512998e-03f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550733750e-02f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402224208e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931469776e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, _mm512_sub_ps(x, r));
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

/* x becomes 2^(factor * x - from); their sum. What dropout takes away counts in it. */
static inline __attribute__((always_inline)) float exp_lanes_of(const row_keys *keys, bool drops, float factor,
                                                                float from, float *x)
{
    uint16_t *to = (uint16_t *)(void *)x;
    __m512 sum = _mm512_setzero_ps(), f = _mm512_set1_ps(factor), away = _mm512_set1_ps(from);
    int64_t i = 0, whole = keys->mask ? 0 : keys->seen / LANES * LANES;
    for (; i < whole; i += LANES) {
        __m512 e = exp2_lanes(_mm512_fmsub_ps(_mm512_loadu_ps(x + i), f, away));
        sum = _mm512_add_ps(sum, e);
        store_rounded(to + i, drops ? _mm512_maskz_mov_ps(kept_lanes(keys, i), e) : e);
    }
    for (; i < keys->seen; i += LANES) {
        __mmask16 lanes = counted_lanes(keys, i);
        __m512 e = exp2_lanes(_mm512_fmsub_ps(_mm512_maskz_loadu_ps(lanes, x + i), f, away));
        e = _mm512_maskz_mov_ps(lanes, e);
        sum = _mm512_add_ps(sum, e);
        store_rounded(to + i, drops ? _mm512_maskz_mov_ps(kept_lanes(keys, i), e) : e);
    }
    for (; i < padded_keys(keys); i += LANES)
        store_rounded(to + i, _mm512_setzero_ps());
    return _mm512_reduce_add_ps(sum);
}

static float exp_row(const row_keys *keys, float factor, float from, float *x)
{
    return keys->keeps ? exp_lanes_of(keys, true, factor, from, x) : exp_lanes_of(keys, false, factor, from, x);
}

typedef struct grad_numbers {
    float scale, lse, dot;
    float factor; /* of dropout: 1 / (1 - rate) */
} grad_numbers;

/* Of 16 keys from i on, of which `lanes` count. */
static inline __attribute__((always_inline)) void grad_lanes(const row_keys *keys, const grad_numbers *k, int64_t i,
                                                             __mmask16 lanes, bool drops, float *x, float *dx)
{
    __m512 scale = _mm512_set1_ps(k->scale), factor = _mm512_set1_ps(k->factor);
    __m512 d = _mm512_maskz_loadu_ps(lanes, dx + i), p = _mm512_maskz_loadu_ps(lanes, x + i);
    p = exp2_lanes(_mm512_fmsub_ps(p, _mm512_set1_ps(k->scale * LOG2_E), _mm512_set1_ps(k->lse * LOG2_E)));
    __m512 scaled = _mm512_mul_ps(p, scale);
    if (drops) {
        __mmask16 kept = kept_lanes(keys, i);
        p = _mm512_maskz_mul_ps(kept, p, factor);
        d = _mm512_maskz_mul_ps(kept, d, factor);
    }
    store_rounded((uint16_t *)(void *)x + i, _mm512_maskz_mov_ps(lanes, p));
    d = _mm512_sub_ps(d, _mm512_set1_ps(k->dot));
    store_rounded((uint16_t *)(void *)dx + i, _mm512_maskz_mul_ps(lanes, scaled, d));
}

static inline __attribute__((always_inline)) void grad_all_lanes(const row_keys *keys, const grad_numbers *k,
                                                                 bool drops, float *x, float *dx)
{
    int64_t i = 0, whole = keys->mask ? 0 : keys->seen / LANES * LANES;
    for (; i < whole; i += LANES)
        grad_lanes(keys, k, i, (__mmask16)-1, drops, x, dx);
    for (; i < keys->seen; i += LANES)
        grad_lanes(keys, k, i, counted_lanes(keys, i), drops, x, dx);
    for (; i < padded_keys(keys); i += LANES) {
        store_rounded((uint16_t *)(void *)x + i, _mm512_setzero_ps());
        store_rounded((uint16_t *)(void *)dx + i, _mm512_setzero_ps());
    }
}

/* From scores x to weights p, and from dp (in dx) to the scores' gradients: ds = p (dp - dot) scale. */
static void grad_scores(const row_keys *keys, const grad_numbers *k, float *x, float *dx)
{
    if (keys->keeps)
        grad_all_lanes(keys, k, true, x, dx);
    else
        grad_all_lanes(keys, k, false, x, dx);
}

/* The keys of Philox's rounds, which all counters share. */
typedef struct round_keys {
    uint64_t low[PHILOX_ROUNDS], high[PHILOX_ROUNDS];
} round_keys;

static inline round_keys find_round_keys(uint64_t key)
{
    round_keys keys;
    for (uint32_t i = 0; i < PHILOX_ROUNDS; i++) {
        keys.low[i] = (uint32_t)key + i * 0x9e3779b9u;
        keys.high[i] = (uint32_t)(key >> 32) + i * 0xbb67ae85u;
    }
    return keys;
}

/* Of n <= MOST_KEYS keys, bit by bit; see draw_bits and philox_wide, of which this has what rows of weights need. */
static void draw_kept(const stk_attention_call *call, const round_keys *keys, int64_t n, int64_t h, int64_t t,
                      int64_t s, int64_t n_keys, uint32_t keeps[MOST_KEYS / 32])
{
    const __m512i m0 = _mm512_set1_epi64(0xd2511f53), m1 = _mm512_set1_epi64(0xcd9e8d57);
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    int32_t limit = stk_dropout_limit(call->rate);
    __m512i least_kept = _mm512_set1_epi16((short)limit), half = _mm512_set1_epi64(0xffffffff);
    __m512i hi = _mm512_set1_epi64(call->sample + n);
    __m512i lo = _mm512_add_epi64(
        _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
        _mm512_set1_epi64(stk_dropout_attention_element(h, call->size.t, t, call->size.s, s) / STK_DROPOUT_BLOCK));
    for (int64_t i = 0; i < n_keys; i += WIDE_LANES * STK_DROPOUT_BLOCK) {
        __m512i c0 = lo, c1 = _mm512_srli_epi64(lo, 32), c2 = hi, c3 = _mm512_srli_epi64(hi, 32);
#pragma GCC unroll 10
        for (int round = 0; round < PHILOX_ROUNDS; round++) {
            __m512i p = _mm512_mul_epu32(c0, m0), q = _mm512_mul_epu32(c2, m1);
            __m512i k0 = _mm512_set1_epi64((int64_t)keys->low[round]),
                    k1 = _mm512_set1_epi64((int64_t)keys->high[round]);
            c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(q, 32), c1, k0, 0x96);
            c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p, 32), c3, k1, 0x96);
            c1 = q;
            c3 = p;
        }
        c0 = _mm512_ternarylogic_epi64(half, c0, _mm512_slli_epi64(c1, 32), 0xca);
        c2 = _mm512_ternarylogic_epi64(half, c2, _mm512_slli_epi64(c3, 32), 0xca);
        keeps[i / 32] = _mm512_cmpge_epu16_mask(_mm512_permutex2var_epi64(c0, low, c2), least_kept);
        keeps[i / 32 + 1] = _mm512_cmpge_epu16_mask(_mm512_permutex2var_epi64(c0, high, c2), least_kept);
        if (limit > UINT16_MAX) keeps[i / 32] = keeps[i / 32 + 1] = 0;
        lo = _mm512_add_epi64(lo, _mm512_set1_epi64(WIDE_LANES));
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
