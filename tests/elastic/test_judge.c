/* What is found wrong with ranks by what they tell: jobs that are made up, beat by beat, over some seconds of a clock
 * that is made up, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "elastic/judge.h"

enum { MOST = 4, EVERY_MS = 100, STEP_MS = 50, BEGIN_MS = 1000 };
static const int64_t MS = 1000000;

typedef struct job {
    stk_beat_table table;
    stk_rank_seen rank[MOST];
    stk_beat_state state[MOST];
    int64_t now_ms;
    stk_judging judge;
} job;

static void open_job(job *j, int n)
{
    memset(j, 0, sizeof(*j));
    j->table = (stk_beat_table){.n_ranks = n, .token = 7, .rank = j->rank, .begun_ns = BEGIN_MS * MS, .host = "here"};
    j->now_ms = BEGIN_MS;
    j->judge.limits = stk_judge_limits_default();
    for (int r = 0; r < n; r++) {
        j->state[r] = (stk_beat_state){.rank = r, .n_ranks = n, .pid = 1 << 30, .phase = STK_PHASE_step};
        snprintf(j->state[r].host, sizeof(j->state[r].host), "there");
        snprintf(j->state[r].call, sizeof(j->state[r].call), "all_reduce");
    }
}

static void beat(job *j, int r)
{
    stk_beat_packet packet = {.head = {{'S', 'T', 'K', 'B'}, sizeof(packet), 7}};
    j->state[r].n_beats++;
    packet.state = j->state[r];
    assert_true(stk_beat_table_take(&j->table, &packet, sizeof(packet), j->now_ms * MS));
}

static stk_finding find(job *j)
{
    stk_finding found;
    if (!stk_judge_look(&j->judge, &j->table, j->now_ms * MS, &found)) return (stk_finding){.kind = STK_N_FAULTS};
    return found;
}

/* For that long; wait[r]: the share of a rank's time that goes by in collectives, held[r]: in which it was held up. */
static stk_finding train(job *j, int ms, const double *wait, const double *held, unsigned silent)
{
    stk_finding found = {.kind = STK_FAULT_none};
    for (int t = 0; t < ms; t += EVERY_MS) {
        j->now_ms += EVERY_MS;
        for (int r = 0; r < j->table.n_ranks; r++) {
            stk_beat_state *s = &j->state[r];
            s->step += EVERY_MS / STEP_MS;
            s->n_calls += EVERY_MS / STEP_MS;
            s->wait_ms += wait ? (int64_t)(wait[r] * EVERY_MS) : 10;
            s->held_ms += held ? (int64_t)(held[r] * EVERY_MS) : 0;
            if (!(silent & 1u << r)) beat(j, r);
        }
        stk_finding now = find(j);
        if (now.kind != STK_FAULT_none) found = now;
    }
    return found;
}

static void test_nothing_is_found_where_nothing_is_wrong(void **state)
{
    static const double wait[] = {0.3, 0.1, 0.4};
    job j;
    (void)state;
    open_job(&j, 3);
    assert_int_equal(train(&j, 30000, wait, NULL, 0).kind, STK_FAULT_none);
}

static void test_a_silent_rank(void **state)
{
    job j;
    (void)state;
    open_job(&j, 3);
    train(&j, 3000, NULL, NULL, 0);
    stk_finding found = train(&j, 2300, NULL, NULL, 2);
    assert_int_equal(found.kind, STK_FAULT_none);
    found = train(&j, 400, NULL, NULL, 2);
    assert_int_equal(found.kind, STK_FAULT_silent);
    assert_int_equal(found.rank, 1);
    assert_false(found.is_certain);
    /* The others wait for it in a collective that it has not come to. */
    for (int t = 0; t < 2000; t += EVERY_MS) {
        j.now_ms += EVERY_MS;
        for (int r = 0; r < 3; r += 2) {
            j.state[r].n_calls = j.state[1].n_calls + 1;
            j.state[r].in_call = 1;
            j.state[r].call_ms = t;
            beat(&j, r);
        }
        found = find(&j);
    }
    assert_int_equal(found.kind, STK_FAULT_silent);
    assert_true(found.is_certain);
    beat(&j, 1);
    assert_int_equal(find(&j).kind, STK_FAULT_none);
}

/* Ranks but `late` wait in the next collective, that long. */
static stk_finding wait_for(job *j, int late, int ms)
{
    stk_finding found = {.kind = STK_FAULT_none};
    for (int t = 0; t < ms; t += EVERY_MS) {
        j->now_ms += EVERY_MS;
        for (int r = 0; r < j->table.n_ranks; r++) {
            stk_beat_state *s = &j->state[r];
            if (r != late && !s->in_call) s->n_calls++;
            s->in_call = r != late;
            s->call_ms = r != late ? t + EVERY_MS : 0;
            beat(j, r);
        }
        found = find(j);
    }
    return found;
}

