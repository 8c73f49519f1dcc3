#include "watch/signals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/own.h"
#include "watch/roles.h"

enum { LONGEST_LAG = 512, MOST_SWING = 4096 };

static const struct {
    const char *name, *unit, *text;
} known[] = {
#define X(name, unit, text) {#name, unit, text},
    STK_WATCH_SIGNAL_LIST(X)
#undef X
};

const char *stk_watch_signal_name(stk_watch_signal signal)
{
    return known[signal].name;
}

const char *stk_watch_signal_unit(stk_watch_signal signal)
{
    return known[signal].unit;
}

/* The device of a job that uses no GPU is its cores. */
static void name_cores(char out[STK_WATCH_SENTENCE])
{
    static const struct {
        const char *from, *to;
    } words[] = {{"the device is", "the cores are"}, {"the device's", "the cores'"}};
    for (int i = 0; i < 2; i++) {
        char rest[STK_WATCH_SENTENCE], *at = strstr(out, words[i].from);
        if (!at) continue;
        snprintf(rest, sizeof(rest), "%s", at + strlen(words[i].from));
        snprintf(at, STK_WATCH_SENTENCE - (size_t)(at - out), "%s%s", words[i].to, rest);
    }
}

void stk_watch_signal_tell(const stk_watch_signals *signals, stk_watch_signal signal, char out[STK_WATCH_SENTENCE])
{
    char number[48];
    double value = signals->value[signal];
    const char *unit = known[signal].unit, *text = known[signal].text;
    if (signal == STK_WATCH_idle && signals->idle_by_run)
        text = "by the run's own record %s of all its time is not computing";
    const char *at = strstr(text, "%s");
    if (isnan(value))
        snprintf(number, sizeof(number), "N%s%s", unit[0] && unit[0] != '/' ? " " : "",
                 !strcmp(unit, "/s") ? " a second" : unit);
    else if (!strcmp(unit, "%"))
        snprintf(number, sizeof(number), "%.0f %%", 100 * value);
    else
        snprintf(number, sizeof(number), "%.*f%s%s", fabs(value) >= 10 || value == floor(value) ? 0 : 1, value,
                 unit[0] && unit[0] != '/' ? " " : "", !strcmp(unit, "/s") ? " a second" : unit);
    snprintf(out, STK_WATCH_SENTENCE, "%.*s%s%s", (int)(at - text), text, number, at + 2);
    if (!(signals->value[STK_WATCH_gpus_used] > 0)) name_cores(out);
}

#define FIELD(name) STK_WATCH_FIELD(name)

static double field(const stk_watch_row *row, size_t offset)
{
    return *(const double *)((const char *)row + offset);
}

/* A file is being written from the first burst until the device works again. */
static double fill_writing(const stk_watch_span *s)
{
    double filled = 0, idle = 0;
    bool writing = false;
    for (size_t i = 0; i < s->n; i++) {
        double busy = stk_watch_busy(s, &s->row[i]), rest = 1 - busy;
        if (isnan(rest)) continue;
        if (s->row[i].put_mbs > 5)
            writing = true;
        else if (busy > 0.3)
            writing = false;
        filled += writing ? rest * s->row[i].length_s : 0;
        idle += rest * s->row[i].length_s;
    }
    return idle > 0 ? filled / idle : NAN;
}

static double share_above(const stk_watch_span *s, size_t offset, double limit)
{
    double above = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset);
        if (isnan(x)) continue;
        above += x > limit ? s->row[i].length_s : 0;
        length += s->row[i].length_s;
    }
    return length > 0 ? above / length : NAN;
}

