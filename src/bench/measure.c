#include "bench/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "run/energy.h"
#include "stoker/rng.h"

enum { RECENT = 64 };
/* Load of others is counted in ticks of 10 ms, and told of at least this time. */
static const int64_t WINDOW_NS = 500000000;

/* The state of one measuring. */
typedef struct session {
    stk_bench *bench;
    stk_bench_machine *machine;
    stk_bench_reading recent[RECENT], last;
    int64_t n_readings, begin_ns, measured_ns;
    stk_energy energy;
} session;

const char *stk_bench_end_name(stk_bench_end end)
{
    static const char *const names[] = {
#define X(name, text) #name,
        STK_BENCH_ENDS(X)
#undef X
    };
    return names[end];
}

const char *stk_bench_end_text(stk_bench_end end)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STK_BENCH_ENDS(X)
#undef X
    };
    return texts[end];
}

stk_bench_plan stk_bench_plan_default(void)
{
    return (stk_bench_plan){.precision = 0.01,
                            .most_s = 60,
                            .least_s = 3,
                            .least_rounds = 10,
                            .most_rounds = 1000,
                            .least_warmups = 2,
                            .most_warmups = 10,
                            .seed = 1};
}

static double elapsed_s(const session *s)
{
    return (double)(stk_clock_ns() - s->begin_ns) * 1e-9;
}

static stk_status take_reading(session *s)
{
    STK_RETURN_IF_ERROR(stk_bench_read(s->machine, true, &s->last));
    s->recent[s->n_readings++ % RECENT] = s->last;
    return STK_OK;
}

/* The newest reading from at least WINDOW_NS before the last one, or the oldest that is kept. */
static const stk_bench_reading *window_begin(const session *s)
{
    int64_t i = s->n_readings - 2, oldest = s->n_readings - RECENT;
    if (oldest < 0) oldest = 0;
    while (i > oldest && s->last.at_ns - s->recent[i % RECENT].at_ns < WINDOW_NS)
        i--;
    return &s->recent[(i < 0 ? 0 : i) % RECENT];
}

static stk_status grow(stk_bench_case *c)
{
    if (c->n_runs < c->capacity) return STK_OK;
    int capacity = c->capacity ? 2 * c->capacity : 32;
    stk_bench_run *run = realloc(c->run, (size_t)capacity * sizeof(*run));
    if (!run) return stk_fail_memory((size_t)capacity * sizeof(*run));
    c->run = run;
    c->capacity = capacity;
    return STK_OK;
}

/* A figure that cannot be is an error of whoever measures, and no result. */
static stk_status check_figure(const session *s, const stk_bench_case *c, const stk_bench_run *run)
{
    if (!(run->figure > 0) || !isfinite(run->figure))
        return stk_fail(STK_INVALID, "'%s' gave %g %s, which cannot be", c->name, run->figure, c->unit);
    if (c->peak > 0 && (c->less_is_better ? run->figure < c->peak : run->figure > c->peak))
        return stk_fail(STK_INVALID,
                        "'%s' gave %.6g %s, and no %s than %.6g is possible: the figure, its unit or the peak is wrong",
                        c->name, run->figure, c->unit, c->less_is_better ? "less" : "more", c->peak);
    double most_s = run->wall_s * s->machine->n_cores * 1.02 + 0.05;
    if (run->user_s + run->system_s > most_s)
        return stk_fail(STK_INVALID, "'%s' took %.3g s of processor time in %.3g s on %d cores, which cannot be",
                        c->name, run->user_s + run->system_s, run->wall_s, s->machine->n_cores);
    return STK_OK;
}

static void mark_run(session *s, const stk_bench_reading *before, stk_bench_run *run)
{
    stk_bench_during window;
    stk_bench_between(before, &s->last, s->machine->n_cores, &run->during);
    stk_bench_between(window_begin(s), &s->last, s->machine->n_cores, &window);
    const unsigned by_load = STK_BENCH_MARK_neighbour | STK_BENCH_MARK_steal;
    const stk_bench_during *load = run->during.seconds * 1e9 < (double)WINDOW_NS ? &window : &run->during;
    run->during.neighbour_cores = load->neighbour_cores;
    run->during.steal_share = load->steal_share;
    run->marks = (stk_bench_judge(&run->during) & ~by_load) | (stk_bench_judge(load) & by_load);
}

