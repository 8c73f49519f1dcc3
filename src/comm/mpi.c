/* Ranks that are processes, started by mpirun, mpiexec or srun: MPI says who is who. On one host the work goes through
 * memory that they share (shared.h), with sums in the order of the ranks; over several hosts MPI does it, without
 * blocking, so that a rank that does not come is missed after a time and not for ever.
 *
 * A call is worked on when it is waited for, after those that were started before it; one that is early goes on in a
 * thread at once, with all before it. Whoever waits works on what nobody works on yet. One thread at a time does.
 *
 *   trains   start 0   start 1   ...compute...   wait 0   wait 1: works on it itself, where the thread is not yet there
 *   thread             [ 0: lay out, add up, take ... ]
 */
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "comm/mpi_process.h"
#include "comm/patience.h"
#include "comm/shared.h"
#include "comm/store.h"
#include "comm/sum.h"
#include "trace/trace.h"

enum { NEWS_TAG = 1, NEWS_BYTES = 600, NOTE_BYTES = 400, STK_MOST_IN_ORDER = 1024 };

typedef struct mpi_comm {
    stk_comm base;
    stk_mpi_process *process;
    const stk_mpi *mpi;
    stk_shared *shared; /* NULL: MPI does the work */
    stk_mutex lock;     /* guards all that follows, up to the failure */
    stk_cond changed;
    stk_thread thread;
    stk_comm_call call[STK_COMM_MOST_CALLS];
    int64_t n_started, n_done, n_early; /* calls before n_early are the thread's, too */
    bool is_working, ends;              /* a thread works on a call, and all of MPI is its; the thread ends */
    stk_status failed;
    char error[NEWS_BYTES];
    stk_pace pace;
    char *room; /* of whoever works: for sums in the order of ranks */
    size_t room_bytes;
    stk_mpi_handle news_request; /* without shared memory: for another rank's failure; NULL: none is awaited */
    char news[NEWS_BYTES], own_news[NEWS_BYTES], note[NOTE_BYTES];
    bool is_told; /* of this rank's failure the others */
} mpi_comm;

static stk_status check(int code, const char *what)
{
    return code == 0 ? STK_OK : stk_fail(STK_DEVICE, "MPI_%s failed with code %d", what, code);
}

/* --- failures of other ranks, where no memory is shared --- */

static stk_status await_news(mpi_comm *c)
{
    const stk_mpi *m = c->mpi;
    return check(STK_MPI_ALONE(c->process, m->Irecv(c->news, NEWS_BYTES, m->byte, m->any_source, NEWS_TAG,
                                                    c->process->side, &c->news_request)),
                 "Irecv");
}

static stk_status look_for_news(mpi_comm *c)
{
    int came = 0;
    if (!c->news_request) return STK_OK;
    STK_RETURN_IF_ERROR(
        check(STK_MPI_ALONE(c->process, c->mpi->Test(&c->news_request, &came, c->mpi->ignore_status)), "Test"));
    if (!came) return STK_OK;
    c->news_request = NULL;
    c->is_told = true;
    c->news[NEWS_BYTES - 1] = 0;
    return stk_fail(STK_LOST, "%s", c->news);
}

/* Messages are seen off, unless a call is under way whose memory may be gone. */
static void send_news(mpi_comm *c, const char *why)
{
    enum { MOST_MS = 1000 };
    stk_patience patience = {0};
    const stk_mpi *m = c->mpi;
    if (c->is_told || c->shared) return;
    c->is_told = true;
    snprintf(c->own_news, NEWS_BYTES, "replica %d failed: %.500s", c->base.rank, why);
    for (int r = 0; r < c->base.n_ranks; r++) {
        stk_mpi_handle request = NULL;
        int sent = c->process->has_unfinished;
        if (r == c->base.rank) continue;
        if (STK_MPI_ALONE(c->process,
                          m->Isend(c->own_news, NEWS_BYTES, m->byte, r, NEWS_TAG, c->process->side, &request)) != 0)
            return;
        while (!sent && !stk_patience_is_over(&patience, MOST_MS)) {
            if (STK_MPI_ALONE(c->process, m->Test(&request, &sent, m->ignore_status)) != 0) return;
            stk_patience_look(&patience, stk_clock_ns());
        }
    }
}

