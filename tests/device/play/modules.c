/* Modules: images of the played NVRTC, whose source OpenCL builds; and launches of their kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device/play/play.h"

extern play_opencl play_cl;

/* --- programs, which stay until the process ends: the same source is built once --- */

static struct {
    char *source;
    cl_program program;
} * programs;
static size_t n_programs;

static cl_program build(const char *source)
{
    cl_int code;
    for (size_t i = 0; i < n_programs; i++)
        if (!strcmp(programs[i].source, source)) return programs[i].program;
    cl_program program = play_cl.clCreateProgramWithSource(play_cl.context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS) return NULL;
    if (play_cl.clBuildProgram(program, 1, &play_cl.device, PLAY_OPTIONS, NULL, NULL) != CL_SUCCESS) {
        play_cl.clReleaseProgram(program);
        return NULL;
    }
    programs = realloc(programs, (n_programs + 1) * sizeof(*programs));
    if (!programs) abort();
    programs[n_programs].source = strdup(source);
    programs[n_programs++].program = program;
    return program;
}

/* --- images --- */

void play_release_module(play_module *module)
{
    if (--module->n_references > 0) return;
    for (int i = 0; i < module->n_functions; i++)
        if (module->function[i].kernel) play_cl.clReleaseKernel(module->function[i].kernel);
    free(module->function);
    free(module);
}

static int read_kernel(const char *line, play_module *module)
{
    play_function *f = &module->function[module->n_functions];
    *f = (play_function){.module = module};
    if (sscanf(line, "kernel %95s %u %u %u %d %71s", f->name, &f->group[0], &f->group[1], &f->group[2], &f->local_bytes,
               f->arguments) < 5)
        return INVALID_IMAGE;
    module->n_functions++;
    return WELL;
}

/* The lines of the image; *source is what is behind them. */
static int read_image(const char *image, play_module *module, const char **source)
{
    int sm = 0;
    const char *line = image + strlen(PLAY_IMAGE);
    for (; *line && *line != '\n'; line += strcspn(line, "\n") + 1) {
        int code = WELL;
        sscanf(line, "sm %d", &sm);
        if (!strncmp(line, "kernel ", 7)) {
            module->function = realloc(module->function, (size_t)(module->n_functions + 1) * sizeof(play_function));
            if (!module->function) abort();
            code = read_kernel(line, module);
        }
        if (code) return code;
    }
    *source = line + 1;
    /* What is made for a chip runs on that one and on later ones of the same major number. */
    return sm / 10 == play_set.capability / 10 && sm <= play_set.capability ? WELL : NO_BINARY_FOR_GPU;
}

int cuModuleLoadDataEx(handle *out, const void *image, unsigned n_options, const int *options, void *const *values)
{
    int code = play_enter(CALL_cuModuleLoadDataEx);
    if (code) return code;
    (void)n_options, (void)options, (void)values;
    const char *source = NULL;
    if (strncmp(image, PLAY_IMAGE, strlen(PLAY_IMAGE)) != 0) return play_leave(INVALID_IMAGE);
    play_module *module = calloc(1, sizeof(*module));
    if (!module) abort();
    module->n_references = 1;
    code = read_image(image, module, &source);
    if (!code) module->program = build(source);
    if (!code && !module->program) code = INVALID_IMAGE;
    if (code) {
        play_release_module(module);
        return play_leave(code);
    }
    *out = play_open_handle(A_MODULE, module, play_current());
    return play_leave(WELL);
}

void play_close_module(void *object)
{
    play_module *module = object;
    module->is_unloaded = true;
    for (int i = 0; i < module->n_functions; i++)
        if (module->function[i].self) play_close_handle(module->function[i].self);
    play_release_module(module);
}

int cuModuleUnload(handle h)
{
    int code = play_enter(CALL_cuModuleUnload);
    if (code) return code;
    play_module *module = play_find(A_MODULE, h);
    if (!module) return play_leave(INVALID_HANDLE);
    code = play_finish_all(play_current(), "cuModuleUnload");
    play_close_handle(h);
    play_close_module(module);
    return play_leave(code);
}

int cuModuleGetFunction(handle *out, handle h, const char *name)
{
    int code = play_enter(CALL_cuModuleGetFunction);
    if (code) return code;
    play_module *module = play_find(A_MODULE, h);
    if (!module) return play_leave(INVALID_HANDLE);
    for (int i = 0; i < module->n_functions; i++) {
        play_function *f = &module->function[i];
        cl_int failed = CL_SUCCESS;
        if (strcmp(f->name, name) != 0) continue;
        if (!f->kernel) f->kernel = play_cl.clCreateKernel(module->program, name, &failed);
        if (failed != CL_SUCCESS) break;
        if (!f->self) f->self = play_open_handle(A_FUNCTION, f, play_current());
        *out = f->self;
        return play_leave(WELL);
    }
    return play_leave(NOT_FOUND);
}

/* --- functions --- */

static int most_group(const play_function *f)
{
    return (int)(f->group[0] * f->group[1] * f->group[2]);
}

