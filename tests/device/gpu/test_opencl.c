/* The device 'opencl' on whatever driver is here (PoCL does): queues, the engine's side, and what goes wrong. Kernels'
 * values are test_op_values'; whole trainings test_gpu_training's.
 *
 * Failures of the driver are played: a function of the table `cl` is replaced, and fails at its n-th call.
 */
#define DEVICE     "opencl"
#define WRONG_LINE "wrong.dev:4"

#include "base/file.h"
#include "device/gpu/cases.h"
#include "device/gpu/opencl/opencl.h"

/* --- queues --- */

/* What is no memory of the device, or no longer, is refused and not read. */
static void strange_addresses_are_refused(void **state)
{
    (void)state;
    stk_device *device = open_device();
    const stk_queue_class *queues = device->class->queues;
    stk_queue *queue;
    void *first, *second;
    int host[64];
    expect_ok(queues->open(device, &queue));
    expect_ok(device->class->alloc(device, 100, STK_MEMORY_ZEROED, &first));
    expect_ok(device->class->alloc(device, 100, STK_MEMORY_ZEROED, &second));
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal(queues->copy(queue, host, host, 4, STK_COPY_TO_HOST), STK_INTERNAL);
    assert_int_equal(queues->copy(queue, host, (char *)first + 128, 4, STK_COPY_TO_HOST), STK_INTERNAL);
    expect_ok(queues->copy(queue, host, (char *)second + 96, 4, STK_COPY_TO_HOST));
    expect_ok(queues->finish(queue));
    assert_int_equal(host[0], 0);
    device->class->free(device, first, 100);
    assert_int_equal(queues->copy(queue, host, first, 4, STK_COPY_TO_HOST), STK_INTERNAL);
    device->class->free(device, second, 100);
    queues->close(queue);
    stk_device_close(device);
}

/* --- programs --- */

static int n_built;
static cl_program (*real_source)(cl_context, cl_uint, const char **, const size_t *, cl_int *);

static cl_program count_source(cl_context context, cl_uint n, const char **text, const size_t *bytes, cl_int *code)
{
    n_built++;
    return real_source(context, n, text, bytes, code);
}

/* The second process finds the program on disk; one that is damaged is built again and replaced. */
static void programs_are_kept_on_disk(void **state)
{
    (void)state;
    char folder[] = "/tmp/stoker-gpu-XXXXXX", path[4200];
    assert_non_null(mkdtemp(folder));
    setenv("STOKER_CACHE", folder, 1);
    setenv("STOKER_GPU_CACHE", "1", 1);
    real_source = cl.clCreateProgramWithSource;
    cl.clCreateProgramWithSource = count_source;
    static const int want[] = {1, 0, 1, 0};
    for (int i = 0; i < 4; i++) {
        stk_engine *engine;
        stk_program *program;
        n_built = 0;
        expect_ok(stk_engine_open("opencl", NULL, 0, &engine));
        run_counter(engine, &program);
        stk_engine_close(engine);
        assert_int_equal(n_built, want[i]);
        if (i != 1) continue;
        stk_names names;
        snprintf(path, sizeof(path), "%s/gpu", folder);
        expect_ok(stk_dir_list(path, &names));
        assert_int_equal(names.n, 1);
        snprintf(path, sizeof(path), "%s/gpu/%s", folder, names.name[0]);
        stk_names_free(&names);
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, -100, SEEK_END), 0);
        for (int k = 0; k < 50; k++)
            fputc(0x5a, file);
        fclose(file);
    }
    cl.clCreateProgramWithSource = real_source;
    expect_ok(stk_tree_remove(folder));
    unsetenv("STOKER_CACHE");
    unsetenv("STOKER_GPU_CACHE");
}

/* --- what a driver does to those who trust it --- */

