/* bf16 and f16, all 65,536 patterns of each: what they are in f32, the way back, and rounding to nearest even between
 * every two neighbours, of every instruction set that runs here and of the reference device. The numbers that are right
 * come from a decoder and an encoder in double below, which share nothing with the kernels. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/element/element.h"
#include "device/reference/element.h"

typedef struct format {
    stk_dtype dtype;
    int n_exponent, n_mantissa;
} format;

static const format formats[] = {{STK_BF16, 8, 7}, {STK_F16, 5, 10}};

static double decode(const format *f, unsigned bits)
{
    int bias = (1 << (f->n_exponent - 1)) - 1, top = (1 << f->n_exponent) - 1;
    int e = (int)(bits >> f->n_mantissa) & top, m = (int)bits & ((1 << f->n_mantissa) - 1);
    double size = e == top ? (m ? NAN : INFINITY)
                  : e      ? ldexp(m + (1 << f->n_mantissa), e - bias - f->n_mantissa)
                           : ldexp(m, 1 - bias - f->n_mantissa);
    return bits >> 15 ? -size : size;
}

/* The nearest number of the format, ties to even. */
static double round_to(const format *f, double x)
{
    int bias = (1 << (f->n_exponent - 1)) - 1, e;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    double step = ldexp(1, e - f->n_mantissa), y = nearbyint(x / step) * step;
    double largest = ldexp(2 - ldexp(1, -f->n_mantissa), bias);
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

/* isa -1: the reference device. */
static void widen(int isa, stk_dtype dtype, int n, const uint16_t *x, float *y)
{
    const void *src = x;
    if (isa >= 0) stk_element_of((stk_isa)isa)->cast[dtype][STK_F32](n, y, &src);
    for (int i = 0; isa < 0 && i < n; i++)
        y[i] = (float)stk_ref_load(dtype, x, i);
}

static void narrow(int isa, stk_dtype dtype, int n, const float *x, uint16_t *y)
{
    const void *src = x;
    if (isa >= 0) stk_element_of((stk_isa)isa)->cast[STK_F32][dtype](n, y, &src);
    for (int i = 0; isa < 0 && i < n; i++)
        stk_ref_store(dtype, y, i, (double)x[i]);
}

static const char *name_of(int isa)
{
    return isa < 0 ? "reference" : stk_isa_name((stk_isa)isa);
}

static void every_pattern_widens_and_returns(void **state)
{
    (void)state;
    static uint16_t all[65536], back[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (int f = 0; f < 2; f++)
        for (int isa = -1; isa <= (int)stk_isa_choose(); isa++) {
            widen(isa, formats[f].dtype, 65536, all, wide);
            narrow(isa, formats[f].dtype, 65536, wide, back);
            for (int i = 0; i < 65536; i++) {
                double want = decode(&formats[f], (unsigned)i);
                bool same = isnan(want) ? isnan(wide[i]) : (double)wide[i] == want && !signbit(wide[i]) == !(i >> 15);
                if (!same) fail_msg("%s, %s %04x: %.9g", name_of(isa), stk_dtype_name(formats[f].dtype), i, wide[i]);
                bool returns = isnan(want) ? isnan(decode(&formats[f], back[i])) : back[i] == i;
                if (!returns)
                    fail_msg("%s, %s %04x: returns as %04x", name_of(isa), stk_dtype_name(formats[f].dtype), i,
                             back[i]);
            }
        }
}

static void expect_rounded(const format *f, int n, const float *x)
{
    static uint16_t y[8 * 65536];
    for (int isa = -1; isa <= (int)stk_isa_choose(); isa++) {
        narrow(isa, f->dtype, n, x, y);
        for (int i = 0; i < n; i++) {
            double want = round_to(f, (double)x[i]), have = decode(f, y[i]);
            bool same = isnan(want) ? isnan(have) : have == want && !signbit(have) == !signbit(want);
            if (!same)
                fail_msg("%s: %.9g in %s is %.9g, not %.9g", name_of(isa), (double)x[i], stk_dtype_name(f->dtype), have,
                         want);
        }
    }
}

/* Halfway between every two neighbours, and just next to it; the last one is halfway to what would come after the
 * largest. */
static void rounding_is_to_nearest_even(void **state)
{
    (void)state;
    static float x[8 * 65536];
    for (int f = 0; f < 2; f++) {
        const format *own = &formats[f];
        int top = ((1 << own->n_exponent) - 1) << own->n_mantissa, n = 0;
        for (int i = 0; i < top; i++) {
            double a = decode(own, (unsigned)i), b = decode(own, (unsigned)i + 1);
            if (i + 1 == top) b = 2 * a - decode(own, (unsigned)i - 1);
            double middle = (a + b) / 2;
            float half = middle > (double)FLT_MAX ? FLT_MAX : (float)middle;
            x[n++] = half;
            x[n++] = -half;
            x[n++] = nextafterf(half, 0);
            x[n++] = -nextafterf(half, 0);
            x[n++] = nextafterf(half, FLT_MAX);
            x[n++] = -nextafterf(half, FLT_MAX);
        }
        expect_rounded(own, n, x);
    }
}

static void ends_and_nans(void **state)
{
    (void)state;
    const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff, 0x7f80ffff};
    float x[] = {0,
                 -0.0f,
                 INFINITY,
                 -INFINITY,
                 FLT_MAX,
                 -FLT_MAX,
                 FLT_MIN,
                 FLT_TRUE_MIN,
                 -FLT_TRUE_MIN,
                 65504,
                 65519.996f,
                 65520,
                 65536,
                 1e30f,
                 0x1p-24f,
                 0x1p-25f,
                 0x1.000002p-25f,
                 0x1p-26f,
                 0x1p-133f,
                 0x1p-134f,
                 NAN,
                 NAN,
                 NAN,
                 NAN,
                 NAN,
                 NAN};
    int n = (int)(sizeof(x) / sizeof(x[0]));
    memcpy(x + n - 6, nans, sizeof(nans));
    for (int f = 0; f < 2; f++)
        expect_rounded(&formats[f], n, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_widens_and_returns),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(ends_and_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