static void stop_news(mpi_comm *c)
{
    int done = 0;
    if (!c->news_request || STK_MPI_ALONE(c->process, c->mpi->Cancel(&c->news_request)) != 0) return;
    while (!done && STK_MPI_ALONE(c->process, c->mpi->Test(&c->news_request, &done, c->mpi->ignore_status)) == 0)
        sched_yield();
}

/* --- calls by MPI --- */

static stk_status await_request(mpi_comm *c, stk_mpi_handle *request, stk_collective kind, int timeout_ms)
{
    enum { N_EAGER = 1000 };
    stk_patience patience = {0};
    int done = 0;
    for (int i = 0; !done; i++) {
        STK_RETURN_IF_ERROR(
            check(STK_MPI_ALONE(c->process, c->mpi->Test(request, &done, c->mpi->ignore_status)), "Test"));
        if (done || (i < N_EAGER && stk_pace_is_eager(&c->pace))) continue;
        STK_RETURN_IF_ERROR(look_for_news(c));
        if (atomic_load_explicit(&c->pace.is_over, memory_order_relaxed))
            return stk_fail(STK_LOST, "the training has ended before its sums");
        if (stk_pace_is_eager(&c->pace))
            sched_yield();
        else
            stk_pace_rest();
        stk_patience_look(&patience, stk_clock_ns());
        if (stk_patience_is_over(&patience, timeout_ms))
            return stk_fail(STK_LOST, "%s number %lld: not all ranks came within %d ms of rank %d's waiting",
                            stk_collective_name(kind), (long long)c->n_done, timeout_ms, c->base.rank);
    }
    return STK_OK;
}

static stk_mpi_handle type_of(const stk_mpi *mpi, stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32: return mpi->f32;
    case STK_F64: return mpi->f64;
    case STK_I32: return mpi->i32;
    default: return mpi->i64;
    }
}

static void divide(const stk_comm_call *call, int n_ranks)
{
    for (int64_t i = 0; i < call->n && call->mean; i++) {
        if (call->dtype == STK_F32)
            ((float *)call->dst)[i] /= (float)n_ranks;
        else
            ((double *)call->dst)[i] /= n_ranks;
    }
}

/* MPI counts in int. */
static stk_status begin(mpi_comm *c, const stk_comm_call *call, stk_mpi_handle *request)
{
    const stk_mpi *m = c->mpi;
    size_t bytes = (size_t)call->n * stk_dtype_bytes(call->dtype);
    const void *src = call->src == call->dst ? m->in_place : call->src;
    if (bytes > INT_MAX) return stk_fail(STK_UNSUPPORTED, "a call of %zu bytes is too large for MPI", bytes);
    int n = (int)call->n;
    switch (call->kind) {
    case STK_COLLECTIVE_all_reduce:
        return check(STK_MPI_ALONE(c->process, m->Iallreduce(src, call->dst, n, type_of(m, call->dtype), m->sum,
                                                             m->world, request)),
                     "Iallreduce");
    case STK_COLLECTIVE_reduce_scatter:
        return check(
            STK_MPI_ALONE(c->process, m->Ireduce_scatter_block(call->src, call->dst, n, type_of(m, call->dtype), m->sum,
                                                               m->world, request)),
            "Ireduce_scatter_block");
    case STK_COLLECTIVE_all_gather:
        return check(STK_MPI_ALONE(c->process, m->Iallgather(call->src, (int)bytes, m->byte, call->dst, (int)bytes,
                                                             m->byte, m->world, request)),
                     "Iallgather");
    case STK_COLLECTIVE_broadcast:
        if (c->base.rank == call->root && call->dst != call->src) memcpy(call->dst, call->src, bytes);
        return check(
            STK_MPI_ALONE(c->process, m->Ibcast(call->dst, (int)bytes, m->byte, call->root, m->world, request)),
            "Ibcast");
    default: return check(STK_MPI_ALONE(c->process, m->Ibarrier(m->world, request)), "Ibarrier");
    }
}

