/* The tables of 'pjrt' and 'tpu': pjrt.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/pjrt/lowering.h"
#include "device/pjrt/pjrt.h"

/* --- which device a name means --- */

static stk_status probe_named(void)
{
    const pjrt_plugin *plugin;
    return pjrt_n_named() > 0 ? STK_OK : pjrt_load(NULL, &plugin);
}

static stk_status probe_tpu(void)
{
    const pjrt_plugin *plugin;
    return pjrt_load("tpu", &plugin);
}

static int count_named(void)
{
    const pjrt_plugin *plugin;
    if (pjrt_n_named() > 0) return pjrt_n_named();
    return pjrt_load(NULL, &plugin) == STK_OK ? plugin->n_chips : 0;
}

static int count_tpu(void)
{
    const pjrt_plugin *plugin;
    return pjrt_load("tpu", &plugin) == STK_OK ? plugin->n_chips : 0;
}

/* --- opening --- */

static void set_caps(pjrt_device *device)
{
    stk_device_caps *caps = &device->caps;
#define X(name) caps->has[STK_OP_##name] = true;
    PJRT_LOWERING_LIST(X)
#undef X
    caps->bf16 = caps->f16 = caps->u8 = true;
    caps->bias = caps->conv_relu = false;
    caps->tf32 = strcmp(device->plugin->platform, "cpu") != 0;
    caps->deterministic = !strcmp(device->plugin->platform, "cpu") || !strcmp(device->plugin->platform, "tpu");
    caps->capture = true;
    device->base.caps = caps;
}

stk_status pjrt_get_chip_id(const pjrt_plugin *plugin, pjrt_chip *chip, int *id)
{
    pjrt_description_args description = {.head = {sizeof(description), NULL}, .chip = chip};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_DEVICE_GET_DESCRIPTION, &description, "asking about the chip"));
    pjrt_id_args args = {.head = {sizeof(args), NULL}, .about = description.about};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_DESCRIPTION_ID, &args, "asking about the chip"));
    *id = args.id;
    return STK_OK;
}

static stk_status open_chip(const stk_device_class *class, const pjrt_plugin *plugin, int i_chip, stk_device **out)
{
    if (i_chip >= plugin->n_chips)
        return stk_fail(STK_NO_DEVICE, "replicas want a device each, and '%s' has %d", plugin->path, plugin->n_chips);
    pjrt_device *device = calloc(1, sizeof(*device));
    if (!device) return stk_fail_memory(sizeof(*device));
    device->base = (stk_device){.class = class, .n_threads = 1};
    device->plugin = plugin;
    device->i_chip = i_chip;
    device->chip = plugin->chip[i_chip];
    set_caps(device);
    *out = &device->base;
    return STK_OK;
}

static stk_status open_named(const stk_device_config *config, stk_device **out)
{
    const pjrt_plugin *plugin;
    if (pjrt_n_named() > 0) return open_chip(&stk_device_class_pjrt, pjrt_get_named(config->number), config->rank, out);
    STK_RETURN_IF_ERROR(pjrt_load(NULL, &plugin));
    return open_chip(&stk_device_class_pjrt, plugin, config->number + config->rank, out);
}

