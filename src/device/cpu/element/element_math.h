/* exp, log, tanh and so on for f32, written so that a loop around them vectorises: no branches, no calls. Errors are
 * below 2 units in the last place; NaN, infinities and zeros give what libm gives. For *_isa.c only. Where a product
 * and a sum are to be rounded once is written out, and not left to the compiler.
 *
 * Polynomials: weighted least squares towards the minimax fit on the ranges named, in relative error.
 */
#ifndef STK_DEVICE_CPU_ELEMENT_ELEMENT_MATH_H
#define STK_DEVICE_CPU_ELEMENT_ELEMENT_MATH_H

#include "device/cpu/simd/half.h"

/* a * b + c, rounded once where the processor can. */
static inline float muladd(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* 1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits. */
#define ROUNDER 12582912.0f

/* e^x = 2^n * e^r with |r| <= ln 2 / 2: gives e^r - 1, and n in the low bits of *rounded. */
static inline float expm1_rest_f32(float x, float *rounded)
{
    *rounded = muladd(x, 1.44269504f, ROUNDER);
    float n = *rounded - ROUNDER, r = muladd(n, -0.693359375f, x);
    r = muladd(n, 2.12194440e-4f, r);
    float p = 1.381314236e-03f;
    p = muladd(p, r, 8.369419043e-03f);
    p = muladd(p, r, 4.166845683e-02f);
    p = muladd(p, r, 1.666651479e-01f);
    p = muladd(p, r, 4.999999305e-01f);
    return muladd(p, r * r, r);
}

/* The same with e^r itself. */
static inline float exp_rest_f32(float x, float *rounded)
{
    return expm1_rest_f32(x, rounded) + 1.0f;
}

/* Two factors of 2^n reach denormals and infinity without special cases. */
static inline float exp_f32(float x)
{
    float clamped = x > 89.0f ? 89.0f : x, rounded;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    float y = exp_rest_f32(clamped, &rounded);
    int32_t k = bits_of(rounded) - bits_of(ROUNDER), half = k >> 1;
    return y * float_of((int32_t)((uint32_t)(half + 127) << 23)) *
           float_of((int32_t)((uint32_t)(k - half + 127) << 23));
}

/* The same bits where |x| < 87: nothing to hold, and n is added to the exponent. Of a NaN anything may come. */
static inline float exp_near_f32(float x)
{
    float rounded, y = exp_rest_f32(x, &rounded);
    /* ROUNDER's own bits are shifted out. */
    return float_of((int32_t)((uint32_t)bits_of(y) + ((uint32_t)bits_of(rounded) << 23)));
}

/* 2^n (e^r - 1) + (2^n - 1), in halves, since 2^128 is none. Below -30 it is -1. */
static inline float expm1_f32(float x)
{
    float clamped = x > 89.0f ? 89.0f : x, rounded;
    clamped = clamped < -30.0f ? -30.0f : clamped;
    float y = expm1_rest_f32(clamped, &rounded);
    int32_t k = bits_of(rounded) - bits_of(ROUNDER);
    float half = float_of((int32_t)((uint32_t)(k + 126) << 23));
    y = 2.0f * muladd(half, y, half - 0.5f);
    return x == 0 ? x : y;
}

/* log(m 2^e) of m = 1 + f in [sqrt(1/2), sqrt(2)), where f is short of `rest`. */
static inline float log_of_parts_f32(float f, float e, float rest)
{
    float p = 6.746601332e-02f;
    p = muladd(p, f, -1.167564131e-01f);
    p = muladd(p, f, 1.188817460e-01f);
    p = muladd(p, f, -1.240559142e-01f);
    p = muladd(p, f, 1.421955091e-01f);
    p = muladd(p, f, -1.666799567e-01f);
    p = muladd(p, f, 2.000211873e-01f);
    p = muladd(p, f, -2.500000960e-01f);
    p = muladd(p, f, 3.333331260e-01f);
    float y = muladd(e, -2.12194440e-4f, f * f * f * p) + rest;
    return muladd(e, 0.693359375f, muladd(-0.5f * f, f, y) + f);
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)). */
static inline float log_f32(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x, shift = x < 1.17549435e-38f ? 23.0f : 0.0f;
    int32_t k = (int32_t)((uint32_t)bits_of(scaled) - 0x3f3504f3u) >> 23;
    float f = float_of((int32_t)((uint32_t)bits_of(scaled) - ((uint32_t)k << 23))) - 1.0f, e = (float)k - shift;
    float y = log_of_parts_f32(f, e, -0.0f);
    y = x == 0 ? -INFINITY : y;
    y = x < 0 || x != x ? NAN : y;
    return x == INFINITY ? x : y;
}

