/* The account: where the time went, as shares of one whole. On cores alone the whole is the driving thread's time; with
 * a GPU it is the GPU's, whose idle time is divided by what the driving thread did then; of a stoker run it is what the
 * run says of itself. Where the driving thread waits for others of the job these are followed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/own.h"
#include "watch/roles.h"
#include "watch/signals.h"
#include "watch/span.h"

#define FIELD(name) STK_WATCH_FIELD(name)
/* Of the thread that drives the step: USER is all its time on cores, of which SYSTEM is a part. */
#define DRIVER(state) STK_WATCH_ROLE_FIELD(STK_WATCH_ROLE_DRIVER, STK_WATCH_STATE_##state)

/* What the driving thread is at. It sleeps from DISK on; from PIPE on for somebody who may be followed. */
enum { WORK, READY, DISK, WRITE, REMOTE, NET, OUTPUT, FILE_LOCK, CHILD, TIMER, DEVICE, OTHER, PIPE, LOCK, STATES };
static const size_t fields[STATES] = {DRIVER(USER),   DRIVER(READY),  DRIVER(DISK),      DRIVER(WRITE), DRIVER(REMOTE),
                                      DRIVER(NET),    DRIVER(OUTPUT), DRIVER(FILE_LOCK), DRIVER(CHILD), DRIVER(TIMER),
                                      DRIVER(DEVICE), DRIVER(OTHER),  DRIVER(PIPE),      DRIVER(LOCK)};

enum { MOST_WINDOWS = 1024 };
static const double window_s = 0.35; /* of NVML's utilisation, which is a mean over a sixth of a second and more */

typedef struct windows {
    size_t n;
    double busy[MOST_WINDOWS], share[MOST_WINDOWS][STATES]; /* each window's shares sum up to 1 */
} windows;

/* Time on cores is measured, and what is left of the time is divided by what the thread slept for when looked at. */
static void divide(double share[STATES])
{
    double left = fmax(0, 1 - share[WORK] - share[READY]), asleep = 0;
    for (int k = DISK; k < STATES; k++)
        asleep += share[k];
    for (int k = DISK; k < STATES; k++)
        share[k] = asleep > 0 ? share[k] / asleep * left : k == OTHER ? left : 0;
}

static double field_of(const stk_watch_row *row, int k)
{
    return *(const double *)((const char *)row + fields[k]);
}

/* Of a long run every n-th window. */
static void cut_windows(const stk_watch_span *s, windows *out)
{
    double length_s = s->n ? s->row[s->n - 1].at_s - s->row[0].at_s : 0;
    size_t step = 1 + (size_t)(length_s / window_s / MOST_WINDOWS), n_seen = 0;
    double length = 0, busy = 0, share[STATES] = {0};
    out->n = 0;
    for (size_t i = 0; i < s->n && out->n < MOST_WINDOWS; i++) {
        const stk_watch_row *row = &s->row[i];
        if (isnan(row->role[STK_WATCH_ROLE_DRIVER][STK_WATCH_STATE_USER]) || isnan(row->gpu_busy)) continue;
        length += row->length_s;
        busy += row->gpu_busy * row->length_s;
        for (int k = 0; k < STATES; k++)
            share[k] += field_of(row, k) * row->length_s;
        if (length < window_s) continue;
        if (n_seen++ % step == 0) {
            for (int k = 0; k < STATES; k++)
                out->share[out->n][k] = share[k] / length;
            divide(out->share[out->n]);
            out->busy[out->n++] = fmin(1, busy / length);
        }
        length = busy = 0;
        memset(share, 0, sizeof(share));
    }
}

/* The states in which a thread may wait for the GPU: most programs do all of that in one way. */
static const int may_wait[] = {TIMER, OTHER, LOCK};
enum { MAY_WAIT = 3 };

/* Whether the GPU works in each state, if the thread waits for it in these (bits of may_wait). What is left of its work
 * falls to what the thread does on a core: it starts kernels, or spins until they end. */
