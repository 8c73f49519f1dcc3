/* Ranks that are processes, started by mpirun, mpiexec or srun: MPI says who is who. On one host the work goes through
 * memory that they share (shared.h), with sums in the order of the ranks; over several hosts MPI does it, without
 * blocking, so that a rank that does not come is missed after a time and not for ever.
 *
 * A call is worked on when it is waited for, after those that were started before it.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "comm/comm.h"
#include "comm/mpi_library.h"
#include "comm/shared.h"

typedef struct mpi_comm {
    stk_comm base;
    const stk_mpi *mpi;
    stk_shared *shared; /* NULL: there are several hosts */
    stk_comm_call call[STK_COMM_MOST_CALLS];
    int64_t n_started, n_done;
    stk_status failed;
    char error[600];
    bool finalizes; /* MPI was not there before */
} mpi_comm;

static stk_status check(int code, const char *what)
{
    return code == 0 ? STK_OK : stk_fail(STK_DEVICE, "MPI_%s failed with code %d", what, code);
}

static stk_status await_request(mpi_comm *c, stk_mpi_handle *request, stk_collective kind, int timeout_ms)
{
    int64_t start = stk_clock_ns();
    int done = 0;
    for (int i = 0; !done; i++) {
        STK_RETURN_IF_ERROR(check(c->mpi->Test(request, &done, c->mpi->ignore_status), "Test"));
        if (done || i < 1000) continue;
        sched_yield();
        if (timeout_ms > 0 && stk_clock_ns() - start > (int64_t)timeout_ms * 1000000)
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
        return check(m->Iallreduce(src, call->dst, n, type_of(m, call->dtype), m->sum, m->world, request),
                     "Iallreduce");
    case STK_COLLECTIVE_reduce_scatter:
        return check(
            m->Ireduce_scatter_block(call->src, call->dst, n, type_of(m, call->dtype), m->sum, m->world, request),
            "Ireduce_scatter_block");
    case STK_COLLECTIVE_all_gather:
        return check(m->Iallgather(call->src, (int)bytes, m->byte, call->dst, (int)bytes, m->byte, m->world, request),
                     "Iallgather");
    case STK_COLLECTIVE_broadcast:
        if (c->base.rank == call->root && call->dst != call->src) memcpy(call->dst, call->src, bytes);
        return check(m->Ibcast(call->dst, (int)bytes, m->byte, call->root, m->world, request), "Ibcast");
    default: return check(m->Ibarrier(m->world, request), "Ibarrier");
    }
}

static stk_status run_by_mpi(mpi_comm *c, const stk_comm_call *call, int timeout_ms)
{
    stk_mpi_handle request = NULL;
    STK_RETURN_IF_ERROR(begin(c, call, &request));
    STK_RETURN_IF_ERROR(await_request(c, &request, call->kind, timeout_ms));
    divide(call, c->base.n_ranks);
    return STK_OK;
}

static stk_status start(stk_comm *base, const stk_comm_call *call, int64_t *number)
{
    mpi_comm *c = (mpi_comm *)base;
    if (c->n_started - c->n_done >= STK_COMM_MOST_CALLS)
        return stk_fail(STK_BUSY, "%d calls have not been waited for", STK_COMM_MOST_CALLS);
    *number = c->n_started;
    c->call[c->n_started++ % STK_COMM_MOST_CALLS] = *call;
    return STK_OK;
}

static stk_status wait_for(stk_comm *base, int64_t number, int timeout_ms)
{
    mpi_comm *c = (mpi_comm *)base;
    if (number < 0 || number >= c->n_started)
        return stk_fail(STK_INVALID, "there is no call number %lld to wait for", (long long)number);
    if (c->failed != STK_OK) return stk_fail(c->failed, "%s", c->error);
    while (c->n_done <= number) {
        const stk_comm_call *call = &c->call[c->n_done % STK_COMM_MOST_CALLS];
        stk_status status = c->shared ? stk_shared_run(c->shared, call, timeout_ms) : run_by_mpi(c, call, timeout_ms);
        if (status != STK_OK) {
            c->failed = status;
            snprintf(c->error, sizeof(c->error), "%s", stk_error_text());
            return status;
        }
        c->n_done++;
    }
    return STK_OK;
}

static void abort_all(stk_comm *base, const char *why)
{
    mpi_comm *c = (mpi_comm *)base;
    if (c->failed == STK_OK) {
        c->failed = STK_LOST;
        snprintf(c->error, sizeof(c->error), "%s", why);
    }
    if (c->shared) stk_shared_abort(c->shared, why);
}

