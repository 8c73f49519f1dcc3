/* The cpu device: its table of kernels and its functions. */
#include "device/cpu/cpu.h"
#include "device/cpu/amx/amx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/align.h"
#include "device/cpu/measured.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/sgemm_memory.h"
#include "device/cpu/tuned/tuned.h"
#include "device/queue.h"

/* One slot for each op; those of leaves and marks are empty. */
static const stk_cpu_maker makers[STK_N_OPS] = {
#define X(name) [STK_OP_##name] = stk_cpu_##name##_kernel,
    STK_KERNEL_OP_LIST(X)
#undef X
};

stk_cpu_maker stk_cpu_maker_of(stk_op op)
{
    return (unsigned)op < STK_N_OPS ? makers[op] : NULL;
}

const char *stk_cpu_own_impl(stk_isa isa)
{
    static const char *const names[STK_N_ISAS] = {"own baseline", "own avx2", "own avx512"};
    return names[isa];
}

stk_status stk_cpu_unsupported(const stk_op_call *call)
{
    stk_text dtypes = {0};
    for (int i = 0; i < call->n_in; i++)
        stk_text_add(&dtypes, i ? ", %s" : " of %s", stk_dtype_name(call->in[i].dtype));
    if (call->n_out) stk_text_add(&dtypes, " to %s", stk_dtype_name(call->out[0].dtype));
    stk_status status = stk_fail(STK_UNSUPPORTED, "the cpu device has no kernel for '%s'%s", stk_op_name(call->op),
                                 stk_text_get(&dtypes));
    stk_text_free(&dtypes);
    return status;
}

stk_status stk_cpu_new_state(size_t bytes, stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out)
{
    out->state = calloc(1, bytes);
    if (!out->state) return stk_fail_memory(bytes);
    out->run = run;
    return STK_OK;
}

/* --- the device --- */

static void close_cpu(stk_device *base)
{
    stk_cpu_device *device = (stk_cpu_device *)base;
    stk_measured_free(device->measured);
    stk_onednn_close(device->onednn);
    stk_cpu_pool_free(device->pool);
    free(device);
}

static stk_status probe(void)
{
    return STK_OK;
}

static stk_status open_cpu(const stk_device_config *config, stk_device **out)
{
    stk_status status = STK_OK;
    stk_cpu_device *device = calloc(1, sizeof(*device));
    if (!device) return stk_fail_memory(sizeof(*device));
    device->base.class = &stk_device_class_cpu;
    int n_threads = config->n_threads > 0 ? config->n_threads : stk_cpu_default_threads();
    device->base.n_threads = n_threads < STK_CPU_MOST_THREADS ? n_threads : STK_CPU_MOST_THREADS;
    device->base.default_kernels = config->default_kernels;
    device->isa = stk_isa_choose();
    STK_TRY(stk_onednn_open(&device->onednn));
    if (device->base.n_threads > 1) device->base.apart_bytes = STK_CPU_GAP;
    stk_numa_plan_here(device->base.n_threads, &device->numa);
    STK_TRY(stk_cpu_pool_new(device->base.n_threads, &device->numa, &device->pool));
    *out = &device->base;
    return STK_OK;
done:
    close_cpu(&device->base);
    return status;
}

/* From this size on, memory comes in huge pages of its own, and in small ones behind the last whole huge one: rounding
 * all of BERT-base's tensors up to huge pages took 300 MiB more. */
enum { HUGE_PAGE = 2 << 20, SMALL_PAGE = 4096 };

