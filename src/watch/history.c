#include "watch/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "watch/account.h"
#include "watch/nvml.h"

stk_status stk_watch_history_open(stk_watch_history *history)
{
    memset(history, 0, sizeof(*history));
    stk_watch_sample_init(&history->last);
    history->n_merged = 1;
    history->row = malloc(STK_WATCH_ROWS * sizeof(*history->row));
    return history->row ? STK_OK : stk_fail_memory(STK_WATCH_ROWS * sizeof(*history->row));
}

void stk_watch_history_free(stk_watch_history *history)
{
    stk_watch_sample_free(&history->last);
    free(history->row);
    memset(history, 0, sizeof(*history));
}

/* How much a counter grew a second; NaN where it was not read or went back. */
static double rate(int64_t before, int64_t now, double s)
{
    return before < 0 || now < before ? NAN : (double)(now - before) / s;
}

static double share(int64_t part, int64_t whole)
{
    return part < 0 || whole <= 0 ? NAN : (double)part / (double)whole;
}

/* --- GPUs --- */

/* Where nothing says whose a GPU is, one that works counts as the job's. */
static bool is_gpu_used(const stk_watch_gpu *gpu)
{
    return gpu->n_own > 0 || (gpu->n_own <= 0 && gpu->n_other <= 0 && gpu->busy_permille > 20);
}

/* The counter is read more seldom than the rest: what it grew by goes to the row that sees it. */
static void add_energy(stk_watch_history *history, const stk_watch_sample *now, double s)
{
    for (size_t i = 0; i < now->gpus.n; i++) {
        const stk_watch_gpu *gpu = stk_watch_gpu_at(now, i), *old = stk_watch_list_find(&history->last.gpus, gpu->id);
        if (!old || old->energy_mj < 0 || gpu->energy_mj < old->energy_mj || !is_gpu_used(gpu)) continue;
        history->gpu_joules += (double)(gpu->energy_mj - old->energy_mj) / 1000;
        history->gpu_joules_s += s;
    }
}

static void add_gpus(stk_watch_row *row, const stk_watch_sample *now)
{
    double n_used = 0, n_free = 0, busy = 0, power = 0, clock = 0, sm = 0, tensor = 0, pcie = 0;
    row->gpu_least = INFINITY;
    row->gpu_most = row->other_memory = row->other_gpu_busy = row->hot = row->capped = row->gpu_memory = 0;
    row->own_memory = row->unowned_memory = row->mig = 0;
    row->link = 1;
    for (size_t i = 0; i < now->gpus.n; i++) {
        const stk_watch_gpu *gpu = stk_watch_gpu_at(now, i);
        double own = share(gpu->own_mb, gpu->memory_mb), used = share(gpu->memory_used_mb, gpu->memory_mb);
        double b = gpu->busy_permille < 0 ? NAN : (double)gpu->busy_permille / 1000;
        double known =
            share((gpu->own_mb > 0 ? gpu->own_mb : 0) + (gpu->other_mb > 0 ? gpu->other_mb : 0), gpu->memory_mb);
        if (gpu->n_other == 0 && gpu->n_own == 0 && used > 0.1) row->unowned_memory = used - known;
        if (!is_gpu_used(gpu)) {
            n_free += gpu->n_other <= 0;
            continue;
        }
        n_used++;
        busy += b;
        row->gpu_least = fmin(row->gpu_least, b);
        row->gpu_most = fmax(row->gpu_most, b);
        power += share(gpu->power_mw, gpu->power_limit_mw);
        clock += share(gpu->clock_mhz, gpu->clock_most_mhz);
        sm += gpu->sm_permille < 0 ? NAN : (double)gpu->sm_permille / 1000;
        tensor += gpu->tensor_permille < 0 ? NAN : (double)gpu->tensor_permille / 1000;
        pcie += gpu->pcie_sent_kbs < 0 ? NAN : (double)(gpu->pcie_sent_kbs + gpu->pcie_received_kbs) / 1000;
        row->gpu_memory = fmax(row->gpu_memory, used);
        row->own_memory = fmax(row->own_memory, own);
        row->other_memory = fmax(row->other_memory, gpu->n_other > 0 ? share(gpu->other_mb, gpu->memory_mb) : 0);
        row->other_gpu_busy = fmax(row->other_gpu_busy, (double)gpu->other_busy_permille / 1000);
        if (gpu->slowdown_mask > 0) {
            int64_t mask = gpu->slowdown_mask;
            if (mask & (NVML_SLOW_HEAT_SOFTWARE | NVML_SLOW_HEAT_HARDWARE | NVML_SLOW_HARDWARE)) row->hot = 1;
            if (mask & (NVML_SLOW_POWER_CAP | NVML_SLOW_POWER_BRAKE)) row->capped = 1;
        }
        row->link = fmin(
            row->link, share(gpu->pcie_generation * gpu->pcie_width, gpu->pcie_most_generation * gpu->pcie_most_width));
        if (gpu->mig == 1) row->mig = 1;
    }
    row->gpus_used = n_used;
    row->gpus_free = n_free;
    if (n_used == 0) row->gpu_least = 0;
    row->gpu_busy = n_used ? busy / n_used : 0;
    row->power = n_used ? power / n_used : NAN;
    row->clock = n_used ? clock / n_used : NAN;
    row->sm = n_used ? sm / n_used : NAN;
    row->tensor = n_used ? tensor / n_used : NAN;
    row->pcie_mbs = n_used ? pcie : NAN;
}

