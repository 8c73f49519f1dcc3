/* The device 'cuda' on the played GPU (tests/device/play), or on what STOKER_CUDA and STOKER_NVRTC name: queues, the
 * engine's side, a step as one launch, and what goes wrong. Kernels' values are test_op_values'.
 *
 * Failures of calls are played here: a function of the table `cu` is replaced. What the driver finds when it is loaded
 * is seen by a process of its own: this program with the argument "--open DEVICE" opens one and prints what it says.
 */
#define DEVICE     "cuda"
#define WRONG_LINE "(4)"

#include "base/file.h"
#include "device/gpu/cases.h"
#include "device/gpu/cuda/cuda.h"

#include <pthread.h>

/* --- what a process finds --- */

/* What this program says when it opens that device, with the settings "A=1 B=2" in its environment. */
static void open_elsewhere(const char *settings, const char *device, char *out, size_t n)
{
    char self[1024], command[2048];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(length > 0);
    self[length] = '\0';
    snprintf(command, sizeof(command), "%s '%s' --open %s 2>&1", settings, self, device);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    n = fread(out, 1, n - 1, pipe);
    out[n] = '\0';
    pclose(pipe);
}

static void expect_said(const char *settings, const char *device, const char *words)
{
    char said[2048];
    open_elsewhere(settings, device, said, sizeof(said));
    if (!strstr(said, words)) fail_msg("with %s: '%s' lacks '%s'", settings, said, words);
}

static int open_and_say(const char *name)
{
    stk_device *device;
    stk_text text = {0};
    if (stk_device_open(name, NULL, &device) != STK_OK) {
        printf("%s\n", stk_error_text());
        return 1;
    }
    stk_device_print_name(device, &text);
    stk_text_add(&text, ": ");
    device->class->describe(device, &text);
    stk_text_add(&text, ", ");
    device->class->list_more(device, &text);
    printf("%s\n", stk_text_get(&text));
    stk_text_free(&text);
    stk_device_close(device);
    return 0;
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    expect_said("STOKER_CUDA=/no/such.so", "cuda", "cannot load STOKER_CUDA: /no/such.so");
    expect_said("STOKER_NVRTC=/no/such.so", "cuda", "cannot load NVRTC, STOKER_NVRTC: /no/such.so");
    expect_said("STOKER_NVRTC=/no/such.so", "cuda", "' is here, but "); /* the chip's name before it */
    expect_said("STOKER_CUBLASLT=0", "cuda", "own products: not used");
    expect_said("STOKER_NVRTC=\"$STOKER_CUDA\"", "cuda", "has no nvrtcVersion");
    expect_said("STOKER_CUDA=\"$STOKER_NVRTC\"", "cuda", "has no cuDriverGetVersion");
}

/* The played driver's settings: tests/device/play. */
static void other_drivers_are_told_apart(void **state)
{
    (void)state;
    expect_said("STOKER_PLAY_DRIVER=11080", "cuda", "is of CUDA 11.8, and 12.0 is wanted");
    expect_said("STOKER_PLAY_DRIVER=12040", "cuda", "whose programs this driver, of CUDA 12.4, does not run");
    expect_said("STOKER_PLAY_MISSING=cuGraphUpload", "cuda", "CUDA 13.0, has no cuGraphUpload");
    expect_said("STOKER_PLAY_FAIL=cuInit:1:100", "cuda", "the driver sees no GPU");
    expect_said("STOKER_PLAY_FAIL=cuInit:1:803", "cuda", "restart the machine");
}

/* --- names --- */

static void chips_have_names(void **state)
{
    (void)state;
    char said[2048], name[256];
    int number = -1;
    stk_device *device = open_device();
    const char *uuid = ((gpu_device *)device)->context->chip->uuid;
    assert_memory_equal(uuid, "GPU-", 4);
    expect_ok(cuda_find_chip(uuid, &number));
    assert_int_equal(number, 0);
    snprintf(name, sizeof(name), "cuda:%s", uuid);
    open_elsewhere("", name, said, sizeof(said));
    assert_memory_equal(said, "cuda: ", 6);
    expect_said("", "cuda:GPU-nothing", "no GPU of CUDA has that name; here are GPU-");
    expect_said("", "cuda:MIG-1", "where CUDA_VISIBLE_DEVICES names it");
    expect_said("", "cuda:7", "from 0 on");
    expect_said("", "gpu", "compute capability");
    stk_device_close(device);
}

/* --- programs --- */

static int n_built;
static int (*real_compile)(nvrtc_program, int, const char *const *);

static int count_compile(nvrtc_program program, int n, const char *const *options)
{
    n_built++;
    return real_compile(program, n, options);
}

