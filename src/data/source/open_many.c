/* See source/open_many.h. */
#include "data/source/open_many.h"

#include <stdio.h>

#include "base/error.h"
#include "base/thread.h"

enum { MOST_THREADS = 16 };

typedef struct opener {
    size_t n;
    stk_open_fn open;
    void *user;
    stk_mutex lock; /* guards what follows */
    size_t next, i_bad;
    stk_status status; /* of i_bad */
    char error[1024];
} opener;

/* Files are taken in order, so that all before one that fails have been taken, too. */
static void run(void *arg)
{
    opener *o = arg;
    stk_mutex_lock(&o->lock);
    while (o->next < o->n && o->status == STK_OK) {
        size_t i = o->next++;
        stk_mutex_unlock(&o->lock);
        stk_status status = o->open(o->user, i);
        stk_mutex_lock(&o->lock);
        if (status == STK_OK || (o->status != STK_OK && o->i_bad < i)) continue;
        o->status = status;
        o->i_bad = i;
        snprintf(o->error, sizeof(o->error), "%s", stk_error_text());
    }
    stk_mutex_unlock(&o->lock);
}

static stk_status open_at_once(size_t n, stk_open_fn open, void *user)
{
    opener o = {.n = n, .open = open, .user = user};
    stk_thread thread[MOST_THREADS] = {0};
    int n_threads = n < MOST_THREADS ? (int)n : MOST_THREADS;
    STK_RETURN_IF_ERROR(stk_mutex_init(&o.lock));
    /* This thread is one of them; those that cannot be had are missed. */
    for (int i = 1; i < n_threads; i++)
        if (stk_thread_start(&thread[i], "stk-open", false, run, &o) != STK_OK) break;
    run(&o);
    for (int i = 1; i < n_threads; i++)
        stk_thread_join(&thread[i]);
    stk_mutex_destroy(&o.lock);
    return o.status == STK_OK ? STK_OK : stk_fail(o.status, "%s", o.error);
}

stk_status stk_open_many(size_t n, bool far, stk_open_fn open, void *user)
{
    if (far && n > 1) return open_at_once(n, open, user);
    for (size_t i = 0; i < n; i++)
        STK_RETURN_IF_ERROR(open(user, i));
    return STK_OK;
}
