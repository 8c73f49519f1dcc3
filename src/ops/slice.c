/* Every step-th element from start to stop on each axis. An axis of unknown size can only be kept whole. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], y = x;
    for (int i = 0; i < x.shape.rank; i++) {
        int64_t start = call->attrs->slice.start[i], stop = call->attrs->slice.stop[i];
        int64_t step = call->attrs->slice.step[i], size = x.shape.dim[i];
        char text[STK_SHAPE_TEXT_BYTES];
        if (start < 0 || step < 1 || stop < start || (size != STK_ANY && start > size))
            return stk_fail(STK_INVALID, "%lld:%lld:%lld is no range on axis %d of x %s", (long long)start,
                            (long long)stop, (long long)step, i, stk_shape_text(x.shape, text));
        if (size == STK_ANY) {
            if (start != 0 || step != 1 || stop != INT64_MAX)
                return stk_fail(STK_INVALID, "axis %d of x %s is of unknown size and can only be kept whole", i,
                                stk_shape_text(x.shape, text));
            continue;
        }
        if (stop > size) stop = size;
        y.shape.dim[i] = stop > start ? (stop - start - 1) / step + 1 : 0;
    }
    call->out[0] = y;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = *call->attrs;
    attrs.shape = stk_value_shape(call->in[0]);
    call->grad_in[0] = stk_rule_add(STK_OP_slice_grad, &attrs, call->grad_out, 1);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    /* Only what is taken is read. */
    out->bytes = 2 * stk_rule_count(call->out[0].shape) * (double)stk_dtype_bytes(call->out[0].dtype);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    for (int i = 0; i < STK_MAX_RANK && attrs->slice.step[i]; i++) {
        stk_text_add(out, i ? ",%lld:" : " range=%lld:", (long long)attrs->slice.start[i]);
        if (attrs->slice.stop[i] != INT64_MAX) stk_text_add(out, "%lld", (long long)attrs->slice.stop[i]);
        if (attrs->slice.step[i] != 1) stk_text_add(out, ":%lld", (long long)attrs->slice.step[i]);
    }
}

const stk_op_rule stk_rule_slice = {
    .name = "slice",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_slice(stk_value x, const int64_t *start, const int64_t *stop, const int64_t *step)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    stk_shape shape = stk_value_shape(x);
    for (int i = 0; i < shape.rank; i++) {
        attrs.slice.start[i] = start[i];
        /* Longer steps take the first one, as one over the whole axis does; kernels multiply them. */
        bool is_past = shape.dim[i] != STK_ANY && step[i] > shape.dim[i];
        attrs.slice.step[i] = is_past ? (shape.dim[i] > 1 ? shape.dim[i] : 1) : step[i];
        /* STK_ANY means the end, and all ends are written alike so that equal slices have equal attributes. */
        bool to_end = stop[i] == STK_ANY || (shape.dim[i] != STK_ANY && stop[i] >= shape.dim[i]);
        attrs.slice.stop[i] = to_end ? INT64_MAX : stop[i];
    }
    return stk_rule_add(STK_OP_slice, &attrs, &x, 1);
}
