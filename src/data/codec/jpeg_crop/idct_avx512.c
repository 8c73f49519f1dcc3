/* Four blocks at once, one in each quarter of a register; otherwise as idct_avx2.c. */
#ifdef __x86_64__
#include "data/codec/jpeg_crop/idct.h"

#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"

/* a for the even and b for the odd words */
#define PAIR(a, b) _mm512_set1_epi32((int)((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16))

static inline __attribute__((always_inline)) __m512i shift_down(__m512i low, __m512i high, unsigned shift)
{
    return _mm512_packs_epi32(_mm512_srai_epi32(low, shift), _mm512_srai_epi32(high, shift));
}

/* v[k]: the k-th inputs of eight lines, then their k-th outputs. */
static inline __attribute__((always_inline)) void transform(__m512i v[8], const int shift)
{
    const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi32(1 << (shift - 1));
    __m512i even[4][2], odd[4][2];
    __m512i z3 = _mm512_add_epi16(v[7], v[3]), z4 = _mm512_add_epi16(v[5], v[1]);
    __m512i sum = _mm512_add_epi16(v[0], v[4]), difference = _mm512_sub_epi16(v[0], v[4]);
#define UNPACK(half, a, b) ((half) ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b))
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i in26 = UNPACK(i, v[2], v[6]), in71 = UNPACK(i, v[7], v[1]), in53 = UNPACK(i, v[5], v[3]);
        __m512i z34 = UNPACK(i, z3, z4);
        __m512i even2 = _mm512_madd_epi16(in26, PAIR(F_0_541, F_0_541 - F_1_847));
        __m512i even3 = _mm512_madd_epi16(in26, PAIR(F_0_541 + F_0_765, F_0_541));
        /* Rounded here, as each output has one of them. */
        __m512i s = _mm512_add_epi32(_mm512_srai_epi32(UNPACK(i, zero, sum), 16 - 13), half);
        __m512i d = _mm512_add_epi32(_mm512_srai_epi32(UNPACK(i, zero, difference), 16 - 13), half);
        even[0][i] = _mm512_add_epi32(s, even3);
        even[3][i] = _mm512_sub_epi32(s, even3);
        even[1][i] = _mm512_add_epi32(d, even2);
        even[2][i] = _mm512_sub_epi32(d, even2);
        __m512i w3 = _mm512_madd_epi16(z34, PAIR(F_1_175 - F_1_961, F_1_175));
        __m512i w4 = _mm512_madd_epi16(z34, PAIR(F_1_175, F_1_175 - F_0_390));
        odd[0][i] = _mm512_add_epi32(_mm512_madd_epi16(in71, PAIR(F_0_298 - F_0_899, -F_0_899)), w3);
        odd[1][i] = _mm512_add_epi32(_mm512_madd_epi16(in53, PAIR(F_2_053 - F_2_562, -F_2_562)), w4);
        odd[2][i] = _mm512_add_epi32(_mm512_madd_epi16(in53, PAIR(-F_2_562, F_3_072 - F_2_562)), w3);
        odd[3][i] = _mm512_add_epi32(_mm512_madd_epi16(in71, PAIR(-F_0_899, F_1_501 - F_0_899)), w4);
    }
#undef UNPACK
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        v[k] = shift_down(_mm512_add_epi32(even[k][0], odd[3 - k][0]), _mm512_add_epi32(even[k][1], odd[3 - k][1]),
                          (unsigned)shift);
        v[7 - k] = shift_down(_mm512_sub_epi32(even[k][0], odd[3 - k][0]), _mm512_sub_epi32(even[k][1], odd[3 - k][1]),
                              (unsigned)shift);
    }
}

/* Each quarter by itself, 8 x 8. */
static inline __attribute__((always_inline)) void transpose(__m512i v[8])
{
    __m512i a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[4 * i] = _mm512_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm512_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm512_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm512_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[2 * i] = _mm512_unpacklo_epi64(b[i], b[4 + i]);
        v[2 * i + 1] = _mm512_unpackhi_epi64(b[i], b[4 + i]);
    }
}

/* v[x]: column x of all blocks. The transposition is shorter with bytes. */
static inline __attribute__((always_inline)) void store(const __m512i v[8], uint8_t *dst, size_t stride)
{
    const __m512i rows_apart = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) /* columns i and i + 4, less 128 */
        a[i] = _mm512_packs_epi16(v[i], v[i + 4]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[i] = _mm512_unpacklo_epi8(a[2 * i], a[2 * i + 1]);
        b[2 + i] = _mm512_unpackhi_epi8(a[2 * i], a[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { /* rows 4 i to 4 i + 3, four columns each */
        a[i] = i ? _mm512_unpackhi_epi16(b[0], b[1]) : _mm512_unpacklo_epi16(b[0], b[1]);
        a[2 + i] = i ? _mm512_unpackhi_epi16(b[2], b[3]) : _mm512_unpacklo_epi16(b[2], b[3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i left = a[i / 2], right = a[2 + i / 2];
        __m512i rows = i & 1 ? _mm512_unpackhi_epi32(left, right) : _mm512_unpacklo_epi32(left, right);
        rows = _mm512_permutexvar_epi64(rows_apart, _mm512_add_epi8(rows, _mm512_set1_epi8(-128)));
        _mm256_storeu_si256((__m256i *)(void *)(dst + (size_t)(2 * i) * stride), _mm512_castsi512_si256(rows));
        _mm256_storeu_si256((__m256i *)(void *)(dst + (size_t)(2 * i + 1) * stride),
                            _mm512_extracti64x4_epi64(rows, 1));
    }
}

/* The same row of four blocks. */
static inline __m512i load_row(const int16_t *row)
{
    const __m128i *p = (const __m128i *)(const void *)row;
    __m512i v = _mm512_castsi128_si512(_mm_load_si128(p));
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_load_si128(p + 8));
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_load_si128(p + 16));
    return _mm512_mask_broadcast_i32x4(v, 0xF000, _mm_load_si128(p + 24));
}

/* Of blocks, two bits each: both set where either is. */
static inline __mmask8 whole_blocks(__mmask8 m)
{
    unsigned any = ((unsigned)m | (unsigned)m >> 1) & 0x55;
    return (__mmask8)(any | any << 1);
}

void stk_jpeg_idct_avx512(int16_t *coefs, int n_blocks, const uint16_t quant[64], uint8_t *dst, size_t stride)
{
    for (; n_blocks > 0; n_blocks -= 4, coefs += 256, dst += 32) {
        __m512i v[8], any = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            v[i] = load_row(coefs + 8 * i);
            if (i) any = _mm512_or_si512(any, v[i]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            _mm512_storeu_si512((__m512i *)(void *)coefs + i, _mm512_setzero_si512());
            v[i] = _mm512_mullo_epi16(v[i],
                                      _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)quant + i)));
        }
        /* Where rows 1 to 7 are 0 the library takes a short cut, which wraps where the long way saturates. */
        __m512i short_cut = _mm512_slli_epi16(v[0], 2);
        __mmask8 is_short = (__mmask8)~whole_blocks(_mm512_test_epi64_mask(any, any));
        if (is_short == 0xFF) {
            for (int i = 0; i < 8; i++)
                v[i] = short_cut;
        } else {
            transform(v, SHIFT_COLUMNS);
            if (is_short)
                for (int i = 0; i < 8; i++)
                    v[i] = _mm512_mask_mov_epi64(v[i], is_short, short_cut);
        }
        transpose(v);
        transform(v, SHIFT_ROWS);
        store(v, dst, stride);
    }
}
#endif
