/* Functions of one number over all of a float dtype: every exponent, both signs, denormals, zeros, infinities and NaN,
 * compared with libm in long double. The error is in units of the last place of the exact result.
 *
 *   test_ulps                   few numbers of each exponent; fails above MOST_ULPS
 *   test_ulps DEVICE N          N numbers of each exponent, as lines "DEVICE DTYPE FUNCTION ULPS AT" for tools/ulps.py
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/engine.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/nn.h"

#define MOST_ULPS 4.0

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* --- what is exact --- */

static long double negl(long double x)
{
    return -x;
}

static long double rsqrtl(long double x)
{
    return 1 / sqrtl(x);
}

static long double reciprocall(long double x)
{
    return 1 / x;
}

static long double squarel(long double x)
{
    return x * x;
}

static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double relul(long double x)
{
    return x <= 0 ? 0 : x;
}

static long double signl(long double x)
{
    return (long double)(x > 0) - (long double)(x < 0);
}

static long double softplusl(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double elul(long double x)
{
    return x > 0 ? x : expm1l(x);
}

static const struct {
    const char *name;
    stk_value (*build)(stk_value x);
    long double (*exact)(long double x);
} functions[] = {
    {"neg", stk_neg, negl},          {"abs", stk_abs, fabsl},          {"exp", stk_exp, expl},
    {"expm1", stk_expm1, expm1l},    {"log", stk_log, logl},           {"log1p", stk_log1p, log1pl},
    {"sqrt", stk_sqrt, sqrtl},       {"rsqrt", stk_rsqrt, rsqrtl},     {"reciprocal", stk_reciprocal, reciprocall},
    {"square", stk_square, squarel}, {"tanh", stk_tanh, tanhl},        {"sigmoid", stk_sigmoid, sigmoidl},
    {"relu", stk_relu, relul},       {"sign", stk_sign, signl},        {"erf", stk_erf, erfl},
    {"sin", stk_sin, sinl},          {"cos", stk_cos, cosl},           {"floor", stk_floor, floorl},
    {"ceil", stk_ceil, ceill},       {"round", stk_round, nearbyintl}, {"softplus", stk_softplus, softplusl},
    {"elu", stk_elu, elul},
};
enum { N_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

/* --- numbers --- */

typedef struct format {
    stk_dtype dtype;
    int digits, least, n_exponents; /* of bits; the exponent of the least normal number as frexp has it */
    long double most;
} format;

static const format formats[] = {{STK_F32, FLT_MANT_DIG, FLT_MIN_EXP, 256, FLT_MAX},
                                 {STK_F64, DBL_MANT_DIG, DBL_MIN_EXP, 2048, DBL_MAX}};

/* A mixed-up i. */
static uint64_t mix(uint64_t i)
{
    i *= 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 31) * 0xbf58476d1ce4e5b9u;
    return i ^ i >> 29;
}

/* Number i of n of an exponent; the first ends in zeros, the last in ones. */
static void store(const format *f, void *x, int64_t at, bool negative, int exponent, int i, int n)
{
    int digits = f->digits - 1, width = f->dtype == STK_F32 ? 32 : 64;
    uint64_t mask = ((uint64_t)1 << digits) - 1, low = i == 0 ? 0 : i == n - 1 ? mask : mix((uint64_t)at) & mask;
    uint64_t bits = (uint64_t)negative << (width - 1) | (uint64_t)exponent << digits | low;
    uint32_t narrow = (uint32_t)bits;
    if (f->dtype == STK_F32)
        memcpy((float *)x + at, &narrow, sizeof(narrow));
    else
        memcpy((double *)x + at, &bits, sizeof(bits));
}

static long double load(const format *f, const void *x, int64_t i)
{
    return f->dtype == STK_F32 ? (long double)((const float *)x)[i] : (long double)((const double *)x)[i];
}

static double error_of(const format *f, long double got, long double exact)
{
    int e;
    if (isnan(got) || isnan(exact)) return isnan(got) && isnan(exact) ? 0 : INFINITY;
    /* What rounds to infinity lies half a unit above the greatest number. */
    long double unit = ldexpl(1, (f->dtype == STK_F32 ? FLT_MAX_EXP : DBL_MAX_EXP) - f->digits);
    if (isinf(got)) got = copysignl(f->most + unit, got);
    if (isinf(exact) || fabsl(exact) > f->most + unit) exact = copysignl(f->most + unit, exact);
    frexpl(exact, &e);
    if (exact == 0 || e < f->least) e = f->least;
    return (double)(fabsl(got - exact) / ldexpl(1, e - f->digits));
}

/* --- a device --- */

typedef struct worst {
    double ulps;
    long double at;
} worst;

static void measure(const char *device, const format *f, int n_each, worst out[N_FUNCTIONS])
{
    stk_engine *engine;
    stk_program *program;
    int64_t n = (int64_t)2 * f->n_exponents * n_each;
    void *x = malloc((size_t)n * stk_dtype_bytes(f->dtype));
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        store(f, x, i, i >= n / 2, (int)(i / n_each) % f->n_exponents, (int)(i % n_each), n_each);
    expect_ok(stk_engine_open(device, NULL, 2, &engine));
    for (int k = 0; k < N_FUNCTIONS; k++) {
        stk_graph *graph = stk_graph_new();
        stk_graph_output(graph, "y", functions[k].build(stk_graph_input(graph, "x", f->dtype, STK_SHAPE(n))));
        stk_status status = stk_engine_compile(engine, graph, NULL, &program);
        out[k] = (worst){status == STK_UNSUPPORTED ? -1 : 0, 0};
        if (status == STK_UNSUPPORTED) continue;
        expect_ok(status);
        stk_program_bind(program, stk_program_input(program, "x"), x);
        expect_ok(stk_program_run(program));
        const void *y = stk_program_output(program, "y", NULL);
        for (int64_t i = 0; i < n; i++) {
            long double a = load(f, x, i);
            double ulps = error_of(f, load(f, y, i), functions[k].exact(a));
            if (ulps > out[k].ulps) out[k] = (worst){ulps, a};
        }
    }
    stk_engine_close(engine);
    free(x);
}

static void check(const char *device, const format *f)
{
    worst found[N_FUNCTIONS];
    int n_wrong = 0;
    measure(device, f, 48, found);
    for (int k = 0; k < N_FUNCTIONS; k++) {
        if (found[k].ulps >= 0 && found[k].ulps <= MOST_ULPS) continue;
        print_message("%s of %s on %s is off by %.2f units at %.17Lg\n", functions[k].name, stk_dtype_name(f->dtype),
                      device, found[k].ulps, found[k].at);
        n_wrong++;
    }
    assert_int_equal(n_wrong, 0);
}

static void cpu_f32(void **state)
{
    (void)state;
    check("cpu", &formats[0]);
}

static void cpu_f64(void **state)
{
    (void)state;
    check("cpu", &formats[1]);
}

static void reference_f32(void **state)
{
    (void)state;
    check("reference", &formats[0]);
}

static void reference_f64(void **state)
{
    (void)state;
    check("reference", &formats[1]);
}

static void print_all(const char *device, int n_each)
{
    for (int f = 0; f < 2; f++) {
        worst found[N_FUNCTIONS];
        measure(device, &formats[f], formats[f].dtype == STK_F32 ? n_each : n_each / 32, found);
        for (int k = 0; k < N_FUNCTIONS; k++)
            printf("%s %s %s %.3f %.9Lg\n", device, stk_dtype_name(formats[f].dtype), functions[k].name, found[k].ulps,
                   found[k].at);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        print_all(argv[1], atoi(argv[2]));
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_f32), cmocka_unit_test(cpu_f64),
                                       cmocka_unit_test(reference_f32), cmocka_unit_test(reference_f64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
