/* Traces that are made up, with paths that are known: kernels one after the other, input that a worker makes, input and
 * communication next to the path, saves, ranks that share a trace, and nonsense. */
#include "report/critical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

enum { LOOP = 100, WORKER = 101, OTHER = 102 };

/* Adds a slice of so many microseconds. */
static void add(stk_text *t, int thread, const char *category, const char *name, int begin, int end, const char *args)
{
    stk_text_add(t,
                 "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%d.000,\"dur\":%d.000,"
                 "\"args\":{%s}}",
                 t->n ? ",\n" : "{\"traceEvents\":[", category, name, thread == 7 ? 0 : LOOP, thread, begin,
                 end - begin, args);
}

/* A launch and its kernel, as the engine has them. */
static void add_kernel(stk_text *t, int thread, const char *op, const char *layer, int launch, int begin, int end,
                       int number)
{
    char args[100];
    snprintf(args, sizeof(args), "\"correlation\":%d,\"layer\":\"%s\"", number, layer);
    add(t, thread, "cuda_runtime", "cudaLaunchKernel", launch, begin, args);
    add(t, 7, "kernel", op, begin, end, args);
}

static void make(stk_text *t, stk_trace_data *data)
{
    json_error_t error;
    stk_text_add(t, "]}");
    json_t *root = json_loads(stk_text_get(t), 0, &error);
    assert_non_null(root);
    stk_text_free(t);
    assert_int_equal(stk_trace_data_make(root, data), STK_OK);
}

static void check_whole(const stk_trace_data *data, size_t i_step, const stk_critical *c)
{
    int64_t sum = 0, at = data->step[i_step].begin_ns;
    for (size_t i = 0; i < c->n; i++) {
        assert_int_equal(c->piece[i].begin_ns, at);
        assert_true(c->piece[i].end_ns > at);
        at = c->piece[i].end_ns;
    }
    assert_int_equal(at, data->step[i_step].end_ns);
    for (int k = 0; k < STK_N_WORK_KINDS; k++)
        sum += c->kind_ns[k];
    assert_int_equal(sum, data->step[i_step].end_ns - data->step[i_step].begin_ns);
}

static void check_kinds(const stk_critical *c, int wait, int input, int host, int launch, int compute, int ranks,
                        int save)
{
    const int us[STK_N_WORK_KINDS] = {wait, input, host, launch, compute, ranks, save};
    for (int k = 0; k < STK_N_WORK_KINDS; k++)
        assert_int_equal(c->kind_ns[k], us[k] * 1000);
}

static const stk_beside *find_beside(const stk_beside *b, int n, stk_work_kind kind, bool is_driver)
{
    for (int i = 0; i < n; i++)
        if (b[i].kind == kind && b[i].is_driver == is_driver) return &b[i];
    return NULL;
}

/* wait 20, host 10, launch 5 conv 100 launch 5 norm 60 launch 5 conv 40, host 15, copy 30, host 10. */
static void the_loop_alone(void **state)
{
    (void)state;
    static const char *const names[] = {
        "wait for a batch",    "", "launch", "conv2d", "launch", "batch_norm", "launch", "conv2d", "training step",
        "copy for checkpoint", ""};
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    stk_alike *alike;
    size_t n;
    add(&t, LOOP, "input", "wait for a batch", 1000, 1020, "");
    add_kernel(&t, LOOP, "conv2d", "a", 1030, 1035, 1135, 0);
    add_kernel(&t, LOOP, "batch_norm", "b", 1135, 1140, 1200, 1);
    add_kernel(&t, LOOP, "conv2d", "a", 1200, 1205, 1245, 2);
    add(&t, LOOP, "cpu_op", "training step", 1030, 1260, "");
    add(&t, LOOP, "checkpoint", "copy for checkpoint", 1260, 1290, "");
    add(&t, LOOP, "user_annotation", "ProfilerStep#4", 1000, 1300, "");
    add(&t, WORKER, "data", "rows", 900, 1010, ""); /* a wait as short as this is no reason to follow it */
    make(&t, &data);
    assert_int_equal(data.n_steps, 1);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 20, 0, 35, 15, 200, 0, 30);
    assert_int_equal(c.n, sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < c.n; i++)
        assert_string_equal(c.piece[i].name, names[i]);
    assert_int_equal(stk_critical_sum(&c, &alike, &n), STK_OK);
    assert_string_equal(alike[0].what.name, "conv2d");
    assert_string_equal(alike[0].what.layer, "a");
    assert_int_equal(alike[0].sum_ns, 140000);
    assert_int_equal(alike[0].n, 2);
    assert_string_equal(alike[1].what.layer, "b");
    free(alike);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* The worker works from 200 on, and the loop waits for it: what the loop computed since then held up nobody. */