static void suppose(int bits, const double total[STATES], double busy, double chance[STATES])
{
    double sum = total[DEVICE], on_core = total[WORK] + total[READY];
    memset(chance, 0, STATES * sizeof(*chance));
    chance[DEVICE] = 1;
    for (int i = 0; i < MAY_WAIT; i++)
        if (bits >> i & 1) {
            chance[may_wait[i]] = 1;
            sum += total[may_wait[i]];
        }
    chance[WORK] = chance[READY] = on_core > 0 ? fmax(0, fmin(1, (busy - sum) / on_core)) : 0;
    sum += chance[WORK] * on_core;
    for (int k = 0; k < STATES; k++) {
        if (sum > busy) chance[k] *= busy / sum;
        /* It works ahead of the host. */
        if (sum < busy) chance[k] += (1 - chance[k]) * (busy - sum) / fmax(0.01, 1 - sum);
    }
}

/* The supposition that explains best when the GPU works, and how much. The thread that waits for a GPU seldom sleeps in
 * a timer, which decides where nothing else does. */
static void find_chances(const windows *w, double busy, double chance[STATES])
{
    double total[STATES] = {0}, best = INFINITY;
    memset(chance, 0, STATES * sizeof(*chance));
    for (size_t i = 0; i < w->n; i++)
        for (int k = 0; k < STATES; k++)
            total[k] += w->share[i][k] / (double)w->n;
    for (int bits = 0; bits < 1 << MAY_WAIT; bits++) {
        double some[STATES], error = 0.001 * (bits & 1) + 0.0003 * (bits >> 2 & 1), sum = total[DEVICE];
        suppose(bits, total, busy, some);
        for (size_t i = 0; i < w->n; i++) {
            double left = w->busy[i];
            for (int k = 0; k < STATES; k++)
                left -= some[k] * w->share[i][k];
            error += left * left / (double)w->n;
        }
        for (int i = 0; i < MAY_WAIT; i++)
            sum += bits >> i & 1 ? total[may_wait[i]] : 0;
        double most = sum + total[WORK] + total[READY], off = fmax(0, fmax(sum - busy, busy - most));
        error += off * off;
        if (error >= best) continue;
        best = error;
        memcpy(chance, some, sizeof(some));
    }
}

/* The GPU's idle time by the driving thread's states. */
static void divide_idle(const stk_watch_span *s, double busy, double x[STATES])
{
    static _Thread_local windows w;
    double chance[STATES], sum = 0;
    memset(x, 0, STATES * sizeof(*x));
    cut_windows(s, &w);
    find_chances(&w, busy, chance);
    for (size_t i = 0; i < w.n; i++)
        for (int k = 0; k < STATES; k++)
            x[k] += (1 - chance[k]) * w.share[i][k];
    for (int k = 0; k < STATES; k++)
        sum += x[k];
    for (int k = 0; k < STATES; k++)
        x[k] = sum > 0 ? x[k] / sum * (1 - busy) : k == OTHER ? 1 - busy : 0;
}

/* Who is waited for, of those that feed: the most that they do. whole: the time of which passive is a part. */
static stk_watch_signal find_cause(const stk_watch_span *s, double passive, double runs, double whole)
{
    double busy = stk_watch_mean_idle(s, FIELD(beside_busy)), top = stk_watch_mean_idle(s, FIELD(beside_top));
    double turns = stk_watch_mean_idle(s, FIELD(turns)), waiting = stk_watch_mean_idle(s, FIELD(waiting));
    if (turns > 0.3 && busy + runs < 1.6 + waiting && busy > 0.5) return STK_WATCH_by_turns;
    if (busy > 0.5 * passive / whole && busy > 0.15)
        return busy > 1.4 * fmax(0.3, top) && busy > 0.9 ? STK_WATCH_by_workers : STK_WATCH_by_thread;
    if (stk_watch_mean_idle(s, FIELD(beside_net)) > 0.4) return STK_WATCH_by_net;
    if (fmax(stk_watch_mean_idle(s, FIELD(beside_remote)), stk_watch_mean_idle(s, FIELD(remote_wait))) > 0.3)
        return STK_WATCH_by_remote;
    if (fmax(stk_watch_mean_idle(s, FIELD(beside_disk)), stk_watch_mean_idle(s, FIELD(disk_wait))) > 0.3)
        return STK_WATCH_by_disk;
    if (stk_watch_mean_idle(s, FIELD(beside_file_lock)) > 0.4) return STK_WATCH_by_file_lock;
    if (stk_watch_mean_idle(s, FIELD(beside_timer)) > 0.4) return STK_WATCH_by_timer;
    return STK_WATCH_by_unknown;
}

