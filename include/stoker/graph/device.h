/* Which devices there are. */
#ifndef STOKER_GRAPH_DEVICE_H
#define STOKER_GRAPH_DEVICE_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device_info {
    const char *name;  /* "cpu"; a constant */
    const char *about; /* a constant */
    bool available;
    int n_numbers; /* 8: there are "cpu:0", which is "cpu", to "cpu:7", each with memory and threads of its own */
    int number;    /* of "opencl:1": 1. Devices with chips of their own have an entry each, others one for all */
    bool on_host;  /* it computes on the host's memory */
    bool is_gpu;
    char chip[128];                    /* "NVIDIA H100 80GB HBM3"; "" where it is not available */
    uint64_t memory_bytes, free_bytes; /* 0: nobody tells */
    uint64_t others_bytes;             /* that other processes use */
    char detail[512];                  /* "2 threads, avx2", or what is missing, why, and what would help */
} stk_device_info;

/* Entry number i of this build's devices, or STK_NOT_FOUND past the end. */
STK_API stk_status stk_device_get_info(int i, stk_device_info *out);

/* A library of NVIDIA's that the device 'cuda' uses, besides the driver's own. */
typedef struct stk_cuda_library {
    const char *name, *about;
    bool is_optional;
    char path[512];           /* where it was found; "": nowhere */
    char package[64];         /* of PyPI, that has it for that CUDA */
    const char *const *files; /* which of the package's: their names begin so; NULL at the end */
} stk_cuda_library;

/* 13: the driver here is of CUDA 13; 0: there is none that serves. */
STK_API int stk_cuda_driver_major(void);
/* Library number i, as it is for programs of that CUDA, or STK_NOT_FOUND past the end. */
STK_API stk_status stk_cuda_library_at(int i, int major, stk_cuda_library *out);

#ifdef __cplusplus
}
#endif
#endif
