/* Doing what streams and graphs hold: kernels by OpenCL, the rest here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/play/play.h"

play_opencl play_cl;

static bool is_running; /* kernels, in OpenCL's queue */

int play_open_opencl(void)
{
    static bool is_open;
    const char *why = is_open ? NULL : play_load_opencl(&play_cl);
    if (why) fprintf(stderr, "played GPU: %s\n", why);
    is_open = !why;
    return why ? NO_DEVICE : WELL;
}

static void settle(void)
{
    if (is_running) play_cl.clFinish(play_cl.queue);
    is_running = false;
}

/* --- kernels --- */

static cl_int set_address(cl_kernel kernel, cl_uint *n, address p, bool *is_there)
{
    cl_mem memory = NULL;
    cl_ulong at = 0;
    if (p) {
        const play_block *b = play_block_of(p);
        *is_there = b && b->taken;
        if (!*is_there) return CL_SUCCESS;
        memory = b->memory;
        at = p - b->at;
    }
    cl_int code = play_cl.clSetKernelArg(kernel, (*n)++, sizeof(memory), &memory);
    return code == CL_SUCCESS ? play_cl.clSetKernelArg(kernel, (*n)++, sizeof(at), &at) : code;
}

static int set_arguments(const play_deed *deed)
{
    const play_function *f = deed->function;
    const char *value = deed->values;
    cl_uint n = 0;
    for (const char *kind = f->arguments; *kind; kind++) {
        size_t bytes = *kind == 'm' ? sizeof(address) : *kind == 's' ? PLAY_STRUCT_BYTES : (size_t)(*kind - '0');
        bool is_there = true;
        address p;
        memcpy(&p, value, sizeof(p));
        cl_int code = *kind == 'm' ? set_address(f->kernel, &n, p, &is_there)
                                   : play_cl.clSetKernelArg(f->kernel, n++, bytes, value);
        if (!is_there) return ILLEGAL_ADDRESS;
        if (code != CL_SUCCESS) {
            play_misuse("kernel '%s' does not take its argument %d: error %d of OpenCL", f->name,
                        (int)(kind - f->arguments), (int)code);
            return INVALID_VALUE;
        }
        value += (bytes + 7) / 8 * 8;
    }
    return WELL;
}

static int do_kernel(const play_deed *deed)
{
    const play_function *f = deed->function;
    size_t global[3], local[3];
    if (f->module->is_unloaded) {
        play_misuse("kernel '%s' is launched when its module is unloaded", f->name);
        return ILLEGAL_ADDRESS;
    }
    int code = set_arguments(deed);
    if (code) return code;
    for (int i = 0; i < 3; i++) {
        local[i] = deed->group[i];
        global[i] = (size_t)deed->group[i] * deed->n_groups[i];
    }
    cl_int failed = play_cl.clEnqueueNDRangeKernel(play_cl.queue, f->kernel, 3, NULL, global, local, 0, NULL, NULL);
    is_running = true;
    play_count.kernels++;
    if (failed == CL_SUCCESS) return WELL;
    play_misuse("kernel '%s': error %d of OpenCL", f->name, (int)failed);
    return LAUNCH_OUT_OF_RESOURCES;
}

/* --- the rest --- */

static bool is_memory(address p, size_t bytes)
{
    const play_block *b = play_block_of(p);
    return !b || bytes <= b->bytes - (p - b->at);
}

static int do_copy(const play_deed *deed)
{
    settle();
    if (!is_memory(deed->dst, deed->bytes) || (!deed->staged && !is_memory(deed->src, deed->bytes)))
        return ILLEGAL_ADDRESS;
    memmove((void *)(uintptr_t)deed->dst, deed->staged ? deed->staged : (void *)(uintptr_t)deed->src, deed->bytes);
    return WELL;
}

static int do_fill(const play_deed *deed)
{
    settle();
    if (!play_is_on_device(deed->dst, deed->bytes)) return ILLEGAL_ADDRESS;
    memset((void *)(uintptr_t)deed->dst, deed->byte, deed->bytes);
    return WELL;
}

static int do_host(const play_deed *deed)
{
    settle();
    for (int i = 0; i < deed->n_ranges; i++)
        if (!play_is_on_device(deed->range[i].at, deed->range[i].bytes)) return ILLEGAL_ADDRESS;
    deed->run(deed->values);
    play_count.products++;
    return WELL;
}

static void do_record(const play_stream *stream, const play_deed *deed)
{
    struct timespec now;
    settle();
    clock_gettime(CLOCK_MONOTONIC, &now);
    play_event *event = deed->event;
    if (event->stream == stream && event->number == deed->number)
        event->done_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int do_one(const play_stream *stream, const play_deed *deed)
{
    switch (deed->what) {
    case DO_KERNEL: return do_kernel(deed);
    case DO_COPY: return do_copy(deed);
    case DO_FILL: return do_fill(deed);
    case DO_HOST: return do_host(deed);
    case DO_RECORD: do_record(stream, deed); break;
    default: break;
    }
    return WELL;
}

int play_do(play_stream *stream, play_deed *deed)
{
    int code = WELL;
    if (deed->what != DO_LIST) code = do_one(stream, deed);
    for (int i = 0; deed->what == DO_LIST && i < deed->list->n && !code; i++) {
        code = do_one(stream, &deed->list->deed[i]);
        play_count.graph_work++;
    }
    settle();
    return code;
}

void play_free_deed(play_deed *deed)
{
    if (deed->function) play_release_module(deed->function->module);
    if (deed->event) play_release_event(deed->event);
    play_release_list(deed->list);
    free(deed->values);
    free(deed->staged);
    free(deed->range);
}

int stk_play_enqueue(handle stream, void (*run)(void *data), const void *data, size_t bytes, const play_range *range,
                     int n_ranges, const char *name)
{
    int code = play_enter(CALL_cuLaunchKernel); /* which a library does in the end */
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    play_deed deed = {.what = DO_HOST, .run = run, .bytes = bytes, .n_ranges = n_ranges};
    deed.values = malloc(bytes);
    deed.range = malloc((size_t)n_ranges * sizeof(*range));
    if (!deed.values || !deed.range || !name) abort();
    memcpy(deed.values, data, bytes);
    memcpy(deed.range, range, (size_t)n_ranges * sizeof(*range));
    return play_leave(play_enqueue(s, &deed, false));
}
