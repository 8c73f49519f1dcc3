#include "watch/signals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void stk_watch_signal_tell(const stk_watch_signals *signals, stk_watch_signal signal, char out[STK_WATCH_SENTENCE])
{
    char number[48];
    double value = signals->value[signal];
    const char *unit = known[signal].unit, *text = known[signal].text;
    if (signal == STK_WATCH_idle && signals->idle_by_run)
        text = "by the run's own record %s of all its time is not computing";
    const char *at = strstr(text, "%s");
    if (!strcmp(unit, "%"))
        snprintf(number, sizeof(number), "%.0f %%", 100 * value);
    else
        snprintf(number, sizeof(number), "%.*f%s%s", fabs(value) >= 10 || value == floor(value) ? 0 : 1, value,
                 unit[0] && unit[0] != '/' ? " " : "", !strcmp(unit, "/s") ? " a second" : unit);
    snprintf(out, STK_WATCH_SENTENCE, "%.*s%s%s", (int)(at - text), text, number, at + 2);
}

/* --- the part of the run that counts --- */

typedef struct span {
    const stk_watch_row *row;
    size_t n;
    bool has_gpu;
    bool main_computes; /* the trainer's first thread has a part in all computing: Stoker's */
} span;

/* How busy the device is: the GPUs in use, or the cores where the job uses no GPU; NaN: not known. Cores that make data
 * are not the device, which shows where the first thread computes: it waits for batches, and they work. */
static double busy_of(const span *s, const stk_watch_row *row)
{
    if (s->has_gpu) return row->gpu_busy;
    if (s->main_computes && row->main >= 0) return fmin(1, row->main);
    double may = row->allowed > 0 ? row->allowed : row->machine_cores;
    if (row->quota < may) may = row->quota;
    return may > 0 && row->cores > 0 ? fmin(1, row->cores / may) : 0;
}

/* What a program loads makes it grow, and then it stays as it is; one that grows all the time has no such point. */
static size_t after_loading(const stk_watch_history *history, size_t first)
{
    double size = 0, begin_s = history->n ? 0.6 * history->row[history->n - 1].at_s : 0;
    size_t half = history->n / 2, i = first;
    for (size_t k = half; k < history->n; k++)
        size += history->row[k].resident_mb / (double)(history->n - half);
    while (i < history->n && history->row[i].resident_mb < 0.9 * size)
        i++;
    return i < history->n && history->row[i].at_s < begin_s ? i : first;
}

/* Frameworks try kernels before the first step: from the first second on in which the GPU works as it does later. */
static size_t after_warm_up(const stk_watch_history *history, size_t first, size_t last)
{
    double level = 0, n = 0;
    for (size_t k = first + (last - first) / 2; k < last; k++)
        if (history->row[k].gpu_busy >= 0) level += history->row[k].gpu_busy, n++;
    for (size_t i = first; i < first + (last - first) / 2 && n > 0; i++) {
        double sum = 0, length = 0;
        for (size_t k = i; k < last && length < 1; k++) {
            sum += history->row[k].gpu_busy * history->row[k].length_s;
            length += history->row[k].length_s;
        }
        if (sum >= 0.5 * level / n * length) return i;
    }
    return first;
}

/* Starting is not training: with a GPU, from the first work on it to the last row on which the job holds it; without,
 * all but the first seconds. */
static span find_span(const stk_watch_history *history, const char *framework)
{
    span s = {history->row, history->n, false, framework && !strcmp(framework, "stoker")};
    size_t first = 0, last = 0, first_held = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const stk_watch_row *row = &history->row[i];
        if (!(row->gpus_used > 0)) continue;
        if (first_held == history->n) first_held = i;
        if (row->gpu_busy > 0.02 && !s.has_gpu) {
            s.has_gpu = true;
            first = i;
        }
        last = i + 1;
    }
    if (!s.has_gpu && first_held < history->n) {
        s.has_gpu = true;
        first = first_held;
    }
    if (!s.has_gpu) {
        double length_s = history->n ? history->row[history->n - 1].at_s : 0, skip_s = fmin(4, 0.3 * length_s);
        while (first < history->n && history->row[first].at_s < skip_s)
            first++;
        if (!s.main_computes) first = after_loading(history, first);
        last = history->n;
    } else {
        first = after_warm_up(history, first, last);
    }
    /* In the first second of work caches and clocks warm up. */
    if (last > first + 20) first += 3;
    s.row += first;
    s.n = last > first ? last - first : 0;
    return s;
}

