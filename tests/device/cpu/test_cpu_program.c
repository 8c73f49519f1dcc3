/* Fused groups: random programs in the block interpreter against the reference device, which evaluates them point by
 * point; in place wherever the kernel allows it; dropout against its formula.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/random_program.h"
#include "graph/dropout.h"

enum { N_PROGRAMS = 400 };

static double load(stk_dtype dtype, const void *data, int64_t i)
{
    float x;
    switch (dtype) {
    case STK_F32: return (double)((const float *)data)[i];
    case STK_F64: return ((const double *)data)[i];
    case STK_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&x, &bits, 4);
        return (double)x;
    }
    default: return ((const uint8_t *)data)[i];
    }
}

/* A result next to a rounding or comparison edge may fall on its other side, so a few elements may differ. */
static int count_differences(stk_tensor_desc desc, const void *got, const void *want)
{
    int n_different = 0;
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        double x = load(desc.dtype, got, i), y = load(desc.dtype, want, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        n_different += !(fabs(x - y) <= 2e-5 * fabs(y));
    }
    return n_different;
}

static void random_programs(void **state)
{
    static maker m;
    stk_device *reference = NULL, *device = call_open(NULL, 2);
    (void)state;
    assert_non_null(device);
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    for (uint64_t seed = 0; seed < N_PROGRAMS; seed++) {
        void *want[CALL_MOST], *got[CALL_MOST], *placed[CALL_MOST];
        uint32_t in_place[8] = {0};
        make_program(&m, seed);
        assert_int_equal(call_run(&m.call, reference, -1, want, NULL), STK_OK);
        assert_int_equal(call_run(&m.call, device, -1, got, in_place), STK_OK);
        for (int o = 0; o < m.call.n_out; o++) {
            int64_t n = stk_shape_count(m.call.out_desc[o].shape);
            int n_different = count_differences(m.call.out_desc[o], got[o], want[o]);
            if (n_different > 2 + n / 500)
                fail_msg("program %d, output %d: %d of %lld elements differ", (int)seed, o, n_different, (long long)n);
        }
        for (int k = 0; k < m.call.n_out * 32; k++) {
            if (!(in_place[k / 32] >> k % 32 & 1)) continue;
            assert_int_equal(call_run(&m.call, device, k, placed, NULL), STK_OK);
            for (int o = 0; o < m.call.n_out; o++)
                assert_memory_equal(placed[o], got[o], stk_desc_bytes(m.call.out_desc[o]));
            call_free_outputs(placed);
        }
        call_free_outputs(want);
        call_free_outputs(got);
        call_free(&m.call);
    }
    stk_device_close(device);
    stk_device_close(reference);
}

static void dropout_follows_its_formula(void **state)
{
    static const int64_t shapes[][2] = {{40000, 1}, {9001, 3}, {1003, 10}, {77, 257}, {5, 20000}, {2, 7}};
    (void)state;
    for (int i = 0; i < 6 * 3; i++) {
        int64_t n_rows = shapes[i / 3][0], n_columns = shapes[i / 3][1];
        stk_device *device = call_open(NULL, 1 + i % 3);
        call c = {.op = STK_OP_dropout, .attrs = stk_attrs_zero()};
        void *out[CALL_MOST];
        c.attrs.dropout.rate = 0.3;
        c.attrs.dropout.stream = -4;
        call_add(&c, STK_F32, STK_SHAPE(n_rows, n_columns), 1, 2);
        call_add(&c, STK_I64, (stk_shape){.rank = 0}, 0, 1e9);
        call_add(&c, STK_I64, (stk_shape){.rank = 0}, 0, 1e9);
        call_add_out(&c, STK_F32, STK_SHAPE(n_rows, n_columns));
        assert_int_equal(call_run(&c, device, -1, out, NULL), STK_OK);
        uint64_t key = stk_dropout_key(*(int64_t *)c.in[1], -4);
        for (int64_t k = 0; k < n_rows * n_columns; k++) {
            float x = ((float *)c.in[0])[k], y = ((float *)out[0])[k];
            bool keeps = stk_dropout_keeps(key, *(int64_t *)c.in[2], k / n_columns, k % n_columns, 0.3);
            if (keeps ? fabsf(y - x / 0.7f) > 1e-6f * y : y != 0)
                fail_msg("element %lld is %g", (long long)k, (double)y);
        }
        call_free_outputs(out);
        call_free(&c);
        stk_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(dropout_follows_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
