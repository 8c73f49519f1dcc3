/* Verifying data: every record of a source is read and decoded once, in full, whatever a pipeline would need of it.
 *
 * Threads: any; each call has threads of its own.
 */
#ifndef STOKER_DATA_VERIFY_H
#define STOKER_DATA_VERIFY_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_verify_progress {
    int64_t n_done, n_records; /* files, where records are parts of files as in videos and volumes */
    int64_t n_bytes;           /* of records so far, encoded as they are */
    int64_t n_corrupt;
    int64_t n_too_large; /* of those: records that are larger than the memory limit, and were not read */
} stk_verify_progress;

/* Or one that is too large for the memory limit, as its reason says. Texts are borrowed for the call. */
typedef struct stk_corrupt_record {
    int64_t i_record;     /* in its data set, where there are several */
    const char *name;     /* "'train/cat/7.jpg'", "'a.tfrecord', record 3 at byte 1234" */
    const char *file;     /* of the name alone; NULL: not known */
    int64_t offset_bytes; /* where the record begins in its file; -1: not known, or it is the whole file */
    const char *reason;
} stk_corrupt_record;

typedef struct stk_verify_options {
    int n_threads; /* 0: as many as cores */
    /* Called now and then by the calling thread; false stops: STK_INTERRUPTED. May be NULL. */
    bool (*on_progress)(void *user, const stk_verify_progress *progress);
    /* Each corrupt record, in their order, at the end of its data set; of very many the first 100,000 found. May be
     * NULL. */
    void (*on_corrupt)(void *user, const stk_corrupt_record *record);
    void *user;
} stk_verify_options;

/* Reads every record of the data set's source, whatever its order, and decodes what is encoded to the last byte; of a
 * data set made of others, every record of each; videos and volumes to their ends. A data set without batches and
 * stages will do. STK_CORRUPT when some records are; another error when verifying failed
 * itself. options and result may be NULL. */
STK_API stk_status stk_dataset_verify(const stk_dataset *dataset, const stk_verify_options *options,
                                      stk_verify_progress *result);

#ifdef __cplusplus
}
#endif
#endif