static void test_a_stuck_rank_and_one_that_may_take_long(void **state)
{
    job j;
    (void)state;
    open_job(&j, 3);
    train(&j, 1000, NULL, NULL, 0);
    assert_int_equal(wait_for(&j, 2, 7500).kind, STK_FAULT_none);
    stk_finding found = wait_for(&j, 2, 8500);
    assert_int_equal(found.kind, STK_FAULT_stuck);
    assert_int_equal(found.rank, 2);
    /* Before the first step, in an evaluation or while it saves it has a minute. */
    for (int phase = 0; phase < STK_PHASE_ended; phase++) {
        open_job(&j, 2);
        train(&j, 1000, NULL, NULL, 0);
        j.state[1].phase = phase;
        bool is_patient = phase != STK_PHASE_data && phase != STK_PHASE_step;
        assert_int_equal(wait_for(&j, 1, 20000).kind, is_patient ? STK_FAULT_none : STK_FAULT_stuck);
        assert_int_equal(wait_for(&j, 1, 61000).kind, STK_FAULT_stuck);
    }
}

static void test_a_rank_that_waits_itself_is_not_the_reason(void **state)
{
    stk_finding found = {.kind = STK_FAULT_none};
    job j;
    (void)state;
    open_job(&j, 3);
    train(&j, 1000, NULL, NULL, 0);
    /* Rank 2 waits in an earlier collective than rank 0, for rank 1, which is not there. */
    for (int t = 0; t < 9000; t += EVERY_MS) {
        j.now_ms += EVERY_MS;
        j.state[0].n_calls = 103;
        j.state[1].n_calls = 100;
        j.state[2].n_calls = 101;
        for (int r = 0; r < 3; r++) {
            j.state[r].in_call = r != 1;
            j.state[r].call_ms = r != 1 ? t : 0;
            beat(&j, r);
        }
        found = find(&j);
    }
    assert_int_equal(found.kind, STK_FAULT_stuck);
    assert_int_equal(found.rank, 1);
    /* All wait. */
    j.state[1].in_call = 1;
    for (int r = 0; r < 3; r++) {
        j.state[r].call_ms = 8100;
        beat(&j, r);
    }
    assert_int_equal(find(&j).kind, STK_FAULT_stuck); /* rank 1, in the earliest */
    for (int r = 0; r < 3; r++) {
        j.state[r].n_calls = 104;
        beat(&j, r);
    }
    assert_int_equal(find(&j).kind, STK_FAULT_together);
    /* In the same one, where each has given another number of parts: rank 2 fewer than all others. */
    for (int r = 0; r < 3; r++) {
        j.state[r].n_given = 50 - (r == 2);
        beat(&j, r);
    }
    found = find(&j);
    assert_int_equal(found.kind, STK_FAULT_stuck);
    assert_int_equal(found.rank, 2);
    j.state[0].n_given = 49;
    beat(&j, 0);
    assert_int_equal(find(&j).kind, STK_FAULT_together);
}

static void test_a_slow_rank_by_the_waits_of_the_others(void **state)
{
    static const double wait[] = {0.7, 0.05, 0.6}, even[] = {0.4, 0.45, 0.5};
    job j;
    (void)state;
    open_job(&j, 3);
    stk_finding found = train(&j, 9000, wait, NULL, 0);
    assert_int_equal(found.kind, STK_FAULT_slow);
    assert_int_equal(found.rank, 1);
    assert_false(found.is_certain);
    train(&j, 20000, even, NULL, 0);
    assert_int_equal(find(&j).kind, STK_FAULT_none);
}

static void test_a_rank_that_is_stopped_again_and_again(void **state)
{
    /* By its own count it waits as well: it is stopped in the collective. */
    static const double wait[] = {0.6, 0.5, 0.6}, held[] = {0.01, 0.6, 0.02}, all_held[] = {0.5, 0.6, 0.5};
    static const double short_wait[] = {0.2, 0.1, 0.2};
    job j;
    (void)state;
    open_job(&j, 3);
    assert_int_equal(train(&j, 10000, wait, NULL, 0).kind, STK_FAULT_none);
    stk_finding found = train(&j, 10000, wait, held, 0);
    assert_int_equal(found.kind, STK_FAULT_slow);
    assert_int_equal(found.rank, 1);
    assert_true(found.is_certain);
    /* More ranks than cores: all are held up. And one that is, which nobody waits for. */
    open_job(&j, 3);
    assert_int_equal(train(&j, 20000, wait, all_held, 0).kind, STK_FAULT_none);
    open_job(&j, 3);
    assert_int_equal(train(&j, 20000, short_wait, held, 0).kind, STK_FAULT_none);
}

static void test_a_rank_that_saves_is_not_slow(void **state)
{
    static const double wait[] = {0.1, 0.7, 0.7};
    job j;
    (void)state;
    open_job(&j, 3);
    for (int t = 0; t < 20000; t += EVERY_MS) { /* Half of its time the first one saves. */
        j.state[0].aside_ms += 50;
        stk_finding found = train(&j, EVERY_MS, wait, NULL, 0);
        assert_int_equal(found.kind, STK_FAULT_none);
    }
}

