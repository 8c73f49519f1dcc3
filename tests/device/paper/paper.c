/* The device and its driver. See paper.h. */
#include "device/paper/paper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/paper/nvrtc.h"
#include "device/paper/usage.h"

const paper_chip paper_chips[] = {
    [PAPER_A100] = {"A100", 80, 108},
    [PAPER_H100] = {"H100", 90, 132},
    [PAPER_B200] = {"B200", 100, 148},
    [PAPER_TEXT] = {"OpenCL's text", 0, 1},
};

struct gpu_context {
    const paper_chip *chip;
    uintptr_t next; /* address */
};

/* Kept programs are of this layout and these options of the compiler. */
enum { LAYOUT = 3 };

static const char *folder;

void paper_set_folder(const char *path)
{
    folder = path;
}

/* --- the chip and its memory --- */

static int count(void)
{
    return PAPER_N_CHIPS;
}

static stk_status load(void)
{
    return STK_OK;
}

static stk_status open_chip(int number, gpu_chip *chip, gpu_context **out)
{
    if (number >= PAPER_N_CHIPS) return stk_fail(STK_NO_DEVICE, "there are %d chips on paper", PAPER_N_CHIPS);
    const paper_chip *from = &paper_chips[number];
    if (from->arch) STK_RETURN_IF_ERROR(nvrtc_load());
    gpu_context *context = malloc(sizeof(*context));
    if (!context) return stk_fail_memory(sizeof(*context));
    *context = (gpu_context){from, (uintptr_t)1 << 44};
    *chip = (gpu_chip){.is_gpu = true,
                       .n_units = from->n_units,
                       .local_bytes = 48 << 10,
                       .most_group = 1024,
                       .most_alloc_bytes = (size_t)80 << 30,
                       .total_bytes = (size_t)80 << 30,
                       .has_fragments = from->arch >= 80,
                       .command_list = true};
    snprintf(chip->name, sizeof(chip->name), "%s (sm_%d)", from->name, from->arch);
    snprintf(chip->driver, sizeof(chip->driver), "%s, layout %d", nvrtc_version(), LAYOUT);
    *out = context;
    return STK_OK;
}

static void close_chip(gpu_context *context)
{
    free(context);
}

static stk_status alloc(gpu_context *context, size_t bytes, void **out)
{
    *out = (void *)context->next;
    context->next += (bytes + 255) / 256 * 256;
    return STK_OK;
}

static void free_nothing(gpu_context *context, void *p)
{
    (void)context;
    (void)p;
}

static stk_status alloc_host(gpu_context *context, size_t bytes, void **out)
{
    (void)context;
    size_t room = (bytes + 63) / 64 * 64;
    *out = aligned_alloc(64, room);
    if (!*out) return stk_fail_memory(room);
    memset(*out, 0, room);
    return STK_OK;
}

static void free_host(gpu_context *context, void *p)
{
    (void)context;
    free(p);
}

static void tell_memory(const gpu_context *context, stk_device_memory *out)
{
    (void)context;
    *out = (stk_device_memory){0};
}

/* --- programs --- */

static stk_status build(gpu_context *context, const char *source, gpu_module **out)
{
    stk_text ptx = {0}, report = {0};
    stk_status status = STK_OK;
    gpu_module *module = calloc(1, sizeof(*module));
    if (!module) return stk_fail_memory(sizeof(*module));
    STK_TRY(nvrtc_build(source, context->chip->arch, &ptx, &report));
    STK_TRY(usage_read(source, stk_text_get(&ptx), stk_text_get(&report), &module->kernel, &module->n_kernels));
    *out = module;
    module = NULL;
done:
    stk_text_free(&ptx);
    stk_text_free(&report);
    free(module);
    return status;
}

static stk_status save(const gpu_module *module, void **out, size_t *n)
{
    *n = (size_t)module->n_kernels * sizeof(paper_kernel);
    if (*n == 0) return STK_UNSUPPORTED;
    *out = malloc(*n);
    if (!*out) return stk_fail_memory(*n);
    memcpy(*out, module->kernel, *n);
    return STK_OK;
}

static stk_status restore(gpu_context *context, const void *bytes, size_t n, gpu_module **out)
{
    (void)context;
    if (n % sizeof(paper_kernel)) return stk_fail(STK_CORRUPT, "a kept program is of another layout");
    gpu_module *module = calloc(1, sizeof(*module));
    if (module) module->kernel = malloc(n);
    if (!module || !module->kernel) {
        free(module);
        return stk_fail_memory(n);
    }
    memcpy(module->kernel, bytes, n);
    module->n_kernels = (int)(n / sizeof(paper_kernel));
    *out = module;
    return STK_OK;
}

