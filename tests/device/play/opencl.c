/* See opencl.h. */
#include "device/play/opencl.h"

#include <dlfcn.h>
#include <stdlib.h>

const char *play_load_opencl(play_opencl *out)
{
    const char *own = getenv("STOKER_OPENCL");
    void *library = dlopen(own && *own ? own : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    cl_platform_id platform;
    cl_int code;
    if (!library) return "there is no libOpenCL.so.1 (Debian: apt install ocl-icd-libopencl1 pocl-opencl-icd)";
#define X(result, name, parameters)                                                                                    \
    *(void **)&out->name = dlsym(library, #name);                                                                      \
    if (!out->name) return "libOpenCL.so.1 has no " #name;
    PLAY_OPENCL_LIST(X)
#undef X
    if (out->clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        out->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &out->device, NULL) != CL_SUCCESS)
        return "there is no PoCL to run kernels on (Debian: apt install pocl-opencl-icd)";
    out->context = out->clCreateContext(NULL, 1, &out->device, NULL, NULL, &code);
    if (code != CL_SUCCESS) return "clCreateContext fails";
    out->queue = out->clCreateCommandQueue(out->context, out->device, 0, &code);
    return code == CL_SUCCESS ? NULL : "clCreateCommandQueue fails";
}
