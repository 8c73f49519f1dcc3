/* Programs: from source, and from what an earlier process kept. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/opencl/opencl.h"

#define OPTIONS "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -w"

static const char *options(const gpu_context *context)
{
    return context->unoptimised ? OPTIONS " -cl-opt-disable" : OPTIONS;
}

static stk_status make_module(gpu_context *context, cl_program program, gpu_module **out)
{
    gpu_module *module = malloc(sizeof(*module));
    if (!module) {
        cl.clReleaseProgram(program);
        return stk_fail_memory(sizeof(*module));
    }
    *module = (gpu_module){context, program};
    *out = module;
    return STK_OK;
}

/* The compiler's first error with its line, out of a log that may be long. */
static stk_status fail_build(const gpu_context *context, cl_program program, cl_int code)
{
    size_t n = 0;
    cl.clGetProgramBuildInfo(program, context->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
    char *log = calloc(1, n + 1);
    if (!log) return stk_fail_memory(n);
    cl.clGetProgramBuildInfo(program, context->device, CL_PROGRAM_BUILD_LOG, n, log, NULL);
    const char *error = strstr(log, "error");
    const char *line = error ? error : log;
    while (line > log && line[-1] != '\n')
        line--;
    stk_status status = stk_fail(STK_DEVICE, "the compiler of OpenCL refuses kernels (%d): %.*s", (int)code,
                                 (int)strcspn(line, "\n"), line);
    free(log);
    return status;
}

stk_status opencl_build(gpu_context *context, const char *source, gpu_module **out)
{
    cl_int code;
    cl_program program = cl.clCreateProgramWithSource(context->context, 1, &source, NULL, &code);
    STK_RETURN_IF_ERROR(opencl_check(code, "clCreateProgramWithSource"));
    code = cl.clBuildProgram(program, 1, &context->device, options(context), NULL, NULL);
    if (code == CL_SUCCESS) return make_module(context, program, out);
    stk_status status = fail_build(context, program, code);
    cl.clReleaseProgram(program);
    return status;
}

stk_status opencl_save(const gpu_module *module, void **out, size_t *n)
{
    unsigned char *bytes = NULL;
    if (cl.clGetProgramInfo(module->program, CL_PROGRAM_BINARY_SIZES, sizeof(*n), n, NULL) != CL_SUCCESS || *n == 0)
        return STK_UNSUPPORTED;
    bytes = malloc(*n);
    if (!bytes) return stk_fail_memory(*n);
    if (cl.clGetProgramInfo(module->program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, NULL) != CL_SUCCESS) {
        free(bytes);
        return STK_UNSUPPORTED;
    }
    *out = bytes;
    return STK_OK;
}

stk_status opencl_restore(gpu_context *context, const void *bytes, size_t n, gpu_module **out)
{
    cl_int code, taken = CL_SUCCESS;
    const unsigned char *binary = bytes;
    cl_program program =
        cl.clCreateProgramWithBinary(context->context, 1, &context->device, &n, &binary, &taken, &code);
    STK_RETURN_IF_ERROR(opencl_check(code, "clCreateProgramWithBinary"));
    code = taken == CL_SUCCESS ? cl.clBuildProgram(program, 1, &context->device, options(context), NULL, NULL) : taken;
    if (code == CL_SUCCESS) return make_module(context, program, out);
    cl.clReleaseProgram(program);
    return opencl_check(code, "clBuildProgram");
}

void opencl_unload(gpu_module *module)
{
    if (!module) return;
    cl.clReleaseProgram(module->program);
    free(module);
}
