/* What the harness cannot ask of kernels, on the device 'opencl': wrong numbers of rows and classes, and sums over
 * micro-batches behind the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness/harness.h"

static stk_device *device, *reference;

static int open_devices(void **state)
{
    (void)state;
    return stk_device_open("reference", NULL, &reference) != STK_OK ||
           stk_device_open("opencl", NULL, &device) != STK_OK;
}

static int close_devices(void **state)
{
    (void)state;
    stk_device_close(device);
    stk_device_close(reference);
    return 0;
}

/* Output 0, which the caller frees. */
static stk_status call_on(stk_device *on, const case_run *run, int in_place, void **out)
{
    void *all[CASE_MOST_OUT];
    stk_status status = case_call(run, on, in_place, all, NULL);
    for (int i = 1; i < CASE_MOST_OUT; i++)
        free(all[i]);
    *out = all[0];
    return status;
}

/* The device says what the reference device says. */
static void expect_fault(const op_case *source, int i_wrong, int64_t at, int64_t value, const char *words)
{
    case_run run;
    void *out;
    assert_int_equal(case_run_open(source, STK_F32, reference, &run), STK_OK);
    if (run.in_desc[i_wrong].dtype == STK_I64)
        ((int64_t *)run.in[i_wrong])[at] = value;
    else
        ((int32_t *)run.in[i_wrong])[at] = (int32_t)value;
    stk_status wanted = call_on(reference, &run, CASE_APART, &out);
    assert_int_not_equal(wanted, STK_OK);
    assert_string_equal(stk_error_text(), words);
    free(out);
    stk_device *own;
    assert_int_equal(stk_device_open("opencl", NULL, &own), STK_OK);
    assert_int_equal(call_on(own, &run, CASE_APART, &out), wanted);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    free(out);
    stk_device_close(own);
    case_run_close(&run);
}

#define IDS(n, ...) TYPED(STK_I32, FILL_LABELS, 0, n, __VA_ARGS__)

static void wrong_ids_are_named(void **state)
{
    (void)state;
    static const op_case gather = CASE("ids", gather, ATTRS(.axis = 0), INPUTS(REAL(-1, 1, 4, 3), IDS(4, 6)));
    static const op_case few =
        CASE("few", scatter_add, ATTRS(.shape = DIMS(4, 3), .axis = 0), INPUTS(REAL(-1, 1, 6, 3), IDS(4, 6)));
    static const op_case many = CASE("many", scatter_add, ATTRS(.shape = DIMS(300, 65), .axis = 0),
                                     INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 900, 65), IDS(300, 900)));
    expect_fault(&gather, 1, 5, 4, "id 4 at position 5 is not one of the 4 rows");
    expect_fault(&gather, 1, 2, -1, "id -1 at position 2 is not one of the 4 rows");
    expect_fault(&few, 1, 5, 4, "id 4 at position 5 is not one of the 4 rows");
    expect_fault(&few, 1, 0, INT32_MIN, "id -2147483648 at position 0 is not one of the 4 rows");
    expect_fault(&many, 1, 899, 300, "id 300 at position 899 is not one of the 300 rows");
    expect_fault(&many, 1, 3, -7, "id -7 at position 3 is not one of the 300 rows");
}

static void wrong_labels_are_named(void **state)
{
    (void)state;
    static const op_case loss =
        CASE("loss", cross_entropy, ATTRS(.cross_entropy = {0.1}), INPUTS(REAL(-3, 3, 300, 7), LABELS(300, 7)));
    static const op_case grad = CASE("grad", cross_entropy_grad, ATTRS(.cross_entropy = {0}),
                                     INPUTS(REAL(-3, 3, 5, 1001), LABELS(5, 1001), STATS(0.1, 1, 5)));
    static const op_case top =
        CASE("top", in_top_k, ATTRS(.in_top_k = {2}), INPUTS(REAL(-3, 3, 33, 67), LABELS(33, 67)));
    expect_fault(&loss, 1, 299, 7, "label 7 of row 299 is not one of the 7 classes");
    expect_fault(&grad, 1, 4, -1, "label -1 of row 4 is not one of the 1001 classes");
    expect_fault(&grad, 1, 0, INT32_MAX, "label 2147483647 of row 0 is not one of the 1001 classes");
    /* Row 520 is in the second block of rows. */
    static const op_case linear =
        CASE("linear", linear_cross_entropy_grad, ATTRS(.linear_cross_entropy = {0, -100}),
             INPUTS(REAL(-1, 1, 530, 5), REAL(-1, 1, 7, 5), LABELS(530, 7), STATS(0.1, 1, 530)));
    expect_fault(&linear, 2, 520, 7, "label 7 of row 520 is not one of the 7 classes");
    expect_fault(&linear, 2, 0, -101, "label -101 of row 0 is not one of the 7 classes");
    expect_fault(&top, 1, 32, INT32_MIN, "label -2147483648 of row 32 is not one of the 67 classes");
}

