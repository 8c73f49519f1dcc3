/* Samples that come one after the other, for workers that make them side by side: rows are claimed and their samples
 * read as one, under one lock, so that the order of the rows is that of the samples. Stages run outside of it.
 *
 *     worker 1   [claim row 7, read][ stages ............ ]
 *     worker 2                      [claim row 8, read][ stages ....
 *
 * Nothing is read ahead of the ring's slots, and a worker that waits waits for the lock alone: its holder either reads,
 * or sleeps until a slot is free or the loader ends.
 * Threads: claim and give are the workers'; the rest is for one thread.
 */
#ifndef STK_DATA_LOADER_SEQUENCE_H
#define STK_DATA_LOADER_SEQUENCE_H

#include "base/thread.h"
#include "data/loader/ring.h"
#include "stoker/data/loader.h"

struct stk_worker;
struct stk_work;

/* The sample that a worker has read, as long as it makes the row: in memory that is not given back in between, since no
 * sample can be read twice. */
typedef struct stk_sequence_sample {
    bool is_there, fatal;
    stk_status status;
    char error[512];
    stk_item item[STK_MAX_FIELDS];
} stk_sequence_sample;

typedef struct stk_sequence {
    const stk_source *source; /* NULL: its samples are read by number */
    stk_memory *memory;
    unsigned char *place; /* of all workers' samples */
    size_t charged, sample_bytes, at[STK_MAX_FIELDS];
    stk_mutex turn;
    bool has_turn;
} stk_sequence;

/* What a worker needs for it. 0: the source's samples are read by number. */
size_t stk_sequence_bytes(const stk_source *source);
/* STK_INVALID for what a source in order cannot give to a loader. */
stk_status stk_sequence_check(const struct stk_dataset *dataset, const stk_loader_config *config);
/* Takes possession of the source, where its samples come in order. out starts zeroed. */
stk_status stk_sequence_open(const struct stk_work *work, stk_sequence *out);
/* Once all workers have ended. */
void stk_sequence_close(stk_sequence *sequence);

/* The next row, and its sample. False: nothing is left to do. */
bool stk_sequence_claim(struct stk_worker *worker, stk_claim *out);
/* The sample of the row that the worker has claimed. item is borrowed until its next claim. */
stk_status stk_sequence_give(const stk_sequence_sample *sample, stk_item *item, bool *fatal);

#endif
