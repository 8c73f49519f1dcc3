/* The cropping stages: which pixels come out, how often each place is drawn, and images that are too small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/codec/image.h"
#include "data/stage/run_stage.h"
#include "golden/resize_golden.h"

/* src[y][x] = (y, x), so that a crop tells where it was cut. */
static void fill_places(uint8_t *src, int height, int width)
{
    for (int i = 0; i < height * width; i++) {
        src[2 * i] = (uint8_t)(i / width + 1);
        src[2 * i + 1] = (uint8_t)(i % width + 1);
    }
}

static void center_crop_takes_the_middle(void **state)
{
    (void)state;
    uint8_t src[9 * 8 * 2], out[4 * 5 * 2];
    fill_places(src, 9, 8);
    run_stage(stk_center_crop(4, 5), array_type(STK_U8, STK_SHAPE(9, 8, 2)), src, out);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(out[2 * i], i / 5 + 1 + 2);
        assert_int_equal(out[2 * i + 1], i % 5 + 1 + 2); /* 1.5, rounded to even */
    }
}

static void random_crop_draws_every_place(void **state)
{
    (void)state;
    uint8_t src[6 * 6 * 2], out[6 * 6 * 2];
    int seen[5][5] = {{0}};
    enum { N = 25 * 400 };
    fill_places(src, 6, 6);
    stk_stage *stage = stk_random_crop(6, 2);
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(6, 6, 2)), src, i, out), STK_OK);
        /* Row 2, column 2 of the crop always lies inside of the image. */
        int top = out[2 * (2 * 6 + 2)] - 1 - 2, left = out[2 * (2 * 6 + 2) + 1] - 1 - 2;
        assert_true(top >= -2 && top <= 2 && left >= -2 && left <= 2);
        seen[top + 2][left + 2]++;
        for (int k = 0; k < 36; k++) {
            int y = k / 6 + top, x = k % 6 + left;
            bool inside = y >= 0 && y < 6 && x >= 0 && x < 6;
            assert_int_equal(out[2 * k], inside ? y + 1 : 0);
            assert_int_equal(out[2 * k + 1], inside ? x + 1 : 0);
        }
    }
    for (int k = 0; k < 25; k++) /* 400 expected, deviation 20 */
        assert_in_range(seen[k / 5][k % 5], 300, 500);
    stk_stage_free(stage);
}

/* Rows 0 to 5 stand at 2 1 | 0 1 2 3 4 5 | 4 3, as numpy.pad's "reflect" has them. */
static void random_crop_mirrors_the_border(void **state)
{
    (void)state;
    static const int row[] = {2, 1, 0, 1, 2, 3, 4, 5, 4, 3};
    uint8_t src[6 * 6 * 2], out[6 * 6 * 2], zeros[6 * 6 * 2];
    int n_outside = 0;
    fill_places(src, 6, 6);
    stk_stage *stage = stk_random_crop_with(6, 2, STK_BORDER_REFLECT), *plain = stk_random_crop(6, 2);
    for (uint64_t i = 0; i < 500; i++) {
        stk_field_type type = array_type(STK_U8, STK_SHAPE(6, 6, 2));
        assert_int_equal(try_stage(stage, type, src, i, out), STK_OK);
        assert_int_equal(try_stage(plain, type, src, i, zeros), STK_OK);
        int top = zeros[2 * (2 * 6 + 2)] - 1 - 2, left = zeros[2 * (2 * 6 + 2) + 1] - 1 - 2;
        for (int k = 0; k < 36; k++) {
            assert_int_equal(out[2 * k], row[k / 6 + top + 2] + 1);
            assert_int_equal(out[2 * k + 1], row[k % 6 + left + 2] + 1);
        }
        n_outside += memcmp(out, zeros, sizeof(out)) != 0;
    }
    assert_in_range(n_outside, 400, 500);
    stk_stage_free(stage);
    stk_stage_free(plain);
    refuse_plan(stk_random_crop_with(4, 4, STK_BORDER_REFLECT), array_type(STK_U8, STK_SHAPE(8, 4, 3)),
                "a side of 4 cannot be reflected for a border of 4; take a smaller 'pad'");
}

static void same_key_same_crop(void **state)
{
    (void)state;
    uint8_t src[40 * 40 * 2], a[8 * 8 * 2], b[8 * 8 * 2];
    fill_places(src, 40, 40);
    stk_stage *stages[2] = {stk_random_crop(8, 0), stk_random_resized_crop(8, true)};
    for (int s = 0; s < 2; s++) {
        int n_same = 0;
        for (uint64_t i = 0; i < 50; i++) {
            assert_int_equal(try_stage(stages[s], array_type(STK_U8, STK_SHAPE(40, 40, 2)), src, i, a), STK_OK);
            assert_int_equal(try_stage(stages[s], array_type(STK_U8, STK_SHAPE(40, 40, 2)), src, i, b), STK_OK);
            assert_memory_equal(a, b, sizeof(a));
            assert_int_equal(try_stage(stages[s], array_type(STK_U8, STK_SHAPE(40, 40, 2)), src, i + 1, b), STK_OK);
            n_same += !memcmp(a, b, sizeof(a));
        }
        assert_true(n_same <= 2);
        stk_stage_free(stages[s]);
    }
}

/* An image that holds its own coordinates, resized to 64 x 64 without antialiasing, shows which part was drawn: pixels
 * lie at left + (i + 0.5) * width / 64 - 0.5, so two of them away from the edges give width and left. */
