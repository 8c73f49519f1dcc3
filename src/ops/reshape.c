/* The same elements in the same order under another shape. Where the batch is unknown, the open side may be a multiple
 * of it, as of all rows [N*T,C] of [N,T,C]; the other sides must divide. */
#include "ops/rule.h"

/* The product of the known dimensions, the largest number where it is larger; *n_any counts the others. */
static int64_t known_product(stk_shape shape, int *n_any)
{
    int64_t n = 1;
    *n_any = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == STK_ANY)
            ++*n_any;
        else if (__builtin_mul_overflow(n, shape.dim[i], &n))
            return INT64_MAX;
    }
    return n;
}

static bool can_become(stk_shape x, stk_shape to)
{
    int any_x, any_to;
    int64_t n_x = known_product(x, &any_x), n_to = known_product(to, &any_to);
    if (any_x != any_to) return false;
    if (n_x == n_to) return true;
    return any_x == 1 && n_x > 0 && n_to > 0 && (n_x % n_to == 0 || n_to % n_x == 0);
}

static stk_status infer(stk_op_call *call)
{
    stk_shape to = call->attrs->shape;
    stk_tensor_desc x = call->in[0];
    STK_RETURN_IF_ERROR(stk_desc_check(stk_desc_make(x.dtype, to)));
    if (!can_become(x.shape, to)) {
        char tx[STK_SHAPE_TEXT_BYTES], ty[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "x %s cannot become %s: the numbers of elements differ",
                        stk_shape_text(x.shape, tx), stk_shape_text(to, ty));
    }
    stk_rule_out(call, 0, x.dtype, to);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    call->grad_in[0] = stk_reshape(call->grad_out[0], stk_value_shape(call->in[0]));
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

const stk_op_rule stk_rule_reshape = {
    .name = "reshape",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
};

/* Fills the one unknown dimension of *shape with what is left of x, whose dimensions are all known. */
static void fill_rest(stk_shape x, stk_shape *shape)
{
    int n_any;
    int64_t rest = known_product(*shape, &n_any), n = stk_shape_count(x);
    if (n_any != 1 || rest == 0 || n % rest) return; /* The rule says what is wrong. */
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] == STK_ANY) shape->dim[i] = n / rest;
}

stk_value stk_reshape(stk_value x, stk_shape shape)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    if (shape.rank < 0 || shape.rank > STK_MAX_RANK)
        return stk_rule_fail(x.graph, stk_fail(STK_INVALID, "reshape: rank %d is out of range", shape.rank));
    attrs.shape = stk_desc_make(STK_F32, shape).shape;
    if (stk_shape_known(stk_value_shape(x))) fill_rest(stk_value_shape(x), &attrs.shape);
    return stk_rule_add(STK_OP_reshape, &attrs, &x, 1);
}