int cuFuncGetAttribute(int *out, int what, handle function)
{
    int code = play_enter(CALL_cuFuncGetAttribute);
    if (code) return code;
    const play_function *f = play_find(A_FUNCTION, function);
    if (!f) return play_leave(INVALID_HANDLE);
    if (what != 0 && what != 1 && what != 6) play_misuse("cuFuncGetAttribute: attribute %d is not played", what);
    *out = what == 0 ? most_group(f) : what == 1 ? f->local_bytes : play_set.capability;
    return play_leave(WELL);
}

int cuFuncSetAttribute(handle function, int what, int value)
{
    int code = play_enter(CALL_cuFuncSetAttribute);
    if (code) return code;
    if (!play_find(A_FUNCTION, function)) return play_leave(INVALID_HANDLE);
    return play_leave((what == 8 && value >= 0 && value <= 227 << 10) || what == 9 ? WELL : INVALID_VALUE);
}

/* --- launches --- */

static size_t size_of(char kind)
{
    return kind == 'm' ? sizeof(address) : kind == 's' ? PLAY_STRUCT_BYTES : (size_t)(kind - '0');
}

/* The struct's size is not known: it is copied with what lies behind it, as far as that can be read. */
static void copy_struct(char *to, const void *from)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), first = page - (uintptr_t)from % page;
    struct iovec local = {to, PLAY_STRUCT_BYTES};
    struct iovec remote[2] = {{(void *)from, first < PLAY_STRUCT_BYTES ? first : PLAY_STRUCT_BYTES}};
    remote[1].iov_base = (char *)from + remote[0].iov_len;
    remote[1].iov_len = PLAY_STRUCT_BYTES - remote[0].iov_len;
    if (process_vm_readv(getpid(), &local, 1, remote, remote[1].iov_len ? 2 : 1, 0) <= 0)
        memcpy(to, from, remote[0].iov_len);
}

static char *copy_arguments(const play_function *f, void *const *arguments)
{
    size_t n = 1;
    for (const char *kind = f->arguments; *kind; kind++)
        n += (size_of(*kind) + 7) / 8 * 8;
    char *values = calloc(1, n), *to = values;
    if (!values) abort();
    for (int i = 0; f->arguments[i]; i++) {
        const size_t bytes = size_of(f->arguments[i]);
        if (f->arguments[i] == 's')
            copy_struct(to, arguments[i]);
        else
            memcpy(to, arguments[i], bytes);
        to += (bytes + 7) / 8 * 8;
    }
    return values;
}

/* As much as a group has; a stand-in also keeps there what fragments have in registers. */
static long long most_shared(const play_function *f)
{
    return strstr(f->name, "_fragments_") ? 96 << 10 : 48 << 10;
}

/* What a chip refuses. A group of another shape than the kernel's is none of its business, and wrong all the same. */
static int check_shape(const play_function *f, const unsigned *n_groups, const unsigned *group, unsigned shared_bytes)
{
    const unsigned long long n = (unsigned long long)group[0] * group[1] * group[2];
    if (n == 0 || n > 1024 || group[2] > 64) return INVALID_VALUE;
    if (!n_groups[0] || !n_groups[1] || !n_groups[2]) return INVALID_VALUE;
    if (n_groups[0] > 2147483647u || n_groups[1] > 65535 || n_groups[2] > 65535) return INVALID_VALUE;
    if (n > (unsigned long long)most_group(f) || f->local_bytes + (long long)shared_bytes > most_shared(f))
        return LAUNCH_OUT_OF_RESOURCES;
    if (memcmp(f->group, group, sizeof(f->group)) != 0)
        play_misuse("kernel '%s' is launched in groups of %u x %u x %u", f->name, group[0], group[1], group[2]);
    if (shared_bytes) play_misuse("kernel '%s': shared memory of a launch is not played", f->name);
    return WELL;
}

int cuLaunchKernel(handle function, unsigned nx, unsigned ny, unsigned nz, unsigned x, unsigned y, unsigned z,
                   unsigned shared_bytes, handle stream, void *const *arguments, void *const *extra)
{
    int code = play_enter(CALL_cuLaunchKernel);
    if (code) return code;
    play_function *f = play_find(A_FUNCTION, function);
    play_stream *s = play_stream_of(stream);
    const unsigned n_groups[3] = {nx, ny, nz}, group[3] = {x, y, z};
    if (!f || !s) return play_leave(INVALID_HANDLE);
    code = check_shape(f, n_groups, group, shared_bytes);
    if (!code && (extra || (!arguments && *f->arguments))) code = INVALID_VALUE;
    if (code) return play_leave(code);
    play_deed deed = {.what = DO_KERNEL, .function = f, .values = copy_arguments(f, arguments)};
    memcpy(deed.n_groups, n_groups, sizeof(n_groups));
    memcpy(deed.group, group, sizeof(group));
    f->module->n_references++;
    return play_leave(
        play_enqueue(s, &deed, !s->capture && play_hangs(CALL_cuLaunchKernel, play_count.calls[CALL_cuLaunchKernel])));
}
