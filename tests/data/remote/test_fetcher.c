/* Threads that fetch in the background: every job is done or forgotten, an owner that has left is never called again,
 * and no thread stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <time.h>

#include "base/thread.h"
#include "data/remote/fetcher.h"

typedef struct owner {
    _Atomic int64_t n_done, sum;
    _Atomic bool has_left, was_called_late;
    int pause_us;
} owner;

static void work(void *user, uint64_t what)
{
    owner *o = user;
    struct timespec t = {.tv_nsec = 1000L * o->pause_us};
    nanosleep(&t, NULL);
    if (o->has_left) o->was_called_late = true;
    o->n_done++;
    o->sum += (int64_t)what;
    stk_fetcher_note_latency(1e-6 * o->pause_us);
}

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A thread that was joined is on the system's list a moment longer. */
static void falls_to(int n_threads)
{
    for (int i = 0; i < 1000 && count_threads() > n_threads; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(count_threads(), n_threads);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Sanitizers add a thread of their own next to the first one. */
static int start_one(void **state)
{
    (void)state;
    stk_thread thread = {0};
    if (stk_thread_start(&thread, "first", false, nothing, NULL) != STK_OK) return -1;
    stk_thread_join(&thread);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return 0;
}

static void all_are_done(void **state)
{
    (void)state;
    owner o = {.pause_us = 100};
    int before = count_threads();
    int64_t n_added = 0, sum = 0;
    assert_int_equal(stk_fetcher_enter(), STK_OK);
    for (int64_t i = 0; n_added < 500; i++) {
        if (stk_fetcher_add(work, &o, (uint64_t)i)) {
            n_added++;
            sum += i;
        }
        stk_fetcher_note_wait();
    }
    while (o.n_done < n_added)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    assert_int_equal(o.sum, sum);
    int during = count_threads();
    stk_fetcher_leave(&o);
    assert_in_range(during, before + 1, before + 32);
    falls_to(before);
}

static void has_enough(void **state)
{
    (void)state;
    owner o = {.pause_us = 20000};
    int n = 0;
    assert_int_equal(stk_fetcher_enter(), STK_OK);
    while (stk_fetcher_add(work, &o, 0))
        assert_true(n++ < 1000);
    assert_true(n >= 4);
    stk_fetcher_leave(&o);
}

/* Owners come and go at once, while their jobs are queued and under way. */
static void one_owner(void *arg)
{
    (void)arg;
    for (int round = 0; round < 40; round++) {
        owner o = {.pause_us = 50};
        if (stk_fetcher_enter() != STK_OK) return;
        for (int i = 0; i < 20 + round; i++)
            (void)stk_fetcher_add(work, &o, 1);
        stk_fetcher_leave(&o);
        o.has_left = true;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (o.was_called_late) *(_Atomic int *)arg = 1;
    }
}

static void owners_come_and_go(void **state)
{
    (void)state;
    _Atomic int bad = 0;
    stk_thread thread[4] = {0};
    int before = count_threads();
    for (int i = 0; i < 4; i++)
        assert_int_equal(stk_thread_start(&thread[i], "owner", false, one_owner, (void *)&bad), STK_OK);
    for (int i = 0; i < 4; i++)
        stk_thread_join(&thread[i]);
    assert_int_equal(bad, 0);
    falls_to(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_done), cmocka_unit_test(has_enough),
                                       cmocka_unit_test(owners_come_and_go)};
    return cmocka_run_group_tests(tests, start_one, NULL);
}