/* --- means --- */

#define FIELD(name) offsetof(stk_watch_row, name)

static double field(const stk_watch_row *row, size_t offset)
{
    return *(const double *)((const char *)row + offset);
}

/* Over time, of the rows where it is known. */
static double mean(const span *s, size_t offset)
{
    double sum = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset);
        if (isnan(x)) continue;
        sum += x * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    return length > 0 ? sum / length : NAN;
}

static double most(const span *s, size_t offset)
{
    double best = NAN;
    for (size_t i = 0; i < s->n; i++)
        best = fmax(best, field(&s->row[i], offset));
    return best;
}

/* Over rows on which the GPU works. */
static double mean_busy(const span *s, size_t offset)
{
    double sum = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset);
        if (isnan(x) || !(s->row[i].gpu_busy > 0.3)) continue;
        sum += x * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    return length > 0 ? sum / length : NAN;
}

/* How much of the device's idle time a share of the field filled. */
static double fill(const span *s, size_t offset)
{
    double filled = 0, idle = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset), rest = 1 - busy_of(s, &s->row[i]);
        if (isnan(x) || isnan(rest)) continue;
        filled += fmin(rest, x) * s->row[i].length_s;
        idle += rest * s->row[i].length_s;
    }
    return idle > 0.02 * (double)s->n * (s->n ? s->row[0].length_s : 1) ? filled / idle : NAN;
}

