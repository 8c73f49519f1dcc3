/* Two blocks at once, one in each half of a register. */
#ifdef __x86_64__
#include "data/codec/jpeg_crop/idct.h"

#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"

/* a for the even and b for the odd words */
#define PAIR(a, b) _mm256_set1_epi32((int)((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16))

static inline __attribute__((always_inline)) __m256i shift_down(__m256i low, __m256i high, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(low, shift), _mm256_srai_epi32(high, shift));
}

/* v[k]: the k-th inputs of eight lines, then their k-th outputs. */
static inline __attribute__((always_inline)) void transform(__m256i v[8], const int shift)
{
    const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (shift - 1));
    __m256i even[4][2], odd[4][2];
    __m256i z3 = _mm256_add_epi16(v[7], v[3]), z4 = _mm256_add_epi16(v[5], v[1]);
    __m256i sum = _mm256_add_epi16(v[0], v[4]), difference = _mm256_sub_epi16(v[0], v[4]);
#define UNPACK(half, a, b) ((half) ? _mm256_unpackhi_epi16(a, b) : _mm256_unpacklo_epi16(a, b))
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256i in26 = UNPACK(i, v[2], v[6]), in71 = UNPACK(i, v[7], v[1]), in53 = UNPACK(i, v[5], v[3]);
        __m256i z34 = UNPACK(i, z3, z4);
        __m256i even2 = _mm256_madd_epi16(in26, PAIR(F_0_541, F_0_541 - F_1_847));
        __m256i even3 = _mm256_madd_epi16(in26, PAIR(F_0_541 + F_0_765, F_0_541));
        /* Rounded here, as each output has one of them. */
        __m256i s = _mm256_add_epi32(_mm256_srai_epi32(UNPACK(i, zero, sum), 16 - 13), half);
        __m256i d = _mm256_add_epi32(_mm256_srai_epi32(UNPACK(i, zero, difference), 16 - 13), half);
        even[0][i] = _mm256_add_epi32(s, even3);
        even[3][i] = _mm256_sub_epi32(s, even3);
        even[1][i] = _mm256_add_epi32(d, even2);
        even[2][i] = _mm256_sub_epi32(d, even2);
        __m256i w3 = _mm256_madd_epi16(z34, PAIR(F_1_175 - F_1_961, F_1_175));
        __m256i w4 = _mm256_madd_epi16(z34, PAIR(F_1_175, F_1_175 - F_0_390));
        odd[0][i] = _mm256_add_epi32(_mm256_madd_epi16(in71, PAIR(F_0_298 - F_0_899, -F_0_899)), w3);
        odd[1][i] = _mm256_add_epi32(_mm256_madd_epi16(in53, PAIR(F_2_053 - F_2_562, -F_2_562)), w4);
        odd[2][i] = _mm256_add_epi32(_mm256_madd_epi16(in53, PAIR(-F_2_562, F_3_072 - F_2_562)), w3);
        odd[3][i] = _mm256_add_epi32(_mm256_madd_epi16(in71, PAIR(-F_0_899, F_1_501 - F_0_899)), w4);
    }
#undef UNPACK
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        v[k] =
            shift_down(_mm256_add_epi32(even[k][0], odd[3 - k][0]), _mm256_add_epi32(even[k][1], odd[3 - k][1]), shift);
        v[7 - k] =
            shift_down(_mm256_sub_epi32(even[k][0], odd[3 - k][0]), _mm256_sub_epi32(even[k][1], odd[3 - k][1]), shift);
    }
}

/* Each half by itself, 8 x 8. */
static inline __attribute__((always_inline)) void transpose(__m256i v[8])
{
    __m256i a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[2 * i] = _mm256_unpacklo_epi64(b[i], b[4 + i]);
        v[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[4 + i]);
    }
}

/* v[x]: column x of both blocks. The transposition is shorter with bytes. */
static inline __attribute__((always_inline)) void store(const __m256i v[8], uint8_t *dst, size_t stride)
{
    __m256i a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) /* columns i and i + 4, less 128 */
        a[i] = _mm256_packs_epi16(v[i], v[i + 4]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[i] = _mm256_unpacklo_epi8(a[2 * i], a[2 * i + 1]);
        b[2 + i] = _mm256_unpackhi_epi8(a[2 * i], a[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { /* rows 4 i to 4 i + 3, four columns each */
        a[i] = i ? _mm256_unpackhi_epi16(b[0], b[1]) : _mm256_unpacklo_epi16(b[0], b[1]);
        a[2 + i] = i ? _mm256_unpackhi_epi16(b[2], b[3]) : _mm256_unpacklo_epi16(b[2], b[3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256i left = a[i / 2], right = a[2 + i / 2];
        __m256i rows = i & 1 ? _mm256_unpackhi_epi32(left, right) : _mm256_unpacklo_epi32(left, right);
        rows = _mm256_permute4x64_epi64(_mm256_add_epi8(rows, _mm256_set1_epi8(-128)), 0xD8);
        _mm_storeu_si128((__m128i *)(void *)(dst + (size_t)(2 * i) * stride), _mm256_castsi256_si128(rows));
        _mm_storeu_si128((__m128i *)(void *)(dst + (size_t)(2 * i + 1) * stride), _mm256_extracti128_si256(rows, 1));
    }
}

static inline __m256i load_pair(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(low)), _mm_load_si128(high), 1);
}

void stk_jpeg_idct_avx2(int16_t *coefs, int n_blocks, const uint16_t quant[64], uint8_t *dst, size_t stride)
{
    for (; n_blocks > 0; n_blocks -= 2, coefs += 128, dst += 16) {
        __m256i v[8], any = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            v[i] = load_pair(coefs + 8 * i, coefs + 64 + 8 * i);
            if (i) any = _mm256_or_si256(any, v[i]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            _mm256_store_si256((__m256i *)(void *)coefs + i, _mm256_setzero_si256());
            v[i] = _mm256_mullo_epi16(
                v[i], _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)quant + i)));
        }
        /* Where rows 1 to 7 are 0 the library takes a short cut, which wraps where the long way saturates. */
        __m256i short_cut = _mm256_slli_epi16(v[0], 2);
        if (_mm256_testz_si256(any, any)) {
            for (int i = 0; i < 8; i++)
                v[i] = short_cut;
        } else {
            transform(v, SHIFT_COLUMNS);
            __m128i low = _mm256_castsi256_si128(any), high = _mm256_extracti128_si256(any, 1);
            if (_mm_testz_si128(low, low))
                for (int i = 0; i < 8; i++)
                    v[i] = _mm256_blend_epi32(v[i], short_cut, 0x0F);
            else if (_mm_testz_si128(high, high))
                for (int i = 0; i < 8; i++)
                    v[i] = _mm256_blend_epi32(v[i], short_cut, 0xF0);
        }
        transpose(v);
        transform(v, SHIFT_ROWS);
        store(v, dst, stride);
    }
}
#endif
