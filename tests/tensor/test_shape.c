/* Shapes from an array of dimensions, for languages without the macro. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stoker/stoker.h"
#include "tensor/shape.h"

static void made_as_by_the_macro(void **state)
{
    (void)state;
    const int64_t dim[] = {32, 24, 3};
    stk_shape made = stk_shape_make(dim, 3), want = STK_SHAPE(32, 24, 3), scalar = stk_shape_make(NULL, 0);
    assert_int_equal(made.rank, want.rank);
    assert_memory_equal(made.dim, want.dim, sizeof(want.dim));
    assert_int_equal(scalar.rank, 0);
    assert_int_equal(stk_shape_count(scalar), 1);
}

static void other_ranks_are_refused(void **state)
{
    (void)state;
    const int64_t dim[] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(stk_desc_check(stk_desc_make(STK_F32, stk_shape_make(dim, 8))), STK_OK);
    assert_int_equal(stk_desc_check(stk_desc_make(STK_F32, stk_shape_make(dim, 9))), STK_INVALID);
    assert_int_equal(stk_desc_check(stk_desc_make(STK_F32, stk_shape_make(dim, -1))), STK_INVALID);
    stk_model *model = stk_model_new("wrong");
    stk_model_input_shape(model, STK_F32, stk_shape_make(dim, 9));
    assert_int_equal(stk_model_status(model), STK_INVALID);
    stk_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_as_by_the_macro),
        cmocka_unit_test(other_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