/* --- utilisation that swings --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the 90th and the 10th percentile. */
static double find_swing(const stk_watch_span *s)
{
    size_t most_n = s->n < MOST_SWING ? s->n : MOST_SWING, n = 0;
    double *busy = most_n >= 5 && s->has_gpu ? malloc(most_n * sizeof(*busy)) : NULL;
    if (!busy) return NAN;
    for (size_t i = s->n - most_n; i < s->n; i++)
        if (!isnan(stk_watch_busy(s, &s->row[i]))) busy[n++] = stk_watch_busy(s, &s->row[i]);
    qsort(busy, n, sizeof(*busy), compare);
    double swing = n >= 5 ? busy[n * 9 / 10] - busy[n / 10] : NAN;
    free(busy);
    return swing;
}

static double autocorrelation(const stk_watch_span *s, double average, size_t lag)
{
    double product = 0, square = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = stk_watch_busy(s, &s->row[i]) - average;
        double later = i + lag < s->n ? stk_watch_busy(s, &s->row[i + lag]) - average : NAN;
        square += isnan(x) ? 0 : x * x;
        product += isnan(x) || isnan(later) ? 0 : x * later;
    }
    return square > 0 ? product / square : 0;
}

/* The lag at the first peak of the autocorrelation, in seconds; NaN: no period. */
static double find_period(const stk_watch_span *s)
{
    double average = stk_watch_mean(s, FIELD(gpu_busy)), before = 1, now, after;
    if (s->n < 20 || !s->has_gpu || !(average >= 0)) return NAN;
    now = autocorrelation(s, average, 1);
    for (size_t lag = 2; lag < s->n / 3 && lag < LONGEST_LAG; lag++) {
        after = autocorrelation(s, average, lag);
        if (now > 0.3 && now > before && now >= after)
            return (double)(lag - 1) * (s->row[s->n - 1].at_s - s->row[0].at_s) / (double)(s->n - 1);
        before = now;
        now = after;
    }
    return NAN;
}

/* --- the end of the run: does anything move? --- */

static bool is_still(const stk_watch_span *s, const stk_watch_row *row)
{
    /* Some may wait in a kernel for one that never gets there. */
    bool all_or_none = row->gpu_least > 0.9 || (row->gpu_least < 0.05 && row->cores < 0.1);
    bool spins = s->has_gpu && row->gpu_most > 0.9 && all_or_none && row->power < 0.5 && row->pcie_mbs < 1;
    bool idles = !s->has_gpu || row->gpu_busy < 0.05;
    if (row->asked_mbs > 0.02 || row->put_mbs > 0.02 || row->n_workers > 0) return false;
    /* A loop of short steps that sleeps in between, as one that is paced: small, but it moves. */
    const double *driver = row->role[STK_WATCH_ROLE_DRIVER];
    bool naps = driver[STK_WATCH_STATE_TIMER] > 0.7, runs = driver[STK_WATCH_STATE_USER] > (naps ? 0.002 : 0.01);
    if (runs && !spins) return false;
    return spins || (idles && row->cores < 0.05);
}

/* After Ctrl-C or a plain kill a program tidies up, which may compute for a while on a busy machine. */
static double most_moved(const char *exit_text)
{
    return exit_text && (!strcmp(exit_text, "130") || !strcmp(exit_text, "143")) ? 3 : 0.7;
}

static void find_stuck(const stk_watch_history *history, const stk_watch_span *s, double movable, double *out)
{
    double stuck = 0, locked = 0, spinning = 0, before = 0, moved = 0, moving_s = 0;
    /* What moves at the very end is not counted up to N core-seconds. */
    for (size_t i = history->n; i > 0; i--) {
        const stk_watch_row *row = &history->row[i - 1];
        if (!is_still(s, row)) {
            moved += row->cores * row->length_s;
            moving_s += row->length_s;
            if (!(moved < movable) || (stuck > 1 && moving_s > 1)) break;
            continue;
        }
        moving_s = 0;
        stuck += row->length_s;
        locked += row->locked > 0 ? row->length_s : 0;
        spinning += s->has_gpu && row->gpu_most > 0.9 ? row->length_s : 0;
    }
    for (size_t i = 0; i < history->n; i++)
        before += is_still(s, &history->row[i]) ? 0 : history->row[i].length_s;
    /* A program that never did anything is not stuck. */
    out[STK_WATCH_stuck_s] = before > 0.5 ? stuck : 0;
    out[STK_WATCH_stuck] = before > 0.3 && history->n ? stuck / history->row[history->n - 1].at_s : 0;
    out[STK_WATCH_locked] = stuck > 0 ? locked / stuck : NAN;
    out[STK_WATCH_spinning] = stuck > 0 ? spinning / stuck : NAN;
}

