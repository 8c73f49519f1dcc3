/* JPEG: the pixels of PIL, sizes from headers, damaged and unusual files refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/codec/jpeg.h"
#include "golden/images_golden.h"

enum { N_PIXELS = GOLDEN_HEIGHT * GOLDEN_WIDTH, N_FILES = sizeof(golden_jpeg) / sizeof(golden_jpeg[0]) };

/* A copy of exactly n bytes, so that the address sanitizer sees a read past its end. */
static stk_span copy_exactly(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    return (stk_span){copy, n};
}

static void pixels_are_those_of_pil(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    for (int i = 0; i < N_FILES; i++) {
        const golden_image *file = &golden_jpeg[i];
        stk_span encoded = {file->encoded, file->n};
        int64_t height, width;
        print_message("%s\n", file->name);
        assert_int_equal(stk_image_format_of(encoded), STK_IMAGE_JPEG);
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
        for (size_t n = 0; n < golden_jpeg[i].n; n++) {
            stk_span cut = copy_exactly(golden_jpeg[i].encoded, n);
            assert_int_equal(stk_image_decode(cut, 3, out), STK_CORRUPT);
            if (n >= 3)
                assert_string_equal(strncmp(stk_error_text(), "truncated JPEG", 14) ? stk_error_text() : "", "");
            free((void *)cut.data);
        }
}

static void damage_never_crashes(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    for (int i = 0; i < N_FILES; i++)
        for (size_t at = 0; at < golden_jpeg[i].n; at++) {
            stk_span copy = copy_exactly(golden_jpeg[i].encoded, golden_jpeg[i].n);
            ((uint8_t *)copy.data)[at] ^= 0x55;
            int64_t height, width;
            if (stk_image_size(copy, &height, &width) == STK_OK && height * width <= N_PIXELS)
                (void)stk_image_decode(copy, 3, out);
            free((void *)copy.data);
        }
}

static void other_files_are_refused(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3];
    assert_int_equal(stk_image_decode((stk_span){0}, 3, out), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "an empty file");
    assert_int_equal(stk_image_decode((stk_span){(const uint8_t *)"GIF89a", 6}, 3, out), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "not a JPEG, PNG or WebP file");
}

/* Four inks, plain and as Y, Cb, Cr and K; whole and a part. */
static void inks_become_rgb(void **state)
{
    (void)state;
    uint8_t out[N_PIXELS * 3], part[4 * 5 * 3], ycck[sizeof(jpeg_cmyk)];
    static const uint8_t *const rgb[] = {jpeg_cmyk_rgb, jpeg_ycck_rgb}, *const grey[] = {jpeg_cmyk_grey,
                                                                                         jpeg_ycck_grey};
    memcpy(ycck, jpeg_cmyk, sizeof(ycck));
    for (size_t at = 0; at + 12 < sizeof(ycck); at++)
        if (!memcmp(ycck + at, "Adobe", 5)) ycck[at + 11] = 2;
    for (int i = 0; i < 2; i++) {
        stk_span file = {i ? ycck : jpeg_cmyk, sizeof(ycck)};
        assert_int_equal(stk_image_decode(file, 3, out), STK_OK);
        assert_memory_equal(out, rgb[i], N_PIXELS * 3);
        assert_int_equal(stk_image_decode(file, 1, out), STK_OK);
        assert_memory_equal(out, grey[i], N_PIXELS);
        stk_rect rect = {3, 2, 4, 5};
        assert_int_equal(stk_jpeg_decode_by_library(file, GOLDEN_HEIGHT, GOLDEN_WIDTH, &rect, 3, part), STK_OK);
        for (int y = 0; y < 4; y++)
            assert_memory_equal(part + 15 * y, rgb[i] + 3 * ((3 + y) * GOLDEN_WIDTH + 2), 15);
    }
}

