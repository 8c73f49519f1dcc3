/* Opening devices by name, and what an absent one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "device/device.h"

static void expect_absent(const char *name, const char *words)
{
    stk_device *device = (stk_device *)&device;
    assert_int_equal(stk_device_open(name, NULL, &device), STK_NO_DEVICE);
    assert_null(device);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    assert_non_null(strstr(stk_error_text(), "devices here: cpu, reference, cuda, opencl"));
}

static void absent_devices_are_named(void **state)
{
    (void)state;
    expect_absent("rocm", "no device 'rocm': this build has no ROCm support");
    expect_absent("rocm:3", "no device 'rocm:3': this build has no ROCm support");
    expect_absent("cuda:8", "no device 'cuda:8': devices of this kind have numbers from 0 to 7; devices here");
    expect_absent("cpux", "no device 'cpux': devices here");
    expect_absent("cpu:8", "no device 'cpu:8': devices of this kind have numbers from 0 to 7; devices here");
    expect_absent("cpu:", "numbers from 0 to 7");
    expect_absent("cpu:01", "numbers from 0 to 7");
    expect_absent("cpu:-1", "numbers from 0 to 7");
    expect_absent("cpu:1x", "numbers from 0 to 7");
    expect_absent("reference:9", "numbers from 0 to 7");
    expect_absent("", "no device ''");
    expect_absent(NULL, "no device ''");
}

/* Without a GPU "gpu" is refused with the reasons, whatever else OpenCL has; and so is a number that is not there. */
static void a_gpu_is_never_a_processor(void **state)
{
    (void)state;
    stk_device *device;
    stk_status status = stk_device_open("gpu", NULL, &device);
    if (status == STK_OK) {
        assert_true(device->is_gpu);
        stk_device_close(device);
        return;
    }
    assert_int_equal(status, STK_NO_DEVICE);
    assert_non_null(strstr(stk_error_text(), "no device 'gpu': cuda: "));
    assert_non_null(strstr(stk_error_text(), "; opencl: "));
    assert_int_equal(stk_device_open("opencl:7", NULL, &device), STK_NO_DEVICE);
    assert_non_null(strstr(stk_error_text(), "device 'opencl:7': "));
}

static void reference_opens(void **state)
{
    (void)state;
    const char *names[] = {"reference", "reference:0"};
    for (int i = 0; i < 2; i++) {
        stk_device *device;
        void *p;
        stk_text about = {0};
        assert_int_equal(stk_device_open(names[i], &(stk_device_config){.n_threads = 4}, &device), STK_OK);
        assert_int_equal(device->class->alloc(device, 100, STK_MEMORY_ZEROED, &p), STK_OK);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (int j = 0; j < 100; j++)
            assert_int_equal(((char *)p)[j], 0);
        device->class->free(device, p, 100);
        device->class->describe(device, &about);
        assert_true(about.n > 0);
        stk_text_free(&about);
        stk_device_close(device);
    }
    stk_device_close(NULL);
}

/* Each number is a device of its own, and so is the same number opened again. */
static void numbers_are_devices_of_their_own(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:1", "cpu:7", "reference:1"};
    stk_device *device[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(stk_device_open(names[i], &(stk_device_config){.n_threads = 1 + i % 2}, &device[i]), STK_OK);
    assert_int_equal(device[0]->number, 0);
    assert_int_equal(device[1]->number, 1);
    assert_int_equal(device[2]->number, 7);
    assert_int_equal(device[3]->number, 1);
    assert_ptr_equal(device[0]->class, device[1]->class);
    assert_ptr_not_equal(device[0], device[1]);
    assert_int_equal(device[0]->n_threads, 1);
    assert_int_equal(device[1]->n_threads, 2);
    for (int i = 0; i < 4; i++)
        stk_device_close(device[i]);
}

static void an_op_without_a_kernel_is_named(void **state)
{
    (void)state;
    stk_device *device;
    stk_kernel kernel;
    stk_attrs attrs = stk_attrs_zero();
    stk_op_call call = {.op = STK_OP_grad, .attrs = &attrs};
    assert_int_equal(stk_device_open("reference", NULL, &device), STK_OK);
    assert_int_equal(device->class->kernel(device, &call, &kernel), STK_UNSUPPORTED);
    assert_string_equal(stk_error_text(), "the reference device has no kernel for 'grad'");
    stk_kernel_free(&kernel); /* A kernel that was not found holds nothing. */
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_devices_are_named),
        cmocka_unit_test(a_gpu_is_never_a_processor),
        cmocka_unit_test(reference_opens),
        cmocka_unit_test(numbers_are_devices_of_their_own),
        cmocka_unit_test(an_op_without_a_kernel_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
