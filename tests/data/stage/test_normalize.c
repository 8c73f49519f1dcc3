/* scale, normalize and one_hot: numbers, every length around the vectors' sizes, in place, and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/stage/run_stage.h"

enum { MOST = 200 };

static void every_length_is_normalized(void **state)
{
    (void)state;
    const float mean[4] = {0.1f, 0.5f, 0.3f, 0.7f}, std[4] = {0.2f, 0.25f, 1, 2};
    uint8_t u8[MOST * 4];
    float f32[MOST * 4], out[MOST * 4];
    for (int i = 0; i < MOST * 4; i++) {
        u8[i] = (uint8_t)(i * 37);
        f32[i] = (float)i / 100 - 3;
    }
    for (int channels = 1; channels <= 4; channels++)
        for (int n = 1; n < MOST; n++) {
            stk_shape shape = STK_SHAPE(1, n, channels);
            run_stage(stk_normalize(mean, std, channels), array_type(STK_U8, shape), u8, out);
            for (int i = 0; i < n * channels; i++)
                assert_true(fabsf(out[i] - ((float)u8[i] / 255 - mean[i % channels]) / std[i % channels]) < 2e-6f);
            run_stage(stk_normalize(mean, std, channels), array_type(STK_F32, shape), f32, out);
            for (int i = 0; i < n * channels; i++)
                assert_true(fabsf(out[i] - (f32[i] - mean[i % channels]) / std[i % channels]) < 2e-5f);
            float copy[MOST * 4];
            memcpy(copy, f32, sizeof(copy));
            run_stage(stk_normalize(mean, std, channels), array_type(STK_F32, shape), copy, copy);
            assert_memory_equal(copy, out, sizeof(float) * (size_t)(n * channels));
        }
}

static void named_constants(void **state)
{
    (void)state;
    const uint8_t grey[1] = {255}, rgb[3] = {0, 255, 51};
    float out[3], again[3];
    run_stage(stk_normalize_named("mnist"), array_type(STK_U8, STK_SHAPE(1, 1, 1)), grey, out);
    assert_true(fabsf(out[0] - 2.8215f) < 1e-4f); /* the largest value of every MNIST example */
    run_stage(stk_normalize_named("cifar10"), array_type(STK_U8, STK_SHAPE(1, 1, 3)), rgb, out);
    assert_true(fabsf(out[0] + 0.4914f / 0.2470f) < 1e-5f && fabsf(out[1] - (1 - 0.4822f) / 0.2435f) < 1e-5f);
    assert_true(fabsf(out[2] - (0.2f - 0.4465f) / 0.2616f) < 1e-5f);
    run_stage(stk_normalize_cifar10(), array_type(STK_U8, STK_SHAPE(1, 1, 3)), rgb, again);
    assert_memory_equal(out, again, sizeof(out));
    run_stage(stk_normalize_named("imagenet"), array_type(STK_U8, STK_SHAPE(1, 1, 3)), rgb, out);
    assert_true(fabsf(out[0] + 0.485f / 0.229f) < 1e-5f && fabsf(out[1] - (1 - 0.456f) / 0.224f) < 1e-5f);
    assert_true(fabsf(out[2] - (0.2f - 0.406f) / 0.225f) < 1e-5f);
    refuse_stage(stk_normalize_named("cifar"), STK_INVALID,
                 "normalize: no constants named 'cifar'; there are mnist, cifar10, imagenet");
}

static void bad_constants_are_refused(void **state)
{
    (void)state;
    const float zero = 0, one = 1;
    refuse_stage(stk_normalize(&zero, &zero, 1), STK_INVALID,
                 "normalize: mean 0 and std 0 of channel 0 cannot be right");
    refuse_stage(stk_normalize(&zero, &one, 5), STK_INVALID, "normalize: 5 channels; 1 to 4 are possible");
    refuse_stage(stk_normalize(NULL, &one, 1), STK_INVALID, "normalize: mean and std are needed");
    refuse_stage(stk_normalize_named(NULL), STK_INVALID, "normalize: the name is missing");
    refuse_stage(stk_scale((double)NAN), STK_INVALID, "scale: the factor is not a number");
    refuse_plan(stk_normalize_mnist(), array_type(STK_U8, STK_SHAPE(4, 4, 3)),
                "has constants for 1 channels, the image has 3");
    refuse_plan(stk_normalize_mnist(), array_type(STK_I32, (stk_shape){0}),
                "needs u8 or f32 images [H,W,C], not i32[]");
    refuse_plan(stk_scale(2), array_type(STK_I64, STK_SHAPE(3)), "needs u8 or f32 arrays, not i64[3]");
}

static void scale_multiplies(void **state)
{
    (void)state;
    uint8_t u8[MOST];
    float f32[MOST], out[MOST];
    for (int i = 0; i < MOST; i++) {
        u8[i] = (uint8_t)(i * 53);
        f32[i] = (float)i - 70;
    }
    for (int n = 1; n <= MOST; n++) {
        run_stage(stk_scale(1 / 255.0), array_type(STK_U8, STK_SHAPE(n)), u8, out);
        for (int i = 0; i < n; i++)
            assert_true(out[i] == (float)u8[i] * (float)(1 / 255.0));
        run_stage(stk_scale(-2), array_type(STK_F32, STK_SHAPE(n)), f32, out);
        for (int i = 0; i < n; i++)
            assert_true(out[i] == f32[i] * -2);
    }
}

static void one_hot_marks_the_class(void **state)
{
    (void)state;
    float out[10];
    stk_stage *stage = stk_one_hot(10);
    stk_field_type label = array_type(STK_I32, (stk_shape){0});
    for (int32_t c = 0; c < 10; c++) {
        assert_int_equal(try_stage(stage, label, &c, 0, out), STK_OK);
        for (int i = 0; i < 10; i++)
            assert_true(out[i] == (i == c ? 1 : 0));
    }
    assert_int_equal(try_stage(stage, label, &(int32_t){10}, 0, out), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "class number 10 is outside of the 10 classes");
    assert_int_equal(try_stage(stage, label, &(int32_t){-1}, 0, out), STK_CORRUPT);
    stk_stage_free(stage);
    refuse_stage(stk_one_hot(0), STK_INVALID, "one_hot: 0 classes cannot be right");
    refuse_plan(stk_one_hot(10), array_type(STK_U8, STK_SHAPE(4, 4, 3)), "needs class numbers i32 [], not u8[4,4,3]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_normalized), cmocka_unit_test(named_constants),
        cmocka_unit_test(bad_constants_are_refused),  cmocka_unit_test(scale_multiplies),
        cmocka_unit_test(one_hot_marks_the_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
