/* See elastic/judge.h. */
#include "elastic/judge.h"

#include <string.h>

stk_judge_limits stk_judge_limits_default(void)
{
    return (stk_judge_limits){.silent_ms = 2500, .stuck_ms = 8000, .slow_ms = 7000, .start_ms = 60000};
}

const char *stk_fault_name(stk_fault_kind kind)
{
#define X(name) #name,
    static const char *const names[] = {STK_FAULT_LIST(X)};
#undef X
    return (unsigned)kind < STK_N_FAULTS ? names[kind] : "?";
}

static bool has_ended(const stk_rank_seen *r)
{
    return r->heard_ns && r->state.phase == STK_PHASE_ended;
}

static int64_t silent_ms(const stk_rank_seen *r, int64_t now_ns)
{
    return r->heard_ns ? (now_ns - r->heard_ns) / 1000000 : 0;
}

/* In an earlier collective, or in the same one with fewer parts given. */
static bool is_behind(const stk_beat_state *a, const stk_beat_state *b)
{
    return a->n_calls < b->n_calls || (a->n_calls == b->n_calls && a->n_given < b->n_given);
}

/* How long the others have waited for rank r: the longest of their waits in a collective that r has not come to, or is
 * behind in. */
static int64_t waited_for_ms(const stk_beat_table *table, int r, int64_t now_ns)
{
    const stk_beat_state *own = &table->rank[r].state;
    int64_t most = 0;
    for (int i = 0; i < table->n_ranks; i++) {
        const stk_rank_seen *other = &table->rank[i];
        if (i == r || !other->heard_ns || has_ended(other) || !other->state.in_call) continue;
        int64_t wait = other->state.call_ms + silent_ms(other, now_ns);
        if (is_behind(own, &other->state) && wait > most) most = wait;
    }
    return most;
}

static bool is_first_of(const stk_beat_table *table, int r, int best)
{
    return best < 0 || table->rank[r].heard_ns < table->rank[best].heard_ns;
}

/* Of several the one that was heard longest ago: others may have ended because of it. */
static int find_gone(const stk_beat_table *table)
{
    int found = -1;
    for (int r = 0; r < table->n_ranks; r++)
        if (table->rank[r].is_gone && !has_ended(&table->rank[r]) && is_first_of(table, r, found)) found = r;
    return found;
}

/* STK_LOST is of those that lost another one. */
static int find_failed(const stk_beat_table *table)
{
    for (int r = 0; r < table->n_ranks; r++) {
        int32_t status = table->rank[r].state.status;
        if (has_ended(&table->rank[r]) && status != STK_OK && status != STK_INTERRUPTED && status != STK_LOST) return r;
    }
    return -1;
}

static stk_finding find_silent(const stk_beat_table *table, int64_t now_ns, const stk_judge_limits *limits)
{
    stk_finding found = {.kind = STK_FAULT_none};
    for (int r = 0; r < table->n_ranks; r++) {
        const stk_rank_seen *seen = &table->rank[r];
        int64_t ms = silent_ms(seen, now_ns), since_ms = (now_ns - table->begun_ns) / 1000000;
        if (!seen->heard_ns && since_ms >= limits->start_ms && !limits->only_heard)
            found = (stk_finding){STK_FAULT_silent, r, false, since_ms};
        if (has_ended(seen) || ms < limits->silent_ms || ms <= found.for_ms) continue;
        bool is_waited_for = waited_for_ms(table, r, now_ns) >= limits->silent_ms / 2;
        found = (stk_finding){STK_FAULT_silent, r, is_waited_for, ms};
    }
    return found;
}

static int64_t patience_ms(const stk_rank_seen *r, const stk_judge_limits *limits)
{
    const stk_beat_state *s = &r->state;
    bool is_slow_work = s->phase == STK_PHASE_starting || s->phase == STK_PHASE_evaluation ||
                        s->phase == STK_PHASE_saving || s->step == s->resumed_step;
    return is_slow_work ? limits->start_ms : limits->stuck_ms;
}

/* Where all wait: who is behind all others holds them up, since whatever it waits for they have given. -1: nobody. */
static int find_last(const stk_beat_table *table)
{
    int last = 0;
    for (int r = 1; r < table->n_ranks; r++)
        if (is_behind(&table->rank[r].state, &table->rank[last].state)) last = r;
    for (int r = 0; r < table->n_ranks; r++)
        if (r != last && !is_behind(&table->rank[last].state, &table->rank[r].state)) return -1;
    return last;
}

/* The one that is furthest behind. Where it waits itself, in an earlier call, it is held up as well, and not the
 * reason. */
