/* What devices can do, and what is known about them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/processor.h"
#include "device/device.h"

const stk_device_caps stk_device_caps_all = {
    .has =
        {
#define X(name) [STK_OP_##name] = true,
            STK_OP_LIST(X)
#undef X
        },
    .bias = true,
    .conv_relu = true,
    .norm_relu = true,
    .norm_residual = true,
    .sums_in_place = true,
    .f64 = true,
    .bf16 = true,
    .f16 = true,
    .u8 = true,
    .deterministic = true,
    .capture = true,
};

/* Here and not in a rule: devices know the list of ops and no rules. A test holds the two together. */
bool stk_op_is_primitive(stk_op op)
{
    switch (op) {
    case STK_OP_input:
    case STK_OP_variable:
    case STK_OP_constant:
    case STK_OP_unary:
    case STK_OP_binary:
    case STK_OP_compare:
    case STK_OP_select:
    case STK_OP_cast:
    case STK_OP_broadcast:
    case STK_OP_reshape:
    case STK_OP_transpose:
    case STK_OP_slice:
    case STK_OP_pad:
    case STK_OP_concat:
    case STK_OP_reduce:
    case STK_OP_matmul:
    case STK_OP_conv2d:
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv2d_grad_weight:
    case STK_OP_accumulate:
    case STK_OP_gather:
    case STK_OP_scatter_add:
    case STK_OP_iota:
    case STK_OP_dropout: return true;
    default: return false;
    }
}

bool stk_device_caps_has(const stk_device_caps *caps, stk_op op)
{
    return stk_op_is_primitive(op) || caps->has[op];
}

int stk_device_count(const stk_device_class *class)
{
    return class->count ? class->count() : 1;
}

/* Pages of this process that are in memory, in bytes. */
static size_t own_bytes(void)
{
    unsigned long long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%llu %llu", &all, &resident) != 2) resident = 0;
    fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

stk_status stk_device_get_memory(const stk_device *device, stk_device_memory *out)
{
    *out = (stk_device_memory){0};
    if (device->class->memory) return device->class->memory(device, out);
    if (!device->class->on_host)
        return stk_fail(STK_UNSUPPORTED, "the device '%s' does not tell its memory: give a limit in bytes",
                        device->class->name);
    out->total = stk_machine_memory(false);
    out->free = stk_machine_memory(true);
    size_t used = out->total > out->free ? out->total - out->free : 0, own = own_bytes();
    out->others = used > own ? used - own : 0;
    return STK_OK;
}

void stk_device_add_chip(const stk_device *device, stk_text *out)
{
    char name[STK_PROCESSOR_NAME];
    if (device->class->chip) {
        device->class->chip(device, out);
        return;
    }
    bool is_known = device->class->on_host && stk_processor_name(name, sizeof(name));
    stk_text_add(out, "%s", is_known ? name : "unknown");
}
