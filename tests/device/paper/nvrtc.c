/* See nvrtc.h. */
#include "device/paper/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct nvrtc_program_state *nvrtc_program;

/* The functions of nvrtc.h that are wanted here; each returns 0, or an error. */
#define NVRTC_SYMBOL_LIST(X)                                                                                           \
    X(nvrtcVersion, (int *major, int *minor))                                                                          \
    X(nvrtcCreateProgram, (nvrtc_program * out, const char *source, const char *name, int n_headers,                   \
                           const char *const *headers, const char *const *names))                                      \
    X(nvrtcDestroyProgram, (nvrtc_program * program))                                                                  \
    X(nvrtcCompileProgram, (nvrtc_program program, int n_options, const char *const *options))                         \
    X(nvrtcGetProgramLogSize, (nvrtc_program program, size_t * n))                                                     \
    X(nvrtcGetProgramLog, (nvrtc_program program, char *out))                                                          \
    X(nvrtcGetPTXSize, (nvrtc_program program, size_t * n))                                                            \
    X(nvrtcGetPTX, (nvrtc_program program, char *out))                                                                 \
    X(nvrtcGetCUBINSize, (nvrtc_program program, size_t * n))

#define X(symbol, parameters) static int(*symbol) parameters;
NVRTC_SYMBOL_LIST(X)
#undef X

static void *library;
static char version[32];

static stk_status find_symbols(const char *name)
{
    int major = 0, minor = 0;
#define X(symbol, parameters)                                                                                          \
    *(void **)&symbol = dlsym(library, #symbol);                                                                       \
    if (!symbol) return stk_fail(STK_NO_DEVICE, "'%s' has no %s", name, #symbol);
    NVRTC_SYMBOL_LIST(X)
#undef X
    nvrtcVersion(&major, &minor);
    snprintf(version, sizeof(version), "NVRTC %d.%d", major, minor);
    return STK_OK;
}

stk_status nvrtc_load(void)
{
    const char *own = getenv("STOKER_NVRTC");
    const char *names[] = {own, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
    const char *name = NULL;
    if (library) return STK_OK;
    for (int i = own && *own ? 0 : 1; names[i] && !library; i++) {
        library = dlopen(name = names[i], RTLD_NOW | RTLD_LOCAL);
        if (i == 0) break; /* What is asked for is not replaced by something else. */
    }
    if (!library)
        return stk_fail(STK_NO_DEVICE,
                        "cannot load '%s' (NVIDIA's run-time compiler: pip install nvidia-cuda-nvrtc, and STOKER_NVRTC "
                        "set to the path of its libnvrtc.so.13)",
                        own && *own ? own : "libnvrtc.so.13");
    stk_status status = find_symbols(name);
    if (status != STK_OK) {
        dlclose(library);
        library = NULL;
    }
    return status;
}

const char *nvrtc_version(void)
{
    return version;
}

/* --- compiling --- */

static stk_status take_text(nvrtc_program program, int (*size)(nvrtc_program, size_t *),
                            int (*get)(nvrtc_program, char *), stk_text *out)
{
    size_t n = 0;
    if (size(program, &n) || n == 0) return stk_fail(STK_DEVICE, "NVRTC gives no text");
    char *text = calloc(1, n + 1);
    if (!text) return stk_fail_memory(n);
    stk_status status = get(program, text) ? stk_fail(STK_DEVICE, "NVRTC gives no text") : STK_OK;
    if (status == STK_OK) stk_text_add(out, "%s", text);
    free(text);
    return status == STK_OK ? stk_text_status(out) : status;
}

static stk_status fail_build(const char *log, int arch, int code)
{
    const char *error = strstr(log, "error");
    const char *line = error ? error : log;
    while (line > log && line[-1] != '\n')
        line--;
    return stk_fail(STK_DEVICE, "NVRTC refuses kernels for sm_%d (%d): %.*s", arch, code, (int)strcspn(line, "\n"),
                    line);
}

stk_status nvrtc_build(const char *source, int arch, stk_text *ptx, stk_text *usage)
{
    char target[40];
    const char *options[] = {target, "--std=c++17", "--ptxas-options=-v"};
    nvrtc_program program = NULL;
    stk_status status = STK_OK;
    size_t n_cubin = 0;
    STK_TRY(nvrtc_load());
    snprintf(target, sizeof(target), "--gpu-architecture=sm_%d", arch);
    if (nvrtcCreateProgram(&program, source, "stoker.cu", 0, NULL, NULL))
        STK_TRY(stk_fail(STK_DEVICE, "NVRTC makes no program"));
    int code = nvrtcCompileProgram(program, sizeof(options) / sizeof(options[0]), options);
    STK_TRY(take_text(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog, usage));
    if (code) STK_TRY(fail_build(stk_text_get(usage), arch, code));
    if (nvrtcGetCUBINSize(program, &n_cubin) || n_cubin == 0)
        STK_TRY(stk_fail(STK_DEVICE, "NVRTC made no binary for sm_%d", arch));
    STK_TRY(take_text(program, nvrtcGetPTXSize, nvrtcGetPTX, ptx));
done:
    if (program) nvrtcDestroyProgram(&program);
    return status;
}