static stk_finding find_stuck(const stk_beat_table *table, int64_t now_ns, const stk_judge_limits *limits)
{
    stk_finding found = {.kind = STK_FAULT_none};
    int64_t shortest = INT64_MAX;
    bool all_wait = true;
    for (int r = 0; r < table->n_ranks; r++) {
        const stk_rank_seen *seen = &table->rank[r];
        if (!seen->heard_ns || has_ended(seen)) return found;
        const stk_beat_state *s = &seen->state;
        all_wait &= s->in_call == 1;
        if (s->call_ms < shortest) shortest = s->call_ms;
        int64_t ms = waited_for_ms(table, r, now_ns);
        if (s->in_call || ms < patience_ms(seen, limits) || ms <= found.for_ms) continue;
        found = (stk_finding){STK_FAULT_stuck, r, true, ms};
    }
    if (found.kind != STK_FAULT_none || !all_wait || table->n_ranks < 2 || shortest < limits->stuck_ms) return found;
    int last = find_last(table);
    if (last >= 0) return (stk_finding){STK_FAULT_stuck, last, true, shortest};
    return (stk_finding){STK_FAULT_together, 0, true, shortest};
}

/* What a rank did in about the last slow_ms. */
typedef struct window {
    double all, wait, held, aside; /* ms */
    int64_t n_steps;
} window;

/* False: not known yet, or it begins before the first step. */
static bool open_window(const stk_rank_seen *r, const stk_judge_limits *limits, window *out)
{
    if (r->n_samples < 2) return false;
    const stk_beat_sample *last = &r->sample[(r->n_samples - 1) % STK_BEAT_SAMPLES], *first = NULL;
    for (int64_t i = r->n_samples - 2; i >= 0 && i >= r->n_samples - STK_BEAT_SAMPLES; i--) {
        first = &r->sample[i % STK_BEAT_SAMPLES];
        if (last->ns - first->ns >= limits->slow_ms * 1000000) break;
    }
    if (last->ns - first->ns < limits->slow_ms * 1000000) return false;
    *out = (window){(double)(last->ns - first->ns) * 1e-6, (double)(last->wait_ms - first->wait_ms),
                    (double)(last->held_ms - first->held_ms), (double)(last->aside_ms - first->aside_ms),
                    last->step - first->step};
    return first->step > r->state.resumed_step && out->n_steps >= 2;
}

/* The longest that any was aside, as the first rank is when it saves: others wait for that as well, and it is no fault.
 * False: there is nothing to judge. */
static bool find_aside(const stk_beat_table *table, const stk_judge_limits *limits, double *most)
{
    window w;
    *most = 0;
    for (int r = 0; r < table->n_ranks; r++) {
        if (has_ended(&table->rank[r]) || !open_window(&table->rank[r], limits, &w)) return false;
        if (w.aside > *most) *most = w.aside;
        if (w.all - w.aside < (double)limits->slow_ms / 2) return false;
    }
    return table->n_ranks > 1;
}

/* Ranks by a share of their time: who has the extreme, and the next one's. */
typedef struct extreme {
    int rank;
    double share, next;
} extreme;

static void take_extreme(extreme *e, int rank, double share, bool is_most)
{
    if (e->rank < 0 || (is_most ? share > e->share : share < e->share)) {
        e->next = e->share;
        e->share = share;
        e->rank = rank;
    } else if (is_most ? share > e->next : share < e->next) {
        e->next = share;
    }
}

static stk_finding find_slow(const stk_beat_table *table, const stk_judge_limits *limits)
{
    const stk_finding none = {.kind = STK_FAULT_none};
    double aside;
    window w;
    extreme wait = {-1, 2, 2}, held = {-1, 0, 0};
    if (!find_aside(table, limits, &aside)) return none;
    for (int r = 0; r < table->n_ranks; r++) {
        (void)open_window(&table->rank[r], limits, &w);
        double waited = w.wait - (aside - w.aside);
        take_extreme(&wait, r, waited > 0 ? waited / (w.all - aside) : 0, false);
        take_extreme(&held, r, w.held / w.all, true);
    }
    bool is_held = held.share >= 0.2 && held.share >= 2 * held.next;
    /* A rank that is stopped in a collective has waited there, by its own count. */
    double others = held.rank == wait.rank ? wait.next : wait.share;
    if (is_held && others >= 0.3) return (stk_finding){STK_FAULT_slow, held.rank, true, limits->slow_ms};
    if (wait.next < 0.5 || wait.share > 0.5 * wait.next) return none;
    return (stk_finding){STK_FAULT_slow, wait.rank, is_held && held.rank == wait.rank, limits->slow_ms};
}

