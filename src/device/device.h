/* A device: a table of functions. Every device is one folder with such a table and one line in device_list.c.
 *
 * The planner asks `kernel` for each node before the first step: the answer says which implementation, how much scratch
 * it wants, and where it may work in place. The engine sets the pointers of a list of entries and has the list
 * captured; a step launches the capture on a queue (device/queue.h).
 * A step allocates nothing in our code. Asking for what a device lacks is STK_UNSUPPORTED, never another device.
 *
 * Two kinds of devices:
 *   on_host   they compute on the host's memory, and each call returns when its work is done: nothing is ever copied;
 *   others    only copies reach their memory, and queues are worked off later, in order.
 */
#ifndef STK_DEVICE_DEVICE_H
#define STK_DEVICE_DEVICE_H

#include "graph/op.h"

typedef struct stk_device stk_device;
struct stk_comm; /* comm/comm.h */

typedef struct stk_device_config {
    int n_threads;        /* 0: as many as cores */
    int number;           /* stk_device_open sets it: the N of "cpu:N"; below 0: what is absent */
    bool default_kernels; /* by rules that hold for all processors, and not by what is known of this one */
    int rank;             /* of replicas, where `rank_kernel` is there: the chip that many further on */
} stk_device_config;

/* What a kernel gets. Pointers are to device memory; in[] and out[] as in the op's signature. */
typedef struct stk_kernel_args {
    void *const *in;
    void *const *out;
    void *scratch;      /* scratch_bytes, 64-byte aligned; NULL when 0 */
    const void *packed; /* what the kernel's pack made, where the engine keeps it; else NULL */
} stk_kernel_args;

typedef struct stk_kernel {
    stk_status (*run)(const void *state, const stk_kernel_args *args);
    void *state;                  /* owned; read-only while running */
    void (*release)(void *state); /* NULL: free() */
    size_t scratch_bytes;
    uint32_t in_place[8]; /* for output i: bit j set: it may use the memory of input j (same bytes) */
    bool each_in_place;   /* output i may use the memory of input i, besides */
    const char *impl;     /* "onednn jit:avx2", "own avx512"; for people. A constant */
    /* Of a library that is not in the process's memory before a kernel uses it: its code, what it keeps, and what it
     * takes while the kernel runs; else 0. Kernels run one after the other: the most of any counts for all. */
    size_t library_bytes;
    double flops; /* where its way takes fewer than the op's own count: how many; else 0 */
    /* Optional: how the kernel would rather have its input number packed_input, a weight in 16 bits: packed, once after
     * each change of the weight instead of in each run. pack makes packed_bytes (out[0], 64-byte aligned) of the weight
     * in f32 (in[0]), with no scratch memory; a run that finds them in args->packed does not look at that input.
     * Kernels whose pack makes the same of the same weight have the same packed_layout. 0 bytes: nothing to pack. */
    size_t packed_bytes;
    uint64_t packed_layout;
    int packed_input;
    stk_status (*pack)(const void *state, const stk_kernel_args *args);
} stk_kernel;

/* One step of a program: the kernel and its pointers. */
typedef struct stk_entry {
    const stk_kernel *kernel;
    stk_kernel_args args;
} stk_entry;

/* What a device can do beyond what each must, which passes ask before they rewrite. Zeros: nothing beyond the
 * primitives (docs/adding-a-device.md), so that all else is decomposed into those. */
typedef struct stk_device_caps {
    bool has[STK_N_OPS];  /* ops that have kernels; of primitives it is not read */
    bool bias, conv_relu; /* matmul and convolutions add a bias; convolutions do the ReLU behind it */
    bool norm_relu;       /* batch norm and its gradient do the ReLU behind it */
    bool norm_residual;   /* batch norm adds a residual before the ReLU */
    bool sums_in_place;   /* scatter_add and linear_cross_entropy_grad add to their base where it lies */
    bool joins_updates;   /* neighbouring updates of parameters cost one launch: they are to stand together */
    bool f64;             /* kernels compute in it */
    bool bf16, f16;       /* kernels read and write them; whether that is any faster: slow_dtype */
    bool tf32;            /* products that may be in TF32 are faster so */
    bool u8;              /* bytes as inputs, which cast makes numbers of */
    bool deterministic;   /* the same call gives the same bits each time */
    bool capture;         /* launching a capture costs one call, and not one for each kernel */
} stk_device_caps;