static void unload(gpu_module *module)
{
    if (!module) return;
    free(module->kernel);
    free(module);
}

static stk_status write_text(gpu_context *context, const char *source, gpu_module **out)
{
    char path[1024];
    (void)context;
    if (!folder) return stk_fail(STK_INTERNAL, "paper_set_folder was not called");
    snprintf(path, sizeof(path), "%s/%016llx.cl", folder, (unsigned long long)stk_hash_text(source));
    FILE *file = fopen(path, "w");
    bool written = file && fputs(source, file) >= 0;
    if (!file || fclose(file) || !written) return stk_fail(STK_IO, "cannot write '%s'", path);
    *out = calloc(1, sizeof(**out));
    return *out ? STK_OK : stk_fail_memory(sizeof(**out));
}

/* --- queues and events: all work is done when it is asked for --- */

static stk_status open_queue(stk_device *device, gpu_context *context, stk_queue **out)
{
    (void)context;
    gpu_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->base.device = device;
    *out = &queue->base;
    return STK_OK;
}

static void close_queue(stk_queue *queue)
{
    free(queue);
}

static stk_status copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    (void)queue, (void)dst, (void)src, (void)bytes, (void)kind;
    return STK_OK;
}

static stk_status finish(stk_queue *queue)
{
    (void)queue;
    return STK_OK;
}

static stk_status open_event(stk_device *device, gpu_context *context, stk_event **out)
{
    (void)context;
    gpu_event *event = calloc(1, sizeof(*event));
    if (!event) return stk_fail_memory(sizeof(*event));
    event->device = device;
    *out = (stk_event *)event;
    return STK_OK;
}

static void close_event(stk_event *event)
{
    free(event);
}

static stk_status record(stk_queue *queue, stk_event *event)
{
    (void)queue, (void)event;
    return STK_OK;
}

static stk_status wait_for(stk_queue *queue, const stk_event *event)
{
    (void)queue, (void)event;
    return STK_OK;
}

static stk_status sync(const stk_event *event)
{
    (void)event;
    return STK_OK;
}

/* --- captures --- */

static const paper_kernel *find_kernel(const gpu_module *module, const char *name)
{
    for (int i = 0; i < module->n_kernels; i++)
        if (!strcmp(module->kernel[i].name, name)) return &module->kernel[i];
    return NULL;
}

static stk_status check_launch(const gpu_bound_launch *launch)
{
    const paper_kernel *kernel = find_kernel(launch->module, launch->kernel);
    if (!kernel) return stk_fail(STK_INTERNAL, "there is no kernel '%s'", launch->kernel);
    uint32_t group = launch->group[0] * launch->group[1] * launch->group[2];
    if ((int)group != kernel->group)
        return stk_fail(STK_INTERNAL, "%s: kernel '%s' is made for groups of %d, and launched with %u x %u x %u",
                        kernel->file, launch->kernel, kernel->group, launch->group[0], launch->group[1],
                        launch->group[2]);
    if (launch->n_arguments != kernel->n_arguments)
        return stk_fail(STK_INTERNAL, "%s: kernel '%s' takes %d arguments, and gets %d", kernel->file, launch->kernel,
                        kernel->n_arguments, launch->n_arguments);
    for (int i = 0; i < launch->n_arguments; i++) {
        size_t bytes = launch->argument[i].bytes ? launch->argument[i].bytes : sizeof(void *);
        if (bytes != kernel->argument_bytes[i])
            return stk_fail(STK_INTERNAL, "%s: kernel '%s' takes %d bytes as argument number %d, and gets %zu",
                            kernel->file, launch->kernel, kernel->argument_bytes[i], i, bytes);
    }
    return STK_OK;
}

static stk_status make_capture(gpu_context *context, const gpu_bound_launch *launches, int n, const gpu_driver *driver,
                               stk_capture **out)
{
    for (int i = 0; i < n && context->chip->arch; i++)
        STK_RETURN_IF_ERROR(check_launch(&launches[i]));
    gpu_capture *capture = malloc(sizeof(*capture));
    if (!capture) return stk_fail_memory(sizeof(*capture));
    capture->driver = driver;
    *out = (stk_capture *)capture;
    return STK_OK;
}

static stk_status capture_kernels(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out);
static stk_status capture_text(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out);

static void release(stk_capture *capture)
{
    free(capture);
}

static stk_status launch(stk_queue *queue, const stk_capture *capture)
{
    (void)queue, (void)capture;
    return STK_OK;
}

