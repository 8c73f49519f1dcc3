/* Programs: NVRTC makes the chip's own code (CUBIN) of a source, so that nothing is left for the driver to compile, and
 * a driver of the same major version runs it whatever its minor one is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/cuda/cuda.h"

/* The compiler's first error with its line, out of a log that may be long. */
static stk_status fail_build(const gpu_context *context, nvrtc_program program, int code)
{
    size_t n = 0;
    const cuda_chip *chip = context->chip;
    if (nvrtc.nvrtcGetProgramLogSize(program, &n)) n = 0;
    char *log = calloc(1, n + 1);
    if (!log) return stk_fail_memory(n);
    if (n && nvrtc.nvrtcGetProgramLog(program, log)) log[0] = '\0';
    const char *error = strstr(log, "error");
    const char *line = error ? error : log;
    while (line > log && line[-1] != '\n')
        line--;
    stk_status status = stk_fail(STK_DEVICE, "NVRTC refuses kernels for sm_%d%d (%d): %.*s", chip->major, chip->minor,
                                 code, (int)strcspn(line, "\n"), line);
    if (code == NVRTC_INVALID_OPTION && strstr(log, "gpu-architecture"))
        status = stk_fail(STK_NO_DEVICE,
                          "'%s' is of compute capability %d.%d, which this NVRTC does not know: a newer one is wanted",
                          chip->name, chip->major, chip->minor);
    free(log);
    return status;
}

stk_status cuda_compile(const gpu_context *context, const char *source, void **out, size_t *n)
{
    char target[48];
    const char *options[] = {target, "--std=c++17", "--disable-warnings"};
    nvrtc_program program = NULL;
    stk_status status = STK_OK;
    snprintf(target, sizeof(target), "--gpu-architecture=sm_%d%d", context->chip->major, context->chip->minor);
    int code = nvrtc.nvrtcCreateProgram(&program, source, "stoker.cu", 0, NULL, NULL);
    if (code) STK_TRY(stk_fail(STK_DEVICE, "nvrtcCreateProgram: error %d of NVRTC", code));
    code = nvrtc.nvrtcCompileProgram(program, sizeof(options) / sizeof(options[0]), options);
    if (code) STK_TRY(fail_build(context, program, code));
    code = nvrtc.nvrtcGetCUBINSize(program, n);
    if (code || *n == 0) STK_TRY(stk_fail(STK_DEVICE, "nvrtcGetCUBINSize: error %d of NVRTC", code));
    *out = malloc(*n);
    if (!*out) STK_TRY(stk_fail_memory(*n));
    code = nvrtc.nvrtcGetCUBIN(program, *out);
    if (code) STK_TRY(stk_fail(STK_DEVICE, "nvrtcGetCUBIN: error %d of NVRTC", code));
done:
    if (program) nvrtc.nvrtcDestroyProgram(&program);
    if (status != STK_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* Bytes are aligned, as the driver's reader of ELF wants it; it has its own copy then. */
stk_status cuda_restore(gpu_context *context, const void *bytes, size_t n, gpu_module **out)
{
    (void)n;
    gpu_module *module = calloc(1, sizeof(*module));
    if (!module) return stk_fail_memory(sizeof(*module));
    stk_status status = cuda_enter(context);
    if (status == STK_OK)
        status = cuda_check(cu.cuModuleLoadDataEx(&module->module, bytes, 0, NULL, NULL), "cuModuleLoadDataEx");
    if (status != STK_OK) {
        free(module);
        return status;
    }
    module->context = context;
    *out = module;
    return STK_OK;
}

void cuda_unload(gpu_module *module)
{
    if (!module) return;
    if (!module->context->hangs && cuda_enter(module->context) == STK_OK) cu.cuModuleUnload(module->module);
    free(module);
}
