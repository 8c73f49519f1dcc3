/* Samples that a C function makes one after the other: a source that is not asked by number but moved forward. The
 * public side is stk_dataset_generator in stoker/data/custom.h.
 *
 * Threads: one at a time, which who calls sees to (data/loader/sequence.h); attach and detach: any.
 */
#ifndef STK_DATA_SOURCE_GENERATOR_H
#define STK_DATA_SOURCE_GENERATOR_H

#include "data/source/source.h"
#include "stoker/data/custom.h"

/* How many records a source has whose count is not known (is_open): more than can come. */
#define STK_OPEN_COUNT (INT64_C(1) << 46)

stk_status stk_source_open_generator(const stk_array_field *fields, int n_fields, const stk_sample_generator *generator,
                                     stk_source **out);

/* The function has one position, so that one reader may use it at a time: STK_BUSY while there is another. Reading
 * begins an epoch again after it. */
stk_status stk_generator_attach(const stk_source *source);
void stk_generator_detach(const stk_source *source);

/* Moves on to a record of an epoch and writes field i to place[i], which is written to for what is passed over, too.
 * *ended: there is no such record, in a source whose count is not known. *fatal, with an error: later records cannot be
 * read either. */
stk_status stk_generator_read(const stk_source *source, uint64_t epoch, int64_t i_record, void *const *place,
                              bool *ended, bool *fatal);

#endif
