/* EXIF orientations: PIL's pixels, by the stage alone and in a chain; damage is no orientation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/exif.h"
#include "data/stage/chain.h"
#include "golden/exif_golden.h"
#include "stoker/data/dataset.h"

static stk_span span_of(const golden_exif *g)
{
    return (stk_span){g->encoded, g->n};
}

/* Runs a chain that starts with decode and gives u8 of three channels. The stages are taken. */
static void run_chain(stk_stage *const *stage, int n, const golden_exif *g, int64_t height, int64_t width, uint8_t *dst)
{
    stk_chain chain;
    stk_chain_work work = {0};
    stk_field_type encoded = {.kind = STK_FIELD_ENCODED}, measured;
    stk_stage_key key = {.seed = 1};
    stk_item in = {encoded, (void *)(uintptr_t)g->encoded, g->n};
    bool wrong_size = false;
    stk_chain_init(&chain, "image", "test", &encoded);
    for (int i = 0; i < n; i++)
        assert_int_equal(stk_chain_add(&chain, stage[i]), STK_OK);
    assert_int_equal(stk_chain_measure(&chain, &key, &in, &measured), STK_OK);
    assert_true(stk_shape_equal(measured.desc.shape, STK_SHAPE(height, width, 3)));
    assert_int_equal(stk_chain_run(&chain, &key, &in, &measured, dst, &work, &wrong_size), STK_OK);
    stk_chain_work_trim(&work);
    stk_chain_free(&chain);
}

static void upright_as_pil_makes_them(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const golden_exif *g = &golden_exifs[i];
        size_t n = (size_t)(g->height * g->width * 3);
        uint8_t *dst = malloc(n);
        assert_non_null(dst);
        assert_int_equal(stk_exif_orientation(span_of(g)), i + 1);
        run_chain((stk_stage *[]){stk_decode_with(3, true)}, 1, g, g->height, g->width, dst);
        assert_memory_equal(dst, g->pixels, n);
        /* Off by default: the file's own sides. */
        run_chain((stk_stage *[]){stk_decode()}, 1, g, 11, 7, dst);
        assert_memory_equal(dst, golden_exifs[0].pixels, n);
        free(dst);
    }
}

/* A crop after it cuts the upright image, whether the two run as one pass or not. */
static void crops_are_of_the_upright_image(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const golden_exif *g = &golden_exifs[i];
        uint8_t dst[4 * 5 * 3];
        run_chain((stk_stage *[]){stk_decode_with(3, true), stk_center_crop(4, 5)}, 2, g, 4, 5, dst);
        long top = lrint((g->height - 4) / 2.0), left = lrint((g->width - 5) / 2.0);
        for (long y = 0; y < 4; y++)
            assert_memory_equal(dst + y * 15, g->pixels + ((y + top) * g->width + left) * 3, 15);
    }
}

/* Large enough for several tiles, and grey. */
static void turning_moves_every_pixel(void **state)
{
    (void)state;
    enum { HEIGHT = 70, WIDTH = 45 };
    uint8_t src[HEIGHT * WIDTH], dst[HEIGHT * WIDTH];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        src[i] = (uint8_t)(i / WIDTH * 3 + i % WIDTH * 7);
    stk_exif_turn(6, src, HEIGHT, WIDTH, 1, dst); /* clockwise: the lowest row comes first in each row */
    for (int y = 0; y < WIDTH; y++)
        for (int x = 0; x < HEIGHT; x++)
            assert_int_equal(dst[y * HEIGHT + x], src[(HEIGHT - 1 - x) * WIDTH + y]);
    stk_exif_turn(3, src, HEIGHT, WIDTH, 1, dst);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        assert_int_equal(dst[i], src[HEIGHT * WIDTH - 1 - i]);
}

/* Every cut and every changed byte gives some orientation and reads nothing beyond the end. */
static void damage_is_harmless(void **state)
{
    (void)state;
    const golden_exif *g = &golden_exifs[5];
    for (size_t n = 0; n < 80; n++) {
        uint8_t *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, g->encoded, n);
        int orientation = stk_exif_orientation((stk_span){cut, n});
        assert_true(orientation == 1 || orientation == 6);
        for (size_t i = 0; i < n; i++) {
            cut[i] ^= 0xFF;
            orientation = stk_exif_orientation((stk_span){cut, n});
            assert_in_range(orientation, 1, 8);
            cut[i] ^= 0xFF;
        }
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upright_as_pil_makes_them),
        cmocka_unit_test(crops_are_of_the_upright_image),
        cmocka_unit_test(turning_moves_every_pixel),
        cmocka_unit_test(damage_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