static void wrong_positions_are_named(void **state)
{
    (void)state;
    static const op_case write =
        CASE("rows", write_at, ATTRS(.axis = 0), INPUTS(REAL(-1, 1, 3, 9), REAL(-1, 1, 3, 4), SCALAR_I64(0)));
    static const op_case one =
        CASE("one", cached_attention, ATTRS(.attention = {0.5}),
             INPUTS(REAL(-1, 1, 1, 2, 2, 8), REAL(-1, 1, 1, 9, 2, 8), REAL(-1, 1, 1, 9, 2, 8), SCALAR_I64(0)));
    static const op_case many =
        CASE("many", cached_attention, ATTRS(.attention = {0.5}),
             INPUTS(REAL(-1, 1, 1, 20, 2, 8), REAL(-1, 1, 1, 30, 2, 8), REAL(-1, 1, 1, 30, 2, 8), SCALAR_I64(0)));
    expect_fault(&one, 3, 0, 8, "position 8: 2 rows from there on do not lie within the cache's 9");
    expect_fault(&many, 3, 0, -1, "position -1: 20 rows from there on do not lie within the cache's 30");
    expect_fault(&write, 2, 0, 6, "position 6: 4 rows from there on do not lie within the cache's 9");
    expect_fault(&write, 2, 0, -1, "position -1: 4 rows from there on do not lie within the cache's 9");
}

/* The sum that was there is x itself, since y lies where x does. */
static void later_micro_batches_are_added(void **state)
{
    (void)state;
    static const op_case later = CASE("later", accumulate, ATTRS(), INPUTS(REAL(-1, 1, 300), SCALAR_I64(4)));
    static const op_case first = CASE("first", accumulate, ATTRS(), INPUTS(REAL(-1, 1, 300), SCALAR_I64(0)));
    static const op_case own =
        CASE("own", accumulate, ATTRS(.accumulate = {1}), INPUTS(REAL(-1, 1, 300), SCALAR_I64(4)));
    const op_case *cases[] = {&later, &first, &own};
    for (int k = 0; k < 3; k++) {
        case_run run;
        float *y;
        assert_int_equal(case_run_open(cases[k], STK_F32, reference, &run), STK_OK);
        assert_int_equal(call_on(device, &run, 0, (void **)&y), STK_OK);
        for (int i = 0; i < 300; i++)
            assert_true(y[i] == (k == 0 ? 2 : 1) * ((const float *)run.in[0])[i]);
        free(y);
        case_run_close(&run);
    }
}

/* What is carried lies where the row's number does. */
static void sums_are_carried_on(void **state)
{
    (void)state;
    static const op_case later = CASE("later", carry, ATTRS(.dtype = STK_F32, .shape = DIMS(2)), INPUTS(SCALAR_I64(4)));
    case_run run;
    int64_t *y;
    assert_int_equal(case_run_open(&later, STK_F32, reference, &run), STK_OK);
    assert_int_equal(call_on(device, &run, 0, (void **)&y), STK_OK);
    assert_true(*y == 4);
    free(y);
    case_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_ids_are_named),       cmocka_unit_test(wrong_labels_are_named),
        cmocka_unit_test(wrong_positions_are_named), cmocka_unit_test(later_micro_batches_are_added),
        cmocka_unit_test(sums_are_carried_on),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
