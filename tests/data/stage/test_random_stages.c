/* Stages that draw: how often and how far, that the key alone decides, and what they refuse. Their pixels for given
 * numbers: test_augment.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/stage/blur.h"
#include "data/stage/color.h"
#include "data/stage/run_stage.h"

enum { HEIGHT = 20, WIDTH = 30, N = HEIGHT * WIDTH * 3 };

static uint8_t picture[N];

static int make_picture(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        picture[i] = (uint8_t)(1 + stk_mix64((uint64_t)(i / 9)) % 200 + (uint64_t)(i % 50));
    return 0;
}

static stk_field_type rgb(void)
{
    return array_type(STK_U8, STK_SHAPE(HEIGHT, WIDTH, 3));
}

static stk_stage *all_stages(int i)
{
    stk_random_affine_config affine = stk_random_affine_config_default();
    stk_random_erasing_config erasing = stk_random_erasing_config_default();
    affine.degrees[1] = 40;
    affine.move_x = affine.move_y = 0.2;
    affine.scale[1] = 1.5;
    affine.shear_y[0] = -10;
    affine.filter = STK_FILTER_BILINEAR;
    switch (i) {
    case 0: return stk_color_jitter(0.4, 0.4, 0.4, 0.1);
    case 1: return stk_random_grayscale(0.5);
    case 2: return stk_gaussian_blur(5, 0.1, 2);
    case 3: return stk_random_erasing(&erasing);
    case 4: return stk_random_rotation(-20, 20, STK_FILTER_NEAREST, 9);
    case 5: return stk_random_affine(&affine);
    case 6: return stk_randaugment(3, 12);
    case 7: return stk_random_flip_vertical();
    default: return NULL;
    }
}

/* The same key gives the same, other samples others; in place is no different; the input stays. */
static void the_key_decides(void **state)
{
    (void)state;
    stk_stage *stage;
    for (int i = 0; (stage = all_stages(i)); i++) {
        uint8_t first[N], again[N], src[N];
        int n_different = 0;
        assert_true(stage->class->random);
        for (uint64_t sample = 0; sample < 24; sample++) {
            memcpy(src, picture, N);
            assert_int_equal(try_stage(stage, rgb(), src, sample, first), STK_OK);
            assert_memory_equal(src, picture, N);
            memset(again, 0xA5, N);
            assert_int_equal(try_stage(stage, rgb(), src, sample, again), STK_OK);
            assert_memory_equal(first, again, N);
            if (stage->class->in_place) {
                assert_int_equal(try_stage(stage, rgb(), src, sample, src), STK_OK);
                assert_memory_equal(first, src, N);
            }
            n_different += memcmp(first, picture, N) != 0;
        }
        if (n_different < 5) fail_msg("stage '%s' changed %d of 24 images", stage->class->key.name, n_different);
        stk_stage_free(stage);
    }
}

/* Rectangles: half of all images, 2 to 33 % of the area, ratios 0.3 to 3.3; the rest of the image stays. */
static void erased_rectangles(void **state)
{
    (void)state;
    enum { SIDE = 100, N_IMAGES = 2000 };
    static uint8_t src[SIDE * SIDE], dst[SIDE * SIDE];
    stk_random_erasing_config config = stk_random_erasing_config_default();
    config.value = 7;
    stk_stage *stage = stk_random_erasing(&config);
    int n_erased = 0;
    double sum = 0;
    memset(src, 200, sizeof(src));
    for (uint64_t i = 0; i < N_IMAGES; i++) {
        int top = SIDE, left = SIDE, bottom = -1, right = -1, n = 0;
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(SIDE, SIDE, 1)), src, i, dst), STK_OK);
        for (int k = 0; k < SIDE * SIDE; k++) {
            if (dst[k] == 200) continue;
            int y = k / SIDE, x = k % SIDE;
            assert_int_equal(dst[k], 7);
            top = y < top ? y : top;
            bottom = y > bottom ? y : bottom;
            left = x < left ? x : left;
            right = x > right ? x : right;
            n++;
        }
        if (!n) continue;
        int h = bottom - top + 1, w = right - left + 1;
        assert_int_equal(n, h * w);
        assert_in_range(n, 150, 3400);
        assert_true((double)h / w > 0.25 && (double)h / w < 4);
        sum += (double)n / (SIDE * SIDE);
        n_erased++;
    }
    assert_in_range(n_erased, 910, 1090); /* four deviations */
    assert_true(fabs(sum / n_erased - 0.175) < 0.012);
    stk_stage_free(stage);
}