static size_t mapped_bytes(size_t bytes)
{
    return stk_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

typedef struct touch_task {
    char *p;
    size_t bytes;
} touch_task;

static void touch(const void *p, int i_thread, int n_threads)
{
    const touch_task *task = p;
    int64_t begin, end;
    stk_cpu_share((int64_t)task->bytes, HUGE_PAGE, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i += SMALL_PAGE)
        ((volatile char *)task->p)[i] = 0;
}

/* Maps a huge page more than needed, so that a whole number of aligned ones can be cut out of it. */
static stk_status map_memory(const stk_cpu_device *device, size_t bytes, void **out)
{
    size_t n = mapped_bytes(bytes);
    char *p =
        n < bytes ? MAP_FAILED : mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return stk_fail_memory(bytes);
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(p, before);
    if (before != HUGE_PAGE) munmap(p + before + n, HUGE_PAGE - before);
    p += before;
    /* Where the kernel refuses, small pages do. */
    (void)madvise(p, n, MADV_HUGEPAGE);
    stk_numa_bind_memory(&device->numa, p, n);
    stk_cpu_pool *before_pool = stk_cpu_pool_enter(device->pool);
    stk_cpu_parallel(device->base.n_threads, touch, &(touch_task){p, n});
    stk_cpu_pool_enter(before_pool);
    *out = p;
    return STK_OK;
}

static stk_status alloc_memory(stk_device *device, size_t bytes, stk_memory_kind kind, void **out)
{
    (void)kind; /* All of it is zeroed. */
    *out = NULL;
    if (bytes >= HUGE_PAGE) return map_memory((const stk_cpu_device *)device, bytes, out);
    size_t rounded = (bytes / 64 + 1) * 64;
    *out = aligned_alloc(64, rounded);
    if (!*out) return stk_fail_memory(bytes);
    memset(*out, 0, rounded);
    return STK_OK;
}

static void free_memory(stk_device *device, void *p, size_t bytes)
{
    (void)device;
    if (p && bytes >= HUGE_PAGE)
        munmap(p, mapped_bytes(bytes));
    else
        free(p);
}

static stk_status find_kernel(stk_device *base, const stk_op_call *call, stk_kernel *out)
{
    const stk_cpu_device *device = (const stk_cpu_device *)base;
    memset(out, 0, sizeof(*out));
    stk_cpu_maker make = stk_cpu_maker_of(call->op);
    if (!make) return stk_fail(STK_UNSUPPORTED, "the cpu device has no kernel for '%s'", stk_op_name(call->op));
    out->impl = stk_cpu_own_impl(device->isa);
    stk_sgemm_unsettle_thread();
    /* Primitives are laid out for the thread count that they will run with. */
    int before = stk_cpu_swap_thread_count(base->n_threads);
    stk_status status = make(device, call, out);
    stk_cpu_swap_thread_count(before);
    if (status != STK_OK) stk_kernel_free(out);
    return status;
}

static void run_parallel(const stk_device *device, int n_parts, stk_cpu_body body, const void *task)
{
    stk_cpu_pool *before = stk_cpu_pool_enter(((const stk_cpu_device *)device)->pool);
    stk_cpu_parallel(n_parts, body, task);
    stk_cpu_pool_enter(before);
}

static stk_status run_entries(stk_device *device, const stk_entry *entries, int n_entries, int *i_failed)
{
    stk_status status = STK_OK;
    int before = stk_cpu_swap_thread_count(device->n_threads);
    stk_cpu_pool *before_pool = stk_cpu_pool_enter(((const stk_cpu_device *)device)->pool);
    for (int i = 0; i < n_entries && status == STK_OK; i++) {
        status = entries[i].kernel->run(entries[i].kernel->state, &entries[i].args);
        if (status != STK_OK) *i_failed = i;
    }
    stk_cpu_pool_enter(before_pool);
    stk_cpu_swap_thread_count(before);
    return status;
}

/* --- choices that are measured --- */

/* Whether what was measured counts; then device->measured is there. */
static stk_status open_measured(stk_cpu_device *device, bool *counts)
{
    *counts = device->base.measuring != STK_MEASURES_NOTHING && stk_measured_wanted(device->isa);
    return *counts && !device->measured ? stk_measured_new(device, &device->measured) : STK_OK;
}

static stk_status expect(stk_device *base, const stk_op_call *call)
{
    stk_cpu_device *device = (stk_cpu_device *)base;
    bool counts;
    STK_RETURN_IF_ERROR(open_measured(device, &counts));
    return counts && base->measuring == STK_MEASURES ? stk_measured_expect(device->measured, call) : STK_OK;
}

static stk_status prepare(stk_device *base, const volatile int *stop)
{
    stk_cpu_device *device = (stk_cpu_device *)base;
    if (base->measuring != STK_MEASURES || !device->measured) return STK_OK;
    return stk_measured_settle(device->measured, device, stop);
}

static void print_choices(const stk_device *base, stk_text *out)
{
    const stk_cpu_device *device = (const stk_cpu_device *)base;
    if (device->measured) stk_measured_print(device->measured, out);
}

static stk_status take_choices(stk_device *base, const char *text)
{
    stk_cpu_device *device = (stk_cpu_device *)base;
    bool counts;
    STK_RETURN_IF_ERROR(open_measured(device, &counts));
    if (!counts) return stk_fail(STK_MISMATCH, "they were measured, and here none are");
    return stk_measured_take(device->measured, text);
}

void stk_cpu_describe(const stk_cpu_device *device, stk_text *out)
{
    const stk_amx_fns *amx = stk_amx_of(device->isa);
    const char *bf16 = amx == &stk_amx_model           ? " with a model of AMX"
                       : amx                           ? " with bf16 and AMX"
                       : stk_isa_has_bf16(device->isa) ? " with bf16"
                                                       : "";
    int n = device->base.n_threads;
    stk_text_add(out, "%d thread%s, %s%s, oneDNN %s", n, n == 1 ? "" : "s", stk_isa_name(device->isa), bf16,
                 stk_onednn_version(device->onednn));
}

static void describe(const stk_device *base, stk_text *out)
{
    const stk_cpu_device *device = (const stk_cpu_device *)base;
    const stk_tuned_table *table = stk_tuned_of(device->isa);
    int n = 0, n_other = 0;
    stk_cpu_describe(device, out);
    if (device->measured) stk_measured_count(device->measured, &n, &n_other);
    if (n > 0)
        stk_text_add(out, ", kernels measured: %d of %d not by rule", n_other, n);
    else if (base->default_kernels)
        stk_text_add(out, ", kernels by rule");
    else if (table)
        stk_text_add(out, ", kernels by table %s", table->name);
    else if (stk_measured_wanted(device->isa))
        stk_text_add(out, ", kernels measured as a run begins");
    if (device->numa.n_nodes > 1)
        stk_text_add(out, device->numa.home < 0 ? ", on %d memory nodes" : ", on one of %d memory nodes",
                     device->numa.n_nodes);
}

static const char *explain_slow(const stk_device *device, stk_dtype dtype)
{
    if (dtype == STK_BF16 && stk_isa_has_bf16(((const stk_cpu_device *)device)->isa)) return NULL;
    if (dtype == STK_F16)
        return "f16 on a processor saves memory, not time: numbers are stored in 16 bits and computed in f32; bf16 "
               "does the same and needs no loss scale";
    return "bf16 on this processor saves memory, not time: numbers are stored in 16 bits and computed in f32, which "
           "may be slower than f32 alone";
}

const stk_device_class stk_device_class_cpu = {
    .name = "cpu",
    .about = "this machine's processor: oneDNN and own kernels",
    .on_host = true,
    .caps = &stk_device_caps_all,
    .probe = probe,
    .open = open_cpu,
    .close = close_cpu,
    .alloc = alloc_memory,
    .free = free_memory,
    .kernel = find_kernel,
    .expect = expect,
    .prepare = prepare,
    .print_choices = print_choices,
    .take_choices = take_choices,
    .queues = &stk_queue_class_host,
    .run = run_entries,
    .parallel = run_parallel,
    .slow_dtype = explain_slow,
    .describe = describe,
};