static stk_status run_case(session *s, stk_bench_case *c, int round)
{
    const stk_bench *bench = s->bench;
    stk_bench_start start = {.argv = c->argv,
                             .pattern = c->is_compiled ? &c->compiled : NULL,
                             .file = c->file,
                             .key = c->key,
                             .number = c->n_runs + 1,
                             .is_stopped = bench->is_stopped,
                             .shows_output = bench->plan.shows_output,
                             .may_fail = bench->plan.may_fail};
    stk_bench_run run = {.number = c->n_runs + 1, .round = round, .is_warmup = round < 0, .at_s = elapsed_s(s)};
    stk_bench_reading before = s->last;
    STK_RETURN_IF_ERROR(grow(c));
    stk_energy_count(&s->energy);
    double joules = s->energy.joules;
    stk_status status = stk_bench_command_run(&start, s->machine, &run);
    if (status != STK_OK && status != STK_INTERRUPTED) s->bench->end = STK_BENCH_END_failed;
    if (status != STK_OK)
        return bench->n_cases > 1 || c->file ? stk_fail_prefix(status, "case '%s': ", c->name) : status;
    stk_energy_count(&s->energy);
    run.joules = s->energy.n ? s->energy.joules - joules : NAN;
    STK_RETURN_IF_ERROR(take_reading(s));
    run.gpu_joules = (s->last.gpu_mj - before.gpu_mj) * 1e-3;
    mark_run(s, &before, &run);
    STK_RETURN_IF_ERROR(check_figure(s, c, &run));
    c->run[c->n_runs++] = run;
    if (bench->progress) bench->progress(bench->user, bench);
    return bench->is_stopped && bench->is_stopped() ? stk_fail(STK_INTERRUPTED, "interrupted") : STK_OK;
}

/* Every case once, in an order of its own. */
static stk_status run_round(session *s, int round)
{
    enum { MOST = 64 };
    int order[MOST], n = s->bench->n_cases;
    stk_rng rng = stk_rng_make(s->bench->plan.seed, 1, (uint64_t)(round + 1000), 0);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)stk_rng_below(&rng, (uint32_t)i + 1), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    for (int i = 0; i < n; i++)
        STK_RETURN_IF_ERROR(run_case(s, &s->bench->cases[order[i]], round));
    return STK_OK;
}

/* Whether the newest run is better than all before it. */
static bool is_record(const stk_bench_case *c)
{
    double newest = c->run[c->n_runs - 1].figure;
    for (int i = 0; i < c->n_runs - 1; i++)
        if (c->less_is_better ? c->run[i].figure <= newest : c->run[i].figure >= newest) return false;
    return true;
}

/* What a suite says of links, by the machine that was read: a little above, as clocks are. */
static void limit_by_link(session *s)
{
    static const double MARGIN = 1.02;
    for (int i = 0; i < s->bench->n_cases; i++) {
        stk_bench_case *c = &s->bench->cases[i];
        if (c->is_by_link && c->peak == 0) c->peak = MARGIN * stk_bench_link_gb_s(s->machine);
    }
}

static stk_status warm_up(session *s)
{
    const stk_bench_plan *plan = &s->bench->plan;
    for (int k = 0; k < plan->most_warmups; k++) {
        bool warms = false;
        for (int i = 0; i < s->bench->n_cases && k > 0; i++)
            warms |= is_record(&s->bench->cases[i]);
        if (k >= plan->least_warmups && !warms) break;
        /* Commands that take minutes cannot be run for nothing often. */
        if (k > 0 && elapsed_s(s) * (k + 1) / k > 0.2 * plan->most_s) break;
        STK_RETURN_IF_ERROR(run_round(s, -1));
    }
    return STK_OK;
}

static bool is_precise(const stk_bench *bench)
{
    for (int i = 0; i < bench->n_cases; i++) {
        const stk_bench_interval *m = &bench->cases[i].summary.median;
        if (!(m->high - m->low <= 2 * bench->plan.precision * m->value)) return false;
    }
    return true;
}