/* All of it but joins_updates, which is worth something only where launches cost. */
extern const stk_device_caps stk_device_caps_all;
/* Whether every device must have kernels of the op. Of `grad` and what passes make for devices that have it: no. */
bool stk_op_is_primitive(stk_op op);
/* Whether there are kernels of the op: a primitive, or one that has[] names. */
bool stk_device_caps_has(const stk_device_caps *caps, stk_op op);

/* In bytes. A device on the host has the host's, within the limits of its control groups. */
typedef struct stk_device_memory {
    size_t total, free;
    size_t others; /* that other processes use */
    bool is_own;   /* of this device alone: what other devices take is not of it */
} stk_device_memory;

/* What memory is for. */
typedef enum stk_memory_kind {
    STK_MEMORY_ZEROED,  /* variables: comes zeroed, and keeps what is written */
    STK_MEMORY_SCRATCH, /* an arena: its content is anything, also when a program runs again */
} stk_memory_kind;

/* Whether a device's kernels may be chosen by timing them, where it does not know better: whoever opens the device says
 * so (stk_device.measuring). */
typedef enum stk_measuring {
    STK_MEASURES_NOTHING,
    STK_MEASURES_NO_MORE, /* what was measured before counts */
    STK_MEASURES
} stk_measuring;

struct stk_queue_class;

typedef struct stk_device_class {
    const char *name; /* "cpu" */
    const char *about;
    bool on_host;                /* see above */
    const stk_device_caps *caps; /* NULL: the primitives alone. `open` may set others for the chip that it finds */
    /* Optional: how many devices of the class there are, numbered from 0; else 1. */
    int (*count)(void);
    /* Optional: the number of the best GPU among them, which "gpu" then means; -1: there is none. After probe. */
    int (*best_gpu)(void);
    /* Optional: the number of the device that the maker's name for it means, as of "cuda:GPU-8932f937-..."; after
     * probe. Below 0: of one that is absent.
     */
    stk_status (*find)(const char *name, int *number);
    bool loads_by_name; /* find needs no probe: the name says what to load, and may be a path */
    /* STK_OK, or why it cannot be used here, with what is missing in the error text. */
    stk_status (*probe)(void);
    stk_status (*open)(const stk_device_config *config, stk_device **out);
    void (*close)(stk_device *device);
    /* 64-byte aligned memory of the device. Only on_host may the host look at what lies there. */
    stk_status (*alloc)(stk_device *device, size_t bytes, stk_memory_kind kind, void **out);
    void (*free)(stk_device *device, void *p, size_t bytes); /* no work that uses it is under way */
    /* Optional: the host's own memory, 64-byte aligned, from which and to which copies are fastest ("pinned"). */
    stk_status (*alloc_host)(stk_device *device, size_t bytes, void **out);
    void (*free_host)(stk_device *device, void *p, size_t bytes);
    /* Finds the kernel for a call whose shapes are known. STK_UNSUPPORTED names the op and the dtypes. */
    stk_status (*kernel)(stk_device *device, const stk_op_call *call, stk_kernel *out);
    /* Optional: the kernel of what ranks do together (stk_op_is_of_ranks, but rank_begin and rank_await), which else is
     * only done on the host. comm is borrowed for the kernel's life. */
    stk_status (*rank_kernel)(stk_device *device, struct stk_comm *comm, const stk_op_call *call, stk_kernel *out);
    /* Optional: calls that `kernel` will be asked for, and then what takes long of all of them, as the choice of a
     * library's ways, at once. STK_INTERRUPTED once *stop is not 0, which may be NULL. */
    stk_status (*expect)(stk_device *device, const stk_op_call *call);
    stk_status (*prepare)(stk_device *device, const volatile int *stop);
    /* Optional: which kernels were chosen by timing, as lines for a file; nothing where none was. And such lines from
     * before, to be used instead: STK_MISMATCH where they are of another processor, STK_CORRUPT. */
    void (*print_choices)(const stk_device *device, stk_text *out);
    stk_status (*take_choices)(stk_device *device, const char *text);
    /* Queues, copies, events, captures. Devices on the host take &stk_queue_class_host and have `run`. */
    const struct stk_queue_class *queues;
    /* on_host only: runs entries in order and waits. On failure *i_failed is the entry's number. */
    stk_status (*run)(stk_device *device, const stk_entry *entries, int n_entries, int *i_failed);
    /* Optional, on_host only: runs body for all parts on the device's threads, between runs. */
    void (*parallel)(const stk_device *device, int n_parts, void (*body)(const void *task, int i_part, int n_parts),
                     const void *task);
    bool compiles_steps; /* a program is compiled as a whole, and not kernel by kernel */
    /* Why computing in that 16-bit dtype is no faster than in f32, for people; NULL: it is. A constant. Optional. */
    const char *(*slow_dtype)(const stk_device *device, stk_dtype dtype);
    /* Optional on the host, whose memory and processor are meant else. chip: its maker's name. */
    stk_status (*memory)(const stk_device *device, stk_device_memory *out);
    void (*chip)(const stk_device *device, stk_text *out);
    /* "2 threads, avx2" */
    void (*describe)(const stk_device *device, stk_text *out);
    /* Optional: what lists of devices say behind that, as names and libraries. */
    void (*list_more)(const stk_device *device, stk_text *out);
} stk_device_class;

