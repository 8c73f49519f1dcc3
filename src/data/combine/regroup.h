/* A source of regrouped samples: its records are made of several samples of one data set, or of parts of one.
 *
 * It opens with the samples as they are, so that they can be scanned; a kind then says what its records are and reads
 * them. Threads: as for all sources.
 */
#ifndef STK_DATA_COMBINE_REGROUP_H
#define STK_DATA_COMBINE_REGROUP_H

#include "data/combine/child.h"
#include "data/order/first_fit.h"
#include "stoker/data/regroup.h"

typedef struct stk_regroup stk_regroup;

/* One thread's. */
typedef struct stk_regroup_work {
    stk_child_work child;
    stk_scratch out[STK_MAX_FIELDS];
    /* The sample that was read last, as its parts are asked for one after the other. */
    int64_t i_read; /* one more than its position */
    uint64_t epoch, seed;
    stk_item item[STK_MAX_FIELDS];
} stk_regroup_work;

struct stk_regroup {
    stk_source base;
    stk_dataset *child; /* owned */
    int64_t n_samples;  /* of the child, in an epoch */
    stk_status (*read)(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                       stk_item *item);
    int64_t (*first_of)(const stk_regroup *s, int64_t i_record); /* a sample that it is made of, for its name */
    /* packing */
    int64_t length;
    int n_packed;
    int packed[STK_MAX_FIELDS]; /* fields of the child */
    stk_pad_plan pad[STK_MAX_FIELDS];
    stk_rows rows;
    /* windows */
    int64_t size, shift, stride;
    /* parts */
    int64_t n_parts; /* of every sample; 0: as `first` says */
    int64_t *first;  /* [n_samples + 1]: where each sample's parts begin; owned */
    stk_flat_map map;
    stk_status (*read_part)(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                            stk_item *item); /* what `read` becomes, once they are counted */
};

/* Takes child once it succeeds. */
stk_status stk_regroup_open(const char *name, stk_dataset *child, stk_regroup **out);
/* A sample of the child into work->item; the last one is kept. */
stk_status stk_regroup_read_sample(const stk_regroup *s, int64_t position, const stk_stage_key *key,
                                   stk_regroup_work *work);
void stk_regroup_set_field(stk_regroup *s, int i, const char *name, stk_dtype dtype, stk_shape shape);

/* How many elements of a sample are packed: as many in all fields. */
stk_status stk_regroup_measure_packed(const stk_regroup *s, const stk_item *item, int64_t *out);
stk_status stk_regroup_window(stk_regroup *s, stk_windows windows);
/* Rows of samples, or what a function makes of them; counts is [n_samples], not above 0 where there are none, and NULL
 * where all have s->n_parts. */
stk_status stk_regroup_plan_rows(stk_regroup *s);
stk_status stk_regroup_plan_map(stk_regroup *s, const stk_flat_map *map);
stk_status stk_regroup_split(stk_regroup *s, const int32_t *counts);
/* How many parts a sample has. */
stk_status stk_regroup_count_rows(const stk_regroup *s, const stk_item *item, int64_t *out);
stk_status stk_regroup_count_made(const stk_regroup *s, const stk_item *item, int64_t *out);
/* The samples' lengths are [n_samples], -1 for those that cannot be read. */
stk_status stk_regroup_pack(stk_regroup *s, const stk_packing *how, const int32_t *lengths);
/* Checks and sets which fields are packed, before their lengths are asked for. */
stk_status stk_regroup_plan_pack(stk_regroup *s, const stk_packing *how);

#endif
