/* 32 bytes at a time; an FF ends a step early, and the next one starts behind it. */
#ifdef __x86_64__
#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"

size_t stk_jpeg_unstuff_avx2(uint8_t *dst, size_t room, const uint8_t **src, const uint8_t *end)
{
    uint8_t *to = dst, *to_end = dst + room;
    const uint8_t *from = *src;
    const __m256i ff = _mm256_set1_epi8(-1);
    while (to < to_end && end - from > 33) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)from);
        uint32_t mask = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, ff));
        _mm256_storeu_si256((__m256i *)(void *)to, bytes);
        if (!mask) {
            from += 32;
            to += 32;
            continue;
        }
        uint32_t n = (uint32_t)__builtin_ctz(mask);
        if (from[n + 1] != 0) {
            *src = from + n;
            return (size_t)(to + n - dst);
        }
        from += n + 2;
        to += n + 1;
    }
    *src = from;
    size_t n = (size_t)(to - dst);
    return n < room ? n + stk_jpeg_unstuff_plain(to, room - n, src, end) : n;
}
#endif
