/* Beats that are sent, and what is made of them; processes that are stopped and gone; what is not of this job. */
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

#include "elastic/lookout.h"
#include "elastic/table.h"

enum { PATIENCE_MS = 20000, LOOK_MS = 20 };

static stk_beat_packet packet_of(const stk_beat_table *table, int rank, int64_t pid, int64_t n_beats)
{
    stk_beat_packet p = {.head = {{'S', 'T', 'K', 'B'}, sizeof(p), table->token}};
    p.state = (stk_beat_state){.rank = rank, .n_ranks = table->n_ranks, .pid = pid, .n_beats = n_beats};
    snprintf(p.state.host, sizeof(p.state.host), "%s", table->host);
    return p;
}

static void test_what_is_not_of_this_job(void **state)
{
    stk_beat_table table;
    (void)state;
    assert_int_equal(stk_beat_table_open(false, 2, &table), STK_OK);
    stk_beat_packet good = packet_of(&table, 1, getpid(), 5), bad;
    assert_true(stk_beat_table_take(&table, &good, sizeof(good), 1));
    assert_false(stk_beat_table_take(&table, &good, sizeof(good), 2)); /* the same once more */
    good.state.n_beats = 4;
    assert_false(stk_beat_table_take(&table, &good, sizeof(good), 2)); /* overtaken */
    good.state.n_beats = 6;
    assert_false(stk_beat_table_take(&table, &good, sizeof(good) - 1, 2));
#define REFUSES(what)                                                                                                  \
    bad = good;                                                                                                        \
    bad.what;                                                                                                          \
    assert_false(stk_beat_table_take(&table, &bad, sizeof(bad), 2))
    REFUSES(head.token++);
    REFUSES(head.mark[0] = 'X');
    REFUSES(head.bytes--);
    REFUSES(state.rank = 2);
    REFUSES(state.rank = -1);
    REFUSES(state.n_ranks = 3);
    REFUSES(state.pid = 0);
    REFUSES(state.pid++);
    assert_true(stk_beat_table_take(&table, &good, sizeof(good), 2));
    assert_int_equal(stk_beat_table_restart(&table, 2), STK_OK);
    assert_false(stk_beat_table_take(&table, &good, sizeof(good), 3)); /* of an earlier life */
    stk_beat_table_close(&table);
}

static void test_texts_end_and_are_printable(void **state)
{
    stk_beat_table table;
    (void)state;
    assert_int_equal(stk_beat_table_open(false, 1, &table), STK_OK);
    stk_beat_packet p = packet_of(&table, 0, getpid(), 1);
    memset(p.state.log, 'x', sizeof(p.state.log));
    memset(p.state.folder, 'y', sizeof(p.state.folder));
    memcpy(p.state.call, "a\033b", 4);
    assert_true(stk_beat_table_take(&table, &p, sizeof(p), 1));
    assert_int_equal(strlen(table.rank[0].state.log), STK_BEAT_LOG - 1);
    assert_int_equal(strlen(table.rank[0].state.folder), STK_BEAT_FOLDER - 1);
    assert_string_equal(table.rank[0].state.call, "a?b");
    stk_beat_table_close(&table);
}

/* Beats until it is killed. */
static int beat_on(const char *address, int rank)
{
    stk_beat *beat;
    if (stk_beat_open(address, rank, 2, &beat) != STK_OK) return 1;
    stk_beat_phase(beat, STK_PHASE_step);
    for (int64_t step = 1;; step++) {
        stk_beat_step(beat, step);
        usleep(1000);
    }
}

/* A child that does: this program anew, for a child of a process with threads may do little else than that. */
static pid_t start_child(const char *address, int rank)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", rank);
    pid_t pid = fork();
    if (pid != 0) return pid;
    execl("/proc/self/exe", "test_table", address, text, (char *)NULL);
    _exit(1);
}

static bool update_until(stk_beat_table *table, bool (*is_so)(const stk_rank_seen *r))
{
    for (int i = 0; i < PATIENCE_MS / LOOK_MS && !is_so(&table->rank[1]); i++)
        stk_beat_table_update(table, LOOK_MS);
    return is_so(&table->rank[1]);
}

static bool is_known(const stk_rank_seen *r)
{
    return r->begun != 0 && r->state.step > 0;
}
static bool is_stopped(const stk_rank_seen *r)
{
    return r->is_stopped;
}
static bool runs(const stk_rank_seen *r)
{
    return !r->is_stopped;
}
static bool was_held(const stk_rank_seen *r)
{
    return r->state.held_ms > 200;
}
static bool is_gone(const stk_rank_seen *r)
{
    return r->is_gone;
}

static void test_a_process_that_is_stopped_goes_on_and_is_killed(void **state)
{
    stk_beat_table table;
    char address[STK_BEAT_ADDRESS];
    (void)state;
    assert_int_equal(stk_beat_table_open(false, 2, &table), STK_OK);
    stk_beat_table_address(&table, NULL, address);
    pid_t pid = start_child(address, 1);
    assert_true(pid > 0);
    assert_true(update_until(&table, is_known));
    assert_int_equal(table.rank[1].state.pid, pid);
    assert_int_equal(table.rank[1].state.phase, STK_PHASE_step);
    assert_true(table.rank[1].is_here);
    assert_int_equal(table.rank[0].heard_ns, 0);
    kill(pid, SIGSTOP);
    assert_true(update_until(&table, is_stopped));
    usleep(400000);
    kill(pid, SIGCONT);
    assert_true(update_until(&table, runs));
    assert_true(update_until(&table, was_held));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(update_until(&table, is_gone));
    stk_beat_table_close(&table);
}

