/* Random numbers by key: uniform, and normal by Box & Muller 1958. The formula is in graph/random.h. */
#include <math.h>

#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc desc = stk_desc_make(call->attrs->dtype, call->attrs->shape);
    double a = call->attrs->random.a, b = call->attrs->random.b;
    STK_RETURN_IF_ERROR(stk_rule_need("seed", call->in[0], STK_I64, stk_rule_scalar_shape()));
    STK_RETURN_IF_ERROR(stk_rule_need("sample", call->in[1], STK_I64, stk_rule_scalar_shape()));
    STK_RETURN_IF_ERROR(stk_desc_check(desc));
    STK_RETURN_IF_ERROR(stk_rule_need_float("the result", desc));
    char text[STK_SHAPE_TEXT_BYTES];
    if (desc.shape.rank < 1) return stk_fail(STK_INVALID, "%s has no rows [N,...]", stk_desc_text(desc, text));
    if (!isfinite(a) || !isfinite(b) || (call->attrs->random.normal ? b < 0 : b < a))
        return stk_fail(STK_INVALID,
                        call->attrs->random.normal ? "mean %g and deviation %g make no distribution"
                                                   : "there is no range from %g to %g",
                        a, b);
    call->out[0] = desc;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 30 * stk_rule_count(call->out[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, attrs->random.normal ? " normal=%g,%g" : " uniform=%g,%g", attrs->random.a, attrs->random.b);
    stk_text_add(out, " stream=%lld", (long long)attrs->random.stream);
}

const stk_op_rule stk_rule_random = {
    .name = "random",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
    .stops_gradient = true,
};

static stk_value add_random(stk_value seed, stk_value sample, stk_dtype dtype, stk_shape shape, stk_attrs attrs)
{
    attrs.dtype = dtype;
    attrs.shape = shape;
    return stk_rule_add(STK_OP_random, &attrs, (stk_value[]){seed, sample}, 2);
}

stk_value stk_random_uniform(stk_value seed, stk_value sample, stk_dtype dtype, stk_shape shape, double low,
                             double high, int64_t stream)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.random.a = low;
    attrs.random.b = high;
    attrs.random.stream = stream;
    return add_random(seed, sample, dtype, shape, attrs);
}

stk_value stk_random_normal(stk_value seed, stk_value sample, stk_dtype dtype, stk_shape shape, double mean,
                            double deviation, int64_t stream)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.random.a = mean;
    attrs.random.b = deviation;
    attrs.random.stream = stream;
    attrs.random.normal = 1;
    return add_random(seed, sample, dtype, shape, attrs);
}
