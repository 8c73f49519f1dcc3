/* A fused group, point by point: registers keep what memory of their dtype would. */
#include "graph/fused.h"
#include "device/reference/reduce.h"
#include "graph/dropout.h"

/* Dropout of the element at point i of the iteration space. */
static double drop(const stk_fused *program, const stk_fused_instr *instr, const stk_ref_number *reg, int64_t i)
{
    stk_shape shape = program->shape;
    int64_t n_columns = shape.rank ? stk_shape_product(shape, 1, shape.rank) : 1;
    uint64_t key = stk_dropout_key(reg[instr->operand[1]].i, instr->stream);
    bool keeps = stk_dropout_keeps(key, reg[instr->operand[2]].i, i / n_columns, i % n_columns, instr->value);
    return keeps ? reg[instr->operand[0]].f * (1 / (1 - instr->value)) : 0;
}

static stk_ref_number run_instr(const stk_fused *program, const stk_fused_instr *instr, const stk_ref_number *reg,
                                int64_t i)
{
    const int32_t *operand = instr->operand;
    switch (instr->op) {
    case STK_OP_unary: return stk_ref_unary(instr->kind, instr->dtype, reg[operand[0]]);
    case STK_OP_binary: return stk_ref_binary(instr->kind, instr->dtype, reg[operand[0]], reg[operand[1]]);
    case STK_OP_compare:
        return (stk_ref_number){.i = stk_ref_compare(instr->kind, instr->src_dtype, reg[operand[0]], reg[operand[1]])};
    case STK_OP_select: return reg[operand[0]].i ? reg[operand[1]] : reg[operand[2]];
    case STK_OP_cast: return stk_ref_cast(instr->dtype, instr->src_dtype, reg[operand[0]]);
    case STK_OP_constant: return stk_ref_from_double(instr->dtype, instr->value);
    case STK_OP_dropout: return (stk_ref_number){.f = drop(program, instr, reg, i)};
    default: return (stk_ref_number){.i = 0};
    }
}

static stk_dtype register_dtype(const stk_fused *program, int r)
{
    return r < program->n_in ? program->input[r].dtype : program->instr[r - program->n_in].dtype;
}

static stk_status run(const stk_op_call *call, const stk_kernel_args *args)
{
    const stk_fused *program = call->attrs->fused.program;
    const stk_fused_reduce *reduce = &program->reduce;
    stk_ref_number *reg = args->scratch;
    stk_ref_reducer reducer;
    int64_t n = stk_shape_count(program->shape);
    if (reduce->axes)
        stk_ref_reduce_start(&reducer, reduce->kind, reduce->axes,
                             (stk_tensor_desc){.dtype = register_dtype(program, reduce->src), .shape = program->shape},
                             call->out[program->n_out].shape, reg + program->n_in + program->n_instr);
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < program->n_in; j++) {
            int64_t offset = stk_ref_offset(program->shape, i, program->input[j].stride);
            reg[j] = stk_ref_get(program->input[j].dtype, args->in[j], offset);
        }
        for (int j = 0; j < program->n_instr; j++)
            reg[program->n_in + j] =
                stk_ref_round(program->instr[j].dtype, run_instr(program, &program->instr[j], reg, i));
        for (int j = 0; j < program->n_out; j++) {
            int r = program->out[j];
            stk_ref_put(register_dtype(program, r), args->out[j], i, reg[r]);
        }
        if (reduce->axes) stk_ref_reduce_take(&reducer, i, reg[reduce->src]);
    }
    if (reduce->axes) stk_ref_reduce_finish(&reducer, call->out[program->n_out].dtype, args->out[program->n_out]);
    return STK_OK;
}

static stk_status check(const stk_fused *program)
{
    for (int j = 0; j < program->n_instr; j++) {
        stk_op op = program->instr[j].op;
        bool known = op == STK_OP_unary || op == STK_OP_binary || op == STK_OP_compare || op == STK_OP_select ||
                     op == STK_OP_cast || op == STK_OP_constant || op == STK_OP_dropout;
        if (!known)
            return stk_fail(STK_UNSUPPORTED, "the reference device has no '%s' inside a fused group", stk_op_name(op));
        for (int i = 0; i < 3; i++)
            if (program->instr[j].operand[i] >= program->n_in + j)
                return stk_fail(STK_INTERNAL, "instruction %d of a fused group reads a later register", j);
    }
    return STK_OK;
}

stk_status stk_ref_fused_kernel(const stk_op_call *call, stk_kernel *out)
{
    const stk_fused *program = call->attrs->fused.program;
    STK_RETURN_IF_ERROR(check(program));
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run, 0, out));
    int64_t n = program->n_in + program->n_instr;
    if (program->reduce.axes) n += stk_shape_count(call->out[program->n_out].shape);
    out->scratch_bytes = (size_t)n * sizeof(stk_ref_number);
    return STK_OK;
}
