/* What flows from sources through stages into batches: a field of one sample, its type, and memory that grows to hold
 * it. Threads: each has its own.
 */
#ifndef STK_DATA_COMMON_ITEM_H
#define STK_DATA_COMMON_ITEM_H

#include "base/memory.h"
#include "stoker/data/dataset.h"
#include "tensor/shape.h"

/* Encoded bytes have an unknown length until they are read. */
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

/* What a stage gets besides data. */
typedef struct stk_stage_key {
    uint64_t seed, epoch, i_sample; /* make a stream with stk_rng_make(seed, epoch, i_sample, i_stage) */
    uint64_t i_stage;
    stk_joint_sides *joint; /* this record's; NULL: no stage works on several fields */
} stk_stage_key;

struct stk_jpeg_entry; /* data/codec/jpeg_crop.h */
struct stk_mcu_index;  /* data/source/mcu_index.h */

/* When a file's content and when anything about it changed last. */
typedef struct stk_file_times {
    int64_t mtime_ns, ctime_ns; /* ctime: 0 where it is not known */
} stk_file_times;

/* What is known of an encoded JPEG's rows of MCUs, or is to be found out. */
typedef struct stk_jpeg_hint {
    const struct stk_jpeg_entry *entry; /* [n_entries] where they start. Borrowed; NULL: not known */
    int n_entries;
    struct stk_mcu_index *mcu_index; /* that wants to know, of this record; NULL: nobody does */
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

#endif
