/* The cpu device itself: memory, description, choice of instruction set, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/call.h"

static void memory_is_aligned_and_zeroed(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20};
    (void)state;
    stk_device *device = call_open(NULL, 2);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *p = NULL;
        assert_int_equal(device->class->alloc(device, sizes[i], STK_MEMORY_ZEROED, &p), STK_OK);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 2 << 20 ? 2 << 20 : 64), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            if (((char *)p)[k]) fail_msg("byte %zu of %zu is not 0", k, sizes[i]);
        device->class->free(device, p, sizes[i]);
    }
    void *p = NULL;
    assert_int_equal(device->class->alloc(device, (size_t)1 << 60, STK_MEMORY_ZEROED, &p), STK_NO_MEMORY);
    stk_device_close(device);
}

static void description_names_threads_and_instructions(void **state)
{
    (void)state;
    stk_device *device = call_open("baseline", 3);
    stk_text text = {0};
    assert_int_equal(device->n_threads, 3);
    device->class->describe(device, &text);
    assert_non_null(strstr(stk_text_get(&text), "3 threads, baseline"));
    stk_text_free(&text);
    stk_device_close(device);
}

static void bad_labels_are_named(void **state)
{
    static const stk_op ops[] = {STK_OP_cross_entropy, STK_OP_cross_entropy_grad, STK_OP_in_top_k};
    stk_device *device = *state ? NULL : call_open(NULL, 2);
    if (*state) assert_int_equal(stk_device_open(*state, NULL, &device), STK_OK);
    for (int i = 0; i < 6; i++) {
        call c = {.op = ops[i / 2], .attrs = stk_attrs_zero()};
        void *out[CALL_MOST];
        bool is_grad = c.op == STK_OP_cross_entropy_grad;
        if (c.op == STK_OP_in_top_k) c.attrs.in_top_k.k = 1;
        call_add(&c, STK_F32, STK_SHAPE(6, 4), -1, 1);
        call_add(&c, STK_I32, STK_SHAPE(6), 0, 4);
        if (is_grad) call_add(&c, STK_F32, STK_SHAPE(6), -1, 1);
        call_add_out(&c, STK_F32, is_grad ? STK_SHAPE(6, 4) : STK_SHAPE(6));
        ((int32_t *)c.in[1])[4] = i % 2 ? -3 : 4;
        assert_int_equal(call_run(&c, device, -1, out, NULL), STK_CORRUPT);
        assert_non_null(strstr(stk_error_text(), i % 2 ? "label -3 of row 4 is not one of the 4 classes"
                                                       : "label 4 of row 4 is not one of the 4 classes"));
        call_free_outputs(out);
        call_free(&c);
    }
    stk_device_close(device);
}

static void bad_ids_are_named(void **state)
{
    stk_device *device = *state ? NULL : call_open(NULL, 2);
    if (*state) assert_int_equal(stk_device_open(*state, NULL, &device), STK_OK);
    for (int i = 0; i < 4; i++) {
        bool is_grad = i / 2;
        call c = {.op = is_grad ? STK_OP_scatter_add : STK_OP_gather, .attrs = stk_attrs_zero()};
        void *out[CALL_MOST];
        c.attrs.shape = is_grad ? STK_SHAPE(4, 3) : (stk_shape){0};
        call_add(&c, STK_F32, is_grad ? STK_SHAPE(6, 3) : STK_SHAPE(4, 3), -1, 1);
        call_add(&c, STK_I32, STK_SHAPE(6), 0, 4);
        call_add_out(&c, STK_F32, is_grad ? STK_SHAPE(4, 3) : STK_SHAPE(6, 3));
        ((int32_t *)c.in[1])[5] = i % 2 ? -1 : 4;
        assert_int_equal(call_run(&c, device, -1, out, NULL), STK_NO_ROW);
        assert_non_null(strstr(stk_error_text(), i % 2 ? "id -1 at position 5 is not one of the 4 rows"
                                                       : "id 4 at position 5 is not one of the 4 rows"));
        call_free_outputs(out);
        call_free(&c);
    }
    stk_device_close(device);
}

static void missing_kernels_are_named(void **state)
{
    (void)state;
    stk_device *device = call_open(NULL, 1);
    call c = {.op = STK_OP_matmul, .attrs = stk_attrs_zero()};
    void *out[CALL_MOST];
    for (int i = 0; i < 2; i++)
        call_add(&c, STK_I32, STK_SHAPE(2, 2), 0, 9);
    call_add_out(&c, STK_I32, STK_SHAPE(2, 2));
    assert_int_equal(call_run(&c, device, -1, out, NULL), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "'matmul' of i32"));
    call_free(&c);
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_zeroed),
        cmocka_unit_test(description_names_threads_and_instructions),
        cmocka_unit_test(bad_labels_are_named),
        {"bad_labels_are_named: reference", bad_labels_are_named, NULL, NULL, "reference"},
        cmocka_unit_test(bad_ids_are_named),
        {"bad_ids_are_named: reference", bad_ids_are_named, NULL, NULL, "reference"},
        cmocka_unit_test(missing_kernels_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
