/* pad, clip and layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/stage/run_stage.h"

static void borders(void **state)
{
    (void)state;
    enum { H = 3, W = 4, TO_H = H + 1 + 2, TO_W = W + 3 };
    uint8_t src[H * W * 3], dst[TO_H * TO_W * 3];
    float floats[H * W * 3], padded[TO_H * TO_W * 3];
    for (int i = 0; i < H * W * 3; i++)
        floats[i] = src[i] = (uint8_t)(i + 1);
    run_stage(stk_pad_image(1, 3, 2, 0, 99), array_type(STK_U8, STK_SHAPE(H, W, 3)), src, dst);
    run_stage(stk_pad_image(1, 3, 2, 0, -0.5), array_type(STK_F32, STK_SHAPE(H, W, 3)), floats, padded);
    for (int i = 0; i < TO_H * TO_W * 3; i++) {
        int y = i / 3 / TO_W - 1, x = i / 3 % TO_W - 3;
        bool inside = y >= 0 && y < H && x >= 0;
        assert_int_equal(dst[i], inside ? src[(y * W + x) * 3 + i % 3] : 99);
        assert_true(padded[i] == (inside ? floats[(y * W + x) * 3 + i % 3] : -0.5f));
    }
    refuse_plan(stk_pad_image(1, 1, 1, 1, 300), array_type(STK_U8, STK_SHAPE(H, W, 3)),
                "value 300 is no u8; put the stage after 'normalize', or choose 0 to 255");
    refuse_stage(stk_pad_image(1, -1, 0, 0, 0), STK_INVALID, "pad: sides must be 0 to 65535");
}

static void open_sides_stay_open(void **state)
{
    (void)state;
    stk_stage *stage = stk_pad_image(1, 2, 3, 4, 0);
    stk_field_type in = array_type(STK_U8, STK_SHAPE(STK_ANY, 5, 3)), out;
    assert_int_equal(stage->class->plan(stage->params, &in, &out), STK_OK);
    assert_true(stk_shape_equal(out.desc.shape, STK_SHAPE(STK_ANY, 11, 3)));
    stk_stage_free(stage);
}

static void values_are_kept_between(void **state)
{
    (void)state;
    const float floats[7] = {-3, -1, 0, 0.5f, 2, INFINITY, NAN};
    const uint8_t bytes[5] = {0, 9, 10, 200, 255};
    float kept[7];
    uint8_t out[5];
    run_stage(stk_clip_values(-1, 1), array_type(STK_F32, STK_SHAPE(7)), floats, kept);
    assert_memory_equal(kept, ((float[]){-1, -1, 0, 0.5f, 1, 1, -1}), sizeof(kept));
    run_stage(stk_clip_values(9.5, 200.9), array_type(STK_U8, STK_SHAPE(5)), bytes, out);
    assert_memory_equal(out, ((uint8_t[]){10, 10, 10, 200, 200}), 5);
    run_stage(stk_clip_values(-1e9, 1e9), array_type(STK_U8, STK_SHAPE(5)), bytes, out);
    assert_memory_equal(out, bytes, 5);
    refuse_plan(stk_clip_values(3.2, 3.8), array_type(STK_U8, STK_SHAPE(5)), "no u8 lies between 3.2 and 3.8");
    refuse_plan(stk_clip_values(0, 1), array_type(STK_I32, STK_SHAPE(5)), "needs u8 or f32 arrays, not i32[5]");
    refuse_stage(stk_clip_values(2, 1), STK_INVALID, "clip: 2 to 1 is no range");
}

static void channels_come_first(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        uint8_t src[5 * 7 * 4], dst[5 * 7 * 4];
        float floats[5 * 7 * 4], spread[5 * 7 * 4];
        for (int i = 0; i < 35 * channels; i++)
            floats[i] = src[i] = (uint8_t)i;
        run_stage(stk_layout_channels_first(), array_type(STK_U8, STK_SHAPE(5, 7, channels)), src, dst);
        run_stage(stk_layout_channels_first(), array_type(STK_F32, STK_SHAPE(5, 7, channels)), floats, spread);
        for (int i = 0; i < 35 * channels; i++) {
            assert_int_equal(dst[i], src[i % 35 * channels + i / 35]);
            assert_true(spread[i] == floats[i % 35 * channels + i / 35]);
        }
    }
    stk_stage *stage = stk_layout_channels_first();
    stk_field_type in = array_type(STK_F32, STK_SHAPE(STK_ANY, 6, 3)), out;
    assert_int_equal(stage->class->plan(stage->params, &in, &out), STK_OK);
    assert_true(stk_shape_equal(out.desc.shape, STK_SHAPE(3, STK_ANY, 6)));
    stk_stage_free(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders),
        cmocka_unit_test(open_sides_stay_open),
        cmocka_unit_test(values_are_kept_between),
        cmocka_unit_test(channels_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
