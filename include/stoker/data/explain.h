/* What an input pipeline is: its source, order, stages, memory and guarantees, as facts and texts.
 *
 * Threads: any; each call opens a loader of its own for a moment.
 */
#ifndef STOKER_DATA_EXPLAIN_H
#define STOKER_DATA_EXPLAIN_H

#include "stoker/data/cache.h"
#include "stoker/data/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STK_EXPLAIN_MOST = 64, STK_EXPLAIN_TEXT = 160 };

typedef struct stk_explained_stage {
    char field[32], name[32];
    char output[STK_EXPLAIN_TEXT]; /* "u8[?,?,3]": sides that differ between samples are ? */
    bool random;
    int i_pass; /* stages with the same number run as one pass over rows, without an image in between; 0: by itself */
} stk_explained_stage;

typedef struct stk_explained_field {
    char name[32];
    char input[STK_EXPLAIN_TEXT];  /* as the source gives it: "encoded", "i32[]" */
    char output[STK_EXPLAIN_TEXT]; /* in a batch, of one sample */
    size_t row_bytes;              /* in a batch */
} stk_explained_field;

typedef struct stk_explanation {
    /* source */
    char source[32];                       /* "files" */
    int64_t n_records, n_files, n_classes; /* n_records -1: not known */
    double record_bytes; /* of one record as the source gives it, the mean of n_measured; 0: none could be read */
    /* Of records that are windows of their files: what the files hold, and what one takes from them; 0: records are as
     * they lie there; -1: not known. */
    int64_t file_bytes, window_bytes;
    int64_t n_measured, n_corrupt;  /* n_corrupt more could not be read; undecoded images are taken as they are */
    char corrupt[STK_EXPLAIN_TEXT]; /* the name of the first of these */
    bool in_memory;                 /* nothing is read after opening */
    /* order */
    int n_orders;
    char order[STK_EXPLAIN_MOST][STK_EXPLAIN_TEXT]; /* "shuffle of all 500 samples, another for each epoch" */
    bool indexable;    /* record n of an epoch is arithmetic; false: a position is found by replaying draws */
    bool same_batches; /* for any number of threads */
    bool exact_resume; /* from two integers, epoch and batch */
    stk_on_error on_error;
    int n_scans;
    char scan[4][STK_EXPLAIN_TEXT]; /* "filter: 300 of 500 records are kept; 0.8 s": what they found and took */
    /* an epoch */
    int64_t n_samples, n_batches, batch; /* -1: how many is not known */
    int64_t n_last;                      /* samples in the last batch; 0: not known */
    bool varies;                         /* batches have up to N samples, by length */
    double padding;    /* share of the elements of padded fields that are padding, in epoch 0; -1: none are padded */
    int64_t n_dropped; /* samples that no batch has room for */
    double bytes_per_epoch; /* that are read; estimated from record_bytes or window_bytes. -1: not known */
    /* stages */
    int n_fields, n_stages;
    stk_explained_field field[16];
    stk_explained_stage stage[STK_EXPLAIN_MOST];
    /* the loader, as it would be opened */
    int n_threads, n_slots;
    size_t slot_bytes;         /* of one slot, which is one batch */
    size_t memory_limit_bytes; /* of all buffers */
    stk_cache_stats cache;
    int n_cached;   /* stages of all fields whose output is kept, rather than recomputed */
    char note[256]; /* what opening found and does no harm; "": nothing */
} stk_explanation;

/* Explains a batched data set with the loader that config (NULL: the default) would open. Reads some records. */
STK_API stk_status stk_dataset_explain(const stk_dataset *dataset, const stk_loader_config *config,
                                       stk_explanation *out);

#ifdef __cplusplus
}
#endif
#endif
