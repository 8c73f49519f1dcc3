/* Convolution and its two gradients: oneDNN on NHWC. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"

typedef struct conv_state {
    stk_onednn_conv *conv; /* NULL: something is empty, so that the output is zeros */
    stk_conv_pass pass;
    size_t out_bytes;
} conv_state;

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const conv_state *state = p;
    if (!state->conv) {
        if (state->out_bytes) memset(args->out[0], 0, state->out_bytes);
        return STK_OK;
    }
    switch (state->pass) {
    case STK_CONV_GRAD_DATA:
        return stk_onednn_conv_run(state->conv, args->out[0], args->in[1], args->in[0], args->scratch);
    case STK_CONV_GRAD_WEIGHT:
        return stk_onednn_conv_run(state->conv, args->in[0], args->out[0], args->in[1], args->scratch);
    default: return stk_onednn_conv_run(state->conv, args->in[0], args->in[1], args->out[0], args->scratch);
    }
}

static void release(void *p)
{
    conv_state *state = p;
    stk_onednn_conv_free(state->conv);
    free(state);
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_conv_shape shape = {.window = call->attrs->window};
    switch (call->op) {
    case STK_OP_conv2d_grad_data:
        shape.pass = STK_CONV_GRAD_DATA;
        shape.x = call->out[0].shape, shape.weight = call->in[1].shape, shape.y = call->in[0].shape;
        break;
    case STK_OP_conv2d_grad_weight:
        shape.pass = STK_CONV_GRAD_WEIGHT;
        shape.x = call->in[0].shape, shape.weight = call->out[0].shape, shape.y = call->in[1].shape;
        break;
    default:
        shape.pass = STK_CONV_FORWARD;
        shape.x = call->in[0].shape, shape.weight = call->in[1].shape, shape.y = call->out[0].shape;
    }
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), run, out));
    conv_state *state = out->state;
    out->release = release;
    state->pass = shape.pass;
    state->out_bytes = stk_desc_bytes(call->out[0]);
    if (!stk_shape_count(shape.x) || !stk_shape_count(shape.weight) || !stk_shape_count(shape.y)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_onednn_conv_new(device->onednn, &shape, &state->conv));
    out->scratch_bytes = stk_onednn_conv_scratch_bytes(state->conv);
    out->impl = stk_onednn_conv_impl(state->conv);
    return STK_OK;
}

static stk_status choose(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    if (call->in[0].dtype == STK_F32) return make(device, call, out);
    return stk_cpu_widen_kernel(device, call, make, out);
}

stk_status stk_cpu_conv2d_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return choose(device, call, out);
}

stk_status stk_cpu_conv2d_grad_data_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return choose(device, call, out);
}

stk_status stk_cpu_conv2d_grad_weight_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return choose(device, call, out);
}
