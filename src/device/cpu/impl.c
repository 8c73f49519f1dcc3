#include "device/cpu/impl.h"

#include <string.h>

#include "device/cpu/measured.h"
#include "device/cpu/tuned/tuned.h"

/* After STK_UNSUPPORTED nothing is left in *out. */
static stk_status make_by(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_impl *impl,
                          stk_kernel *out)
{
    out->impl = impl->name ? impl->name : stk_cpu_own_impl(device->isa);
    stk_status status = impl->make(device, call, out);
    if (status != STK_UNSUPPORTED) return status;
    stk_kernel_free(out);
    memset(out, 0, sizeof(*out));
    return status;
}

stk_status stk_cpu_make_first(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_impl *impls,
                              stk_kernel *out)
{
    bool refused = false;
    for (const stk_cpu_impl *impl = impls; impl->make; impl++) {
        if (!impl->supports(device, call)) continue;
        stk_status status = make_by(device, call, impl, out);
        if (status != STK_UNSUPPORTED) return status;
        refused = true;
    }
    /* A refusal's text says more. */
    return refused ? STK_UNSUPPORTED : stk_cpu_unsupported(call);
}

const stk_cpu_way *stk_cpu_ways_of(stk_op op)
{
    switch (op) {
    case STK_OP_matmul: return stk_matmul_ways;
    case STK_OP_conv2d:
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv2d_grad_weight: return stk_conv_ways;
    default: return NULL;
    }
}

stk_status stk_cpu_make_way(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_way *ways,
                            const char *name, stk_kernel *out)
{
    bool refused = false;
    for (const stk_cpu_way *way = ways; way->name; way++) {
        if (strcmp(way->name, name) || !way->impl.supports(device, call)) continue;
        stk_status status = make_by(device, call, &way->impl, out);
        if (status != STK_UNSUPPORTED) return status;
        refused = true;
    }
    return refused ? STK_UNSUPPORTED : stk_fail(STK_UNSUPPORTED, "no way '%s' to compute this call", name);
}

stk_status stk_cpu_make_best(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_way *ways,
                             const stk_cpu_impl *impls, stk_kernel *out)
{
    const stk_tuned_table *table = device->base.default_kernels ? NULL : stk_tuned_of(device->isa);
    const char *name = device->measured ? stk_measured_way(device->measured, call) : stk_tuned_way(table, call);
    stk_status status = name ? stk_cpu_make_way(device, call, ways, name, out) : STK_UNSUPPORTED;
    return status != STK_UNSUPPORTED ? status : stk_cpu_make_first(device, call, impls, out);
}

static bool is_wide(stk_dtype dtype)
{
    return dtype == STK_F32 || dtype == STK_F64;
}

static bool is_half(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16;
}

bool stk_cpu_reads_wide(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return is_wide(call->in[0].dtype);
}

bool stk_cpu_writes_wide(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return is_wide(call->out[0].dtype);
}

bool stk_cpu_has_half(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    for (int i = 0; i < call->n_in; i++)
        if (is_half(call->in[i].dtype)) return true;
    for (int i = 0; i < call->n_out; i++)
        if (is_half(call->out[i].dtype)) return true;
    return false;
}

stk_status stk_cpu_widened_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_widen_kernel(device, call, stk_cpu_maker_of(call->op), out);
}
