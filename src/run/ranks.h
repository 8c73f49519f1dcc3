/* A run of several processes, which mpirun, mpiexec or srun has started: the first rank has the folder and tells what
 * happens, the others train along. What one of them cannot do ends all, and the first rank says why.
 */
#ifndef STK_RUN_RANKS_H
#define STK_RUN_RANKS_H

#include "run/state.h"

/* Of waits outside of steps: data sets may take long to be looked through. */
enum { STK_RUN_TIMEOUT_MS = 30 * 60 * 1000 };

/* Where the options ask for it and the process was started as one of several: run->comm. First of all. */
stk_status stk_run_open_ranks(stk_run *run);
/* Collective: OK where all ranks were. The first rank gets what went wrong first, the others STK_LOST. */
stk_status stk_run_agree(stk_run *run, stk_status own);
/* Collective: what the first rank says is to be done. */
stk_status stk_run_share_number(stk_run *run, int64_t *number);
/* This rank cannot go on: the others are told. Returns the status, with its text. */
stk_status stk_run_tell_failure(stk_run *run, stk_status status);
/* How many this process trains as: the recipe's number, or for 0 as many as there are cores and divide the batch. */
int stk_run_replicas(const stk_run *run);
/* Threads of this rank, where the recipe says nothing: 0 where there is one rank. */
int stk_run_rank_threads(const stk_run *run);
static inline bool stk_run_is_first(const stk_run *run)
{
    return !run->comm || run->comm->rank == 0;
}

#endif