/* Gives what the driving thread waits for others to whom they are at. */
static void follow(const stk_watch_span *s, double passive, double runs, double whole, double *out)
{
    double busy = stk_watch_mean_idle(s, FIELD(beside_busy)), waits = stk_watch_mean_idle(s, FIELD(beside_ready)),
           own = stk_watch_mean_idle(s, FIELD(beside_own));
    double may = out[STK_WATCH_allowed_share] * out[STK_WATCH_machine_cores];
    stk_watch_signal cause = find_cause(s, passive, runs, whole);
    bool works = cause == STK_WATCH_by_workers || cause == STK_WATCH_by_thread || cause == STK_WATCH_by_turns;
    out[STK_WATCH_own_threads] = (busy + stk_watch_mean(s, DRIVER(USER)) + stk_watch_mean(s, DRIVER(READY))) / may;
    /* Of many more threads than cores most are ready, and that is what those wait for that need them. */
    if (cause == STK_WATCH_by_workers && out[STK_WATCH_own_threads] > 2 && own > 0.5 * busy) {
        out[STK_WATCH_by_ready] += passive;
        return;
    }
    /* Who feeds waits for cores that others have. */
    double away = works && busy > 0 && out[STK_WATCH_contention] > 0.2 ? passive * fmin(1, waits / busy) : 0;
    out[STK_WATCH_by_ready] += away;
    out[cause] += passive - away;
}

static void clear(double *out)
{
    for (int i = STK_WATCH_by_device; i <= STK_WATCH_by_unknown; i++)
        out[i] = 0;
    out[STK_WATCH_account] = 1;
}

/* The states' shares go to the account's parts; whole: what they sum up to. */
static void add_states(const stk_watch_span *s, const double x[STATES], double whole, double *out)
{
    double outside = x[PIPE] > 0 ? stk_watch_mean(s, FIELD(outside)) / stk_watch_mean(s, DRIVER(PIPE)) * x[PIPE] : 0;
    bool is_storm = stk_watch_mean_idle(s, FIELD(unseen)) > 0.15;
    out[STK_WATCH_by_ready] += x[READY];
    out[STK_WATCH_by_disk] += x[DISK];
    out[STK_WATCH_by_write] += x[WRITE];
    out[STK_WATCH_by_remote] += x[REMOTE];
    out[STK_WATCH_by_net] += x[NET];
    out[STK_WATCH_by_output] += x[OUTPUT];
    out[STK_WATCH_by_timer] += x[TIMER];
    out[STK_WATCH_by_file_lock] += x[FILE_LOCK];
    out[STK_WATCH_by_outside] += outside;
    out[is_storm ? STK_WATCH_by_children : STK_WATCH_by_unknown] += x[CHILD];
    /* Of what it sleeps for locks: Python's own. */
    double at_gil =
        x[LOCK] > 0 ? fmin(1, stk_watch_mean(s, FIELD(at_gil)) / stk_watch_mean(s, DRIVER(LOCK))) * x[LOCK] : 0;
    out[STK_WATCH_by_turns] += at_gil;
    /* Asleep for whom cannot be seen: for those of the job who do something that takes time. */
    double passive = x[PIPE] + x[LOCK] - outside - at_gil, unseen = x[OTHER] + x[DEVICE],
           runs = whole > 0 ? x[WORK] / whole : 0;
    if (find_cause(s, passive + unseen, runs, whole) == STK_WATCH_by_timer)
        out[STK_WATCH_by_unknown] += unseen;
    else
        passive += unseen;
    follow(s, passive, runs, whole, out);
    /* Those who feed hold the core that it waits for. */
    if (out[STK_WATCH_by_workers] > 0.1 && out[STK_WATCH_own_threads] < 2 && !(out[STK_WATCH_contention] > 0.2)) {
        out[STK_WATCH_by_workers] += out[STK_WATCH_by_ready];
        out[STK_WATCH_by_ready] = 0;
    }
}

/* Threads of the driving process that share its work meet after each part of it: each waits for the slowest, which is
 * another one each time, so that none works all the time, and together more than one does. */
