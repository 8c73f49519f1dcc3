/* A process of tests/comm/test_mpi.py, started by a launcher of MPI's: mpi_rank twice | save | note. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "comm/comm.h"

enum { TIMEOUT_MS = 60000 };

static int fail(void)
{
    fprintf(stderr, "%s\n", stk_error_text());
    return 1;
}

static stk_status add(stk_comm *comm)
{
    float x[100];
    for (int i = 0; i < 100; i++)
        x[i] = (float)(comm->rank + i);
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = 100, .src = x, .dst = x};
    STK_RETURN_IF_ERROR(stk_comm_run(comm, &call, TIMEOUT_MS));
    int n = comm->n_ranks;
    return x[99] == (float)(n * (n - 1) / 2 + n * 99) ? STK_OK : stk_fail(STK_INTERNAL, "the sum is %g", (double)x[99]);
}

static int train_twice(void)
{
    for (int i = 0; i < 2; i++) {
        stk_comm *comm;
        if (stk_comm_open_mpi(TIMEOUT_MS, &comm) != STK_OK || !comm || add(comm) != STK_OK) return fail();
        if (comm->rank == 0 && comm->note) printf("note: %s\n", comm->note);
        if (comm->rank == 0) printf("added %d\n", i + 1);
        stk_comm_close(comm);
    }
    return 0;
}

/* The last rank fails and ends; the first one still has two seconds of work to do. */
static int fail_while_first_saves(void)
{
    stk_comm *comm;
    if (stk_comm_open_mpi(TIMEOUT_MS, &comm) != STK_OK) return fail();
    bool is_first = comm->rank == 0;
    if (comm->rank == comm->n_ranks - 1)
        stk_comm_abort(comm, "no more data");
    else if (add(comm) != STK_LOST)
        return fail();
    else if (is_first)
        printf("told: %s\n", stk_error_text());
    stk_comm_close(comm);
    if (is_first) {
        fflush(stdout);
        usleep(2000000);
        printf("saved\n");
        stk_comm *again;
        if (stk_comm_open_mpi(TIMEOUT_MS, &again) == STK_LOST) printf("again: %s\n", stk_error_text());
    }
    return 3;
}

int main(int argc, char **argv)
{
    return argc == 2 && !strcmp(argv[1], "save") ? fail_while_first_saves() : train_twice();
}
