/* As color_avx2.c, 64 pixels at a time. */
#ifdef __x86_64__
#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"
#include "data/codec/jpeg_crop/mask.h"

/* Byte i of 192 bytes of interleaved pixels is channel i % 3 of pixel i / 3. */
static const uint8_t pixel_of[192] = {
#define THREE(p)  p, p, p
#define TWELVE(p) THREE(p), THREE((p) + 1), THREE((p) + 2), THREE((p) + 3)
#define FORTY8(p) TWELVE(p), TWELVE((p) + 4), TWELVE((p) + 8), TWELVE((p) + 12)
    FORTY8(0),
    FORTY8(16),
    FORTY8(32),
    FORTY8(48),
#undef THREE
#undef TWELVE
#undef FORTY8
};

/* Every third of 64 bits, from bit 0 on. */
#define THIRDS UINT64_C(0x9249249249249249)

/* n bytes of 64 pixels. */
static inline __attribute__((always_inline)) void store_interleaved(uint8_t *dst, __m512i r, __m512i g, __m512i b,
                                                                    int n)
{
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) { /* byte 64 j is of channel j % 3, as 64 is 1 more than a multiple of 3 */
        __m512i from = _mm512_loadu_si512(pixel_of + 64 * j);
        __m512i c[3] = {j == 0 ? r : j == 1 ? g : b, j == 0 ? g : j == 1 ? b : r, j == 0 ? b : j == 1 ? r : g};
        __m512i out = _mm512_permutexvar_epi8(from, c[0]);
        out = _mm512_mask_permutexvar_epi8(out, THIRDS << 1, from, c[1]);
        out = _mm512_mask_permutexvar_epi8(out, THIRDS << 2, from, c[2]);
        _mm512_mask_storeu_epi8(dst + 64 * j, stk_first_bytes(n - 64 * j), out);
    }
}

/* Constants and rounding: see color_avx2.c. */
void stk_jpeg_rgb_avx512(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *dst)
{
    const __m512i zero = _mm512_setzero_si512(), center = _mm512_set1_epi16(128);
    const __m512i half = _mm512_set1_epi32(32768);
    const __m512i to_green = _mm512_set1_epi32((int)((uint32_t)(uint16_t)-22554 | 18734U << 16));
    for (int i = 0; i < n; i += 64) {
        __mmask64 m = stk_first_bytes(n - i);
        __m512i ys = _mm512_maskz_loadu_epi8(m, y + i), red[2], green[2], blue[2];
        __m512i bs = _mm512_maskz_loadu_epi8(m, cb + i), rs = _mm512_maskz_loadu_epi8(m, cr + i);
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
#define WIDEN(x) (k ? _mm512_unpackhi_epi8(x, zero) : _mm512_unpacklo_epi8(x, zero))
            __m512i l = WIDEN(ys), b = _mm512_sub_epi16(WIDEN(bs), center), r = _mm512_sub_epi16(WIDEN(rs), center);
#undef WIDEN
            red[k] = _mm512_add_epi16(l, _mm512_mulhrs_epi16(_mm512_add_epi16(r, r), _mm512_set1_epi16(22971)));
            blue[k] = _mm512_add_epi16(l, _mm512_mulhrs_epi16(_mm512_add_epi16(b, b), _mm512_set1_epi16(29033)));
            __m512i low = _mm512_madd_epi16(_mm512_unpacklo_epi16(b, r), to_green);
            __m512i high = _mm512_madd_epi16(_mm512_unpackhi_epi16(b, r), to_green);
            low = _mm512_srai_epi32(_mm512_add_epi32(low, half), 16);
            high = _mm512_srai_epi32(_mm512_add_epi32(high, half), 16);
            green[k] = _mm512_add_epi16(_mm512_sub_epi16(l, r), _mm512_packs_epi32(low, high));
        }
        store_interleaved(dst + 3 * (int64_t)i, _mm512_packus_epi16(red[0], red[1]),
                          _mm512_packus_epi16(green[0], green[1]), _mm512_packus_epi16(blue[0], blue[1]), 3 * (n - i));
    }
}

void stk_jpeg_grey_rgb_avx512(const uint8_t *y, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i += 64) {
        __m512i l = _mm512_maskz_loadu_epi8(stk_first_bytes(n - i), y + i);
        store_interleaved(dst + 3 * (int64_t)i, l, l, l, 3 * (n - i));
    }
}
#endif
