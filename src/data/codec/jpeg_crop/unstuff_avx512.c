/* 64 bytes at a time: the zeros behind FFs are squeezed out (VBMI2). The squeezed register is stored whole, since
 * squeezing straight into memory is slow on some processors. */
#ifdef __x86_64__
#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"

size_t stk_jpeg_unstuff_avx512(uint8_t *dst, size_t room, const uint8_t **src, const uint8_t *end)
{
    uint8_t *to = dst, *to_end = dst + room;
    const uint8_t *from = *src;
    const __m512i ff = _mm512_set1_epi8(-1);
    while (to < to_end && end - from > 65) {
        __m512i bytes = _mm512_loadu_si512(from), next = _mm512_loadu_si512(from + 1);
        __mmask64 is_ff = _mm512_cmpeq_epi8_mask(bytes, ff);
        __mmask64 is_marker = is_ff & _mm512_test_epi8_mask(next, next);
        if (__builtin_expect(is_marker != 0, 0)) break;
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(~(is_ff << 1), bytes));
        to += 64 - __builtin_popcountll(is_ff << 1);
        from += 64 + (is_ff >> 63); /* with the zero of an FF at the end */
    }
    *src = from;
    size_t n = (size_t)(to - dst);
    return n < room ? n + stk_jpeg_unstuff_avx2(to, room - n, src, end) : n;
}
#endif
