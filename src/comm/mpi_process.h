/* MPI in this process: begun with the first communication, open for as long as the process lives, so that it may train
 * as often as it likes, and ended at exit, when all that was to be said has been said. There the ranks wait for each
 * other. After a failure they may not all come: the first rank waits for a few seconds, the others until it is done
 * with saving what it has, and whoever has waited in vain, or has a call under way that no longer ends, ends all. A
 * program that has begun MPI itself ends it itself.
 */
#ifndef STK_COMM_MPI_PROCESS_H
#define STK_COMM_MPI_PROCESS_H

#include "base/thread.h"
#include "comm/mpi_library.h"

typedef struct stk_mpi_process {
    const stk_mpi *mpi;
    int rank, n_ranks, n_here; /* n_here: on this rank's host */
    stk_mpi_handle side;       /* a communicator of what is not a collective of a training; NULL: there is one rank */
    bool may_pass;             /* several threads may call MPI, one at a time */
    bool is_broken;            /* some ranks have failed and may not come to any call */
    bool is_hopeless;          /* it failed before it could tell the others, which wait: all end with it */
    bool has_unfinished;       /* calls that will never be done, with which MPI cannot be ended in order */
    struct stk_store *store;   /* of keys (store.h); NULL: nobody has asked for it */
    stk_mutex lock;            /* of whoever calls MPI: the store's thread and one other do, see STK_MPI_ALONE */
} stk_mpi_process;

static inline int stk_mpi_leave(stk_mpi_process *process, int code)
{
    stk_mutex_unlock(&process->lock);
    return code;
}
/* The code of a call of MPI's that does not wait, with nobody else's at the same time. */
#define STK_MPI_ALONE(process, call) (stk_mutex_lock(&(process)->lock), stk_mpi_leave(process, call))

/* Begins where this is the first time. STK_LOST: an earlier communication of this process has failed. Threads: one at a
 * time. */
stk_status stk_mpi_process_open(stk_mpi_process **out);
/* NULL: it was not opened, or is alone. */
stk_mpi_process *stk_mpi_process_get(void);

#endif
