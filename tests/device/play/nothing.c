/* A libcuda of which every call fails with CUDA_ERROR_STUB_LIBRARY: with it NVIDIA's libraries load where there is no
 * driver, and what needs none of them can be tried (tests/device/gpu/test_cudnn_library.c). */

#define NOTHING_LIST(X)                                                                                                \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxGetLimit)                                                                                                   \
    X(cuCtxPopCurrent)                                                                                                 \
    X(cuCtxPushCurrent)                                                                                                \
    X(cuStreamGetCtx)                                                                                                  \
    X(cuLinkCreate)                                                                                                    \
    X(cuLinkAddData)                                                                                                   \
    X(cuLinkComplete)                                                                                                  \
    X(cuLinkDestroy)                                                                                                   \
    X(cuLaunchKernel)                                                                                                  \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuLaunchCooperativeKernel)                                                                                       \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuLibraryLoadData)                                                                                               \
    X(cuLibraryLoadFromFile)                                                                                           \
    X(cuLibraryGetKernel)                                                                                              \
    X(cuLibraryUnload)                                                                                                 \
    X(cuKernelSetAttribute)                                                                                            \
    X(cuKernelGetAttribute)                                                                                            \
    X(cuKernelGetFunction)                                                                                             \
    X(cuOccupancyMaxPotentialClusterSize)                                                                              \
    X(cuTensorMapEncodeIm2col)                                                                                         \
    X(cuTensorMapEncodeTiled)

#define X(name)                                                                                                        \
    __attribute__((visibility("default"))) int name(void);                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 34;                                                                                                     \
    }
NOTHING_LIST(X)