/* --- who is who --- */

static bool holds_gpu(const stk_watch_sample *sample)
{
    for (size_t i = 0; i < sample->processes.n; i++)
        if (stk_watch_process_at(sample, i)->holds_gpu == 1) return true;
    return false;
}

/* The process whose parent is not of the job; 0 while there is none. */
static int64_t find_first(const stk_watch_sample *sample)
{
    for (size_t i = 0; i < sample->processes.n; i++) {
        const stk_watch_process *p = stk_watch_process_at(sample, i);
        if (!stk_watch_list_find(&sample->processes, p->parent)) return p->id;
    }
    return 0;
}

/* The process that computes: the first one, or the child that does all for it, as when a shell started it. */
static int64_t find_trainer(const stk_watch_sample *sample, int64_t first)
{
    for (int depth = 0; depth < 8; depth++) {
        const stk_watch_process *self = stk_watch_list_find(&sample->processes, first), *busiest = NULL;
        for (size_t i = 0; i < sample->processes.n; i++) {
            const stk_watch_process *p = stk_watch_process_at(sample, i);
            if ((p->parent == first || !self) && p->id != first && (!busiest || p->cpu_us > busiest->cpu_us))
                busiest = p;
        }
        /* A launcher has loaded much, too, and then waits for those that it started. */
        bool launches = self && busiest && self->wait == STK_WATCH_WAIT_CHILD && self->cpu_us < busiest->cpu_us;
        if (!busiest || (self && !launches && (self->cpu_us > 300000 || self->cpu_us * 50 > busiest->cpu_us)))
            return first;
        first = busiest->id;
    }
    return first;
}

typedef struct cast {
    bool by_gpu;
    int64_t trainer;
} cast;

static bool is_trainer(const cast *roles, const stk_watch_process *process)
{
    return roles->by_gpu ? process->holds_gpu == 1 : process->id == roles->trainer;
}

static int64_t find_driver_process(const stk_watch_sample *sample, const cast *roles)
{
    for (size_t i = 0; i < sample->processes.n && roles->by_gpu; i++)
        if (is_trainer(roles, stk_watch_process_at(sample, i))) return stk_watch_process_at(sample, i)->id;
    return roles->trainer;
}

/* --- processes and threads --- */

/* The waits of the threads that feed: of the workers where there are any, or else of the trainer's. */
typedef struct waits {
    double n, disk, remote, swap;
} waits;

static void count_wait(waits *w, int64_t wait)
{
    w->n++;
    w->disk += wait == STK_WATCH_WAIT_DISK || wait == STK_WATCH_WAIT_DISK_OUT;
    w->remote += wait == STK_WATCH_WAIT_REMOTE;
    w->swap += wait == STK_WATCH_WAIT_SWAP;
}