static cl_mem refuse_buffer(cl_context context, cl_bitfield flags, size_t bytes, void *host, cl_int *code)
{
    (void)context, (void)flags, (void)bytes, (void)host;
    *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

static cl_int lose_device(cl_event event, cl_uint what, size_t n, void *out, size_t *n_out)
{
    (void)event, (void)what, (void)n_out;
    const cl_int lost = -9999; /* what NVIDIA's driver says of a kernel that read what is not there */
    memcpy(out, &lost, n);
    return CL_SUCCESS;
}

static void memory_that_is_refused_is_told(void **state)
{
    (void)state;
    stk_device *device = open_device();
    void *p;
    cl_mem (*real)(cl_context, cl_bitfield, size_t, void *, cl_int *) = cl.clCreateBuffer;
    cl.clCreateBuffer = refuse_buffer;
    assert_int_equal(device->class->alloc(device, 4096, STK_MEMORY_ZEROED, &p), STK_NO_MEMORY);
    expect_words("memory does not suffice");
    assert_int_equal(device->class->alloc(device, (size_t)1 << 50, STK_MEMORY_SCRATCH, &p), STK_NO_MEMORY);
    expect_words("in one piece");
    cl.clCreateBuffer = real;
    expect_ok(device->class->alloc(device, 4096, STK_MEMORY_ZEROED, &p));
    device->class->free(device, p, 4096);
    stk_device_close(device);
}

/* From then on every wait says so, and closing waits for nothing. */
static void a_lost_device_is_told(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    expect_ok(stk_engine_open("opencl", NULL, 0, &engine));
    run_counter(engine, &program);
    cl_int (*real)(cl_event, cl_uint, size_t, void *, size_t *) = cl.clGetEventInfo;
    cl.clGetEventInfo = lose_device;
    stk_status status = stk_program_run(program);
    if (status == STK_OK) status = stk_program_wait(program, 0);
    assert_int_equal(status, STK_DEVICE);
    expect_words("-9999");
    cl.clGetEventInfo = real;
    status = stk_program_run(program);
    if (status == STK_OK) status = stk_program_wait(program, 0);
    assert_int_equal(status, STK_DEVICE);
    expect_words("-9999");
    stk_engine_close(engine);
}

/* Long enough to be given up, and short enough to end before the process does. */
static void a_kernel_that_hangs_is_given_up(void **state)
{
    (void)state;
    setenv("STOKER_GPU_TIMEOUT", "0.3", 1);
    setenv("STOKER_OPENCL_BUFFERS", "0", 1);
    stk_device *device = open_device();
    endless_entry e;
    int i_failed;
    stk_queue *queue;
    make_endless(device, 1, 800, &e); /* about 3 s */
    expect_ok(device->class->queues->open(device, &queue));
    assert_int_equal(stk_queue_run_now(queue, &e.entry, 1, &i_failed), STK_DEVICE);
    expect_words("endless");
    expect_words("has not ended after 0.3 s");
    assert_int_equal(device->class->queues->finish(queue), STK_DEVICE);
    device->class->queues->close(queue);
    stk_device_close(device);
    free_endless(&e);
    unsetenv("STOKER_GPU_TIMEOUT");
    unsetenv("STOKER_OPENCL_BUFFERS");
}

static void settings_that_are_wrong_are_refused(void **state)
{
    (void)state;
    stk_device *device;
    setenv("STOKER_GPU_TIMEOUT", "soon", 1);
    assert_int_equal(stk_device_open("opencl", NULL, &device), STK_INVALID);
    expect_words("STOKER_GPU_TIMEOUT is 'soon'");
    unsetenv("STOKER_GPU_TIMEOUT");
    assert_int_equal(stk_device_open("opencl:7", NULL, &device), STK_NO_DEVICE);
    expect_words("from 0 on");
}

/* On this build's own driver alone: a launch of the whole program is one call where command buffers are. */
static void a_program_is_one_launch(void **state)
{
    (void)state;
    stk_device *device = open_device();
    if (!device->caps->capture) {
        print_message("SKIP: this driver has no command buffers\n");
        stk_device_close(device);
        skip();
    }
    endless_entry e;
    stk_capture *capture;
    make_endless(device, 30, 0, &e);
    expect_ok(device->class->queues->capture(device, &e.entry, 1, &capture));
    assert_int_equal(opencl_driver.count_calls(capture), 1);
    stk_queue *queue;
    int i_failed;
    expect_ok(device->class->queues->open(device, &queue));
    for (int i = 0; i < 20; i++) /* Again before it is done. */
        expect_ok(device->class->queues->launch(queue, capture, &i_failed));
    expect_ok(device->class->queues->finish(queue));
    assert_true(device->class->queues->took_ns(capture) >= 0);
    device->class->queues->close(queue);
    device->class->queues->release(capture);
    device->class->free(device, e.x, 256);
    stk_device_close(device);
    free_endless(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_order_queues),
        cmocka_unit_test(strange_addresses_are_refused),
        cmocka_unit_test(runs_stay_apart),
        cmocka_unit_test(a_kernel_that_does_not_compile_is_named),
        cmocka_unit_test(programs_are_kept_on_disk),
        cmocka_unit_test(memory_that_is_refused_is_told),
        cmocka_unit_test(a_lost_device_is_told),
        cmocka_unit_test(settings_that_are_wrong_are_refused),
        cmocka_unit_test(a_program_is_one_launch),
        cmocka_unit_test(a_thousand_engines_leave_nothing),
        cmocka_unit_test(a_kernel_that_hangs_is_given_up),
    };
    stk_device *device;
    if (stk_device_open("opencl", NULL, &device) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    stk_device_close(device);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