static void test_of_a_slow_rank_each_word_stands_for_a_while(void **state)
{
    static const double wait[] = {0.7, 0.05}, even[] = {0.4, 0.45};
    job j;
    (void)state;
    open_job(&j, 2);
    train(&j, 9000, wait, NULL, 0);
    int n_changes = 0;
    stk_fault_kind before = find(&j).kind;
    for (int i = 0; i < 60; i++) { /* About the limit, now above and now below it. */
        stk_fault_kind now = train(&j, 500, i % 8 < 4 ? wait : even, NULL, 0).kind;
        n_changes += now != before;
        before = now;
    }
    assert_int_equal(n_changes, 0);
}

static void test_who_was_gone_or_failed_first(void **state)
{
    job j;
    (void)state;
    open_job(&j, 3);
    train(&j, 1000, NULL, NULL, 0);
    j.rank[1].is_gone = j.rank[2].is_gone = true;
    j.now_ms += EVERY_MS;
    beat(&j, 1);
    stk_finding found = find(&j);
    assert_int_equal(found.kind, STK_FAULT_gone);
    assert_int_equal(found.rank, 2); /* heard longest ago */
    open_job(&j, 3);
    train(&j, 1000, NULL, NULL, 0);
    for (int r = 0; r < 3; r++) {
        j.state[r].phase = STK_PHASE_ended;
        j.state[r].status = r == 1 ? STK_IO : r == 2 ? STK_LOST : STK_OK;
        beat(&j, r);
    }
    found = find(&j);
    assert_int_equal(found.kind, STK_FAULT_failed);
    assert_int_equal(found.rank, 1);
}

static void test_a_rank_that_was_never_heard(void **state)
{
    job j;
    (void)state;
    for (int only_heard = 0; only_heard < 2; only_heard++) {
        open_job(&j, 2);
        j.judge.limits.only_heard = only_heard;
        assert_int_equal(train(&j, 59000, NULL, NULL, 2).kind, STK_FAULT_none);
        stk_finding found = train(&j, 2000, NULL, NULL, 2);
        assert_int_equal(found.kind, only_heard ? STK_FAULT_none : STK_FAULT_silent);
        assert_int_equal(found.rank, only_heard ? 0 : 1);
    }
}

static void test_a_judge_that_slept_does_not_judge(void **state)
{
    job j;
    (void)state;
    open_job(&j, 2);
    train(&j, 3000, NULL, NULL, 0);
    j.now_ms += 60000;
    assert_int_equal(find(&j).kind, STK_N_FAULTS);
    j.now_ms += 900;
    assert_int_equal(find(&j).kind, STK_N_FAULTS);
    train(&j, 3000, NULL, NULL, 0);
    assert_int_equal(find(&j).kind, STK_FAULT_none);
}

static void test_words(void **state)
{
    job j;
    (void)state;
    open_job(&j, 3);
    train(&j, 1000, NULL, NULL, 0);
    snprintf(j.state[1].device, sizeof(j.state[1].device), "cpu");
    snprintf(j.state[1].log, sizeof(j.state[1].log), "begins\nepoch 1");
    stk_finding found = wait_for(&j, 1, 8500);
    stk_text text = {0};
    stk_finding_add(&text, &j.table, &found);
    assert_string_equal(stk_text_get(&text),
                        "rank 1 on 'there' (process 1073741824, cpu) does not go on: others wait for it for 8.5 s; it "
                        "was at step 20, and computes after 20 collectives; rank 0 waits in all_reduce number 21 for "
                        "8.5 s; rank 2 waits in all_reduce number 21 for 8.5 s\n"
                        "        rank 1: begins\n        rank 1: epoch 1");
    stk_text_free(&text);
    for (int kind = 0; kind < STK_N_FAULTS; kind++) {
        assert_string_not_equal(stk_fault_name((stk_fault_kind)kind), "?");
        stk_finding_add(&text, &j.table, &(stk_finding){(stk_fault_kind)kind, 0, true, 1000});
        assert_int_equal(stk_text_status(&text), STK_OK);
    }
    stk_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_found_where_nothing_is_wrong),
        cmocka_unit_test(test_a_silent_rank),
        cmocka_unit_test(test_a_stuck_rank_and_one_that_may_take_long),
        cmocka_unit_test(test_a_rank_that_waits_itself_is_not_the_reason),
        cmocka_unit_test(test_a_slow_rank_by_the_waits_of_the_others),
        cmocka_unit_test(test_a_rank_that_is_stopped_again_and_again),
        cmocka_unit_test(test_a_rank_that_saves_is_not_slow),
        cmocka_unit_test(test_of_a_slow_rank_each_word_stands_for_a_while),
        cmocka_unit_test(test_who_was_gone_or_failed_first),
        cmocka_unit_test(test_a_rank_that_was_never_heard),
        cmocka_unit_test(test_a_judge_that_slept_does_not_judge),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