/* Seconds until memory is full, by the last half's growth; NaN where it does not grow. */
static double find_oom(const stk_watch_history *history)
{
    if (history->n < 10) return NAN;
    const stk_watch_row *middle = &history->row[history->n / 2], *end = &history->row[history->n - 1];
    double grown = end->memory_full - middle->memory_full, s = end->at_s - middle->at_s;
    if (!(grown > 0.02) || !(s > 1)) return NAN;
    return (1 - end->memory_full) * s / grown;
}

/* Growth that goes on: after the first third, over which programs load what they need, in each of four parts. */
static void find_growth(const stk_watch_history *history, double *out)
{
    enum { PARTS = 4 };
    size_t n = history->n, first = 0;
    /* At the end it gives back what it has. */
    for (int i = 0; i < 5 && n > 1 && history->row[n - 1].own_mb < 0.7 * history->row[n - 2].own_mb; i++)
        n--;
    double least = INFINITY, end_s = n ? history->row[n - 1].at_s : 0;
    while (first < n && history->row[first].at_s < fmin(60, 0.35 * end_s))
        first++;
    if (n - first < 3 * PARTS) return;
    for (int i = 0; i < PARTS; i++) {
        const stk_watch_row *a = &history->row[first + (n - 1 - first) * (size_t)i / PARTS],
                            *b = &history->row[first + (n - 1 - first) * (size_t)(i + 1) / PARTS];
        least = fmin(least, (b->own_mb - a->own_mb) / (b->at_s - a->at_s));
    }
    const stk_watch_row *a = &history->row[first], *b = &history->row[n - 1];
    double mbs = (b->own_mb - a->own_mb) / (b->at_s - a->at_s);
    out[STK_WATCH_growth_mbs] = least > 0.3 * mbs ? mbs : 0;
    if (out[STK_WATCH_growth_mbs] > 0 && b->free_mb >= 0) out[STK_WATCH_full_in_s] = b->free_mb / mbs;
}

/* The share of stretches of two seconds in which code was added. */
static double find_code_growing(const stk_watch_span *s)
{
    double length = 0, grown = 0, n = 0, n_grown = 0;
    for (size_t i = 0; i < s->n; i++) {
        length += s->row[i].length_s;
        grown += s->row[i].code_kbs > 0;
        if (length < 2) continue;
        n++;
        n_grown += grown > 0;
        length = grown = 0;
    }
    return n >= 2 ? n_grown / n : NAN;
}

/* --- all of them --- */

