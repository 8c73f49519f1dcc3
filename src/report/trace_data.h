/* What a trace.json of a run says (events/trace_file.h), as what each thread did when, for the critical path. Nothing
 * here judges. Kernels belong to the thread that launched them. Where slices lie in each other, the innermost counts.
 * Threads: one at a time.
 */
#ifndef STK_REPORT_TRACE_DATA_H
#define STK_REPORT_TRACE_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

typedef enum stk_work_kind {
    STK_WORK_WAIT,          /* for a batch */
    STK_WORK_INPUT,         /* on samples */
    STK_WORK_HOST,          /* the loop's own, and what nothing was recorded of */
    STK_WORK_LAUNCH,        /* between kernels */
    STK_WORK_COMPUTE,       /* in kernels */
    STK_WORK_COMMUNICATION, /* kernels that sum over ranks or wait for them, and collectives */
    STK_WORK_SAVE,          /* of a checkpoint */
    STK_N_WORK_KINDS
} stk_work_kind;

/* A stretch in which a thread did one thing; texts borrowed from the trace. */
typedef struct stk_stretch {
    int64_t begin_ns, end_ns;
    const char *name, *layer; /* "conv2d", "layer1.0.conv1"; layer "": none */
    int32_t thread;
    stk_work_kind kind;
} stk_stretch;

typedef struct stk_traced_thread {
    int64_t process, id;
    const char *name;
    size_t first, n; /* its stretches, one after the other, without overlap */
} stk_traced_thread;

typedef struct stk_traced_step {
    int64_t begin_ns, end_ns;
    const char *name; /* "ProfilerStep#10" */
} stk_traced_step;

typedef struct stk_trace_data {
    json_t *root; /* what the texts are borrowed from */
    stk_stretch *stretch;
    stk_traced_thread *thread;
    int32_t n_threads, driver; /* driver: the thread of the training loop */
    stk_traced_step *step;     /* the driver's, by time */
    size_t n_steps;
    stk_stretch *batch; /* "rows": what a thread took on at once, by the end; not among the stretches */
    size_t n_batches;
} stk_trace_data;

/* What is not understood is left out; n_steps may be 0. STK_NO_MEMORY; STK_CORRUPT, STK_UNSUPPORTED and others as
 * stk_json_read, of a file that is no trace. */
stk_status stk_trace_data_read(const char *path, stk_trace_data *out);
/* The same of a trace that is there; takes root. */
stk_status stk_trace_data_make(json_t *root, stk_trace_data *out);
void stk_trace_data_free(stk_trace_data *data);

#endif
