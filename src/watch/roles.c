#include "watch/roles.h"

#include <math.h>
#include <string.h>

#define STATES(X)                                                                                                      \
    X(USER, "computes", "user")                                                                                        \
    X(FAULTS, "page faults", "page_faults")                                                                            \
    X(SYSTEM, "kernel", "system")                                                                                      \
    X(READY, "waits for a core", "ready")                                                                              \
    X(DISK, "disk", "disk")                                                                                            \
    X(WRITE, "writes files", "write")                                                                                  \
    X(REMOTE, "remote files", "remote")                                                                                \
    X(NET, "network", "network")                                                                                       \
    X(PIPE, "pipe", "pipe")                                                                                            \
    X(OUTPUT, "output", "output")                                                                                      \
    X(LOCK, "lock", "lock")                                                                                            \
    X(FILE_LOCK, "lock of a file", "file_lock")                                                                        \
    X(CHILD, "a child's end", "child")                                                                                 \
    X(TIMER, "timer", "timer")                                                                                         \
    X(DEVICE, "GPU's driver", "device")                                                                                \
    X(OTHER, "asleep otherwise", "other")

static const struct {
    const char *text, *name;
} states[STK_WATCH_STATES] = {
#define X(state, text, name) [STK_WATCH_STATE_##state] = {text, name},
    STATES(X)
#undef X
};

static const char *const roles[STK_WATCH_ROLES] = {"driver", "helpers", "workers", "feeders", "writers"};

const char *stk_watch_role_name(stk_watch_role role)
{
    return roles[role];
}

const char *stk_watch_state_text(stk_watch_state state)
{
    return states[state].text;
}

const char *stk_watch_state_name(stk_watch_state state)
{
    return states[state].name;
}

/* --- who is what --- */

static bool descends(const stk_watch_sample *now, const stk_watch_process *process, int64_t from)
{
    for (int depth = 0; process && depth < 8; depth++) {
        if (process->parent == from) return true;
        process = stk_watch_list_find(&now->processes, process->parent);
    }
    return false;
}

/* A thread that was seen waiting for files to be written more than twice. */
static bool is_writing_thread(stk_watch_history *history, const stk_watch_thread *thread)
{
    enum { SEEN = 3 };
    bool waits = thread->is_asleep == 1 && thread->wait == STK_WATCH_WAIT_DISK_OUT;
    for (int i = 0; i < STK_WATCH_WRITERS; i++) {
        stk_watch_writer *w = &history->writer[i];
        if (w->n == 0 || w->thread != thread->id) continue;
        w->n += waits;
        return w->n >= SEEN;
    }
    if (waits) history->writer[history->n_writers++ % STK_WATCH_WRITERS] = (stk_watch_writer){thread->id, 1};
    return false;
}

/* One that writes a megabyte and more to files, and more than half of what it reads. */
static bool is_writing_process(const stk_watch_process *process)
{
    return process->written_kb > 1024 && process->written_kb > process->asked_kb / 2;
}

static stk_watch_role role_of(stk_watch_history *history, const stk_watch_sample *now, const stk_watch_thread *thread,
                              const stk_watch_process *process, int64_t driver)
{
    if (thread->id == driver) return STK_WATCH_ROLE_DRIVER;
    if (process->id == driver)
        return is_writing_thread(history, thread) ? STK_WATCH_ROLE_WRITERS : STK_WATCH_ROLE_HELPERS;
    if (is_writing_process(process)) return STK_WATCH_ROLE_WRITERS;
    return descends(now, process, driver) ? STK_WATCH_ROLE_WORKERS : STK_WATCH_ROLE_FEEDERS;
}

/* --- what it is at --- */

static stk_watch_state state_of(int64_t wait)
{
    switch (wait) {
    case STK_WATCH_WAIT_DISK:
    case STK_WATCH_WAIT_SWAP: return STK_WATCH_STATE_DISK;
    case STK_WATCH_WAIT_DISK_OUT: return STK_WATCH_STATE_WRITE;
    case STK_WATCH_WAIT_REMOTE: return STK_WATCH_STATE_REMOTE;
    case STK_WATCH_WAIT_NET: return STK_WATCH_STATE_NET;
    case STK_WATCH_WAIT_PIPE_IN: return STK_WATCH_STATE_PIPE;
    case STK_WATCH_WAIT_PIPE_OUT: return STK_WATCH_STATE_OUTPUT;
    case STK_WATCH_WAIT_LOCK: return STK_WATCH_STATE_LOCK;
    case STK_WATCH_WAIT_FILE_LOCK: return STK_WATCH_STATE_FILE_LOCK;
    case STK_WATCH_WAIT_CHILD: return STK_WATCH_STATE_CHILD;
    case STK_WATCH_WAIT_SLEEP: return STK_WATCH_STATE_TIMER;
    case STK_WATCH_WAIT_DEVICE: return STK_WATCH_STATE_DEVICE;
    default: return STK_WATCH_STATE_OTHER;
    }
}

