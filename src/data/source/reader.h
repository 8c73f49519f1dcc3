/* Reading records of any source, whether they depend on the epoch or not. Threads: a reader is one thread's own. */
#ifndef STK_DATA_SOURCE_READER_H
#define STK_DATA_SOURCE_READER_H

#include "data/source/source.h"

/* Starts zeroed. What was read lives until the next read. */
typedef struct stk_reader {
    stk_scratch scratch[STK_MAX_FIELDS];
    void *work; /* of a source whose records depend on the epoch */
} stk_reader;

/* Only the key's seed and epoch count, and only for such a source. */
stk_status stk_reader_read(stk_reader *reader, const stk_source *source, int64_t i_record, const stk_stage_key *key,
                           stk_item *item);
/* Of the fields whose bits are set at least; the other items are undefined. */
stk_status stk_reader_read_some(stk_reader *reader, const stk_source *source, int64_t i_record,
                                const stk_stage_key *key, unsigned fields, stk_item *item);
void stk_reader_free(stk_reader *reader, const stk_source *source);

/* What the source keeps in memory of its own. */
size_t stk_source_held_bytes(const stk_source *source);

enum { STK_RECORD_NAME_BYTES = 256 };
/* The record's name, for messages. */
void stk_source_name(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes);

/* True for an error of one record, which another record may replace; false where the next would fail alike, as after
 * STK_IO: a disk or server that fails is no record's fault, and each try of it may take minutes. */
bool stk_record_can_skip(stk_status status);

#endif
