/* Collectives: what ranks, each with a buffer of its own, do together.
 *
 *   all_reduce      dst = the sum, or mean, of all ranks' src           n elements each
 *   reduce_scatter  dst = part `rank` of that sum                       src n * n_ranks, dst n
 *   all_gather      dst = all ranks' src, one behind the other          src n, dst n * n_ranks
 *   broadcast       dst = src of the root; others' src is not looked at
 *   barrier         nothing, but nobody is through before all have come
 *
 * A call is started and waited for, and buffers belong to it in between. All ranks start the same calls in the same
 * order. Sums are made in a tree over the ranks (sum.h), whoever comes first: the same inputs give the same bits. Over
 * several hosts of more than 1,024 ranks, or where it is asked for, they are in MPI's order (mpi.c). What goes wrong
 * (ranks that do not come in time, or with another call) is told to all, and nothing goes on from there. Threads: one
 * at a time for each rank.
 */
#ifndef STK_COMM_COMM_H
#define STK_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"
#include "stoker/types.h"

typedef struct stk_comm stk_comm; /* one rank's */

#define STK_COLLECTIVE_LIST(X)                                                                                         \
    X(all_reduce)                                                                                                      \
    X(reduce_scatter)                                                                                                  \
    X(all_gather)                                                                                                      \
    X(broadcast)                                                                                                       \
    X(barrier)
#define X(name) STK_COLLECTIVE_##name,
typedef enum stk_collective { STK_COLLECTIVE_LIST(X) STK_N_COLLECTIVES } stk_collective;
#undef X

typedef struct stk_comm_call {
    stk_collective kind;
    stk_dtype dtype; /* sums: f32, f64, bf16, i32 or i64; others: any */
    int64_t n;       /* elements, as above */
    const void *src; /* borrowed until the call has been waited for, like dst; may be where its result goes */
    void *dst;
    int32_t root; /* broadcast */
    bool mean;    /* sums of floats: divided by the number of ranks */
    bool early;   /* where it can, it goes on before it is waited for; ranks may differ in this */
} stk_comm_call;

/* Of each kind of communication; a rank starts with it. */
typedef struct stk_comm_class {
    const char *name; /* "local" */
    void (*close)(stk_comm *comm);
    stk_status (*start)(stk_comm *comm, const stk_comm_call *call, int64_t *number);
    stk_status (*wait)(stk_comm *comm, int64_t number, int timeout_ms);
    void (*abort)(stk_comm *comm, const char *why);
    /* Returns how many counters there are of parts that this rank has given to calls, at most 2. NULL: none. */
    int (*count)(const stk_comm *comm, const _Atomic uint64_t *counter[2]);
} stk_comm_class;

/* Calls that a rank may have started and not waited for. */
enum { STK_COMM_MOST_CALLS = 16 };

struct stk_comm {
    const stk_comm_class *class;
    int rank, n_ranks;
    int n_here;            /* ranks on this rank's host */
    bool any_order;        /* sums over several hosts are in MPI's order, as it was asked for */
    const char *note;      /* what people should know, once; NULL: nothing */
    int timeout_ms;        /* for those who wait within a step; 0: as long as it takes. The owner sets it */
    struct stk_beat *beat; /* stk_comm_set_beat: elastic/beat.h */
    stk_collective kind[STK_COMM_MOST_CALLS]; /* of the last calls, by number */
    int64_t ticket[STK_COMM_MOST_CALLS];      /* the owner's: numbers of calls that it will wait for */
};

/* 1 for NULL. */
static inline int stk_comm_n_ranks(const stk_comm *comm)
{
    return comm ? comm->n_ranks : 1;
}

/* Returns at once; *number is for the wait. STK_BUSY: some rank has yet to wait for the call STK_COMM_MOST_CALLS back.
 */
stk_status stk_comm_start(stk_comm *comm, const stk_comm_call *call, int64_t *number);
/* Waits until the call is done, once for each. STK_LOST names the ranks that have not come within timeout_ms; 0 or
 * less: as long as it takes. */
stk_status stk_comm_wait(stk_comm *comm, int64_t number, int timeout_ms);
/* Both. */
stk_status stk_comm_run(stk_comm *comm, const stk_comm_call *call, int timeout_ms);
/* Tells all ranks that this one cannot go on: what they wait for, now or later, is STK_LOST with that text. */
void stk_comm_abort(stk_comm *comm, const char *why);
/* Who is told of each wait, and of how far calls have come; NULL: nobody. It ends before the communication does. */
void stk_comm_set_beat(stk_comm *comm, struct stk_beat *beat);
/* No call of this rank is under way. Accepts NULL. */
void stk_comm_close(stk_comm *comm);

/* "all_reduce". A constant. */
const char *stk_collective_name(stk_collective kind);
/* Of what all ranks must say alike. */
uint64_t stk_comm_call_hash(const stk_comm_call *call);

enum { STK_MOST_LOCAL = 256 };
/* Ranks that are threads of this process: out[n_ranks], one for each, closed in any order. The work is shared among
 * those that wait. */
stk_status stk_comm_open_local(int n_ranks, stk_comm **out);
/* After a failure: calls and the failure are forgotten. comm[n_ranks]: all of a group, none of which is in a call. */
void stk_comm_renew_local(int n_ranks, stk_comm *const *comm);
/* Ranks that are processes of an MPI launcher (mpi.c). *out NULL: this one was started alone. It may be closed and
 * opened again, unless it has failed; MPI ends with the process (mpi_process.h). */
stk_status stk_comm_open_mpi(int timeout_ms, stk_comm **out);

#endif
