/* OpenCL for the played driver and the played compiler: what they call of it, loaded at run time, and the images that
 * one makes and the other loads. */
#ifndef TESTS_DEVICE_PLAY_OPENCL_H
#define TESTS_DEVICE_PLAY_OPENCL_H

#include <stdbool.h>
#include <stddef.h>

#include "device/gpu/opencl/cl.h"

enum { /* what cl.h lacks */
       CL_MEM_USE_HOST_PTR = 1 << 3,
       CL_PROGRAM_KERNEL_NAMES = 0x1168,
       CL_KERNEL_NUM_ARGS = 0x1191,
       CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
       CL_KERNEL_ARG_TYPE_NAME = 0x1198,
       CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B,
       CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11B1,
       CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
};

#define PLAY_OPENCL_LIST(X)                                                                                            \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                                \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                       \
    X(cl_context, clCreateContext,                                                                                     \
      (const intptr_t *, cl_uint, const cl_device_id *, void (*)(const char *, const void *, size_t, void *), void *,  \
       cl_int *))                                                                                                      \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))                       \
    X(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                                     \
    X(cl_int, clReleaseMemObject, (cl_mem))                                                                            \
    X(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))           \
    X(cl_int, clBuildProgram,                                                                                          \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *))                 \
    X(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                                       \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                    \
    X(cl_int, clReleaseProgram, (cl_program))                                                                          \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                                 \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                              \
    X(cl_int, clGetKernelInfo, (cl_kernel, cl_uint, size_t, void *, size_t *))                                         \
    X(cl_int, clGetKernelArgInfo, (cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *))                             \
    X(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *))                  \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                                            \
    X(cl_int, clEnqueueNDRangeKernel,                                                                                  \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,                  \
       const cl_event *, cl_event *))                                                                                  \
    X(cl_int, clFinish, (cl_command_queue))

#define X(result, name, parameters) result(*name) parameters;
typedef struct play_opencl {
    PLAY_OPENCL_LIST(X) cl_device_id device;
    cl_context context;
    cl_command_queue queue;
} play_opencl;
#undef X

/* What the device 'opencl' builds with, so that PoCL's cache has one program for both. */
#define PLAY_OPTIONS "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -w -cl-opt-disable"

/* NULL; or what is missing. It stays open until the process ends. */
const char *play_load_opencl(play_opencl *out);

/* An image: text, of lines up to an empty one, and a source of OpenCL behind it.
 *
 *     played cubin 1
 *     sm 90
 *     bytes 12345                       of the source
 *     kernel NAME 256 1 1 4096 mm48s    group, bytes of a group's memory, arguments
 *
 * Arguments are m: an address, which OpenCL takes as two, memory and offset; 1, 2, 4, 8: so many bytes; s: a struct, of
 * which PoCL copies what it needs.
 */
#define PLAY_IMAGE "played cubin 1\n"
enum { PLAY_STRUCT_BYTES = 1024 }; /* the largest struct */

#endif