/* The second process finds the program on disk; one that is damaged is built again and replaced. */
static void programs_are_kept_on_disk(void **state)
{
    (void)state;
    char folder[] = "/tmp/stoker-gpu-XXXXXX", path[4200];
    static const int want[] = {1, 0, 1, 0};
    char *before = enter_cache(folder);
    real_compile = nvrtc.nvrtcCompileProgram;
    nvrtc.nvrtcCompileProgram = count_compile;
    for (int i = 0; i < 4; i++) {
        stk_engine *engine;
        stk_program *program;
        n_built = 0;
        expect_ok(stk_engine_open(DEVICE, NULL, 0, &engine));
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
        assert_int_equal(fseek(file, -10, SEEK_END), 0);
        fputs("damaged", file);
        fclose(file);
    }
    nvrtc.nvrtcCompileProgram = real_compile;
    leave_cache(folder, before);
}

static int n_graphs, n_kernels;
static int (*real_graph)(cu_graph_exec, cu_stream);

static int count_graph(cu_graph_exec exec, cu_stream stream)
{
    n_graphs++;
    return real_graph(exec, stream);
}

static int refuse_kernel(cu_function f, unsigned nx, unsigned ny, unsigned nz, unsigned x, unsigned y, unsigned z,
                         unsigned bytes, cu_stream stream, void *const *arguments, void *const *extra)
{
    (void)f, (void)nx, (void)ny, (void)nz, (void)x, (void)y, (void)z, (void)bytes, (void)stream, (void)arguments,
        (void)extra;
    n_kernels++;
    return 701;
}

static void a_program_is_one_launch(void **state)
{
    (void)state;
    stk_device *device = open_device();
    endless_entry e;
    stk_capture *capture;
    stk_queue *queue;
    int i_failed;
    make_endless(device, 30, 0, &e);
    expect_ok(device->class->queues->capture(device, &e.entry, 1, &capture));
    assert_int_equal(cuda_driver.count_calls(capture), 1);
    expect_ok(device->class->queues->open(device, &queue));
    real_graph = cu.cuGraphLaunch;
    cu.cuGraphLaunch = count_graph;
    for (int i = 0; i < 20; i++) /* Again before it is done. */
        expect_ok(device->class->queues->launch(queue, capture, &i_failed));
    cu.cuGraphLaunch = real_graph;
    assert_int_equal(n_graphs, 20);
    expect_ok(device->class->queues->finish(queue));
    assert_true(device->class->queues->took_ns(capture) >= 0);
    device->class->queues->close(queue);
    device->class->queues->release(capture);
    device->class->free(device, e.x, 256);
    stk_device_close(device);
    free_endless(&e);
}

/* The recording ends, and the next one is possible. */
static void a_kernel_that_cannot_be_captured_is_named(void **state)
{
    (void)state;
    stk_device *device = open_device();
    endless_entry e;
    stk_capture *capture;
    make_endless(device, 30, 0, &e);
    int (*real)(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream,
                void *const *, void *const *) = cu.cuLaunchKernel;
    cu.cuLaunchKernel = refuse_kernel;
    assert_int_equal(device->class->queues->capture(device, &e.entry, 1, &capture), STK_DEVICE);
    expect_words("kernel 'endless");
    expect_words("more registers");
    assert_int_equal(n_kernels, 1);
    cu.cuLaunchKernel = real;
    expect_ok(device->class->queues->capture(device, &e.entry, 1, &capture));
    device->class->queues->release(capture);
    device->class->free(device, e.x, 256);
    stk_device_close(device);
    free_endless(&e);
}

/* --- what a driver does to those who trust it --- */

static int refuse_memory(cu_address *out, size_t bytes)
{
    (void)out, (void)bytes;
    return CU_OUT_OF_MEMORY;
}

static int tell_illegal_address(cu_event event)
{
    (void)event;
    return 700;
}

static int never_done_event(cu_event event)
{
    (void)event;
    return CU_NOT_READY;
}

static int never_done_stream(cu_stream stream)
{
    (void)stream;
    return CU_NOT_READY;
}

static void memory_that_is_refused_is_told(void **state)
{
    (void)state;
    stk_device *device = open_device();
    void *p;
    int (*real)(cu_address *, size_t) = cu.cuMemAlloc;
    cu.cuMemAlloc = refuse_memory;
    assert_int_equal(device->class->alloc(device, 4096, STK_MEMORY_ZEROED, &p), STK_NO_MEMORY);
    expect_words("MiB of them free");
    expect_words("CUDA_ERROR_OUT_OF_MEMORY, 2");
    cu.cuMemAlloc = real;
    assert_int_equal(device->class->alloc(device, (size_t)1 << 50, STK_MEMORY_SCRATCH, &p), STK_NO_MEMORY);
    expect_words("in one piece");
    expect_ok(device->class->alloc(device, 4096, STK_MEMORY_ZEROED, &p));
    device->class->free(device, p, 4096);
    stk_device_close(device);
}

