/* PNG: the pixels of PIL for every colour type, sizes from headers, damaged files refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "golden/images_golden.h"

enum { N_PIXELS = GOLDEN_HEIGHT * GOLDEN_WIDTH, N_FILES = sizeof(golden_png) / sizeof(golden_png[0]) };

static void pixels_are_those_of_pil(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    for (int i = 0; i < N_FILES; i++) {
        const golden_image *file = &golden_png[i];
        stk_span encoded = {file->encoded, file->n};
        int64_t height, width;
        print_message("%s\n", file->name);
        assert_int_equal(stk_image_format_of(encoded), STK_IMAGE_PNG);
        assert_int_equal(stk_image_size(encoded, &height, &width), STK_OK);
        assert_int_equal(height, GOLDEN_HEIGHT);
        assert_int_equal(width, GOLDEN_WIDTH);
        assert_int_equal(stk_image_decode(encoded, 3, out), STK_OK);
        assert_memory_equal(out, file->rgb, N_PIXELS * 3);
        assert_int_equal(stk_image_decode(encoded, 1, out), STK_OK);
        assert_memory_equal(out, file->grey, N_PIXELS);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    for (int i = 0; i < N_FILES; i++)
        for (size_t n = 0; n < golden_png[i].n; n++) {
            uint8_t *copy = malloc(n ? n : 1);
            assert_non_null(copy);
            memcpy(copy, golden_png[i].encoded, n);
            assert_int_equal(stk_image_decode((stk_span){copy, n}, 3, out), STK_CORRUPT);
            if (n >= 8) assert_string_equal(strncmp(stk_error_text(), "truncated PNG", 13) ? stk_error_text() : "", "");
            free(copy);
        }
}

/* Checksums cover every byte of the chunks that matter, so that damage there never passes. */
static void damage_is_noticed(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    const golden_image *file = &golden_png[0];
    for (size_t at = 0; at < file->n; at++) {
        uint8_t *copy = malloc(file->n);
        assert_non_null(copy);
        memcpy(copy, file->encoded, file->n);
        copy[at] ^= 0x10;
        int64_t height, width;
        stk_status status = stk_image_size((stk_span){copy, file->n}, &height, &width);
        if (status == STK_OK && height * width <= N_PIXELS)
            assert_int_equal(stk_image_decode((stk_span){copy, file->n}, 3, out), STK_CORRUPT);
        free(copy);
    }
}

static void huge_sizes_are_refused(void **state)
{
    (void)state;
    uint8_t copy[64], out[3];
    int64_t height, width;
    memcpy(copy, golden_png[0].encoded, sizeof(copy));
    memcpy(copy + 16, (uint8_t[]){0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF}, 8);
    assert_int_equal(stk_image_size((stk_span){copy, sizeof(copy)}, &height, &width), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "an image of 65535 x 65535 pixels cannot be right");
    memcpy(copy + 16, (uint8_t[]){0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1}, 8);
    assert_int_equal(stk_image_decode((stk_span){copy, sizeof(copy)}, 3, out), STK_CORRUPT);
}

static void sizes_of_images(void **state)
{
    (void)state;
    assert_true(stk_image_can_be(1, 1) && stk_image_can_be(65535, 1) && stk_image_can_be(1 << 14, 1 << 14));
    assert_false(stk_image_can_be(0, 1) || stk_image_can_be(1, 0) || stk_image_can_be(-1, 1));
    assert_false(stk_image_can_be(65536, 1) || stk_image_can_be(1, 65536) || stk_image_can_be((1 << 14) + 1, 1 << 14));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_images),
        cmocka_unit_test(pixels_are_those_of_pil),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(huge_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