static bool is_storage(int64_t wait)
{
    return wait == STK_WATCH_WAIT_DISK || wait == STK_WATCH_WAIT_DISK_OUT || wait == STK_WATCH_WAIT_REMOTE ||
           wait == STK_WATCH_WAIT_SWAP;
}

static void note_gone(stk_watch_history *history, const stk_watch_sample *now)
{
    const stk_watch_sample *before = &history->last;
    for (size_t i = 0; i < before->processes.n; i++) {
        const stk_watch_process *p = stk_watch_process_at(before, i);
        if (stk_watch_list_find(&now->processes, p->id) || !stk_watch_list_find(&now->processes, p->parent)) continue;
        /* The oldest gives way: its parent had time enough to wait for it. */
        if (history->n_credits == STK_WATCH_CREDITS)
            memmove(history->credit, history->credit + 1, --history->n_credits * sizeof(history->credit[0]));
        history->credit[history->n_credits++] =
            (stk_watch_credit){p->parent, p->cpu_us, p->asked_kb, p->read_kb, p->put_kb, p->written_kb};
    }
}

/* How much a counter grew, without what is in the account of a child, of which that much is taken. */
static int64_t grow(int64_t before, int64_t now, int64_t *counted)
{
    if (before < 0 || now < before) return -1;
    int64_t grown = now - before, known = *counted > 0 ? *counted : 0;
    if (known > grown) known = grown;
    *counted -= known;
    return grown - known;
}

/* Bytes that were read and written, and time on cores of children that nobody saw. */
static void add_inherited(stk_watch_history *history, stk_watch_row *row, const stk_watch_process *before,
                          const stk_watch_process *now)
{
    stk_watch_credit sum = {0, 0, 0, 0, 0, 0};
    int n_left = 0;
    for (int i = 0; i < history->n_credits; i++) {
        const stk_watch_credit *c = &history->credit[i];
        if (c->parent != now->id) {
            history->credit[n_left++] = *c;
            continue;
        }
        sum.cpu_us += c->cpu_us;
        sum.asked_kb += c->asked_kb;
        sum.read_kb += c->read_kb;
        sum.put_kb += c->put_kb;
        sum.written_kb += c->written_kb;
    }
    history->n_credits = n_left;
    const double to_mb = 1.0 / 1024 / row->length_s;
    int64_t unseen_us = grow(before->children_us, now->children_us, &sum.cpu_us);
    int64_t asked = grow(before->asked_kb, now->asked_kb, &sum.asked_kb);
    int64_t read = grow(before->read_kb, now->read_kb, &sum.read_kb);
    int64_t put = grow(before->put_kb, now->put_kb, &sum.put_kb);
    int64_t written = grow(before->written_kb, now->written_kb, &sum.written_kb);
    if (unseen_us > 0) row->unseen += (double)unseen_us * 1e-6 / row->length_s;
    if (unseen_us > 0) row->cores += (double)unseen_us * 1e-6 / row->length_s;
    row->asked_mbs += asked < 0 ? NAN : (double)asked * to_mb;
    row->read_mbs += read < 0 ? NAN : (double)read * to_mb;
    /* What is written to pipes and sockets makes no pages dirty. */
    row->put_mbs += written < 0 ? NAN : (double)(written < put ? written : put) * to_mb;
    row->sent_mbs += put < 0 || written < 0 ? NAN : (double)(put > written ? put - written : 0) * to_mb;
    /* What is left was not waited for yet. */
    sum.parent = now->id;
    bool has_left = sum.cpu_us > 0 || sum.asked_kb > 0 || sum.read_kb > 0 || sum.put_kb > 0 || sum.written_kb > 0;
    if (has_left && history->n_credits < STK_WATCH_CREDITS) history->credit[history->n_credits++] = sum;
}

static void add_process_rates(stk_watch_history *history, stk_watch_row *row, const stk_watch_process *before,
                              const stk_watch_process *now)
{
    double s = row->length_s;
    row->cores += fmax(0, rate(before->cpu_us, now->cpu_us, s)) * 1e-6;
    add_inherited(history, row, before, now);
    row->faults += rate(before->major_faults, now->major_faults, s);
}

