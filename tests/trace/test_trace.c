/* Rings of threads: nothing while off, everything while on, the newest when there is too much; threads at once. */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"

enum { N_THREADS = 4, N_EACH = 1000, RING = 1 << 16 };

static void off_records_nothing(void **state)
{
    (void)state;
    stk_trace_track track;
    assert_int_equal(stk_trace_begin(), 0);
    stk_trace_end(0, STK_TRACE_HOST, "x", 1);
    stk_trace_count("x", 1);
    assert_false(stk_trace_get_track(0, &track));
}

static void record(void *arg)
{
    for (int64_t i = 0; i < N_EACH; i++) {
        int64_t begin = stk_trace_begin();
        stk_trace_end(begin, STK_TRACE_DATA, arg, i);
    }
}

static void each_thread_has_a_ring(void **state)
{
    (void)state;
    static char name[N_THREADS][8] = {"a", "b", "c", "d"};
    stk_thread thread[N_THREADS] = {{0}};
    stk_trace_track track;
    for (int round = 0; round < 2; round++) {
        stk_trace_start();
        for (int i = 0; i < N_THREADS; i++)
            assert_int_equal(stk_thread_start(&thread[i], name[i], false, record, name[i]), STK_OK);
        for (int i = 0; i < N_THREADS; i++)
            stk_thread_join(&thread[i]);
        stk_trace_stop();
        int n = 0;
        for (; stk_trace_get_track(n, &track); n++) {
            assert_int_equal(track.n, N_EACH);
            assert_int_equal(track.n_lost, 0);
            for (int64_t k = 0; k < track.n; k++) {
                stk_trace_event event = stk_trace_get_event(n, k);
                assert_string_equal(event.name, track.thread);
                assert_int_equal(event.value, k);
                assert_true(event.end_ns >= event.begin_ns);
            }
        }
        assert_int_equal(n, N_THREADS);
    }
}

static void a_full_ring_keeps_the_newest(void **state)
{
    (void)state;
    stk_trace_track track;
    stk_trace_start();
    for (int64_t i = 0; i < RING + 10; i++)
        stk_trace_count("n", i);
    stk_trace_stop();
    assert_true(stk_trace_get_track(0, &track));
    assert_int_equal(track.n, RING - 1);
    assert_int_equal(track.n_lost, 11);
    assert_int_equal(stk_trace_get_event(0, 0).value, 11);
    assert_int_equal(stk_trace_get_event(0, track.n - 1).value, RING + 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_records_nothing),
        cmocka_unit_test(each_thread_has_a_ring),
        cmocka_unit_test(a_full_ring_keeps_the_newest),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
