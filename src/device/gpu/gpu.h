/* GPUs: one device for every driver (driver.h). What it has is told in six parts:
 *
 *   device.c    the table of stk_device_class; faults, which kernels report and a wait tells
 *   unit.c      sources of kernels, with their settings
 *   build.c     programs of them, built together when the first of them is wanted, and kept on disk
 *   kept.c      files that are kept
 *   make.c      a kernel as data: launches, each with its arguments, made by one function for each op in ops/
 *   queue.c     queues and captures: launches with their addresses, in one list
 *   join.c      neighbours in that list that can be one launch
 *
 * A kernel's `run` is never called: what it would do is in its gpu_kernel. Sources of Philox, of 16-bit floats and of
 * reductions stand once, in kernels/.
 */
#ifndef STK_DEVICE_GPU_GPU_H
#define STK_DEVICE_GPU_GPU_H

#include "base/text.h"
#include "device/gpu/driver.h"
#include "device/gpu/kernel_list.h"

enum { GPU_MOST_ARGUMENTS = 80, GPU_FAULT_WORDS = 4, GPU_MOST_SITES = 4096, GPU_SLOTS = 8 };

/* --- units: unit.c, build.c --- */

/* A source with its settings, and the module that it is part of once it is built. */
typedef struct gpu_unit {
    uint64_t key; /* also what its kernels' names end in */
    char *text;   /* NULL once it is built */
    gpu_module *module;
    struct gpu_unit *next;
} gpu_unit;

/* A place in a kernel that finds a bad value, and what is said of it. */
typedef struct gpu_site {
    stk_status status;
    char format[120]; /* of the value and the row (long long), in this order, and the limit */
    int64_t limit;
} gpu_site;

typedef struct gpu_device {
    stk_device base;
    const gpu_driver *driver;
    gpu_context *context;
    gpu_chip chip;
    stk_device_caps caps;
    size_t used_bytes; /* that alloc gave out */

    gpu_unit *units; /* the last first */
    int n_pending;
    gpu_module **module; /* all that were built */
    int n_modules;

    gpu_site *site;
    int n_sites;
    void *fault;         /* device memory: site + 1, value, row */
    int32_t *fault_host; /* of alloc_host: what the last record copied */
    stk_status failed;   /* the first failure, told to all who wait */
    char failure[512];
} gpu_device;

/* The unit of a file in kernels/ with its settings, lines of "#define NAME VALUE". Not built yet. A line
 * `#include "tile.h"` of it is that file of kernels/; what such a file defines bears the unit's suffix, or is undone at
 * its end, since several units may include it. */
stk_status gpu_unit_of_file(gpu_device *device, const char *file, const char *settings, gpu_unit **out);
/* The same of a text that was printed; `name` is what errors call it. */
stk_status gpu_unit_of_text(gpu_device *device, const char *name, const char *settings, const char *text,
                            gpu_unit **out);
/* Builds all that are wanted and not built yet, as one program. */
stk_status gpu_build(gpu_device *device);
void gpu_free_units(gpu_device *device);
/* "softmax_rows_<key>": out holds GPU_NAME_BYTES. */
enum { GPU_NAME_BYTES = 96 };
void gpu_kernel_name(const gpu_unit *unit, const char *kernel, char out[GPU_NAME_BYTES]);

/* --- kernels as data: make.c --- */

typedef enum gpu_argument_kind {
    GPU_IN,
    GPU_OUT,
    GPU_SCRATCH, /* offset */
    GPU_FAULT,   /* where faults are told */
    GPU_VALUE,
} gpu_argument_kind;

typedef struct gpu_launch_argument {
    gpu_argument_kind kind;
    int i;         /* which input or output */
    size_t offset; /* in bytes, from there; of a value: in gpu_kernel.values */
    size_t bytes;  /* of a value */
} gpu_launch_argument;

typedef struct gpu_launch {
    gpu_unit *unit; /* NULL: a product of the driver's library, or a convolution */
    gpu_library_product product;
    gpu_library_convolution convolution; /* where it has a plan */
    char kernel[40];
    uint32_t n_groups[3], group[3];
    gpu_launch_argument argument[GPU_MOST_ARGUMENTS];
    int n_arguments;
    bool copies; /* input copy_in to output copy_out, and nothing else */
    int copy_in, copy_out;
    int n_slot; /* arguments of one slot; 0: the launch has none (gpu_slots) */
} gpu_launch;

/* The state of an stk_kernel. */
typedef struct gpu_kernel {
    gpu_launch *launch;
    int n_launches;
    char *values; /* of all arguments */
    size_t n_values;
} gpu_kernel;

/* A kernel that is being made. The first failure stays, and all calls accept a maker that has failed. */
typedef struct gpu_maker {
    gpu_device *device;
    const stk_op_call *call;
    bool expects; /* nothing is made: a library is only told what will be asked of it */
    bool wide;    /* some array has 2^30 elements or more: index_t has 64 bits */
    gpu_kernel *kernel;
    size_t scratch_bytes;
    uint32_t in_place[8];
    const char *impl;
    stk_status status;
} gpu_maker;

