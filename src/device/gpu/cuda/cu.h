/* The part of CUDA's driver and of NVRTC that Stoker uses, by NVIDIA's documents of CUDA 12.0 and 13.0. Both are loaded
 * at run time: no header and no library of CUDA is needed to build.
 *
 * CU_SYMBOL_LIST and NVRTC_SYMBOL_LIST are the only lists of functions. All return 0, or an error. The version is that
 * of the interface which is meant where a function has several (cuGetProcAddress).
 */
#ifndef STK_DEVICE_GPU_CUDA_CU_H
#define STK_DEVICE_GPU_CUDA_CU_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_device;
typedef uint64_t cu_address;
typedef struct cu_context_state *cu_context;
typedef struct cu_module_state *cu_module;
typedef struct cu_function_state *cu_function;
typedef struct cu_stream_state *cu_stream;
typedef struct cu_event_state *cu_event;
typedef struct cu_graph_state *cu_graph;
typedef struct cu_graph_exec_state *cu_graph_exec;
typedef struct nvrtc_program_state *nvrtc_program;

typedef struct cu_uuid {
    unsigned char bytes[16];
} cu_uuid;

enum {
    CU_SUCCESS = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_READY = 600,
    CU_PEER_IS_ENABLED = 704,

    CU_ATTRIBUTE_GROUP_MEMORY = 8, /* bytes that one group may have without asking for more */
    CU_ATTRIBUTE_MULTIPROCESSORS = 16,
    CU_ATTRIBUTE_INTEGRATED = 18,
    CU_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    CU_ATTRIBUTE_CAPABILITY_MINOR = 76,

    CU_FUNCTION_MOST_GROUP = 0, /* work-items, by the registers that the kernel needs */

    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_NO_TIMING = 2,
    CU_HOST_PORTABLE = 1, /* pinned for every context */
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_CAPTURE_RELAXED = 2,
    CU_PROC_DEFAULT = 0,

    NVRTC_INVALID_OPTION = 5,
};

#define CU_SYMBOL_LIST(X)                                                                                              \
    X(cuInit, 2000, (unsigned flags))                                                                                  \
    X(cuGetErrorName, 6000, (int code, const char **out))                                                              \
    X(cuGetErrorString, 6000, (int code, const char **out))                                                            \
    X(cuDeviceGetCount, 2000, (int *out))                                                                              \
    X(cuDeviceGet, 2000, (cu_device * out, int number))                                                                \
    X(cuDeviceGetName, 2000, (char *out, int n, cu_device device))                                                     \
    X(cuDeviceGetAttribute, 2000, (int *out, int what, cu_device device))                                              \
    X(cuDeviceTotalMem, 3020, (size_t * out, cu_device device))                                                        \
    X(cuDeviceGetUuid, 11040, (cu_uuid * out, cu_device device))                                                       \
    X(cuDeviceGetPCIBusId, 4010, (char *out, int n, cu_device device))                                                 \
    X(cuDevicePrimaryCtxRetain, 7000, (cu_context * out, cu_device device))                                            \
    X(cuDevicePrimaryCtxRelease, 11000, (cu_device device))                                                            \
    X(cuCtxSetCurrent, 4000, (cu_context context))                                                                     \
    X(cuDeviceCanAccessPeer, 4000, (int *out, cu_device device, cu_device peer))                                       \
    X(cuCtxEnablePeerAccess, 4000, (cu_context peer, unsigned flags))                                                  \
    X(cuMemGetInfo, 3020, (size_t * free, size_t * total))                                                             \
    X(cuMemAlloc, 3020, (cu_address * out, size_t bytes))                                                              \
    X(cuMemFree, 3020, (cu_address p))                                                                                 \
    X(cuMemHostAlloc, 2020, (void **out, size_t bytes, unsigned flags))                                                \
    X(cuMemFreeHost, 2000, (void *p))                                                                                  \
    X(cuMemsetD8Async, 3020, (cu_address dst, unsigned char byte, size_t n, cu_stream stream))                         \
    X(cuMemcpyAsync, 4000, (cu_address dst, cu_address src, size_t bytes, cu_stream stream))                           \
    X(cuStreamCreateWithPriority, 5050, (cu_stream * out, unsigned flags, int priority))                               \
    X(cuStreamDestroy, 4000, (cu_stream stream))                                                                       \
    X(cuStreamQuery, 2000, (cu_stream stream))                                                                         \
    X(cuStreamWaitEvent, 3020, (cu_stream stream, cu_event event, unsigned flags))                                     \
    X(cuStreamBeginCapture, 10010, (cu_stream stream, int mode))                                                       \
    X(cuStreamEndCapture, 10000, (cu_stream stream, cu_graph * out))                                                   \
    X(cuEventCreate, 2000, (cu_event * out, unsigned flags))                                                           \
    X(cuEventDestroy, 4000, (cu_event event))                                                                          \
    X(cuEventRecord, 2000, (cu_event event, cu_stream stream))                                                         \
    X(cuEventQuery, 2000, (cu_event event))                                                                            \
    X(cuEventElapsedTime, 2000, (float *milliseconds, cu_event begin, cu_event end))                                   \
    X(cuModuleLoadDataEx, 2010,                                                                                        \
      (cu_module * out, const void *image, unsigned n_options, const int *options, void *const *values))               \
    X(cuModuleUnload, 2000, (cu_module module))                                                                        \
    X(cuModuleGetFunction, 2000, (cu_function * out, cu_module module, const char *name))                              \
    X(cuFuncGetAttribute, 2020, (int *out, int what, cu_function function))                                            \
    X(cuLaunchKernel, 4000,                                                                                            \
      (cu_function function, unsigned nx, unsigned ny, unsigned nz, unsigned x, unsigned y, unsigned z,                \
       unsigned shared_bytes, cu_stream stream, void *const *arguments, void *const *extra))                           \
    X(cuGraphInstantiateWithFlags, 11040, (cu_graph_exec * out, cu_graph graph, unsigned long long flags))             \
    X(cuGraphUpload, 11010, (cu_graph_exec exec, cu_stream stream))                                                    \
    X(cuGraphLaunch, 10000, (cu_graph_exec exec, cu_stream stream))                                                    \
    X(cuGraphExecDestroy, 10000, (cu_graph_exec exec))                                                                 \
    X(cuGraphDestroy, 10000, (cu_graph graph))

#define NVRTC_SYMBOL_LIST(X)                                                                                           \
    X(nvrtcVersion, 0, (int *major, int *minor))                                                                       \
    X(nvrtcCreateProgram, 0,                                                                                           \
      (nvrtc_program * out, const char *source, const char *name, int n_headers, const char *const *headers,           \
       const char *const *names))                                                                                      \
    X(nvrtcDestroyProgram, 0, (nvrtc_program * program))                                                               \
    X(nvrtcCompileProgram, 0, (nvrtc_program program, int n_options, const char *const *options))                      \
    X(nvrtcGetProgramLogSize, 0, (nvrtc_program program, size_t * out))                                                \
    X(nvrtcGetProgramLog, 0, (nvrtc_program program, char *out))                                                       \
    X(nvrtcGetCUBINSize, 0, (nvrtc_program program, size_t * out))                                                     \
    X(nvrtcGetCUBIN, 0, (nvrtc_program program, char *out))

#define X(name, version, parameters) int(*name) parameters;
typedef struct cu_symbols {
    CU_SYMBOL_LIST(X)
} cu_symbols;

typedef struct nvrtc_symbols {
    NVRTC_SYMBOL_LIST(X)
} nvrtc_symbols;
#undef X

#endif
