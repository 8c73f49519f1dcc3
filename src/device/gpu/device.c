/* The table's functions: gpu.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/gpu/gpu.h"

/* --- ops --- */

gpu_make gpu_find_make(stk_op op)
{
    switch (op) {
#define X(name)                                                                                                        \
    case STK_OP_##name: return gpu_make_##name;
        GPU_KERNEL_LIST(X)
#undef X
    default: return NULL;
    }
}

static void set_caps(gpu_device *device)
{
    stk_device_caps *caps = &device->caps;
#define X(name) caps->has[STK_OP_##name] = true;
    GPU_KERNEL_LIST(X)
#undef X
    caps->bf16 = caps->f16 = caps->u8 = caps->deterministic = true;
    caps->bias = caps->conv_relu = true;
    caps->norm_relu = caps->norm_residual = true;
    caps->sums_in_place = true;
    caps->joins_updates = true;
    caps->tf32 = device->chip.has_tf32;
    caps->capture = device->chip.command_list;
    device->base.caps = caps;
}

/* --- opening --- */

stk_status gpu_read_wait_seconds(const gpu_chip *chip, double *out)
{
    const char *text = getenv("STOKER_GPU_TIMEOUT");
    char *end;
    *out = chip->is_gpu ? 600 : 0;
    if (!text || !*text) return STK_OK;
    *out = strtod(text, &end);
    if (*end || !(*out >= 0))
        return stk_fail(STK_INVALID, "STOKER_GPU_TIMEOUT is '%s', which is no number of seconds", text);
    return STK_OK;
}

void gpu_close(stk_device *base)
{
    gpu_device *device = (gpu_device *)base;
    if (!device) return;
    gpu_free_units(device);
    if (device->fault) device->driver->free(device->context, device->fault);
    if (device->fault_host) device->driver->free_host(device->context, device->fault_host);
    device->driver->close(device->context);
    free(device->site);
    free(device);
}

static stk_status explain_memory(gpu_device *device, size_t bytes, stk_status status);

stk_status gpu_open(const gpu_driver *driver, const stk_device_class *class, const stk_device_config *config,
                    stk_device **out)
{
    gpu_device *device = calloc(1, sizeof(*device));
    void *host = NULL;
    stk_status status = STK_OK;
    if (!device) return stk_fail_memory(sizeof(*device));
    device->base = (stk_device){.class = class, .n_threads = 1};
    device->driver = driver;
    STK_TRY(driver->open(config->number, &device->chip, &device->context));
    device->base.is_gpu = device->chip.is_gpu;
    memcpy(device->base.bus, device->chip.bus, sizeof(device->base.bus));
    device->base.most_piece_bytes = device->chip.most_alloc_bytes;
    const size_t fault_bytes = GPU_FAULT_WORDS * sizeof(int32_t);
    STK_TRY(explain_memory(device, fault_bytes, driver->alloc(device->context, fault_bytes, &device->fault)));
    STK_TRY(driver->alloc_host(device->context, GPU_FAULT_WORDS * sizeof(int32_t), &host));
    device->fault_host = memset(host, 0, GPU_FAULT_WORDS * sizeof(int32_t));
    set_caps(device);
    *out = &device->base;
    device = NULL;
done:
    gpu_close(device ? &device->base : NULL);
    return status;
}

/* --- memory --- */

/* What is there, who has it, and what helps, before what the driver said. */
static stk_status explain_memory(gpu_device *device, size_t bytes, stk_status status)
{
    char text[STK_COUNT_TEXT];
    stk_device_memory now = {0};
    if (status != STK_NO_MEMORY) return status;
    stk_count_text((int64_t)bytes, text);
    if (bytes > device->chip.most_alloc_bytes)
        return stk_fail(STK_NO_MEMORY,
                        "%s bytes in one piece: '%s' gives out %zu MiB at most; a smaller memory limit helps", text,
                        device->chip.name, device->chip.most_alloc_bytes >> 20);
    stk_text said = {0};
    stk_text_add(&said, "%s", stk_error_text());
    device->driver->memory(device->context, &now);
    if (now.total) {
        (void)gpu_memory(&device->base, &now);
        stk_fail(status,
                 "%s bytes of '%s', which has %zu MiB, %zu MiB of them free; this process has %zu MiB, others and the "
                 "driver %zu MiB (a smaller memory limit helps): %s",
                 text, device->chip.name, now.total >> 20, now.free >> 20, device->used_bytes >> 20, now.others >> 20,
                 stk_text_get(&said));
    } else {
        stk_fail(status,
                 "%s bytes of '%s', of which this process has %zu MiB (others may use the rest; a smaller memory limit "
                 "helps): %s",
                 text, device->chip.name, device->used_bytes >> 20, stk_text_get(&said));
    }
    stk_text_free(&said);
    return status;
}

