/* Traces as files for ui.perfetto.dev and chrome://tracing, in the Trace Event Format, with the fields that PyTorch's
 * Kineto adds, so that tools for its traces (Holistic Trace Analysis) read them. Kernels have a track of their own, as
 * a device's stream; counters show the ring's batches and the arena. Threads: one at a time, no trace under way.
 */
#ifndef STK_EVENTS_TRACE_FILE_H
#define STK_EVENTS_TRACE_FILE_H

#include "trace/trace.h"

typedef struct stk_trace_info {
    const char *device; /* "cpu (2 threads, avx2)" */
    int64_t memory_bytes;
} stk_trace_info;

/* Writes what stk_trace_stop has left to path, whole or not at all. *n_lost: events that the rings had no room for. */
stk_status stk_trace_write(const char *path, const stk_trace_info *info, int64_t *n_lost);

#endif
