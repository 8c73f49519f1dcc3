/* Images of any size through stages for one size: what is left to the stages, what is resized before them, and to what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/stage/any_size.h"

static void free_bytes(stk_span bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

static stk_span make_image(int64_t height, int64_t width)
{
    stk_span out;
    uint8_t *bytes, *pixels = malloc((size_t)(height * width * 3));
    assert_non_null(pixels);
    for (int64_t i = 0; i < height * width * 3; i++)
        pixels[i] = (uint8_t)(i / 3 % width * 5 + i / 3 / width * 3 + i % 3 * 40);
    assert_int_equal(stk_png_encode(pixels, height, width, 3, &bytes, &out.n), STK_OK);
    out.data = bytes;
    free(pixels);
    return out;
}

/* stages: ended by NULL, taken. */
static void make_chain(stk_chain *chain, stk_stage *const *stages)
{
    stk_field_type encoded = {.kind = STK_FIELD_ENCODED};
    stk_chain_init(chain, "image", "test", &encoded);
    for (; *stages; stages++)
        assert_int_equal(stk_chain_add(chain, *stages), STK_OK);
}

/* What the stages make of the image, and whether it was fitted; NULL where they refuse it. */
static uint8_t *run(stk_stage *const *stages, stk_span image, stk_shape want, bool *fitted)
{
    stk_chain chain;
    stk_field_type type = {STK_FIELD_ARRAY, stk_desc_make(STK_U8, want)};
    uint8_t *dst = calloc(1, stk_desc_bytes(type.desc));
    assert_non_null(dst);
    make_chain(&chain, stages);
    stk_status status = stk_chain_run_any_size(&chain, image, &type, dst, fitted);
    stk_chain_free(&chain);
    if (status == STK_OK) return dst;
    free(dst);
    return NULL;
}

#define STAGES(...) ((stk_stage *[]){__VA_ARGS__, NULL})

/* The first stages, which know nothing of sizes, are to give what the second do, which resize. */
static void check_like(stk_stage *const *stages, stk_stage *const *resizing, int64_t height, int64_t width,
                       stk_shape want)
{
    bool fitted, not_fitted;
    stk_span image = make_image(height, width);
    uint8_t *a = run(stages, image, want, &fitted), *b = run(resizing, image, want, &not_fitted);
    assert_true(a && b && fitted && !not_fitted);
    assert_memory_equal(a, b, (size_t)stk_shape_count(want));
    free(a);
    free(b);
    free_bytes(image);
}

static void images_of_other_sizes_are_resized_and_their_middle_taken(void **state)
{
    (void)state;
    check_like(STAGES(stk_decode()), STAGES(stk_decode(), stk_resize_shorter(32, true), stk_center_crop(32, 32)), 48,
               90, STK_SHAPE(32, 32, 3));
    check_like(STAGES(stk_decode()), STAGES(stk_decode(), stk_resize_shorter(32, true), stk_center_crop(32, 32)), 90,
               48, STK_SHAPE(32, 32, 3));
    /* Small ones grow. */
    check_like(STAGES(stk_decode()), STAGES(stk_decode(), stk_resize(32, 32, true)), 8, 8, STK_SHAPE(32, 32, 3));
    /* No square is wanted: both sides are covered. */
    check_like(STAGES(stk_decode()), STAGES(stk_decode(), stk_resize(20, 40, true), stk_center_crop(20, 30)), 40, 80,
               STK_SHAPE(20, 30, 3));
    check_like(STAGES(stk_decode()), STAGES(stk_decode(), stk_resize(30, 30, true), stk_center_crop(20, 30)), 60, 60,
               STK_SHAPE(20, 30, 3));
}

static void stages_that_change_sizes_are_reckoned_with(void **state)
{
    (void)state;
    /* A border is added behind: what is decoded is to be so much smaller. */
    check_like(STAGES(stk_decode(), stk_pad_image(2, 2, 2, 2, 9)),
               STAGES(stk_decode(), stk_resize(28, 28, true), stk_pad_image(2, 2, 2, 2, 9)), 70, 70,
               STK_SHAPE(32, 32, 3));
    /* Channels come first in the end. */
    check_like(STAGES(stk_decode(), stk_layout_channels_first()),
               STAGES(stk_decode(), stk_resize(32, 32, true), stk_layout_channels_first()), 70, 70,
               STK_SHAPE(3, 32, 32));
    /* Too small for the crop. */
    check_like(STAGES(stk_decode(), stk_center_crop(32, 32)),
               STAGES(stk_decode(), stk_resize(32, 32, true), stk_center_crop(32, 32)), 16, 16, STK_SHAPE(32, 32, 3));
}

static void images_that_fit_are_left_to_the_stages(void **state)
{
    (void)state;
    bool fitted;
    stk_span image = make_image(32, 32), large = make_image(50, 60);
    uint8_t *decoded = malloc(32 * 32 * 3), *a = run(STAGES(stk_decode()), image, STK_SHAPE(32, 32, 3), &fitted);
    assert_non_null(decoded);
    assert_int_equal(stk_image_decode(image, 3, decoded), STK_OK);
    assert_true(a && !fitted);
    assert_memory_equal(a, decoded, 32 * 32 * 3);
    free(a);
    free(decoded);
    a = run(STAGES(stk_decode(), stk_center_crop(32, 32)), large, STK_SHAPE(32, 32, 3), &fitted);
    assert_true(a && !fitted);
    free(a);
    free_bytes(image);
    free_bytes(large);
}

static void damage_is_said_as_ever(void **state)
{
    (void)state;
    bool fitted;
    stk_span image = make_image(40, 40);
    assert_null(run(STAGES(stk_decode()), (stk_span){image.data, image.n / 2}, STK_SHAPE(32, 32, 3), &fitted));
    assert_null(run(STAGES(stk_decode()), (stk_span){image.data, 4}, STK_SHAPE(32, 32, 3), &fitted));
    /* Nothing makes five channels of it. */
    assert_null(run(STAGES(stk_decode()), image, STK_SHAPE(32, 32, 5), &fitted));
    assert_non_null(strstr(stk_error_text(), "the batch needs"));
    free_bytes(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_of_other_sizes_are_resized_and_their_middle_taken),
                                       cmocka_unit_test(stages_that_change_sizes_are_reckoned_with),
                                       cmocka_unit_test(images_that_fit_are_left_to_the_stages),
                                       cmocka_unit_test(damage_is_said_as_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
