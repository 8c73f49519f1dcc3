/* Sum, mean, maximum, minimum or product over axes, which are removed. The maximum over nothing is -inf, the minimum
 * inf, the mean NaN, the product 1. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    uint32_t axes = call->attrs->reduce.axes;
    int kind = call->attrs->reduce.kind;
    char text[STK_SHAPE_TEXT_BYTES];
    if (kind < 0 || kind >= STK_N_REDUCE) return stk_fail(STK_INVALID, "no such kind: %d", kind);
    if (!axes || (axes & ~stk_rule_all_axes(x.shape)))
        return stk_fail(STK_INVALID, "axes 0x%x are not those of x %s", axes, stk_shape_text(x.shape, text));
    if (x.dtype == STK_BOOL || (kind == STK_REDUCE_MEAN && !stk_dtype_is_float(x.dtype)))
        return stk_fail(STK_INVALID, "'%s' of x %s needs %s; cast first", stk_reduce_name(kind), stk_desc_text(x, text),
                        kind == STK_REDUCE_MEAN ? "a float dtype" : "numbers");
    stk_shape y = {.rank = 0};
    for (int i = 0; i < x.shape.rank; i++)
        if (!(axes >> i & 1)) y.dim[y.rank++] = x.shape.dim[i];
    if (call->attrs->reduce.wide && kind != STK_REDUCE_SUM && kind != STK_REDUCE_MEAN)
        return stk_fail(STK_INVALID, "'%s' is never wide: only sums and means are", stk_reduce_name(kind));
    stk_rule_out(call, 0, call->attrs->reduce.wide ? stk_rule_stat_dtype(x.dtype) : x.dtype, y);
    return STK_OK;
}

/* Repeats y, which lacks the reduced axes, over the shape of x. */
static stk_value spread(stk_value y, stk_shape x, uint32_t axes)
{
    stk_shape kept = x;
    for (int i = 0; i < x.rank; i++)
        if (axes >> i & 1) kept.dim[i] = 1;
    /* Axes in front come back by themselves. */
    bool leading = (axes & (axes + 1)) == 0;
    return stk_broadcast(leading ? y : stk_reshape(y, kept), x);
}

/* Elements that one result is made of; STK_INVALID where that is unknown. */
static stk_status count_reduced(stk_shape x, uint32_t axes, double *n)
{
    *n = 1;
    for (int i = 0; i < x.rank; i++) {
        if (!(axes >> i & 1)) continue;
        if (x.dim[i] == STK_ANY) {
            char text[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_INVALID, "the gradient of a mean over x %s needs a known batch",
                            stk_shape_text(x, text));
        }
        *n *= (double)x.dim[i];
    }
    return STK_OK;
}

/* Maxima, or minima, that occur several times share the gradient. */
static stk_value grad_max(stk_value x, stk_value y, stk_value dy, uint32_t axes)
{
    stk_shape shape = stk_value_shape(x);
    stk_dtype dtype = stk_value_dtype(x);
    stk_value is_max = stk_equal(x, spread(y, shape, axes));
    stk_value n_max = stk_reduce_sum(stk_cast_to(is_max, dtype), axes);
    return stk_select(is_max, spread(stk_div(dy, n_max), shape, axes), stk_rule_scalar(x.graph, dtype, 0));
}

/* The product of all others, times dy; also where one element is zero, or several are. */
static stk_value grad_prod(stk_value x, stk_value dy, uint32_t axes)
{
    stk_shape shape = stk_value_shape(x);
    stk_dtype dtype = stk_value_dtype(x);
    stk_value zero = stk_rule_scalar(x.graph, dtype, 0), one = stk_rule_scalar(x.graph, dtype, 1);
    stk_value is_zero = stk_equal(x, zero), filled = stk_select(is_zero, one, x);
    stk_value n_zero = spread(stk_reduce_sum(stk_cast_to(is_zero, dtype), axes), shape, axes);
    stk_value rest = spread(stk_mul(dy, stk_reduce_prod(filled, axes)), shape, axes);
    stk_value sole = stk_select(is_zero, stk_select(stk_equal(n_zero, one), rest, zero), zero);
    return stk_select(stk_equal(n_zero, zero), stk_div(rest, filled), sole);
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value x = call->in[0], dy = call->grad_out[0];
    if (!call->need[0] || dy.id < 0 || !stk_dtype_is_float(stk_value_dtype(x))) return STK_OK;
    uint32_t axes = call->attrs->reduce.axes;
    if (call->attrs->reduce.kind == STK_REDUCE_PROD) {
        call->grad_in[0] = grad_prod(x, dy, axes);
        return stk_rule_built(call->grad_in[0]);
    }
    if (call->attrs->reduce.kind == STK_REDUCE_MAX || call->attrs->reduce.kind == STK_REDUCE_MIN) {
        call->grad_in[0] = grad_max(x, call->out[0], dy, axes);
        return stk_rule_built(call->grad_in[0]);
    }
    if (call->attrs->reduce.kind == STK_REDUCE_MEAN) {
        double n;
        STK_RETURN_IF_ERROR(count_reduced(stk_value_shape(x), axes, &n));
        dy = stk_scale_by(dy, n > 0 ? 1 / n : 0);
    }
    call->grad_in[0] = spread(stk_cast_to(dy, stk_value_dtype(x)), stk_value_shape(x), axes);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " kind=%s axes=", stk_reduce_name(attrs->reduce.kind));
    const char *comma = "";
    for (int i = 0; i < STK_MAX_RANK; i++) {
        if (!(attrs->reduce.axes >> i & 1)) continue;
        stk_text_add(out, "%s%d", comma, i);
        comma = ",";
    }
    if (attrs->reduce.wide) stk_text_add(out, " wide");
}

const stk_op_rule stk_rule_reduce = {
    .name = "reduce",
    .kind = STK_KIND_REDUCE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

static stk_value add_reduce(int kind, stk_value x, uint32_t axes, bool wide)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    attrs.reduce.kind = kind;
    attrs.reduce.wide = wide;
    attrs.reduce.axes = axes ? axes : stk_rule_all_axes(stk_value_shape(x));
    if (!attrs.reduce.axes) return x; /* A scalar is its own sum, mean and maximum. */
    return stk_rule_add(STK_OP_reduce, &attrs, &x, 1);
}

stk_value stk_reduce_sum(stk_value x, uint32_t axes)
{
    return add_reduce(STK_REDUCE_SUM, x, axes, false);
}

stk_value stk_reduce_mean(stk_value x, uint32_t axes)
{
    return add_reduce(STK_REDUCE_MEAN, x, axes, false);
}

stk_value stk_reduce_max(stk_value x, uint32_t axes)
{
    return add_reduce(STK_REDUCE_MAX, x, axes, false);
}

stk_value stk_reduce_min(stk_value x, uint32_t axes)
{
    return add_reduce(STK_REDUCE_MIN, x, axes, false);
}

stk_value stk_reduce_prod(stk_value x, uint32_t axes)
{
    return add_reduce(STK_REDUCE_PROD, x, axes, false);
}

stk_value stk_reduce_sum_wide(stk_value x, uint32_t axes)
{
    stk_dtype dtype = stk_value_dtype(x);
    return add_reduce(STK_REDUCE_SUM, x, axes, dtype == STK_BF16 || dtype == STK_F16);
}
