/* What holds for every driver of GPUs, for its test to include: queues, the engine's side, units that do not compile.
 * DEVICE is the device's name, WRONG_LINE how its compiler names the fourth line. */
#ifndef TESTS_DEVICE_GPU_CASES_H
#define TESTS_DEVICE_GPU_CASES_H

#include <stdio.h>
#include <unistd.h>

#include "device/gpu/endless.h"
#include "engine/engine.h"
#include "graph/graph.h"

/* --- queues --- */

/* Two queues, of which the second reads what the first writes, many times over. */
static void events_order_queues(void **state)
{
    (void)state;
    enum { N = 100000, ROUNDS = 50 };
    stk_device *device = open_device();
    const stk_queue_class *queues = device->class->queues;
    stk_queue *a, *b;
    stk_event *written, *read;
    void *shared;
    static int source[2][N], dst[N];
    expect_ok(queues->open(device, &a));
    expect_ok(queues->open(device, &b));
    expect_ok(queues->open_event(device, &written));
    expect_ok(queues->open_event(device, &read));
    expect_ok(device->class->alloc(device, sizeof(dst), STK_MEMORY_SCRATCH, &shared));
    for (int round = 0; round < ROUNDS; round++) {
        int *src = source[round % 2];
        for (int i = 0; i < N; i++)
            src[i] = round * N + i;
        expect_ok(queues->wait(a, read));
        expect_ok(queues->copy(a, shared, src, sizeof(dst), STK_COPY_TO_DEVICE));
        expect_ok(queues->record(a, written));
        expect_ok(queues->wait(b, written));
        expect_ok(queues->copy(b, dst, shared, sizeof(dst), STK_COPY_TO_HOST));
        expect_ok(queues->record(b, read));
        if (round % 2) continue; /* Every other round is not waited for: `shared` is overwritten behind the event. */
        expect_ok(queues->sync(read));
        assert_memory_equal(src, dst, sizeof(dst));
    }
    expect_ok(queues->finish(b));
    device->class->free(device, shared, sizeof(dst));
    queues->close_event(written);
    queues->close_event(read);
    queues->close(a);
    queues->close(b);
    stk_device_close(device);
}

/* --- the engine --- */

static stk_graph *make_counter(void)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4), (stk_init){STK_INIT_CONSTANT, 3}, false);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
    stk_value by = stk_graph_input(graph, "by", STK_F32, (stk_shape){0});
    stk_value next = stk_add(w, stk_mul(x, by));
    stk_graph_update(graph, w, next);
    stk_graph_output(graph, "next", next);
    return graph;
}

/* Inputs are changed as soon as they may be, and results are read as late as they may be. */
static void runs_stay_apart(void **state)
{
    (void)state;
    enum { N_RUNS = 40 };
    stk_engine *engine;
    stk_program *program;
    float x[4], by, w[4], want = 3, expected[N_RUNS];
    expect_ok(stk_engine_open(DEVICE, NULL, 0, &engine));
    expect_ok(stk_engine_compile(engine, make_counter(), NULL, &program));
    int i_x = stk_program_input(program, "x"), i_by = stk_program_input(program, "by");
    stk_program_bind(program, i_x, x);
    for (int run = 0; run < N_RUNS; run++) {
        for (int i = 0; i < 4; i++)
            x[i] = (float)(run + i);
        by = (float)(run % 3);
        expected[run] = want += (float)run * by;
        expect_ok(stk_program_set(program, i_by, &by));
        expect_ok(stk_program_run(program));
        expect_ok(stk_program_wait_earlier(program));
        expect_ok(stk_program_wait_inputs(program));
        memset(x, 0xff, sizeof(x));
        int n_back = run < STK_RUNS_KEPT - 1 ? run : STK_RUNS_KEPT - 1;
        expect_ok(stk_program_wait(program, n_back));
        assert_true(((const float *)stk_program_output(program, "next", NULL))[0] == expected[run - n_back]);
    }
    expect_ok(stk_engine_read_variable(engine, 0, w));
    assert_true(w[0] == want);
    stk_engine_close(engine);
}

static void run_counter(stk_engine *engine, stk_program **program)
{
    float x[4] = {1, 2, 3, 4}, by = 1;
    expect_ok(stk_engine_compile(engine, make_counter(), NULL, program));
    expect_ok(stk_program_set(*program, stk_program_input(*program, "x"), x));
    expect_ok(stk_program_set(*program, stk_program_input(*program, "by"), &by));
    expect_ok(stk_program_run(*program));
    expect_ok(stk_program_wait(*program, 0));
}

static size_t resident(void)
{
    unsigned long long all, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu %llu", &all, &pages), 2);
    fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Opened, run, closed. The first hundred fill what the driver keeps. */
static void a_thousand_engines_leave_nothing(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    const size_t freed = 256 << 20; /* what the sanitizer keeps of it; leaks are its own to find */
#else
    const size_t freed = 0;
#endif
    size_t before = 0;
    for (int i = 0; i < 1000; i++) {
        stk_engine *engine;
        stk_program *program;
        expect_ok(stk_engine_open(DEVICE, NULL, 0, &engine));
        run_counter(engine, &program);
        stk_engine_close(engine);
        if (i == 100) before = resident();
    }
    size_t after = resident();
    /* The driver's own: a page or so for each. A leak of a program's memory would be hundreds of kilobytes each. */
    if (after > before + freed + 900 * 16384) fail_msg("%zu KiB more after 900 engines", (after - before) >> 10);
}

static void a_kernel_that_does_not_compile_is_named(void **state)
{
    (void)state;
    stk_device *device = open_device();
    gpu_unit *unit;
    expect_ok(gpu_unit_of_text((gpu_device *)device, "wrong.dev", "#define T f32\n",
                               "KERNEL(wrong, 64, 1, 1)(BUFFER(STORED(T), x))\n{\n    POINTER(STORED(T), x);\n"
                               "    x[0] = there_is_no_such_name;\n}\n",
                               &unit));
    assert_int_equal(gpu_build((gpu_device *)device), STK_DEVICE);
    expect_words("wrong.dev");
    expect_words(WRONG_LINE);
    expect_words("there_is_no_such_name");
    stk_device_close(device);
}

#endif