/* After a failure the others may never come to MPI_Finalize. They have a moment to read why. */
static void close_mpi(stk_comm *base)
{
    enum { MOMENT_US = 500000 };
    mpi_comm *c = (mpi_comm *)base;
    if (c->failed != STK_OK) {
        usleep(MOMENT_US);
        c->mpi->Abort(c->mpi->world, 1);
    } else if (c->finalizes) {
        c->mpi->Finalize();
    }
    stk_shared_close(c->shared);
    free(c);
}

static const stk_comm_class mpi_class = {"mpi", close_mpi, start, wait_for, abort_all};

/* All ranks agree on whether all could. */
static stk_status agree(mpi_comm *c, stk_status own, int timeout_ms)
{
    int32_t all[2] = {own != STK_OK, 0};
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_I32, .n = 1, .src = all, .dst = all + 1};
    STK_RETURN_IF_ERROR(run_by_mpi(c, &call, timeout_ms));
    if (own != STK_OK || all[1] == 0) return own;
    return stk_fail(STK_LOST, "another rank could not share memory");
}

/* Memory of the host that all ranks are on. */
static stk_status share(mpi_comm *c, int timeout_ms)
{
    char name[STK_SHARED_NAME_BYTES] = "";
    stk_status status = c->base.rank == 0 ? stk_shared_make(c->base.n_ranks, name, &c->shared) : STK_OK;
    STK_RETURN_IF_ERROR(agree(c, status, timeout_ms));
    stk_comm_call call = {
        .kind = STK_COLLECTIVE_broadcast, .dtype = STK_U8, .n = STK_SHARED_NAME_BYTES, .src = name, .dst = name};
    STK_RETURN_IF_ERROR(run_by_mpi(c, &call, timeout_ms));
    status = stk_shared_join(name, c->base.rank, c->base.n_ranks, &c->shared);
    status = agree(c, status, timeout_ms);
    if (c->base.rank == 0) stk_shared_unlink(name);
    return status;
}

static stk_status open_all(mpi_comm *c, int timeout_ms)
{
    const stk_mpi *m = c->mpi;
    int is_there = 0, got = 0, n_here = 0;
    stk_mpi_handle here = NULL;
    STK_RETURN_IF_ERROR(check(m->Initialized(&is_there), "Initialized"));
    if (!is_there) STK_RETURN_IF_ERROR(check(m->Init_thread(NULL, NULL, m->serialized, &got), "Init_thread"));
    c->finalizes = !is_there;
    STK_RETURN_IF_ERROR(check(m->Comm_rank(m->world, &c->base.rank), "Comm_rank"));
    STK_RETURN_IF_ERROR(check(m->Comm_size(m->world, &c->base.n_ranks), "Comm_size"));
    if (c->base.n_ranks < 2) return STK_OK;
    STK_RETURN_IF_ERROR(
        check(m->Comm_split_type(m->world, m->shared_type, c->base.rank, m->no_info, &here), "Comm_split_type"));
    STK_RETURN_IF_ERROR(check(m->Comm_size(here, &n_here), "Comm_size"));
    c->base.n_here = n_here;
    const char *shared = getenv("STOKER_MPI_SHARED"); /* "off": as if on several hosts, for tests and comparisons */
    return n_here == c->base.n_ranks && !(shared && !strcmp(shared, "off")) ? share(c, timeout_ms) : STK_OK;
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

stk_status stk_comm_open_mpi(int timeout_ms, stk_comm **out)
{
    const stk_mpi *mpi;
    stk_mpi_launch launch = stk_mpi_find_launch();
    *out = NULL;
    if (launch.n_ranks < 2) return STK_OK;
    if (!launch.has_mpi) return tell_misfit(&launch, NULL);
    STK_RETURN_IF_ERROR(stk_mpi_load(&mpi));
    mpi_comm *c = calloc(1, sizeof(*c));
    if (!c) return stk_fail_memory(sizeof(*c));
    *c = (mpi_comm){.base = {.class = &mpi_class, .n_ranks = 1, .n_here = 1}, .mpi = mpi};
    stk_status status = open_all(c, timeout_ms);
    if (status == STK_OK && c->base.n_ranks > 1) {
        *out = &c->base;
        return STK_OK;
    }
    c->failed = status;
    close_mpi(&c->base);
    return status == STK_OK ? tell_misfit(&launch, mpi->name) : status;
}
