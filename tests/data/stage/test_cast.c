/* Casting between all element types, and the 16-bit floats bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/half.h"
#include "data/stage/run_stage.h"

/* 0, 1 and 100 survive every pair of types but bool. */
static void small_numbers_survive_every_pair(void **state)
{
    (void)state;
    enum { N = 300 }; /* more than one part of the work, and not a multiple */
    int64_t start[N], back[N];
    double a[N], b[N];
    for (int i = 0; i < N; i++)
        start[i] = i % 3 == 2 ? 100 : i % 3;
    for (int from = 0; from < STK_N_DTYPES; from++)
        for (int to = 0; to < STK_N_DTYPES; to++) {
            run_stage(stk_cast((stk_dtype)from), array_type(STK_I64, STK_SHAPE(N)), start, a);
            run_stage(stk_cast((stk_dtype)to), array_type((stk_dtype)from, STK_SHAPE(N)), a, b);
            run_stage(stk_cast(STK_I64), array_type((stk_dtype)to, STK_SHAPE(N)), b, back);
            bool is_bool = from == STK_BOOL || to == STK_BOOL;
            for (int i = 0; i < N; i++)
                assert_int_equal(back[i], is_bool ? start[i] != 0 : start[i]);
        }
}

static void floats_are_rounded_and_kept_in_range(void **state)
{
    (void)state;
    const float src[] = {0.5f, 1.5f, -0.5f, -7, 254.6f, 300, 1e30f, -1e30f, NAN, INFINITY};
    stk_field_type type = array_type(STK_F32, STK_SHAPE(10));
    uint8_t u8[10];
    int8_t i8[10];
    int32_t i32[10];
    int64_t i64[10];
    uint8_t truth[10];
    run_stage(stk_cast(STK_U8), type, src, u8);
    assert_memory_equal(u8, ((uint8_t[]){0, 2, 0, 0, 255, 255, 255, 0, 0, 255}), 10);
    run_stage(stk_cast(STK_I8), type, src, i8);
    assert_memory_equal(i8, ((int8_t[]){0, 2, 0, -7, 127, 127, 127, -128, 0, 127}), 10);
    run_stage(stk_cast(STK_I32), type, src, i32);
    assert_memory_equal(i32, ((int32_t[]){0, 2, 0, -7, 255, 300, INT32_MAX, INT32_MIN, 0, INT32_MAX}), sizeof(i32));
    run_stage(stk_cast(STK_I64), type, src, i64);
    assert_int_equal(i64[3], -7);
    assert_true(i64[6] > INT64_C(1) << 62 && i64[7] == INT64_MIN && i64[8] == 0);
    run_stage(stk_cast(STK_BOOL), type, src, truth);
    assert_memory_equal(truth, ((uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), 10);
}

static void large_i64_stay_whole(void **state)
{
    (void)state;
    const int64_t src[2] = {INT64_MAX, INT64_MIN + 1};
    int64_t out[2];
    run_stage(stk_cast(STK_I64), array_type(STK_I64, STK_SHAPE(2)), src, out);
    assert_memory_equal(src, out, sizeof(src));
}

/* Every 16-bit pattern to f32 and back, and the middle between neighbours goes to the even one. */
static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float x = stk_f16_to_f32((uint16_t)h), y = stk_bf16_to_f32((uint16_t)h);
        bool nan16 = (h & 0x7fff) > 0x7c00, nan_b = (h & 0x7fff) > 0x7f80;
        assert_true(nan16 ? isnan(x) && isnan(stk_f16_to_f32(stk_f32_to_f16(x))) : stk_f32_to_f16(x) == h);
        assert_true(nan_b ? isnan(y) && isnan(stk_bf16_to_f32(stk_f32_to_bf16(y))) : stk_f32_to_bf16(y) == h);
        if ((h & 0x7fff) < 0x7bff) {
            float middle = (x + stk_f16_to_f32((uint16_t)(h + 1))) / 2; /* exact in f32 */
            assert_int_equal(stk_f32_to_f16(middle), h + (h & 1));
            assert_int_equal(stk_f32_to_f16(nextafterf(middle, x)), h);
            assert_int_equal(stk_f32_to_f16(nextafterf(middle, x < 0 || h >> 15 ? -INFINITY : INFINITY)), h + 1);
        }
    }
    assert_true(stk_f16_to_f32(0x3c00) == 1 && stk_f16_to_f32(0x0001) == 0x1p-24f && stk_f16_to_f32(0x7bff) == 65504);
    assert_int_equal(stk_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(stk_f32_to_f16(65520), 0x7c00);
    assert_int_equal(stk_f32_to_f16(1e30f), 0x7c00);
    assert_int_equal(stk_f32_to_bf16(1.00390625f), 0x3f80);   /* 1 + 2^-8, the middle, to even */
    assert_int_equal(stk_f32_to_bf16(1.01171875f), 0x3f82);   /* 1 + 3 * 2^-8, the middle, to even */
    assert_int_equal(stk_f32_to_bf16(3.4028235e38f), 0x7f80); /* rounds up to infinity */
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refuse_stage(stk_cast((stk_dtype)99), STK_INVALID, "cast: no such element type: 99");
    refuse_plan(stk_cast(STK_F32), (stk_field_type){.kind = STK_FIELD_ENCODED}, "needs an array, not encoded bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_numbers_survive_every_pair),
        cmocka_unit_test(floats_are_rounded_and_kept_in_range),
        cmocka_unit_test(large_i64_stay_whole),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
