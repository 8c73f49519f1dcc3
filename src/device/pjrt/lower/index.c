/* Elements by number: iota, gather, scatter_add. */
#include <inttypes.h>
#include <stdio.h>

#include "device/pjrt/lowering.h"

stk_status pjrt_lower_iota(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)n_in;
    (void)in;
    stk_tensor_desc desc = call->out[0];
    if (desc.dtype == STK_BOOL) desc.dtype = STK_I32;
    out[0] = pjrt_iota(m, desc, call->attrs->axis);
    if (call->out[0].dtype == STK_BOOL) out[0] = pjrt_compare(m, "NE", out[0], pjrt_integer(m, desc, 0));
    return STK_OK;
}

/* The axes of a gather's result that are x's, around those of ids, as "0, 3, 4". */
static const char *list_rows(int rank_x, int rank_ids, int axis, char out[PJRT_LIST_TEXT])
{
    int64_t list[2 * STK_MAX_RANK];
    int n = 0;
    for (int i = 0; i < rank_x; i++)
        if (i != axis) list[n++] = i < axis ? i : i - 1 + rank_ids;
    return pjrt_list_text(list, n, out);
}

static const char *list_sizes(stk_shape x, int axis, char out[PJRT_LIST_TEXT])
{
    int n = 0;
    for (int i = 0; i < x.rank; i++)
        n += snprintf(out + n, PJRT_LIST_TEXT - (size_t)n, "%s%" PRId64, i ? ", " : "", i == axis ? 1 : x.dim[i]);
    return out;
}

stk_status pjrt_lower_gather(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    char rows[PJRT_LIST_TEXT], sizes[PJRT_LIST_TEXT], x[PJRT_TYPE_TEXT], ids[PJRT_TYPE_TEXT], y[PJRT_TYPE_TEXT];
    int axis = call->attrs->axis, rank_ids = in[1].desc.shape.rank;
    (void)n_in;
    pjrt_check_ids(m, in[1], in[0].desc.shape.dim[axis]);
    if (stk_shape_count(in[0].desc.shape) == 0) {
        out[0] = pjrt_integer(m, call->out[0], 0);
        return STK_OK;
    }
    out[0] = pjrt_new_value(m, call->out[0]);
    stk_text_add(&m->body,
                 "%%%d = \"stablehlo.gather\"(%%%d, %%%d) <{dimension_numbers = #stablehlo.gather<offset_dims = %s, "
                 "collapsed_slice_dims = [%d], start_index_map = [%d], index_vector_dim = %d>, slice_sizes = "
                 "array<i64: %s>, indices_are_sorted = false}> : (%s, %s) -> %s\n",
                 out[0].id, in[0].id, in[1].id, list_rows(in[0].desc.shape.rank, rank_ids, axis, rows), axis, axis,
                 rank_ids, list_sizes(in[0].desc.shape, axis, sizes), pjrt_type_text(in[0].desc, x),
                 pjrt_type_text(in[1].desc, ids), pjrt_type_text(call->out[0], y));
    return STK_OK;
}

/* Sums of 16-bit numbers are made in f32. */
stk_status pjrt_lower_scatter_add(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                  pjrt_value *out)
{
    char rows[PJRT_LIST_TEXT], x[PJRT_TYPE_TEXT], ids[PJRT_TYPE_TEXT], dy[PJRT_TYPE_TEXT], scalar[PJRT_TYPE_TEXT];
    int axis = call->attrs->axis, rank_ids = in[1].desc.shape.rank;
    stk_dtype dtype = call->out[0].dtype, wide = dtype == STK_BF16 || dtype == STK_F16 ? STK_F32 : dtype;
    stk_tensor_desc desc = {wide, call->out[0].shape}, element = {.dtype = wide};
    pjrt_check_ids(m, in[1], desc.shape.dim[axis]);
    pjrt_value base = n_in == 3 ? pjrt_convert(m, in[2], wide) : pjrt_integer(m, desc, 0);
    if (stk_shape_count(desc.shape) == 0 || stk_shape_count(in[0].desc.shape) == 0) {
        out[0] = pjrt_convert(m, base, dtype);
        return STK_OK;
    }
    pjrt_value add = pjrt_convert(m, in[0], wide);
    pjrt_value y = pjrt_new_value(m, desc), a = pjrt_new_value(m, element), b = pjrt_new_value(m, element),
               sum = pjrt_new_value(m, element);
    pjrt_type_text(element, scalar);
    stk_text_add(
        &m->body,
        "%%%d = \"stablehlo.scatter\"(%%%d, %%%d, %%%d) <{scatter_dimension_numbers = #stablehlo.scatter<"
        "update_window_dims = %s, inserted_window_dims = [%d], scatter_dims_to_operand_dims = [%d], "
        "index_vector_dim = %d>, indices_are_sorted = false, unique_indices = false}> ({\n^bb0(%%%d: %s, %%%d: "
        "%s):\n%%%d = stablehlo.add %%%d, %%%d : %s\nstablehlo.return %%%d : %s\n}) : (%s, %s, %s) -> %s\n",
        y.id, base.id, in[1].id, add.id, list_rows(desc.shape.rank, rank_ids, axis, rows), axis, axis, rank_ids, a.id,
        scalar, b.id, scalar, sum.id, a.id, b.id, scalar, sum.id, scalar, pjrt_type_text(desc, x),
        pjrt_type_text(in[1].desc, ids), pjrt_type_text(add.desc, dy), x);
    out[0] = pjrt_convert(m, y, dtype);
    return STK_OK;
}