static void a_worker_decides(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    stk_beside beside[STK_MOST_BESIDE];
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 1000, "");
    add_kernel(&t, LOOP, "matmul", "fc", 0, 10, 390, 0);
    add(&t, LOOP, "input", "wait for a batch", 400, 960, "");
    add(&t, WORKER, "data", "rows", 200, 950, "");
    add(&t, WORKER, "data", "decode", 300, 900, "");
    add(&t, OTHER, "data", "rows", 500, 700, "");
    make(&t, &data);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    /* Before 200 the worker had nothing to do, and the path is the loop's. */
    check_kinds(&c, 10, 750, 40, 10, 190, 0, 0);
    assert_int_equal(c.piece[1].thread, data.driver);
    assert_string_equal(c.piece[1].name, "matmul");
    assert_string_equal(c.piece[3].name, "decode");
    assert_int_equal(c.piece[3].end_ns - c.piece[3].begin_ns, 600000);
    int n = stk_critical_beside(&data, 0, &c, beside);
    const stk_beside *compute = find_beside(beside, n, STK_WORK_COMPUTE, true);
    const stk_beside *input = find_beside(beside, n, STK_WORK_INPUT, false);
    assert_int_equal(n, 2);
    assert_int_equal(compute->busy_ns, 190000);
    assert_int_equal(compute->slack_ns, 560000); /* the wait, without what lies before it */
    assert_int_equal(input->busy_ns, 200000);
    assert_int_equal(input->slack_ns, 260000);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* Two workers in turns, each idle before it began, and a short break that is none. */
static void workers_in_turns(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 1000, "");
    add(&t, LOOP, "input", "wait for a batch", 0, 1000, "");
    add(&t, WORKER, "data", "rows", 500, 700, "");
    add(&t, WORKER, "data", "rows", 720, 1000, "");
    add(&t, OTHER, "data", "rows", 100, 500, "");
    make(&t, &data);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 100, 900, 0, 0, 0, 0, 0);
    assert_int_equal(c.n, 5);
    assert_string_equal(data.thread[c.piece[1].thread].name, "");
    assert_int_equal(data.thread[c.piece[1].thread].id, OTHER);
    assert_int_equal(data.thread[c.piece[4].thread].id, WORKER);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* Rows that took no time lead nowhere, and the walk goes on with those before. */
static void rows_of_no_time(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 1000, "");
    add(&t, LOOP, "input", "wait for a batch", 0, 1000, "");
    add(&t, WORKER, "data", "rows", 900, 900, "");
    add(&t, OTHER, "data", "rows", 300, 800, "");
    make(&t, &data);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 500, 500, 0, 0, 0, 0, 0);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* Sums over ranks: begun at 100, awaited from 600 to 650; a save is written alongside; the next batch is there early.
 */
static void next_to_the_path(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    stk_beside beside[STK_MOST_BESIDE];
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 700, "");
    add_kernel(&t, LOOP, "conv2d", "a", 0, 0, 100, 0);
    add_kernel(&t, LOOP, "conv2d_grad", "a", 100, 100, 600, 1);
    add_kernel(&t, LOOP, "rank_await", "", 600, 600, 650, 2);
    add(&t, LOOP, "input", "wait for a batch", 700, 705, "");
    add(&t, WORKER, "cpu_op", "all_reduce", 100, 250, "");
    add(&t, WORKER, "cpu_op", "all_reduce", 300, 640, "");
    add(&t, OTHER, "data", "rows", 50, 350, "");
    add(&t, 103, "checkpoint", "write checkpoint", 0, 800, "");
    make(&t, &data);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 0, 0, 50, 0, 600, 50, 0);
    int n = stk_critical_beside(&data, 0, &c, beside);
    assert_int_equal(n, 3);
    assert_true(beside[0].kind == STK_WORK_SAVE && beside[0].busy_ns == 700000 && beside[0].slack_ns == -1);
    /* What lies in the wait is not hidden. */
    assert_true(beside[1].kind == STK_WORK_COMMUNICATION && beside[1].busy_ns == 450000);
    assert_int_equal(beside[1].slack_ns, 10000);
    assert_true(beside[2].kind == STK_WORK_INPUT && beside[2].busy_ns == 300000 && beside[2].slack_ns == 355000);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* A save waits for the one before, as long as this is written. */