static stk_status run_request(mpi_comm *c, stk_mpi_handle *request, stk_collective kind, int timeout_ms)
{
    stk_status status = await_request(c, request, kind, timeout_ms);
    c->process->has_unfinished |= status != STK_OK;
    return status;
}

static stk_status make_room(mpi_comm *c, size_t bytes)
{
    if (bytes <= c->room_bytes) return STK_OK;
    char *room = realloc(c->room, bytes);
    if (!room) return stk_fail_memory(bytes);
    c->room = room;
    c->room_bytes = bytes;
    return STK_OK;
}

/* Each rank gets its part of what all have, adds it up in their order, and gives the sums to all: as many bytes as
 * MPI's own way takes, and the bits of ranks that share memory. Thakur et al. 2005 have it as pairwise exchange. */
static stk_status sum_in_order(mpi_comm *c, const stk_comm_call *call, int timeout_ms)
{
    const stk_mpi *m = c->mpi;
    const void *from[STK_MOST_IN_ORDER];
    int n_ranks = c->base.n_ranks;
    bool is_all = call->kind == STK_COLLECTIVE_all_reduce;
    int64_t part = is_all ? (call->n + n_ranks - 1) / n_ranks : call->n;
    size_t element = stk_dtype_bytes(call->dtype), bytes = (size_t)part * element, all = bytes * (size_t)n_ranks;
    if (bytes > INT_MAX) return stk_fail(STK_UNSUPPORTED, "a part of %zu bytes is too large for MPI", bytes);
    STK_RETURN_IF_ERROR(make_room(c, 2 * all + bytes));
    char *padded = c->room, *theirs = padded + all, *sum = theirs + all;
    const void *src = call->src;
    if (is_all && part * n_ranks != call->n) {
        size_t own = (size_t)call->n * element;
        memcpy(padded, call->src, own);
        memset(padded + own, 0, all - own);
        src = padded;
    }
    stk_mpi_handle request = NULL;
    STK_RETURN_IF_ERROR(check(STK_MPI_ALONE(c->process, m->Ialltoall(src, (int)bytes, m->byte, theirs, (int)bytes,
                                                                     m->byte, m->world, &request)),
                              "Ialltoall"));
    STK_RETURN_IF_ERROR(run_request(c, &request, call->kind, timeout_ms));
    for (int r = 0; r < n_ranks; r++)
        from[r] = theirs + (size_t)r * bytes;
    stk_comm_sum(call->dtype, is_all ? sum : call->dst, from, n_ranks, part, call->mean);
    if (!is_all) return STK_OK;
    char *dst = part * n_ranks == call->n ? call->dst : padded;
    STK_RETURN_IF_ERROR(check(STK_MPI_ALONE(c->process, m->Iallgather(sum, (int)bytes, m->byte, dst, (int)bytes,
                                                                      m->byte, m->world, &request)),
                              "Iallgather"));
    STK_RETURN_IF_ERROR(run_request(c, &request, call->kind, timeout_ms));
    if (dst == padded) memcpy(call->dst, padded, (size_t)call->n * element);
    return STK_OK;
}

/* Where there are not too many ranks to be in order; MPI has no sum of bf16 in any. */
static bool goes_in_order(const mpi_comm *c, const stk_comm_call *call)
{
    bool sums = call->kind == STK_COLLECTIVE_all_reduce || call->kind == STK_COLLECTIVE_reduce_scatter;
    return sums && c->base.n_ranks <= STK_MOST_IN_ORDER && (!c->base.any_order || call->dtype == STK_BF16);
}

