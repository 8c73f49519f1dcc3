/* Ranks that are threads of one process: each lays its buffers out for the others. Once all have, the call is cut into
 * as many parts as there are ranks, and those that wait claim them. A part is one range of elements for all ranks, so
 * that what is read and written by two parts lies apart, also where a result goes where its source was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "comm/sum.h"

typedef struct slot {
    int64_t number;      /* of the call, from 0; -1: the slot is free */
    stk_comm_call *call; /* [n_ranks] */
    bool *has_come;      /* [n_ranks] */
    int n_come, n_claimed, n_done, n_left;
} slot;

typedef struct group {
    int n_ranks;
    stk_mutex lock; /* guards all that follows, and the slots */
    stk_cond changed;
    int n_open;
    slot slot[STK_COMM_MOST_CALLS];
    stk_status failed; /* the first failure, for all */
    char error[512];
} group;

typedef struct local_comm {
    stk_comm base;
    group *group;
    int64_t n_started;
} local_comm;

/* --- the work --- */

/* Elements [src_at, src_at + n) of all sources, into the results of ranks [first, end). */
static void add(const slot *s, int n_ranks, int64_t src_at, int64_t n, int first, int end, int64_t dst_at)
{
    enum { BLOCK = 1024 }; /* read from all ranks before it is written to any */
    char sum[BLOCK * 8];
    const void *src[STK_MOST_LOCAL];
    size_t element = stk_dtype_bytes(s->call[0].dtype);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t here = n - at < BLOCK ? n - at : BLOCK;
        for (int r = 0; r < n_ranks; r++)
            src[r] = (const char *)s->call[r].src + (size_t)(src_at + at) * element;
        stk_comm_sum(s->call[0].dtype, sum, src, n_ranks, here, s->call[0].mean);
        for (int r = first; r < end; r++)
            memcpy((char *)s->call[r].dst + (size_t)(dst_at + at) * element, sum, (size_t)here * element);
    }
}

static void move(const stk_comm_call *to, int64_t dst_at, const void *src, int64_t n)
{
    size_t element = stk_dtype_bytes(to->dtype);
    char *dst = (char *)to->dst + (size_t)dst_at * element;
    if (n > 0 && dst != src) memcpy(dst, src, (size_t)n * element);
}

static void do_part(const slot *s, int n_ranks, int p)
{
    const stk_comm_call *call = &s->call[0];
    int64_t n = call->n, begin = n * p / n_ranks, end = n * (p + 1) / n_ranks;
    switch (call->kind) {
    case STK_COLLECTIVE_all_reduce: add(s, n_ranks, begin, end - begin, 0, n_ranks, begin); break;
    case STK_COLLECTIVE_reduce_scatter: add(s, n_ranks, n * p, n, p, p + 1, 0); break;
    case STK_COLLECTIVE_all_gather:
        for (int r = 0; r < n_ranks; r++)
            move(&s->call[r], n * p, s->call[p].src, n);
        break;
    case STK_COLLECTIVE_broadcast:
        for (int r = 0; r < n_ranks; r++)
            move(&s->call[r], begin,
                 (const char *)s->call[call->root].src + (size_t)begin * stk_dtype_bytes(call->dtype), end - begin);
        break;
    default: break;
    }
}

/* --- starting and waiting; the lock is held --- */

static stk_status fail_group(group *g, stk_status status)
{
    if (g->failed == STK_OK) {
        g->failed = status;
        snprintf(g->error, sizeof(g->error), "%s", stk_error_text());
        stk_cond_broadcast(&g->changed);
    }
    return status;
}

static stk_status failure_of(const group *g)
{
    return g->failed == STK_OK ? STK_OK : stk_fail(g->failed, "%s", g->error);
}

static bool is_same(const stk_comm_call *a, const stk_comm_call *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->n == b->n && a->root == b->root && a->mean == b->mean;
}