static void add_processes(stk_watch_history *history, stk_watch_row *row, const stk_watch_sample *now,
                          const cast *roles, waits *workers)
{
    const stk_watch_sample *before = &history->last;
    static const stk_watch_process none = {.id = 0}; /* all counters at 0 */
    double n_workers = 0, ready = 0;
    row->unseen = row->resident_mb = row->own_mb = row->code_kbs = 0;
    row->cores = row->asked_mbs = row->read_mbs = row->put_mbs = row->sent_mbs = row->faults = row->trainer =
        row->main = 0;
    row->allowed = NAN;
    for (size_t i = 0; i < now->processes.n; i++) {
        const stk_watch_process *p = stk_watch_process_at(now, i);
        const stk_watch_process *old = stk_watch_list_find(&before->processes, p->id);
        row->resident_mb += p->resident_kb > 0 ? (double)p->resident_kb / 1024 : 0;
        int64_t own_kb = p->anonymous_kb >= 0 ? p->anonymous_kb : p->resident_kb;
        row->own_mb += own_kb > 0 ? (double)own_kb / 1024 : 0;
        bool is_new = (!old || old->start_ticks != p->start_ticks) && stk_watch_list_find(&now->processes, p->parent);
        /* What it has done so far it did since the last sample: it was started then. */
        if (is_new && p->cpu_us >= 0) add_process_rates(history, row, &none, p);
        if (!old || old->start_ticks != p->start_ticks || old->cpu_us < 0) continue;
        add_process_rates(history, row, old, p);
        if (is_trainer(roles, p) && old->code_kb >= 0 && p->code_kb > old->code_kb)
            row->code_kbs += (double)(p->code_kb - old->code_kb) / row->length_s;
        double main_share = rate(old->main_us, p->main_us, row->length_s) * 1e-6;
        if (is_trainer(roles, p)) {
            row->trainer += fmax(0, rate(old->cpu_us, p->cpu_us, row->length_s)) * 1e-6;
            row->main = fmax(row->main, main_share);
            row->locked = p->wait == STK_WATCH_WAIT_LOCK || p->wait == STK_WATCH_WAIT_PEER ||
                          p->wait == STK_WATCH_WAIT_DEVICE ||
                          (p->wait >= STK_WATCH_WAIT_NET && p->wait <= STK_WATCH_WAIT_FILE_LOCK);
            row->allowed = p->n_allowed_cpus > 0 ? (double)p->n_allowed_cpus : NAN;
            continue;
        }
        double main_ready = main_share + fmax(0, rate(old->main_waited_us, p->main_waited_us, row->length_s)) * 1e-6;
        /* Shells and servers that sleep feed nobody. */
        if (main_ready < 0.02 && !is_storage(p->wait)) continue;
        n_workers++;
        ready += fmin(1, main_ready);
        count_wait(workers, p->wait);
    }
    row->n_workers = n_workers;
    row->workers = n_workers ? ready / n_workers : 0;
}

/* Ranks are processes of one parent that are connected with each other: who has worked most so far, and least. */
static void add_ranks(stk_watch_row *row, const stk_watch_sample *before, const stk_watch_sample *now)
{
    const stk_watch_process *most = NULL, *least = NULL;
    double n = 0;
    for (size_t i = 0; i < now->processes.n; i++) {
        const stk_watch_process *p = stk_watch_process_at(now, i);
        if (p->talks != 1 || p->cpu_us < 0 || (most && p->parent != most->parent)) continue;
        n++;
        if (!most || p->cpu_us > most->cpu_us) most = p;
        if (!least || p->cpu_us < least->cpu_us) least = p;
    }
    row->n_ranks = n;
    if (n < 2) return;
    const stk_watch_process *old = stk_watch_list_find(&before->processes, most->id),
                            *old_least = stk_watch_list_find(&before->processes, least->id);
    if (!old || !old_least) return;
    row->rank_most = rate(old->cpu_us, most->cpu_us, row->length_s) * 1e-6;
    row->rank_least = rate(old_least->cpu_us, least->cpu_us, row->length_s) * 1e-6;
}