static stk_status run_by_mpi(mpi_comm *c, const stk_comm_call *call, int timeout_ms)
{
    stk_mpi_handle request = NULL;
    if (goes_in_order(c, call)) return sum_in_order(c, call, timeout_ms);
    if (call->dtype == STK_BF16 &&
        (call->kind == STK_COLLECTIVE_all_reduce || call->kind == STK_COLLECTIVE_reduce_scatter))
        return stk_fail(STK_UNSUPPORTED, "sums in bf16 over more than %d ranks on several hosts", STK_MOST_IN_ORDER);
    STK_RETURN_IF_ERROR(begin(c, call, &request));
    STK_RETURN_IF_ERROR(run_request(c, &request, call->kind, timeout_ms));
    divide(call, c->base.n_ranks);
    return STK_OK;
}

/* --- who works on calls --- */

/* The lock is held. */
static stk_status fail_comm(mpi_comm *c, stk_status status, const char *why)
{
    if (c->failed == STK_OK) {
        c->failed = status;
        snprintf(c->error, sizeof(c->error), "%s", why);
    }
    c->process->is_broken = true;
    return status;
}

/* On the next call; the lock is held, and nobody works. */
static void work(mpi_comm *c, int timeout_ms)
{
    const stk_comm_call *call = &c->call[c->n_done % STK_COMM_MOST_CALLS];
    int64_t number = c->n_done;
    c->is_working = true;
    stk_mutex_unlock(&c->lock);
    int64_t begin = stk_trace_begin();
    stk_status status =
        c->shared ? stk_shared_run(c->shared, call, timeout_ms, &c->pace) : run_by_mpi(c, call, timeout_ms);
    stk_trace_end(begin, STK_TRACE_HOST, stk_collective_name(call->kind), number);
    stk_mutex_lock(&c->lock);
    c->is_working = false;
    if (status == STK_OK)
        c->n_done++;
    else
        (void)fail_comm(c, status, stk_error_text());
    stk_cond_broadcast(&c->changed);
}

static void go_on_early(void *arg)
{
    mpi_comm *c = arg;
    stk_mutex_lock(&c->lock);
    while (!c->ends) {
        bool has_call = c->failed == STK_OK && !c->is_working && c->n_done < c->n_early;
        if (!has_call) {
            stk_cond_wait(&c->changed, &c->lock);
            continue;
        }
        atomic_store(&c->pace.is_early, true);
        work(c, c->base.timeout_ms);
        atomic_store(&c->pace.is_early, false);
    }
    stk_mutex_unlock(&c->lock);
}

/* Without a thread the call is worked on by whoever waits. */
static void want_early(mpi_comm *c)
{
    if (!c->process->may_pass) return;
    if (!c->thread.started && stk_thread_start(&c->thread, "stk-sums", false, go_on_early, c) != STK_OK) return;
    c->n_early = c->n_started;
    stk_cond_broadcast(&c->changed);
}

static stk_status start(stk_comm *base, const stk_comm_call *call, int64_t *number)
{
    mpi_comm *c = (mpi_comm *)base;
    stk_status status = STK_OK;
    stk_mutex_lock(&c->lock);
    if (c->n_started - c->n_done >= STK_COMM_MOST_CALLS) {
        status = stk_fail(STK_BUSY, "%d calls have not been waited for", STK_COMM_MOST_CALLS);
    } else {
        *number = c->n_started;
        c->call[c->n_started++ % STK_COMM_MOST_CALLS] = *call;
        if (call->early) want_early(c);
    }
    stk_mutex_unlock(&c->lock);
    return status;
}

static stk_status wait_for(stk_comm *base, int64_t number, int timeout_ms)
{
    mpi_comm *c = (mpi_comm *)base;
    stk_status status = STK_OK;
    stk_mutex_lock(&c->lock);
    if (number < 0 || number >= c->n_started)
        status = stk_fail(STK_INVALID, "there is no call number %lld to wait for", (long long)number);
    atomic_fetch_add(&c->pace.n_waiting, 1);
    while (status == STK_OK && c->failed == STK_OK && c->n_done <= number) {
        if (c->is_working)
            stk_cond_wait(&c->changed, &c->lock);
        else
            work(c, timeout_ms);
    }
    atomic_fetch_sub(&c->pace.n_waiting, 1);
    if (status == STK_OK && c->n_done <= number) status = stk_fail(c->failed, "%s", c->error);
    stk_mutex_unlock(&c->lock);
    return status;
}

