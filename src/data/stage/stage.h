/* A stage: one step of work on one field of one sample. Internal interface; docs/adding-a-stage.md shows how to add
 * one.
 *
 * A stage is one file that ends with its descriptor, and one line in stage_list.h. `plan` states the output before any
 * data flows; `run` is a pure function of (input, key). Stages hold no state that changes: one stage object serves all
 * workers at once.
 */
#ifndef STK_DATA_STAGE_STAGE_H
#define STK_DATA_STAGE_STAGE_H

#include "base/memory.h"
#include "base/rng.h"
#include "data/stage/view.h"
#include "stoker/dataset.h"
#include "tensor/shape.h"

/* What flows between stages. Encoded bytes have an unknown length until run. */
typedef enum stk_field_kind { STK_FIELD_ARRAY, STK_FIELD_ENCODED } stk_field_kind;

typedef struct stk_field_type {
    stk_field_kind kind;
    stk_tensor_desc desc; /* for arrays; sides that vary between samples are STK_ANY */
} stk_field_type;

/* One sample's field at run time: all dimensions known. */
typedef struct stk_item {
    stk_field_type type;
    void *data;     /* array elements, or encoded bytes; inputs are never written to */
    size_t n_bytes; /* of data */
} stk_item;

/* The sides that fields of one record have before each stage that works on several of them, as they are met; 0: not
 * yet.
 */
enum { STK_MAX_JOINTS = 16 };
typedef struct stk_joint_sides {
    int64_t side[STK_MAX_JOINTS][2];
} stk_joint_sides;

/* What run gets besides data. */
typedef struct stk_stage_key {
    uint64_t seed, epoch, i_sample; /* make a stream with stk_rng_make(seed, epoch, i_sample, i_stage) */
    uint64_t i_stage;
    stk_joint_sides *joint; /* this record's; NULL: no stage works on several fields */
} stk_stage_key;

struct stk_jpeg_entry; /* data/codec/jpeg_crop.h */
struct stk_learner;    /* data/source/learner.h */

/* When a file's content and when anything about it changed last. */
typedef struct stk_file_times {
    int64_t mtime_ns, ctime_ns; /* ctime: 0 where it is not known */
} stk_file_times;

/* What is known of an encoded JPEG's rows of MCUs, or is to be found out. */
typedef struct stk_jpeg_hint {
    const struct stk_jpeg_entry *entry; /* [n_entries] where they start. Borrowed; NULL: not known */
    int n_entries;
    struct stk_learner *learner; /* that wants to know, of this record; NULL: nobody does */
    int64_t i_record;
    stk_file_times times;
} stk_jpeg_hint;

/* Grows on demand, kept by the worker between samples. Starts zeroed. */
typedef struct stk_scratch {
    void *data;
    size_t n_bytes;
    stk_memory *memory; /* that it is charged to: the account of the thread that made it grow */
    stk_jpeg_hint jpeg; /* where data is an encoded JPEG; nothing after each stk_scratch_get */
} stk_scratch;
/* 64-byte aligned; old content is lost. NULL when out of memory, with the error set. */
void *stk_scratch_get(stk_scratch *scratch, size_t bytes);
void stk_scratch_free(stk_scratch *scratch);

typedef struct stk_stage_class {
    const char *name;
    size_t params_bytes;
    /* The output's type for this input's, or an error that says what does not fit ("needs u8 or f32 images [H,W,C], not
     * i32 []"); the caller adds the names of the stages. */
    stk_status (*plan)(const void *params, const stk_field_type *in, stk_field_type *out);
    /* The output's shape for this very sample, once its input is known; NULL where plan's answer has no STK_ANY left
     * when the input has none. For encoded input this reads the header only. The key is the same as run's. */
    stk_status (*measure)(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out);
    /* Writes out->data (out->type is measured already, the place is large enough). scratch is this stage's and worker's
     * own. */
    stk_status (*run)(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch);
    /* Optional: tells the view what run would do, and sets *fits to what the view answers. An error is one that run
     * would give. See data/stage/view.h. */
    stk_status (*view)(const void *params, const stk_stage_key *key, stk_view *view, bool *fits);
    /* Optional: what is to be done when a stage is freed. */
    void (*close)(void *params);
    bool random;    /* uses the key */
    bool in_place;  /* out->data may be in->data */
    bool unique;    /* params point into the stage itself, so that it has no copies */
    bool geometric; /* moves pixels by the key and the image's sides alone, so that it can do the same to a mask */
    /* Optional, of a geometric one: params for masks, whose values are never mixed, and whose outside is 0. */
    void (*for_mask)(void *params);
    bool plain; /* equal params, byte by byte, mean equal work in every process: no pointers, no padding */
} stk_stage_class;

struct stk_stage {
    const stk_stage_class *class;
    stk_status status; /* of its constructor; the text is in error */
    char error[200];
    _Alignas(16) unsigned char params[64];
};

/* For constructors: copies params; never NULL. A failed one carries its error to stk_dataset_apply. */
stk_stage *stk_stage_new(const stk_stage_class *class, const void *params);
stk_stage *stk_stage_new_failed(stk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
