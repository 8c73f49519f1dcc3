/* Threads, locks and conditions: the only user of pthreads besides thread_pool.c. */
#ifndef STK_BASE_THREAD_H
#define STK_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "stoker/status.h"

typedef struct stk_thread {
    pthread_t handle;
    bool started;
} stk_thread;

typedef pthread_mutex_t stk_mutex;
typedef pthread_cond_t stk_cond; /* on the monotonic clock */

/* Starts run(arg) under name (15 characters are shown by the system) with all signals blocked, so that they reach the
 * main thread. low_priority: yields to threads of normal priority when cores are fewer than threads. */
stk_status stk_thread_start(stk_thread *thread, const char *name, bool low_priority, void (*run)(void *), void *arg);
/* Waits for the end. Does nothing for a thread that never started. */
void stk_thread_join(stk_thread *thread);

stk_status stk_mutex_init(stk_mutex *mutex);
void stk_mutex_destroy(stk_mutex *mutex);
void stk_mutex_lock(stk_mutex *mutex);
void stk_mutex_unlock(stk_mutex *mutex);

stk_status stk_cond_init(stk_cond *cond);
void stk_cond_destroy(stk_cond *cond);
void stk_cond_wait(stk_cond *cond, stk_mutex *mutex);
/* False when timeout_ms passed first. */
bool stk_cond_wait_ms(stk_cond *cond, stk_mutex *mutex, int timeout_ms);
void stk_cond_signal(stk_cond *cond);
void stk_cond_broadcast(stk_cond *cond);

/* Runs init once in the process, whoever comes first; the others wait for it. */
typedef pthread_once_t stk_once;
#define STK_ONCE_INIT PTHREAD_ONCE_INIT
void stk_once_run(stk_once *once, void (*init)(void));

/* How many cores this process may use: by its affinity, and by the quotas of its control groups and of those around
 * them, rounded up; at least 1. */
int stk_n_cores(void);
/* Those of one of n processes alike that a launcher, its parent, has started on this host: its part of the quotas and
 * of the launcher's cores, and of these only what it has been bound to. */
int stk_n_cores_of(int n);

#endif
