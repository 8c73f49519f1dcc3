/* Stages of images from a recipe: every key reaches its stage, short forms, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/stage/run_stage.h"
#include "golden/exif_golden.h"
#include "recipe/build.h"

/* The stages of a recipe, which must be right; made one by one. */
static stk_recipe *read_recipe(const char *stages)
{
    char text[2048];
    stk_recipe *recipe = NULL;
    snprintf(text, sizeof(text),
             "data: {train: {source: {images: nowhere}, stages: %s}}\nmodel: {mlp: {classes: 10}}\nbatch: 2\n", stages);
    return stk_recipe_parse("test.yaml", text, strlen(text), NULL, 0, &recipe) == STK_OK ? recipe : NULL;
}

/* What both make of one picture, for a few keys. */
static bool is_same(const stk_stage *a, const stk_stage *b)
{
    enum { HEIGHT = 24, WIDTH = 31, MOST_BYTES = 40000 };
    static uint8_t src[HEIGHT * WIDTH * 3], out[2][MOST_BYTES];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * i / 7 + i / 3 % 11 * 20);
    for (uint64_t k = 0; k < 12; k++) {
        memset(out, 0, sizeof(out));
        for (int i = 0; i < 2; i++)
            assert_int_equal(try_stage(i ? b : a, array_type(STK_U8, STK_SHAPE(HEIGHT, WIDTH, 3)), src, k, out[i]),
                             STK_OK);
        if (memcmp(out[0], out[1], MOST_BYTES)) return false;
    }
    return true;
}

/* The one stage of the list is what the constructor gives; takes wanted. */
static void expect(const char *stages, stk_stage *wanted)
{
    stk_stage *stage;
    stk_recipe *recipe = read_recipe(stages);
    if (!recipe) fail_msg("%s: %s", stages, stk_error_text());
    assert_int_equal(wanted->status, STK_OK);
    stk_status status = stk_build_stage(recipe->part[STK_PART_TRAIN].stages->child, &stage);
    if (status != STK_OK) fail_msg("%s: %s", stages, stk_error_text());
    if (stage->status != STK_OK) fail_msg("%s: %s", stages, stage->error);
    assert_ptr_equal(stage->class, wanted->class);
    if (!is_same(stage, wanted)) fail_msg("%s: other settings", stages);
    stk_stage_free(stage);
    stk_stage_free(wanted);
    stk_recipe_free(recipe);
}

static void refuse(const char *stages, const char *text)
{
    stk_stage *stage = NULL;
    stk_recipe *recipe = read_recipe(stages);
    if (recipe && stk_build_stage(recipe->part[STK_PART_TRAIN].stages->child, &stage) == STK_OK)
        fail_msg("%s: not refused", stages);
    if (!strstr(stk_error_text(), text)) fail_msg("%s: %s", stages, stk_error_text());
    stk_recipe_free(recipe);
}

static void resizing(void **state)
{
    (void)state;
    stk_resize_config r = stk_resize_config_default();
    expect("[{resize: 9}]", stk_resize(9, 9, true));
    expect("[{resize: {shorter: 9, antialias: false}}]", stk_resize_shorter(9, false));
    r.height = 5;
    r.width = 6;
    r.filter = STK_FILTER_BICUBIC;
    expect("[{resize: {height: 5, width: 6, filter: bicubic}}]", stk_resize_with(&r));
    r.like = STK_LIKE_TF;
    r.antialias = false;
    expect("[{resize: {height: 5, width: 6, filter: bicubic, like: tf}}]", stk_resize_with(&r));
    r.antialias = true;
    expect("[{resize: {height: 5, width: 6, filter: bicubic, like: tf, antialias: true}}]", stk_resize_with(&r));
    r.like = STK_LIKE_OPENCV;
    r.antialias = false;
    r.filter = STK_FILTER_NEAREST;
    expect("[{resize: {height: 5, width: 6, filter: nearest, like: opencv}}]", stk_resize_with(&r));
    expect("[{random_resized_crop: 7}]", stk_random_resized_crop(7, true));
    expect("[{random_resized_crop: {size: 7, filter: bicubic, antialias: false}}]",
           stk_random_resized_crop_with(7, STK_FILTER_BICUBIC, false));
    refuse("[{resize: {shorter: 9, size: 5}}]", "'shorter' says it all");
    refuse("[{resize: {size: 5, filter: cubic}}]", "bicubic");
}

