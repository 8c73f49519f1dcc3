/* Rows written into a longer array at a position that is known when it runs: how a cache of keys and values grows by
 * what is new. As the update of the variable that it reads it works in place, and only the new rows are touched.
 */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], rows = call->in[1];
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    bool fits = x.dtype == rows.dtype && x.shape.rank >= 2 && x.shape.rank == rows.shape.rank &&
                x.shape.dim[1] != STK_ANY && rows.shape.dim[1] != STK_ANY && rows.shape.dim[1] <= x.shape.dim[1];
    for (int axis = 0; fits && axis < x.shape.rank; axis++)
        fits = axis == 1 || x.shape.dim[axis] == rows.shape.dim[axis];
    if (!fits)
        return stk_fail(STK_INVALID, "rows %s do not fit x %s: x is [N,S,...], rows are [N,T,...] with T <= S",
                        stk_desc_text(rows, tb), stk_desc_text(x, ta));
    STK_RETURN_IF_ERROR(stk_rule_need("position", call->in[2], STK_I64, stk_rule_scalar_shape()));
    call->out[0] = x;
    return STK_OK;
}

/* In place, as it is meant to be. */
static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    out->bytes = 2 * stk_rule_count(call->in[1].shape) * (double)stk_dtype_bytes(call->in[1].dtype);
}

/* Each row of the result is one of x or one of the rows. */
static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0], rows = call->in[1];
    stk_shape shape = stk_value_shape(x), column = {.rank = shape.rank};
    int64_t n = shape.dim[1], n_rows = stk_value_shape(rows).dim[1];
    for (int i = 0; i < shape.rank; i++)
        column.dim[i] = i == 1 ? n : 1;
    stk_value position = stk_compose_check_position(call->in[2], n - n_rows + 1);
    stk_value i_row = stk_sub(stk_iota(call->graph, STK_I32, STK_SHAPE(n), 0), position);
    stk_value zero = stk_compose_constant(i_row, 0), last = stk_compose_constant(i_row, (double)n_rows - 1);
    stk_value held = stk_min(stk_max(i_row, zero), last);
    if (n_rows == 0) {
        call->made[0] = stk_reshape(x, shape);
        return;
    }
    stk_value is_new = stk_reshape(stk_equal(held, i_row), column);
    call->made[0] = stk_select(is_new, stk_gather(rows, held, 1), x);
}

const stk_op_rule stk_rule_write_at = {
    .name = "write_at",
    .kind = STK_KIND_OPAQUE,
    .n_in = 3,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .decompose = decompose,
};

stk_value stk_write_at(stk_value x, stk_value rows, stk_value position)
{
    return stk_rule_add(STK_OP_write_at, NULL, (stk_value[]){x, rows, position}, 3);
}