static stk_status open_tpu(const stk_device_config *config, stk_device **out)
{
    const pjrt_plugin *plugin;
    if (config->number < 0) {
        STK_RETURN_IF_ERROR(pjrt_open_absent(&stk_device_class_tpu, config->number, out));
        set_caps((pjrt_device *)*out);
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(pjrt_load("tpu", &plugin));
    return open_chip(&stk_device_class_tpu, plugin, config->number + config->rank, out);
}

static void close_device(stk_device *base)
{
    pjrt_device *device = (pjrt_device *)base;
    if (!device) return;
    pjrt_free_blocks(device);
    pjrt_free_compiled(device);
    free(device);
}

/* --- kernels --- */

static void release_kernel(void *state)
{
    free(state);
}

bool pjrt_is_own_kernel(const stk_kernel *kernel)
{
    return kernel->release == release_kernel;
}

pjrt_lowering pjrt_find_lowering(stk_op op)
{
    switch (op) {
#define X(name)                                                                                                        \
    case STK_OP_##name: return pjrt_lower_##name;
        PJRT_LOWERING_LIST(X)
#undef X
    default: return NULL;
    }
}

static stk_status refuse(const stk_op_call *call)
{
    stk_text types = {0};
    for (int i = 0; i < call->n_in + call->n_out; i++)
        stk_text_add(&types, "%s%s",
                     i == 0            ? ""
                     : i == call->n_in ? " -> "
                                       : ", ",
                     stk_dtype_name(i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype));
    stk_status status = stk_fail(STK_UNSUPPORTED, "the PJRT device has no lowering for '%s' of %s",
                                 stk_op_name(call->op), stk_text_get(&types));
    stk_text_free(&types);
    return status;
}

/* TPUs have none. */
static bool has_f64(const stk_op_call *call)
{
    for (int i = 0; i < call->n_in + call->n_out; i++)
        if ((i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype) == STK_F64) return true;
    return false;
}

stk_status pjrt_make_kernel(const stk_op_call *call, stk_kernel *out)
{
    memset(out, 0, sizeof(*out));
    size_t n_in = (size_t)call->n_in, n = n_in + (size_t)call->n_out;
    pjrt_kernel *kernel = calloc(1, sizeof(*kernel) + n * sizeof(kernel->desc[0]));
    if (!kernel) return stk_fail_memory(sizeof(*kernel) + n * sizeof(kernel->desc[0]));
    kernel->attrs = *call->attrs;
    memcpy(kernel->desc, call->in, n_in * sizeof(kernel->desc[0]));
    memcpy(kernel->desc + n_in, call->out, (n - n_in) * sizeof(kernel->desc[0]));
    kernel->call = (stk_op_call){call->op, &kernel->attrs, call->n_in, call->n_out, kernel->desc, kernel->desc + n_in};
    *out = (stk_kernel){.state = kernel, .release = release_kernel, .impl = "xla"};
    return STK_OK;
}

static stk_status find_kernel(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    (void)device;
    memset(out, 0, sizeof(*out));
    return pjrt_find_lowering(call->op) && !has_f64(call) ? pjrt_make_kernel(call, out) : refuse(call);
}

/* --- what people read --- */

static const char *tell_slow_dtype(const stk_device *base, stk_dtype dtype)
{
    const pjrt_device *device = (const pjrt_device *)base;
    if (!strcmp(device->plugin->platform, "cpu")) return "XLA computes 16-bit numbers in f32 on a processor";
    if (!strcmp(device->plugin->platform, "tpu") && dtype == STK_F16) return "TPUs compute in bf16 and f32";
    return NULL;
}

static stk_status tell_memory(const stk_device *base, stk_device_memory *out)
{
    const pjrt_device *device = (const pjrt_device *)base;
    pjrt_memory_args args = {.head = {sizeof(args), NULL}, .chip = device->chip};
    *out = (stk_device_memory){0};
    if (base->absent[0]) {
        stk_compiled_program chip = {.memory_bytes = 0};
        pjrt_describe_absent(base->absent, &chip);
        out->total = out->free = (size_t)chip.memory_bytes;
        out->is_own = true;
        return STK_OK;
    }
    pjrt_call_quietly(device->plugin, PJRT_DEVICE_MEMORY_STATS, &args);
    if (args.has_limit) {
        out->is_own = strcmp(device->plugin->platform, "cpu") != 0;
        out->total = (size_t)args.limit;
        out->free = args.limit > args.used ? (size_t)(args.limit - args.used) : 0;
        return STK_OK;
    }
    if (strcmp(device->plugin->platform, "cpu") != 0)
        return stk_fail(STK_UNSUPPORTED, "the plug-in '%s' does not tell its memory: give a limit in bytes",
                        device->plugin->path);
    out->total = stk_machine_memory(false);
    out->free = stk_machine_memory(true);
    return STK_OK;
}

static void tell_chip(const stk_device *base, stk_text *out)
{
    const pjrt_device *device = (const pjrt_device *)base;
    if (base->absent[0]) {
        stk_text_add(out, "TPU %s, not here", base->absent);
        return;
    }
    pjrt_description_args description = {.head = {sizeof(description), NULL}, .chip = device->chip};
    pjrt_call_quietly(device->plugin, PJRT_DEVICE_GET_DESCRIPTION, &description);
    pjrt_text_args kind = {.head = {sizeof(kind), NULL}, .of = description.about};
    if (description.about) pjrt_call_quietly(device->plugin, PJRT_DESCRIPTION_KIND, &kind);
    stk_text_add(out, "%.*s", kind.text ? (int)kind.n : 7, kind.text ? kind.text : "unknown");
}

static void describe(const stk_device *base, stk_text *out)
{
    const pjrt_plugin *plugin = ((const pjrt_device *)base)->plugin;
    tell_chip(base, out);
    if (base->absent[0]) return;
    stk_text_add(out, ", %s by PJRT %d.%d, %s", plugin->platform, plugin->api->version.major,
                 plugin->api->version.minor, plugin->path);
}

/* What both classes have. */
#define PJRT_CLASS                                                                                                     \
    .loads_by_name = true, .close = close_device, .alloc = pjrt_alloc, .free = pjrt_free, .kernel = find_kernel,       \
    .rank_kernel = pjrt_find_rank_kernel, .queues = &pjrt_queues, .compiles_steps = true,                              \
    .slow_dtype = tell_slow_dtype, .memory = tell_memory, .chip = tell_chip, .describe = describe

const stk_device_class stk_device_class_pjrt = {
    .name = "pjrt",
    .about = "what a PJRT plug-in drives",
    .count = count_named,
    .find = pjrt_find,
    .probe = probe_named,
    .open = open_named,
    PJRT_CLASS,
};

const stk_device_class stk_device_class_tpu = {
    .name = "tpu",
    .about = "Google's TPUs, by libtpu",
    .count = count_tpu,
    .find = pjrt_find_absent,
    .probe = probe_tpu,
    .open = open_tpu,
    PJRT_CLASS,
};