/* A file that EXIF turns on its side. */
static void decoding(void **state)
{
    (void)state;
    static const char *const stages[] = {"[decode]", "[{decode: {channels: 1, exif: true}}]"};
    for (int i = 0; i < 2; i++) {
        stk_stage *stage;
        stk_recipe *recipe = read_recipe(stages[i]);
        stk_item in = {.data = (void *)(uintptr_t)exif_6, .n_bytes = sizeof(exif_6)};
        stk_field_type type;
        assert_non_null(recipe);
        assert_int_equal(stk_build_stage(recipe->part[STK_PART_TRAIN].stages->child, &stage), STK_OK);
        assert_int_equal(stage->class->measure(stage->params, NULL, &in, &type), STK_OK);
        assert_true(stk_shape_equal(type.desc.shape, i ? STK_SHAPE(7, 11, 1) : STK_SHAPE(11, 7, 3)));
        stk_stage_free(stage);
        stk_recipe_free(recipe);
    }
}

static void augmentations(void **state)
{
    (void)state;
    stk_random_erasing_config erasing = stk_random_erasing_config_default();
    stk_random_affine_config affine = stk_random_affine_config_default();
    expect("[random_flip]", stk_random_flip());
    expect("[{random_flip: vertical}]", stk_random_flip_vertical());
    expect("[{color_jitter: {brightness: 0.4, contrast: 0.3, saturation: 0.2, hue: 0.1}}]",
           stk_color_jitter(0.4, 0.3, 0.2, 0.1));
    expect("[random_grayscale]", stk_random_grayscale(0.1));
    expect("[{gaussian_blur: 9}]", stk_gaussian_blur(9, 0.1, 2));
    expect("[{gaussian_blur: {kernel: 5, sigma: [1, 3]}}]", stk_gaussian_blur(5, 1, 3));
    expect("[random_erasing]", stk_random_erasing(&erasing));
    erasing = (stk_random_erasing_config){0.25, {0.1, 0.2}, {0.5, 2}, 3};
    expect("[{random_erasing: {p: 0.25, scale: [0.1, 0.2], ratio: [0.5, 2], value: 3}}]", stk_random_erasing(&erasing));
    expect("[random_rotation]", stk_random_rotation(-10, 10, STK_FILTER_NEAREST, 0));
    expect("[{random_rotation: {degrees: [5, 30], filter: bilinear, fill: 9}}]",
           stk_random_rotation(5, 30, STK_FILTER_BILINEAR, 9));
    expect("[random_affine]", stk_random_affine(&affine));
    affine = (stk_random_affine_config){{-5, 6}, 0.1, 0.2, {0.9, 1.1}, {-3, 4}, {-1, 2}, STK_FILTER_BILINEAR, 8};
    expect("[{random_affine: {degrees: [-5, 6], translate: [0.1, 0.2], scale: [0.9, 1.1], shear: [-3, 4], "
           "shear_y: [-1, 2], filter: bilinear, fill: 8}}]",
           stk_random_affine(&affine));
    expect("[randaugment]", stk_randaugment(2, 9));
    expect("[{randaugment: {n: 3, magnitude: 15}}]", stk_randaugment(3, 15));
    refuse("[{gaussian_blur: {kernel: 5, sigma: [1]}}]", "'sigma' needs two numbers: [least, most]");
    refuse("[{random_rotation: {filter: bicubic}}]", "bilinear");
    refuse("[{color_jitter: {hue: 0.7}}]", "hue");
}

static void simple_stages(void **state)
{
    (void)state;
    expect("[{pad: 4}]", stk_pad_image(4, 4, 4, 4, 0));
    expect("[{pad: {size: 4, left: 0, bottom: 7, value: 128}}]", stk_pad_image(4, 0, 7, 4, 128));
    expect("[clip]", stk_clip_values(0, 1));
    expect("[{clip: {low: -2, high: 3.5}}]", stk_clip_values(-2, 3.5));
    expect("[layout]", stk_layout_channels_first());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding),
        cmocka_unit_test(resizing),
        cmocka_unit_test(augmentations),
        cmocka_unit_test(simple_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