/* From then on every wait says so. */
static void a_failure_of_the_chip_is_told(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    expect_ok(stk_engine_open(DEVICE, NULL, 0, &engine));
    run_counter(engine, &program);
    int (*real)(cu_event) = cu.cuEventQuery;
    cu.cuEventQuery = tell_illegal_address;
    stk_status status = stk_program_run(program);
    if (status == STK_OK) status = stk_program_wait(program, 0);
    assert_int_equal(status, STK_DEVICE);
    expect_words("kernel '");
    expect_words("memory that is not there");
    expect_words(", 700)");
    cu.cuEventQuery = real;
    status = stk_program_run(program);
    if (status == STK_OK) status = stk_program_wait(program, 0);
    assert_int_equal(status, STK_DEVICE);
    expect_words(", 700)");
    stk_engine_close(engine);
}

/* Which of a program's kernels it is shows where they are launched one by one; closing waits for nothing. */
static void a_kernel_that_hangs_is_given_up(void **state)
{
    (void)state;
    setenv("STOKER_GPU_TIMEOUT", "0.3", 1);
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        setenv("STOKER_CUDA_GRAPHS", one_by_one ? "0" : "1", 1);
        stk_device *device = open_device();
        endless_entry e;
        int i_failed;
        stk_queue *queue;
        make_endless(device, 30, 0, &e);
        expect_ok(device->class->queues->open(device, &queue));
        expect_ok(stk_queue_run_now(queue, &e.entry, 1, &i_failed));
        stk_capture *capture;
        expect_ok(device->class->queues->capture(device, &e.entry, 1, &capture));
        int (*real_event)(cu_event) = cu.cuEventQuery;
        int (*real_stream)(cu_stream) = cu.cuStreamQuery;
        cu.cuEventQuery = never_done_event;
        cu.cuStreamQuery = never_done_stream;
        stk_status status = device->class->queues->launch(queue, capture, &i_failed);
        if (status == STK_OK) status = device->class->queues->finish(queue);
        assert_int_equal(status, STK_DEVICE);
        expect_words(one_by_one ? "kernel 'endless" : "a program of 30 kernels, from 'endless");
        expect_words(one_by_one ? "(number 1 of 30)" : "shows with STOKER_CUDA_GRAPHS=0");
        expect_words("has not ended after 0.3 s");
        device->class->queues->close(queue);
        device->class->queues->release(capture);
        stk_device_close(device);
        cu.cuEventQuery = real_event;
        cu.cuStreamQuery = real_stream;
        free_endless(&e);
    }
    unsetenv("STOKER_GPU_TIMEOUT");
    unsetenv("STOKER_CUDA_GRAPHS");
}

/* An engine that one thread opened runs on another. */
static void *run_again(void *program)
{
    stk_status status = stk_program_run(program);
    if (status == STK_OK) status = stk_program_wait(program, 0);
    return status == STK_OK ? NULL : program;
}

static void any_thread_may_run_it(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    pthread_t thread;
    void *failed;
    expect_ok(stk_engine_open(DEVICE, NULL, 0, &engine));
    run_counter(engine, &program);
    assert_int_equal(pthread_create(&thread, NULL, run_again, program), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    stk_engine_close(engine);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(other_drivers_are_told_apart),
        cmocka_unit_test(chips_have_names),
        cmocka_unit_test(events_order_queues),
        cmocka_unit_test(runs_stay_apart),
        cmocka_unit_test(a_kernel_that_does_not_compile_is_named),
        cmocka_unit_test(programs_are_kept_on_disk),
        cmocka_unit_test(a_program_is_one_launch),
        cmocka_unit_test(a_kernel_that_cannot_be_captured_is_named),
        cmocka_unit_test(memory_that_is_refused_is_told),
        cmocka_unit_test(a_failure_of_the_chip_is_told),
        cmocka_unit_test(any_thread_may_run_it),
        cmocka_unit_test(a_thousand_engines_leave_nothing),
        cmocka_unit_test(a_kernel_that_hangs_is_given_up),
    };
    take_played_gpu();
    if (argc == 3 && !strcmp(argv[1], "--open")) return open_and_say(argv[2]);
    if (!has_device()) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
