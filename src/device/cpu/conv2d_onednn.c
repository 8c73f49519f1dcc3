#include "device/cpu/conv2d_onednn.h"

#include <stdlib.h>

typedef struct conv_state {
    stk_onednn_conv *conv;
    stk_conv_pass pass;
} conv_state;

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const conv_state *state = p;
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

stk_status stk_cpu_conv2d_onednn_kernel(const stk_cpu_device *device, const stk_conv_shape *shape, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), run, out));
    conv_state *state = out->state;
    out->release = release;
    state->pass = shape->pass;
    STK_RETURN_IF_ERROR(stk_onednn_conv_new(device->onednn, shape, &state->conv));
    out->scratch_bytes = stk_onednn_conv_scratch_bytes(state->conv);
    out->impl = stk_onednn_conv_impl(state->conv);
    return STK_OK;
}
