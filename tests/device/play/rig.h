/* What tests of the played GPU begin with: the libraries loaded as a program loads them, each test in a process of its
 * own, with its own settings, and how that ended. */
#ifndef TESTS_DEVICE_PLAY_RIG_H
#define TESTS_DEVICE_PLAY_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "device/gpu/cuda/cu.h"
#include "device/gpu/texts.h"

#define PLAYED STK_BINARY_DIR "/tests/play/"

enum { MISUSED = 86, NO_POCL = 77 };

static cu_symbols cu;
static nvrtc_symbols nvrtc;
static int (*synchronize)(cu_stream);
static long long (*count)(const char *);
static cu_context context;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define GIVES(code, call)                                                                                              \
    do {                                                                                                               \
        int given_ = (call);                                                                                           \
        if (given_ != (code)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, given_, (int)(code));           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define WELL(call) GIVES(0, call)

static inline void load(void)
{
    void *driver = dlopen(PLAYED "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *compiler = dlopen(PLAYED "libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    int (*get)(const char *, void **, int, uint64_t, int *);
    CHECK(driver && compiler);
    *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
    *(void **)&count = dlsym(driver, "stk_play_count");
#define X(name, version, parameters) WELL(get(#name, (void **)&cu.name, version, 0, NULL));
    CU_SYMBOL_LIST(X)
#undef X
    WELL(get("cuStreamSynchronize", (void **)&synchronize, 2000, 0, NULL));
#define X(name, version, parameters) *(void **)&nvrtc.name = dlsym(compiler, #name);
    NVRTC_SYMBOL_LIST(X)
#undef X
}

static inline void open_context(void)
{
    load();
    WELL(cu.cuInit(0));
    WELL(cu.cuDevicePrimaryCtxRetain(&context, 0));
    WELL(cu.cuCtxSetCurrent(context));
}

/* A unit as gpu/unit.c writes it, with the kernel's text. */
static inline int compile(const char *text, const char *target, nvrtc_program *out)
{
    const char *cuda = NULL, *dialect = NULL;
    const char *options[] = {target, "--std=c++17"};
    stk_text source = {0};
    for (const gpu_text *t = gpu_texts; t->name; t++) {
        if (!strcmp(t->name, "dialect_cuda.h")) cuda = t->text;
        if (!strcmp(t->name, "dialect.h")) dialect = t->text;
    }
    stk_text_add(&source, "#line 1 \"dialect_cuda.h\"\n%s#line 1 \"dialect.h\"\n%s", cuda, dialect);
    stk_text_add(&source, "#define SUFFIX _t\n#define index_t int\n#line 1 \"t.dev\"\n%s", text);
    WELL(nvrtc.nvrtcCreateProgram(out, stk_text_get(&source), "t.cu", 0, NULL, NULL));
    int code = nvrtc.nvrtcCompileProgram(*out, 2, options);
    stk_text_free(&source);
    return code;
}

static const char arch[] __attribute__((unused)) = "--gpu-architecture=sm_90";

static inline cu_module load_module(const char *text)
{
    nvrtc_program program;
    cu_module module;
    size_t n;
    WELL(compile(text, arch, &program));
    WELL(nvrtc.nvrtcGetCUBINSize(program, &n));
    char *image = malloc(n);
    CHECK(image);
    WELL(nvrtc.nvrtcGetCUBIN(program, image));
    WELL(nvrtc.nvrtcDestroyProgram(&program));
    WELL(cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    free(image);
    return module;
}

static inline cu_function get_function(cu_module module, const char *name)
{
    cu_function f;
    WELL(cu.cuModuleGetFunction(&f, module, name));
    return f;
}

static inline cu_stream open_stream(void)
{
    cu_stream stream;
    WELL(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

/* dst[i] = src[i] * by + box.add[1], of 256 floats. */
static const char scale_text[] __attribute__((unused)) =
    "typedef struct box { int add[2]; i64 unused; } box;\n"
    "KERNEL(scale, 64, 1, 1)(BUFFER(float, src), BUFFER(float, dst), float by, box b)\n"
    "{\n    POINTER(const float, src);\n    POINTER(float, dst);\n"
    "    const int i = GROUP_X * 64 + ITEM_X;\n    dst[i] = src[i] * by + b.add[1];\n}\n";
enum { N = 256 };
typedef struct scale_box {
    int32_t add[2];
    int64_t unused;
} scale_box;

static inline int launch_scale(cu_function f, cu_stream stream, cu_address src, cu_address dst, float by, int add)
{
    scale_box box = {{0, add}, 0};
    void *arguments[] = {&src, &dst, &by, &box};
    return cu.cuLaunchKernel(f, N / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL);
}

static inline cu_address take(size_t bytes)
{
    cu_address p;
    WELL(cu.cuMemAlloc(&p, bytes));
    return p;
}

static inline float *take_pinned(void)
{
    void *p;
    WELL(cu.cuMemHostAlloc(&p, N * sizeof(float), 0));
    return p;
}

static inline cu_address of(const void *p)
{
    return (cu_address)(uintptr_t)p;
}

/* Runs it in a process of its own, with settings "A=1" up to a NULL, which is to end with that code. */
static inline void expect_end(int code, void (*body)(void), ...)
{
    va_list list;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        va_start(list, body);
        for (char *setting; (setting = va_arg(list, char *));)
            putenv(setting);
        va_end(list);
        body();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("it ended with %d (signal %d), not %d", WEXITSTATUS(status),
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0, code);
}

static inline void ask_for_pocl(void)
{
    load();
    exit(cu.cuInit(0) == 100 ? NO_POCL : 0);
}

static inline bool lacks_pocl(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) ask_for_pocl();
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_POCL) return false;
    printf("SKIP: there is no PoCL to play a GPU with (Debian: apt install pocl-opencl-icd)\n");
    return true;
}

#endif
