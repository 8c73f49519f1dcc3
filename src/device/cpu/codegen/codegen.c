/* All groups of a program become one source text, and its functions the kernels' code. See codegen.h. */
#include "device/cpu/codegen/codegen.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cpu/program_reduce.h"

/* As the interpreter's loops are built (src/CMakeLists.txt), and tuned for this very processor. */
#define COMMON_FLAGS                                                                                                   \
    "-shared -fPIC -O3 -std=gnu11 -w -ffp-contract=off -fno-trapping-math -fno-math-errno -fopenmp-simd"
#ifdef STK_ISA_X86
static const char *const flags_of[STK_N_ISAS] = {
    [STK_ISA_BASELINE] = COMMON_FLAGS " -mtune=native",
    [STK_ISA_AVX2] = COMMON_FLAGS " -mtune=native " STK_FLAGS_AVX2,
    [STK_ISA_AVX512] = COMMON_FLAGS " -mtune=native " STK_FLAGS_AVX512,
};
#else
static const char *const flags_of[STK_N_ISAS] = {COMMON_FLAGS};
#endif

static const char *const impl_of[STK_N_ISAS] = {"compiled baseline", "compiled avx2", "compiled avx512"};

static const char typedefs[] =
    "typedef void (*draw_fn)(const void *context, int i, int64_t first, int n, int32_t *out);\n\n";

/* A kernel that gets code, by the hash of its function's text; 0: interpreted. */
typedef struct group {
    stk_element_program *program;
    stk_kernel *kernel;
    uint64_t hash;
} group;

typedef struct code_writer {
    stk_isa isa;
    group *group;
    int n_groups, n_emitted;
    stk_text source;
} code_writer;

static bool is_written(const code_writer *w, uint64_t hash)
{
    for (int i = 0; i < w->n_groups; i++)
        if (w->group[i].hash == hash) return true;
    return false;
}

/* The interpreter's loops for vectors round to bf16 faster than what compilers make of them (bench_codegen). */
static bool is_better_interpreted(stk_isa isa, const stk_element_program *p)
{
    bool has_bf16 = false;
    for (int32_t i = 0; i < p->n_in; i++)
        has_bf16 |= p->in_dtype[i] == STK_BF16;
    for (int32_t i = 0; i < p->n_lowered; i++)
        has_bf16 |= p->lowered[i].dtype == STK_BF16;
    return isa != STK_ISA_BASELINE && has_bf16;
}

static void add_group(code_writer *w, stk_kernel *kernel, int64_t least_elements)
{
    stk_element_program *program = kernel->state;
    group added = {program, kernel, 0};
    stk_text text = {0};
    if (!is_better_interpreted(w->isa, program) && stk_code_can_emit(program, least_elements)) {
        stk_code_emit(program, w->isa, &text);
        added.hash = stk_hash64(stk_text_get(&text), text.n, 1);
        if (!is_written(w, added.hash)) {
            stk_text_add(&w->source, "void f%016" PRIx64, added.hash);
            stk_text_add_bytes(&w->source, stk_text_get(&text), text.n);
        }
        w->source.failed |= text.failed;
        w->n_emitted++;
        stk_text_free(&text);
    }
    w->group[w->n_groups++] = added;
}

static stk_status find_function(const stk_code_library *library, uint64_t hash, stk_program_code *out)
{
    char name[24];
    snprintf(name, sizeof(name), "f%016" PRIx64, hash);
    void *symbol = dlsym(library->handle, name);
    if (!symbol) return stk_fail(STK_INTERNAL, "generated code has no '%s'", name);
    memcpy(out, &symbol, sizeof(*out)); /* POSIX: a pointer to data holds one to a function */
    return STK_OK;
}

/* All or none: a group with code needs no scratch, but for what it reduces. */
static stk_status connect(const code_writer *w, const stk_code_library *library)
{
    stk_program_code code;
    for (int i = 0; i < w->n_groups; i++)
        if (w->group[i].hash) STK_RETURN_IF_ERROR(find_function(library, w->group[i].hash, &code));
    for (int i = 0; i < w->n_groups; i++) {
        if (!w->group[i].hash) continue;
        STK_RETURN_IF_ERROR(find_function(library, w->group[i].hash, &w->group[i].program->code));
        if (!w->group[i].program->reduce) w->group[i].kernel->scratch_bytes = 0;
        w->group[i].kernel->impl = impl_of[w->isa];
    }
    return STK_OK;
}

static stk_status compile(stk_cpu_device *device, const code_writer *w, int64_t *compile_ns)
{
    stk_code_library *library;
    STK_RETURN_IF_ERROR(stk_text_status(&w->source));
    STK_RETURN_IF_ERROR(stk_code_open(stk_text_get(&w->source), flags_of[w->isa], &library, compile_ns));
    /* Kept until the device is closed, also where a function is missing. */
    library->next = device->code;
    device->code = library;
    return connect(w, library);
}

static bool is_group(const stk_kernel *kernel)
{
    return (kernel->run == stk_program_interpret || kernel->run == stk_program_reduce_run) &&
           ((const stk_element_program *)kernel->state)->is_group;
}

stk_status stk_code_make(stk_cpu_device *device, int64_t least_elements, stk_kernel *kernels, int n_kernels,
                         stk_codegen_report *report)
{
    stk_status status = STK_OK;
    code_writer w = {.isa = device->isa, .group = calloc((size_t)n_kernels + 1, sizeof(group))};
    *report = (stk_codegen_report){0};
    if (!w.group) return stk_fail_memory((size_t)n_kernels * sizeof(group));
    stk_text_add(&w.source, "%s%s", stk_code_header, typedefs);
    for (int i = 0; i < n_kernels; i++)
        if (is_group(&kernels[i])) add_group(&w, &kernels[i], least_elements);
    report->n_interpreted = w.n_groups;
    if (w.n_emitted == 0) goto done;
    STK_TRY(compile(device, &w, &report->compile_ns));
    report->n_interpreted -= w.n_emitted;
    *(report->compile_ns ? &report->n_compiled : &report->n_cached) = w.n_emitted;
done:
    stk_text_free(&w.source);
    free(w.group);
    return status;
}