static void erased_floats(void **state)
{
    (void)state;
    stk_random_erasing_config config = stk_random_erasing_config_default();
    config.chance = 1;
    config.value = -2.5;
    float src[10 * 12 * 2], dst[10 * 12 * 2];
    int n = 0;
    for (int i = 0; i < 240; i++)
        src[i] = (float)i;
    run_stage(stk_random_erasing(&config), array_type(STK_F32, STK_SHAPE(10, 12, 2)), src, dst);
    for (int i = 0; i < 240; i++)
        assert_true(dst[i] == src[i] || (dst[i] == -2.5f && ++n));
    assert_in_range(n, 4, 80);
    refuse_plan(stk_random_erasing(&config), rgb(),
                "value -2.5 is no u8; put the stage after 'normalize', or choose 0 to 255");
}

/* All orders and the whole range of factors come up: of one grey value only brightness changes anything. */
static void jitter_spreads(void **state)
{
    (void)state;
    uint8_t src[3] = {100, 100, 100}, dst[3];
    stk_stage *stage = stk_color_jitter(0.5, 0, 0, 0);
    int low = 255, high = 0;
    double sum = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(1, 1, 3)), src, i, dst), STK_OK);
        low = dst[0] < low ? dst[0] : low;
        high = dst[0] > high ? dst[0] : high;
        sum += dst[0];
    }
    assert_in_range(low, 49, 51);
    assert_in_range(high, 148, 150);
    assert_true(fabs(sum / 4000 - 99.5) < 2);
    stk_stage_free(stage);
    /* Strengths above 1 never make a factor negative. */
    stage = stk_color_jitter(3, 0, 0, 0);
    for (uint64_t i = 0, n_white = 0; i < 200; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(1, 1, 3)), src, i, dst), STK_OK);
        n_white += dst[0] == 255;
        if (i == 199) assert_in_range(n_white, 40, 100); /* factors above 2.55 of 0 to 4 */
    }
    stk_stage_free(stage);
}

static void grey_by_chance(void **state)
{
    (void)state;
    uint8_t src[3] = {10, 200, 90}, dst[3];
    stk_stage *stage = stk_random_grayscale(0.3);
    int n_grey = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(1, 1, 3)), src, i, dst), STK_OK);
        if (dst[0] == 10) continue;
        assert_memory_equal(dst, ((uint8_t[]){130, 130, 130}), 3);
        n_grey++;
    }
    assert_in_range(n_grey, 1084, 1316); /* four deviations */
    stk_stage_free(stage);
}

static void upside_down(void **state)
{
    (void)state;
    uint8_t src[5 * 3], dst[5 * 3];
    stk_stage *stage = stk_random_flip_vertical();
    int n_flipped = 0;
    for (int i = 0; i < 15; i++)
        src[i] = (uint8_t)i;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(5, 1, 3)), src, i, dst), STK_OK);
        bool flipped = memcmp(src, dst, 15) != 0;
        for (int k = 0; k < 15; k++)
            assert_int_equal(dst[k], flipped ? (4 - k / 3) * 3 + k % 3 : k);
        n_flipped += flipped;
    }
    assert_in_range(n_flipped, 437, 563);
    stk_stage_free(stage);
}