static void find_gpu(const stk_watch_span *s, double n_gpus, double *out)
{
    out[STK_WATCH_gpus] = n_gpus;
    out[STK_WATCH_gpus_used] = s->has_gpu ? stk_watch_most(s, FIELD(gpus_used)) : 0;
    out[STK_WATCH_gpu_used] = s->has_gpu;
    double n_free = s->has_gpu ? stk_watch_mean(s, FIELD(gpus_free)) : NAN;
    out[STK_WATCH_gpus_idle] = n_free / (n_free + out[STK_WATCH_gpus_used]);
    out[STK_WATCH_unowned_memory] = stk_watch_mean(s, FIELD(unowned_memory));
    out[STK_WATCH_mig] = stk_watch_most(s, FIELD(mig));
    if (!s->has_gpu) return;
    out[STK_WATCH_gpu_busy] = stk_watch_mean(s, FIELD(gpu_busy));
    out[STK_WATCH_swing] = find_swing(s);
    out[STK_WATCH_period_s] = out[STK_WATCH_swing] > 0.3 ? find_period(s) : NAN;
    out[STK_WATCH_power] = stk_watch_mean(s, FIELD(power));
    out[STK_WATCH_power_busy] = fmin(1, out[STK_WATCH_power] / fmax(0.01, out[STK_WATCH_gpu_busy]));
    out[STK_WATCH_sm] = stk_watch_mean(s, FIELD(sm));
    out[STK_WATCH_tensor] = stk_watch_mean(s, FIELD(tensor));
    out[STK_WATCH_clock_low] = 1 - stk_watch_mean_busy(s, FIELD(clock));
    out[STK_WATCH_hot] = stk_watch_mean(s, FIELD(hot));
    out[STK_WATCH_capped] = stk_watch_mean(s, FIELD(capped));
    out[STK_WATCH_gpu_memory] = stk_watch_most(s, FIELD(gpu_memory));
    out[STK_WATCH_own_memory] = stk_watch_most(s, FIELD(own_memory));
    out[STK_WATCH_other_busy] = stk_watch_mean(s, FIELD(other_gpu_busy));
    out[STK_WATCH_other_memory] = stk_watch_mean(s, FIELD(other_memory));
    out[STK_WATCH_busiest] = stk_watch_mean(s, FIELD(gpu_most));
    out[STK_WATCH_imbalance] = out[STK_WATCH_busiest] - stk_watch_mean(s, FIELD(gpu_least));
    out[STK_WATCH_works] = share_above(s, FIELD(gpu_busy), 0.02);
    double used = isnan(out[STK_WATCH_sm]) ? out[STK_WATCH_power] : out[STK_WATCH_sm];
    out[STK_WATCH_unused] = 1 - fmin(1, used);
    out[STK_WATCH_pcie_mbs] = stk_watch_mean(s, FIELD(pcie_mbs));
    out[STK_WATCH_link_low] = 1 - stk_watch_mean_busy(s, FIELD(link));
    out[STK_WATCH_far_node] = stk_watch_mean(s, FIELD(far_node));
    out[STK_WATCH_lagging] = stk_watch_mean(s, FIELD(lagging_rank));
    out[STK_WATCH_late_rank] = stk_watch_most(s, FIELD(late_rank));
}