stk_status gpu_alloc(stk_device *base, size_t bytes, stk_memory_kind kind, void **out)
{
    gpu_device *device = (gpu_device *)base;
    size_t wanted = bytes ? bytes : 1;
    (void)kind; /* All of it comes zeroed. */
    stk_status status = device->driver->alloc(device->context, wanted, out);
    if (status == STK_OK) device->used_bytes += wanted;
    return explain_memory(device, bytes, status);
}

void gpu_free(stk_device *base, void *p, size_t bytes)
{
    gpu_device *device = (gpu_device *)base;
    if (!p) return;
    device->driver->free(device->context, p);
    device->used_bytes -= bytes ? bytes : 1;
}

stk_status gpu_alloc_host(stk_device *base, size_t bytes, void **out)
{
    gpu_device *device = (gpu_device *)base;
    return device->driver->alloc_host(device->context, bytes ? bytes : 1, out);
}

void gpu_free_host(stk_device *base, void *p, size_t bytes)
{
    gpu_device *device = (gpu_device *)base;
    (void)bytes;
    if (p) device->driver->free_host(device->context, p);
}

stk_status gpu_memory(const stk_device *base, stk_device_memory *out)
{
    const gpu_device *device = (const gpu_device *)base;
    *out = (stk_device_memory){0};
    device->driver->memory(device->context, out);
    if (out->total) { /* What is neither free nor of this device is others', the driver's own among it. */
        const size_t known = out->free + device->used_bytes;
        out->others = out->total > known ? out->total - known : 0;
    } else { /* Where nobody tells, what this process took is all that is known to be taken. */
        out->total = device->chip.total_bytes;
        out->free = out->total > device->used_bytes ? out->total - device->used_bytes : 0;
    }
    if (device->chip.unified && !device->chip.is_gpu) { /* A processor, and the host's memory. */
        size_t host = stk_machine_memory(true);
        if (host && host < out->free) out->free = host;
    }
    out->is_own = !device->chip.unified;
    return STK_OK;
}

/* --- faults --- */

stk_status gpu_keep_failure(gpu_device *device, stk_status status)
{
    if (status != STK_OK && device->failed == STK_OK) {
        device->failed = status;
        snprintf(device->failure, sizeof(device->failure), "%s", stk_error_text());
    }
    return status;
}

static stk_status read_fault(gpu_device *device)
{
    const int32_t *fault = device->fault_host;
    if (fault[0] <= 0 || fault[0] > device->n_sites) return STK_OK;
    const gpu_site *site = &device->site[fault[0] - 1];
    long long row = (long long)((uint64_t)(uint32_t)fault[2] | (uint64_t)(uint32_t)fault[3] << 32);
    char text[sizeof(device->failure)];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), site->format, (long long)fault[1], row, (long long)site->limit);
#pragma GCC diagnostic pop
    return stk_fail(site->status, "%s", text);
}

stk_status gpu_check(gpu_device *device, stk_status waited)
{
    gpu_keep_failure(device, waited);
    if (device->failed == STK_OK) gpu_keep_failure(device, read_fault(device));
    return device->failed == STK_OK ? STK_OK : stk_fail(device->failed, "%s", device->failure);
}

/* --- what people read --- */

void gpu_tell_chip(const stk_device *base, stk_text *out)
{
    stk_text_add(out, "%s", ((const gpu_device *)base)->chip.name);
}

void gpu_list_more(const stk_device *base, stk_text *out)
{
    const gpu_device *device = (const gpu_device *)base;
    device->driver->describe(device->context, out);
}

void gpu_describe(const stk_device *base, stk_text *out)
{
    const gpu_chip *chip = &((const gpu_device *)base)->chip;
    stk_text_add(out, "%s%s, %d units, %.1f GiB, %s%s", chip->name, chip->is_gpu ? "" : " (no GPU)", chip->n_units,
                 (double)chip->total_bytes / 0x1p30, chip->driver, chip->command_list ? ", command lists" : "");
}
