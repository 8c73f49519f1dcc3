/* See events/trace_file.h. Times are microseconds since the first event. */
#include "events/trace_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "events/json_text.h"

enum { STREAM = 7 }; /* what PyTorch's first stream is called; readers want a number */

typedef struct writer {
    stk_text out;
    int64_t base_ns; /* of stk_clock_ns */
    long process;
    int64_t thread; /* of the track being written */
} writer;

static const char *const categories[] = {
    [STK_TRACE_STEP] = "user_annotation",  [STK_TRACE_INPUT] = "input",         [STK_TRACE_DATA] = "data",
    [STK_TRACE_HOST] = "cpu_op",           [STK_TRACE_LAUNCH] = "cuda_runtime", [STK_TRACE_KERNEL] = "kernel",
    [STK_TRACE_CHECKPOINT] = "checkpoint", [STK_TRACE_COUNTER] = "counter",
};

static double microseconds(const writer *w, int64_t ns)
{
    return (double)(ns - w->base_ns) * 1e-3;
}

static void begin_slice(writer *w, const stk_trace_event *event, long process, int64_t thread, const char *name)
{
    stk_text_add(&w->out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", categories[event->kind]);
    stk_json_add_text(&w->out, name);
    stk_text_add(&w->out, ",\"pid\":%ld,\"tid\":%" PRId64 ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{", process, thread,
                 microseconds(w, event->begin_ns), (double)(event->end_ns - event->begin_ns) * 1e-3);
}

static void add_kernel(writer *w, const stk_trace_event *event)
{
    const stk_trace_kernel *k = event->kernel;
    double ns = (double)(event->end_ns - event->begin_ns);
    begin_slice(w, event, 0, STREAM, event->name);
    stk_text_add(&w->out, "\"device\":0,\"stream\":%d,\"correlation\":%" PRId64 ",\"External id\":%" PRId64, STREAM,
                 event->value, event->value);
    stk_text_add(&w->out, ",\"layer\":");
    stk_json_add_text(&w->out, k->layer);
    stk_text_add(&w->out, ",\"kind\":\"%s\",\"impl\":", k->work);
    stk_json_add_text(&w->out, k->impl);
    stk_text_add(&w->out, ",\"shape\":\"%s\",\"FLOPs\":%.0f,\"bytes\":%.0f", k->shape, k->flops, k->bytes);
    if (ns > 0) stk_text_add(&w->out, ",\"GFLOP/s\":%.4g,\"GB/s\":%.4g", k->flops / ns, k->bytes / ns);
    stk_text_add(&w->out, "}}");
    stk_text_add(&w->out,
                 ",\n{\"ph\":\"C\",\"name\":\"arena\",\"pid\":0,\"ts\":%.3f,\"args\":{\"bytes alive\":%" PRId64 "}}",
                 microseconds(w, event->begin_ns), k->alive_bytes);
}

static void add_event(writer *w, const stk_trace_event *event)
{
    char name[64];
    switch (event->kind) {
    case STK_TRACE_KERNEL: add_kernel(w, event); return;
    case STK_TRACE_COUNTER:
        stk_text_add(&w->out,
                     ",\n{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%ld,\"ts\":%.3f,\"args\":{\"value\":%" PRId64 "}}",
                     event->name, w->process, microseconds(w, event->begin_ns), event->value);
        return;
    case STK_TRACE_LAUNCH:
        /* By Kineto's word for any launch, which readers count. */
        begin_slice(w, event, w->process, w->thread, "cudaLaunchKernel");
        stk_text_add(&w->out, "\"correlation\":%" PRId64 ",\"External id\":%" PRId64 "}}", event->value, event->value);
        return;
    case STK_TRACE_STEP:
        snprintf(name, sizeof(name), "ProfilerStep#%" PRId64, event->value);
        begin_slice(w, event, w->process, w->thread, name);
        stk_text_add(&w->out, "}}");
        return;
    default:
        begin_slice(w, event, w->process, w->thread, event->name);
        stk_text_add(&w->out, "\"number\":%" PRId64 "}}", event->value);
    }
}

static void name_track(writer *w, long process, int64_t thread, const char *process_name, const char *thread_name)
{
    stk_text_add(&w->out,
                 ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%ld,\"tid\":%" PRId64
                 ",\"ts\":0,\"args\":{\"name\":",
                 process, thread);
    stk_json_add_text(&w->out, process_name);
    stk_text_add(&w->out,
                 "}},\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%ld,\"tid\":%" PRId64
                 ",\"ts\":0,\"args\":{\"name\":",
                 process, thread);
    stk_json_add_text(&w->out, thread_name);
    stk_text_add(&w->out, "}}");
}

static int64_t find_base(void)
{
    stk_trace_track track;
    int64_t base = INT64_MAX;
    for (int i = 0; stk_trace_get_track(i, &track); i++)
        for (int64_t k = 0; k < track.n; k++) {
            int64_t begin = stk_trace_get_event(i, k).begin_ns;
            if (begin < base) base = begin;
        }
    return base == INT64_MAX ? stk_clock_ns() : base;
}

static void begin_file(writer *w, const stk_trace_info *info)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (stk_clock_ns() - w->base_ns);
    stk_text_add(&w->out, "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":");
    stk_json_add_text(&w->out, info->device);
    stk_text_add(&w->out, ",\"totalGlobalMem\":%" PRId64 "}],\n", info->memory_bytes);
    stk_text_add(&w->out, "\"distributedInfo\":{\"backend\":\"none\",\"rank\":0,\"world_size\":1},\n");
    stk_text_add(&w->out, "\"baseTimeNanoseconds\":%" PRId64 ",\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n",
                 wall_ns);
    stk_text_add(
        &w->out,
        "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"tid\":0,\"ts\":0,\"args\":{\"sort_index\":5}}");
    name_track(w, 0, STREAM, info->device, "kernels");
}

stk_status stk_trace_write(const char *path, const stk_trace_info *info, int64_t *n_lost)
{
    writer w = {.base_ns = find_base(), .process = (long)getpid()};
    stk_trace_track track;
    *n_lost = 0;
    begin_file(&w, info);
    for (int i = 0; stk_trace_get_track(i, &track); i++) {
        *n_lost += track.n_lost;
        if (track.n == 0) continue;
        w.thread = track.thread_id;
        name_track(&w, w.process, track.thread_id, "stoker",
                   track.thread_id == w.process ? "training loop" : track.thread);
        for (int64_t k = 0; k < track.n; k++) {
            stk_trace_event event = stk_trace_get_event(i, k);
            add_event(&w, &event);
        }
    }
    stk_text_add(&w.out, "\n],\"lostEvents\":%" PRId64 "}\n", *n_lost);
    stk_status status = stk_text_status(&w.out);
    if (status == STK_OK) status = stk_file_write_durably(path, w.out.data, w.out.n);
    stk_text_free(&w.out);
    return status;
}
