/* The stages of one field: planned when they are added, run by workers. No order, no batches, no threads here.
 *
 * Threads: one at a time while stages are added; afterwards read-only, and each worker runs it with its own
 * stk_chain_work.
 */
#ifndef STK_DATA_STAGE_CHAIN_H
#define STK_DATA_STAGE_CHAIN_H

#include "base/counter.h"
#include "data/stage/row_pass.h"
#include "data/stage/stage.h"

enum { STK_MAX_STAGES = 16 };

typedef struct stk_chain {
    const char *field;       /* borrowed from the source */
    const char *source_name; /* what stands before the first stage, for messages; borrowed */
    int n_stages;
    stk_stage *stage[STK_MAX_STAGES];
    unsigned char i_key[STK_MAX_STAGES]; /* by which a stage draws: its own number, or that in another field's chain */
    unsigned char i_joint[STK_MAX_STAGES]; /* 1 and up: it works on several fields, whose sides must be equal; 0: not */
    stk_field_type type[STK_MAX_STAGES + 1]; /* planned: before stage i, and after the last */
} stk_chain;

/* What a stage took, of the samples that were timed. Its worker alone writes it. */
typedef struct stk_stage_time {
    stk_counter ns, n_timed;
    stk_counter n_stages; /* that run as one with it, itself included; 0: it never ran, or within another */
} stk_stage_time;

/* One worker's memory for one chain: grows with the first samples and stays. Starts zeroed. */
typedef struct stk_chain_work {
    bool timed; /* whether the next sample is to be timed */
    stk_stage_time time[STK_MAX_STAGES];
    stk_scratch stage[STK_MAX_STAGES]; /* the stages' own */
    stk_scratch between[2];            /* what flows between them, in turn */
    stk_row_pass_work rows;            /* of those that run as one pass */
} stk_chain_work;

void stk_chain_init(stk_chain *chain, const char *field, const char *source_name, const stk_field_type *type);
void stk_chain_free(stk_chain *chain);
/* Plans stage after the others and takes it; on an error it stays the caller's. */
stk_status stk_chain_add(stk_chain *chain, stk_stage *stage);
/* The same for a stage that works on several fields: draws as stage i_key of the first one; i_joint from 1. */
stk_status stk_chain_add_joint(stk_chain *chain, stk_stage *stage, int i_key, int i_joint);

/* The first n stages of a chain, and the others; they borrow its stages and need no freeing. */
void stk_chain_cut(const stk_chain *chain, int n, stk_chain *head, stk_chain *rest);

/* The type after all stages, as planned. Borrowed from the chain. */
const stk_field_type *stk_chain_type(const stk_chain *chain);
/* STK_INVALID when the field is still encoded, so that it has no place in a batch. */
stk_status stk_chain_check_end(const stk_chain *chain);
/* True for an array all of whose sides are known. */
bool stk_field_type_known(const stk_field_type *type);

/* The type after all stages for this very item, without running more than the reading of a header. */
stk_status stk_chain_measure(const stk_chain *chain, const stk_stage_key *key, const stk_item *in, stk_field_type *out);

/* Runs all stages on one item and writes the result to dst. key->i_stage is set here. `want` is the type dst has place
 * for: where the planned type leaves sides open, another size is STK_MISMATCH, *wrong_size is set and the text is
 * "is [28,30,3] after stage 'decode', the batch needs [32,32,3]". in->data is never written to. */
stk_status stk_chain_run(const stk_chain *chain, const stk_stage_key *key, const stk_item *in,
                         const stk_field_type *want, void *dst, stk_chain_work *work, bool *wrong_size);
/* The same where the first side of `want` is STK_ANY and may be anything; dst holds dst_bytes. *got says what came and
 * where it lies: at dst, or where it is too large for it, elsewhere until the next run or read. */
stk_status stk_chain_run_open(const stk_chain *chain, const stk_stage_key *key, const stk_item *in,
                              const stk_field_type *want, void *dst, size_t dst_bytes, stk_chain_work *work,
                              stk_item *got, bool *wrong_size);
/* Frees its memory, which grows again; the times stay. */
void stk_chain_work_trim(stk_chain_work *work);

/* How many of the first stages run as one pass over rows for this item; 0: none. */
int stk_chain_pass(const stk_chain *chain, const stk_stage_key *key, const stk_item *in);

#endif
