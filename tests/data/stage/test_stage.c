/* Stages out of settings: every descriptor is whole, and a text gives the same stage as its constructor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "data/stage/stage_list.h"

static void every_descriptor_is_whole(void **state)
{
    (void)state;
#define X(stage)                                                                                                       \
    assert_string_equal(stk_stage_##stage.key.name, #stage);                                                           \
    assert_non_null(stk_stage_##stage.key.doc);                                                                        \
    assert_non_null(stk_stage_##stage.build);
    STK_STAGE_LIST(X)
#undef X
}

static void check_same(stk_stage *a, stk_stage *b)
{
    if (a->status != STK_OK) fail_msg("%s", a->error);
    assert_ptr_equal(a->class, b->class);
    /* Others have padding, or point somewhere. */
    if (a->class->plain) assert_memory_equal(a->params, b->params, a->class->params_bytes);
    stk_stage_free(a);
    stk_stage_free(b);
}

static void a_text_is_a_stage(void **state)
{
    (void)state;
    check_same(stk_stage_parse("decode"), stk_decode_with(3, false));
    check_same(stk_stage_parse("{decode: 1}"), stk_decode_with(1, false));
    check_same(stk_stage_parse("center_crop: {height: 3, width: 4}"), stk_center_crop(3, 4));
    check_same(stk_stage_parse("{normalize: cifar10}"), stk_normalize_cifar10());
    check_same(stk_stage_parse("{random_crop: {size: 32, pad: 4, border: reflect}}"),
               stk_random_crop_with(32, 4, STK_BORDER_REFLECT));
    check_same(stk_stage_parse("{random_rotation: {degrees: [-5, 15], filter: bilinear, fill: 7}}"),
               stk_random_rotation(-5, 15, STK_FILTER_BILINEAR, 7));
    check_same(stk_stage_parse("{scale: 1/255}"), stk_scale(1 / 255.0));
}

static void refuse(const char *text, stk_status status, const char *why)
{
    stk_stage *stage = stk_stage_parse(text);
    assert_int_equal(stage->status, status);
    if (!strstr(stage->error, why)) fail_msg("no '%s' in '%s'", why, stage->error);
    stk_stage_free(stage);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refuse(NULL, STK_INVALID, "'text' is NULL");
    refuse("decod", STK_INVALID, "no stage 'decod' (did you mean 'decode'?)");
    refuse("{center_crop: {height: 3}}", STK_INVALID, "'center_crop' needs either 'size', or 'height' and 'width'");
    refuse("{decode: 2}", STK_INVALID, "decode: 2 channels; 1 (grey) or 3 (RGB) are possible");
    refuse("{tokenize: no-such-tokenizer.json}", STK_NOT_FOUND, "stage:1:");
    refuse("[decode", STK_INVALID, "stage:2:1: while parsing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_descriptor_is_whole),
        cmocka_unit_test(a_text_is_a_stage),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