/* Nobody works on a call when this returns, and nobody begins one. The lock is held. */
static void end_work(mpi_comm *c)
{
    atomic_store(&c->pace.is_over, true);
    while (c->is_working)
        stk_cond_wait(&c->changed, &c->lock);
}

static void abort_all(stk_comm *base, const char *why)
{
    mpi_comm *c = (mpi_comm *)base;
    stk_mutex_lock(&c->lock);
    (void)fail_comm(c, STK_LOST, why);
    if (c->shared) stk_shared_abort(c->shared, why);
    stk_store_abort(c->process->store, why);
    end_work(c);
    send_news(c, why);
    stk_mutex_unlock(&c->lock);
}

static void end_thread(mpi_comm *c)
{
    stk_mutex_lock(&c->lock);
    c->ends = true;
    end_work(c);
    stk_cond_broadcast(&c->changed);
    stk_mutex_unlock(&c->lock);
    stk_thread_join(&c->thread);
}

static void close_mpi(stk_comm *base)
{
    mpi_comm *c = (mpi_comm *)base;
    end_thread(c);
    if (c->failed != STK_OK && !c->shared) { /* What is under way from here and to here stays until MPI ends. */
        c->process->has_unfinished = true;
        return;
    }
    stop_news(c);
    stk_shared_close(c->shared);
    free(c->room);
    stk_cond_destroy(&c->changed);
    stk_mutex_destroy(&c->lock);
    free(c);
}

static int count(const stk_comm *base, const _Atomic uint64_t *counter[2])
{
    const mpi_comm *c = (const mpi_comm *)base;
    return c->shared ? stk_shared_count(c->shared, counter) : 0;
}

static const stk_comm_class mpi_class = {"mpi", close_mpi, start, wait_for, abort_all, count};

/* --- opening --- */

/* All ranks know whether all could, and if not, what the first one of them says. */
static stk_status agree(mpi_comm *c, stk_status own, bool *all_could, int timeout_ms)
{
    typedef struct answer {
        int32_t failed, rank;
        char text[NOTE_BYTES / 2];
    } answer;
    int n = c->base.n_ranks;
    answer mine = {.failed = own != STK_OK, .rank = c->base.rank}, *all = calloc((size_t)n, sizeof(*all));
    if (!all) {
        c->process->is_hopeless = true;
        return stk_fail_memory((size_t)n * sizeof(*all));
    }
    if (own != STK_OK) snprintf(mine.text, sizeof(mine.text), "%s", stk_error_text());
    stk_comm_call call = {
        .kind = STK_COLLECTIVE_all_gather, .dtype = STK_U8, .n = (int64_t)sizeof(mine), .src = &mine, .dst = all};
    stk_status status = run_by_mpi(c, &call, timeout_ms);
    *all_could = status == STK_OK;
    for (int r = 0; r < n && *all_could; r++) {
        if (!all[r].failed) continue;
        *all_could = false;
        snprintf(c->note, NOTE_BYTES, "ranks cannot share memory, and add up through MPI, which is slower: rank %d: %s",
                 r, all[r].text);
        c->base.note = c->note;
    }
    free(all);
    return status;
}

