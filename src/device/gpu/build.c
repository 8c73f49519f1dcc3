/* Programs: all units that are wanted when the first kernel is launched are built together, as few programs, which are
 * kept on disk under a hash of source, driver and chip, and read back by the next process. Where the driver compiles on
 * any thread, each core has a program of its own. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread.h"
#include "device/gpu/gpu.h"
#include "device/gpu/texts.h"
#include "device/kept.h"

/* Units of a program. PoCL goes through a whole program for each of its kernels, so that time would grow with the
 * square of their number. With few of them, cores end at about the same time. */
enum { MOST_UNITS = 12, MOST_UNITS_OF_A_CORE = 3, MOST_THREADS = 64 };

typedef struct program {
    gpu_unit *const *unit;
    int n_units;
    stk_text source;
    char name[64]; /* on disk: <driver>-<hash>; "": it is not to be kept */
    gpu_module *module;
    void *bytes; /* compiled, not loaded yet */
    size_t n_bytes;
    stk_status status; /* of compiling, and what is said of it */
    char complaint[1024];
} program;

typedef struct builder {
    gpu_device *device;
    program *program;
    int n;
    atomic_int next; /* to be compiled */
} builder;

/* --- what is built --- */

static int compare_units(const void *a, const void *b)
{
    const gpu_unit *x = *(gpu_unit *const *)a, *y = *(gpu_unit *const *)b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* All that are pending, in an order that depends on what they are alone. */
static stk_status list_pending(const gpu_device *device, gpu_unit ***out)
{
    int n = 0;
    gpu_unit **list = calloc((size_t)device->n_pending + 1, sizeof(gpu_unit *));
    if (!list) return stk_fail_memory((size_t)device->n_pending * sizeof(gpu_unit *));
    for (gpu_unit *u = device->units; u; u = u->next)
        if (!u->module) list[n++] = u;
    qsort(list, (size_t)n, sizeof(gpu_unit *), compare_units);
    *out = list;
    return STK_OK;
}

static void name_program(const gpu_device *device, program *p)
{
    const char *asked = getenv("STOKER_GPU_CACHE");
    /* PoCL keeps its own, and compiles all of a program a second time to give its bytes out. */
    if (!device->chip.is_gpu && !(asked && !strcmp(asked, "1"))) return;
    uint64_t key = stk_hash_text(stk_text_get(&p->source));
    key = stk_hash64(device->chip.name, strlen(device->chip.name), key);
    key = stk_hash64(device->chip.driver, strlen(device->chip.driver), key);
    snprintf(p->name, sizeof(p->name), "%s-%016llx", device->driver->name, (unsigned long long)key);
}

static stk_status write_source(const gpu_device *device, program *p)
{
    const char *driver_text = gpu_text_of(device->driver->dialect), *text = gpu_text_of("dialect.h");
    if (!driver_text || !text) return stk_fail(STK_INTERNAL, "there is no dialect '%s'", device->driver->dialect);
    stk_text_add(&p->source, "#line 1 \"%s\"\n%s#line 1 \"dialect.h\"\n%s", device->driver->dialect, driver_text, text);
    for (int i = 0; i < p->n_units; i++)
        stk_text_add(&p->source, "%s", p->unit[i]->text);
    STK_RETURN_IF_ERROR(stk_text_status(&p->source));
    name_program(device, p);
    return STK_OK;
}

/* --- from disk, or compiled --- */

static void read_program(const gpu_device *device, program *p)
{
    void *bytes;
    size_t n;
    if (!p->name[0] || !stk_kept_read("gpu", p->name, &bytes, &n, NULL)) return;
    if (device->driver->restore(device->context, bytes, n, &p->module) != STK_OK) p->module = NULL;
    free(bytes);
}

/* Of one thread; what they print of errors is each thread's own. */
static void compile_programs(void *arg)
{
    builder *b = arg;
    for (int i; (i = atomic_fetch_add(&b->next, 1)) < b->n;) {
        program *p = &b->program[i];
        if (p->module) continue;
        p->status = b->device->driver->compile(b->device->context, stk_text_get(&p->source), &p->bytes, &p->n_bytes);
        if (p->status != STK_OK) snprintf(p->complaint, sizeof(p->complaint), "%s", stk_error_text());
    }
}

/* This thread takes part; others that cannot be started are not missed. */
static void compile_all(builder *b)
{
    stk_thread thread[MOST_THREADS] = {0};
    int n = 0, most = stk_n_cores() < MOST_THREADS ? stk_n_cores() : MOST_THREADS;
    for (int i = 0; i < b->n; i++)
        n += !b->program[i].module;
    for (int i = 1; i < n && i < most; i++)
        (void)!stk_thread_start(&thread[i], "stk-compile", false, compile_programs, b);
    compile_programs(b);
    for (int i = 1; i < MOST_THREADS; i++)
        stk_thread_join(&thread[i]);
}

static stk_status load_program(const gpu_device *device, program *p)
{
    const gpu_driver *driver = device->driver;
    if (p->module) return STK_OK;
    if (driver->compile) {
        if (p->status != STK_OK) return stk_fail(p->status, "%s", p->complaint);
        STK_RETURN_IF_ERROR(driver->restore(device->context, p->bytes, p->n_bytes, &p->module));
    } else {
        STK_RETURN_IF_ERROR(driver->build(device->context, stk_text_get(&p->source), &p->module));
        if (p->name[0] && driver->save(p->module, &p->bytes, &p->n_bytes) != STK_OK) p->name[0] = '\0';
    }
    if (p->name[0]) stk_kept_write("gpu", p->name, p->bytes, p->n_bytes);
    return STK_OK;
}

/* --- all --- */

static void take_module(gpu_device *device, const program *p)
{
    device->module[device->n_modules++] = p->module;
    for (int i = 0; i < p->n_units; i++) {
        p->unit[i]->module = p->module;
        free(p->unit[i]->text);
        p->unit[i]->text = NULL;
    }
    device->n_pending -= p->n_units;
}

static stk_status make_room(gpu_device *device, int n)
{
    const size_t bytes = (size_t)(device->n_modules + n) * sizeof(gpu_module *);
    gpu_module **grown = realloc(device->module, bytes);
    if (!grown) return stk_fail_memory(bytes);
    device->module = grown;
    return STK_OK;
}

static void free_programs(const builder *b)
{
    for (int i = 0; i < b->n && b->program; i++) {
        stk_text_free(&b->program[i].source);
        free(b->program[i].bytes);
    }
    free(b->program);
}

stk_status gpu_build(gpu_device *device)
{
    const int each = device->driver->compile ? MOST_UNITS_OF_A_CORE : MOST_UNITS, n = device->n_pending;
    builder b = {.device = device, .n = (n + each - 1) / each};
    gpu_unit **list = NULL;
    stk_status status = STK_OK;
    if (n == 0) return STK_OK;
    b.program = calloc((size_t)b.n, sizeof(*b.program));
    if (!b.program) STK_TRY(stk_fail_memory((size_t)b.n * sizeof(*b.program)));
    STK_TRY(list_pending(device, &list));
    STK_TRY(make_room(device, b.n));
    for (int i = 0; i < b.n; i++) {
        program *p = &b.program[i];
        *p = (program){.unit = list + i * each, .n_units = n - i * each < each ? n - i * each : each};
        STK_TRY(write_source(device, p));
        read_program(device, p);
    }
    if (device->driver->compile) compile_all(&b);
    for (int i = 0; i < b.n; i++) {
        STK_TRY(load_program(device, &b.program[i]));
        take_module(device, &b.program[i]);
    }
done:
    free_programs(&b);
    free(list);
    return status;
}
