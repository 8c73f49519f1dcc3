/* The device's threads: every part of every call runs once, whatever helpers do meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "device/cpu/threads/parallel.h"

enum { THREADS = 3, MOST = 40 };

typedef struct work {
    _Atomic int runs[MOST];
    _Atomic int wrong;
    int n_parts, n_spins; /* of part 0, which then holds up its thread */
} work;

static void count(const void *task, int i_part, int n_parts)
{
    /* The task is const for kernels; this one is written by its parts. */
    work *w = (work *)(uintptr_t)task;
    if (n_parts != w->n_parts || i_part >= n_parts || stk_cpu_worker() >= THREADS) w->wrong = 1;
    for (volatile int i = 0; i_part == 0 && i < w->n_spins; i++)
        continue;
    w->runs[i_part]++;
}

static void check_calls(int n_calls, int n_spins)
{
    for (int k = 0; k < n_calls; k++) {
        work w = {.n_parts = 1 + k % MOST, .n_spins = k % 7 ? 0 : n_spins};
        stk_cpu_parallel(w.n_parts, count, &w);
        assert_int_equal(w.wrong, 0);
        for (int i = 0; i < MOST; i++)
            assert_int_equal(w.runs[i], i < w.n_parts);
    }
}

static void every_part_runs_once(void **state)
{
    (void)state;
    stk_cpu_pool *pool, *before;
    assert_int_equal(stk_cpu_pool_new(THREADS, NULL, &pool), STK_OK);
    before = stk_cpu_pool_enter(pool);
    check_calls(40000, 2000);
    /* Helpers sleep and are woken, in calls of both kinds. */
    for (int i = 0; i < 40; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        check_calls(1 + i % 5, 0);
    }
    stk_cpu_pool_enter(before);
    stk_cpu_pool_free(pool);
}

static void call_again(const void *task, int i_part, int n_parts)
{
    (void)task, (void)i_part, (void)n_parts;
    check_calls(5, 0);
}

/* A call from within a part has no helpers. */
static void calls_may_be_nested(void **state)
{
    (void)state;
    stk_cpu_pool *pool, *before;
    assert_int_equal(stk_cpu_pool_new(THREADS, NULL, &pool), STK_OK);
    before = stk_cpu_pool_enter(pool);
    for (int i = 0; i < 200; i++)
        stk_cpu_parallel(1 + i % 8, call_again, NULL);
    stk_cpu_pool_enter(before);
    stk_cpu_pool_free(pool);
}

static void one_thread_has_no_pool(void **state)
{
    (void)state;
    stk_cpu_pool *pool;
    assert_int_equal(stk_cpu_pool_new(1, NULL, &pool), STK_OK);
    assert_null(pool);
    check_calls(100, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once),
        cmocka_unit_test(calls_may_be_nested),
        cmocka_unit_test(one_thread_has_no_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
