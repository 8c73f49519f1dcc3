/* Products: matmul. f32 is multiplied in f32, also where the chip would rather round first, unless TF32 is allowed. */
#include "device/pjrt/lower/product.h"

bool pjrt_takes_all_bits(const stk_op_call *call)
{
    return call->in[0].dtype == STK_F32 && !call->attrs->tf32;
}

pjrt_value pjrt_add_bias(pjrt_module *m, pjrt_value y, pjrt_value bias)
{
    int64_t last = y.desc.shape.rank - 1;
    pjrt_value wide = pjrt_broadcast(m, pjrt_convert(m, bias, y.desc.dtype), &last, y.desc.shape);
    return pjrt_binary(m, "add", y, wide);
}

stk_dtype pjrt_sum_dtype(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16 ? STK_F32 : dtype;
}

stk_status pjrt_lower_matmul(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    char a_type[PJRT_TYPE_TEXT], b_type[PJRT_TYPE_TEXT], c_type[PJRT_TYPE_TEXT];
    char batch[PJRT_LIST_TEXT] = "", list[PJRT_LIST_TEXT], batching[3 * PJRT_LIST_TEXT] = "";
    static const int64_t numbers[STK_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    int rank_a = in[0].desc.shape.rank, rank_b = in[1].desc.shape.rank;
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    int axis_a = ta ? rank_a - 2 : rank_a - 1, axis_b = tb ? rank_b - 1 : rank_b - 2;
    bool shared = rank_b == 2; /* b is one matrix for all of a's */
    stk_tensor_desc wide = {pjrt_sum_dtype(in[0].desc.dtype), call->out[0].shape};
    pjrt_value a = in[0];
    if (shared && rank_a > 2 && ta) { /* The rows of a's result would stand behind its batch otherwise. */
        int64_t permutation[STK_MAX_RANK];
        for (int i = 0; i < rank_a; i++)
            permutation[i] = i == rank_a - 2 ? rank_a - 1 : i == rank_a - 1 ? rank_a - 2 : i;
        a = pjrt_transpose(m, a, permutation);
        axis_a = rank_a - 1;
    }
    if (!shared) {
        pjrt_list_text(numbers, rank_a - 2, batch);
        snprintf(batching, sizeof(batching), "batching_dims = %s x %s, ", batch,
                 pjrt_list_text(numbers, rank_a - 2, list));
    }
    pjrt_value c = pjrt_new_value(m, wide);
    stk_text_add(&m->body,
                 "%%%d = stablehlo.dot_general %%%d, %%%d, %scontracting_dims = [%d] x [%d], precision = %s : "
                 "(%s, %s) -> %s\n",
                 c.id, a.id, in[1].id, batching, axis_a, axis_b,
                 pjrt_takes_all_bits(call) ? "[HIGHEST, HIGHEST]" : "[DEFAULT, DEFAULT]",
                 pjrt_type_text(a.desc, a_type), pjrt_type_text(in[1].desc, b_type), pjrt_type_text(wide, c_type));
    if (n_in == 3) c = pjrt_add_bias(m, c, in[2]);
    out[0] = pjrt_convert(m, c, call->out[0].dtype);
    return STK_OK;
}