static void resized_crop_draws_areas_and_ratios(void **state)
{
    (void)state;
    enum { H = 300, W = 400, S = 64, N = 3000 };
    float *src = malloc(H * W * 2 * sizeof(float)), *out = malloc(S * S * 2 * sizeof(float));
    double areas = 0, squares = 0, ratios = 0, least = 1, most = 0;
    assert_true(src && out);
    for (int i = 0; i < H * W; i++) {
        src[2 * i] = (float)(i / W);
        src[2 * i + 1] = (float)(i % W);
    }
    stk_stage *stage = stk_random_resized_crop(S, false);
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_F32, STK_SHAPE(H, W, 2)), src, i, out), STK_OK);
        const float *a = out + 2 * (16 * S + 16), *b = out + 2 * (48 * S + 48);
        double height = 2 * ((double)b[0] - (double)a[0]), width = 2 * ((double)b[1] - (double)a[1]);
        double top = (double)a[0] + 0.5 - 16.5 / S * height, left = (double)a[1] + 0.5 - 16.5 / S * width;
        double area = height * width / (H * W), ratio = width / height;
        assert_true(top > -0.01 && left > -0.01 && top + height < H + 0.01 && left + width < W + 0.01);
        assert_true(area > 0.0785 && area < 1.001 && ratio > 0.74 && ratio < 1.35);
        areas += area;
        squares += area * area;
        ratios += log(ratio);
        least = fmin(least, area);
        most = fmax(most, area);
    }
    /* Drawn uniformly from 0.08 to 1 the mean would be 0.54, but large parts often do not fit and are drawn again. The
     * bounds are about four deviations of a mean of 3,000. */
    double mean = areas / N, deviation = sqrt(squares / N - mean * mean);
    print_message("area %.3f +- %.3f (%.3f to %.3f), log ratio %.3f\n", mean, deviation, least, most, ratios / N);
    assert_true(least < 0.09 && most > 0.93);
    assert_true(fabs(mean - golden_crop_area) < 0.015 && fabs(deviation - golden_crop_deviation) < 0.012);
    assert_true(fabs(ratios / N - golden_crop_log_ratio) < 0.012);
    stk_stage_free(stage);
    free(src);
    free(out);
}

/* No try fits a strip, so that the middle is taken, its ratio clamped to 4/3. */
static void strips_fall_back_to_the_middle(void **state)
{
    (void)state;
    enum { W = 3000 };
    float *src = malloc(3 * W * sizeof(float)), out[4 * 4];
    assert_non_null(src);
    for (int i = 0; i < 3 * W; i++)
        src[i] = (float)(i % W);
    stk_stage *stage = stk_random_resized_crop(4, false);
    assert_int_equal(try_stage(stage, array_type(STK_F32, STK_SHAPE(3, W, 1)), src, 0, out), STK_OK);
    for (int x = 0; x < 4; x++) /* columns 1498 to 1501, one to one */
        assert_true(out[x] == (float)(1498 + x));
    stk_stage_free(stage);
    free(src);
}

static void too_small_images_are_refused(void **state)
{
    (void)state;
    refuse_stage(stk_center_crop(0, 4), STK_INVALID, "center_crop: sizes must be at least 1");
    refuse_stage(stk_random_crop(32, -1), STK_INVALID, "random_crop: size 32 with pad -1 is out of range");
    refuse_stage(stk_random_resized_crop(0, true), STK_INVALID, "random_resized_crop: size must be 1 to 65535");
    refuse_plan(stk_center_crop(40, 4), array_type(STK_U8, STK_SHAPE(32, 32, 3)),
                "an image of 32 x 32 is smaller than the crop of 40 x 4; resize it first");
    refuse_plan(stk_random_crop(40, 3), array_type(STK_U8, STK_SHAPE(40, 32, 3)),
                "an image with a side of 32, padded by 3, is smaller than the crop of 40");
}

/* Sides that vary are not known when a chain is planned, so the stage itself must look. */
static void too_small_records_are_refused(void **state)
{
    (void)state;
    uint8_t pixels[32 * 32 * 3] = {0}, *encoded = NULL, *out = calloc(1, 64 * 64 * 3);
    size_t n;
    stk_field_type any = array_type(STK_U8, STK_SHAPE(STK_ANY, STK_ANY, 3)), planned;
    stk_item item = {array_type(STK_U8, STK_SHAPE(32, 32, 3)), pixels, sizeof(pixels)};
    stk_stage *stages[3] = {stk_center_crop(64, 16), stk_random_crop(33, 0), stk_random_crop(64, 15)};
    assert_non_null(out);
    assert_int_equal(stk_jpeg_encode(pixels, 32, 32, 3, 90, &encoded, &n), STK_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stages[i]->class->plan(stages[i]->params, &any, &planned), STK_OK);
        stk_item to = {planned, out, stk_desc_bytes(planned.desc)};
        assert_int_equal(stages[i]->class->run(stages[i]->params, &(stk_stage_key){0}, &item, &to, &(stk_scratch){0}),
                         STK_INVALID);
        assert_non_null(strstr(stk_error_text(), "is smaller than the crop of"));
        stk_stage_free(stages[i]);
    }
    free(encoded);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(center_crop_takes_the_middle),        cmocka_unit_test(random_crop_draws_every_place),
        cmocka_unit_test(random_crop_mirrors_the_border),      cmocka_unit_test(same_key_same_crop),
        cmocka_unit_test(resized_crop_draws_areas_and_ratios), cmocka_unit_test(strips_fall_back_to_the_middle),
        cmocka_unit_test(too_small_images_are_refused),        cmocka_unit_test(too_small_records_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
