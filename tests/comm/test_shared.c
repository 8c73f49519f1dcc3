/* Collectives of processes that share memory: values and bits of all kinds and sizes, several ranks a core; a process
 * that is killed, one that does not come, one that comes with another call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "comm/shared.h"

enum { TIMEOUT_MS = 20000, MOST_RANKS = 5 };

static const stk_pace pace; /* of one that is waited for */

static float number(int r, int64_t i)
{
    uint32_t word = stk_philox(7, (uint64_t)r, (uint64_t)i).v[0];
    return (float)(word % 1000) * (word & 1024 ? 1e-4f : 1e3f);
}

static float sum_of(int n, int64_t i)
{
    float x[] = {number(0, i), n > 1 ? number(1, i) : 0, n > 2 ? number(2, i) : 0, n > 3 ? number(3, i) : 0};
    float four = (x[0] + x[1]) + (x[2] + x[3]);
    return n > 4 ? four + number(4, i) : four;
}

/* How many elements are wrong, or the failure. */
static int run_all(stk_shared *s, int rank, int n, int64_t n_elements)
{
    int n_wrong = 0;
    size_t bytes = (size_t)n_elements * sizeof(float) + 4;
    float *src = malloc(bytes * (size_t)n), *dst = malloc(bytes * (size_t)n);
    stk_comm_call call = {.dtype = STK_F32, .n = n_elements, .src = src, .dst = dst};
    for (int64_t i = 0; i < n_elements * n; i++)
        src[i] = number(rank, i);
    call.kind = STK_COLLECTIVE_all_reduce;
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    for (int64_t i = 0; i < n_elements; i++)
        n_wrong += dst[i] != sum_of(n, i);
    call.kind = STK_COLLECTIVE_reduce_scatter;
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    for (int64_t i = 0; i < n_elements; i++)
        n_wrong += dst[i] != sum_of(n, rank * n_elements + i);
    call.kind = STK_COLLECTIVE_all_gather;
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    for (int64_t i = 0; i < n_elements * n; i++)
        n_wrong += dst[i] != number((int)(i / n_elements), i % n_elements);
    call.kind = STK_COLLECTIVE_broadcast;
    call.root = n - 1;
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    for (int64_t i = 0; i < n_elements; i++)
        n_wrong += dst[i] != number(n - 1, i);
    call.kind = STK_COLLECTIVE_barrier;
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    /* Where it lies, and as a mean. */
    call = (stk_comm_call){
        .kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = n_elements, .src = src, .dst = src, .mean = true};
    n_wrong += stk_shared_run(s, &call, TIMEOUT_MS, &pace) != STK_OK;
    for (int64_t i = 0; i < n_elements; i++)
        n_wrong += src[i] != sum_of(n, i) / (float)n;
    free(src);
    free(dst);
    return n_wrong;
}

static int all_sizes(stk_shared *s, int rank, int n)
{
    static const int64_t sizes[] = {1, 0, 0, 0, 2, 7, 1001, 0, 65536, 65537, 300001};
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        n_wrong += run_all(s, rank, n, sizes[i]);
    return n_wrong > 0;
}

/* What ranks but the first do; exit codes. */
typedef int (*act)(stk_shared *s, int rank, int n);

static pid_t stopped; /* the last of them */

static int run_ranks(int n, act others, act first)
{
    char name[STK_SHARED_NAME_BYTES];
    stk_shared *s = NULL;
    pid_t child[MOST_RANKS];
    if (stk_shared_make(n, name, &s) != STK_OK) fail_msg("%s", stk_error_text());
    for (int r = 1; r < n; r++) {
        if ((stopped = child[r] = fork()) != 0) continue;
        stk_shared *own = NULL;
        int code = stk_shared_join(name, r, n, &own) == STK_OK ? others(own, r, n) : 99;
        _exit(code);
    }
    assert_int_equal(stk_shared_join(name, 0, n, &s), STK_OK);
    int bad = first(s, 0, n), code;
    for (int r = 1; r < n; r++) {
        assert_int_equal(waitpid(child[r], &code, 0), child[r]);
        bad |= WIFEXITED(code) && WEXITSTATUS(code) != 0;
    }
    stk_shared_unlink(name);
    stk_shared_close(s);
    return bad;
}

static void values_are_sums_in_a_tree(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        if (run_ranks(n, all_sizes, all_sizes)) fail_msg("%d ranks", n);
}

