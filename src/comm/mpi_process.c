/* See comm/mpi_process.h. */
#include "comm/mpi_process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "comm/patience.h"
#include "comm/store.h"

/* After a failure: how long the first rank waits for the others at exit, and they for what it saves. */
enum { FIRST_WAITS_MS = 5000, OTHERS_WAIT_MS = 10 * 60 * 1000, LAUNCHER_MS = 10000 };

static stk_mpi_process process;
static pid_t owner; /* whose exit it is, not that of a fork; 0: not begun */

static stk_status check(int code, const char *what)
{
    return code == 0 ? STK_OK : stk_fail(STK_DEVICE, "MPI_%s failed with code %d", what, code);
}

/* Whether all ranks have come here. */
static bool await_all(const stk_mpi *m)
{
    stk_mpi_handle request = NULL;
    stk_patience patience = {0};
    int done = 0, most_ms = !process.is_broken ? 0 : process.rank == 0 ? FIRST_WAITS_MS : OTHERS_WAIT_MS;
    if (STK_MPI_ALONE(&process, m->Ibarrier(process.side, &request)) != 0) return false;
    while (STK_MPI_ALONE(&process, m->Test(&request, &done, m->ignore_status)) == 0 && !done) {
        stk_patience_look(&patience, stk_clock_ns());
        if (stk_patience_is_over(&patience, most_ms)) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return done;
}

/* Over UCX, MPI_Finalize of MPICH waits until others have acknowledged what was sent to them, and then in a call to the
 * launcher, where nobody acknowledges anything: https://github.com/pmodels/mpich/pull/6596 has it end there. A rank
 * that still asks MPI for something while another is in there lets that one pass, and is then left to wait for ever. */
static bool must_stop_together(const stk_mpi *m)
{
    static char version[STK_MPI_VERSION_BYTES];
    int n = 0;
    return m->Get_library_version(version, &n) == 0 && strstr(version, "ch4:ucx");
}

/* The barrier of PMI-1, which is MPICH's language towards its own launcher and Slurm's: a line there, and a line back
 * when all have come. No other call is under way on that connection. A launcher that says nothing is not waited for. */
static bool meet_at_launcher(void)
{
    static const char words[] = "cmd=barrier_in\n";
    const char *number = getenv("PMI_FD");
    char c = 0;
    ssize_t n;
    int fd = number ? atoi(number) : -1;
    if (send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(words) - 1) return false;
    do {
        struct pollfd answer = {.fd = fd, .events = POLLIN};
        if (poll(&answer, 1, LAUNCHER_MS) == 0) return false;
        n = read(fd, &c, 1);
    } while ((n == 1 && c != '\n') || (n < 0 && errno == EINTR));
    return n == 1;
}

/* Behind await_all: when this returns nobody asks MPI for anything any more. */
static void stop_together(const stk_mpi *m)
{
    if (!process.side || !must_stop_together(m) || meet_at_launcher()) return;
    /* Without such a launcher, time has to do: the others are only just behind. */
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
}

/* Calls that are under way would go on in memory that is gone by now, so nothing more is asked of MPI. The first rank
 * has done its work and ends all; the others wait for that. */
static void end_all(const stk_mpi *m, bool has_waited)
{
    for (int i = 0; !has_waited && process.rank > 0 && i < OTHERS_WAIT_MS / 1000; i++)
        sleep(1);
    /* Launchers forward what was said last, if they get to it before they end all. */
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    stk_store_end(process.store);
    m->Abort(m->world, 1);
}

static void end_process(void)
{
    int is_over = 0;
    if (getpid() != owner || process.mpi->Finalized(&is_over) != 0 || is_over) return;
    stk_store_flush(process.store);
    if (process.is_broken) fflush(NULL); /* Whoever ends all ends this process, too. */
    if (process.is_hopeless)
        end_all(process.mpi, true);
    else if (!process.has_unfinished && (!process.side || await_all(process.mpi))) {
        stk_store_end(process.store);
        stop_together(process.mpi);
        process.mpi->Finalize();
    } else
        end_all(process.mpi, !process.has_unfinished);
}

/* Parts of a communicator whose ranks share a host. */
static stk_status look_around(const stk_mpi *m)
{
    stk_mpi_handle here = NULL;
    STK_RETURN_IF_ERROR(check(m->Comm_rank(m->world, &process.rank), "Comm_rank"));
    STK_RETURN_IF_ERROR(check(m->Comm_size(m->world, &process.n_ranks), "Comm_size"));
    if (process.n_ranks < 2) return STK_OK;
    STK_RETURN_IF_ERROR(
        check(m->Comm_split_type(m->world, m->shared_type, process.rank, m->no_info, &here), "Comm_split_type"));
    STK_RETURN_IF_ERROR(check(m->Comm_size(here, &process.n_here), "Comm_size"));
    return check(m->Comm_dup(m->world, &process.side), "Comm_dup");
}

static stk_status begin(const stk_mpi *m)
{
    int is_there = 0, got = 0;
    STK_RETURN_IF_ERROR(check(m->Initialized(&is_there), "Initialized"));
    process = (stk_mpi_process){.mpi = m, .n_ranks = 1, .n_here = 1};
    STK_RETURN_IF_ERROR(stk_mutex_init(&process.lock));
    if (!is_there) {
        STK_RETURN_IF_ERROR(check(m->Init_thread(NULL, NULL, m->serialized, &got), "Init_thread"));
        if (atexit(end_process) != 0) return stk_fail_memory(sizeof(process));
    }
    STK_RETURN_IF_ERROR(check(m->Query_thread(&got), "Query_thread"));
    process.may_pass = got >= m->serialized;
    owner = getpid();
    stk_status status = look_around(m);
    process.is_broken = status != STK_OK;
    return status;
}

stk_status stk_mpi_process_open(stk_mpi_process **out)
{
    const stk_mpi *mpi;
    *out = &process;
    if (!owner) {
        STK_RETURN_IF_ERROR(stk_mpi_load(&mpi));
        return begin(mpi);
    }
    if (process.is_broken)
        return stk_fail(STK_LOST,
                        "an earlier run of these processes has failed, and they are no longer together: start "
                        "them again");
    return STK_OK;
}

stk_mpi_process *stk_mpi_process_get(void)
{
    return owner && process.side ? &process : NULL;
}
