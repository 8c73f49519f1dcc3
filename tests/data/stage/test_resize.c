/* Resizing: PIL's pixels with antialiasing, OpenCV's without; sizes; nothing outside of the rectangle is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/stage/resample.h"
#include "data/stage/run_stage.h"
#include "golden/resize_golden.h"

enum { N_CASES = sizeof(golden_resizes) / sizeof(golden_resizes[0]) };

static void antialiased_is_within_1_of_pil(void **state)
{
    (void)state;
    int n_values = 0, n_other = 0;
    for (int i = 0; i < N_CASES; i++) {
        const golden_resize *g = &golden_resizes[i];
        int64_t n = g->to_height * g->to_width * g->channels;
        uint8_t *out = malloc((size_t)n);
        assert_non_null(out);
        run_stage(stk_resize(g->to_height, g->to_width, true),
                  array_type(STK_U8, STK_SHAPE(g->height, g->width, g->channels)), g->src, out);
        for (int64_t k = 0; k < n; k++) {
            assert_true(abs(out[k] - g->antialiased[k]) <= 1);
            n_other += out[k] != g->antialiased[k];
            n_values++;
        }
        free(out);
    }
    print_message("%d of %d values are not PIL's own\n", n_other, n_values);
    /* Ties, and the one shape for which Pillow 13 takes rows first; see resample.h. */
    assert_true(n_other * 30 < n_values);
}

static void plain_is_that_of_opencv(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        const golden_resize *g = &golden_resizes[i];
        int64_t n_src = g->height * g->width * g->channels, n = g->to_height * g->to_width * g->channels;
        float *src = malloc((size_t)n_src * sizeof(float)), *out = malloc((size_t)n * sizeof(float));
        uint8_t *out_u8 = malloc((size_t)n);
        assert_true(src && out && out_u8);
        for (int64_t k = 0; k < n_src; k++)
            src[k] = (float)g->src[k] / 255;
        stk_shape shape = STK_SHAPE(g->height, g->width, g->channels);
        run_stage(stk_resize(g->to_height, g->to_width, false), array_type(STK_F32, shape), src, out);
        run_stage(stk_resize(g->to_height, g->to_width, false), array_type(STK_U8, shape), g->src, out_u8);
        for (int64_t k = 0; k < n; k++) {
            assert_true(fabsf(out[k] - g->plain[k]) < 1e-4f);
            assert_true(fabsf((float)out_u8[k] - 255 * g->plain[k]) < 0.51f); /* rounded, not cut */
        }
        free(src);
        free(out);
        free(out_u8);
    }
}

static void same_size_changes_nothing(void **state)
{
    (void)state;
    uint8_t src[7 * 5 * 4], out[7 * 5 * 4];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * 37);
    for (int64_t channels = 1; channels <= 4; channels++)
        for (int antialias = 0; antialias < 2; antialias++) {
            size_t n = 7 * 5 * (size_t)channels;
            run_stage(stk_resize(7, 5, antialias), array_type(STK_U8, STK_SHAPE(7, 5, channels)), src, out);
            assert_memory_equal(src, out, n);
        }
}

static void floats_may_be_negative(void **state)
{
    (void)state;
    float src[2 * 2 * 2] = {-1, 1, -1, 1, -3, 3, -3, 3}, out[2];
    run_stage(stk_resize(1, 1, true), array_type(STK_F32, STK_SHAPE(2, 2, 2)), src, out);
    assert_true(out[0] == -2 && out[1] == 2);
}

/* The rectangle alone and the rectangle within a larger image give the same. */
static void only_the_rectangle_is_read(void **state)
{
    (void)state;
    uint8_t inside[6 * 5 * 3], src[11 * 9 * 3], a[4 * 8 * 3], b[4 * 8 * 3];
    memset(src, 255, sizeof(src));
    for (int i = 0; i < 6 * 5 * 3; i++)
        inside[i] = src[((3 + i / 15) * 9 + 2 + i / 3 % 5) * 3 + i % 3] = (uint8_t)(i * 71 % 200);
    for (int i = 0; i < 6; i++) {
        const stk_sampling how = {(stk_filter)(i / 2), STK_LIKE_PIL, i & 1};
        stk_scratch scratch = {0};
        stk_item whole = {array_type(STK_U8, STK_SHAPE(11, 9, 3)), src, sizeof(src)};
        stk_item part = {array_type(STK_U8, STK_SHAPE(6, 5, 3)), inside, sizeof(inside)};
        stk_item out_a = {array_type(STK_U8, STK_SHAPE(4, 8, 3)), a, sizeof(a)}, out_b = out_a;
        out_b.data = b;
        assert_int_equal(stk_resample(&whole, (stk_rect){3, 2, 6, 5}, how, &out_a, &scratch), STK_OK);
        assert_int_equal(stk_resample(&part, (stk_rect){0, 0, 6, 5}, how, &out_b, &scratch), STK_OK);
        assert_memory_equal(a, b, sizeof(a));
        stk_scratch_free(&scratch);
    }
}

static void expect_sides(int64_t side, int64_t height, int64_t width, int64_t to_height, int64_t to_width)
{
    stk_stage *stage = stk_resize_shorter(side, true);
    stk_field_type in = array_type(STK_U8, STK_SHAPE(height, width, 3)), out;
    assert_int_equal(stage->class->plan(stage->params, &in, &out), STK_OK);
    assert_true(stk_shape_equal(out.desc.shape, STK_SHAPE(to_height, to_width, 3)));
    stk_stage_free(stage);
}

static void shorter_side_keeps_the_ratio(void **state)
{
    (void)state;
    expect_sides(256, 375, 500, 256, 341); /* torchvision's figures */
    expect_sides(256, 500, 375, 341, 256);
    expect_sides(256, 256, 256, 256, 256);
    expect_sides(32, 1, 9, 32, 288);
    expect_sides(256, STK_ANY, STK_ANY, STK_ANY, STK_ANY);
    refuse_plan(stk_resize_shorter(256, true), array_type(STK_U8, STK_SHAPE(1, 60000, 3)),
                "an image of 1 x 60000 is too long to resize its shorter side to 256");
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refuse_stage(stk_resize(0, 5, true), STK_INVALID, "resize: sizes must be 1 to 65535");
    refuse_stage(stk_resize_shorter(65536, true), STK_INVALID, "resize: sizes must be 1 to 65535");
    refuse_plan(stk_resize(5, 5, true), (stk_field_type){.kind = STK_FIELD_ENCODED},
                "needs u8 or f32 images [H,W,C], not encoded bytes");
    refuse_plan(stk_resize(5, 5, true), array_type(STK_I32, (stk_shape){0}),
                "needs u8 or f32 images [H,W,C], not i32[]");
    refuse_plan(stk_resize_shorter(5, true), array_type(STK_U8, STK_SHAPE(0, 4, 3)),
                "needs images with pixels, not u8[0,4,3]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(antialiased_is_within_1_of_pil), cmocka_unit_test(plain_is_that_of_opencv),
        cmocka_unit_test(same_size_changes_nothing),      cmocka_unit_test(floats_may_be_negative),
        cmocka_unit_test(only_the_rectangle_is_read),     cmocka_unit_test(shorter_side_keeps_the_ratio),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
