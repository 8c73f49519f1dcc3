/* How many batch slots and workers fit into a memory account. Fewer of either change no batch. */
#ifndef STK_DATA_LOADER_BUDGET_H
#define STK_DATA_LOADER_BUDGET_H

#include "data/loader/worker.h"

/* Charged for each worker besides its blocks: stack, decoders' tables, what small allocations come to. */
#define STK_WORKER_BYTES ((size_t)1 << 20)

enum { STK_LEAST_SLOTS = 2 };

typedef struct stk_budget {
    int n_slots, n_workers; /* wanted, and then what fits */
    int least_slots;        /* the ring is not made smaller while there are workers to do without */
    int n_kept;             /* buffers as large as a slot besides */
    size_t slot_bytes;
    size_t worker_bytes; /* what was reckoned for each worker; set by stk_budget_fit */
} stk_budget;

/* Memory of that many slots, and of what is kept. */
size_t stk_budget_slots(const stk_budget *budget, int n_slots);

/* What a worker keeps from record to record, measured on the first records. */
stk_status stk_budget_measure(const stk_work *work, size_t *worker_bytes);
/* Makes the numbers smaller until all fits. STK_NO_MEMORY, with the figure that would do, where not even two slots and
 * one worker fit. Reads some records where it is tight. */
stk_status stk_budget_fit(const stk_work *work, stk_budget *budget);

/* A row of a batch by itself, in memory that the caller frees. */
stk_status stk_budget_row(const stk_work *work, stk_slot *slot, stk_block *memory);

#endif
