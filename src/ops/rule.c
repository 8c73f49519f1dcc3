#include "ops/rule.h"

stk_value stk_rule_fail(stk_graph *graph, stk_status status)
{
    stk_graph_keep_error(graph, status);
    return stk_rule_none(graph);
}

stk_value stk_rule_add(stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in)
{
    stk_graph *graph = n_in > 0 ? in[0].graph : NULL;
    for (int i = 0; i < n_in; i++)
        if (!stk_rule_usable(in[i])) return stk_rule_none(graph);
    stk_attrs zero = stk_attrs_zero();
    return stk_graph_add(graph, op, attrs ? attrs : &zero, in, n_in);
}

stk_value stk_rule_scalar(stk_graph *graph, stk_dtype dtype, double value)
{
    return stk_graph_constant(graph, dtype, stk_rule_scalar_shape(), value);
}

bool stk_rule_broadcast_all(stk_value *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!stk_rule_usable(x[i])) return false;
    stk_shape shape = stk_value_shape(x[0]);
    for (int i = 1; i < n; i++) {
        stk_status status = stk_shape_broadcast(shape, stk_value_shape(x[i]), &shape);
        if (status != STK_OK) {
            stk_rule_fail(x[0].graph, status);
            return false;
        }
    }
    for (int i = 0; i < n; i++) {
        if (!stk_shape_equal(stk_value_shape(x[i]), shape)) x[i] = stk_broadcast(x[i], shape);
        if (!stk_rule_usable(x[i])) return false;
    }
    return true;
}

stk_status stk_rule_built(stk_value dx)
{
    if (dx.id >= 0) return STK_OK;
    stk_status status = dx.graph ? stk_graph_status(dx.graph) : STK_INTERNAL;
    return status != STK_OK ? status : stk_fail(STK_INTERNAL, "a gradient rule made no value");
}

stk_status stk_rule_need_float(const char *role, stk_tensor_desc desc)
{
    if (stk_dtype_is_float(desc.dtype)) return STK_OK;
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_INVALID, "%s %s must be of a float dtype", role, stk_desc_text(desc, text));
}

stk_status stk_rule_need(const char *role, stk_tensor_desc desc, stk_dtype dtype, stk_shape shape)
{
    if (desc.dtype == dtype && stk_shape_equal(desc.shape, shape)) return STK_OK;
    char is[STK_SHAPE_TEXT_BYTES], must[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_INVALID, "%s %s must be %s", role, stk_desc_text(desc, is),
                    stk_desc_text(stk_desc_make(dtype, shape), must));
}

stk_status stk_rule_need_rank(const char *role, stk_tensor_desc desc, int rank)
{
    if (desc.shape.rank == rank) return STK_OK;
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_INVALID, "%s %s must have %d dimensions, not %d", role, stk_desc_text(desc, text), rank,
                    (int)desc.shape.rank);
}

void stk_rule_out(stk_op_call *call, int i, stk_dtype dtype, stk_shape shape)
{
    call->out[i] = stk_desc_make(dtype, shape);
}

stk_shape stk_rule_scalar_shape(void)
{
    return (stk_shape){.rank = 0};
}

stk_shape stk_rule_vector_shape(int64_t n)
{
    return (stk_shape){.rank = 1, .dim = {n}};
}

uint32_t stk_rule_all_axes(stk_shape shape)
{
    return (1u << shape.rank) - 1u;
}

double stk_rule_count(stk_shape shape)
{
    double n = 1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] != STK_ANY) n *= (double)shape.dim[i];
    return n;
}

double stk_rule_bytes(const stk_op_call *call)
{
    double bytes = 0;
    for (int i = 0; i < call->n_in; i++)
        bytes += stk_rule_count(call->in[i].shape) * (double)stk_dtype_bytes(call->in[i].dtype);
    for (int i = 0; i < call->n_out; i++)
        bytes += stk_rule_count(call->out[i].shape) * (double)stk_dtype_bytes(call->out[i].dtype);
    return bytes;
}
