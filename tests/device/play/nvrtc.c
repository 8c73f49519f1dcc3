/* A stand-in for NVIDIA's run-time compiler. A source begins with the text of dialect_cuda.h, as gpu/unit.c puts it
 * there; dialect_opencl.h goes in its place, and OpenCL's compiler says what is wrong with the rest and what arguments
 * kernels have. The image is for the played driver alone.
 *
 * STOKER_PLAY_NVRTC names the real library, if there is one: each source must then please that, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu/texts.h"
#include "device/play/opencl.h"

#define EXPORT __attribute__((visibility("default")))

enum { WELL = 0, CREATION_FAILURE = 2, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6 };

typedef struct program {
    char *source, *log, *image;
    size_t n_image; /* with its last zero */
} program;

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT int nvrtcCreateProgram(program **out, const char *source, const char *name, int n_headers,
                              const char *const *headers, const char *const *names);
EXPORT int nvrtcDestroyProgram(program **out);
EXPORT int nvrtcCompileProgram(program *p, int n_options, const char *const *options);
EXPORT int nvrtcGetProgramLogSize(program *p, size_t *out);
EXPORT int nvrtcGetProgramLog(program *p, char *out);
EXPORT int nvrtcGetCUBINSize(program *p, size_t *out);
EXPORT int nvrtcGetCUBIN(program *p, char *out);
EXPORT int nvrtcGetPTXSize(program *p, size_t *out);
EXPORT int nvrtcGetPTX(program *p, char *out);
EXPORT const char *nvrtcGetErrorString(int code);

static play_opencl cl;
static const char *no_opencl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_once(void)
{
    no_opencl = play_load_opencl(&cl);
}

/* On any thread: OpenCL is made for that. */
static bool open_opencl(void)
{
    pthread_once(&once, load_once);
    return !no_opencl;
}

/* --- text --- */

typedef struct text {
    char *data;
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list list;
    char *line;
    va_start(list, format);
    int n = vasprintf(&line, format, list);
    va_end(list);
    if (n < 0) abort();
    t->data = realloc(t->data, t->n + (size_t)n + 1);
    if (!t->data) abort();
    memcpy(t->data + t->n, line, (size_t)n + 1);
    t->n += (size_t)n;
    free(line);
}

/* --- what the real one says --- */

static int ask_real(program *p, int n_options, const char *const *options)
{
    const char *path = getenv("STOKER_PLAY_NVRTC");
    void *real = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *made = NULL;
    size_t n = 0;
    if (!path || !*path) return WELL;
    if (!real) {
        free(p->log);
        if (asprintf(&p->log, "error: STOKER_PLAY_NVRTC: %s", dlerror()) < 0) abort();
        return CREATION_FAILURE;
    }
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *), (*log_size)(void *, size_t *), (*get_log)(void *, char *);
    int (*destroy)(void **);
    *(void **)&create = dlsym(real, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(real, "nvrtcCompileProgram");
    *(void **)&log_size = dlsym(real, "nvrtcGetProgramLogSize");
    *(void **)&get_log = dlsym(real, "nvrtcGetProgramLog");
    *(void **)&destroy = dlsym(real, "nvrtcDestroyProgram");
    int code = create(&made, p->source, "played.cu", 0, NULL, NULL);
    if (!code) code = compile(made, n_options, options);
    if (code && made && !log_size(made, &n)) {
        free(p->log);
        p->log = calloc(1, n + 1);
        if (!p->log) abort();
        get_log(made, p->log);
    }
    if (made) destroy(&made);
    return code;
}

/* --- what OpenCL says --- */

