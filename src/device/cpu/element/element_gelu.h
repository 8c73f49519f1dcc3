/* GELU and its gradient, exact and by tanh, where they are one loop (program_whole.c). No branches and no calls. For
 * element_isa.c only.
 *
 * For groups in bf16: relative errors are below 1e-4, a twentieth of what rounding to bf16 costs. Where x is so far
 * below 0 that the result is less than 1e-36, it is 0. For groups in f32, at the end: what the instructions of the
 * group give, one by one.
 */
#ifndef STK_DEVICE_CPU_ELEMENT_ELEMENT_GELU_H
#define STK_DEVICE_CPU_ELEMENT_ELEMENT_GELU_H

#include "device/cpu/element/element_math.h"

/* 2^x for -126 < x <= 1, off by 3e-6 at most: a shorter polynomial than exp's, in pairs, which wait less for each
 * other.
 */
static inline float exp2_short_f32(float x)
{
    float rounded = x + ROUNDER, r = x - (rounded - ROUNDER), rr = r * r;
    float low = muladd(6.931218147e-01f, r, 9.999992614e-01f), high = muladd(5.591786030e-02f, r, 2.402474483e-01f);
    float p = muladd(muladd(9.570101698e-03f, rr, high), rr, low);
    return float_of((int32_t)((uint32_t)bits_of(p) + ((uint32_t)bits_of(rounded) << 23)));
}

#define LOG2_E 1.44269504f

/* Beyond it 2^p is no normal number, and the normal distribution's tail counts as 0. */
#define TAIL_LIMIT 12.9f

/* The normal distribution below -a, for a >= 0: 2^-p, where the polynomial is the minimax fit of -log2(erfc(a / sqrt 2)
 * / 2). */
static inline float normal_tail_f32(float a)
{
    float a2 = a * a, a4 = a2 * a2;
    float p01 = muladd(1.151078482e+00f, a, 1.000023946e+00f), p23 = muladd(5.413947413e-02f, a, 4.585762160e-01f);
    float p45 = muladd(1.039487082e-03f, a, -8.744717226e-03f), p67 = muladd(4.674955364e-06f, a, -8.624015412e-05f);
    float p89 = muladd(2.058075579e-09f, a, -1.478042659e-07f);
    float p = muladd(muladd(p67, a2, p45), a4, muladd(p23, a2, p01));
    float y = exp2_short_f32(-muladd(p89, a4 * a4, p));
    return a > TAIL_LIMIT ? 0.0f : y;
}

/* Which share of x is left: the normal distribution below x. */
static inline float gelu_share_f32(float x)
{
    float tail = normal_tail_f32(fabsf(x));
    return x < 0 ? tail : 1.0f - tail;
}

/* The derivative, by the share at x. */
static inline float gelu_slope_f32(float x, float share)
{
    float density = 0.3989422804f * exp2_short_f32(-0.5f * LOG2_E * x * x);
    density = fabsf(x) > TAIL_LIMIT ? 0.0f : density;
    return muladd(x, density, share);
}

/* By tanh the share is 1 / (1 + e^(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
#define GELU_LINEAR 0.79788456080286536f
#define GELU_CUBIC  0.035677408136300125f

/* e^(-2 |u|). */
static inline float gelu_tanh_tail_f32(float x)
{
    float u = fabsf(x) * muladd(GELU_CUBIC * x, x, GELU_LINEAR), y = exp2_short_f32(-2.0f * LOG2_E * u);
    return u > 43.0f ? 0.0f : y;
}

static inline float gelu_tanh_share_f32(float x)
{
    float e = gelu_tanh_tail_f32(x), s = 1.0f / (1.0f + e);
    return x < 0 ? e * s : s;
}

static inline float gelu_tanh_slope_f32(float x, float share)
{
    float slope_of_u = muladd(6.0f * GELU_CUBIC * x, x, 2.0f * GELU_LINEAR);
    return muladd((share - share * share) * x, slope_of_u, share);
}

/* --- f32: operations and their order are those of program_whole.c --- */

static inline float gelu_curve_f32(float x)
{
    return erf_f32(x * 0.70710678118654752f);
}

static inline float gelu_tanh_curve_f32(float x)
{
    return tanh_f32(x * (x * x * GELU_CUBIC + GELU_LINEAR));
}

static inline float share_of_f32(float curve)
{
    return (curve + 1.0f) * 0.5f;
}

static inline float gelu_grad_f32(float x, float dy, float curve)
{
    float u = x * 0.70710678118654752f;
    float density = dy * x * 0.5f * 1.12837916709551257f * exp_f32(-(u * u)) * 0.70710678118654752f;
    return dy * share_of_f32(curve) + density;
}

static inline float gelu_tanh_grad_f32(float x, float dy, float curve)
{
    float d = dy * x * 0.5f * (-(curve * curve) + 1.0f);
    float by_factor = d * (x * x * GELU_CUBIC + GELU_LINEAR), by_square = d * x * GELU_CUBIC * (x * 2.0f);
    return dy * share_of_f32(curve) + by_factor + by_square;
}

#endif
