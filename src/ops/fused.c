/* A group of element-wise ops as one node; pass_fuse makes it, after all gradients. */
#include "graph/fused.h"
#include "ops/rule.h"

enum { MOST_OUT = 16 };

static stk_status infer(stk_op_call *call)
{
    const stk_fused *program = call->attrs->fused.program;
    if (!program) return stk_fail(STK_INVALID, "the node has no program");
    if (program->n_in != call->n_in || program->n_out < 1 || program->n_out > MOST_OUT)
        return stk_fail(STK_INVALID,
                        "the program has %d inputs and %d outputs, the node %d inputs (at most %d outputs)",
                        program->n_in, program->n_out, call->n_in, MOST_OUT);
    for (int i = 0; i < program->n_in; i++)
        if (program->input[i].dtype != call->in[i].dtype)
            return stk_fail(STK_INVALID, "input %d is %s, but the program reads %s", i,
                            stk_dtype_name(call->in[i].dtype), stk_dtype_name(program->input[i].dtype));
    call->n_out = program->n_out;
    for (int i = 0; i < program->n_out; i++) {
        int r = program->out[i];
        if (r < 0 || r >= program->n_in + program->n_instr)
            return stk_fail(STK_INVALID, "output %d is no register of the program", i);
        stk_dtype dtype = r < program->n_in ? program->input[r].dtype : program->instr[r - program->n_in].dtype;
        stk_rule_out(call, i, dtype, program->shape);
    }
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    const stk_fused *program = call->attrs->fused.program;
    out->flops = (double)program->n_instr * stk_rule_count(program->shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    const stk_fused *program = attrs->fused.program;
    const char *comma = " {";
    for (int i = 0; program && i < program->n_instr; i++) {
        const stk_fused_instr *instr = &program->instr[i];
        const char *name = stk_op_name(instr->op);
        if (instr->op == STK_OP_unary) name = stk_unary_name(instr->kind);
        if (instr->op == STK_OP_binary) name = stk_binary_name(instr->kind);
        if (instr->op == STK_OP_compare) name = stk_compare_name(instr->kind);
        stk_text_add(out, "%s%s", comma, name);
        comma = " ";
    }
    stk_text_add(out, "}");
}

const stk_op_rule stk_rule_fused = {
    .name = "fused",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = MOST_OUT, /* at most; infer says how many */
    .infer = infer,
    .cost = cost,
    .print = print,
};