static double share_of(int64_t before, int64_t now, double length_s)
{
    return before < 0 || now < before ? 0 : (double)(now - before) * 1e-6 / length_s;
}

void stk_watch_roles_clear(stk_watch_row *row)
{
    memset(row->role_threads, 0, sizeof(row->role_threads));
    memset(row->role_faults, 0, sizeof(row->role_faults));
    memset(row->role, 0, sizeof(row->role));
}

/* A row has sums over the threads of a role: of time on cores, and of looks at what they sleep for. */
void stk_watch_roles_add(stk_watch_history *history, stk_watch_row *row, const stk_watch_sample *now,
                         const stk_watch_thread *thread, const stk_watch_thread *old, int64_t driver)
{
    double runs = fmin(1, share_of(old->cpu_us, thread->cpu_us, row->length_s)),
           ready = fmin(1, share_of(old->waited_us, thread->waited_us, row->length_s));
    bool is_first = thread->id == thread->process;
    bool works = thread->is_active == 1 || runs + ready > 0.005 || thread->id == driver;
    /* Shells and pools that were never used have no part in it, and of thousands of threads most sleep. */
    if (old->cpu_us < 0 || (!works && !is_first)) return;
    const stk_watch_process *process = stk_watch_list_find(&now->processes, thread->process);
    if (!process || (!works && process->cpu_us <= 20000)) return;
    stk_watch_role role = role_of(history, now, thread, process, driver);
    if (!works && role != STK_WATCH_ROLE_WORKERS) return;
    double *x = row->role[role];
    row->role_threads[role]++;
    x[STK_WATCH_STATE_USER] += runs;
    x[STK_WATCH_STATE_READY] += ready;
    x[STK_WATCH_STATE_SYSTEM] += share_of(old->system_us, thread->system_us, row->length_s);
    if (old->minor_faults >= 0 && thread->minor_faults > old->minor_faults)
        row->role_faults[role] += (double)(thread->minor_faults - old->minor_faults) / row->length_s;
    /* Where it was not looked at, as in a process of many threads, the process was. */
    bool is_seen = thread->is_asleep >= 0 || is_first;
    bool is_asleep = thread->is_asleep < 0 ? process->wait != STK_WATCH_WAIT_UNKNOWN : thread->is_asleep == 1;
    if (is_seen && is_asleep) x[state_of(thread->is_asleep < 0 ? process->wait : thread->wait)]++;
}

/* --- means --- */

double stk_watch_role_mean(const stk_watch_span *s, stk_watch_role role, double share[STK_WATCH_STATES])
{
    double n = stk_watch_mean(s, STK_WATCH_FIELD(role_threads) + (size_t)role * sizeof(double)), asleep = 0;
    memset(share, 0, STK_WATCH_STATES * sizeof(*share));
    if (!(n > 0)) return 0;
    for (int k = 0; k < STK_WATCH_STATES; k++)
        share[k] = stk_watch_mean(s, STK_WATCH_ROLE_FIELD(role, k)) / n;
    double runs = fmin(1, share[STK_WATCH_STATE_USER]), system = fmin(runs, share[STK_WATCH_STATE_SYSTEM]);
    /* As in the driver's account: a fault takes 0.4 us at the least. */
    bool are_faults = stk_watch_mean(s, STK_WATCH_ROLE_FAULTS(role)) / n * 4e-7 > 0.1 * system;
    share[STK_WATCH_STATE_USER] = runs - system;
    share[STK_WATCH_STATE_FAULTS] = are_faults ? system : 0;
    share[STK_WATCH_STATE_SYSTEM] = are_faults ? 0 : system;
    share[STK_WATCH_STATE_READY] = fmin(1 - runs, share[STK_WATCH_STATE_READY]);
    /* What is left of the time is divided by what they slept for when looked at. */
    double left = fmax(0, 1 - runs - share[STK_WATCH_STATE_READY]);
    for (int k = STK_WATCH_STATE_DISK; k < STK_WATCH_STATES; k++)
        asleep += share[k];
    for (int k = STK_WATCH_STATE_DISK; k < STK_WATCH_STATES; k++)
        share[k] = asleep > 0 ? share[k] / asleep * left : k == STK_WATCH_STATE_OTHER ? left : 0;
    return n;
}
