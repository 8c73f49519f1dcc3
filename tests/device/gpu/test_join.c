/* Neighbouring updates become one launch where they may, and have the values that they have alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu/opencl/opencl.h"

enum {
    N_UPDATES = 26,
    PARAM = 0,
    VELOCITY,
    GRAD,
    LR,
    N_IN,
    N_OUT = 2,
    OTHER = 5,
    APART = 9,
    READ = 13,
    READER = 17,
    N_LAUNCHES = 7
};

typedef struct update {
    stk_attrs attrs;
    stk_tensor_desc in[N_IN], out[N_OUT];
    stk_op_call call;
    stk_kernel kernel;
    void *in_at[N_IN], *out_at[N_OUT];
} update;

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* Sizes around those of a group of work-items. */
static int64_t size_of(int i)
{
    return i % 4 == 0 ? 256 * (i + 1) : i % 4 == 1 ? 1 : i % 4 == 2 ? 255 : 300 + i;
}

static float number(int i, int which, int64_t at)
{
    return sinf((float)(i * 131 + which * 17) + (float)at * 0.37f);
}

static void describe(update *u, int i)
{
    u->attrs = stk_attrs_zero();
    u->attrs.sgd.momentum = i == OTHER ? 0.5 : 0.9;
    u->attrs.sgd.weight_decay = 0.01;
    for (int j = 0; j < N_IN; j++)
        u->in[j] = (stk_tensor_desc){STK_F32, j == LR ? (stk_shape){0} : STK_SHAPE(size_of(i))};
    u->out[0] = u->out[1] = u->in[PARAM];
    u->call = (stk_op_call){
        .op = STK_OP_sgd_update, .attrs = &u->attrs, .in = u->in, .n_in = N_IN, .out = u->out, .n_out = N_OUT};
}

/* Memory on the device with those numbers; *lr is one for all. */
static void *copied(stk_device *device, stk_queue *queue, const float *from, int64_t n)
{
    void *to;
    expect_ok(device->class->alloc(device, (size_t)n * sizeof(float), STK_MEMORY_ZEROED, &to));
    if (from) expect_ok(device->class->queues->copy(queue, to, from, (size_t)n * sizeof(float), STK_COPY_TO_DEVICE));
    expect_ok(device->class->queues->finish(queue));
    return to;
}

static void open_update(stk_device *device, stk_queue *queue, update *u, int i, void *lr)
{
    float host[8192];
    describe(u, i);
    expect_ok(device->class->kernel(device, &u->call, &u->kernel));
    for (int j = 0; j < LR; j++) {
        for (int64_t k = 0; k < size_of(i); k++)
            host[k] = number(i, j, k);
        u->in_at[j] = copied(device, queue, host, size_of(i));
    }
    u->in_at[LR] = lr;
    for (int j = 0; j < N_OUT; j++)
        u->out_at[j] = i == APART ? copied(device, queue, NULL, size_of(i)) : u->in_at[j];
}

/* The gradient of READER is the parameter that READ has updated: both have one element. */
static float gradient(int i, int64_t at)
{
    if (i != READER) return number(i, GRAD, at);
    float p = number(READ, PARAM, at), g = number(READ, GRAD, at) + 0.01f * p;
    return p - 0.1f * (0.9f * number(READ, VELOCITY, at) + g);
}

static void check(stk_device *device, stk_queue *queue, const update *u, int i)
{
    float got[8192];
    for (int j = 0; j < N_OUT; j++) {
        expect_ok(device->class->queues->copy(queue, got, u->out_at[j], (size_t)size_of(i) * sizeof(float),
                                              STK_COPY_TO_HOST));
        expect_ok(device->class->queues->finish(queue));
        for (int64_t k = 0; k < size_of(i); k++) {
            float p = number(i, PARAM, k), g = gradient(i, k) + 0.01f * p;
            float v = (float)u->attrs.sgd.momentum * number(i, VELOCITY, k) + g, want = j == 0 ? p - 0.1f * v : v;
            if (fabsf(got[k] - want) > 1e-5f)
                fail_msg("update %d, output %d, element %d: %g, not %g", i, j, (int)k, (double)got[k], (double)want);
        }
    }
}

static void close_update(stk_device *device, update *u, int i)
{
    const size_t bytes = (size_t)size_of(i) * sizeof(float);
    for (int j = 0; j < N_OUT && i == APART; j++)
        device->class->free(device, u->out_at[j], bytes);
    for (int j = 0; j < LR; j++)
        if (i != READER || j != GRAD) device->class->free(device, u->in_at[j], bytes);
    stk_kernel_free(&u->kernel);
}

static void neighbours_are_one_launch(void **state)
{
    (void)state;
    stk_device *device;
    stk_queue *queue;
    stk_capture *capture;
    static update u[N_UPDATES];
    stk_entry entry[N_UPDATES];
    const float rate = 0.1f;
    int i_failed;
    setenv("STOKER_OPENCL_BUFFERS", "0", 1); /* Each launch is a call, which can be counted. */
    expect_ok(stk_device_open("opencl", NULL, &device));
    expect_ok(device->class->queues->open(device, &queue));
    void *lr = copied(device, queue, &rate, 1);
    for (int i = 0; i < N_UPDATES; i++) {
        open_update(device, queue, &u[i], i, lr);
        if (i == READER) {
            device->class->free(device, u[i].in_at[GRAD], (size_t)size_of(i) * sizeof(float));
            u[i].in_at[GRAD] = u[READ].in_at[PARAM];
        }
        entry[i] = (stk_entry){&u[i].kernel, {.in = u[i].in_at, .out = u[i].out_at}};
    }
    expect_ok(device->class->queues->capture(device, entry, N_UPDATES, &capture));
    /* 0 to 4; other settings; 6 to 8; not in place; 10 to 16; from 17, which reads what 13 writes, to 24; 25. */
    assert_int_equal(opencl_driver.count_calls(capture), N_LAUNCHES);
    expect_ok(device->class->queues->launch(queue, capture, &i_failed));
    expect_ok(device->class->queues->finish(queue));
    for (int i = 0; i < N_UPDATES; i++)
        check(device, queue, &u[i], i);
    device->class->queues->release(capture);
    for (int i = 0; i < N_UPDATES; i++)
        close_update(device, &u[i], i);
    device->class->free(device, lr, sizeof(float));
    device->class->queues->close(queue);
    stk_device_close(device);
    unsetenv("STOKER_OPENCL_BUFFERS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_are_one_launch)};
    if (stk_device_class_opencl.probe() != STK_OK || stk_device_count(&stk_device_class_opencl) == 0) {
        print_message("SKIP: no driver for OpenCL: %s\n", stk_error_text());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
