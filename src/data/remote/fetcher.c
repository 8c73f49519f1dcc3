/* See remote/fetcher.h. */
#include "data/remote/fetcher.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"
#include "base/thread.h"
#include "data/remote/request.h"

enum { FEWEST = 4, AT_FIRST = 8, MOST = 32, QUEUE = 2 * MOST };

typedef struct job {
    stk_fetch_fn fn;
    void *owner;
    uint64_t what;
} job;

static stk_once once = STK_ONCE_INIT;
static stk_status set_up;
static stk_mutex life; /* held while an owner enters or leaves; taken before lock */
static stk_mutex lock;
static stk_cond changed;
static _Atomic bool stop; /* with the last owner */

/* All guarded by lock. */
static int n_owners;
static stk_thread thread[MOST];
static void *running[MOST]; /* the owner whose job a thread does; NULL: it waits */
static int n_threads, n_busy, n_wanted;
static job queue[QUEUE];
static int first, n_queued;
static double least_s, average_s; /* until the first byte */
static bool has_waited;
static int n_until_change; /* requests */

static void init(void)
{
    set_up = stk_mutex_init(&life);
    if (set_up == STK_OK) set_up = stk_mutex_init(&lock);
    if (set_up == STK_OK) set_up = stk_cond_init(&changed);
}

static void run(void *arg)
{
    int i = (int)(intptr_t)arg;
    stk_request_stop_when(&stop);
    stk_mutex_lock(&lock);
    while (!stop) {
        if (n_queued == 0 || n_busy >= n_wanted) {
            stk_cond_wait(&changed, &lock);
            continue;
        }
        job next = queue[first];
        first = (first + 1) % QUEUE;
        n_queued--;
        n_busy++;
        running[i] = next.owner;
        stk_mutex_unlock(&lock);
        next.fn(next.owner, next.what);
        stk_mutex_lock(&lock);
        running[i] = NULL;
        n_busy--;
        stk_cond_broadcast(&changed);
    }
    stk_mutex_unlock(&lock);
}

stk_status stk_fetcher_enter(void)
{
    stk_once_run(&once, init);
    if (set_up != STK_OK) return stk_fail(set_up, "cannot set up threads that fetch ahead");
    stk_mutex_lock(&life);
    stk_mutex_lock(&lock);
    if (n_owners++ == 0) {
        stop = has_waited = false;
        n_wanted = n_until_change = AT_FIRST;
        least_s = average_s = 0;
    }
    stk_mutex_unlock(&lock);
    stk_mutex_unlock(&life);
    return STK_OK;
}

/* The lock is held. */
static void forget(const void *owner)
{
    int n = 0;
    for (int i = 0; i < n_queued; i++) {
        job kept = queue[(first + i) % QUEUE];
        if (kept.owner != owner) queue[(first + n++) % QUEUE] = kept;
    }
    n_queued = n;
}

static bool is_running(const void *owner)
{
    for (int i = 0; i < n_threads; i++)
        if (running[i] == owner) return true;
    return false;
}

void stk_fetcher_leave(void *owner)
{
    stk_mutex_lock(&life);
    stk_mutex_lock(&lock);
    forget(owner);
    if (n_owners == 1) stop = true; /* breaks off what is under way */
    while (is_running(owner))
        stk_cond_wait(&changed, &lock);
    int n_ended = --n_owners == 0 ? n_threads : 0;
    n_threads -= n_ended;
    stk_cond_broadcast(&changed);
    stk_mutex_unlock(&lock);
    for (int i = 0; i < n_ended; i++)
        stk_thread_join(&thread[i]);
    stk_mutex_unlock(&life);
}

/* The lock is held. */
static void start_more(void)
{
    if (n_threads >= MOST || n_threads >= n_wanted || n_busy + n_queued < n_threads) return;
    running[n_threads] = NULL;
    if (stk_thread_start(&thread[n_threads], "stk-fetch", true, run, (void *)(intptr_t)n_threads) == STK_OK)
        n_threads++;
}

bool stk_fetcher_add(stk_fetch_fn fn, void *owner, uint64_t what)
{
    stk_mutex_lock(&lock);
    start_more();
    bool has_room = n_queued < n_wanted && n_threads > 0 && !stop;
    if (has_room) {
        queue[(first + n_queued++) % QUEUE] = (job){fn, owner, what};
        stk_cond_broadcast(&changed);
    }
    stk_mutex_unlock(&lock);
    return has_room;
}

void stk_fetcher_note_wait(void)
{
    stk_mutex_lock(&lock);
    has_waited = true;
    stk_mutex_unlock(&lock);
}

void stk_fetcher_note_latency(double latency_s)
{
    stk_mutex_lock(&lock);
    if (least_s == 0 || latency_s < least_s) least_s = latency_s;
    average_s = average_s > 0 ? 0.8 * average_s + 0.2 * latency_s : latency_s;
    if (--n_until_change <= 0) {
        if (average_s > 3 * least_s + 0.01 && n_wanted > FEWEST)
            n_wanted -= (n_wanted + 7) / 8;
        else if (has_waited && average_s < 2 * least_s + 0.005 && n_wanted < MOST)
            n_wanted += n_wanted / 2;
        if (n_wanted < FEWEST) n_wanted = FEWEST;
        if (n_wanted > MOST) n_wanted = MOST;
        has_waited = false;
        n_until_change = n_wanted;
    }
    stk_mutex_unlock(&lock);
}
