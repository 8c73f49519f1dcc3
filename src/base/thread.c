/* See base/thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/error.h"

typedef struct start_args {
    void (*run)(void *);
    void *arg;
    bool low_priority;
    char name[16];
} start_args;

static void *thread_main(void *p)
{
    start_args args = *(start_args *)p;
    free(p);
    pthread_setname_np(pthread_self(), args.name);
    /* On Linux the nice value belongs to the thread. Failing to lower it costs speed only. */
    if (args.low_priority) setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5);
    args.run(args.arg);
    return NULL;
}

stk_status stk_thread_start(stk_thread *thread, const char *name, bool low_priority, void (*run)(void *), void *arg)
{
    start_args *args = malloc(sizeof(*args));
    if (!args) return stk_fail_memory(sizeof(*args));
    *args = (start_args){.run = run, .arg = arg, .low_priority = low_priority};
    snprintf(args->name, sizeof(args->name), "%s", name);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int error = pthread_create(&thread->handle, NULL, thread_main, args);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        free(args);
        return stk_fail(STK_NO_MEMORY, "cannot start thread '%s': %s", name, stk_errno_text(error));
    }
    thread->started = true;
    return STK_OK;
}

void stk_thread_join(stk_thread *thread)
{
    if (!thread->started) return;
    pthread_join(thread->handle, NULL);
    thread->started = false;
}

stk_status stk_mutex_init(stk_mutex *mutex)
{
    int error = pthread_mutex_init(mutex, NULL);
    return error ? stk_fail(STK_NO_MEMORY, "cannot make a lock: %s", stk_errno_text(error)) : STK_OK;
}

void stk_mutex_destroy(stk_mutex *mutex)
{
    pthread_mutex_destroy(mutex);
}

void stk_mutex_lock(stk_mutex *mutex)
{
    pthread_mutex_lock(mutex);
}

void stk_mutex_unlock(stk_mutex *mutex)
{
    pthread_mutex_unlock(mutex);
}

stk_status stk_cond_init(stk_cond *cond)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (!error) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        error = pthread_cond_init(cond, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    return error ? stk_fail(STK_NO_MEMORY, "cannot make a condition: %s", stk_errno_text(error)) : STK_OK;
}

void stk_cond_destroy(stk_cond *cond)
{
    pthread_cond_destroy(cond);
}

void stk_cond_wait(stk_cond *cond, stk_mutex *mutex)
{
    pthread_cond_wait(cond, mutex);
}

bool stk_cond_wait_ms(stk_cond *cond, stk_mutex *mutex, int timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(cond, mutex, &t) != ETIMEDOUT;
}

void stk_cond_signal(stk_cond *cond)
{
    pthread_cond_signal(cond);
}

void stk_cond_broadcast(stk_cond *cond)
{
    pthread_cond_broadcast(cond);
}

void stk_once_run(stk_once *once, void (*init)(void))
{
    pthread_once(once, init);
}

/* Of a process, 0: this one. A machine may have more processors than the ordinary set has room for. */
static int count_allowed(pid_t process)
{
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC(most);
        if (!set) return 1;
        bool fits = sched_getaffinity(process, CPU_ALLOC_SIZE(most), set) == 0;
        int n = fits ? CPU_COUNT_S(CPU_ALLOC_SIZE(most), set) : 1;
        CPU_FREE(set);
        if (fits || errno != EINVAL) return n;
    }
    return 1;
}

int stk_n_cores(void)
{
    return stk_n_cores_of(1);
}

int stk_n_cores_of(int n)
{
    char groups[8192];
    stk_cgroup_read_groups(groups, sizeof(groups));
    int allowed = count_allowed(0);
    int all = n > 1 ? count_allowed(getppid()) : allowed, share = (all > allowed ? all : allowed) / n;
    int most = share < allowed ? share : allowed;
    double limit = ceil(stk_cgroup_cores(groups, "/sys/fs/cgroup") / n - 0.01);
    if (limit < most) most = (int)limit;
    return most < 1 ? 1 : most;
}