static void add_balance(const stk_watch_span *s, double runs, double *out)
{
    const stk_watch_signal from[] = {STK_WATCH_by_thread, STK_WATCH_by_workers, STK_WATCH_by_unknown};
    double top = stk_watch_mean(s, FIELD(beside_top)), own = stk_watch_mean(s, FIELD(beside_own));
    if (!(runs > 0.5 && runs + top > 1.2 && top < 1.25 * runs && top < 0.93 && own > 0.9 * top)) return;
    for (int i = 0; i < 3; i++) {
        out[STK_WATCH_by_balance] += out[from[i]];
        out[from[i]] = 0;
    }
}

/* How much of the time the driving thread is in an iterator of tf.data; 0 where its stacks are few or were not asked
 * for. */
static double share_in_iterators(const stk_watch_span *s, const stk_watch_facts *facts)
{
    enum { LEAST_STACKS = 5 };
    double begin_s = s->row[0].at_s - s->row[0].length_s, end_s = s->row[s->n - 1].at_s;
    const char *text;
    int n = 0, n_inside = 0;
    for (size_t i = 0; (text = stk_watch_facts_get(facts, "stack", i)); i++) {
        double at_s = strtod(text, NULL);
        if (!(at_s >= begin_s) || !(at_s <= end_s)) continue;
        n++;
        n_inside += strstr(text, "iterator_ops.py:") != NULL;
    }
    return n >= LEAST_STACKS ? (double)n_inside / n : 0;
}

/* JAX and TensorFlow compute on threads that their first one waits for, where there is no GPU. Threads of the same
 * process that prepare data in Python are told from these by where they are; those of tf.data look alike, and are told
 * where stacks of the first thread show that it waits in a data set's iterator. What is waited for is divided by how
 * long each takes: those that compute, and other processes, work on all cores at once, and Python's threads in turn. */
static void add_pool(const stk_watch_span *s, const stk_watch_facts *facts, double *out)
{
    static const char *const names[] = {"jax", "tensorflow", "keras"};
    const char *framework = stk_watch_facts_get(facts, "framework", 0);
    double may = fmax(1, out[STK_WATCH_allowed_share] * out[STK_WATCH_machine_cores]);
    double own = stk_watch_mean(s, FIELD(beside_own)), feeds = fmin(own, stk_watch_mean(s, FIELD(beside_feeds)));
    double others = stk_watch_mean(s, FIELD(beside_busy)) - own, pool_s = (own - feeds) / may;
    double feeding_s = fmin(1, feeds) + others / may, sum = out[STK_WATCH_by_thread] + out[STK_WATCH_by_workers];
    bool is_one = false;
    for (int i = 0; i < 3; i++)
        is_one = is_one || (framework && !strcmp(framework, names[i]));
    if (!is_one || !(pool_s > 0)) return;
    double share = pool_s / (pool_s + fmax(0, feeding_s));
    bool are_many = feeds > 1.1 || others > 1.1;
    out[STK_WATCH_feeds] = feeds;
    out[STK_WATCH_by_pool] += share * sum;
    out[STK_WATCH_by_thread] = are_many ? 0 : (1 - share) * sum;
    out[STK_WATCH_by_workers] = are_many ? (1 - share) * sum : 0;
    double mapping = fmin(out[STK_WATCH_by_pool], share_in_iterators(s, facts));
    are_many = stk_watch_mean(s, FIELD(beside_busy)) > 1.1;
    out[STK_WATCH_by_pool] -= mapping;
    out[are_many ? STK_WATCH_by_workers : STK_WATCH_by_thread] += mapping;
}

/* Compilers as children, or code that is made in the process itself all the time. How much of the work that is cannot
 * be seen: half of it is taken. */
static void add_compiling(stk_watch_signal work, double *out)
{
    const stk_watch_signal from[] = {STK_WATCH_by_children, STK_WATCH_by_thread, STK_WATCH_by_workers,
                                     STK_WATCH_by_pool, STK_WATCH_by_unknown};
    bool are_seen = out[STK_WATCH_compiling] > 0.1, is_made = out[STK_WATCH_code_growing] > 0.5;
    double moved = 0;
    for (int i = 0; i < 5 && (are_seen || is_made); i++) {
        bool may_be = from[i] == work || from[i] == STK_WATCH_by_pool;
        double share = are_seen || from[i] == STK_WATCH_by_children ? 1 : may_be ? 0.5 : 0;
        moved += share * out[from[i]];
        out[from[i]] *= 1 - share;
    }
    if (is_made && work == STK_WATCH_by_compute && moved < 0.1) {
        moved += 0.5 * out[work];
        out[work] *= 0.5;
    }
    out[STK_WATCH_by_compiling] = moved;
}