/* The next launch: kernel `kernel` of kernels/<file>, whose settings are printf's text of "#define" lines, or of a
 * unit.
 */
void gpu_add(gpu_maker *m, const char *file, const char *kernel, const char *settings, ...)
    __attribute__((format(printf, 4, 5)));
void gpu_add_unit(gpu_maker *m, gpu_unit *unit, const char *kernel);
/* A product that the driver has planned; its arguments follow as driver.h has them. */
void gpu_add_product(gpu_maker *m, const gpu_library_product *product);
void gpu_add_convolution(gpu_maker *m, const gpu_library_convolution *convolution);
/* Its groups, and the work-items in one: the kernel's own GROUP. Beyond 2^31 - 1 groups along x, or 65,535 along y or
 * z, the call is refused. */
void gpu_groups(gpu_maker *m, int64_t x, int64_t y, int64_t z);
void gpu_group(gpu_maker *m, uint32_t x, uint32_t y, uint32_t z);
/* As many groups of `group` work-items as n items need. */
void gpu_items(gpu_maker *m, int64_t n, uint32_t group);
/* It only copies input `in` to output `out`: it is left out where that is one memory. */
void gpu_copies(gpu_maker *m, int in, int out);
/* Its arguments until now are those of the first of GPU_SLOTS slots, of which a kernel works off one after the other;
 * the same follow for the others. Then come arguments that all share, and gpu_slot_sizes. A launch uses one slot, and a
 * capture joins neighbours that share what they share, and write only over their own inputs (join.c). */
void gpu_slots(gpu_maker *m);
/* The last argument: index_t[GPU_SLOTS], n for the first slot and 0 for the others; and n items in groups of `group`.
 */
void gpu_slot_sizes(gpu_maker *m, int64_t n, uint32_t group);
/* Its arguments, in the kernel's order. */
void gpu_in(gpu_maker *m, int i);
void gpu_out(gpu_maker *m, int i);
void gpu_scratch(gpu_maker *m, size_t offset);
/* Input or output i, or scratch memory, from that byte on. */
void gpu_memory_at(gpu_maker *m, gpu_argument_kind kind, int i, size_t offset);
void gpu_index(gpu_maker *m, int64_t value); /* index_t */
void gpu_int(gpu_maker *m, int32_t value);
void gpu_long(gpu_maker *m, int64_t value);
void gpu_float(gpu_maker *m, double value); /* float */
void gpu_bytes(gpu_maker *m, const void *bytes, size_t n);
/* The fault's memory and the number of its site: two arguments, FAULT_ARGS in the kernel. format: of the bad value, its
 * row and the limit, each "%lld". */
void gpu_fault(gpu_maker *m, stk_status status, const char *format, int64_t limit);
/* Bytes of this kernel's scratch memory, 64-byte aligned: their offset. */
size_t gpu_take(gpu_maker *m, size_t bytes);
void gpu_fail(gpu_maker *m, stk_status status); /* its text is set */
/* STK_UNSUPPORTED, with op and dtypes. */
void gpu_refuse(gpu_maker *m);
/* "f32", as dialect's macros end; NULL and a refusal for what kernels do not read. */
const char *gpu_type(gpu_maker *m, stk_dtype dtype);

/* --- ops/ --- */

/* The maker of each op that has kernels (kernel_list.h), else NULL. */
typedef void (*gpu_make)(gpu_maker *m);
gpu_make gpu_find_make(stk_op op);
#define X(op) void gpu_make_##op(gpu_maker *m);
GPU_KERNEL_LIST(X)
#undef X

/* --- queue.c, device.c --- */
extern const stk_queue_class gpu_queues;
/* For the classes of drivers. */
stk_status gpu_open(const gpu_driver *driver, const stk_device_class *class, const stk_device_config *config,
                    stk_device **out);
void gpu_close(stk_device *device);
stk_status gpu_alloc(stk_device *device, size_t bytes, stk_memory_kind kind, void **out);
void gpu_free(stk_device *device, void *p, size_t bytes);
stk_status gpu_alloc_host(stk_device *device, size_t bytes, void **out);
void gpu_free_host(stk_device *device, void *p, size_t bytes);
stk_status gpu_find_kernel(stk_device *device, const stk_op_call *call, stk_kernel *out);
stk_status gpu_expect_kernel(stk_device *device, const stk_op_call *call);
stk_status gpu_prepare_kernels(stk_device *device, const volatile int *stop);
stk_status gpu_memory(const stk_device *device, stk_device_memory *out);
void gpu_tell_chip(const stk_device *device, stk_text *out);
void gpu_describe(const stk_device *device, stk_text *out);
void gpu_list_more(const stk_device *device, stk_text *out); /* of drivers that have `describe` */
/* STOKER_GPU_TIMEOUT in seconds, 0: never; else ten minutes for a GPU, whose steps take less, and never for a
 * processor. */
stk_status gpu_read_wait_seconds(const gpu_chip *chip, double *out);
/* Keeps the first failure, and gives it back. */
stk_status gpu_keep_failure(gpu_device *device, stk_status status);
/* After a wait: what a kernel found, if anything. */
stk_status gpu_check(gpu_device *device, stk_status waited);

#endif
