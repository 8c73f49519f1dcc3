/* Element-wise ops outside of groups, constants and broadcasts: groups of one. */
#include <string.h>

#include "device/gpu/ops/print.h"

static void set_strides(stk_fused_input *input, stk_shape space, stk_shape shape)
{
    int64_t stride = 1;
    for (int a = shape.rank - 1, b = space.rank - 1; a >= 0; a--, b--) {
        input->stride[b] = shape.dim[a] == 1 ? 0 : stride;
        stride *= shape.dim[a];
    }
}

/* One instruction, or none: a copy. */
static void make(gpu_maker *m, const stk_fused_instr *instr)
{
    const stk_op_call *call = m->call;
    stk_fused_input input[3];
    int32_t out = instr ? call->n_in : 0;
    memset(input, 0, sizeof(input));
    for (int j = 0; j < call->n_in; j++) {
        input[j].dtype = call->in[j].dtype;
        set_strides(&input[j], call->out[0].shape, call->in[j].shape);
    }
    stk_fused program = {.shape = call->out[0].shape,
                         .n_in = call->n_in,
                         .n_instr = instr != NULL,
                         .n_out = 1,
                         .input = input,
                         .instr = instr,
                         .out = &out};
    gpu_make_group(m, &program);
}

static stk_fused_instr instruction(const gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_fused_instr instr = {.op = call->op, .dtype = call->out[0].dtype, .operand = {-1, -1, -1}};
    instr.src_dtype = call->n_in ? call->in[0].dtype : instr.dtype;
    for (int j = 0; j < call->n_in && j < 3; j++)
        instr.operand[j] = j;
    return instr;
}

static void make_element(gpu_maker *m)
{
    stk_fused_instr instr = instruction(m);
    instr.kind = m->call->attrs->element.kind;
    make(m, &instr);
}

void gpu_make_unary(gpu_maker *m)
{
    make_element(m);
}

void gpu_make_binary(gpu_maker *m)
{
    make_element(m);
}

void gpu_make_compare(gpu_maker *m)
{
    make_element(m);
}

void gpu_make_select(gpu_maker *m)
{
    stk_fused_instr instr = instruction(m);
    make(m, &instr);
}

void gpu_make_cast(gpu_maker *m)
{
    stk_fused_instr instr = instruction(m);
    make(m, &instr);
}

void gpu_make_constant(gpu_maker *m)
{
    stk_fused_instr instr = instruction(m);
    instr.value = m->call->attrs->constant.value;
    make(m, &instr);
}

void gpu_make_dropout(gpu_maker *m)
{
    stk_fused_instr instr = instruction(m);
    instr.value = m->call->attrs->dropout.rate;
    instr.stream = m->call->attrs->dropout.stream;
    make(m, &instr);
}

void gpu_make_broadcast(gpu_maker *m)
{
    make(m, NULL);
}

void gpu_make_fused(gpu_maker *m)
{
    gpu_make_group(m, m->call->attrs->fused.program);
}