/* Changes the frame header of a good file: offset 0 is its marker. */
static stk_status decode_with_frame(int offset, uint8_t value)
{
    uint8_t out[N_PIXELS * 3];
    stk_span copy = copy_exactly(golden_jpeg[0].encoded, golden_jpeg[0].n);
    uint8_t *p = (uint8_t *)copy.data;
    size_t at = 2;
    while (p[at + 1] != 0xC0)
        at += 2 + ((size_t)p[at + 2] << 8 | p[at + 3]);
    p[at + 1 + (size_t)offset] = value;
    stk_status status = stk_image_decode(copy, 3, out);
    free((void *)copy.data);
    return status;
}

static void unusual_kinds_are_unsupported(void **state)
{
    (void)state;
    assert_int_equal(decode_with_frame(0, 0xC3), STK_UNSUPPORTED); /* lossless */
    assert_int_equal(decode_with_frame(3, 12), STK_UNSUPPORTED);   /* 12 bits */
    assert_int_equal(decode_with_frame(5, 0), STK_CORRUPT);        /* height 0 */
    assert_string_equal(stk_error_text(), "an image of 0 x 19 pixels cannot be right");
}

/* A progressive file of 16 x 16 that sends the same scan n_scans times. */
static stk_status decode_scans(int n_scans)
{
    static const uint8_t tables[] = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
    static const uint8_t frame[] = {0xFF, 0xC2, 0, 11, 8, 0, 16, 0, 16, 1, 1, 0x11, 0};
    /* A DC table whose only code, of one bit, is "no difference". */
    static const uint8_t huffman[] = {0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    /* Coefficient 0 of four blocks, a bit each, padded with ones. */
    static const uint8_t scan[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0, 0x0F};
    uint8_t *file = calloc(1, 1 << 16), out[256];
    size_t n = 0;
    assert_non_null(file);
#define ADD(bytes) (memcpy(file + n, bytes, sizeof(bytes)), n += sizeof(bytes))
    ADD(tables);
    memset(file + n, 1, 64);
    n += 64;
    ADD(frame);
    ADD(huffman);
    for (int i = 0; i < n_scans; i++)
        ADD(scan);
    ADD(((uint8_t[]){0xFF, 0xD9}));
#undef ADD
    stk_status status = stk_image_decode((stk_span){file, n}, 1, out);
    free(file);
    return status;
}

static void too_many_scans_are_refused(void **state)
{
    (void)state;
    assert_int_equal(decode_scans(1), STK_OK);
    assert_int_equal(decode_scans(400), STK_OK);
    assert_int_equal(decode_scans(600), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "damaged JPEG: more than 500 scans");
}

static void encoding_comes_back(void **state)
{
    (void)state;
    uint8_t src[32 * 24 * 3], out[32 * 24 * 3], *encoded = NULL;
    size_t n;
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int i = 0; i < 32 * 24 * channels; i++)
            src[i] = (uint8_t)(i / channels % 24 * 5 + i / channels / 24 * 3);
        assert_int_equal(stk_jpeg_encode(src, 32, 24, channels, 98, &encoded, &n), STK_OK);
        int64_t height, width;
        assert_int_equal(stk_image_size((stk_span){encoded, n}, &height, &width), STK_OK);
        assert_true(height == 32 && width == 24);
        assert_int_equal(stk_image_decode((stk_span){encoded, n}, channels, out), STK_OK);
        for (int i = 0; i < 32 * 24 * channels; i++)
            assert_true(abs(src[i] - out[i]) <= 6);
        free(encoded);
    }
    assert_int_equal(stk_jpeg_encode(src, 0, 24, 3, 90, &encoded, &n), STK_INVALID);
    assert_int_equal(stk_jpeg_encode(src, 32, 24, 2, 90, &encoded, &n), STK_INVALID);
    assert_int_equal(stk_jpeg_encode(src, 32, 24, 3, 0, &encoded, &n), STK_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_of_pil),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damage_never_crashes),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(inks_become_rgb),
        cmocka_unit_test(unusual_kinds_are_unsupported),
        cmocka_unit_test(too_many_scans_are_refused),
        cmocka_unit_test(encoding_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