static void a_save_waits(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    stk_beside beside[STK_MOST_BESIDE];
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 500, "");
    add_kernel(&t, LOOP, "broadcast", "", 0, 0, 100, 0); /* an op, and no collective */
    add(&t, LOOP, "checkpoint", "wait for checkpoint", 100, 400, "");
    add(&t, LOOP, "checkpoint", "copy for checkpoint", 400, 450, "");
    add(&t, OTHER, "checkpoint", "write checkpoint", 20, 390, "");
    make(&t, &data);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 0, 0, 50, 0, 100, 0, 350);
    assert_int_equal(stk_critical_beside(&data, 0, &c, beside), 1);
    assert_true(beside[0].kind == STK_WORK_SAVE && beside[0].busy_ns == 80000 && beside[0].slack_ns == 10000);
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* A rank in another thread has kernels of the same numbers at the same time, and steps of its own. */
static void ranks_in_threads(void **state)
{
    (void)state;
    stk_text t = {0};
    stk_trace_data data;
    stk_critical c;
    add(&t, WORKER, "user_annotation", "ProfilerStep#1", 0, 500, "");
    add_kernel(&t, WORKER, "matmul", "other", 0, 30, 450, 0);
    add(&t, LOOP, "user_annotation", "ProfilerStep#1", 0, 400, "");
    add_kernel(&t, LOOP, "matmul", "own", 0, 20, 390, 0);
    make(&t, &data);
    assert_int_equal(data.n_steps, 1);
    assert_int_equal(data.thread[data.driver].id, LOOP);
    assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
    check_whole(&data, 0, &c);
    check_kinds(&c, 0, 0, 10, 20, 370, 0, 0);
    stk_beside beside[STK_MOST_BESIDE];
    assert_int_equal(stk_critical_beside(&data, 0, &c, beside), 2);
    assert_true(beside[0].kind == STK_WORK_COMPUTE && beside[0].busy_ns == 370000 && beside[0].slack_ns == -1);
    assert_string_equal(c.piece[1].layer, "own");
    stk_critical_free(&c);
    stk_trace_data_free(&data);
}

/* Slices that no program writes: each path is whole all the same, and ends. */
static void nonsense(void **state)
{
    (void)state;
    static const char *const categories[] = {"input", "data", "cpu_op", "cuda_runtime", "kernel", "checkpoint"};
    static const char *const names[] = {"rows", "all_reduce", "x"};
    uint32_t draw = 1;
    for (int round = 0; round < 300; round++) {
        stk_text t = {0};
        stk_trace_data data;
        add(&t, LOOP, "user_annotation", "ProfilerStep#1", 100, 1000, "");
        for (int i = 0; i < 30; i++) {
            uint32_t d[5];
            for (int k = 0; k < 5; k++)
                d[k] = (draw = draw * 1664525 + 1013904223) >> 10;
            int begin = (int)(d[0] % 1100);
            add(&t, LOOP + (int)(d[1] % 3), categories[d[2] % 6], names[d[3] % 3], begin, begin + (int)(d[4] % 400),
                "");
        }
        stk_text_add(
            &t, ",{\"ph\":\"X\",\"ts\":1e300,\"dur\":-1},{\"ph\":\"X\"},7,[],{\"ph\":\"M\",\"name\":\"thread_name\"}");
        make(&t, &data);
        stk_critical c;
        stk_beside beside[STK_MOST_BESIDE];
        assert_int_equal(stk_critical_find(&data, 0, &c), STK_OK);
        check_whole(&data, 0, &c);
        int n = stk_critical_beside(&data, 0, &c, beside);
        for (int i = 0; i < n; i++)
            assert_true(beside[i].busy_ns > 0 && beside[i].busy_ns <= 3 * 900000);
        stk_critical_free(&c);
        stk_trace_data_free(&data);
    }
}

static void no_trace_at_all(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "[]", "{\"traceEvents\": 3}", "{\"traceEvents\": [{}, null, \"x\"]}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_error_t error;
        stk_trace_data data;
        assert_int_equal(stk_trace_data_make(json_loads(texts[i], 0, &error), &data), STK_OK);
        assert_int_equal(data.n_steps, 0);
        stk_trace_data_free(&data);
    }
    stk_trace_data data;
    assert_int_equal(stk_trace_data_read("/none/trace.json", &data), STK_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_alone),   cmocka_unit_test(a_worker_decides), cmocka_unit_test(workers_in_turns),
        cmocka_unit_test(rows_of_no_time),  cmocka_unit_test(next_to_the_path), cmocka_unit_test(a_save_waits),
        cmocka_unit_test(ranks_in_threads), cmocka_unit_test(nonsense),         cmocka_unit_test(no_trace_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
