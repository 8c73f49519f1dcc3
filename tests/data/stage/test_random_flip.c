/* Mirroring: which pixels, how often, in place and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/stage/run_stage.h"

static void half_of_all_images_are_mirrored(void **state)
{
    (void)state;
    uint8_t src[3 * 5], out[3 * 5];
    int n_flipped = 0;
    for (int i = 0; i < 15; i++)
        src[i] = (uint8_t)i;
    stk_stage *stage = stk_random_flip();
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(try_stage(stage, array_type(STK_U8, STK_SHAPE(3, 5, 1)), src, i, out), STK_OK);
        bool flipped = memcmp(src, out, sizeof(src)) != 0;
        for (int k = 0; k < 15; k++)
            assert_int_equal(out[k], flipped ? k / 5 * 5 + 4 - k % 5 : k);
        n_flipped += flipped;
    }
    assert_in_range(n_flipped, 4800, 5200); /* four deviations */
    stk_stage_free(stage);
}

/* Pixels of every size stay whole, and the result in place is the same. */
static void pixels_stay_whole(void **state)
{
    (void)state;
    float src[2 * 7 * 40], out[2 * 7 * 40];
    stk_stage *stage = stk_random_flip();
    assert_true(stage->class->in_place && stage->class->random);
    for (int i = 0; i < 2 * 7 * 40; i++)
        src[i] = (float)i;
    static const struct {
        stk_dtype dtype;
        int64_t channels;
    } kinds[] = {{STK_U8, 3}, {STK_U8, 1}, {STK_U8, 4}, {STK_F32, 1}, {STK_F32, 3}, {STK_F32, 40}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        stk_field_type type = array_type(kinds[k].dtype, STK_SHAPE(2, 7, kinds[k].channels));
        size_t pixel = (size_t)kinds[k].channels * stk_dtype_bytes(kinds[k].dtype), n = stk_desc_bytes(type.desc);
        int n_flipped = 0;
        for (uint64_t i = 0; i < 20; i++) {
            uint8_t copy[sizeof(src)];
            assert_int_equal(try_stage(stage, type, src, i, out), STK_OK);
            memcpy(copy, src, n);
            assert_int_equal(try_stage(stage, type, copy, i, copy), STK_OK);
            assert_memory_equal(copy, out, n);
            if (!memcmp(src, out, n)) continue;
            n_flipped++;
            for (size_t p = 0; p < 14; p++)
                assert_memory_equal(copy + p * pixel, (uint8_t *)src + (p / 7 * 7 + 6 - p % 7) * pixel, pixel);
        }
        assert_in_range(n_flipped, 1, 19);
    }
    stk_stage_free(stage);
    refuse_plan(stk_random_flip(), array_type(STK_F32, STK_SHAPE(5)), "needs u8 or f32 images [H,W,C], not f32[5]");
}

/* Half of the images begin mirrored; from epoch to epoch each changes sides. */
static void alternating_flips_change_sides(void **state)
{
    (void)state;
    const uint8_t src[2] = {1, 2};
    stk_field_type type = array_type(STK_U8, STK_SHAPE(1, 2, 1));
    stk_stage *stage = stk_random_flip_with(false, true);
    int n_flipped = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint8_t out[4][2];
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            stk_stage_key key = {.seed = 5, .epoch = epoch, .i_sample = i, .i_stage = 2};
            stk_item in = {type, (void *)(uintptr_t)src, 2}, to = {type, out[epoch], 2};
            assert_int_equal(stage->class->run(stage->params, &key, &in, &to, &(stk_scratch){0}), STK_OK);
        }
        assert_memory_equal(out[0], out[2], 2);
        assert_memory_equal(out[1], out[3], 2);
        assert_memory_not_equal(out[0], out[1], 2);
        n_flipped += out[0][0] == 2;
    }
    assert_in_range(n_flipped, 437, 563); /* four deviations */
    stk_stage_free(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_all_images_are_mirrored),
        cmocka_unit_test(pixels_stay_whole),
        cmocka_unit_test(alternating_flips_change_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
