/* The played GPU itself: that it does what NVIDIA's documents say of the real driver, and finds what is done wrong. */
#include "device/play/rig.h"

#include <pthread.h>

/* --- work is done when it is waited for, and not before --- */

static void run_kernel(void)
{
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t");
    cu_stream stream = open_stream();
    cu_event begin, end;
    cu_address src = take(N * 4), dst = take(N * 4);
    float *in = take_pinned(), *out = take_pinned(), ms = -1;
    WELL(cu.cuEventCreate(&begin, 0));
    WELL(cu.cuEventCreate(&end, 0));
    WELL(cu.cuEventQuery(end)); /* It was never recorded. */
    GIVES(400, cu.cuEventElapsedTime(&ms, begin, end));
    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    WELL(cu.cuEventRecord(begin, stream));
    WELL(cu.cuMemcpyAsync(src, of(in), N * 4, stream));
    WELL(launch_scale(f, stream, src, dst, 3, 7));
    out[5] = 1;
    WELL(cu.cuMemcpyAsync(of(out), dst, N * 4, stream));
    WELL(cu.cuEventRecord(end, stream));
    CHECK(out[5] != out[5]); /* poison */
    GIVES(600, cu.cuEventElapsedTime(&ms, begin, end));
    in[9] = 100; /* The copy is not done yet: it takes this. */
    int n = 0;
    while (cu.cuEventQuery(end) == 600)
        n++;
    CHECK(n > 0);
    WELL(cu.cuStreamQuery(stream));
    CHECK(out[5] == 22 && out[9] == 307 && out[N - 1] == 3 * (N - 1) + 7);
    WELL(cu.cuEventElapsedTime(&ms, begin, end));
    CHECK(ms >= 0);
    CHECK(count("kernels") == 1 && count("to_device") == 1 && count("to_host") == 1 && count("misuse") == 0);
    WELL(cu.cuDevicePrimaryCtxRelease(0));
}

static void kernels_run(void **state)
{
    (void)state;
    expect_end(0, run_kernel, NULL);
}

/* A second stream reads what the first writes: with an event between them whatever the order, without it in some. */
static void read_behind(bool waits)
{
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t");
    cu_stream a = open_stream(), b = open_stream();
    cu_event written;
    cu_address x = take(N * 4), y = take(N * 4);
    float *out = take_pinned();
    WELL(cu.cuEventCreate(&written, 2));
    WELL(cu.cuMemsetD8Async(x, 0, N * 4, a));
    WELL(launch_scale(f, a, x, y, 0, 7));
    WELL(cu.cuEventRecord(written, a));
    if (waits) WELL(cu.cuStreamWaitEvent(b, written, 0));
    WELL(cu.cuMemcpyAsync(of(out), y, N * 4, b));
    WELL(synchronize(b));
    if (out[3] != 7) exit(3);
    WELL(synchronize(a));
    WELL(cu.cuDevicePrimaryCtxRelease(0));
}

static void read_with_event(void)
{
    read_behind(true);
}

static void read_without_event(void)
{
    read_behind(false);
}

static void orders_show_what_is_missing(void **state)
{
    (void)state;
    char order[32];
    for (int i = 0; i < 8; i++) {
        snprintf(order, sizeof(order), "STOKER_PLAY_ORDER=%d", i);
        expect_end(0, read_with_event, order, NULL);
    }
    expect_end(3, read_without_event, "STOKER_PLAY_ORDER=0", NULL);
    expect_end(3, read_without_event, "STOKER_PLAY_ORDER=4", NULL);
}

static void copy_unpinned(void)
{
    open_context();
    cu_stream stream = open_stream();
    cu_address x = take(N * 4);
    float in[N] = {1, 2, 3}, out[N] = {0};
    WELL(cu.cuMemcpyAsync(x, of(in), sizeof(in), stream));
    in[1] = 9; /* It is the driver's already. */
    WELL(cu.cuMemcpyAsync(of(out), x, sizeof(out), stream));
    CHECK(out[1] == 2 && out[2] == 3);
    GIVES(1, cu.cuMemcpyAsync(x, of(in), sizeof(in) + 4, stream));
    CHECK(count("unpinned") == 2);
}

static void memory_is_of_three_kinds(void **state)
{
    (void)state;
    expect_end(0, copy_unpinned, NULL);
}

