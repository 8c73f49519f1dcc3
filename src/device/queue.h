/* Queues: how work reaches a device, and how one learns that it is done.
 *
 *   queue     work in order: copies, launches, waiting for events. Several queues of a device run side by side
 *   event     a mark in a queue: another queue or the host can wait for it
 *   capture   a whole program, recorded once, launched as one
 *
 * Calls only enqueue, unless they say that they wait. What a copy reads must stay as it is, and what it writes must be
 * left alone, until an event behind it has passed. Work that fails shows in a later call that waits: from then on every
 * call that waits for this device says the same. Threads: one at a time for each device.
 *
 * On a device that is on the host, a call has done its work when it returns, and events are nothing.
 */
#ifndef STK_DEVICE_QUEUE_H
#define STK_DEVICE_QUEUE_H

#include "device/device.h"

typedef struct stk_queue stk_queue;
typedef struct stk_event stk_event;
typedef struct stk_capture stk_capture;

typedef enum stk_copy_kind { STK_COPY_TO_DEVICE, STK_COPY_TO_HOST, STK_COPY_ON_DEVICE } stk_copy_kind;

/* Memory of an arena that is read after a launch. */
typedef struct stk_kept {
    const char *address;
    size_t bytes;
} stk_kept;

/* What lies at an address, for people. */
typedef struct stk_named_place {
    const char *address;
    size_t bytes;
    const char *name;
} stk_named_place;

/* What a compiler says of a program, on one chip. */
typedef struct stk_compiled_program {
    char chip[64];
    int n_chips;                          /* that run it together */
    int64_t memory_bytes;                 /* of the chip; 0: not known */
    int64_t argument_bytes, result_bytes; /* results: those that take no argument's memory */
    int64_t scratch_bytes, code_bytes;
    double flops, bytes;                       /* of one run; 0: not told */
    double chip_flops_per_s, chip_bytes_per_s; /* its maker's figures, of bf16; 0: not known */
    int64_t compile_ns;
} stk_compiled_program;

typedef struct stk_queue_class {
    stk_status (*open)(stk_device *device, stk_queue **out);
    void (*close)(stk_queue *queue); /* waits; accepts NULL */
    /* The host's side may be ordinary memory or that of alloc_host; src and dst do not overlap. */
    stk_status (*copy)(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind);
    /* Borrows entries and what they point to until release; nothing of it may change meanwhile, but on the host. The
     * body of micro-batches stands in the list once for each of them, with the same kernels. */
    stk_status (*capture)(stk_device *device, const stk_entry *entries, int n_entries, stk_capture **out);
    /* Optional, once, before the first launch: what of arenas is read after one, which need not leave anything else
     * there. kept is borrowed during the call. A capture that was not told so leaves all. */
    stk_status (*keep)(stk_capture *capture, const stk_kept *kept, int n_kept);
    void (*release)(stk_capture *capture); /* no launch of it is under way; accepts NULL */
    /* Where it fails at once, *i_failed is the number of the entry that did, or -1. */
    stk_status (*launch)(stk_queue *queue, const stk_capture *capture, int *i_failed);
    /* A new event has passed. Recording it again makes it the later mark. */
    stk_status (*open_event)(stk_device *device, stk_event **out);
    void (*close_event)(stk_event *event); /* accepts NULL */
    stk_status (*record)(stk_queue *queue, stk_event *event);
    /* What is enqueued later starts after the event's last mark. The event may be of another device of this kind. */
    stk_status (*wait)(stk_queue *queue, const stk_event *event);
    /* Optional: from now on copies on `device` reach the memory of `other`, another device of this kind: over their
     * link where they have one, else by way of the host's memory. */
    stk_status (*reach)(stk_device *device, stk_device *other);
    /* Optional, for tests: a run begins, and what lies in arenas is no longer wanted. */
    stk_status (*forget)(stk_queue *queue);
    /* The host waits until the event's last mark has passed. */
    stk_status (*sync)(const stk_event *event);
    /* The host waits until the queue is empty. */
    stk_status (*finish)(stk_queue *queue);
    /* Optional, where a whole program is compiled: its text, in which arguments and results have the names of the
     * places where they lie; and what the compiler makes of it, which may take minutes. After keep. */
    stk_status (*print)(stk_capture *capture, const stk_named_place *places, int n_places, stk_text *out);
    stk_status (*analyse)(stk_capture *capture, stk_compiled_program *out);
    /* Optional: what the capture's last launch took on the device, once it is done; -1: not known. */
    int64_t (*took_ns)(const stk_capture *capture);
} stk_queue_class;

/* Of all devices on the host (host_queue.c): launching calls the device's `run`. */
extern const stk_queue_class stk_queue_class_host;

/* Copies and waits. */
stk_status stk_queue_copy_now(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind);
/* The queue waits for another device's event; where their kinds differ, the host does. */
stk_status stk_queue_wait_for(stk_queue *queue, const stk_device *other, const stk_event *event);
/* Runs entries and waits, for tests and profiles: a capture that is launched once. */
stk_status stk_queue_run_now(stk_queue *queue, const stk_entry *entries, int n_entries, int *i_failed);
/* What every queue starts with. */
struct stk_queue {
    stk_device *device;
    int64_t ran_ns; /* what the last stk_queue_run_now took by the device's own clock; -1: not known */
};

#endif
