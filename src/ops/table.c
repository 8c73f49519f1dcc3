/* Rules and names by number, all expanded from the lists. */
#include "ops/rule.h"

const stk_op_rule *stk_op_get_rule(stk_op op)
{
    static const stk_op_rule *const rules[] = {
#define X(name) &stk_rule_##name,
        STK_OP_LIST(X)
#undef X
    };
    return (unsigned)op < STK_N_OPS ? rules[op] : NULL;
}

const char *stk_op_name(stk_op op)
{
    static const char *const names[] = {
#define X(name) #name,
        STK_OP_LIST(X)
#undef X
    };
    return (unsigned)op < STK_N_OPS ? names[op] : "?";
}

bool stk_op_takes_tf32(stk_op op)
{
    switch (op) {
    case STK_OP_matmul:
    case STK_OP_conv2d:
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv2d_grad_weight:
    case STK_OP_conv3d:
    case STK_OP_conv3d_grad_data:
    case STK_OP_conv3d_grad_weight:
    case STK_OP_linear_cross_entropy:
    case STK_OP_linear_cross_entropy_grad: return true;
    default: return false;
    }
}

const char *stk_unary_name(int kind)
{
    static const char *const names[] = {
#define X(name) #name,
        STK_UNARY_LIST(X)
#undef X
    };
    return kind >= 0 && kind < STK_N_UNARY ? names[kind] : "?";
}

const char *stk_binary_name(int kind)
{
    static const char *const names[] = {
#define X(name) #name,
        STK_BINARY_LIST(X)
#undef X
    };
    return kind >= 0 && kind < STK_N_BINARY ? names[kind] : "?";
}

const char *stk_compare_name(int kind)
{
    static const char *const names[] = {
#define X(name) #name,
        STK_COMPARE_LIST(X)
#undef X
    };
    return kind >= 0 && kind < STK_N_COMPARE ? names[kind] : "?";
}

const char *stk_reduce_name(int kind)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "prod"};
    return kind >= 0 && kind < STK_N_REDUCE ? names[kind] : "?";
}

stk_cost stk_op_cost(const stk_op_call *call)
{
    stk_cost cost = {.bytes = stk_rule_bytes(call)};
    const stk_op_rule *rule = stk_op_get_rule(call->op);
    if (rule && rule->cost) {
        rule->cost(call, &cost);
        return cost;
    }
    for (int i = 0; i < call->n_out; i++)
        cost.flops += stk_rule_count(call->out[i].shape);
    return cost;
}