static stk_status come(group *g, int rank, int64_t number, const stk_comm_call *call)
{
    slot *s = &g->slot[number % STK_COMM_MOST_CALLS];
    STK_RETURN_IF_ERROR(failure_of(g));
    if (s->number >= 0 && s->number != number)
        return stk_fail(STK_BUSY, "%s number %lld has not been waited for by all ranks",
                        stk_collective_name(s->call[0].kind), (long long)s->number);
    s->number = number;
    for (int r = 0; r < g->n_ranks; r++)
        if (s->has_come[r] && !is_same(&s->call[r], call))
            return fail_group(
                g, stk_fail(STK_MISMATCH, "call number %lld is %s of %lld %s on rank %d and %s of %lld %s on rank %d",
                            (long long)number, stk_collective_name(s->call[r].kind), (long long)s->call[r].n,
                            stk_dtype_name(s->call[r].dtype), r, stk_collective_name(call->kind), (long long)call->n,
                            stk_dtype_name(call->dtype), rank));
    s->call[rank] = *call;
    s->has_come[rank] = true;
    if (++s->n_come == g->n_ranks) stk_cond_broadcast(&g->changed);
    return STK_OK;
}

static stk_status fail_late(group *g, const slot *s, int rank, int timeout_ms)
{
    stk_text absent = {0};
    for (int r = 0; r < g->n_ranks; r++)
        if (!s->has_come[r]) stk_text_add(&absent, absent.n ? ", %d" : "%d", r);
    stk_status status = stk_fail(STK_LOST, "%s number %lld: rank %s did not come within %d ms of rank %d's waiting",
                                 stk_collective_name(s->call[rank].kind), (long long)s->number, stk_text_get(&absent),
                                 timeout_ms, rank);
    stk_text_free(&absent);
    return fail_group(g, status);
}

/* Returns when all ranks have come. */
static stk_status await_all(group *g, const slot *s, int rank, int timeout_ms)
{
    int64_t deadline = stk_clock_ns() + (int64_t)timeout_ms * 1000000;
    while (s->n_come < g->n_ranks) {
        STK_RETURN_IF_ERROR(failure_of(g));
        int64_t left_ms = (deadline - stk_clock_ns() + 999999) / 1000000;
        if (timeout_ms > 0 && left_ms <= 0) return fail_late(g, s, rank, timeout_ms);
        if (timeout_ms > 0)
            stk_cond_wait_ms(&g->changed, &g->lock, (int)left_ms);
        else
            stk_cond_wait(&g->changed, &g->lock);
    }
    return STK_OK;
}

static void work(group *g, slot *s)
{
    while (s->n_claimed < g->n_ranks) {
        int p = s->n_claimed++;
        stk_mutex_unlock(&g->lock);
        do_part(s, g->n_ranks, p);
        stk_mutex_lock(&g->lock);
        if (++s->n_done == g->n_ranks) stk_cond_broadcast(&g->changed);
    }
    while (s->n_done < g->n_ranks)
        stk_cond_wait(&g->changed, &g->lock);
}

static void clear(const group *g, slot *s)
{
    memset(s->has_come, 0, (size_t)g->n_ranks * sizeof(*s->has_come));
    s->n_come = s->n_claimed = s->n_done = s->n_left = 0;
    s->number = -1;
}

static void leave(const group *g, slot *s)
{
    if (++s->n_left == g->n_ranks) clear(g, s);
}

static stk_status start(stk_comm *base, const stk_comm_call *call, int64_t *number)
{
    local_comm *comm = (local_comm *)base;
    stk_mutex_lock(&comm->group->lock);
    stk_status status = come(comm->group, base->rank, comm->n_started, call);
    if (status == STK_OK) *number = comm->n_started++;
    stk_mutex_unlock(&comm->group->lock);
    return status;
}

