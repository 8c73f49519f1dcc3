/* GELU and its derivative in f32, exact and by tanh, for groups in bf16 (program_whole.c): relative errors are below
 * 1e-4, a twentieth of what rounding to bf16 costs. Where x is so far below 0 that the result is less than 1e-36, it is
 * 0. No branches and no calls. For element_isa.c only.
 */
#ifndef STK_DEVICE_CPU_ELEMENT_GELU_H
#define STK_DEVICE_CPU_ELEMENT_GELU_H

#include "device/cpu/element_math.h"

/* Beyond it exp_near_f32 has no result, and the normal distribution's tail counts as 0. */
#define TAIL_LIMIT 12.9f

/* The normal distribution below -a, for a >= 0: e^-p, where the polynomial is the minimax fit of -log(erfc(a / sqrt 2)
 * / 2). */
static inline float normal_tail_f32(float a)
{
    float p = 1.426549285e-09f;
    p = muladd(p, a, -1.024501102e-07f);
    p = muladd(p, a, 3.240432130e-06f);
    p = muladd(p, a, -5.977711968e-05f);
    p = muladd(p, a, 7.205175401e-04f);
    p = muladd(p, a, -6.061376090e-03f);
    p = muladd(p, a, 3.752662385e-02f);
    p = muladd(p, a, 3.178608112e-01f);
    p = muladd(p, a, 7.978668046e-01f);
    p = muladd(p, a, 6.931637785e-01f);
    float y = exp_near_f32(-p);
    return a > TAIL_LIMIT ? 0.0f : y;
}

/* Which share of x is left: the normal distribution below x. */
static inline float gelu_share_f32(float x)
{
    float tail = normal_tail_f32(fabsf(x));
    return x < 0 ? tail : 1.0f - tail;
}

static inline float gelu_f32(float x)
{
    return x * gelu_share_f32(x);
}

static inline float gelu_slope_f32(float x)
{
    float density = 0.3989422804f * exp_near_f32(-0.5f * x * x);
    density = fabsf(x) > TAIL_LIMIT ? 0.0f : density;
    return muladd(x, density, gelu_share_f32(x));
}

/* By tanh the share is 1 / (1 + e^(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
#define GELU_LINEAR 0.79788456080286536f
#define GELU_CUBIC  0.035677408136300125f

/* e^(-2 |u|). */
static inline float gelu_tanh_tail_f32(float x)
{
    float u = fabsf(x) * muladd(GELU_CUBIC * x, x, GELU_LINEAR), y = exp_near_f32(-2.0f * u);
    return u > 43.0f ? 0.0f : y;
}

static inline float gelu_tanh_f32(float x)
{
    float e = gelu_tanh_tail_f32(x), s = 1.0f / (1.0f + e);
    return x * (x < 0 ? e * s : s);
}

static inline float gelu_tanh_slope_f32(float x)
{
    float e = gelu_tanh_tail_f32(x), s = 1.0f / (1.0f + e), share = x < 0 ? e * s : s;
    float slope_of_u = muladd(6.0f * GELU_CUBIC * x, x, 2.0f * GELU_LINEAR);
    return muladd(e * s * s * x, slope_of_u, share);
}

#endif
