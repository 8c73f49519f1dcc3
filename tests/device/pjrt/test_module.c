/* The text of modules, for which no plug-in is needed: types, numbers that few write, what is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "device/device.h"
#include "device/pjrt/lowering.h"

static const stk_tensor_desc pair = {STK_F32, {.rank = 1, .dim = {2}}};

static void expect_text(pjrt_module *m, const char *text)
{
    if (!strstr(stk_text_get(&m->body), text)) fail_msg("'%s' is not in:\n%s", text, stk_text_get(&m->body));
}

static void types_are_written(void **state)
{
    char text[PJRT_TYPE_TEXT];
    (void)state;
    assert_string_equal(pjrt_type_text(stk_desc_make(STK_BF16, STK_SHAPE(2, 3)), text), "tensor<2x3xbf16>");
    assert_string_equal(pjrt_type_text((stk_tensor_desc){.dtype = STK_BOOL}, text), "tensor<i1>");
    assert_string_equal(pjrt_type_text(stk_desc_make(STK_U8, STK_SHAPE(0)), text), "tensor<0xui8>");
    /* The longest: no part of it is lost. */
    int64_t most = INT64_C(1) << 47;
    stk_shape wide = STK_SHAPE(most, most, most, most, most, most, most, most);
    pjrt_type_text(stk_desc_make(STK_BF16, wide), text);
    assert_string_equal(text + strlen(text) - 5, "bf16>");
}

static void numbers_are_what_they_were(void **state)
{
    pjrt_module m = {.n_values = 0};
    (void)state;
    pjrt_constant(&m, pair, 0.1);
    expect_text(&m, "%0 = stablehlo.constant dense<1.0000000149011611");
    pjrt_constant(&m, pair, -(double)INFINITY);
    expect_text(&m, "%1 = stablehlo.constant dense<0xFF800000> : tensor<2xf32>");
    pjrt_constant(&m, pair, 1e300);
    expect_text(&m, "%2 = stablehlo.constant dense<0x7F800000> : tensor<2xf32>");
    pjrt_constant(&m, stk_desc_make(STK_BF16, pair.shape), (double)INFINITY);
    expect_text(&m, "%3 = stablehlo.constant dense<0x7F80> : tensor<2xbf16>");
    pjrt_constant(&m, stk_desc_make(STK_F16, pair.shape), (double)NAN);
    expect_text(&m, "%4 = stablehlo.constant dense<0x7E00> : tensor<2xf16>");
    pjrt_constant(&m, stk_desc_make(STK_I8, pair.shape), 300);
    expect_text(&m, "%5 = stablehlo.constant dense<127> : tensor<2xi8>");
    pjrt_constant(&m, stk_desc_make(STK_U8, pair.shape), -1);
    expect_text(&m, "%6 = stablehlo.constant dense<0> : tensor<2xui8>");
    pjrt_constant(&m, stk_desc_make(STK_I64, pair.shape), 0x1p70);
    expect_text(&m, "%7 = stablehlo.constant dense<9223372036854775807> : tensor<2xi64>");
    pjrt_constant(&m, stk_desc_make(STK_BOOL, pair.shape), 2);
    expect_text(&m, "%8 = stablehlo.constant dense<true> : tensor<2xi1>");
    assert_int_equal(m.n_values, 9);
    pjrt_module_free(&m);
}

static void ids_are_checked(void **state)
{
    pjrt_module m = {.n_values = 0, .op = STK_OP_gather};
    (void)state;
    pjrt_value none = pjrt_integer(&m, stk_desc_make(STK_I32, STK_SHAPE(3, 0)), 0);
    pjrt_check_ids(&m, none, 5);
    assert_int_equal(m.n_checks, 0);
    pjrt_check_ids(&m, pjrt_integer(&m, stk_desc_make(STK_I32, STK_SHAPE(3, 2)), 0), 5);
    pjrt_check_ids(&m, pjrt_integer(&m, (stk_tensor_desc){.dtype = STK_I32}, 0), 7);
    assert_int_equal(m.n_checks, 2);
    assert_int_equal(m.check[0].limit, 5);
    assert_int_equal(m.check[1].limit, 7);
    assert_int_equal(m.check[1].op, STK_OP_gather);
    for (int i = 0; i < 2; i++)
        assert_int_equal(m.found[i].desc.shape.dim[0], 1);
    assert_int_equal(m.status, STK_OK);
    pjrt_module_free(&m);
}

static void primitives_have_lowerings(void **state)
{
    (void)state;
    for (int op = 0; op < STK_N_OPS; op++)
        if (stk_op_is_primitive((stk_op)op) && op != STK_OP_input && op != STK_OP_variable)
            if (!pjrt_find_lowering((stk_op)op)) fail_msg("'%s' has no lowering", stk_op_name((stk_op)op));
    assert_null(pjrt_find_lowering(STK_OP_fused));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_written),
        cmocka_unit_test(numbers_are_what_they_were),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(primitives_have_lowerings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