static stk_status wait_for(stk_comm *base, int64_t number, int timeout_ms)
{
    group *g = ((local_comm *)base)->group;
    slot *s = &g->slot[(number < 0 ? 0 : number) % STK_COMM_MOST_CALLS];
    stk_status status = STK_OK;
    stk_mutex_lock(&g->lock);
    if (number < 0 || s->number != number || !s->has_come[base->rank])
        STK_TRY(stk_fail(STK_INVALID, "there is no call number %lld to wait for", (long long)number));
    STK_TRY(await_all(g, s, base->rank, timeout_ms));
    work(g, s);
    leave(g, s);
done:
    stk_mutex_unlock(&g->lock);
    return status;
}

static void abort_group(stk_comm *base, const char *why)
{
    group *g = ((local_comm *)base)->group;
    stk_mutex_lock(&g->lock);
    (void)fail_group(g, stk_fail(STK_LOST, "replica %d failed: %s", base->rank, why));
    stk_mutex_unlock(&g->lock);
}

/* --- opening and closing --- */

static void free_group(group *g)
{
    for (int i = 0; i < STK_COMM_MOST_CALLS; i++) {
        free(g->slot[i].call);
        free(g->slot[i].has_come);
    }
    stk_cond_destroy(&g->changed);
    stk_mutex_destroy(&g->lock);
    free(g);
}

static void close_local(stk_comm *base)
{
    group *g = ((local_comm *)base)->group;
    stk_mutex_lock(&g->lock);
    bool is_last = --g->n_open == 0;
    stk_mutex_unlock(&g->lock);
    if (is_last) free_group(g);
    free(base);
}

void stk_comm_renew_local(int n_ranks, stk_comm *const *comm)
{
    group *g = ((local_comm *)comm[0])->group;
    stk_mutex_lock(&g->lock);
    g->failed = STK_OK;
    for (int i = 0; i < STK_COMM_MOST_CALLS; i++)
        clear(g, &g->slot[i]);
    for (int r = 0; r < n_ranks; r++)
        ((local_comm *)comm[r])->n_started = 0;
    stk_mutex_unlock(&g->lock);
}

static const stk_comm_class local_class = {"local", close_local, start, wait_for, abort_group, NULL};

static stk_status new_group(int n_ranks, group **out)
{
    group *g = calloc(1, sizeof(*g));
    if (!g) return stk_fail_memory(sizeof(*g));
    stk_status status = stk_mutex_init(&g->lock);
    if (status == STK_OK && (status = stk_cond_init(&g->changed)) != STK_OK) stk_mutex_destroy(&g->lock);
    if (status != STK_OK) {
        free(g);
        return status;
    }
    g->n_ranks = n_ranks;
    for (int i = 0; i < STK_COMM_MOST_CALLS; i++) {
        slot *s = &g->slot[i];
        s->number = -1;
        s->call = calloc((size_t)n_ranks, sizeof(*s->call));
        s->has_come = calloc((size_t)n_ranks, sizeof(*s->has_come));
        if (s->call && s->has_come) continue;
        free_group(g);
        return stk_fail_memory((size_t)n_ranks * sizeof(*s->call));
    }
    *out = g;
    return STK_OK;
}

stk_status stk_comm_open_local(int n_ranks, stk_comm **out)
{
    group *g = NULL;
    if (n_ranks < 1 || n_ranks > STK_MOST_LOCAL)
        return stk_fail(STK_INVALID, "%d ranks: 1 to %d are possible in one process", n_ranks, STK_MOST_LOCAL);
    STK_RETURN_IF_ERROR(new_group(n_ranks, &g));
    for (int r = 0; r < n_ranks; r++) {
        local_comm *comm = calloc(1, sizeof(*comm));
        if (!comm) {
            stk_status status = stk_fail_memory(sizeof(*comm));
            while (r-- > 0)
                free(out[r]);
            free_group(g);
            return status;
        }
        *comm =
            (local_comm){.base = {.class = &local_class, .rank = r, .n_ranks = n_ranks, .n_here = n_ranks}, .group = g};
        out[r] = &comm->base;
        g->n_open++;
    }
    return STK_OK;
}
