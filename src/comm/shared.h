/* Collectives of processes on one host, through memory that they share.
 *
 * A call goes through in chunks that stay in the caches. Of each chunk a rank owns one part, as in Rabenseifner's
 * all-reduce (Thakur et al. 2005): it lays the parts of others out for them, adds up its own, and takes the others'
 * sums.
 *
 *   rank 0   lay out parts 1, 2   | all have |   part 0 = sum of 3   | all have |   take parts 1, 2
 *
 * "All have" is a counter for each rank, which others only read. A rank that dies leaves its counter where it is, and
 * those that wait for it find that its process is gone.
 */
#ifndef STK_COMM_SHARED_H
#define STK_COMM_SHARED_H

#include "comm/comm.h"
#include "comm/patience.h"

typedef struct stk_shared stk_shared;

enum { STK_SHARED_NAME_BYTES = 64, STK_MOST_SHARED = 256 };

/* The memory, made by one process. name: of shm_open(3), for the others. */
stk_status stk_shared_make(int n_ranks, char name[STK_SHARED_NAME_BYTES], stk_shared **out);
/* As one of its ranks; the maker does so, too, with *out NULL before or as made. */
stk_status stk_shared_join(const char *name, int rank, int n_ranks, stk_shared **out);
/* Once all have joined: the name goes, and with the last process the memory. */
void stk_shared_unlink(const char *name);
/* Accepts NULL. */
void stk_shared_close(stk_shared *shared);

/* All ranks run the same calls in the same order. pace: borrowed for the call. */
stk_status stk_shared_run(stk_shared *shared, const stk_comm_call *call, int timeout_ms, const stk_pace *pace);
void stk_shared_abort(stk_shared *shared, const char *why);
/* As in stk_comm_class; the counters are there until close. */
int stk_shared_count(const stk_shared *shared, const _Atomic uint64_t *counter[2]);

#endif
