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

/* Philox 4x32-10 (base/rng.h) for n counters side by side: words 0 and 1 of counter i go to the lower and upper half of
 * pairs[2 * i], words 2 and 3 to pairs[2 * i + 1]. Arrays are padded to whole vectors. Upper halves hold rubbish on the
 * way, which no step moves down. */
static void philox_many(uint64_t key, int n, const uint64_t *hi, const uint64_t *lo, uint64_t *pairs)
{
    const wide zero = {0}, m0 = zero + 0xd2511f53u, m1 = zero + 0xcd9e8d57u;
    for (int i = 0; i < n; i += WIDE_LANES) {
        wide c0, c2;
        memcpy(&c0, lo + i, sizeof(c0));
        memcpy(&c2, hi + i, sizeof(c2));
        wide c1 = c0 >> 32, c3 = c2 >> 32;
        wide k0 = zero + key, k1 = zero + (key >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
            wide p = multiply_low(c0, m0), q = multiply_low(c2, m1);
            c0 = (q >> 32) ^ c1 ^ k0;
            c1 = q;
            c2 = (p >> 32) ^ c3 ^ k1;
            c3 = p;
        }
        store_in_turn(pairs + 2 * i, (c0 & 0xffffffffu) | c1 << 32, (c2 & 0xffffffffu) | c3 << 32);
    }
}

/* The 16-bit parts of n pairs of words, the lowest of each first. */
static inline void split_pairs(int n, const uint64_t *pairs, uint16_t *parts)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(parts, pairs, (size_t)n * sizeof(*pairs));
#else
    for (int i = 0; i < 4 * n; i++)
        parts[i] = (uint16_t)(pairs[i / 4] >> 16 * (i % 4));
#endif
}

#endif
