/* The product of two tiles of bf16 in plain C, with the bits of the processor's (amx_tile.h). */
#include "device/cpu/amx/amx_tile.h"

#ifndef __AMX_BF16__

/* A denormal number becomes a 0 of its sign. */
static float flush(uint32_t bits)
{
    float x;
    uint32_t sign = bits & 0x80000000;
    bits = bits & 0x7f800000 ? bits : sign;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Even and odd elements of a tile's rows. */
static void split(const model_tile *tile, float even[STK_AMX_ROWS][STK_AMX_ROWS], float odd[STK_AMX_ROWS][STK_AMX_ROWS])
{
    for (int i = 0; i < STK_AMX_ROWS; i++)
        for (int j = 0; j < STK_AMX_ROWS; j++) {
            even[i][j] = flush(tile->row[i][j] << 16);
            odd[i][j] = flush(tile->row[i][j] & 0xffff0000);
        }
}

/* sum + x y, rounded once: in double the product of two bf16 is exact, and the sum rounds to the same f32. */
static float add_product(float sum, float x, float y)
{
    return flush(bits_of((float)((double)x * (double)y + (double)sum)));
}

void stk_amx_model_multiply(model_tile *sums, const model_tile *a, const model_tile *b)
{
    float x[2][STK_AMX_ROWS][STK_AMX_ROWS], y[2][STK_AMX_ROWS][STK_AMX_ROWS];
    split(a, x[0], x[1]);
    split(b, y[0], y[1]);
    for (int i = 0; i < STK_AMX_ROWS; i++) {
        float even[STK_AMX_ROWS] = {0}, odd[STK_AMX_ROWS] = {0};
        for (int l = 0; l < STK_AMX_ROWS; l++)
            for (int j = 0; j < STK_AMX_ROWS; j++) {
                even[j] = add_product(even[j], x[0][i][l], y[0][l][j]);
                odd[j] = add_product(odd[j], x[1][i][l], y[1][l][j]);
            }
        for (int j = 0; j < STK_AMX_ROWS; j++) {
            float sum = flush(bits_of(even[j] + odd[j]));
            sum = flush(bits_of(flush(sums->row[i][j]) + sum));
            sums->row[i][j] = bits_of(sum);
        }
    }
}

#endif
