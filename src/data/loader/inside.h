/* What a loader is made of, for the files that make one up. */
#ifndef STK_DATA_LOADER_INSIDE_H
#define STK_DATA_LOADER_INSIDE_H

#include "data/loader/kept.h"
#include "data/loader/tune.h"
#include "data/loader/worker.h"
#include "stoker/data/loader.h"

/* That the consumer may hold. */
enum { STK_MOST_HELD = 2 };

struct stk_batch {
    stk_loader *loader;
    stk_slot *slot;
    int64_t i_batch; /* of the ring */
    int64_t n_rows;  /* that are samples */
    bool held;
};

/* What a loader takes of its account, or would. */
typedef struct stk_loader_memory {
    size_t held_bytes;   /* by the source and by plans, as long as the data set lives */
    size_t least_bytes;  /* with two batches and one worker */
    size_t wanted_bytes; /* with as many as there are to be where there is room */
} stk_loader_memory;
/* Asks without opening one. Reads a few records where their content says how much it is. */
stk_status stk_loader_need(const stk_dataset *dataset, const stk_loader_config *config, stk_loader_memory *out);

/* Once slots and workers are chosen: opens the data set's cache, unless an earlier loader has, and sets work->cache and
 * the chains that workers run. *charged is the loader's to release. */
stk_status stk_loader_open_cache(const stk_dataset *dataset, stk_work *work, size_t *charged);

typedef void (*stk_part_body)(const void *task, int i_part, int n_parts);

struct stk_loader {
    stk_work work;
    stk_skip_list skips;
    stk_ahead ahead;
    stk_sequence sequence;
    stk_ring_config ring_config;
    stk_kept_pool *kept;    /* NULL: none may be kept */
    stk_memory *own_memory; /* NULL: the caller's is used */
    stk_epoch_plans *plans; /* NULL: batches are not planned */
    size_t held_bytes;      /* by the source */
    size_t plan_bytes;
    stk_tuner tuner;
    bool tunes;
    size_t cache_bytes; /* of the cache, charged by this loader */
    int n_threads;      /* started */
    stk_thread *thread;
    stk_worker *worker; /* work.n_workers */
    /* The consumer's threads; NULL: the workers have their own. */
    void (*parallel)(void *user, int n_parts, stk_part_body body, const void *task);
    void *parallel_user;
    stk_batch batch[STK_MOST_HELD];
    int64_t i_next; /* batch of the ring that comes next */
    int64_t n_samples, wait_ns;
    double first_batch_s;
    bool is_empty;     /* no sample was left of any batch since the first one of an epoch */
    bool ended;        /* stays: the last call failed */
    stk_status status; /* of the last stk_loader_next */
    char error[1024];
};

#endif