/* The share of its time on cores in which it only waits for work. */
static double spin_share(const stk_watch_thread *thread)
{
    return thread->n_looks > 0 ? fmax(0, fmin(1, (double)thread->n_spins / (double)thread->n_looks)) : 0;
}

static void add_threads(stk_watch_row *row, const stk_watch_sample *before, const stk_watch_sample *now,
                        const cast *roles, waits *own)
{
    double ran = 0, waited = 0;
    row->top = row->top_ready = row->shared_threads = row->spins = 0;
    for (size_t i = 0; i < now->threads.n; i++) {
        const stk_watch_thread *t = stk_watch_thread_at(now, i);
        const stk_watch_thread *old = stk_watch_list_find(&before->threads, t->id);
        const stk_watch_process *p = stk_watch_list_find(&now->processes, t->process);
        if (!old || !p || old->cpu_us < 0) continue;
        double cpu = rate(old->cpu_us, t->cpu_us, row->length_s) * 1e-6;
        double ready = rate(old->waited_us, t->waited_us, row->length_s) * 1e-6;
        bool trainer = is_trainer(roles, p);
        int64_t wait = t->id == t->process ? p->wait : t->wait;
        if (trainer && (cpu > 0.02 || t->is_active == 1 || is_storage(wait))) count_wait(own, wait);
        if (!(cpu >= 0)) continue;
        row->top = fmax(row->top, cpu);
        row->top_ready = fmax(row->top_ready, cpu + fmax(0, ready));
        if (trainer && cpu > 0.08 && cpu < 0.8) row->shared_threads++;
        if (trainer) row->spins += cpu * spin_share(t);
        ran += cpu;
        waited += ready;
    }
    row->waiting = waited;
    row->waited = ran + waited > 0.02 ? waited / (ran + waited) : 0;
}

static void add_waits(stk_watch_row *row, const waits *workers, const waits *own)
{
    const waits *w =
        workers->n > 0 && workers->disk + workers->remote + workers->swap >= own->disk + own->remote ? workers : own;
    double n = w->n > 0 ? w->n : 1;
    row->disk_wait = w->disk / n;
    row->remote_wait = w->remote / n;
    row->swap_wait = w->swap / n;
}

/* --- the machine --- */

static void add_machine(stk_watch_row *row, const stk_watch_machine *a, const stk_watch_machine *b)
{
    double s = row->length_s, periods = rate(a->n_periods, b->n_periods, 1);
    row->net_mbs = rate(a->net_received_kb, b->net_received_kb, s) / 1024;
    row->psi_io = rate(a->psi_io_us, b->psi_io_us, s) * 1e-6;
    row->psi_memory = rate(a->psi_memory_us, b->psi_memory_us, s) * 1e-6;
    row->machine_cores = b->n_cpus > 0 ? (double)b->n_cpus : NAN;
    row->machine_busy = rate(a->busy_ms, b->busy_ms, s) * 1e-3;
    row->stolen = rate(a->steal_ms, b->steal_ms, s) * 1e-3;
    row->quota = b->quota_millicores > 0 ? (double)b->quota_millicores / 1000 : NAN;
    row->throttled = 0;
    if (b->quota_millicores > 0) row->throttled = periods > 0 ? rate(a->n_throttled, b->n_throttled, 1) / periods : NAN;
    row->huge_faults = a->huge_faults < 0 ? 0 : rate(a->huge_faults, b->huge_faults, s);
    row->swapping =
        rate(a->swapped_in_pages, b->swapped_in_pages, s) + rate(a->swapped_out_pages, b->swapped_out_pages, s);
    row->memory_full = 1 - share(b->available_kb, b->memory_kb);
    double of_limit = share(b->used_kb, b->limit_kb);
    if (of_limit > 0 && !(of_limit < row->memory_full)) row->memory_full = of_limit;
    row->free_mb = b->available_kb >= 0 ? (double)b->available_kb / 1024 : NAN;
    if (b->limit_kb > 0 && b->used_kb >= 0)
        row->free_mb = fmin(row->free_mb, (double)(b->limit_kb - b->used_kb) / 1024);
    row->limit_hits = rate(a->n_limit_hits, b->n_limit_hits, s);
    double kills = rate(a->group_oom_kills, b->group_oom_kills, 1), all = rate(a->oom_kills, b->oom_kills, 1);
    row->oom_kills = fmax(kills, all);
    row->compilers = b->n_compilers >= 0 ? (double)b->n_compilers : NAN;
    row->lagging_rank = b->ras_lagging_rank >= 0 ? 1 : 0;
    row->late_rank = b->ras_lagging_rank >= 0 ? (double)b->ras_lagging_rank : NAN;
}

