/* Where a tensor is empty there is nothing to add up: the result is the bias, or zeros, or nothing. */
#include "device/cpu/conv/conv2d_empty.h"

#include <string.h>

#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/element/element.h"

typedef struct empty_state {
    stk_element_fn round; /* of the bias; NULL: none */
    size_t bytes, pixel_bytes;
    int64_t n_channels;
    bool has_relu, is_f64;
} empty_state;

/* A bias of a pixel, rounded, and its ReLU. */
static void write_pixel(const empty_state *s, const void *bias, char *to)
{
    for (int64_t c = 0; c < s->n_channels; c++, to += s->pixel_bytes / (size_t)s->n_channels) {
        float narrow = s->is_f64 ? 0 : ((const float *)bias)[c];
        double wide = s->is_f64 ? ((const double *)bias)[c] : 0;
        if (s->has_relu && narrow <= 0) narrow = 0;
        if (s->has_relu && wide <= 0) wide = 0;
        const void *from = s->is_f64 ? (const void *)&wide : &narrow;
        s->round(1, to, &from);
    }
}

static stk_status run_empty(const void *p, const stk_kernel_args *args)
{
    const empty_state *s = p;
    if (!s->bytes) return STK_OK;
    memset(args->out[0], 0, s->bytes);
    if (!s->round) return STK_OK;
    write_pixel(s, args->in[2], args->out[0]);
    for (size_t at = s->pixel_bytes; at < s->bytes; at += s->pixel_bytes)
        memcpy((char *)args->out[0] + at, args->out[0], s->pixel_bytes);
    return STK_OK;
}

bool stk_conv_empty_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    bool is_float = stk_cpu_reads_wide(device, call) || stk_cpu_has_half(device, call);
    return is_float && (!stk_shape_count(s.x) || !stk_shape_count(s.weight) || !stk_shape_count(s.y));
}

stk_status stk_conv_empty_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(empty_state), run_empty, out));
    empty_state *s = out->state;
    stk_tensor_desc y = call->out[0];
    s->bytes = stk_desc_bytes(y);
    s->n_channels = y.shape.dim[y.shape.rank - 1];
    s->pixel_bytes = (size_t)s->n_channels * stk_dtype_bytes(y.dtype);
    s->has_relu = call->attrs->activation == STK_ACTIVATION_RELU;
    s->is_f64 = y.dtype == STK_F64;
    if (call->n_in == 3) s->round = stk_element_of(device->isa)->cast[call->in[2].dtype][y.dtype];
    return STK_OK;
}