static void test_a_process_that_this_one_does_not_see_is_not_gone(void **state)
{
    stk_beat_table table;
    (void)state;
    assert_int_equal(stk_beat_table_open(false, 1, &table), STK_OK);
    stk_beat_packet p = packet_of(&table, 0, 1 << 30, 1); /* as in another container of this host's name */
    assert_true(stk_beat_table_take(&table, &p, sizeof(p), 1));
    stk_beat_table_update(&table, 0);
    stk_beat_table_update(&table, 0);
    assert_false(table.rank[0].is_gone);
    assert_false(table.rank[0].is_here);
    stk_beat_table_close(&table);
}

static void test_marks(void **state)
{
    stk_beat_table table;
    stk_beat *beat;
    char address[STK_BEAT_ADDRESS], two[2 * STK_BEAT_ADDRESS + 40];
    (void)state;
    assert_int_equal(stk_beat_table_open(false, 1, &table), STK_OK);
    stk_beat_table_address(&table, NULL, address);
    assert_int_equal(stk_beat_open("here", 0, 1, &beat), STK_INVALID);
    /* One of two that can be sent to is enough. */
    snprintf(two, sizeof(two), "nonsense,%s", address);
    assert_int_equal(stk_beat_open(two, 0, 1, &beat), STK_OK);
    stk_beat_tell_run(beat, "/run", "cpu", 24);
    stk_beat_tell_start(beat, 7, true);
    stk_beat_enter(beat, "all_reduce");
    usleep(30000);
    for (int i = 0; i < 100; i++)
        stk_beat_say(beat, "line %d of some length, so that the first ones have to go", i);
    stk_beat_end(beat, STK_IO, "no more disk");
    for (int i = 0; i < PATIENCE_MS / LOOK_MS && table.rank[0].state.phase != STK_PHASE_ended; i++)
        stk_beat_table_update(&table, LOOK_MS);
    const stk_beat_state *s = &table.rank[0].state;
    assert_int_equal(s->phase, STK_PHASE_ended);
    assert_int_equal(s->status, STK_IO);
    assert_int_equal(s->step, 7);
    assert_int_equal(s->resumed_step, 7);
    assert_int_equal(s->from_memory, 1);
    assert_int_equal(s->batch, 24);
    assert_int_equal(s->in_call, 1);
    assert_true(s->call_ms >= 30);
    assert_string_equal(s->folder, "/run");
    assert_non_null(strstr(s->log, "no more disk"));
    assert_null(strstr(s->log, "line 1 of"));
    stk_beat_close(beat);
    stk_beat_table_close(&table);
}

/* --- watching from within --- */

typedef struct heard {
    char text[4][STK_LOOKOUT_TEXT];
    _Atomic int n;
} heard;

static void hear(void *user, const char *text)
{
    heard *h = user;
    if (h->n < 4) snprintf(h->text[h->n], STK_LOOKOUT_TEXT, "%s", text);
    h->n = h->n + 1;
}

/* A rank that is stopped is told by rank 0, or by rank 1 where it is rank 0. */
static void test_the_lookouts_tell_of_a_stopped_rank(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        heard h[2] = {{.n = 0}, {.n = 0}};
        stk_lookout *lookout[2];
        char own[2][STK_BEAT_ADDRESS], all[2 * STK_BEAT_ADDRESS + 2], text[STK_LOOKOUT_TEXT], want[40];
        pid_t pid[2];
        int rank;
        for (int r = 0; r < 2; r++) {
            assert_int_equal(stk_lookout_open(false, r, 2, hear, &h[r], &lookout[r]), STK_OK);
            stk_lookout_address(lookout[r], own[r]);
        }
        snprintf(all, sizeof(all), "%s,%s", own[0], own[1]);
        for (int r = 0; r < 2; r++)
            pid[r] = start_child(all, r);
        usleep(500000);
        kill(pid[stopped], SIGSTOP);
        for (int i = 0; i < PATIENCE_MS / LOOK_MS && h[!stopped].n == 0; i++)
            usleep(LOOK_MS * 1000);
        assert_int_equal(h[!stopped].n, 1);
        assert_int_equal(h[stopped].n, 0);
        snprintf(want, sizeof(want), "rank %d on", stopped);
        assert_non_null(strstr(h[!stopped].text[0], want));
        assert_non_null(strstr(h[!stopped].text[0], "is stopped"));
        stk_lookout_ask(lookout[!stopped], text, &rank);
        assert_int_equal(rank, stopped);
        assert_non_null(strstr(text, "is stopped"));
        kill(pid[stopped], SIGCONT);
        for (int i = 0; i < PATIENCE_MS / LOOK_MS && h[!stopped].n < 2; i++)
            usleep(LOOK_MS * 1000);
        snprintf(want, sizeof(want), "rank %d goes on", stopped);
        assert_string_equal(h[!stopped].text[1], want);
        for (int r = 0; r < 2; r++) {
            kill(pid[r], SIGKILL);
            waitpid(pid[r], NULL, 0);
            stk_lookout_close(lookout[r]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) return beat_on(argv[1], atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_of_this_job),
        cmocka_unit_test(test_texts_end_and_are_printable),
        cmocka_unit_test(test_a_process_that_is_stopped_goes_on_and_is_killed),
        cmocka_unit_test(test_a_process_that_this_one_does_not_see_is_not_gone),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_the_lookouts_tell_of_a_stopped_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