static int reduce(stk_shared *s, int64_t n, int timeout_ms)
{
    float x[64] = {0};
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = n, .src = x, .dst = x};
    return (int)stk_shared_run(s, &call, timeout_ms, &pace);
}

/* 3 dies in the third call, the others wait for it. */
static int die_or_wait(stk_shared *s, int rank, int n)
{
    (void)n;
    for (int i = 0; i < 3; i++) {
        if (rank == 3 && i == 2) raise(SIGKILL);
        int status = reduce(s, 64, TIMEOUT_MS);
        if (status != STK_OK) return !(status == STK_LOST && strstr(stk_error_text(), "rank 3 (process "));
    }
    return 1;
}

/* A zombie still has its number: whoever started it has to take its leave first. */
static int wait_for_the_dead(stk_shared *s, int rank, int n)
{
    (void)rank;
    (void)n;
    for (int i = 0; i < 2; i++)
        if (reduce(s, 64, TIMEOUT_MS) != STK_OK) return 1;
    siginfo_t info;
    do
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) return 1;
    while (info.si_code != CLD_KILLED);
    waitpid(info.si_pid, NULL, 0);
    if (reduce(s, 64, TIMEOUT_MS) != STK_LOST) return 1;
    bool named = strstr(stk_error_text(), "rank 3 (process ") && strstr(stk_error_text(), "is gone");
    if (!named) print_message("%s\n", stk_error_text());
    return !named;
}

static void a_process_that_is_gone_is_named(void **state)
{
    (void)state;
    char name[STK_SHARED_NAME_BYTES];
    stk_shared *s = NULL;
    pid_t child[4];
    int code, bad = 0;
    assert_int_equal(stk_shared_make(4, name, &s), STK_OK);
    for (int r = 1; r < 4; r++)
        if ((child[r] = fork()) == 0) {
            stk_shared *own = NULL;
            _exit(stk_shared_join(name, r, 4, &own) == STK_OK ? die_or_wait(own, r, 4) : 99);
        }
    assert_int_equal(stk_shared_join(name, 0, 4, &s), STK_OK);
    bad = wait_for_the_dead(s, 0, 4);
    for (int r = 1; r < 3; r++) {
        waitpid(child[r], &code, 0);
        bad |= !WIFEXITED(code) || WEXITSTATUS(code) != 0;
    }
    stk_shared_unlink(name);
    stk_shared_close(s);
    assert_int_equal(bad, 0);
}

static int come_late(stk_shared *s, int rank, int n)
{
    (void)n;
    if (rank == 2) usleep(3000000);
    int status = reduce(s, 64, 1500);
    return !(status == STK_LOST && strstr(stk_error_text(), "2 (process ") && strstr(stk_error_text(), "did not come"));
}

static void a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(3, come_late, come_late), 0);
}

/* Rank 1, which is stopped while it waits. */
static int wait_patiently(stk_shared *s, int rank, int n)
{
    (void)rank;
    (void)n;
    return reduce(s, 64, 1500) != STK_OK;
}

/* Stops all its children for longer than they wait, and comes as soon as they go on. */
static int stop_others(stk_shared *s, int rank, int n)
{
    (void)rank;
    (void)n;
    usleep(200000);
    kill(stopped, SIGSTOP);
    usleep(2000000);
    kill(stopped, SIGCONT);
    usleep(200000);
    return reduce(s, 64, TIMEOUT_MS) != STK_OK;
}

static void time_in_which_it_was_stopped_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, wait_patiently, stop_others), 0);
}

static int come_with_another_call(stk_shared *s, int rank, int n)
{
    (void)n;
    int status = reduce(s, rank == 1 ? 63 : 64, TIMEOUT_MS);
    return !((status == STK_MISMATCH || status == STK_LOST) && strstr(stk_error_text(), "another one"));
}

static void another_call_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_ranks(3, come_with_another_call, come_with_another_call), 0);
}

static int give_up(stk_shared *s, int rank, int n)
{
    (void)n;
    if (rank == 1) {
        stk_shared_abort(s, "no more data");
        return 0;
    }
    return !(reduce(s, 64, TIMEOUT_MS) == STK_LOST && strstr(stk_error_text(), "replica 1 failed: no more data"));
}

static void a_failure_is_told_to_all(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(4, give_up, give_up), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_sums_in_a_tree),
        cmocka_unit_test(a_process_that_is_gone_is_named),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
        cmocka_unit_test(another_call_is_refused),
        cmocka_unit_test(a_failure_is_told_to_all),
        cmocka_unit_test(time_in_which_it_was_stopped_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
