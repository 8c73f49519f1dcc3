/* Moving elements: broadcast, reshape, transpose, slice, pad, concat. */
#include <inttypes.h>

#include "device/pjrt/lowering.h"

stk_status pjrt_lower_broadcast(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                pjrt_value *out)
{
    int64_t axes[STK_MAX_RANK];
    (void)n_in;
    for (int i = 0; i < in[0].desc.shape.rank; i++)
        axes[i] = i + call->out[0].shape.rank - in[0].desc.shape.rank;
    out[0] = pjrt_broadcast(m, in[0], axes, call->out[0].shape);
    return STK_OK;
}

stk_status pjrt_lower_reshape(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)n_in;
    out[0] = pjrt_reshape(m, in[0], call->out[0].shape);
    return STK_OK;
}

stk_status pjrt_lower_transpose(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                pjrt_value *out)
{
    int64_t permutation[STK_MAX_RANK];
    (void)n_in;
    for (int i = 0; i < in[0].desc.shape.rank; i++)
        permutation[i] = call->attrs->permutation[i];
    out[0] = pjrt_transpose(m, in[0], permutation);
    return STK_OK;
}

stk_status pjrt_lower_slice(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)n_in;
    out[0] = pjrt_slice(m, in[0], call->attrs->slice.start, call->attrs->slice.stop, call->attrs->slice.step);
    return STK_OK;
}

stk_status pjrt_lower_pad(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const int64_t none[STK_MAX_RANK];
    char low[PJRT_LIST_TEXT], high[PJRT_LIST_TEXT], inside[PJRT_LIST_TEXT];
    char type[PJRT_TYPE_TEXT], scalar[PJRT_TYPE_TEXT], result[PJRT_TYPE_TEXT];
    int rank = in[0].desc.shape.rank;
    (void)n_in;
    pjrt_value value = pjrt_constant(m, (stk_tensor_desc){.dtype = in[0].desc.dtype}, call->attrs->pad.value);
    pjrt_value y = pjrt_new_value(m, call->out[0]);
    stk_text_add(&m->body, "%%%d = stablehlo.pad %%%d, %%%d, low = %s, high = %s, interior = %s : (%s, %s) -> %s\n",
                 y.id, in[0].id, value.id, pjrt_list_text(call->attrs->pad.low, rank, low),
                 pjrt_list_text(call->attrs->pad.high, rank, high), pjrt_list_text(none, rank, inside),
                 pjrt_type_text(in[0].desc, type), pjrt_type_text(value.desc, scalar), pjrt_type_text(y.desc, result));
    out[0] = y;
    return STK_OK;
}

stk_status pjrt_lower_concat(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    char type[PJRT_TYPE_TEXT];
    out[0] = pjrt_new_value(m, call->out[0]);
    stk_text_add(&m->body, "%%%d = stablehlo.concatenate ", out[0].id);
    for (int i = 0; i < n_in; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "", in[i].id);
    stk_text_add(&m->body, ", dim = %d : (", call->attrs->concat.axis);
    for (int i = 0; i < n_in; i++)
        stk_text_add(&m->body, "%s%s", i ? ", " : "", pjrt_type_text(in[i].desc, type));
    stk_text_add(&m->body, ") -> %s\n", pjrt_type_text(call->out[0], type));
    return STK_OK;
}
