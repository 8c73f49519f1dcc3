/* WebP: the pixels of PIL, lossy and lossless, with and without transparency; animations and damaged files refused with
 * a reason; memory charged before it is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/image.h"
#include "golden/webp_golden.h"

enum { N_PIXELS = WEBP_HEIGHT * WEBP_WIDTH, N_FILES = sizeof(golden_webp) / sizeof(golden_webp[0]) };

/* Skips the test where this build has no libwebp, once it has said so by name. */
static void need_webp(void)
{
    int64_t height, width;
    stk_span encoded = {golden_webp[0].encoded, golden_webp[0].n};
    stk_status status = stk_image_size(encoded, &height, &width);
    if (status != STK_UNSUPPORTED) return;
    assert_non_null(strstr(stk_error_text(), "this build of Stoker has no libwebp"));
    skip();
}

static void pixels_are_those_of_pil(void **state)
{
    (void)state;
    static uint8_t out[N_PIXELS * 3];
    need_webp();
    for (int i = 0; i < N_FILES; i++) {
        const golden_webp_file *file = &golden_webp[i];
        stk_span encoded = {file->encoded, file->n};
        int64_t height, width;
        print_message("%s\n", file->name);
        assert_int_equal(stk_image_format_of(encoded), STK_IMAGE_WEBP);
        assert_int_equal(stk_image_size(encoded, &height, &width), STK_OK);
        assert_int_equal(height, WEBP_HEIGHT);
        assert_int_equal(width, WEBP_WIDTH);
        assert_int_equal(stk_image_decode(encoded, 3, out), STK_OK);
        assert_memory_equal(out, file->rgb, N_PIXELS * 3);
        assert_int_equal(stk_image_decode(encoded, 1, out), STK_OK);
        assert_memory_equal(out, file->grey, N_PIXELS);
    }
}

/* All but metadata behind the picture, whose loss changes no pixel. */
static void truncations_are_refused(void **state)
{
    (void)state;
    static uint8_t out[N_PIXELS * 3];
    need_webp();
    for (int i = 0; i < N_FILES; i++) {
        const golden_webp_file *file = &golden_webp[i];
        for (size_t n = 0; n < file->n; n++) {
            uint8_t *copy = malloc(n ? n : 1);
            assert_non_null(copy);
            memcpy(copy, file->encoded, n);
            stk_status status = stk_image_decode((stk_span){copy, n}, 3, out);
            if (status == STK_OK) {
                assert_string_equal(file->name, "metadata");
                assert_memory_equal(out, file->rgb, N_PIXELS * 3);
            } else {
                assert_int_equal(status, STK_CORRUPT);
                if (n >= 12) assert_non_null(strstr(stk_error_text(), "WebP"));
            }
            free(copy);
        }
    }
}

/* There are no checksums: damage is noticed or gives other pixels, and nothing else happens. */
static void damage_does_no_harm(void **state)
{
    (void)state;
    need_webp();
    for (int i = 0; i < N_FILES; i++) {
        const golden_webp_file *file = &golden_webp[i];
        for (size_t at = 0; at < file->n; at += 3) {
            int64_t height, width;
            uint8_t *copy = malloc(file->n);
            assert_non_null(copy);
            memcpy(copy, file->encoded, file->n);
            copy[at] ^= 0x15;
            stk_span encoded = {copy, file->n};
            if (stk_image_size(encoded, &height, &width) == STK_OK && height * width <= 1 << 20) {
                uint8_t *out = malloc((size_t)(height * width) * 3);
                assert_non_null(out);
                stk_status status = stk_image_decode(encoded, 3, out);
                assert_true(status == STK_OK || status == STK_CORRUPT || status == STK_UNSUPPORTED);
                free(out);
            }
            free(copy);
        }
    }
}

static void animations_are_refused_by_name(void **state)
{
    (void)state;
    uint8_t out[3];
    int64_t height, width;
    need_webp();
    stk_span encoded = {webp_animation, sizeof(webp_animation)};
    assert_int_equal(stk_image_size(encoded, &height, &width), STK_UNSUPPORTED);
    assert_string_equal(stk_error_text(), "an animated WebP: only still pictures are read");
    assert_int_equal(stk_image_decode(encoded, 3, out), STK_UNSUPPORTED);
}

static void memory_is_charged(void **state)
{
    (void)state;
    static uint8_t out[N_PIXELS * 3];
    stk_memory *memory;
    stk_memory_stats stats;
    need_webp();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stk_memory_new(i ? 8 << 20 : 64 << 10, &memory), STK_OK);
        stk_memory *before = stk_memory_use(memory);
        stk_span encoded = {golden_webp[3].encoded, golden_webp[3].n};
        assert_int_equal(stk_image_decode(encoded, 1, out), i ? STK_OK : STK_NO_MEMORY);
        (void)stk_memory_use(before);
        stk_memory_get_stats(memory, &stats);
        assert_int_equal(stats.used_bytes, 0);
        assert_true(!i || stats.peak_bytes >= (size_t)N_PIXELS * 7);
        stk_memory_free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_of_pil), cmocka_unit_test(truncations_are_refused),
        cmocka_unit_test(damage_does_no_harm),     cmocka_unit_test(animations_are_refused_by_name),
        cmocka_unit_test(memory_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
