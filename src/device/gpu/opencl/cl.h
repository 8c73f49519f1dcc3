/* The part of OpenCL that Stoker uses, by the Khronos specification of OpenCL 1.2 and of cl_khr_command_buffer 0.9. It
 * is loaded at run time through the ICD loader: no header and no library of OpenCL is needed to build.
 *
 * CL_SYMBOL_LIST is the only list of functions: X(result, name, parameters).
 */
#ifndef STK_DEVICE_GPU_OPENCL_CL_H
#define STK_DEVICE_GPU_OPENCL_CL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong, cl_bitfield;
typedef struct cl_platform_ *cl_platform_id;
typedef struct cl_device_ *cl_device_id;
typedef struct cl_context_ *cl_context;
typedef struct cl_queue_ *cl_command_queue;
typedef struct cl_mem_ *cl_mem;
typedef struct cl_program_ *cl_program;
typedef struct cl_kernel_ *cl_kernel;
typedef struct cl_event_ *cl_event;
typedef struct cl_command_buffer_ *cl_command_buffer_khr;

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_DEVICE_NOT_AVAILABLE = -2,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_INVALID_BUFFER_SIZE = -61,
    CL_PLATFORM_NOT_FOUND_KHR = -1001,

    CL_FALSE = 0,
    CL_TRUE = 1,
    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PCI_BUS_NV = 0x4008, /* cl_nv_device_attribute_query */
    CL_DEVICE_PCI_SLOT_NV = 0x4009,
    CL_DEVICE_PCI_DOMAIN_NV = 0x400a,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_COMPLETE = 0, /* of an event; more: not yet; less: the work failed with that code */
    CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR = 0x12A9,
    CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR = 1 << 2,
    CL_COMMAND_BUFFER_FLAGS_KHR = 0x1293,
    CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR = 1 << 0,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MAP_READ = 1 << 0,
    CL_MAP_WRITE = 1 << 1,
};
#define CL_DEVICE_TYPE_GPU ((cl_bitfield)1 << 2)
#define CL_DEVICE_TYPE_ALL ((cl_bitfield)0xFFFFFFFF)

#define CL_SYMBOL_LIST(X)                                                                                              \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                                \
    X(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))                                  \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                       \
    X(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                                      \
    X(cl_context, clCreateContext,                                                                                     \
      (const intptr_t *, cl_uint, const cl_device_id *, void (*)(const char *, const void *, size_t, void *), void *,  \
       cl_int *))                                                                                                      \
    X(cl_int, clReleaseContext, (cl_context))                                                                          \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))                       \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                               \
    X(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                                     \
    X(cl_int, clReleaseMemObject, (cl_mem))                                                                            \
    X(void *, clEnqueueMapBuffer,                                                                                      \
      (cl_command_queue, cl_mem, cl_uint, cl_bitfield, size_t, size_t, cl_uint, const cl_event *, cl_event *,          \
       cl_int *))                                                                                                      \
    X(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))      \
    X(cl_int, clEnqueueFillBuffer,                                                                                     \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))         \
    X(cl_int, clEnqueueReadBuffer,                                                                                     \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))              \
    X(cl_int, clEnqueueWriteBuffer,                                                                                    \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))        \
    X(cl_int, clEnqueueCopyBuffer,                                                                                     \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))               \
    X(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))           \
    X(cl_program, clCreateProgramWithBinary,                                                                           \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **, cl_int *, cl_int *))         \
    X(cl_int, clBuildProgram,                                                                                          \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *))                 \
    X(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                                       \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                    \
    X(cl_int, clReleaseProgram, (cl_program))                                                                          \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                                 \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                              \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                                            \
    X(cl_int, clEnqueueNDRangeKernel,                                                                                  \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,                  \
       const cl_event *, cl_event *))                                                                                  \
    X(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                  \
    X(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                 \
    X(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                           \
    X(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                  \
    X(cl_int, clReleaseEvent, (cl_event))                                                                              \
    X(cl_int, clFlush, (cl_command_queue))                                                                             \
    X(cl_int, clFinish, (cl_command_queue))                                                                            \
    X(void *, clGetExtensionFunctionAddressForPlatform, (cl_platform_id, const char *))

/* Of cl_khr_command_buffer, found through the last of the list. */
#define CL_COMMAND_BUFFER_LIST(X)                                                                                      \
    X(cl_command_buffer_khr, clCreateCommandBufferKHR,                                                                 \
      (cl_uint, const cl_command_queue *, const cl_bitfield *, cl_int *))                                              \
    X(cl_int, clReleaseCommandBufferKHR, (cl_command_buffer_khr))                                                      \
    X(cl_int, clFinalizeCommandBufferKHR, (cl_command_buffer_khr))                                                     \
    X(cl_int, clEnqueueCommandBufferKHR,                                                                               \
      (cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint, const cl_event *, cl_event *))                     \
    X(cl_int, clCommandNDRangeKernelKHR,                                                                               \
      (cl_command_buffer_khr, cl_command_queue, const cl_bitfield *, cl_kernel, cl_uint, const size_t *,               \
       const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *, void **))

#define X(result, name, parameters) result(*name) parameters;
typedef struct cl_symbols {
    CL_SYMBOL_LIST(X)
} cl_symbols;

typedef struct cl_command_buffer_symbols {
    CL_COMMAND_BUFFER_LIST(X)
} cl_command_buffer_symbols;
#undef X

#endif