/* While files are written, copying into the system's memory and waiting for its room are writing, too. work: what of
 * the account does the copying; whole: the time of which a part is written in. */
static void add_writing(stk_watch_signal work, double whole, double *out)
{
    const stk_watch_signal from[] = {work, STK_WATCH_by_disk, STK_WATCH_by_timer, STK_WATCH_by_unknown};
    double wanted = out[STK_WATCH_write_fill] * whole - out[STK_WATCH_by_write], sum = 0;
    if (!(out[STK_WATCH_write_fill] > 0.3) || !(out[STK_WATCH_put_mbs] > 2)) return;
    for (int i = 0; i < 4; i++)
        sum += out[from[i]];
    double share = sum > 0 ? fmax(0, fmin(1, wanted / sum)) : 0;
    for (int i = 0; i < 4; i++) {
        out[STK_WATCH_by_write] += share * out[from[i]];
        out[from[i]] *= 1 - share;
    }
}

static void add_cores(const stk_watch_span *s, const stk_watch_facts *facts, double *out)
{
    double x[STATES], runs;
    for (int k = 0; k < STATES; k++)
        x[k] = stk_watch_mean(s, fields[k]);
    divide(x);
    runs = x[WORK];
    double system = fmin(runs, stk_watch_mean(s, DRIVER(SYSTEM)));
    /* A fault takes 0.4 us at the least, one of a large page 80, and several times that in virtual machines. */
    bool faults = stk_watch_mean(s, STK_WATCH_ROLE_FAULTS(STK_WATCH_ROLE_DRIVER)) * 4e-7 +
                      stk_watch_mean(s, FIELD(huge_faults)) * 8e-5 >
                  0.1 * system;
    clear(out);
    out[STK_WATCH_by_compute] = runs - system;
    out[faults ? STK_WATCH_by_faults : STK_WATCH_by_kernel] = system;
    add_states(s, x, 1, out);
    if (!faults) add_writing(STK_WATCH_by_kernel, system, out);
    add_balance(s, runs, out);
    add_pool(s, facts, out);
    add_compiling(STK_WATCH_by_compute, out);
}

static void add_gpu(const stk_watch_span *s, double *out)
{
    double x[STATES], busy = stk_watch_mean(s, FIELD(gpu_busy));
    if (isnan(busy)) return; /* as of a part of one */
    busy = fmin(1, busy);
    divide_idle(s, busy, x);
    clear(out);
    out[STK_WATCH_by_device] = busy;
    out[STK_WATCH_by_thread] = x[WORK];
    add_states(s, x, fmax(0.01, 1 - busy), out);
    add_writing(STK_WATCH_by_thread, 1 - busy, out);
    add_compiling(STK_WATCH_by_thread, out);
}

static void add_own(const stk_watch_span *s, const stk_watch_own *own, double *out)
{
    double input = fmax(0, fmin(1, own->input)), host = fmax(0, fmin(1, own->host)) + fmax(0, fmin(1, own->launch));
    double sum = fmax(1, input + host + own->compute);
    clear(out);
    out[STK_WATCH_by_compute] = own->compute / sum;
    out[STK_WATCH_by_host] = host / sum;
    out[STK_WATCH_by_unknown] = fmax(0, 1 - (input + host + own->compute) / sum);
    follow(s, input / sum, own->compute, 1, out);
}

void stk_watch_account_sum(const stk_watch_span *s, const stk_watch_facts *facts, double *out)
{
    stk_watch_own own;
    bool has_own = stk_watch_own_get(facts, &own);
    if (s->n == 0 || isnan(stk_watch_mean(s, DRIVER(USER)))) return;
    if (has_own)
        add_own(s, &own, out);
    else if (s->has_gpu)
        add_gpu(s, out);
    else if (!s->main_computes)
        add_cores(s, facts, out);
}
