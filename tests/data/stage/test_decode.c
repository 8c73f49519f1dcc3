/* The stage 'decode', the list of stages, and scratch memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/stage/run_stage.h"
#include "golden/images_golden.h"

enum { N_BYTES = GOLDEN_HEIGHT * GOLDEN_WIDTH * 3 };

static void files_are_measured_and_decoded(void **state)
{
    (void)state;
    const golden_image *files[2] = {&golden_jpeg[1], &golden_png[0]};
    const stk_stage_key key = {0};
    uint8_t out[N_BYTES];
    for (int channels = 1; channels <= 3; channels += 2) {
        stk_stage *stage = stk_decode_channels(channels);
        for (int i = 0; i < 2; i++) {
            stk_item in = {{.kind = STK_FIELD_ENCODED}, (void *)(uintptr_t)files[i]->encoded, files[i]->n};
            stk_item to = {.data = out};
            assert_int_equal(stage->class->plan(stage->params, &in.type, &to.type), STK_OK);
            assert_true(stk_shape_equal(to.type.desc.shape, STK_SHAPE(STK_ANY, STK_ANY, channels)));
            assert_int_equal(stage->class->measure(stage->params, &key, &in, &to.type), STK_OK);
            assert_true(stk_shape_equal(to.type.desc.shape, STK_SHAPE(GOLDEN_HEIGHT, GOLDEN_WIDTH, channels)));
            assert_int_equal(stage->class->run(stage->params, &key, &in, &to, &(stk_scratch){0}), STK_OK);
            assert_memory_equal(out, channels == 3 ? files[i]->rgb : files[i]->grey, N_BYTES / (channels == 3 ? 1 : 3));
        }
        stk_stage_free(stage);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refuse_stage(stk_decode_channels(2), STK_INVALID, "decode: 2 channels; 1 (grey) or 3 (RGB) are possible");
    refuse_plan(stk_decode(), array_type(STK_U8, STK_SHAPE(4, 4, 3)),
                "needs encoded JPEG, PNG or WebP bytes, not u8[4,4,3]");
}

static void stages_are_found_by_name(void **state)
{
    (void)state;
#define X(stage) assert_ptr_equal(stk_stage_find(#stage), &stk_stage_##stage);
    STK_STAGE_LIST(X)
#undef X
    assert_null(stk_stage_find("decod"));
}

static void scratch_grows_and_stays(void **state)
{
    (void)state;
    stk_scratch scratch = {0};
    void *first = stk_scratch_get(&scratch, 1000);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_ptr_equal(stk_scratch_get(&scratch, 10), first);
    assert_ptr_equal(stk_scratch_get(&scratch, 1000), first);
    uint8_t *p = stk_scratch_get(&scratch, 100000);
    assert_non_null(p);
    p[99999] = 1;
    stk_scratch_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_measured_and_decoded),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(stages_are_found_by_name),
        cmocka_unit_test(scratch_grows_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