/* log(u) of u = 1 + x, and what that sum lost, divided by u. */
static inline float log1p_f32(float x)
{
    float u = 1.0f + x, lost = x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    int32_t k = (int32_t)((uint32_t)bits_of(u) - 0x3f3504f3u) >> 23;
    float f = float_of((int32_t)((uint32_t)bits_of(u) - ((uint32_t)k << 23))) - 1.0f;
    float y = log_of_parts_f32(f, (float)k, lost / u);
    y = x == -1.0f ? -INFINITY : y;
    y = x < -1.0f || x != x ? NAN : y;
    return x == INFINITY || x == 0 ? x : y;
}

static inline float sigmoid_f32(float x)
{
    /* Of the negative half only, so that nothing overflows and small results keep their precision. */
    float e = exp_f32(-fabsf(x)), y = 1.0f / (1.0f + e);
    return x < 0 ? e * y : y;
}

static inline float tanh_f32(float x)
{
    float size = fabsf(x), s = x * x;
    float p = -5.717036561e-03f;
    p = muladd(p, s, 2.065057900e-02f);
    p = muladd(p, s, -5.374349526e-02f);
    p = muladd(p, s, 1.333149125e-01f);
    p = muladd(p, s, -3.333328392e-01f);
    float small = muladd(x, s * p, x);
    /* From 10 on it is 1. */
    float near = size > 10.0f ? 10.0f : size;
    float large = copysignf(1.0f - 2.0f / (exp_near_f32(2.0f * near) + 1.0f), x);
    return size >= 0.625f ? large : small;
}

static inline float erf_f32(float x)
{
    float size = fabsf(x), s = x * x, t = size > 4.0f ? 4.0f : size;
    float p = 7.889119538e-05f;
    p = muladd(p, s, -8.020841282e-04f);
    p = muladd(p, s, 5.189535340e-03f);
    p = muladd(p, s, -2.685444459e-02f);
    p = muladd(p, s, 1.128360018e-01f);
    p = muladd(p, s, -3.761262714e-01f);
    p = muladd(p, s, 1.283791659e-01f);
    float q = 3.702367329e-06f;
    q = muladd(q, t, -3.027358978e-05f);
    q = muladd(q, t, -1.290004640e-04f);
    q = muladd(q, t, 3.153898028e-03f);
    q = muladd(q, t, -2.304399932e-02f);
    q = muladd(q, t, 1.056216129e-01f);
    q = muladd(q, t, 6.354358496e-01f);
    q = muladd(q, t, 1.128593720e+00f);
    float large = copysignf(1.0f - exp_near_f32(-q * t), x);
    large = size > 4.0f ? copysignf(1.0f, x) : large;
    return size < 1.0f ? muladd(x, p, x) : x != x ? x : large;
}

/* Sine of x + quarter * pi/2, in double inside; right for |x| up to TRIG_LIMIT. */
#define TRIG_LIMIT 1e5f
static inline float trig_f32(float x, int32_t quarter)
{
    double rounded = (double)x * 0.63661977236758134308 + 6755399441055744.0, n = rounded - 6755399441055744.0;
    double r = (double)x - n * 1.57079632679489661923, s = r * r;
    double sine = ((2.717939833e-06 * s - 1.983929612e-04) * s + 8.333329267e-03) * s - 1.666666664e-01;
    double cosine = ((-2.720678713e-07 * s + 2.479947861e-05) * s - 1.388888360e-03) * s + 4.166666662e-02;
    sine = r + r * s * sine;
    cosine = 1.0 - 0.5 * s + s * s * cosine;
    int64_t k;
    memcpy(&k, &rounded, sizeof(k));
    k += quarter;
    double y = k & 1 ? cosine : sine;
    return (float)(k & 2 ? -y : y);
}

#endif
