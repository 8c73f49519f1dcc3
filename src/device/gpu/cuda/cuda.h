/* The driver for CUDA: what its files share. It includes nothing of NVIDIA's; what it calls is declared in cu.h.
 *
 *   libraries.c   where NVIDIA's libraries are looked for, and what is said where one is missing
 *   wanted.c      which of them are here, for people
 *   load.c        the driver's symbols, the chips, opening one of them
 *   check.c       what an error means, and where; waiting, never for ever
 *   program.c     NVRTC: from source to a program for this chip
 *   memory.c      memory, of the chip and pinned
 *   queue.c       streams and events, copies
 *   capture.c     a program as a CUDA graph
 *   product.h     products of matrices by cuBLASLt: product.c, choice.c
 *   convolution.h convolutions by cuDNN: convolution*.c
 *   ways.h        how one of several of their ways is chosen
 *   class.c       the tables of the driver and of the device
 *
 * A context may be used on any thread, one at a time: each call makes it the thread's own first (cuda_enter).
 */
#ifndef STK_DEVICE_GPU_CUDA_CUDA_H
#define STK_DEVICE_GPU_CUDA_CUDA_H

#include "device/gpu/cuda/cu.h"
#include "device/gpu/gpu.h"

extern cu_symbols cu;       /* set by cuda_load */
extern nvrtc_symbols nvrtc; /* the same */

/* What cuda_load finds out once. */
typedef struct cuda_chip {
    cu_device device;
    char name[96], uuid[48], bus[16]; /* uuid: "GPU-..." or "MIG-...", as nvidia-smi has them */
    int major, minor;                 /* compute capability */
    int n_units;
} cuda_chip;

/* A library that was found. */
typedef struct cuda_library {
    void *handle;
    char path[512];
    int major, minor;
} cuda_library;

/* One that is looked for, by soname and version. */
typedef struct cuda_library_kind {
    const char *name;     /* "NVRTC" */
    const char *what;     /* for people */
    const char *variable; /* names its path; nothing else is then tried */
    const char *soname;   /* "libnvrtc.so.%d", of the major version */
    const char *package;  /* of pip, for CUDA 13 and newer */
    const char *package_12;
    const char *version;  /* a symbol by whose address its path is known */
    const char *files[4]; /* of the package: names begin so; NULL at the end. None: stoker get does not fetch it */
} cuda_library_kind;
extern const cuda_library_kind cuda_nvrtc, cuda_cublaslt;

typedef struct cuda_pin { /* pinned memory of the host */
    char *p;
    size_t bytes;
} cuda_pin;

enum { CUDA_MOST_HANDLES = 15 };

struct gpu_context {
    const cuda_chip *chip;
    cu_context context;
    cu_stream stream;                                           /* for what is waited for at once, and for captures */
    struct cublaslt_handle_state *products;                     /* NULL: not wanted yet, or there is no cuBLASLt */
    struct cudnn_handle_state *convolution_library;             /* the same of cuDNN */
    struct cudnn_handle_state *more_handles[CUDA_MOST_HANDLES]; /* for threads that make plans, and to run these */
    struct cuda_convolution *convolutions;                      /* that were met */
    cuda_pin *pin;
    int n_pins;
    bool has_graphs;
    bool hangs;                          /* nothing is waited for any more */
    double wait_seconds;                 /* the most that work may take; 0: any time */
    const struct cuda_capture *launched; /* the last one, for errors; NULL: it is released */
    int i_launched;                      /* number of the kernel, where they are launched one by one; else -1 */
};

struct gpu_module {
    gpu_context *context;
    cu_module module;
};

typedef struct cuda_launch {
    cu_function function;
    struct cuda_product *product;               /* instead of a function */
    const struct cuda_convolution *convolution; /* the same; the context's */
    char name[GPU_NAME_BYTES];
    uint32_t n_groups[3], group[3];
    void **argument; /* each points to its value */
} cuda_launch;

typedef struct cuda_capture {
    gpu_capture head;
    gpu_context *context;
    cuda_launch *launch;
    int n_launches;
    void **argument; /* of all launches */
    char *values;
    cu_graph_exec graph; /* NULL: one launch after the other */
    cu_event begin, end; /* of its last launch */
    bool *was_launched;  /* [1] */
} cuda_capture;

/* --- libraries.c --- */
/* The newest of at most that major version, 12 at least. STK_NO_DEVICE: what is missing, where it was looked for, and
 * the command that helps. */
stk_status cuda_find_library(const cuda_library_kind *kind, int most_major, cuda_library *out);

/* --- load.c --- */
stk_status cuda_load(void);
int cuda_count(void);
int cuda_driver_major(void); /* of the CUDA that the driver is of; after load */
int cuda_best_gpu(void);
/* "GPU-8932f937-...", or as much of it as no other has. */
stk_status cuda_find_chip(const char *name, int *number);
stk_status cuda_open(int number, gpu_chip *chip, gpu_context **out);
void cuda_close(gpu_context *context);
stk_status cuda_enter(const gpu_context *context);
/* "CUDA 13.0, compute capability 9.0, NVRTC 13.0 (/usr/...)" */
void cuda_describe(const gpu_context *context, stk_text *out);

/* --- check.c --- */
/* STK_OK, or what went wrong: "cuMemAlloc: the device's memory does not suffice (CUDA_ERROR_OUT_OF_MEMORY, 2)". */
stk_status cuda_check(int code, const char *call);
/* The same of work that the device did, with the kernels that it may have been. */
stk_status cuda_check_work(const gpu_context *context, int code, const char *call);
/* The host waits for a mark, or for all of a stream, and no longer than wait_seconds. */
stk_status cuda_wait_event(gpu_context *context, cu_event event);
stk_status cuda_wait_stream(gpu_context *context, cu_stream stream);

/* --- program.c --- */
stk_status cuda_compile(const gpu_context *context, const char *source, void **out, size_t *n);
stk_status cuda_restore(gpu_context *context, const void *bytes, size_t n, gpu_module **out);
void cuda_unload(gpu_module *module);

/* --- memory.c --- */
stk_status cuda_alloc(gpu_context *context, size_t bytes, void **out);
void cuda_free(gpu_context *context, void *p);
stk_status cuda_alloc_host(gpu_context *context, size_t bytes, void **out);
void cuda_free_host(gpu_context *context, void *p);
void cuda_tell_memory(const gpu_context *context, stk_device_memory *out);
bool cuda_is_pinned(const gpu_context *context, const void *p, size_t bytes);

/* --- queue.c --- */
stk_status cuda_open_queue(stk_device *device, gpu_context *context, stk_queue **out);
void cuda_close_queue(stk_queue *queue);
stk_status cuda_copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind);
stk_status cuda_reach(gpu_context *context, gpu_context *other);
stk_status cuda_finish(stk_queue *queue);
stk_status cuda_open_event(stk_device *device, gpu_context *context, stk_event **out);
void cuda_close_event(stk_event *event);
stk_status cuda_record(stk_queue *queue, stk_event *event);
stk_status cuda_wait_for(stk_queue *queue, const stk_event *event);
stk_status cuda_sync(const stk_event *event);
cu_stream cuda_stream_of(const stk_queue *queue);

/* --- capture.c --- */
stk_status cuda_make_capture(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out);
void cuda_release(stk_capture *capture);
stk_status cuda_launch_capture(stk_queue *queue, const stk_capture *capture);
int64_t cuda_took_ns(const stk_capture *capture);
int cuda_count_calls(const stk_capture *capture);

/* --- class.c --- */
extern const gpu_driver cuda_driver;

#endif
