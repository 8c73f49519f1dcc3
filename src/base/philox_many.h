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

/* Philox 4x32-10 (base/rng.h) for n counters side by side: words 0 and 1 of counter i go to the lower and upper half of
 * first[i], words 2 and 3 to second[i]. Arrays are padded to whole vectors. Upper halves hold rubbish on the way, which
 * no step moves down. */
static void philox_many(uint64_t key, int n, const uint64_t *hi, const uint64_t *lo, uint64_t *first, uint64_t *second)
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
        c0 = (c0 & 0xffffffffu) | c1 << 32;
        c2 = (c2 & 0xffffffffu) | c3 << 32;
        memcpy(first + i, &c0, sizeof(c0));
        memcpy(second + i, &c2, sizeof(c2));
    }
}

#endif