stk_finding stk_judge_ranks(const stk_beat_table *table, int64_t now_ns, const stk_judge_limits *limits)
{
    int r = find_gone(table);
    if (r >= 0) {
        bool is_waited_for = waited_for_ms(table, r, now_ns) > 0;
        return (stk_finding){STK_FAULT_gone, r, is_waited_for, silent_ms(&table->rank[r], now_ns)};
    }
    if ((r = find_failed(table)) >= 0) return (stk_finding){STK_FAULT_failed, r, true, 0};
    stk_finding found = find_silent(table, now_ns, limits);
    if (found.kind == STK_FAULT_none) found = find_stuck(table, now_ns, limits);
    if (found.kind == STK_FAULT_none) found = find_slow(table, limits);
    return found;
}

/* A process that was not run for longer than GAP_MS hears late of all. */
enum { GAP_MS = 1000, CALM_MS = 3000 };

bool stk_judge_look(stk_judging *judge, const stk_beat_table *table, int64_t now_ns, stk_finding *out)
{
    const int64_t ms = 1000000;
    *out = (stk_finding){.kind = STK_FAULT_none};
    if (judge->looked_ns && now_ns - judge->looked_ns > GAP_MS * ms) judge->calm_ns = now_ns;
    judge->looked_ns = now_ns;
    if (judge->calm_ns && now_ns - judge->calm_ns < CALM_MS * ms) return false;
    *out = stk_judge_ranks(table, now_ns, &judge->limits);
    if (out->kind == STK_FAULT_slow) {
        judge->slow_ns = now_ns;
        judge->slow = out->rank;
    } else if (out->kind == STK_FAULT_none && judge->slow_ns && judge->slow < table->n_ranks &&
               now_ns - judge->slow_ns < judge->limits.slow_ms * ms) {
        *out = (stk_finding){STK_FAULT_slow, judge->slow, false, judge->limits.slow_ms};
    }
    return true;
}

/* --- words --- */

static void add_doing(stk_text *out, const stk_rank_seen *r)
{
    const stk_beat_state *s = &r->state;
    if (!r->heard_ns)
        stk_text_add(out, "was not heard yet");
    else if (s->in_call)
        stk_text_add(out, "waits in %s number %lld for %.1f s", s->call, (long long)s->n_calls,
                     (double)s->call_ms * 1e-3);
    else
        stk_text_add(out, "%s, step %lld", stk_phase_words(s->phase), (long long)s->step);
}

static void add_what(stk_text *out, const stk_rank_seen *r, const stk_finding *f)
{
    double s = (double)f->for_ms * 1e-3;
    switch (f->kind) {
    case STK_FAULT_failed: stk_text_add(out, "failed"); break;
    case STK_FAULT_gone: stk_text_add(out, "is gone: it was killed, or crashed"); break;
    case STK_FAULT_silent:
        stk_text_add(out, r->is_stopped ? "is stopped, and silent for %.1f s" : "is silent for %.1f s", s);
        break;
    case STK_FAULT_stuck: stk_text_add(out, "does not go on: others wait for it for %.1f s", s); break;
    case STK_FAULT_slow:
        stk_text_add(out, f->is_certain
                              ? "is slow: the others wait for it, and it is held up: stopped again and again, "
                                "or without a core to itself"
                              : "is slow: the others wait for it most of the time");
        break;
    default: stk_text_add(out, "waits like all others for %.1f s, and none goes on", s); break;
    }
}

void stk_finding_add(stk_text *out, const stk_beat_table *table, const stk_finding *f)
{
    const stk_rank_seen *r = &table->rank[f->rank];
    const stk_beat_state *s = &r->state;
    if (!r->heard_ns) {
        stk_text_add(out, "rank %d was not heard of for %.0f s", f->rank, (double)f->for_ms * 1e-3);
        return;
    }
    stk_text_add(out, "rank %d on '%s' (process %lld%s%s) ", f->rank, s->host, (long long)s->pid,
                 s->device[0] ? ", " : "", s->device);
    add_what(out, r, f);
    stk_text_add(out, "; it was at step %lld, ", (long long)s->step);
    if (s->in_call)
        stk_text_add(out, "in %s number %lld", s->call, (long long)s->n_calls);
    else
        stk_text_add(out, "and %s after %lld collectives", stk_phase_words(s->phase), (long long)s->n_calls);
    for (int i = 0; i < table->n_ranks && i < 8; i++) {
        if (i == f->rank) continue;
        stk_text_add(out, "; rank %d ", i);
        add_doing(out, &table->rank[i]);
    }
    if (table->n_ranks > 8) stk_text_add(out, "; ...");
    for (const char *line = s->log; *line;) {
        size_t n = strcspn(line, "\n");
        stk_text_add(out, "\n        rank %d: %.*s", f->rank, (int)n, line);
        line += n + (line[n] == '\n');
    }
}