/* The source with the other dialect. NULL: it does not begin with CUDA's. */
static char *swap_dialect(const char *source)
{
    static const char begin[] = "#line 1 \"dialect_cuda.h\"\n", end[] = "#line 1 \"dialect.h\"\n";
    const char *rest = strstr(source, end), *dialect = NULL;
    for (const gpu_text *t = gpu_texts; t->name; t++)
        if (!strcmp(t->name, "dialect_opencl.h")) dialect = t->text;
    if (strncmp(source, begin, strlen(begin)) != 0 || !rest || !dialect) return NULL;
    text out = {0};
    add(&out, "#line 1 \"dialect_opencl.h\"\n%s%s", dialect, rest);
    return out.data;
}

/* "file:4:5: error: ..." becomes "file(4): error: ...". */
static char *turn_log(const char *log)
{
    text out = {0};
    char file[256], said[1024];
    int line, column;
    add(&out, "%s", "");
    for (const char *p = log; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *from = !strncmp(p, "error: ", 7) ? p + 7 : p;
        if (sscanf(from, "%255[^:\n]:%d:%d: %1023[^\n]", file, &line, &column, said) == 4)
            add(&out, "%s(%d): error: %s\n", file, line, said);
        else
            add(&out, "%.*s\n", (int)strcspn(p, "\n"), p);
    }
    return out.data;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (!strcmp(list[i], word)) return true;
    return false;
}

/* A letter: opencl.h. */
static char letter_of(cl_kernel kernel, cl_uint i)
{
    static const char *const of_4[] = {"int", "uint", "float", "i32", "u32", "value_f32", NULL};
    static const char *const of_8[] = {"long", "ulong", "i64", "u64", NULL};
    char type[96] = "";
    cl_uint qualifier = 0;
    cl.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(qualifier), &qualifier, NULL);
    cl.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(type), type, NULL);
    return qualifier == CL_KERNEL_ARG_ADDRESS_GLOBAL ? 'm'
           : is_one_of(type, of_4)                   ? '4'
           : is_one_of(type, of_8)                   ? '8'
                                                     : 's';
}

static bool describe_kernel(cl_program made, const char *name, text *out)
{
    cl_int code;
    cl_uint n = 0;
    size_t group[3] = {0};
    cl_ulong local = 0;
    cl_kernel kernel = cl.clCreateKernel(made, name, &code);
    if (code != CL_SUCCESS) return false;
    cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(n), &n, NULL);
    cl.clGetKernelWorkGroupInfo(kernel, cl.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(group), group, NULL);
    cl.clGetKernelWorkGroupInfo(kernel, cl.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local), &local, NULL);
    add(out, "kernel %s %zu %zu %zu %llu ", name, group[0], group[1], group[2], (unsigned long long)local);
    for (cl_uint i = 0; i < n; i++) {
        const char letter = letter_of(kernel, i);
        add(out, "%c", letter);
        i += letter == 'm'; /* and where in the memory */
    }
    add(out, "\n");
    cl.clReleaseKernel(kernel);
    return true;
}

static bool describe_kernels(cl_program made, text *out)
{
    size_t n = 0;
    bool is_well = cl.clGetProgramInfo(made, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &n) == CL_SUCCESS;
    char *names = calloc(1, n + 1), *rest = NULL;
    if (!names) abort();
    if (is_well) cl.clGetProgramInfo(made, CL_PROGRAM_KERNEL_NAMES, n, names, NULL);
    for (char *name = strtok_r(names, ";", &rest); name && is_well; name = strtok_r(NULL, ";", &rest))
        is_well = describe_kernel(made, name, out);
    free(names);
    return is_well;
}

