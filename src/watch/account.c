#include "watch/account.h"

#include <math.h>
#include <string.h>

#include "watch/roles.h"

int64_t stk_watch_find_driver(stk_watch_history *history, const stk_watch_sample *now, int64_t trainer)
{
    for (size_t i = 0; i < now->threads.n; i++) {
        const stk_watch_thread *t = stk_watch_thread_at(now, i);
        bool takes = t->id == t->process && t->wait == STK_WATCH_WAIT_PIPE_IN && t->peer == trainer;
        /* A worker that waits for its orders is a child of who gives them, and who only notes what is printed (tee)
         * does next to nothing. */
        const stk_watch_process *p = stk_watch_list_find(&now->processes, t->process),
                                *from = stk_watch_list_find(&now->processes, trainer);
        if (takes && p && from && p->parent != trainer && p->cpu_us * 20 > from->cpu_us)
            history->driver_pid = t->process;
    }
    if (history->driver_pid && stk_watch_list_find(&now->processes, history->driver_pid)) return history->driver_pid;
    return trainer;
}

static double share_of(int64_t before, int64_t now, double length_s)
{
    return before < 0 || now < before ? 0 : fmin(1, (double)(now - before) * 1e-6 / length_s);
}

/* Condition variables that more than one thread has waited for with a limit, as Python's threads do for their lock:
 * where it is not known to be that. */
static bool is_shared_word(stk_watch_history *history, const stk_watch_thread *thread)
{
    for (int i = 0; i < STK_WATCH_WORDS; i++) {
        stk_watch_word *w = &history->word[i];
        if (w->word == thread->word && w->process == thread->process) {
            if (w->thread != thread->id) w->is_shared = true;
            return w->is_shared;
        }
    }
    stk_watch_word *oldest = &history->word[history->n_words++ % STK_WATCH_WORDS];
    *oldest = (stk_watch_word){thread->process, thread->word, thread->id, false};
    return false;
}

static bool takes_turns(stk_watch_history *history, const stk_watch_thread *thread)
{
    return thread->at_gil == 1 || (thread->word >= 0 && is_shared_word(history, thread));
}

/* False: it serves nobody, like a notebook's threads that listen to its page. */
static bool has_run_of_late(stk_watch_history *history, const stk_watch_thread *t, const stk_watch_thread *old,
                            double now_s)
{
    const double late_s = 3;
    stk_watch_run *run = &history->run[(uint64_t)t->id % STK_WATCH_RUNS];
    if (t->cpu_us > old->cpu_us) *run = (stk_watch_run){t->id, now_s};
    return run->thread == t->id && now_s - run->at_s < late_s;
}

static void add_beside(stk_watch_history *history, stk_watch_row *row, const stk_watch_thread *t,
                       const stk_watch_thread *old, bool is_of_driver)
{
    double runs = share_of(old->cpu_us, t->cpu_us, row->length_s),
           ready = share_of(old->waited_us, t->waited_us, row->length_s);
    row->beside_busy += runs + ready;
    row->beside_ready += ready;
    if (is_of_driver) row->beside_own += runs + ready;
    if (is_of_driver && t->n_looks > 0)
        row->beside_feeds += (runs + ready) * fmax(0, fmin(1, (double)t->n_feeds / (double)t->n_looks));
    row->beside_top = fmax(row->beside_top, runs);
    /* Locks show up in a thread that works when it has them. */
    if (is_of_driver && takes_turns(history, t)) row->turns = 1;
    bool serves = has_run_of_late(history, t, old, row->at_s);
    if (t->is_asleep != 1) return;
    if (t->wait == STK_WATCH_WAIT_NET && serves) row->beside_net = 1;
    if (t->wait == STK_WATCH_WAIT_DISK) row->beside_disk = 1;
    if (t->wait == STK_WATCH_WAIT_REMOTE) row->beside_remote = 1;
    if (t->wait == STK_WATCH_WAIT_SLEEP) row->beside_timer = 1;
    if (t->wait == STK_WATCH_WAIT_FILE_LOCK) row->beside_file_lock = 1;
}

static void clear(stk_watch_row *row)
{
    row->outside = row->beside_busy = row->beside_top = row->beside_net = row->beside_disk = row->beside_timer = 0;
    row->beside_file_lock = row->beside_ready = row->beside_own = row->beside_remote = row->turns = 0;
    row->at_gil = 0;
    row->beside_feeds = 0;
    row->n_fed = 0;
    stk_watch_roles_clear(row);
}

/* Cores of the driving process's threads that came and went between two listings: what it used and no thread that is
 * known did. Its own time comes in ticks of 10 ms, so that a little may be left by chance. */
static double find_short_lived(const stk_watch_history *history, const stk_watch_row *row,
                               const stk_watch_process *process, double seen)
{
    const double by_chance = 0.1;
    const stk_watch_process *before = stk_watch_list_find(&history->last.processes, process->id);
    if (!before || before->cpu_us < 0 || process->cpu_us < before->cpu_us) return 0;
    return fmax(0, (double)(process->cpu_us - before->cpu_us) * 1e-6 / row->length_s - seen - by_chance);
}

void stk_watch_account_add(stk_watch_history *history, stk_watch_row *row, const stk_watch_sample *now, int64_t driver)
{
    const stk_watch_thread *main = stk_watch_list_find(&now->threads, driver);
    const stk_watch_thread *before = stk_watch_list_find(&history->last.threads, driver);
    const stk_watch_process *process = stk_watch_list_find(&now->processes, driver);
    if (!main || !before || !process || before->cpu_us < 0) return;
    /* Where it was not looked at, as in a process of many threads, the process was. */
    bool is_asleep = main->is_asleep < 0 ? process->wait != STK_WATCH_WAIT_UNKNOWN : main->is_asleep == 1;
    int64_t wait = main->is_asleep < 0 ? process->wait : main->wait;
    clear(row);
    if (is_asleep && wait == STK_WATCH_WAIT_PIPE_IN) row->outside = main->peer == 0;
    stk_watch_roles_add(history, row, now, main, before, driver);
    if (takes_turns(history, main)) row->turns = 1;
    row->at_gil = main->at_gil == 1;
    double seen = share_of(before->cpu_us, main->cpu_us, row->length_s);
    for (size_t i = 0; i < now->threads.n; i++) {
        const stk_watch_thread *t = stk_watch_thread_at(now, i),
                               *old = stk_watch_list_find(&history->last.threads, t->id);
        if (t->id == driver || !old || old->cpu_us < 0) continue;
        add_beside(history, row, t, old, t->process == driver);
        if (t->process == driver) seen += share_of(old->cpu_us, t->cpu_us, row->length_s);
        const stk_watch_process *p = t->id == t->process ? stk_watch_list_find(&now->processes, t->process) : NULL;
        if (p && p->parent == driver && p->cpu_us > 20000) row->n_fed++;
        stk_watch_roles_add(history, row, now, t, old, driver);
    }
    double short_lived = find_short_lived(history, row, process, seen);
    row->beside_busy += short_lived;
    row->beside_own += short_lived;
}