/* In bins of the width that an interval is asked to have. */
static stk_status is_steady(const stk_bench *bench, bool *out)
{
    *out = true;
    for (int i = 0; i < bench->n_cases && *out; i++) {
        const stk_bench_case *c = &bench->cases[i];
        double *x = malloc(((size_t)c->n_runs + 1) * sizeof(*x));
        int n = 0;
        if (!x) return stk_fail_memory(((size_t)c->n_runs + 1) * sizeof(*x));
        for (int k = 0; k < c->n_runs; k++)
            if (c->run[k].is_counted) x[n++] = c->run[k].figure;
        stk_status status = stk_bench_entropy_is_steady(x, n, 2 * bench->plan.precision * c->summary.median.value, out);
        free(x);
        STK_RETURN_IF_ERROR(status);
    }
    return STK_OK;
}

static int count_rounds(const stk_bench *bench)
{
    return bench->n_cases ? bench->cases[0].summary.n : 0;
}

static stk_status run_rounds(session *s)
{
    stk_bench *bench = s->bench;
    const stk_bench_plan *plan = &bench->plan;
    int look_at = plan->least_rounds;
    bool ends = false;
    while (bench->n_rounds < plan->most_rounds) {
        double each_s = bench->n_rounds ? (double)(stk_clock_ns() - s->measured_ns) * 1e-9 / bench->n_rounds : 0;
        if (bench->n_rounds > 0 && elapsed_s(s) + each_s > plan->most_s) {
            bench->end = STK_BENCH_END_time;
            return STK_OK;
        }
        STK_RETURN_IF_ERROR(run_round(s, bench->n_rounds));
        bench->n_rounds++;
        if (bench->n_rounds < look_at) continue;
        STK_RETURN_IF_ERROR(stk_bench_summarise(bench));
        int n = count_rounds(bench);
        if (n < look_at) continue;
        bool is_long = (double)(stk_clock_ns() - s->measured_ns) * 1e-9 >= plan->least_s;
        if (plan->by_entropy && is_long) STK_RETURN_IF_ERROR(is_steady(bench, &ends));
        if (!plan->by_entropy) ends = is_long && is_precise(bench);
        if (ends) {
            bench->end = plan->by_entropy ? STK_BENCH_END_entropy : STK_BENCH_END_precision;
            return STK_OK;
        }
        look_at = plan->by_entropy ? n + 2 + n / 20 : n + 1 + n / 4;
    }
    bench->end = STK_BENCH_END_runs;
    return STK_OK;
}

static stk_status check_bench(stk_bench *bench)
{
    for (int i = 0; i < bench->n_cases; i++) {
        stk_bench_case *c = &bench->cases[i];
        if (!c->pattern) continue;
        STK_RETURN_IF_ERROR(stk_bench_pattern_compile(c->pattern, &c->compiled));
        c->is_compiled = true;
    }
    return STK_OK;
}

stk_status stk_bench_measure(stk_bench *bench, stk_bench_machine *machine)
{
    static session s;
    stk_status status;
    s = (session){.bench = bench, .machine = machine, .begin_ns = stk_clock_ns()};
    bench->end = STK_BENCH_END_stopped;
    STK_TRY(check_bench(bench));
    stk_energy_open(&s.energy, NULL);
    bench->no_energy = s.energy.n ? NULL : s.energy.missing;
    STK_TRY(take_reading(&s));
    bench->before = s.last;
    limit_by_link(&s);
    STK_TRY(warm_up(&s));
    s.measured_ns = stk_clock_ns();
    STK_TRY(run_rounds(&s));
done:
    bench->after = s.last;
    bench->seconds = elapsed_s(&s);
    bench->joules_s = s.energy.n ? s.energy.joules : NAN;
    /* What was measured before a command failed is kept; of an impossible figure nothing is. */
    if (status == STK_OK)
        status = stk_bench_summarise(bench);
    else if (status == STK_INTERRUPTED || bench->end == STK_BENCH_END_failed) {
        char why[1024];
        snprintf(why, sizeof(why), "%s", stk_error_text());
        if (stk_bench_summarise(bench) != STK_OK) bench->n_rounds = 0;
        status = stk_fail(status, "%s", why);
    }
    return status;
}

void stk_bench_free(stk_bench *bench)
{
    for (int i = 0; i < bench->n_cases; i++) {
        stk_bench_case *c = &bench->cases[i];
        if (c->is_compiled) regfree(&c->compiled);
        free(c->run);
        c->run = NULL;
        c->n_runs = c->capacity = 0;
        c->is_compiled = false;
    }
}
