/* What a data set is made of, for the loader. The public side is stoker/data/dataset.h. */
#ifndef STK_DATA_DATASET_DATASET_H
#define STK_DATA_DATASET_DATASET_H

#include <stdatomic.h>

#include "data/cache/row_cache.h"
#include "data/dataset/bucket.h"
#include "data/dataset/mixup.h"
#include "data/dataset/pad.h"
#include "data/order/order.h"
#include "data/source/reader.h"
#include "data/stage/chain.h"
#include "stoker/data/dataset.h"

enum { STK_MAX_TRIES = 100, STK_MOST_SCANS = 4, STK_SCAN_TEXT = 160 };

struct stk_dataset {
    stk_status status;   /* of the first call that failed */
    _Atomic int n_users; /* loaders and trainers that it must outlive, whoever frees it first */
    char error[1024];
    stk_source *source;
    stk_order order;
    stk_chain chain[STK_MAX_FIELDS]; /* one for each field of the source */
    int64_t n_rows;                  /* of a batch; 0: not batched yet */
    bool drop_remainder;
    stk_on_error on_error;
    int64_t most_errors; /* as in stk_error_policy */
    int n_padded;        /* fields whose rows differ in length; a slot has one more field for each */
    bool has_lengths;    /* of some of them they are known by record */
    stk_pad_plan pad[STK_MAX_FIELDS];
    stk_buckets_plan buckets;
    stk_mixup mixup;
    struct stk_masked *masked;   /* NULL: no tokens are hidden */
    int n_joints;                /* stages that work on several fields */
    struct stk_row_cache *cache; /* NULL: none */
    size_t memory_limit_bytes;   /* of what is read outside loaders: 0: a quarter of what is free */
    int n_scans;
    char scan[STK_MOST_SCANS][STK_SCAN_TEXT]; /* what scans found; see scan.h */
};

/* A new data set over source, which it takes; source is NULL when opening it failed with status, whose text is this
 * thread's. Never NULL. */
stk_dataset *stk_dataset_make(stk_status status, stk_source *source);

/* Until stk_dataset_free is called once more, by whoever holds it. Threads: any. */
void stk_dataset_hold(const stk_dataset *dataset);
/* False, with STK_BUSY as its error, while a loader or trainer uses it: what it is made of must stay. */
bool stk_dataset_can_change(stk_dataset *dataset, const char *what);

/* Keeps the first error. Returns status. */
stk_status stk_dataset_keep_error(stk_dataset *dataset, stk_status status);
/* Plans the padded fields, which needs a scan where lengths are not given. */
struct stk_padding;
stk_status stk_pad_plan_make(stk_dataset *dataset, const struct stk_padding *paddings, int n_paddings);
/* False when the call must do nothing: after an error, or after batch, which is one. */
bool stk_dataset_can_order(stk_dataset *dataset, const char *what);
/* False for what needs samples by number where they come one after the other, which is an error. */
bool stk_dataset_has_numbers(stk_dataset *dataset, const char *what);
/* -1 when there is none of that name; the error then names those that there are. */
int stk_dataset_find_field(const stk_dataset *dataset, const char *name);
/* STK_INVALID where a shard has a place that was never filled. */
stk_status stk_dataset_check_hint(const stk_dataset *dataset);

/* The types of one sample's fields after all stages, in the source's order. Sides that the plan leaves open are taken
 * from the first sample of epoch 0 (and of padded ones from the longest), whose name goes to name ("" when no record
 * had to be read). Fails for a field that is still encoded. Threads: any. */
stk_status stk_dataset_probe(const stk_dataset *dataset, stk_field_type types[STK_MAX_FIELDS],
                             char name[STK_RECORD_NAME_BYTES]);

/* Puts the record's name before the error's text, unless it is in there already. Returns status. */
stk_status stk_dataset_fail_record(const stk_dataset *dataset, stk_status status, stk_order_place place);

/* What the source and scans keep in memory. */
size_t stk_dataset_held_bytes(const stk_dataset *dataset);

/* For reading records outside a loader: what they take is charged to an account of this call's own, unless the thread
 * has one already (*own: NULL then), so that no record is read that is larger. Blocks are freed before it is left. */
stk_status stk_dataset_enter_memory(const stk_dataset *dataset, stk_memory **own);
void stk_dataset_leave_memory(stk_memory *own);

#endif
