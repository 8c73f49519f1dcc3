/* Functions of one's own in the pipeline: a stage made of a C function. A source made of one is stk_dataset_function.
 *
 * A function that cannot do its work returns another status than STK_OK, and says why with stk_fail: the error is then
 * one of that record, which stops the run with the record's name, or is counted and replaced with on_error skip.
 * STK_IO says that the source itself fails, and stops it in any case.
 */
#ifndef STOKER_DATA_CUSTOM_H
#define STOKER_DATA_CUSTOM_H

#include "stoker/data/dataset.h"
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
    stk_rng *rng;      /* this sample's own stream, again in each epoch; NULL unless config.random */
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

/* --- a source whose samples come one after the other --- */

/* Functions that make samples in order: a simulation, a pipe, a stream. What makes sample number i when it is asked to
 * is better off with stk_dataset_function, which can be shuffled, cached and resumed at once.
 *
 * Threads: the functions are called by one thread at a time, not always the same one, and by one loader at a time: a
 * second one is refused with STK_BUSY. stk_loader_close waits for a call that is under way to return. */
typedef struct stk_sample_generator {
    int64_t n_samples; /* in each epoch; 0: not known, until `next` says that they have ended */
    /* Begins epoch i_epoch (0, 1, ...) with its first sample; also while another one is not at its end. An error ends
     * the loader. */
    stk_status (*begin)(void *user, int64_t i_epoch);
    /* Writes the next sample: out[i] points at the place for field i, in the order of the fields. Or sets *ended, which
     * is false at first: there are no more in this epoch. Not called again then. Not asked for more than n_samples. A
     * status other than STK_OK is a corrupt sample, which counts as one and on which the next follows. Samples must
     * depend on nothing but the epoch and their place in it, if runs are to be the same and resumable. */
    stk_status (*next)(void *user, void *const *out, bool *ended);
    /* Optional: as begin, but with sample i_sample as the next one. Without it a loader that starts in the middle of an
     * epoch has the samples before made, and drops them. */
    stk_status (*seek)(void *user, int64_t i_epoch, int64_t i_sample);
    void *user; /* borrowed as long as the data set lives */
} stk_sample_generator;

/* fields: names, types and shapes; their data pointers are not used. generator is borrowed for the call. Workers run
 * the stages side by side, batches keep the order, and no more is asked for than the loader's slots hold.
 *
 * take, skip, shard and, where n_samples is given, repeat work: samples that are not wanted are made and dropped.
 * What asks for samples by number is refused with STK_INVALID: shuffle, split, filter, cache, padded and bucket
 * batches, combining and regrouping data sets, STK_ON_ERROR_REPLACE. A generator that ends before n_samples is an
 * error. Without n_samples a loader reads one epoch (n_epochs 1); the last batch is short or dropped, as usual; such a
 * data set cannot be trained on with a trainer, nor shared among loaders. */
STK_API stk_dataset *stk_dataset_generator(const stk_array_field *fields, int n_fields,
                                           const stk_sample_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