/* Memory of the host that all ranks are on. Where it cannot be had, MPI does the work. */
static stk_status share(mpi_comm *c, int timeout_ms)
{
    char name[STK_SHARED_NAME_BYTES] = "";
    bool could;
    stk_status own = c->base.rank == 0 ? stk_shared_make(c->base.n_ranks, name, &c->shared) : STK_OK;
    STK_RETURN_IF_ERROR(agree(c, own, &could, timeout_ms));
    if (!could) return STK_OK;
    stk_comm_call call = {
        .kind = STK_COLLECTIVE_broadcast, .dtype = STK_U8, .n = STK_SHARED_NAME_BYTES, .src = name, .dst = name};
    stk_status status = run_by_mpi(c, &call, timeout_ms);
    if (status == STK_OK) {
        own = stk_shared_join(name, c->base.rank, c->base.n_ranks, &c->shared);
        status = agree(c, own, &could, timeout_ms);
    }
    if (c->base.rank == 0) stk_shared_unlink(name);
    if (status == STK_OK && could) return STK_OK;
    stk_shared_close(c->shared);
    c->shared = NULL;
    return status;
}

static stk_status open_all(mpi_comm *c, int timeout_ms)
{
    c->base.rank = c->process->rank;
    c->base.n_ranks = c->process->n_ranks;
    c->base.n_here = c->process->n_here;
    const char *order = getenv("STOKER_MPI_ORDER"); /* "off": sums over hosts as MPI likes, to compare */
    c->base.any_order = order && !strcmp(order, "off");
    const char *shared = getenv("STOKER_MPI_SHARED"); /* "off": as if on several hosts, for tests and comparisons */
    if (c->base.n_here == c->base.n_ranks && !(shared && !strcmp(shared, "off")))
        STK_RETURN_IF_ERROR(share(c, timeout_ms));
    return c->shared ? STK_OK : await_news(c);
}

/* A library that does not speak the launcher's language takes itself to be alone, and each process would train. */
static stk_status tell_misfit(const stk_mpi_launch *launch, const char *library)
{
    if (launch->rank > 0) return stk_fail(STK_LOST, "the first process says why");
    if (launch->has_mpi)
        return stk_fail(STK_UNSUPPORTED,
                        "the launcher started %d processes, and each is alone for %s: with srun Open MPI wants "
                        "'--mpi=pmix', MPICH '--mpi=pmi2'; mpirun wants its own library, which STOKER_MPI may name",
                        launch->n_ranks, library);
    return stk_fail(STK_UNSUPPORTED,
                    "srun started %d processes and gave them no MPI: 'srun --mpi=pmix' for Open MPI, 'srun --mpi=pmi2' "
                    "for MPICH; a training of one process is a step of its own, 'srun -n 1'",
                    launch->n_ranks);
}

/* NULL: there is no memory. */
static mpi_comm *new_comm(stk_mpi_process *process)
{
    mpi_comm *c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    *c = (mpi_comm){.base = {.class = &mpi_class}, .process = process, .mpi = process->mpi};
    if (stk_mutex_init(&c->lock) == STK_OK) {
        if (stk_cond_init(&c->changed) == STK_OK) return c;
        stk_mutex_destroy(&c->lock);
    }
    free(c);
    return NULL;
}

stk_status stk_comm_open_mpi(int timeout_ms, stk_comm **out)
{
    stk_mpi_process *process;
    stk_mpi_launch launch = stk_mpi_find_launch();
    *out = NULL;
    if (launch.n_ranks < 2) return STK_OK;
    if (!launch.has_mpi) return tell_misfit(&launch, NULL);
    STK_RETURN_IF_ERROR(stk_mpi_process_open(&process));
    if (process->n_ranks < 2) return tell_misfit(&launch, process->mpi->name);
    mpi_comm *c = new_comm(process);
    if (!c) {
        process->is_broken = process->is_hopeless = true; /* The others wait for this one. */
        return stk_fail_memory(sizeof(*c));
    }
    stk_status status = open_all(c, timeout_ms);
    if (status == STK_OK) {
        *out = &c->base;
        return STK_OK;
    }
    char why[NEWS_BYTES];
    snprintf(why, sizeof(why), "%s", stk_error_text());
    (void)fail_comm(c, status, why);
    close_mpi(&c->base);
    return stk_fail(status, "%s", why);
}
