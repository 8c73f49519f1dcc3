/* A group of element-wise ops, and of a reduction of one of its values, as one node; pass_fuse makes it, after all
 * gradients. */
#include "graph/fused.h"
#include "ops/rule.h"

enum { MOST_OUT = 16 };

static stk_dtype dtype_of(const stk_fused *program, int32_t r)
{
    return r < program->n_in ? program->input[r].dtype : program->instr[r - program->n_in].dtype;
}

static stk_status infer_reduced(stk_op_call *call)
{
    const stk_fused *program = call->attrs->fused.program;
    const stk_fused_reduce *reduce = &program->reduce;
    stk_shape y = {.rank = 0};
    if (!reduce->axes) return STK_OK;
    if (reduce->src < 0 || reduce->src >= program->n_in + program->n_instr ||
        (reduce->axes & ~stk_rule_all_axes(program->shape)) || reduce->kind < 0 || reduce->kind >= STK_REDUCE_PROD)
        return stk_fail(STK_INVALID, "kind %d of register %d over axes 0x%x cannot be reduced", reduce->kind,
                        (int)reduce->src, reduce->axes);
    stk_dtype dtype = dtype_of(program, reduce->src);
    if (!stk_dtype_is_float(dtype))
        return stk_fail(STK_INVALID, "groups reduce floats alone, not %s", stk_dtype_name(dtype));
    for (int i = 0; i < program->shape.rank; i++)
        if (!(reduce->axes >> i & 1)) y.dim[y.rank++] = program->shape.dim[i];
    stk_rule_out(call, call->n_out++, reduce->wide ? stk_rule_stat_dtype(dtype) : dtype, y);
    return STK_OK;
}

static stk_status infer(stk_op_call *call)
{
    const stk_fused *program = call->attrs->fused.program;
    if (!program) return stk_fail(STK_INVALID, "the node has no program");
    int n_reduced = program->reduce.axes ? 1 : 0;
    if (program->n_in != call->n_in || program->n_out + n_reduced < 1 || program->n_out + n_reduced > MOST_OUT)
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
        stk_rule_out(call, i, dtype_of(program, r), program->shape);
    }
    return infer_reduced(call);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    const stk_fused *program = call->attrs->fused.program;
    int n_each = program->n_instr + (program->reduce.axes ? 1 : 0);
    out->flops = (double)n_each * stk_rule_count(program->shape);
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
    if (program && program->reduce.axes) stk_text_add(out, "%s%s", comma, stk_reduce_name(program->reduce.kind));
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
