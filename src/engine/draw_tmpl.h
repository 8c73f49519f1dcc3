/* The loops of draw.h, for draw_plain.c and draw_avx2.c: no branches, no calls, so that they become vectors.
 *
 * Polynomials: weighted least squares towards the minimax fit on the ranges named, in relative error.
 */
#include <math.h>
#include <string.h>

#include "base/philox_many.h"
#include "engine/draw.h"

enum { N_BLOCKS = STK_DRAW_CHUNK / 4, N_PAIRS = STK_DRAW_CHUNK / 2 };

/* The words of a chunk as they come, two and two. */
static void draw_words(uint64_t key, int64_t i_chunk, uint64_t pair[N_PAIRS])
{
    philox_run(key, N_BLOCKS, 0, (uint64_t)i_chunk * N_BLOCKS, pair);
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float upper_24(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* ln x for x in [2^-24, 1]: x = m * 2^e with m in [sqrt(1/2), sqrt(2)). */
static inline float log_small(float x)
{
    int32_t e = (int32_t)(bits_of_float(x) - 0x3f3504f3u) >> 23;
    float f = float_of_bits(bits_of_float(x) - ((uint32_t)e << 23)) - 1.0f, n = (float)e;
    float p = 6.746601332e-02f;
    p = p * f - 1.167564131e-01f;
    p = p * f + 1.188817460e-01f;
    p = p * f - 1.240559142e-01f;
    p = p * f + 1.421955091e-01f;
    p = p * f - 1.666799567e-01f;
    p = p * f + 2.000211873e-01f;
    p = p * f - 2.500000960e-01f;
    p = p * f + 3.333331260e-01f;
    return f * f * f * p + n * -2.12194440e-4f - 0.5f * f * f + f + n * 0.693359375f;
}

static void draw_uniform(uint64_t key, int64_t i_chunk, float factor, float *out)
{
    uint64_t pair[N_PAIRS];
    uint32_t word[STK_DRAW_CHUNK];
    draw_words(key, i_chunk, pair);
#pragma omp simd
    for (int i = 0; i < N_PAIRS; i++) {
        word[2 * i] = (uint32_t)pair[i];
        word[2 * i + 1] = (uint32_t)(pair[i] >> 32);
    }
#pragma omp simd
    for (int i = 0; i < STK_DRAW_CHUNK; i++)
        out[i] = factor * (upper_24(word[i]) * 2.0f - 1.0f);
}

static void draw_normal(uint64_t key, int64_t i_chunk, float factor, float *out)
{
    uint64_t pair[N_PAIRS];
    uint32_t low[N_PAIRS], high[N_PAIRS];
    draw_words(key, i_chunk, pair);
#pragma omp simd
    for (int i = 0; i < N_PAIRS; i++) {
        low[i] = (uint32_t)pair[i];
        high[i] = (uint32_t)(pair[i] >> 32);
    }
#pragma omp simd
    for (int i = 0; i < N_PAIRS; i++) {
        float size = factor * sqrtf(-2.0f * log_small(1.0f - upper_24(low[i])));
        /* The angle: two bits say the quarter, the others how far from its middle, within pi / 4. */
        uint32_t quarter = high[i] >> 30;
        float r = (float)(int32_t)((high[i] << 2) - 0x80000000u) * (0.785398163397448f * 0x1p-31f), s = r * r;
        float sine = ((2.717939833e-06f * s - 1.983929612e-04f) * s + 8.333329267e-03f) * s - 1.666666664e-01f;
        float cosine = ((-2.720678713e-07f * s + 2.479947861e-05f) * s - 1.388888360e-03f) * s + 4.166666662e-02f;
        sine = r + r * s * sine;
        cosine = 1.0f - 0.5f * s + s * s * cosine;
        float x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
        /* Turned by that many quarters: (c, s), (-s, c), (-c, -s), (s, -c). */
        x = float_of_bits(bits_of_float(x) ^ ((quarter ^ quarter >> 1) & 1) << 31);
        y = float_of_bits(bits_of_float(y) ^ (quarter >> 1) << 31);
        out[2 * i] = size * x;
        out[2 * i + 1] = size * y;
    }
}