/* A file is being written from the first burst until the device works again. */
static double fill_writing(const span *s)
{
    double filled = 0, idle = 0;
    bool writing = false;
    for (size_t i = 0; i < s->n; i++) {
        double busy = busy_of(s, &s->row[i]), rest = 1 - busy;
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

static double share_above(const span *s, size_t offset, double limit)
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
static double find_swing(const span *s)
{
    size_t most_n = s->n < MOST_SWING ? s->n : MOST_SWING, n = 0;
    double *busy = most_n >= 5 && s->has_gpu ? malloc(most_n * sizeof(*busy)) : NULL;
    if (!busy) return NAN;
    for (size_t i = s->n - most_n; i < s->n; i++)
        if (!isnan(busy_of(s, &s->row[i]))) busy[n++] = busy_of(s, &s->row[i]);
    qsort(busy, n, sizeof(*busy), compare);
    double swing = n >= 5 ? busy[n * 9 / 10] - busy[n / 10] : NAN;
    free(busy);
    return swing;
}

static double autocorrelation(const span *s, double average, size_t lag)
{
    double product = 0, square = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = busy_of(s, &s->row[i]) - average;
        double later = i + lag < s->n ? busy_of(s, &s->row[i + lag]) - average : NAN;
        square += isnan(x) ? 0 : x * x;
        product += isnan(x) || isnan(later) ? 0 : x * later;
    }
    return square > 0 ? product / square : 0;
}

/* The lag at the first peak of the autocorrelation, in seconds; NaN: no period. */
static double find_period(const span *s)
{
    double average = mean(s, FIELD(gpu_busy)), before = 1, now, after;
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

static bool is_still(const span *s, const stk_watch_row *row)
{
    /* Some may wait in a kernel for one that never gets there. */
    bool all_or_none = row->gpu_least > 0.9 || (row->gpu_least < 0.05 && row->cores < 0.1);
    bool spins = s->has_gpu && row->gpu_most > 0.9 && all_or_none && row->power < 0.5 && row->pcie_mbs < 1;
    bool idles = !s->has_gpu || row->gpu_busy < 0.05;
    if (row->asked_mbs > 0.02 || row->put_mbs > 0.02 || row->n_workers > 0) return false;
    return spins || (idles && row->cores < 0.05);
}

/* After Ctrl-C or a plain kill a program tidies up, which may compute for a while on a busy machine. */
static double most_moved(const char *exit_text)
{
    return exit_text && (!strcmp(exit_text, "130") || !strcmp(exit_text, "143")) ? 3 : 0.7;
}

static void find_stuck(const stk_watch_history *history, const span *s, double movable, double *out)
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

/* --- all of them --- */

static void find_gpu(const span *s, double n_gpus, double *out)
{
    out[STK_WATCH_gpus] = n_gpus;
    out[STK_WATCH_gpus_used] = s->has_gpu ? most(s, FIELD(gpus_used)) : 0;
    out[STK_WATCH_gpu_used] = s->has_gpu;
    double n_free = s->has_gpu ? mean(s, FIELD(gpus_free)) : NAN;
    out[STK_WATCH_gpus_idle] = n_free / (n_free + out[STK_WATCH_gpus_used]);
    out[STK_WATCH_unowned_memory] = mean(s, FIELD(unowned_memory));
    out[STK_WATCH_mig] = most(s, FIELD(mig));
    if (!s->has_gpu) return;
    out[STK_WATCH_gpu_busy] = mean(s, FIELD(gpu_busy));
    out[STK_WATCH_swing] = find_swing(s);
    out[STK_WATCH_period_s] = out[STK_WATCH_swing] > 0.3 ? find_period(s) : NAN;
    out[STK_WATCH_power] = mean(s, FIELD(power));
    out[STK_WATCH_power_busy] = fmin(1, out[STK_WATCH_power] / fmax(0.01, out[STK_WATCH_gpu_busy]));
    out[STK_WATCH_sm] = mean(s, FIELD(sm));
    out[STK_WATCH_tensor] = mean(s, FIELD(tensor));
    out[STK_WATCH_clock_low] = 1 - mean_busy(s, FIELD(clock));
    out[STK_WATCH_hot] = mean(s, FIELD(hot));
    out[STK_WATCH_capped] = mean(s, FIELD(capped));
    out[STK_WATCH_gpu_memory] = most(s, FIELD(gpu_memory));
    out[STK_WATCH_own_memory] = most(s, FIELD(own_memory));
    out[STK_WATCH_other_busy] = mean(s, FIELD(other_gpu_busy));
    out[STK_WATCH_other_memory] = mean(s, FIELD(other_memory));
    out[STK_WATCH_busiest] = mean(s, FIELD(gpu_most));
    out[STK_WATCH_imbalance] = out[STK_WATCH_busiest] - mean(s, FIELD(gpu_least));
    out[STK_WATCH_pcie_mbs] = mean(s, FIELD(pcie_mbs));
    out[STK_WATCH_link_low] = 1 - mean_busy(s, FIELD(link));
    out[STK_WATCH_far_node] = mean(s, FIELD(far_node));
    out[STK_WATCH_lagging] = mean(s, FIELD(lagging_rank));
    out[STK_WATCH_late_rank] = most(s, FIELD(late_rank));
}

static void find_cores(const span *s, double *out)
{
    double busy = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (isnan(busy_of(s, &s->row[i]))) continue;
        busy += busy_of(s, &s->row[i]) * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    out[STK_WATCH_idle] = length > 0 ? 1 - busy / length : NAN;
    out[STK_WATCH_cores] = mean(s, FIELD(cores));
    out[STK_WATCH_machine_cores] = mean(s, FIELD(machine_cores));
    out[STK_WATCH_quota] = mean(s, FIELD(quota));
    double allowed = mean(s, FIELD(allowed));
    if (isnan(allowed)) allowed = out[STK_WATCH_machine_cores];
    out[STK_WATCH_allowed_share] = fmin(1, allowed / out[STK_WATCH_machine_cores]);
    out[STK_WATCH_cores_share] = fmin(1, out[STK_WATCH_cores] / fmin(allowed, out[STK_WATCH_quota]));
    out[STK_WATCH_waiting] = mean(s, FIELD(waiting));
    out[STK_WATCH_wanted] =
        fmin(1, (out[STK_WATCH_cores] + fmax(0, out[STK_WATCH_waiting])) / fmin(allowed, out[STK_WATCH_quota]));
    out[STK_WATCH_main] = mean(s, FIELD(main));
    out[STK_WATCH_main_fill] = fill(s, FIELD(main));
    out[STK_WATCH_overlap] = out[STK_WATCH_main] + out[STK_WATCH_gpu_busy] - 1;
    out[STK_WATCH_top] = mean(s, FIELD(top));
    out[STK_WATCH_top_fill] = fill(s, FIELD(top_ready));
    out[STK_WATCH_beside_top] = fmax(0, out[STK_WATCH_cores] - out[STK_WATCH_top]);
    out[STK_WATCH_workers] = most(s, FIELD(n_workers));
    out[STK_WATCH_workers_busy] = mean(s, FIELD(workers));
    out[STK_WATCH_workers_fill] = fill(s, FIELD(workers));
    out[STK_WATCH_waited] = mean(s, FIELD(waited));
    out[STK_WATCH_contention] =
        fmax(0, mean(s, FIELD(machine_busy)) - out[STK_WATCH_cores]) / out[STK_WATCH_machine_cores];
    out[STK_WATCH_throttled] = mean(s, FIELD(throttled));
    out[STK_WATCH_shared_threads] = mean(s, FIELD(shared_threads));
    out[STK_WATCH_trainer] = mean(s, FIELD(trainer));
    out[STK_WATCH_trainer_fill] = fill(s, FIELD(trainer));
    out[STK_WATCH_compiling] = share_above(s, FIELD(compilers), 0.5);
}

static void find_data(const span *s, double *out)
{
    out[STK_WATCH_disk_fill] = fill(s, FIELD(disk_wait));
    out[STK_WATCH_remote_fill] = fill(s, FIELD(remote_wait));
    out[STK_WATCH_asked_mbs] = mean(s, FIELD(asked_mbs));
    out[STK_WATCH_read_mbs] = mean(s, FIELD(read_mbs));
    if (out[STK_WATCH_asked_mbs] > 0.1)
        out[STK_WATCH_cache_hit] = fmax(0, 1 - out[STK_WATCH_read_mbs] / out[STK_WATCH_asked_mbs]);
    out[STK_WATCH_put_mbs] = mean(s, FIELD(put_mbs));
    out[STK_WATCH_write_fill] = fill_writing(s);
    out[STK_WATCH_net_mbs] = mean(s, FIELD(net_mbs));
    out[STK_WATCH_psi_io] = mean(s, FIELD(psi_io));
    out[STK_WATCH_psi_memory] = mean(s, FIELD(psi_memory));
    out[STK_WATCH_faults] = mean(s, FIELD(faults));
    out[STK_WATCH_swapping] = mean(s, FIELD(swapping));
    /* Faults alone are how mapped files are read. */
    out[STK_WATCH_memory_short] =
        (out[STK_WATCH_faults] > 40) + (out[STK_WATCH_psi_memory] > 0.05) + (out[STK_WATCH_swapping] > 50);
    out[STK_WATCH_limit_hits] = mean(s, FIELD(limit_hits));
    out[STK_WATCH_memory_full] = most(s, FIELD(memory_full));
}

/* Where the driving thread's time went, followed to who it waits for: shares of one whole. Of jobs on cores alone: what
 * a device did meanwhile is not known so well. Stoker's runs say it themselves. */
static void find_account(const span *s, double *out)
{
    double runs = mean(s, FIELD(drive_runs)), ready = mean(s, FIELD(drive_ready));
    if (s->has_gpu || s->main_computes || isnan(runs)) return;
    double system = fmin(runs, mean(s, FIELD(drive_system))), left = fmax(0, 1 - runs - ready);
    static const size_t kinds[] = {FIELD(drive_disk),  FIELD(drive_write),  FIELD(drive_remote), FIELD(drive_net),
                                   FIELD(drive_pipe),  FIELD(drive_output), FIELD(drive_lock),   FIELD(drive_file_lock),
                                   FIELD(drive_child), FIELD(drive_timer),  FIELD(drive_other)};
    enum { DISK, WRITE, REMOTE, NET, PIPE, OUTPUT, LOCK, FILE_LOCK, CHILD, TIMER, OTHER, N };
    double x[N], sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i] = mean(s, kinds[i]);
    for (int i = 0; i < N; i++)
        x[i] = sum > 0 ? x[i] / sum * left : i == OTHER ? left : 0;
    /* A fault takes 0.4 us at the least, one of a large page 80, and several times that in virtual machines. */
    bool faults = mean(s, FIELD(drive_faults)) * 4e-7 + mean(s, FIELD(huge_faults)) * 8e-5 > 0.1 * system;
    double passive = x[PIPE] + x[LOCK], busy = mean(s, FIELD(beside_busy)), top = mean(s, FIELD(beside_top));
    double outside = x[PIPE] > 0 ? mean(s, FIELD(outside)) / mean(s, FIELD(drive_pipe)) * x[PIPE] : 0;
    double turns = mean(s, FIELD(turns));
    for (int i = STK_WATCH_by_compute; i <= STK_WATCH_by_unknown; i++)
        out[i] = 0;
    out[STK_WATCH_account] = 1;
    out[STK_WATCH_by_compute] = runs - system;
    out[faults ? STK_WATCH_by_faults : STK_WATCH_by_kernel] = system;
    out[STK_WATCH_by_ready] = ready;
    out[STK_WATCH_by_disk] = x[DISK];
    out[STK_WATCH_by_write] = x[WRITE];
    out[STK_WATCH_by_remote] = x[REMOTE];
    out[STK_WATCH_by_net] = x[NET];
    out[STK_WATCH_by_output] = x[OUTPUT];
    out[STK_WATCH_by_timer] = x[TIMER];
    out[STK_WATCH_by_file_lock] = x[FILE_LOCK];
    out[STK_WATCH_by_unknown] = x[OTHER];
    out[STK_WATCH_by_outside] = outside;
    out[mean(s, FIELD(unseen)) > 0.15 ? STK_WATCH_by_children : STK_WATCH_by_unknown] += x[CHILD];
    passive -= outside;
    /* The most that those who feed do: what wakes them is the cause. */
    stk_watch_signal cause = STK_WATCH_by_unknown;
    if (turns > 0.3 && busy + runs < 1.6 + mean(s, FIELD(waiting)) && busy > 0.5)
        cause = STK_WATCH_by_turns;
    else if (busy > 0.5 * passive && busy > 0.15)
        cause = busy > 1.4 * fmax(0.3, top) && busy > 0.9 ? STK_WATCH_by_workers : STK_WATCH_by_thread;
    else if (mean(s, FIELD(beside_net)) > 0.4)
        cause = STK_WATCH_by_net;
    else if (mean(s, FIELD(beside_disk)) > 0.3)
        cause = STK_WATCH_by_disk;
    else if (mean(s, FIELD(beside_file_lock)) > 0.4)
        cause = STK_WATCH_by_file_lock;
    else if (mean(s, FIELD(beside_timer)) > 0.4)
        cause = STK_WATCH_by_timer;
    double may = out[STK_WATCH_allowed_share] * out[STK_WATCH_machine_cores], wanted = (busy + runs + ready) / may;
    /* Of many more threads than cores most are ready, and that is what those wait for that need them. */
    if (cause == STK_WATCH_by_workers && wanted > 2) cause = STK_WATCH_by_ready;
    out[cause] += passive;
    out[STK_WATCH_own_threads] = wanted;
    /* Those who feed hold the core that it waits for. */
    if (out[STK_WATCH_by_workers] > 0.1 && out[STK_WATCH_own_threads] < 2 && !(out[STK_WATCH_contention] > 0.2)) {
        out[STK_WATCH_by_workers] += ready;
        out[STK_WATCH_by_ready] = 0;
    }
}

void stk_watch_signals_find(const stk_watch_history *history, const stk_watch_facts *facts, stk_watch_signals *out)
{
    const char *exit_text = stk_watch_facts_get(facts, "exit", 0);
    const char *framework = stk_watch_facts_get(facts, "framework", 0);
    span s = find_span(history, framework);
    for (int i = 0; i < STK_WATCH_SIGNALS; i++)
        out->value[i] = NAN;
    out->value[STK_WATCH_account] = 0;
    out->idle_by_run = false;
    out->begin_s = s.n ? s.row[0].at_s - s.row[0].length_s : 0;
    out->end_s = s.n ? s.row[s.n - 1].at_s : 0;
    find_gpu(&s, history->n_gpus, out->value);
    find_cores(&s, out->value);
    find_data(&s, out->value);
    find_account(&s, out->value);
    find_stuck(history, &s, most_moved(exit_text), out->value);
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