static void find_cores(const stk_watch_span *s, double *out)
{
    double busy = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (isnan(stk_watch_busy(s, &s->row[i]))) continue;
        busy += stk_watch_busy(s, &s->row[i]) * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    out[STK_WATCH_idle] = length > 0 ? 1 - busy / length : NAN;
    out[STK_WATCH_cores] = stk_watch_mean(s, FIELD(cores));
    out[STK_WATCH_machine_cores] = stk_watch_mean(s, FIELD(machine_cores));
    out[STK_WATCH_quota] = stk_watch_mean(s, FIELD(quota));
    double allowed = stk_watch_mean(s, FIELD(allowed));
    if (isnan(allowed)) allowed = out[STK_WATCH_machine_cores];
    /* What the first thread may use is not all where each is bound to a core of its own (OMP_PROC_BIND). */
    double used = round(stk_watch_mean(s, FIELD(trainer)));
    if (used > allowed) allowed = fmin(used, out[STK_WATCH_machine_cores]);
    out[STK_WATCH_allowed_share] = fmin(1, allowed / out[STK_WATCH_machine_cores]);
    out[STK_WATCH_cores_share] = fmin(1, out[STK_WATCH_cores] / fmin(allowed, out[STK_WATCH_quota]));
    double spins = stk_watch_mean(s, FIELD(spins)), works = out[STK_WATCH_cores] - spins;
    if (spins >= 0.01) out[STK_WATCH_spins] = spins;
    out[STK_WATCH_works_share] = fmin(1, works / fmin(allowed, out[STK_WATCH_quota]));
    out[STK_WATCH_waiting] = stk_watch_mean(s, FIELD(waiting));
    out[STK_WATCH_wanted] = fmin(1, (works + fmax(0, out[STK_WATCH_waiting])) / fmin(allowed, out[STK_WATCH_quota]));
    out[STK_WATCH_main] = stk_watch_mean(s, FIELD(main));
    out[STK_WATCH_main_fill] = stk_watch_fill(s, FIELD(main));
    out[STK_WATCH_overlap] = out[STK_WATCH_main] + out[STK_WATCH_gpu_busy] - 1;
    out[STK_WATCH_top] = stk_watch_mean(s, FIELD(top));
    out[STK_WATCH_top_fill] = stk_watch_fill(s, FIELD(top_ready));
    out[STK_WATCH_beside_top] = fmax(0, works - out[STK_WATCH_top]);
    out[STK_WATCH_workers] = stk_watch_most(s, FIELD(n_workers));
    out[STK_WATCH_workers_busy] = stk_watch_mean(s, FIELD(workers));
    out[STK_WATCH_workers_fill] = stk_watch_fill(s, FIELD(workers));
    out[STK_WATCH_waited] = stk_watch_mean(s, FIELD(waited));
    out[STK_WATCH_contention] =
        fmax(0, stk_watch_mean(s, FIELD(machine_busy)) - out[STK_WATCH_cores]) / out[STK_WATCH_machine_cores];
    double stolen = stk_watch_mean(s, FIELD(stolen)) / out[STK_WATCH_machine_cores];
    if (stolen >= 0) out[STK_WATCH_stolen] = fmin(1, stolen);
    out[STK_WATCH_throttled] = stk_watch_mean(s, FIELD(throttled));
    out[STK_WATCH_fed] = stk_watch_mean(s, FIELD(n_fed));
    out[STK_WATCH_shared_threads] = stk_watch_mean(s, FIELD(shared_threads));
    out[STK_WATCH_trainer] = stk_watch_mean(s, FIELD(trainer));
    out[STK_WATCH_trainer_fill] = stk_watch_fill(s, FIELD(trainer));
    if (stk_watch_mean(s, FIELD(n_ranks)) >= 1.5) {
        out[STK_WATCH_ranks] = stk_watch_most(s, FIELD(n_ranks));
        out[STK_WATCH_rank_most] = fmin(1, stk_watch_mean(s, FIELD(rank_most)));
        out[STK_WATCH_rank_gap] = fmax(0, out[STK_WATCH_rank_most] - stk_watch_mean(s, FIELD(rank_least)));
    }
    out[STK_WATCH_compiling] = share_above(s, FIELD(compilers), 0.5);
    out[STK_WATCH_code_growing] = find_code_growing(s);
}

static void find_data(const stk_watch_span *s, double *out)
{
    out[STK_WATCH_disk_fill] = stk_watch_fill(s, FIELD(disk_wait));
    out[STK_WATCH_remote_fill] = stk_watch_fill(s, FIELD(remote_wait));
    out[STK_WATCH_asked_mbs] = stk_watch_mean(s, FIELD(asked_mbs));
    out[STK_WATCH_read_mbs] = stk_watch_mean(s, FIELD(read_mbs));
    if (out[STK_WATCH_asked_mbs] > 0.1)
        out[STK_WATCH_cache_hit] = fmax(0, 1 - out[STK_WATCH_read_mbs] / out[STK_WATCH_asked_mbs]);
    out[STK_WATCH_put_mbs] = stk_watch_mean(s, FIELD(put_mbs));
    out[STK_WATCH_write_fill] = fill_writing(s);
    out[STK_WATCH_net_mbs] = stk_watch_mean(s, FIELD(net_mbs));
    out[STK_WATCH_psi_io] = stk_watch_mean(s, FIELD(psi_io));
    out[STK_WATCH_psi_memory] = stk_watch_mean(s, FIELD(psi_memory));
    out[STK_WATCH_faults] = stk_watch_mean(s, FIELD(faults));
    out[STK_WATCH_swapping] = stk_watch_mean(s, FIELD(swapping));
    /* Faults alone are how mapped files are read. */
    out[STK_WATCH_memory_short] =
        (out[STK_WATCH_faults] > 40) + (out[STK_WATCH_psi_memory] > 0.05) + (out[STK_WATCH_swapping] > 50);
    out[STK_WATCH_limit_hits] = stk_watch_mean(s, FIELD(limit_hits));
    out[STK_WATCH_memory_full] = stk_watch_most(s, FIELD(memory_full));
}

