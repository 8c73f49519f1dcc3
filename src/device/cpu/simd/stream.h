/* Stores past the caches, where the instruction set that a file is built for has them: a line that is written whole is
 * then not fetched first. For what is too large to be in a cache when it is read. */
#ifndef STK_DEVICE_CPU_SIMD_STREAM_H
#define STK_DEVICE_CPU_SIMD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { STK_LINE_BYTES = 64 };

/* Results this large are gone from the caches before they are read. */
static inline bool stk_is_past_caches(size_t bytes)
{
    return bytes >= (size_t)8 << 20;
}

/* Whole lines; `to` begins one, `from` is aligned as much. */
static inline void stk_stream(void *to, const void *from, size_t bytes)
{
    char *dst = to;
    const char *src = from;
#if defined(__AVX512F__)
    for (size_t at = 0; at < bytes; at += 64)
        _mm512_stream_si512((__m512i *)(void *)(dst + at), _mm512_load_si512(src + at));
#elif defined(__AVX__)
    for (size_t at = 0; at < bytes; at += 32)
        _mm256_stream_si256((__m256i *)(void *)(dst + at),
                            _mm256_load_si256((const __m256i *)(const void *)(src + at)));
#elif defined(__SSE2__)
    for (size_t at = 0; at < bytes; at += 16)
        _mm_stream_si128((__m128i *)(void *)(dst + at), _mm_load_si128((const __m128i *)(const void *)(src + at)));
#else
    memcpy(dst, src, bytes);
#endif
}

/* Behind the last of them, before another thread may be told. */
static inline void stk_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
