/* Loaders: batches of a data set, made ahead by worker threads in a ring of slots.
 *
 * Workers claim (slot, rows a..b) and write each row where it belongs: no queue of samples, no collation copy. Memory
 * is bounded by a limit (stoker/memory.h). Batches come in order and are the same for any number of threads.
 * Several loaders, in one process or many, may share each epoch: with n_shards of them each has every n_shards-th
 * sample in the data set's order. Their number may change at any batch, with no sample lost or met twice: see i_sample.
 * Threads: one consumer a loader.
 */
#ifndef STOKER_DATA_LOADER_H
#define STOKER_DATA_LOADER_H

#include "stoker/data/dataset.h"
#include "stoker/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_loader stk_loader;
typedef struct stk_batch stk_batch;

typedef struct stk_loader_config {
    int n_threads;             /* worker threads; 0: as many as cores; fewer where memory is short */
    int n_slots;               /* batches in the ring; 0: 4 to 16, by their size; fewer where memory is short */
    size_t memory_limit_bytes; /* of all buffers; 0: a quarter of what is free. See stoker/memory.h */
    stk_memory *memory;       /* an account that this loader shares with others, instead; borrowed until it is closed */
    uint64_t seed;            /* of the stages' random keys */
    int64_t i_epoch, i_batch; /* where to start: resuming is opening here */
    int64_t n_shards, i_shard; /* of N loaders that share each epoch this is one, from 0; 0 and 0: the only one */
    /* The rows of one batch of all shards are cut into one piece for each, where else they are dealt out one by one.
     * Only where batches are of one size and what is left at an epoch's end is dropped. */
    bool shards_together;
    int64_t i_sample;    /* where to start instead of i_batch: samples of the epoch that all shards have done */
    int64_t n_epochs;    /* ends after that many from i_epoch; 0: never ends */
    bool no_tuning;      /* all threads and slots are used from the first batch to the last */
    int n_first_threads; /* tuning begins with that many; 0: all. More are tried while the consumer waits, and under */
    int n_first_slots;   /* low_priority fewer while it does not; batches are the same */
    bool low_priority;   /* workers yield to compute threads */
    int n_kept;          /* batches that may be kept at a time with memory of their own; 0: none. stoker/data/keep.h */
    bool no_stage_times; /* stages are not timed, which costs less than 1 %; for measuring that */
    /* The consumer's own threads, which do the work instead of worker threads where the records are arrays in memory:
     * stk_loader_next makes the batch by parallel(parallel_user, n_threads, body, task), which calls
     * body(task, i, n_threads) for each i below n_threads on threads of its choice, and returns when all are done.
     * For computations on all cores: a worker would hold up the part of one that it interrupts. NULL: none. */
    void (*parallel)(void *user, int n_parts, void (*body)(const void *task, int i_part, int n_parts),
                     const void *task);
    void *parallel_user;
    void *(*alloc)(void *user, size_t bytes); /* memory of the slots, 64-byte aligned; NULL: ordinary memory */
    void (*free)(void *user, void *p, size_t bytes);
    void *alloc_user;
} stk_loader_config;

STK_API stk_loader_config stk_loader_config_default(void);

/* The data set and config->memory may be freed before the loader is closed: they go with the last loader of them. Until
 * then a data set must stay as it is, and calls that would change it are STK_BUSY. config may be NULL. */
STK_API stk_status stk_loader_open(const stk_dataset *dataset, const stk_loader_config *config, stk_loader **out);
/* Stops the workers, at once even in the middle of an epoch. Accepts NULL. Unreleased batches become invalid. */
STK_API void stk_loader_close(stk_loader *loader);

/* The next batch, or NULL at the end or after an error: then stk_loader_status says which. Borrowed until
 * stk_batch_release. At most two batches may be held at once. */
STK_API const stk_batch *stk_loader_next(stk_loader *loader);
STK_API void stk_batch_release(const stk_batch *batch);
STK_API stk_status stk_loader_status(const stk_loader *loader);

/* [N, ...] of the field, NULL when there is none of that name. Borrowed until release. */
STK_API const void *stk_batch_data(const stk_batch *batch, const char *field);
/* Rows that are samples; fewer than N only in a short last batch, and where samples are left out. Zeros follow. */
STK_API int64_t stk_batch_count(const stk_batch *batch);
/* Where this batch stands. */
STK_API int64_t stk_batch_epoch(const stk_batch *batch);
STK_API int64_t stk_batch_index(const stk_batch *batch); /* in its epoch */
/* Samples of its epoch that are done when all shards have done this batch: a loader opened with this as i_sample goes
 * on from there, also with another number of shards. */
STK_API int64_t stk_batch_done(const stk_batch *batch);
/* Hash of the field's bytes, and of all fields: equal batches have equal hashes. */
STK_API uint64_t stk_batch_hash(const stk_batch *batch);

typedef struct stk_loader_stats {
    int64_t n_batches, n_samples;
    int64_t wait_ns;         /* the consumer's time in stk_loader_next without a ready batch; making it itself counts */
    int64_t work_ns;         /* the workers' time at work, all together */
    int64_t n_skipped;       /* different records that were left out or replaced, see stk_on_error */
    size_t slot_bytes;       /* memory of the ring */
    stk_memory_stats memory; /* of its account, which others may share */
    int n_threads, n_slots;
    int n_active_threads, n_used_slots; /* of them, as tuning has it now */
    double ready_mean;                  /* batches that were ready when one was asked for, on average */
    int n_history;                      /* the same over time, in equal parts */
    float ready[32];
    double first_batch_s; /* from the start of the process until the first batch was handed out; 0: not yet */
} stk_loader_stats;
STK_API void stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out);
/* The i-th thing that tuning tried and what came of it, as text; NULL past the end. Borrowed until stk_loader_close. */
STK_API const char *stk_loader_tuning(const stk_loader *loader, int i);
/* "not input-bound" below 5 % of the time spent waiting, "moderately input-bound" below 20 %, else "highly
 * input-bound", as XProf's analyser has it. Returns a constant. */
STK_API const char *stk_input_verdict(double wait_share);
/* What each part of the work takes, by a thread's time for one sample; estimated from one sample in sixteen, and
 * from one in 128 of those behind a worker's first 4,096. */
typedef struct stk_stage_stats {
    const char *field; /* "" for reading the record. Borrowed from the data set */
    char name[128];    /* "decode + random_flip + normalize": stages that run as one are one */
    double ns_per_sample;
} stk_stage_stats;
/* Reading first, then the stages in order. Returns how many there are, at most n_most. */
STK_API int stk_loader_get_stages(const stk_loader *loader, stk_stage_stats *out, int n_most);
/* The i-th skipped record as text ("'cat/7.jpg': truncated JPEG"), at most the first 100 are kept; NULL past the end.
 * Borrowed until stk_loader_close. */
STK_API const char *stk_loader_skipped(const stk_loader *loader, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
