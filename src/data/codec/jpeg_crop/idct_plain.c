#include "data/codec/jpeg_crop/idct.h"

#include <string.h>

#include "data/codec/jpeg_crop/kernels.h"

/* Eight lines at once, in loops that compilers turn into vector code: x[k][i] is input k of line i. */
typedef int16_t lines[8][8];

/* a x + b y modulo 2^32 */
static inline int32_t madd(int a, int x, int b, int y)
{
    return (int32_t)((uint32_t)(a * x) + (uint32_t)(b * y));
}

static inline int32_t add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t subtract(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static inline int16_t descale(int32_t x, int shift)
{
    x = add(x, 1 << (shift - 1)) >> shift;
    x = x < INT16_MIN ? INT16_MIN : x;
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x);
}

static inline __attribute__((always_inline)) void transform(lines x, const int shift)
{
    int32_t even[4][8], odd[4][8];
    for (int i = 0; i < 8; i++) {
        int32_t sum = (int16_t)(x[0][i] + x[4][i]) * 8192, difference = (int16_t)(x[0][i] - x[4][i]) * 8192;
        int32_t even2 = madd(F_0_541, x[2][i], F_0_541 - F_1_847, x[6][i]);
        int32_t even3 = madd(F_0_541 + F_0_765, x[2][i], F_0_541, x[6][i]);
        even[0][i] = add(sum, even3);
        even[3][i] = subtract(sum, even3);
        even[1][i] = add(difference, even2);
        even[2][i] = subtract(difference, even2);
    }
    for (int i = 0; i < 8; i++) {
        int16_t z3 = (int16_t)(x[7][i] + x[3][i]), z4 = (int16_t)(x[5][i] + x[1][i]);
        int32_t w3 = madd(F_1_175 - F_1_961, z3, F_1_175, z4), w4 = madd(F_1_175, z3, F_1_175 - F_0_390, z4);
        odd[0][i] = add(madd(F_0_298 - F_0_899, x[7][i], -F_0_899, x[1][i]), w3);
        odd[1][i] = add(madd(F_2_053 - F_2_562, x[5][i], -F_2_562, x[3][i]), w4);
        odd[2][i] = add(madd(-F_2_562, x[5][i], F_3_072 - F_2_562, x[3][i]), w3);
        odd[3][i] = add(madd(-F_0_899, x[7][i], F_1_501 - F_0_899, x[1][i]), w4);
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 8; i++) {
            x[k][i] = descale(add(even[k][i], odd[3 - k][i]), shift);
            x[7 - k][i] = descale(subtract(even[k][i], odd[3 - k][i]), shift);
        }
}

static bool all_zero(const int16_t *x, int n)
{
    int any = 0;
    for (int i = 0; i < n; i++)
        any |= x[i];
    return !any;
}

static void do_block(const int16_t *block, const uint16_t quant[64], uint8_t *dst, size_t stride)
{
    lines x, y;
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++)
            x[k][i] = (int16_t)(block[8 * k + i] * quant[8 * k + i]);
    if (all_zero(block + 8, 56)) {
        for (int k = 7; k >= 0; k--)
            for (int i = 0; i < 8; i++)
                x[k][i] = (int16_t)((uint32_t)x[0][i] << 2);
    } else
        transform(x, SHIFT_COLUMNS);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++)
            y[k][i] = x[i][k];
    transform(y, SHIFT_ROWS);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            int sample = y[k][i] + 128;
            dst[(size_t)i * stride + (size_t)k] = (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
        }
}

void stk_jpeg_idct_plain(int16_t *coefs, int n_blocks, const uint16_t quant[64], uint8_t *dst, size_t stride)
{
    for (int i = 0; i < n_blocks; i++, coefs += 64, dst += 8) {
        do_block(coefs, quant, dst, stride);
        memset(coefs, 0, 64 * sizeof(coefs[0]));
    }
}