/* The stream NULL is in the order of those that are not told otherwise. */
static void use_legacy_stream(void)
{
    open_context();
    cu_stream blocking, other = open_stream();
    cu_address x = take(4);
    unsigned char *out;
    WELL(cu.cuStreamCreateWithPriority(&blocking, 0, 0));
    WELL(cu.cuMemHostAlloc((void **)&out, 4, 0));
    WELL(cu.cuMemsetD8Async(x, 1, 4, blocking));
    WELL(cu.cuMemsetD8Async(x, 2, 4, NULL));
    WELL(cu.cuMemcpyAsync(of(out), x, 4, blocking));
    WELL(cu.cuStreamQuery(other));
    WELL(synchronize(blocking));
    CHECK(out[0] == 2);
}

static void the_null_stream_waits(void **state)
{
    (void)state;
    expect_end(0, use_legacy_stream, NULL);
}

/* --- graphs --- */

static void run_graph(void)
{
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t");
    cu_stream a = open_stream(), b = open_stream();
    cu_graph graph;
    cu_graph_exec exec;
    cu_address x = take(N * 4);
    float *out = take_pinned();
    WELL(cu.cuStreamBeginCapture(a, 1));
    for (int i = 0; i < 10; i++)
        WELL(launch_scale(f, a, x, x, 1, 1));
    WELL(cu.cuStreamEndCapture(a, &graph));
    WELL(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    WELL(cu.cuGraphDestroy(graph));
    WELL(cu.cuMemsetD8Async(x, 0, N * 4, a));
    WELL(cu.cuGraphUpload(exec, a));
    CHECK(count("kernels") == 0);
    WELL(cu.cuGraphLaunch(exec, a));
    WELL(cu.cuGraphLaunch(exec, b)); /* Behind its last launch, wherever that was. */
    WELL(cu.cuGraphExecDestroy(exec));
    WELL(cu.cuMemcpyAsync(of(out), x, N * 4, b));
    WELL(synchronize(b));
    CHECK(out[0] == 20 && count("kernels") == 20 && count("cuGraphLaunch") == 2);
}

static void launch_destroyed_graph(void)
{
    open_context();
    cu_stream a = open_stream();
    cu_graph graph;
    cu_graph_exec exec;
    WELL(cu.cuStreamBeginCapture(a, 1));
    WELL(cu.cuStreamEndCapture(a, &graph));
    WELL(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    WELL(cu.cuGraphExecDestroy(exec));
    GIVES(400, cu.cuGraphLaunch(exec, a));
}

static void graphs_are_launched(void **state)
{
    (void)state;
    expect_end(0, run_graph, NULL);
    expect_end(MISUSED, launch_destroyed_graph, NULL);
}

static void *end_elsewhere(void *stream)
{
    cu_graph graph;
    WELL(cu.cuCtxSetCurrent(context));
    GIVES(908, cu.cuStreamEndCapture(stream, &graph));
    return NULL;
}

static void break_captures(void)
{
    open_context();
    cu_stream a = open_stream(), b = open_stream();
    cu_graph graph;
    cu_event outside, inside;
    cu_address p;
    pthread_t thread;
    WELL(cu.cuEventCreate(&outside, 2));
    WELL(cu.cuEventCreate(&inside, 2));
    WELL(cu.cuEventRecord(outside, b));
    GIVES(900, cu.cuStreamBeginCapture(NULL, 1));
    GIVES(401, cu.cuStreamEndCapture(a, &graph));
    for (int mode = 1; mode < 3; mode++) { /* Only relaxed captures let memory be taken. */
        WELL(cu.cuStreamBeginCapture(a, mode));
        GIVES(401, cu.cuStreamBeginCapture(a, mode));
        GIVES(mode == 1 ? 900 : 0, cu.cuMemAlloc(&p, 4));
        GIVES(mode == 1 ? 901 : 0, cu.cuStreamEndCapture(a, &graph));
        CHECK((graph == NULL) == (mode == 1));
    }
    WELL(cu.cuStreamBeginCapture(a, 2));
    GIVES(900, cu.cuStreamQuery(a));
    GIVES(901, cu.cuStreamEndCapture(a, &graph));
    WELL(cu.cuStreamBeginCapture(a, 2));
    GIVES(905, cu.cuStreamWaitEvent(a, outside, 0));
    GIVES(901, cu.cuStreamEndCapture(a, &graph));
    WELL(cu.cuStreamBeginCapture(a, 1));
    WELL(cu.cuEventRecord(inside, a));
    CHECK(pthread_create(&thread, NULL, end_elsewhere, a) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    WELL(cu.cuStreamEndCapture(a, &graph));
    GIVES(907, cu.cuEventQuery(inside));
    WELL(cu.cuEventRecord(inside, a));
    WELL(synchronize(a));
    WELL(cu.cuEventQuery(inside));
}

static void what_breaks_a_capture_is_refused(void **state)
{
    (void)state;
    expect_end(0, break_captures, "STOKER_PLAY_MISUSE=count", NULL);
    expect_end(MISUSED, break_captures, NULL);
}

/* --- what goes wrong --- */

static void read_freed_memory(void)
{
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t");
    cu_stream stream = open_stream();
    cu_address x = take(N * 4), y = take(N * 4);
    size_t free_bytes, total;
    WELL(cu.cuMemFree(x));
    WELL(launch_scale(f, stream, x, y, 1, 1));
    GIVES(700, synchronize(stream));
    GIVES(700, cu.cuMemGetInfo(&free_bytes, &total));
    GIVES(700, cu.cuMemAlloc(&x, 4));
    GIVES(700, cu.cuStreamQuery(stream));
    WELL(cu.cuDevicePrimaryCtxRelease(0));
    WELL(cu.cuDevicePrimaryCtxRetain(&context, 0)); /* Not in this process. */
    WELL(cu.cuCtxSetCurrent(context));
    GIVES(700, cu.cuMemGetInfo(&free_bytes, &total));
}

static void free_twice(void)
{
    open_context();
    cu_address x = take(4);
    WELL(cu.cuMemFree(x));
    GIVES(1, cu.cuMemFree(x));
}

static void launch_wrongly(void)
{
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t"), none;
    cu_module module = load_module(scale_text);
    void *arguments[8] = {0};
    int most = 0;
    GIVES(500, cu.cuModuleGetFunction(&none, module, "no_such"));
    WELL(cu.cuFuncGetAttribute(&most, 0, f));
    CHECK(most == 64);
    GIVES(701, cu.cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    GIVES(1, cu.cuLaunchKernel(f, 1, 65536, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    GIVES(1, cu.cuLaunchKernel(f, 0, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    WELL(cu.cuModuleUnload(module));
    GIVES(200, cu.cuModuleLoadDataEx(&module, "no image", 0, NULL, NULL));
}

static void mistakes_are_found(void **state)
{
    (void)state;
    expect_end(0, read_freed_memory, NULL);
    expect_end(MISUSED, free_twice, NULL);
    expect_end(0, launch_wrongly, NULL);
}

static void compile_wrongly(void)
{
    nvrtc_program program;
    size_t n;
    char log[4096];
    load();
    GIVES(6, compile("KERNEL(k, 1, 1, 1)(BUFFER(int, x))\n{\n    wrong = 3;\n}\n", arch, &program));
    WELL(nvrtc.nvrtcGetProgramLogSize(program, &n));
    CHECK(n < sizeof(log));
    WELL(nvrtc.nvrtcGetProgramLog(program, log));
    CHECK(strstr(log, "t.dev(3): error: ") && strstr(log, "wrong"));
    WELL(nvrtc.nvrtcDestroyProgram(&program));
    GIVES(5, compile("", "--gpu-architecture=sm_42", &program));
    WELL(nvrtc.nvrtcDestroyProgram(&program));
}

static void sources_are_refused(void **state)
{
    (void)state;
    expect_end(0, compile_wrongly, NULL);
}

/* --- settings --- */

static void see_chips(void)
{
    int n = 0, major = 0, minor = 0, units = 0;
    char name[64];
    size_t total = 0;
    load();
    GIVES(3, cu.cuDeviceGetCount(&n));
    WELL(cu.cuInit(0));
    WELL(cu.cuDeviceGetCount(&n));
    CHECK(n == 2);
    WELL(cu.cuDeviceGetName(name, sizeof(name), 1));
    WELL(cu.cuDeviceGetAttribute(&major, 75, 1));
    WELL(cu.cuDeviceGetAttribute(&minor, 76, 1));
    WELL(cu.cuDeviceGetAttribute(&units, 16, 1));
    WELL(cu.cuDeviceTotalMem(&total, 1));
    CHECK(!strcmp(name, "H100 MIG 1g.10gb") && major == 8 && minor == 6 && units == 14 && total == 64u << 20);
    GIVES(201, cu.cuMemGetInfo(&total, &total));
    WELL(cu.cuDevicePrimaryCtxRetain(&context, 0));
    WELL(cu.cuCtxSetCurrent(context));
    cu_module module;
    cu_address p;
    GIVES(2, cu.cuMemAlloc(&p, 64u << 20));
    /* An image for another chip. */
    GIVES(209, cu.cuModuleLoadDataEx(&module, "played cubin 1\nsm 90\n\n", 0, NULL, NULL));
}

static void share_memory(void)
{
    size_t free_bytes, later, total;
    cu_address p;
    open_context();
    WELL(cu.cuMemGetInfo(&free_bytes, &total));
    WELL(cu.cuMemGetInfo(&later, &total));
    CHECK(total == 64u << 20 && free_bytes - later == 16u << 20 && free_bytes == (47u << 20));
    GIVES(2, cu.cuMemAlloc(&p, later + 1));
    WELL(cu.cuMemAlloc(&p, later));
    WELL(cu.cuMemGetInfo(&later, &total));
    CHECK(later == 0);
}

static void fail_calls(void)
{
    cu_address p;
    open_context();
    cu_function f = get_function(load_module(scale_text), "scale_t");
    p = take(N * 4);
    GIVES(2, cu.cuMemAlloc(&p, 4));
    WELL(cu.cuMemAlloc(&p, N * 4));
    WELL(launch_scale(f, NULL, p, p, 1, 1)); /* It fails when it is done. */
    GIVES(719, synchronize(NULL));
    GIVES(719, cu.cuMemAlloc(&p, 4));
}

static void hang(void)
{
    open_context();
    cu_stream a = open_stream(), b = open_stream();
    cu_graph graph;
    cu_graph_exec exec;
    WELL(cu.cuStreamBeginCapture(a, 1));
    WELL(cu.cuStreamEndCapture(a, &graph));
    WELL(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    WELL(cu.cuGraphLaunch(exec, a));
    WELL(synchronize(a));
    WELL(cu.cuGraphLaunch(exec, a));
    for (int i = 0; i < 100; i++)
        GIVES(600, cu.cuStreamQuery(a));
    WELL(synchronize(b));
    GIVES(702, synchronize(a)); /* for ever, on a card */
}

static void lack_a_call(void)
{
    void *driver = dlopen(PLAYED "libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;
    int (*get)(const char *, void **, int, uint64_t, int *), status = 0;
    CHECK(driver);
    *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
    GIVES(500, get("cuGraphUpload", &found, 11010, 0, &status));
    CHECK(!found && status == 1);
    GIVES(500, get("cuFuncSetAttribute", &found, 9000, 0, &status)); /* The driver is older. */
    WELL(get("cuMemAlloc", &found, 3020, 0, &status));
    GIVES(500, get("cuMemAlloc", &found, 2000, 0, &status)); /* another one, of 32 bits */
    CHECK(status == 2);
}

static void settings_are_played(void **state)
{
    (void)state;
    expect_end(0, see_chips, "STOKER_PLAY_CHIP=capability=8.6,chips=2,name=H100,mig=1,units=14,memory=64MiB", NULL);
    expect_end(0, share_memory, "STOKER_PLAY_CHIP=memory=64MiB", "STOKER_PLAY_OTHERS=16MiB,2:32MiB", NULL);
    expect_end(0, fail_calls, "STOKER_PLAY_FAIL=cuMemAlloc:2:2,cuLaunchKernel:1:719", NULL);
    expect_end(MISUSED, hang, "STOKER_PLAY_HANG=2", NULL);
    expect_end(MISUSED, lack_a_call, "STOKER_PLAY_MISSING=cuGraphUpload,cuGraphLaunch", "STOKER_PLAY_DRIVER=8000",
               NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(orders_show_what_is_missing),
        cmocka_unit_test(memory_is_of_three_kinds),
        cmocka_unit_test(the_null_stream_waits),
        cmocka_unit_test(graphs_are_launched),
        cmocka_unit_test(what_breaks_a_capture_is_refused),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(sources_are_refused),
        cmocka_unit_test(settings_are_played),
    };
    if (lacks_pocl()) return NO_POCL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
