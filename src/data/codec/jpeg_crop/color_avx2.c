#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#include "data/codec/jpeg_crop/kernels.h"

/* Byte i of the j-th 16 bytes of interleaved pixels is channel (16 j + i) % 3 of pixel (16 j + i) / 3. */
#define FROM(j, i, c) ((16 * (j) + (i)) % 3 == (c) ? (16 * (j) + (i)) / 3 : -1)
#define FROM_ROW(j, c)                                                                                                 \
    _mm256_broadcastsi128_si256(_mm_setr_epi8(FROM(j, 0, c), FROM(j, 1, c), FROM(j, 2, c), FROM(j, 3, c),              \
                                              FROM(j, 4, c), FROM(j, 5, c), FROM(j, 6, c), FROM(j, 7, c),              \
                                              FROM(j, 8, c), FROM(j, 9, c), FROM(j, 10, c), FROM(j, 11, c),            \
                                              FROM(j, 12, c), FROM(j, 13, c), FROM(j, 14, c), FROM(j, 15, c)))

static inline __attribute__((always_inline)) void store_interleaved(uint8_t *dst, __m256i r, __m256i g, __m256i b)
{
    __m256i out[3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++)
        out[j] = _mm256_or_si256(
            _mm256_or_si256(_mm256_shuffle_epi8(r, FROM_ROW(j, 0)), _mm256_shuffle_epi8(g, FROM_ROW(j, 1))),
            _mm256_shuffle_epi8(b, FROM_ROW(j, 2)));
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_permute2x128_si256(out[0], out[1], 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(dst + 32), _mm256_permute2x128_si256(out[2], out[0], 0x30));
    _mm256_storeu_si256((__m256i *)(void *)(dst + 64), _mm256_permute2x128_si256(out[1], out[2], 0x31));
}

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* 32 pixels. The multiplications round (2 x c + 2^14) >> 15; with these constants that equals libjpeg's tables for all
 * x of 8 bits (1.402 and 1.772, found by trying all). Green needs 32 bits: 0.71414 is taken as 1 - 0.28586. */
static inline __attribute__((always_inline)) void convert(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                                                          uint8_t *dst)
{
    const __m256i zero = _mm256_setzero_si256(), center = _mm256_set1_epi16(128);
    const __m256i half = _mm256_set1_epi32(32768);
    const __m256i to_green = _mm256_set1_epi32((int)((uint32_t)(uint16_t)-22554 | 18734U << 16));
    __m256i ys = load(y), bs = load(cb), rs = load(cr), red[2], green[2], blue[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
#define WIDEN(x) (i ? _mm256_unpackhi_epi8(x, zero) : _mm256_unpacklo_epi8(x, zero))
        __m256i l = WIDEN(ys), b = _mm256_sub_epi16(WIDEN(bs), center), r = _mm256_sub_epi16(WIDEN(rs), center);
#undef WIDEN
        red[i] = _mm256_add_epi16(l, _mm256_mulhrs_epi16(_mm256_add_epi16(r, r), _mm256_set1_epi16(22971)));
        blue[i] = _mm256_add_epi16(l, _mm256_mulhrs_epi16(_mm256_add_epi16(b, b), _mm256_set1_epi16(29033)));
        __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(b, r), to_green);
        __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(b, r), to_green);
        low = _mm256_srai_epi32(_mm256_add_epi32(low, half), 16);
        high = _mm256_srai_epi32(_mm256_add_epi32(high, half), 16);
        green[i] = _mm256_add_epi16(_mm256_sub_epi16(l, r), _mm256_packs_epi32(low, high));
    }
    store_interleaved(dst, _mm256_packus_epi16(red[0], red[1]), _mm256_packus_epi16(green[0], green[1]),
                      _mm256_packus_epi16(blue[0], blue[1]));
}

void stk_jpeg_rgb_avx2(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *dst)
{
    int i = 0;
    for (; i + 32 <= n; i += 32)
        convert(y + i, cb + i, cr + i, dst + 3 * i);
    if (i < n) {
        uint8_t rest[96];
        convert(y + i, cb + i, cr + i, rest);
        memcpy(dst + 3 * i, rest, 3 * (size_t)(n - i));
    }
}

void stk_jpeg_grey_rgb_avx2(const uint8_t *y, int n, uint8_t *dst)
{
    int i = 0;
    for (; i + 32 <= n; i += 32)
        store_interleaved(dst + 3 * i, load(y + i), load(y + i), load(y + i));
    if (i < n) {
        uint8_t rest[96];
        store_interleaved(rest, load(y + i), load(y + i), load(y + i));
        memcpy(dst + 3 * i, rest, 3 * (size_t)(n - i));
    }
}
#endif