static void find_roles(const stk_watch_span *s, stk_watch_signals *out)
{
    for (int role = 0; role < STK_WATCH_ROLES; role++)
        out->role_threads[role] = stk_watch_role_mean(s, (stk_watch_role)role, out->role[role]);
    const double *share = out->role[STK_WATCH_ROLE_WORKERS];
    if (out->role_threads[STK_WATCH_ROLE_WORKERS] > 0)
        out->value[STK_WATCH_worker_runs] =
            share[STK_WATCH_STATE_USER] + share[STK_WATCH_STATE_FAULTS] + share[STK_WATCH_STATE_SYSTEM];
}

void stk_watch_signals_find(const stk_watch_history *history, const stk_watch_facts *facts, stk_watch_signals *out)
{
    const char *exit_text = stk_watch_facts_get(facts, "exit", 0);
    const char *framework = stk_watch_facts_get(facts, "framework", 0);
    stk_watch_span s = stk_watch_span_find(history, framework);
    for (int i = 0; i < STK_WATCH_SIGNALS; i++)
        out->value[i] = NAN;
    out->value[STK_WATCH_account] = 0;
    out->idle_by_run = false;
    out->begin_s = s.n ? s.row[0].at_s - s.row[0].length_s : 0;
    out->end_s = s.n ? s.row[s.n - 1].at_s : 0;
    find_gpu(&s, history->n_gpus, out->value);
    find_cores(&s, out->value);
    find_data(&s, out->value);
    find_growth(history, out->value);
    /* What is compiled is kept: its growth is recompiling's, unless memory ends soon. */
    if (out->value[STK_WATCH_code_growing] > 0.5 && out->value[STK_WATCH_full_in_s] > 600)
        out->value[STK_WATCH_full_in_s] = NAN;
    stk_watch_account_sum(&s, facts, out->value);
    find_roles(&s, out);
    find_stuck(history, &s, most_moved(exit_text), out->value);
    double n_allowed = out->value[STK_WATCH_allowed_share] * out->value[STK_WATCH_machine_cores];
    /* Pools of JAX and TensorFlow have as many threads as cores are allowed. */
    out->value[STK_WATCH_missing_cores] = out->value[STK_WATCH_by_pool] * (1 - out->value[STK_WATCH_allowed_share]);
    out->value[STK_WATCH_spare] = out->value[STK_WATCH_by_compute] * (1 - 1 / fmax(1, n_allowed));
    stk_watch_own own;
    if (stk_watch_own_get(facts, &own)) {
        out->value[STK_WATCH_idle] = 1 - own.compute;
        out->idle_by_run = true;
    }
    double kills = 0;
    for (size_t i = 0; i < history->n; i++)
        kills += history->row[i].oom_kills > 0 ? history->row[i].oom_kills * history->n_merged : 0;
    const char *at_end = stk_watch_facts_get(facts, "killed", 0);
    if (at_end) kills += atof(at_end);
    out->value[STK_WATCH_oom_kills] = kills;
    /* At that moment it was full, whatever the last sample says. */
    if (at_end) out->value[STK_WATCH_memory_full] = 1;
    out->value[STK_WATCH_oom_in_s] = find_oom(history);
    out->value[STK_WATCH_framework] = framework && strcmp(framework, "stoker") != 0;
    out->value[STK_WATCH_python] = stk_watch_facts_get(facts, "python", 0) != NULL;
    out->value[STK_WATCH_remote] = stk_watch_facts_get(facts, "remote", 0) != NULL;
    out->value[STK_WATCH_ended] = exit_text && !strcmp(exit_text, "0");
}
