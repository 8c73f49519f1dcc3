/* A device: a table of functions. Every device is one folder with such a table and one line in device_list.c.
 *
 * The planner asks `kernel` for each node before the first step: the answer says which implementation, how much scratch
 * it wants, and where it may work in place. Then the engine calls `run` with a list of entries whose pointers are set.
 * A step allocates nothing in our code. Asking for what a device lacks is STK_UNSUPPORTED, never another device.
 */
#ifndef STK_DEVICE_DEVICE_H
#define STK_DEVICE_DEVICE_H

#include "graph/op.h"

typedef struct stk_device stk_device;

typedef struct stk_device_config {
    int n_threads; /* 0: as many as cores */
} stk_device_config;

/* What a kernel gets. Pointers are to device memory; in[] and out[] as in the op's signature. */
typedef struct stk_kernel_args {
    void *const *in;
    void *const *out;
    void *scratch; /* scratch_bytes, 64-byte aligned; NULL when 0 */
} stk_kernel_args;

typedef struct stk_kernel {
    stk_status (*run)(const void *state, const stk_kernel_args *args);
    void *state;                  /* owned; read-only while running */
    void (*release)(void *state); /* NULL: free() */
    size_t scratch_bytes;
    uint32_t in_place[8]; /* for output i: bit j set: it may use the memory of input j (same bytes) */
    const char *impl;     /* "onednn jit:avx2", "own avx512"; for people. A constant */
} stk_kernel;

/* One step of a program: the kernel and its pointers. */
typedef struct stk_entry {
    const stk_kernel *kernel;
    stk_kernel_args args;
} stk_entry;

typedef struct stk_device_class {
    const char *name; /* "cpu" */
    const char *about;
    /* STK_OK, or why it cannot be used here, with what is missing in the error text. */
    stk_status (*probe)(void);
    stk_status (*open)(const stk_device_config *config, stk_device **out);
    void (*close)(stk_device *device);
    /* 64-byte aligned memory, zeroed; host-visible on the devices that exist. */
    stk_status (*alloc)(stk_device *device, size_t bytes, void **out);
    void (*free)(stk_device *device, void *p, size_t bytes);
    /* Finds the kernel for a call whose shapes are known. STK_UNSUPPORTED names the op and the dtypes. */
    stk_status (*kernel)(stk_device *device, const stk_op_call *call, stk_kernel *out);
    /* Runs entries in order and waits. On failure *i_failed is the entry's number. */
    stk_status (*run)(stk_device *device, const stk_entry *entries, int n_entries, int *i_failed);
    /* Optional, of devices that compute on the host: runs body for all parts on the device's threads, between runs. */
    void (*parallel)(const stk_device *device, int n_parts, void (*body)(const void *task, int i_part, int n_parts),
                     const void *task);
    /* Why computing in that 16-bit dtype is no faster than in f32, for people; NULL: it is. A constant. Optional. */
    const char *(*slow_dtype)(const stk_device *device, stk_dtype dtype);
    /* "2 threads, avx2" */
    void (*describe)(const stk_device *device, stk_text *out);
} stk_device_class;

/* Every device starts with this. */
struct stk_device {
    const stk_device_class *class;
    int n_threads;
};

extern const stk_device_class stk_device_class_reference, stk_device_class_cpu;

/* All devices of this build, NULL at the end. */
extern const stk_device_class *const stk_device_classes[];

/* name: "cpu", "cpu:0", "reference". An unknown or missing device is an error that names what there is. */
stk_status stk_device_open(const char *name, const stk_device_config *config, stk_device **out);
void stk_device_close(stk_device *device); /* accepts NULL */
void stk_kernel_free(stk_kernel *kernel);

#endif
