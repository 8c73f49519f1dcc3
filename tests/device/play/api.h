/* The calls of libcuda that are played, and how a caller reaches each: NVIDIA's documents of CUDA 13.0, and the
 * versions of cudaTypedefs.h.
 *
 * PLAY_API(X): X(name, symbol, since, needs, parameters). `symbol` is the name with the suffix of this version of its
 * interface, `since` the version (12000: CUDA 12.0) from which cuGetProcAddress gives it out for that name.
 */
#ifndef TESTS_DEVICE_PLAY_API_H
#define TESTS_DEVICE_PLAY_API_H

#include <stddef.h>
#include <stdint.h>

enum { /* what a call needs */
       ANYTIME = 0,
       INIT = 1,    /* cuInit before it */
       CONTEXT = 2, /* a context that is the thread's own, and unbroken */
       FREES = 4,   /* goes on in a context that is broken */
       UNSAFE = 8,  /* not while a stream captures: cuThreadExchangeStreamCaptureMode */
};

typedef void *handle;
typedef uint64_t address;

#define PLAY_API(X)                                                                                                    \
    X(cuInit, cuInit, 2000, ANYTIME, (unsigned flags))                                                                 \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020, ANYTIME, (int *out))                                               \
    X(cuGetErrorName, cuGetErrorName, 6000, ANYTIME, (int code, const char **out))                                     \
    X(cuGetErrorString, cuGetErrorString, 6000, ANYTIME, (int code, const char **out))                                 \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000, INIT, (int *out))                                                      \
    X(cuDeviceGet, cuDeviceGet, 2000, INIT, (int *out, int number))                                                    \
    X(cuDeviceGetName, cuDeviceGetName, 2000, INIT, (char *out, int n, int device))                                    \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, INIT, (int *out, int what, int device))                        \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, INIT, (size_t * out, int device))                                   \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, INIT, (char *out, int device))                                       \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, INIT, (char *out, int n, int device))                            \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, INIT | UNSAFE, (handle * out, int device))             \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, INIT | UNSAFE, (int device))                     \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, INIT, (handle context))                                                  \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, INIT, (int *out, int device, int peer))                      \
    X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, INIT | CONTEXT | UNSAFE, (handle peer, unsigned flags))      \
    X(cuMemGetInfo, cuMemGetInfo_v2, 3020, INIT | CONTEXT, (size_t * free_bytes, size_t * total))                      \
    X(cuMemAlloc, cuMemAlloc_v2, 3020, INIT | CONTEXT | UNSAFE, (address * out, size_t bytes))                         \
    X(cuMemFree, cuMemFree_v2, 3020, INIT | CONTEXT | UNSAFE, (address p))                                             \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, INIT | CONTEXT | UNSAFE, (void **out, size_t bytes, unsigned flags))       \
    X(cuMemFreeHost, cuMemFreeHost, 2000, INIT | CONTEXT | UNSAFE, (void *p))                                          \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020, INIT | CONTEXT,                                                          \
      (address dst, unsigned char byte, size_t n, handle stream))                                                      \
    X(cuMemcpyAsync, cuMemcpyAsync, 4000, INIT | CONTEXT, (address dst, address src, size_t bytes, handle stream))     \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, INIT | CONTEXT,                                    \
      (handle * out, unsigned flags, int priority))                                                                    \
    X(cuStreamDestroy, cuStreamDestroy_v2, 4000, INIT | CONTEXT | FREES, (handle stream))                              \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, INIT | CONTEXT, (handle stream))                                 \
    X(cuStreamQuery, cuStreamQuery, 2000, INIT | CONTEXT, (handle stream))                                             \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, INIT | CONTEXT, (handle stream, handle event, unsigned flags))       \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, INIT | CONTEXT, (handle stream, int mode))                 \
    X(cuStreamEndCapture, cuStreamEndCapture, 10000, INIT | CONTEXT, (handle stream, handle * out))                    \
    X(cuEventCreate, cuEventCreate, 2000, INIT | CONTEXT, (handle * out, unsigned flags))                              \
    X(cuEventDestroy, cuEventDestroy_v2, 4000, INIT | CONTEXT | FREES, (handle event))                                 \
    X(cuEventRecord, cuEventRecord, 2000, INIT | CONTEXT, (handle event, handle stream))                               \
    X(cuEventSynchronize, cuEventSynchronize, 2000, INIT | CONTEXT | UNSAFE, (handle event))                           \
    X(cuEventQuery, cuEventQuery, 2000, INIT | CONTEXT | UNSAFE, (handle event))                                       \
    X(cuEventElapsedTime, cuEventElapsedTime, 2000, INIT | CONTEXT, (float *milliseconds, handle begin, handle end))   \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, INIT | CONTEXT | UNSAFE,                                           \
      (handle * out, const void *image, unsigned n_options, const int *options, void *const *values))                  \
    X(cuModuleUnload, cuModuleUnload, 2000, INIT | CONTEXT | FREES | UNSAFE, (handle module))                          \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000, INIT | CONTEXT, (handle * out, handle module, const char *name)) \
    X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, INIT | CONTEXT, (int *out, int what, handle function))             \
    X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, INIT | CONTEXT, (handle function, int what, int value))            \
    X(cuLaunchKernel, cuLaunchKernel, 4000, INIT | CONTEXT,                                                            \
      (handle function, unsigned nx, unsigned ny, unsigned nz, unsigned x, unsigned y, unsigned z,                     \
       unsigned shared_bytes, handle stream, void *const *arguments, void *const *extra))                              \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, INIT | CONTEXT,                                 \
      (handle * out, handle graph, unsigned long long flags))                                                          \
    X(cuGraphUpload, cuGraphUpload, 11010, INIT | CONTEXT, (handle exec, handle stream))                               \
    X(cuGraphLaunch, cuGraphLaunch, 10000, INIT | CONTEXT, (handle exec, handle stream))                               \
    X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, INIT | CONTEXT | FREES, (handle exec))                            \
    X(cuGraphDestroy, cuGraphDestroy, 10000, INIT | CONTEXT | FREES, (handle graph))                                   \
    X(cuGraphGetNodes, cuGraphGetNodes, 10000, INIT | CONTEXT, (handle graph, handle * out, size_t * n))

#define PLAY_EXPORT __attribute__((visibility("default")))

#define X(name, symbol, since, needs, parameters) PLAY_EXPORT int symbol parameters;
PLAY_API(X)
#undef X
PLAY_EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

/* --- for the played libraries beside it, which put work into its streams --- */

typedef struct play_range { /* memory of the device that the work touches */
    address at;
    size_t bytes;
} play_range;

/* run(data) is done in the stream's turn, with data copied; or recorded. A code of libcuda's. */
PLAY_EXPORT int stk_play_enqueue(handle stream, void (*run)(void *data), const void *data, size_t bytes,
                                 const play_range *range, int n_ranges, const char *name);
/* What a library does when it loads its kernels: 900, and an invalid capture, where that may not be. */
PLAY_EXPORT int stk_play_load_library(void);
PLAY_EXPORT void stk_play_misuse(const char *text);
/* How often a call was made; "misuse", "kernels", ...: counts.c. -1: there is no such count. */
PLAY_EXPORT long long stk_play_count(const char *name);

#endif