/* Every device starts with this. */
struct stk_device {
    const stk_device_class *class;
    const stk_device_caps *caps; /* set by stk_device_open to the class's where `open` sets none; never NULL then */
    int number;                  /* of its kind; stk_device_open sets it */
    int n_threads;
    stk_measuring measuring; /* its owner sets it, before it has kernels made */
    bool default_kernels;    /* as in the config */
    bool is_gpu;
    char bus[16];    /* where the chip is, "0000:41:00.0"; "": not told */
    char absent[48]; /* what it is called, "v5e:2x2", that is not here: programs can be compiled for it, and not
                        run; no memory is taken, and nothing stays there. "": it is here */
    char note[256];  /* what people should know, once; "": nothing. The device's owner clears it */
    size_t compiled_limit_bytes; /* what a program that is compiled as a whole may take; 0: any. Its owner sets it */
    size_t most_piece_bytes;     /* that one alloc gives out; 0: any */
    size_t apart_bytes;          /* between buffers of small programs (passes/plan.h); 0: they lie side by side */
};

extern const stk_device_class stk_device_class_reference, stk_device_class_cpu, stk_device_class_cuda,
    stk_device_class_opencl, stk_device_class_pjrt, stk_device_class_tpu;

/* All devices of this build, NULL at the end. */
extern const stk_device_class *const stk_device_classes[];
/* One more device, which stk_device_open finds by name and no list shows: for tests. NULL takes it away again.
 * Threads: before any device is opened. */
void stk_device_add(const stk_device_class *class);

/* name: "cpu", "cpu:0", "cpu:1", "reference". Each number is a device of its own, with memory and threads of its own;
 * devices on the host have numbers 0 to STK_MOST_DEVICES - 1. "gpu": the first kind's best GPU, and never a processor.
 * "cuda:GPU-8932f937" and the like: the one that its maker calls so.
 * An unknown or missing device is an error that names what there is. */
stk_status stk_device_open(const char *name, const stk_device_config *config, stk_device **out);
/* Whether there is such a device, without opening it. */
stk_status stk_device_check(const char *name);
void stk_device_close(stk_device *device); /* accepts NULL */
/* "cpu" for number 0, "cpu:1". */
void stk_device_print_name(const stk_device *device, stk_text *out);
void stk_kernel_free(stk_kernel *kernel);

/* --- about a device --- */
int stk_device_count(const stk_device_class *class);
stk_status stk_device_get_memory(const stk_device *device, stk_device_memory *out);
/* "AMD EPYC 9965 192-Core Processor"; "unknown" where nobody says. */
void stk_device_add_chip(const stk_device *device, stk_text *out);

#endif
