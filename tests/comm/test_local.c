/* Collectives among threads: values, bits, several calls under way, ranks that do not come or come with another call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "comm/comm.h"

enum { N = 1001, MOST_RANKS = 4, N_ROUNDS = 40, TIMEOUT_MS = 20000 };

typedef struct rank {
    stk_comm *comm;
    stk_thread thread;
    int n_wrong; /* cmocka's asserts are for the first thread */
    stk_status status;
    char error[256];
} rank;

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* What rank r brings as element i of a round: sums of them depend on their order. */
static float number(int round, int r, int64_t i)
{
    uint32_t word = stk_philox((uint64_t)round, (uint64_t)r, (uint64_t)i).v[0];
    return (float)(word % 1000) * (word & 1024 ? 1e-4f : 1e3f);
}

static float sum_of(int n_ranks, int round, int64_t i)
{
    float x[4] = {0}; /* of 1, 2 or 4 */
    for (int r = 0; r < n_ranks; r++)
        x[r] = number(round, r, i);
    return (x[0] + x[1]) + (x[2] + x[3]);
}

static void count_wrong(rank *me, bool is_right)
{
    me->n_wrong += !is_right;
}

/* Three calls under way at once, waited for in another order. */
static void one_round(rank *me, int round)
{
    stk_comm *comm = me->comm;
    int n = comm->n_ranks;
    float src[N], sum[N], mean[N], *wide = malloc(sizeof(*wide) * N * MOST_RANKS), part[N];
    float *all = malloc(sizeof(*all) * N * MOST_RANKS);
    int64_t a, b, c;
    for (int i = 0; i < N; i++)
        src[i] = number(round, comm->rank, i);
    for (int i = 0; i < N * n; i++)
        wide[i] = number(round, comm->rank, i);
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = N, .src = src, .dst = sum};
    stk_comm_call half = call, scatter = call, gather = call, spread = call;
    memcpy(mean, src, sizeof(src));
    half.src = half.dst = mean;
    half.mean = true;
    scatter.kind = STK_COLLECTIVE_reduce_scatter;
    scatter.src = wide;
    scatter.dst = part;
    me->status |= stk_comm_start(comm, &call, &a);
    me->status |= stk_comm_start(comm, &half, &b);
    me->status |= stk_comm_start(comm, &scatter, &c);
    me->status |= stk_comm_wait(comm, c, TIMEOUT_MS);
    me->status |= stk_comm_wait(comm, a, TIMEOUT_MS);
    me->status |= stk_comm_wait(comm, b, TIMEOUT_MS);
    for (int i = 0; i < N; i++) {
        count_wrong(me, sum[i] == sum_of(n, round, i));
        count_wrong(me, mean[i] == sum_of(n, round, i) / (float)n);
        count_wrong(me, part[i] == sum_of(n, round, comm->rank * N + i));
    }
    gather.kind = STK_COLLECTIVE_all_gather;
    gather.dst = all;
    spread.kind = STK_COLLECTIVE_broadcast;
    spread.root = round % n;
    spread.dst = sum;
    me->status |= stk_comm_run(comm, &gather, TIMEOUT_MS);
    me->status |= stk_comm_run(comm, &spread, TIMEOUT_MS);
    for (int i = 0; i < N * n; i++)
        count_wrong(me, all[i] == number(round, i / N, i % N));
    for (int i = 0; i < N; i++)
        count_wrong(me, sum[i] == number(round, round % n, i));
    free(wide);
    free(all);
}

static atomic_int n_come;

static void all_rounds(void *p)
{
    rank *me = p;
    for (int round = 0; round < N_ROUNDS; round++) {
        one_round(me, round);
        atomic_fetch_add(&n_come, 1);
        me->status |= stk_comm_run(me->comm, &(stk_comm_call){.kind = STK_COLLECTIVE_barrier}, TIMEOUT_MS);
        count_wrong(me, atomic_load(&n_come) >= (round + 1) * me->comm->n_ranks);
    }
}

