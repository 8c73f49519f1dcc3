/* Over axes: reduce. Sums of 16-bit numbers are made in f32. */
#include <math.h>

#include "device/pjrt/lowering.h"

/* What the kind begins with, of a dtype. */
static pjrt_value make_first(pjrt_module *m, int kind, stk_dtype dtype)
{
    stk_tensor_desc scalar = {.dtype = dtype};
    bool is_float = stk_dtype_is_float(dtype), is_max = kind == STK_REDUCE_MAX;
    if (kind == STK_REDUCE_PROD) return pjrt_integer(m, scalar, 1);
    if (kind != STK_REDUCE_MAX && kind != STK_REDUCE_MIN) return pjrt_integer(m, scalar, 0);
    if (is_float) return pjrt_constant(m, scalar, is_max ? -(double)INFINITY : (double)INFINITY);
    switch (dtype) {
    case STK_I64: return pjrt_integer(m, scalar, is_max ? INT64_MIN : INT64_MAX);
    case STK_I32: return pjrt_integer(m, scalar, is_max ? INT32_MIN : INT32_MAX);
    case STK_I8: return pjrt_integer(m, scalar, is_max ? INT8_MIN : INT8_MAX);
    case STK_U8: return pjrt_integer(m, scalar, is_max ? 0 : UINT8_MAX);
    default: return pjrt_integer(m, scalar, !is_max);
    }
}

stk_status pjrt_lower_reduce(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const char *const names[STK_N_REDUCE] = {
        [STK_REDUCE_SUM] = "add",     [STK_REDUCE_MEAN] = "add",      [STK_REDUCE_MAX] = "maximum",
        [STK_REDUCE_MIN] = "minimum", [STK_REDUCE_PROD] = "multiply",
    };
    (void)n_in;
    int kind = call->attrs->reduce.kind;
    uint32_t axes = call->attrs->reduce.axes;
    stk_dtype dtype = in[0].desc.dtype;
    bool adds = kind == STK_REDUCE_SUM || kind == STK_REDUCE_MEAN || kind == STK_REDUCE_PROD;
    bool is_narrow = dtype == STK_BF16 || dtype == STK_F16;
    pjrt_value x = adds && is_narrow ? pjrt_convert(m, in[0], STK_F32) : in[0];
    pjrt_value y = x;
    if (axes) y = pjrt_reduce(m, names[kind], x, make_first(m, kind, x.desc.dtype), axes);
    if (kind == STK_REDUCE_MEAN) {
        double n = 1;
        for (int i = 0; i < in[0].desc.shape.rank; i++)
            if (axes >> i & 1) n *= (double)in[0].desc.shape.dim[i];
        y = pjrt_binary(m, "divide", y, pjrt_constant(m, y.desc, n));
    }
    out[0] = pjrt_convert(m, y, call->out[0].dtype);
    return STK_OK;
}