/* Turned counter-clockwise by 90 degrees, as torchvision's rotate; and what comes from outside is filled. */
static void rotation_turns(void **state)
{
    (void)state;
    uint8_t src[4 * 4], dst[4 * 4], wide[2 * 6], turned[2 * 6];
    for (int i = 0; i < 16; i++)
        src[i] = (uint8_t)i;
    for (int filter = 0; filter < 3; filter += 2) {
        run_stage(stk_random_rotation(90, 90, (stk_filter)filter, 0), array_type(STK_U8, STK_SHAPE(4, 4, 1)), src, dst);
        for (int i = 0; i < 16; i++)
            assert_int_equal(dst[i], src[i % 4 * 4 + 3 - i / 4]);
    }
    memset(wide, 50, sizeof(wide));
    run_stage(stk_random_rotation(90, 90, STK_FILTER_BILINEAR, 255), array_type(STK_U8, STK_SHAPE(2, 6, 1)), wide,
              turned);
    for (int i = 0; i < 12; i++)
        assert_int_equal(turned[i], i % 6 == 2 || i % 6 == 3 ? 50 : 255);
}

/* Kernels about as large as the image, and rows that are shorter than a group of the loops. */
static void blurs_of_small_images(void **state)
{
    (void)state;
    stk_scratch scratch = {0};
    for (int side = 2; side < 14; side++) {
        size_t n = (size_t)(side * (side + 1) * 3);
        uint8_t *src = malloc(n), *dst = malloc(n);
        assert_true(src && dst);
        memset(src, 93, n);
        for (int kernel = 1; kernel / 2 < side; kernel += 2) {
            assert_int_equal(stk_blur(kernel, 1.5, src, dst, side, side + 1, 3, &scratch), STK_OK);
            assert_memory_equal(src, dst, n);
        }
        free(src);
        free(dst);
    }
    stk_scratch_free(&scratch);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    stk_random_affine_config affine = stk_random_affine_config_default();
    const stk_field_type f32 = array_type(STK_F32, STK_SHAPE(4, 4, 3));
    refuse_stage(stk_color_jitter(0, 0, 0, 0.6), STK_INVALID, "color_jitter: 0.6 is not between 0 and 0.5");
    refuse_stage(stk_random_grayscale(NAN), STK_INVALID, "random_grayscale: chance nan is not between 0 and 1");
    refuse_stage(stk_gaussian_blur(4, 1, 2), STK_INVALID, "gaussian_blur: kernel 4 is not odd and between 1 and 255");
    refuse_stage(stk_gaussian_blur(5, 2, 1), STK_INVALID,
                 "gaussian_blur: sigma must rise and lie between 0.01 and 1000");
    refuse_stage(stk_random_rotation(10, -10, STK_FILTER_NEAREST, 0), STK_INVALID,
                 "random_rotation: degrees must rise and lie between -360 and 360");
    refuse_stage(stk_random_rotation(0, 1, STK_FILTER_BICUBIC, 0), STK_INVALID,
                 "random_rotation: the filter must be nearest or bilinear");
    affine.scale[0] = 0;
    refuse_stage(stk_random_affine(&affine), STK_INVALID,
                 "random_affine: scale must rise and lie between 0.01 and 100");
    refuse_stage(stk_randaugment(2, 31), STK_INVALID, "randaugment: magnitude 31 is not between 0 and 30");
    refuse_plan(stk_color_jitter(1, 0, 0, 0), f32, "needs u8 images [H,W,C], not f32[4,4,3]");
    refuse_plan(stk_randaugment(2, 9), array_type(STK_U8, STK_SHAPE(4, 4, 4)),
                "needs images of 1 or 3 channels, not u8[4,4,4]");
    refuse_plan(stk_gaussian_blur(9, 1, 2), array_type(STK_U8, STK_SHAPE(4, 40, 3)),
                "an image with a side of 4 is too small for a kernel of 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_decides),
        cmocka_unit_test(erased_rectangles),
        cmocka_unit_test(erased_floats),
        cmocka_unit_test(jitter_spreads),
        cmocka_unit_test(grey_by_chance),
        cmocka_unit_test(upside_down),
        cmocka_unit_test(rotation_turns),
        cmocka_unit_test(blurs_of_small_images),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, make_picture, NULL);
}
