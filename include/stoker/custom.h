/* Functions of one's own in the pipeline: a stage made of a C function. A source made of one is stk_dataset_function.
 *
 * A function that cannot do its work returns another status than STK_OK, and says why with stk_fail: the error is then
 * one of that record, which stops the run with the record's name, or is counted and replaced with on_error skip.
 */
#ifndef STOKER_CUSTOM_H
#define STOKER_CUSTOM_H

#include "stoker/dataset.h"
#include "stoker/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a stage --- */

/* One sample's field. Bytes that are still encoded (a JPEG file) are u8 [n_bytes]. */
typedef struct stk_map_array {
    stk_dtype dtype;
    stk_shape shape;
    void *data;
    size_t n_bytes;
} stk_map_array;

typedef struct stk_map_call {
    stk_map_array src; /* not to be written to, unless it is dst; borrowed for the call */
    stk_map_array dst; /* row-major; its bytes are undefined at first, unless it is src */
    void *scratch;     /* scratch_bytes, 64-byte aligned, this thread's own; undefined at first */
    stk_rng *rng;      /* this sample's own stream, anew in each epoch; NULL unless config.random */
} stk_map_call;

typedef struct stk_map_config {
    const char *name; /* for messages and statistics, at most 63 characters; copied */
    /* The output for an input: *dst holds src's dtype and shape at first; change what differs. Called when the stage is
     * added, with sides that differ from sample to sample as STK_ANY and data NULL, and then for each sample where a
     * side was left open. Sides may depend on the bytes of an encoded input, where data is not NULL. A status other
     * than STK_OK refuses the input; say why with stk_fail. NULL: the output is like the input. */
    stk_status (*shape)(void *user, const stk_map_array *src, stk_dtype *dst_dtype, stk_shape *dst_shape);
    /* Writes all of call->dst. Must depend on nothing but src, rng and what user points to and nobody changes: then
     * batches are the same for any number of threads, and after a resume. */
    stk_status (*run)(void *user, const stk_map_call *call);
    void *user; /* borrowed as long as the data set lives */
    size_t scratch_bytes;
    bool random;   /* run draws numbers from rng */
    bool in_place; /* call->dst.data may be call->src.data, where they are equally large: saves a copy */
} stk_map_config;

/* A stage that runs a function of one's own on each sample. config is borrowed for the call.
 * Threads: shape and run are called by several workers at once. */
STK_API stk_stage *stk_map(const stk_map_config *config);

#ifdef __cplusplus
}
#endif
#endif
