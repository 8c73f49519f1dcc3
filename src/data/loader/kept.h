/* Memory of batches that the consumer keeps: buffers as large as a slot, which change places with the memory of the
 * slot whose batch is kept. Buffers that come back are used again. They may outlive the loader. The public side is
 * stoker/data/keep.h.
 *
 * Threads: a buffer may come back on any thread; the rest is the consumer's.
 */
#ifndef STK_DATA_LOADER_KEPT_H
#define STK_DATA_LOADER_KEPT_H

#include "data/loader/ring.h"
#include "stoker/data/keep.h"

typedef struct stk_kept_pool stk_kept_pool;

/* n buffers, charged to the ring's account, are there from the start. Others are made while they leave `reserve` bytes
 * of the account to the workers. Copies config. */
stk_status stk_kept_pool_new(const stk_ring_config *config, int n, size_t reserve, stk_kept_pool **out);
/* The loader ends. Buffers that are kept stay, and are no longer charged. Accepts NULL. */
void stk_kept_pool_close(stk_kept_pool *pool);
/* The batch's memory goes into *out, and its slot gets other memory. STK_NO_MEMORY: nothing has changed. */
stk_status stk_kept_pool_take(stk_kept_pool *pool, stk_ring *ring, int64_t i_batch, stk_kept **out);
/* How many are kept now. */
int64_t stk_kept_pool_count(stk_kept_pool *pool);

#endif