static void add_node(stk_watch_row *row, const stk_watch_sample *now, const cast *roles)
{
    row->far_node = NAN;
    if (now->gpus.n == 0) return;
    int64_t node = stk_watch_gpu_at(now, 0)->numa_node;
    for (size_t i = 0; i < now->processes.n && node >= 0; i++) {
        const stk_watch_process *p = stk_watch_process_at(now, i);
        if (is_trainer(roles, p) && p->numa_node >= 0) row->far_node = p->numa_node != node;
    }
}

/* --- rows --- */

/* Row fields are doubles, one after the other. */
enum { N_VALUES = (int)(sizeof(stk_watch_row) / sizeof(double)) };

static void merge(stk_watch_row *into, const stk_watch_row *row)
{
    double *a = (double *)into;
    const double *b = (const double *)row;
    double la = into->length_s, lb = row->length_s;
    for (int i = 2; i < N_VALUES; i++)
        a[i] = isnan(a[i]) ? b[i] : isnan(b[i]) ? a[i] : (a[i] * la + b[i] * lb) / (la + lb);
    into->at_s = row->at_s;
    into->length_s = la + lb;
}

static void put_row(stk_watch_history *history, const stk_watch_row *row)
{
    if (history->n_open++ == 0)
        history->open = *row;
    else
        merge(&history->open, row);
    if (history->n_open < history->n_merged) return;
    history->n_open = 0;
    if (history->n == STK_WATCH_ROWS) {
        for (size_t i = 0; i < STK_WATCH_ROWS / 2; i++) {
            history->row[i] = history->row[2 * i];
            merge(&history->row[i], &history->row[2 * i + 1]);
        }
        history->n /= 2;
        history->n_merged *= 2;
    }
    history->row[history->n++] = history->open;
}

stk_status stk_watch_history_add(stk_watch_history *history, const stk_watch_sample *sample)
{
    const stk_watch_sample *last = &history->last;
    stk_watch_row row;
    waits workers = {0, 0, 0, 0}, own = {0, 0, 0, 0};
    for (int i = 0; i < N_VALUES; i++)
        ((double *)&row)[i] = NAN;
    if (history->n_gpus < (double)sample->gpus.n) history->n_gpus = (double)sample->gpus.n;
    if (history->first_pid == 0) history->first_pid = find_first(sample);
    if (history->has_last && sample->time_us > last->time_us && sample->processes.n > 0) {
        cast roles = {holds_gpu(sample), find_trainer(sample, history->first_pid)};
        row.at_s = (double)sample->time_us * 1e-6;
        row.length_s = (double)(sample->time_us - last->time_us) * 1e-6;
        if (sample->gpus.n > 0) add_gpus(&row, sample);
        add_energy(history, sample, row.length_s);
        note_gone(history, sample);
        add_processes(history, &row, sample, &roles, &workers);
        add_ranks(&row, last, sample);
        add_threads(&row, last, sample, &roles, &own);
        int64_t driver = stk_watch_find_driver(history, sample, find_driver_process(sample, &roles));
        history->drives_pid = driver;
        stk_watch_account_add(history, &row, sample, driver);
        add_waits(&row, &workers, &own);
        add_machine(&row, &last->machine, &sample->machine);
        add_node(&row, sample, &roles);
        put_row(history, &row);
    }
    history->has_last = true;
    return stk_watch_sample_copy(&history->last, sample);
}
