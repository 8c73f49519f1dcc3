/* A driver: how one vendor's interface reaches its GPUs. All of src/device/gpu but the driver's own folder is written
 * on this table, and all kernels in one dialect of C (kernels/dialect.h), so that another interface is one more folder.
 *
 * Addresses are what `alloc` gives out, and any byte behind that; where the interface has handles instead, the driver
 * makes addresses up and finds the handle by them. Calls only enqueue unless they say that they wait. Threads: one at a
 * time for each context.
 */
#ifndef STK_DEVICE_GPU_DRIVER_H
#define STK_DEVICE_GPU_DRIVER_H

#include "base/text.h"
#include "device/queue.h"

typedef struct gpu_context gpu_context; /* one opened chip */
typedef struct gpu_module gpu_module;   /* kernels that were built together */

/* What a chip is, as its driver tells. */
typedef struct gpu_chip {
    char name[128], vendor[64], driver[128]; /* driver: its version, with that of the platform */
    bool is_gpu;                             /* false: the interface runs on a processor, as PoCL's does */
    int n_units;                             /* multiprocessors, compute units, cores */
    size_t local_bytes;                      /* memory that the work-items of one group share */
    size_t most_group;                       /* work-items in one group */
    size_t most_alloc_bytes;                 /* in one piece */
    size_t total_bytes;
    bool has_fragments; /* units for matrices of 16-bit numbers, as dialect_cuda.h's HAS_FRAGMENTS says */
    bool unified;       /* its memory is the host's */
    bool command_list;  /* captures are one call to launch */
} gpu_chip;

/* One argument of a kernel: memory of the device, or a value of that many bytes. */
typedef struct gpu_argument {
    const void *address; /* where bytes is 0 */
    const void *value;
    size_t bytes;
} gpu_argument;

/* One launch with all that it needs. group[i] divides nothing: there are n_groups[i] whole groups. */
typedef struct gpu_bound_launch {
    gpu_module *module;
    const char *kernel;
    uint32_t n_groups[3], group[3];
    const gpu_argument *argument;
    int n_arguments;
} gpu_bound_launch;

/* What every driver's queue, event and capture begins with. */
typedef struct gpu_queue {
    stk_queue base;
    bool launched; /* since faults were last copied; of queue.c */
} gpu_queue;

typedef struct gpu_event {
    stk_device *device;
} gpu_event;

typedef struct gpu_capture {
    const struct gpu_driver *driver;
} gpu_capture;

typedef struct gpu_driver {
    const char *name;
    const char *dialect;      /* what stands before every source of kernels */
    stk_status (*load)(void); /* the vendor's library; or what is missing */
    int (*count)(void);       /* after load */
    stk_status (*open)(int number, gpu_chip *chip, gpu_context **out);
    void (*close)(gpu_context *context); /* accepts NULL */

    /* 64-byte aligned, zeroed, and really there: what is missing is missed here. Waits. */
    stk_status (*alloc)(gpu_context *context, size_t bytes, void **out);
    void (*free)(gpu_context *context, void *p);
    stk_status (*alloc_host)(gpu_context *context, size_t bytes, void **out);
    void (*free_host)(gpu_context *context, void *p);
    /* Total, and what is free for plans, in bytes; zeros: the interface does not tell. */
    void (*memory)(const gpu_context *context, stk_device_memory *out);
    /* What else of the chip and its libraries is worth knowing, behind the rest; optional. */
    void (*describe)(const gpu_context *context, stk_text *out);

    /* Builds a source in the dialect. An error has the compiler's text, with the kernel's file and line. */
    stk_status (*build)(gpu_context *context, const char *source, gpu_module **out);
    /* What build made, as bytes to keep; out is the caller's to free(). STK_UNSUPPORTED: there is nothing to keep. */
    stk_status (*save)(const gpu_module *module, void **out, size_t *n);
    stk_status (*restore)(gpu_context *context, const void *bytes, size_t n, gpu_module **out);
    void (*unload)(gpu_module *module); /* accepts NULL */

    stk_status (*open_queue)(stk_device *device, gpu_context *context, stk_queue **out);
    void (*close_queue)(stk_queue *queue); /* waits */
    stk_status (*copy)(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind);
    stk_status (*finish)(stk_queue *queue);
    stk_status (*open_event)(stk_device *device, gpu_context *context, stk_event **out);
    void (*close_event)(stk_event *event);
    stk_status (*record)(stk_queue *queue, stk_event *event);
    stk_status (*wait)(stk_queue *queue, const stk_event *event);
    stk_status (*sync)(const stk_event *event);

    /* The list is the caller's again when this returns. */
    stk_status (*capture)(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out);
    void (*release)(stk_capture *capture);
    stk_status (*launch)(stk_queue *queue, const stk_capture *capture);
    int64_t (*took_ns)(const stk_capture *capture); /* as stk_queue_class has it; optional */
    int (*count_calls)(const stk_capture *capture); /* of the interface, that one launch makes */
} gpu_driver;

#endif
