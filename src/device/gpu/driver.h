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
    char bus[16];                            /* "0000:41:00.0"; "": not told */
    bool is_gpu;                             /* false: the interface runs on a processor, as PoCL's does */
    int n_units;                             /* multiprocessors, compute units, cores */
    size_t local_bytes;                      /* memory that the work-items of one group share */
    size_t most_group;                       /* work-items in one group */
    size_t most_alloc_bytes;                 /* in one piece */
    size_t total_bytes;
    bool has_fragments; /* units for matrices of 16-bit numbers, as dialect_cuda.h's HAS_FRAGMENTS says */
    bool has_tf32;      /* plan_product does something with `tf32` */
    bool unified;       /* its memory is the host's */
    bool command_list;  /* captures are one call to launch */
} gpu_chip;

/* One argument of a kernel: memory of the device, or a value of that many bytes. */
typedef struct gpu_argument {
    const void *address; /* where bytes is 0 */
    const void *value;
    size_t bytes;
} gpu_argument;

/* C = A B, as a vendor's library multiplies: matrices in rows, A [M,K], B [K,N], and a bias and a matrix that are added
 * before C is rounded. */
typedef struct gpu_library_product {
    int64_t n_batch, m, n, k;
    int64_t lda, ldb, ldc;             /* elements from one row in memory to the next */
    int64_t a_batch, b_batch, c_batch; /* from one matrix to the next; 0: one for all */
    int32_t transpose_a, transpose_b;  /* A lies as [K,M], B as [N,K] */
    int32_t dtype, dtype_c;            /* of A and B; of C and what is added */
    int32_t has_bias;                  /* [N], of dtype_c */
    int32_t has_onto;                  /* [M,N] as C lies, and C itself or apart */
    int32_t align_a, align_b, align_c; /* bytes, powers of 2, of where they begin; align_c: of onto, too */
    int32_t tf32;                      /* f32 may be rounded to TF32 where it is multiplied; else it is exact */
    /* The driver's choice: */
    uint64_t way[8];
    size_t scratch_bytes;
} gpu_library_product;

/* Its arguments. */
enum { GPU_PRODUCT_A, GPU_PRODUCT_B, GPU_PRODUCT_C, GPU_PRODUCT_BIAS, GPU_PRODUCT_ONTO, GPU_PRODUCT_SCRATCH };

/* A convolution, or one of its two gradients, as a vendor's library makes it: x [N, sides, C], weight
 * [O, taps, C / groups], y [N, sides, O]. A bias and ReLU are of the sums, before they are rounded. */
typedef enum gpu_convolution_pass {
    GPU_CONVOLUTION_FORWARD,
    GPU_CONVOLUTION_GRAD_DATA,
    GPU_CONVOLUTION_GRAD_WEIGHT,
} gpu_convolution_pass;

typedef struct gpu_library_convolution {
    int64_t n_images, x_channels, y_channels, groups;
    int64_t x_side[3], y_side[3], taps[3]; /* the first n_sides of them */
    int64_t stride[3], dilation[3], pad_low[3], pad_high[3];
    int32_t pass, n_sides;
    int32_t dtype, dtype_out; /* of what is read; of what is written */
    int32_t has_bias, relu;   /* not of the weight's gradient; bias: f32, one for each channel */
    int32_t tf32, reserved;   /* as for products */
    /* The driver's choice: */
    const void *plan; /* the context's */
    size_t scratch_bytes;
} gpu_library_convolution;

/* Its arguments: the op's inputs, what it writes. */
enum { GPU_CONVOLUTION_IN_0, GPU_CONVOLUTION_IN_1, GPU_CONVOLUTION_OUT, GPU_CONVOLUTION_BIAS, GPU_CONVOLUTION_SCRATCH };

/* One launch with all that it needs. group[i] divides nothing: there are n_groups[i] whole groups. */
typedef struct gpu_bound_launch {
    const gpu_library_product *product;         /* NULL: a kernel; else there is no module and no group */
    const gpu_library_convolution *convolution; /* the same */
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
    /* What else of the chip and its libraries is worth knowing, for lists of devices; optional. */
    void (*describe)(const gpu_context *context, stk_text *out);

    /* Of a source in the dialect, either on any thread, the bytes that `restore` takes, or a module, and what `save`
     * then gives out of it. Bytes are the caller's to free(). An error has the compiler's text, with the kernel's file
     * and line. STK_UNSUPPORTED of save: there is nothing to keep. */
    stk_status (*compile)(const gpu_context *context, const char *source, void **out, size_t *n);
    stk_status (*build)(gpu_context *context, const char *source, gpu_module **out);
    stk_status (*save)(const gpu_module *module, void **out, size_t *n);
    stk_status (*restore)(gpu_context *context, const void *bytes, size_t n, gpu_module **out);
    void (*unload)(gpu_module *module); /* accepts NULL */

    /* Optional: chooses how a library makes the product, the same way each time. STK_UNSUPPORTED, without a text: it
     * does not, and kernels of our own do. */
    stk_status (*plan_product)(gpu_context *context, gpu_library_product *product);
    stk_status (*plan_convolution)(gpu_context *context, gpu_library_convolution *convolution); /* the same */
    /* Optional: convolutions that plan_convolution will be asked for, and then all of them planned at once, on all
     * cores. STK_INTERRUPTED once *stop is not 0, which may be NULL. */
    stk_status (*expect_convolution)(gpu_context *context, const gpu_library_convolution *convolution);
    stk_status (*plan_expected)(gpu_context *context, const volatile int *stop);
    const char *library, *convolution_library; /* their names, as of an implementation */

    stk_status (*open_queue)(stk_device *device, gpu_context *context, stk_queue **out);
    void (*close_queue)(stk_queue *queue); /* waits */
    stk_status (*copy)(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind);
    stk_status (*reach)(gpu_context *context, gpu_context *other); /* as stk_queue_class has it; optional */
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