static void threads_agree(void **state)
{
    static const int ns[] = {1, 2, 4};
    (void)state;
    for (int k = 0; k < 3; k++) {
        rank ranks[MOST_RANKS] = {0};
        stk_comm *comm[MOST_RANKS];
        expect_ok(stk_comm_open_local(ns[k], comm));
        atomic_store(&n_come, 0);
        for (int r = 0; r < ns[k]; r++) {
            ranks[r].comm = comm[r];
            expect_ok(stk_thread_start(&ranks[r].thread, "rank", false, all_rounds, &ranks[r]));
        }
        for (int r = 0; r < ns[k]; r++)
            stk_thread_join(&ranks[r].thread);
        for (int r = 0; r < ns[k]; r++) {
            assert_int_equal(ranks[r].status, STK_OK);
            assert_int_equal(ranks[r].n_wrong, 0);
            stk_comm_close(comm[r]);
        }
    }
    stk_comm_close(NULL);
}

static void wait_long(void *p)
{
    rank *me = p;
    int x = 1, y;
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_I32, .n = 1, .src = &x, .dst = &y};
    me->status = stk_comm_run(me->comm, &call, TIMEOUT_MS);
    strncpy(me->error, stk_error_text(), sizeof(me->error) - 1);
}

/* The one with the nearer deadline tells the others. */
static void who_does_not_come_is_named(void **state)
{
    (void)state;
    stk_comm *comm[3];
    rank patient = {0};
    int64_t call_number;
    int x = 1, y, begin_ms = (int)(stk_clock_ns() / 1000000);
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_I32, .n = 1, .src = &x, .dst = &y};
    expect_ok(stk_comm_open_local(3, comm));
    patient.comm = comm[1];
    expect_ok(stk_comm_start(comm[0], &call, &call_number));
    expect_ok(stk_thread_start(&patient.thread, "rank", false, wait_long, &patient));
    while (stk_clock_ns() / 1000000 - begin_ms < 50) {
    }
    assert_int_equal(stk_comm_wait(comm[0], call_number, 60), STK_LOST);
    assert_non_null(strstr(stk_error_text(), "all_reduce number 0: rank 2 did not come within 60 ms"));
    stk_thread_join(&patient.thread);
    assert_int_equal(patient.status, STK_LOST);
    assert_non_null(strstr(patient.error, "rank 2"));
    assert_int_equal(stk_comm_start(comm[2], &call, &call_number), STK_LOST);
    for (int r = 0; r < 3; r++)
        stk_comm_close(comm[r]);
}

static void wrong_calls_are_told(void **state)
{
    (void)state;
    stk_comm *comm[2];
    int64_t x[2] = {1, 2}, y[2], n;
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_I64, .n = 2, .src = x, .dst = y},
                  other = call;
    expect_ok(stk_comm_open_local(2, comm));
    other.dtype = STK_F16;
    assert_int_equal(stk_comm_start(comm[0], &other, &n), STK_UNSUPPORTED);
    other = call;
    other.mean = true;
    assert_int_equal(stk_comm_start(comm[0], &other, &n), STK_UNSUPPORTED);
    other = (stk_comm_call){.kind = STK_COLLECTIVE_broadcast, .root = 2};
    assert_int_equal(stk_comm_start(comm[0], &other, &n), STK_INVALID);
    assert_int_equal(stk_comm_wait(comm[0], 0, 1), STK_INVALID);
    for (int i = 0; i < STK_COMM_MOST_CALLS; i++)
        expect_ok(stk_comm_start(comm[0], &call, &n));
    assert_int_equal(stk_comm_start(comm[0], &call, &n), STK_BUSY);
    other = call;
    other.n = 1;
    assert_int_equal(stk_comm_start(comm[1], &other, &n), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "all_reduce of 2 i64 on rank 0 and all_reduce of 1 i64 on rank 1"));
    assert_int_equal(stk_comm_wait(comm[0], 0, TIMEOUT_MS), STK_MISMATCH);
    stk_comm_close(comm[1]);
    stk_comm_close(comm[0]);
    assert_int_equal(stk_comm_open_local(0, comm), STK_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(wrong_calls_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