static int build(program *p, int sm, const char *source)
{
    cl_int code;
    size_t n = 0;
    cl_program made = cl.clCreateProgramWithSource(cl.context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS) return CREATION_FAILURE;
    code = cl.clBuildProgram(made, 1, &cl.device, PLAY_OPTIONS " -cl-kernel-arg-info", NULL, NULL);
    if (code != CL_SUCCESS) {
        cl.clGetProgramBuildInfo(made, cl.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
        char *log = calloc(1, n + 1);
        if (!log) abort();
        cl.clGetProgramBuildInfo(made, cl.device, CL_PROGRAM_BUILD_LOG, n, log, NULL);
        free(p->log);
        p->log = turn_log(log);
        free(log);
    } else {
        text image = {0};
        add(&image, PLAY_IMAGE "sm %d\nbytes %zu\n", sm, strlen(source));
        if (!describe_kernels(made, &image)) code = CL_OUT_OF_RESOURCES;
        add(&image, "\n%s", source);
        p->image = image.data;
        p->n_image = image.n + 1;
    }
    cl.clReleaseProgram(made);
    return code == CL_SUCCESS ? WELL : COMPILATION;
}

/* --- the calls --- */

int nvrtcVersion(int *major, int *minor)
{
    const char *played = getenv("STOKER_PLAY_COMPILER"); /* 13000 */
    int version = played ? atoi(played) : 13000;
    *major = version / 1000;
    *minor = version % 1000 / 10;
    return WELL;
}

int nvrtcCreateProgram(program **out, const char *source, const char *name, int n_headers, const char *const *headers,
                       const char *const *names)
{
    (void)name, (void)headers, (void)names;
    if (n_headers != 0) return INVALID_INPUT;
    *out = calloc(1, sizeof(program));
    if (!*out) abort();
    (*out)->source = strdup(source);
    (*out)->log = strdup("");
    return WELL;
}

int nvrtcDestroyProgram(program **out)
{
    if (!out || !*out) return INVALID_PROGRAM;
    free((*out)->source);
    free((*out)->log);
    free((*out)->image);
    free(*out);
    *out = NULL;
    return WELL;
}

/* The chips that NVRTC 13.0 knows. */
static bool knows(int sm)
{
    static const int known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i] == sm) return true;
    return false;
}

static int refuse_option(program *p, const char *option)
{
    free(p->log);
    if (asprintf(&p->log, "nvrtc: error: invalid value for %s\n", option) < 0) abort();
    return INVALID_OPTION;
}

int nvrtcCompileProgram(program *p, int n_options, const char *const *options)
{
    static const char *const others[] = {"--std=c++17", "--disable-warnings", NULL};
    int sm = 75;
    for (int i = 0; i < n_options; i++) {
        int n = 0;
        if (sscanf(options[i], "--gpu-architecture=sm_%d%n", &sm, &n) == 1 && !options[i][n]) {
            if (!knows(sm)) return refuse_option(p, "--gpu-architecture (-arch)");
        } else if (!is_one_of(options[i], others)) {
            return refuse_option(p, options[i]);
        }
    }
    int code = ask_real(p, n_options, options);
    char *source = swap_dialect(p->source);
    if (!code && (!source || !open_opencl())) {
        free(p->log);
        if (asprintf(&p->log, "error: played: %s\n",
                     source ? no_opencl : "the source does not begin with the dialect") < 0)
            abort();
        code = COMPILATION;
    }
    if (!code) code = build(p, sm, source);
    free(source);
    return code;
}

int nvrtcGetProgramLogSize(program *p, size_t *out)
{
    *out = strlen(p->log) + 1;
    return WELL;
}

int nvrtcGetProgramLog(program *p, char *out)
{
    memcpy(out, p->log, strlen(p->log) + 1);
    return WELL;
}

int nvrtcGetCUBINSize(program *p, size_t *out)
{
    *out = p->n_image;
    return p->image ? WELL : INVALID_PROGRAM;
}

int nvrtcGetCUBIN(program *p, char *out)
{
    if (!p->image) return INVALID_PROGRAM;
    memcpy(out, p->image, p->n_image);
    return WELL;
}

/* A program for a chip itself has none. */
int nvrtcGetPTXSize(program *p, size_t *out)
{
    (void)p;
    *out = 0;
    return WELL;
}

int nvrtcGetPTX(program *p, char *out)
{
    (void)p, (void)out;
    return INVALID_PROGRAM;
}

const char *nvrtcGetErrorString(int code)
{
    return code == WELL ? "NVRTC_SUCCESS" : code == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
