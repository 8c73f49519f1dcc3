/* Philox for many counters at a time, with the vectors that the including file is built for. */
#ifndef STK_BASE_PHILOX_MANY_H
#define STK_BASE_PHILOX_MANY_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDE_BYTES 64
#elif defined(__AVX2__)
#define WIDE_BYTES 32
#else
#define WIDE_BYTES 16
#endif

/* 64-bit lanes whose lower halves count: a product of two such is one instruction. */
typedef uint64_t wide __attribute__((vector_size(WIDE_BYTES)));
enum { WIDE_LANES = WIDE_BYTES / 8 };

/* The whole products of the lower halves. */
static inline wide multiply_low(wide a, wide b)
{
#if defined(__AVX512F__)
    return (wide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

/* to[2 * i] = first[i], to[2 * i + 1] = second[i]. */
static inline void store_in_turn(uint64_t *to, wide first, wide second)
{
#if defined(__AVX512F__)
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64((__m512i)first, low, (__m512i)second));
    _mm512_storeu_si512(to + WIDE_LANES, _mm512_permutex2var_epi64((__m512i)first, high, (__m512i)second));
#else
    for (int i = 0; i < WIDE_LANES; i++) {
        to[2 * i] = first[i];
        to[2 * i + 1] = second[i];
    }
#endif
}

/* Philox 4x32-10 (base/rng.h) for a vector of counters: words 0 and 1 of counter i go to the lower and upper half of
 * pairs[2 * i], words 2 and 3 to pairs[2 * i + 1]. Upper halves hold rubbish on the way, which no step moves down. */
static inline void philox_wide(uint64_t key, wide hi, wide lo, uint64_t *pairs)
{
    const wide zero = {0}, m0 = zero + 0xd2511f53u, m1 = zero + 0xcd9e8d57u;
    wide c0 = lo, c1 = lo >> 32, c2 = hi, c3 = hi >> 32;
    wide k0 = zero + key, k1 = zero + (key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        wide p = multiply_low(c0, m0), q = multiply_low(c2, m1);
        c0 = (q >> 32) ^ c1 ^ k0;
        c1 = q;
        c2 = (p >> 32) ^ c3 ^ k1;
        c3 = p;
    }
    store_in_turn(pairs, (c0 & 0xffffffffu) | c1 << 32, (c2 & 0xffffffffu) | c3 << 32);
}

/* For n counters from anywhere; arrays are padded to whole vectors. */
static inline void philox_many(uint64_t key, int n, const uint64_t *hi, const uint64_t *lo, uint64_t *pairs)
{
    for (int i = 0; i < n; i += WIDE_LANES) {
        wide c0, c2;
        memcpy(&c0, lo + i, sizeof(c0));
        memcpy(&c2, hi + i, sizeof(c2));
        philox_wide(key, c2, c0, pairs + 2 * i);
    }
}

/* For n counters (hi, lo), (hi, lo + 1), ...; pairs is padded to whole vectors. */
static inline void philox_run(uint64_t key, int n, uint64_t hi, uint64_t lo, uint64_t *pairs)
{
    const wide zero = {0};
    wide steps;
    for (int i = 0; i < WIDE_LANES; i++)
        steps[i] = (uint64_t)i;
    for (int i = 0; i < n; i += WIDE_LANES)
        philox_wide(key, zero + hi, zero + (lo + (uint64_t)i) + steps, pairs + 2 * i);
}

/* The 16-bit parts of n pairs of words, the lowest of each first; parts may be pairs. */
static inline void split_pairs(int n, const uint64_t *pairs, void *parts)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (parts != (const void *)pairs) memcpy(parts, pairs, (size_t)n * sizeof(*pairs));
#else
    for (int i = 0; i < n; i++) {
        uint64_t pair = pairs[i];
        uint16_t of_pair[4] = {(uint16_t)pair, (uint16_t)(pair >> 16), (uint16_t)(pair >> 32), (uint16_t)(pair >> 48)};
        memcpy((char *)parts + i * (int)sizeof(pair), of_pair, sizeof(of_pair));
    }
#endif
}

#endif
