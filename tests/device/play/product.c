/* See product.h. */
#include "device/play/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t play_type_bytes(int type)
{
    return type == TYPE_F32 ? 4 : 2;
}

/* --- 16 bits --- */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000 | rest << 13);
    if (exponent) return float_of(sign | (exponent + 112) << 23 | rest << 13);
    return float_of(sign | bits_of((float)rest * 0x1p-24f));
}

/* To nearest, ties to even: by adding what makes the wanted bit the last one. */
static uint16_t to_f16(float x)
{
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | (((size + 0xfff + (size >> 13 & 1)) >> 13) - (112 << 10)));
}

static uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    if (x != x) return (uint16_t)(bits >> 16 | 0x7fc0);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float play_load(uint64_t at, int64_t i, int type)
{
    const void *p = (const void *)(uintptr_t)at;
    if (type == TYPE_F32) return ((const float *)p)[i];
    const uint16_t h = ((const uint16_t *)p)[i];
    return type == TYPE_F16 ? from_f16(h) : float_of((uint32_t)h << 16);
}

float play_round_to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7f800000) == 0x7f800000) return x;
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

void play_store(uint64_t at, int64_t i, int type, float x)
{
    void *p = (void *)(uintptr_t)at;
    if (type == TYPE_F32)
        ((float *)p)[i] = x;
    else
        ((uint16_t *)p)[i] = type == TYPE_F16 ? to_f16(x) : to_bf16(x);
}

/* --- the product --- */

/* op(matrix) as f32, [n_columns][n_rows]. */
static float *unpack(const play_product *p, const play_matrix *from, int64_t batch, int64_t n_rows, int64_t n_columns,
                     int transpose)
{
    float *out = malloc((size_t)(n_rows * n_columns + 1) * sizeof(float));
    const uint64_t at = from->at + (uint64_t)(batch * from->stride) * play_type_bytes(p->type);
    if (!out) abort();
    for (int64_t j = 0; j < n_columns; j++)
        for (int64_t i = 0; i < n_rows; i++) {
            const float x = play_load(at, transpose ? i * from->ld + j : j * from->ld + i, p->type);
            out[j * n_rows + i] = p->tf32 ? play_round_to_tf32(x) : x;
        }
    return out;
}

/* One column of D: out[m] = A b. */
static void multiply_column(const play_product *p, const float *a, const float *b, float *restrict out)
{
    const int64_t m = p->m;
    memset(out, 0, (size_t)m * sizeof(float));
    for (int64_t k = 0; k < p->k; k++) {
        const float *restrict column = a + k * m;
        const float x = b[k];
        for (int64_t i = 0; i < m; i++)
            out[i] += column[i] * x;
    }
}

static float end(const play_product *p, float sum, int64_t i, uint64_t c, int64_t at)
{
    float x = p->alpha * sum;
    if (p->beta != 0) x += p->beta * play_load(c, at, p->type_d);
    if (p->has_bias) x += play_load(p->bias, i, p->type_bias);
    if (p->relu) x = x > 0 || x != x ? x : 0;
    if (p->gelu) x = 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x;
}

static void multiply_one(const play_product *p, int64_t batch, float *column)
{
    float *a = unpack(p, &p->a, batch, p->m, p->k, p->transpose_a);
    float *b = unpack(p, &p->b, batch, p->k, p->n, p->transpose_b);
    const size_t bytes = play_type_bytes(p->type_d);
    const uint64_t c = p->c.at + (uint64_t)(batch * p->c.stride) * bytes;
    const uint64_t d = p->d.at + (uint64_t)(batch * p->d.stride) * bytes;
    for (int64_t j = 0; j < p->n; j++) {
        multiply_column(p, a, b + j * p->k, column);
        for (int64_t i = 0; i < p->m; i++)
            play_store(d, j * p->d.ld + i, p->type_d, end(p, column[i], i, c, j * p->c.ld + i));
    }
    free(a);
    free(b);
}

/* The workspace holds nothing afterwards: what lies in it is somebody else's by mistake. */
void play_multiply(void *product)
{
    const play_product *p = product;
    float *column = malloc((size_t)(p->m + 1) * sizeof(float));
    if (!column) abort();
    if (p->workspace_bytes) memset((void *)(uintptr_t)p->workspace, 0xff, p->workspace_bytes);
    for (int64_t batch = 0; batch < p->n_batch; batch++)
        multiply_one(p, batch, column);
    free(column);
}