static int count_calls(const stk_capture *capture)
{
    (void)capture;
    return 1;
}

/* --- tables --- */

#define PAPER_DRIVER                                                                                                   \
    .name = "paper", .load = load, .count = count, .open = open_chip, .close = close_chip, .alloc = alloc,             \
    .free = free_nothing, .alloc_host = alloc_host, .free_host = free_host, .memory = tell_memory, .unload = unload,   \
    .open_queue = open_queue, .close_queue = close_queue, .copy = copy, .finish = finish, .open_event = open_event,    \
    .close_event = close_event, .record = record, .wait = wait_for, .sync = sync, .release = release,                  \
    .launch = launch, .count_calls = count_calls

static stk_status keep_nothing(const gpu_module *module, void **out, size_t *n)
{
    (void)module, (void)out, (void)n;
    return STK_UNSUPPORTED;
}

static const gpu_driver kernels_driver = {PAPER_DRIVER, .dialect = "dialect_cuda.h", .build = build,
                                          .save = save, .restore = restore,          .capture = capture_kernels};
static const gpu_driver text_driver = {PAPER_DRIVER,        .dialect = "dialect_opencl.h",
                                       .build = write_text, .save = keep_nothing,
                                       .restore = restore,  .capture = capture_text};

static stk_status capture_kernels(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out)
{
    return make_capture(context, launches, n, &kernels_driver, out);
}

static stk_status capture_text(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out)
{
    return make_capture(context, launches, n, &text_driver, out);
}

static const stk_device_caps *chosen_caps;

void paper_set_caps(const stk_device_caps *caps)
{
    chosen_caps = caps;
}

static stk_status open_device(const stk_device_config *config, stk_device **out)
{
    bool is_text = config->number == PAPER_TEXT;
    STK_RETURN_IF_ERROR(gpu_open(is_text ? &text_driver : &kernels_driver, &paper_class, config, out));
    if (chosen_caps) (*out)->caps = chosen_caps;
    return STK_OK;
}

/* --- ops without kernels --- */

static bool is_lenient;
static char **missing;
static int n_missing;

void paper_set_lenient(bool lenient)
{
    is_lenient = lenient;
}

const char *paper_get_missing(int i)
{
    return i < n_missing ? missing[i] : NULL;
}

void paper_forget_missing(void)
{
    for (int i = 0; i < n_missing; i++)
        free(missing[i]);
    free(missing);
    missing = NULL;
    n_missing = 0;
}

/* Each op with its dtypes once; not those that programs have as others (passes/decompose.c). */
static stk_status note_missing(const stk_op_call *call)
{
    if (stk_op_get_rule(call->op)->decompose) return STK_OK;
    stk_text text = {0};
    char **grown = NULL;
    stk_status status = STK_OK;
    stk_text_add(&text, "%s", stk_op_name(call->op));
    for (int i = 0; i < call->n_in; i++)
        stk_text_add(&text, i ? ", %s" : " of %s", stk_dtype_name(call->in[i].dtype));
    for (int i = 0; i < call->n_out; i++)
        stk_text_add(&text, i ? ", %s" : " -> %s", stk_dtype_name(call->out[i].dtype));
    STK_TRY(stk_text_status(&text));
    for (int i = 0; i < n_missing; i++)
        if (!strcmp(missing[i], text.data)) goto done;
    grown = realloc(missing, ((size_t)n_missing + 1) * sizeof(*grown));
    if (!grown) STK_TRY(stk_fail_memory(sizeof(*grown)));
    missing = grown;
    missing[n_missing++] = text.data;
    text = (stk_text){0};
done:
    stk_text_free(&text);
    return status;
}

static stk_status find_or_note(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_status status = gpu_find_kernel(device, call, out);
    if (status != STK_UNSUPPORTED || !is_lenient) return status;
    STK_RETURN_IF_ERROR(note_missing(call));
    *out = (stk_kernel){.state = calloc(1, sizeof(gpu_kernel)), .impl = "none"};
    return out->state ? STK_OK : stk_fail_memory(sizeof(gpu_kernel));
}

stk_status paper_build(stk_device *device)
{
    return gpu_build((gpu_device *)device);
}

const stk_device_class paper_class = {
    .name = "paper",
    .about = "for tests: chips that are not here",
    .count = count,
    .open = open_device,
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .alloc_host = gpu_alloc_host,
    .free_host = gpu_free_host,
    .kernel = find_or_note,
    .queues = &gpu_queues,
    .memory = gpu_memory,
    .chip = gpu_tell_chip,
    .describe = gpu_describe,
};

void paper_add(void)
{
    stk_device_add(&paper_class);
}
