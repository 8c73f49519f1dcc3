/* The driver for OpenCL: what its files share. Memory has handles in OpenCL, so that addresses are made up (book.c),
 * and a kernel gets handle and offset for each. */
#ifndef STK_DEVICE_GPU_OPENCL_OPENCL_H
#define STK_DEVICE_GPU_OPENCL_OPENCL_H

#include "device/gpu/gpu.h"
#include "device/gpu/opencl/cl.h"

extern cl_symbols cl; /* set by opencl_load */

typedef struct opencl_block {
    uintptr_t address;
    size_t bytes;
    cl_mem memory;
} opencl_block;

typedef struct opencl_mapping { /* of the host's memory */
    void *p;
    cl_mem memory;
} opencl_mapping;

struct gpu_context {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* for what is waited for at once; command buffers run on queues of its properties alone */
    opencl_block *block;    /* by address */
    int n_blocks;
    opencl_mapping *mapping;
    int n_mappings;
    uintptr_t next;                            /* address */
    bool has_command_buffers, buffers_overlap; /* one may be launched again before it is done */
    bool unoptimised;                          /* what the compiler makes */
    bool hangs;                                /* nothing is waited for any more */
    double wait_seconds;                       /* the most that work may take; 0: any time */
    const struct opencl_capture *launched;     /* the last one, for errors; NULL: it is released */
    cl_command_buffer_symbols buffers;
};

struct gpu_module {
    const gpu_context *context;
    cl_program program;
};

typedef struct opencl_launch {
    cl_kernel kernel;
    char name[GPU_NAME_BYTES];
    size_t global[3], local[3];
    cl_event done; /* of the last launch, where there is no command buffer */
} opencl_launch;

typedef struct opencl_capture {
    gpu_capture head;
    gpu_context *context;
    opencl_launch *launch;
    int n_launches;
    cl_command_buffer_khr buffer; /* NULL: one launch after the other */
    cl_event *done;               /* [1]: the buffer's last launch */
} opencl_capture;

/* STK_OK, or what went wrong: "clBuildProgram: out of resources (-5)". */
stk_status opencl_check(cl_int code, const char *call);
stk_status opencl_load(void);
int opencl_count(void);
int opencl_best_gpu(void); /* GPUs have the first numbers; -1: there is none */
stk_status opencl_open(int number, gpu_chip *chip, gpu_context **out);
void opencl_close(gpu_context *context);
/* book.c */
stk_status opencl_alloc(gpu_context *context, size_t bytes, void **out);
void opencl_free(gpu_context *context, void *p);
stk_status opencl_alloc_host(gpu_context *context, size_t bytes, void **out);
void opencl_free_host(gpu_context *context, void *p);
/* The memory behind an address and how far in; STK_INTERNAL: it is nobody's. */
stk_status opencl_find(const gpu_context *context, const void *p, size_t bytes, cl_mem *memory, size_t *offset);
/* program.c */
stk_status opencl_build(gpu_context *context, const char *source, gpu_module **out);
stk_status opencl_save(const gpu_module *module, void **out, size_t *n);
stk_status opencl_restore(gpu_context *context, const void *bytes, size_t n, gpu_module **out);
void opencl_unload(gpu_module *module);
/* wait.c: the host waits for a mark, and no longer than wait_seconds. */
stk_status opencl_wait(gpu_context *context, cl_event mark);
/* queue.c: the rest of the table */
extern const gpu_driver opencl_driver;

#endif
