/* Between devices: what is asked of one device alone. A copy from another device comes by way of the host's memory, and
 * sums over devices are made of such copies: engine/dispatch.h, passes/place.c. */
#include <string.h>

#include "device/gpu/ops/box.h"
#include "device/gpu/ops/print.h"

enum { MOST_SUMMANDS = STK_MOST_DEVICES };

void gpu_make_copy_to(gpu_maker *m)
{
    gpu_box box = {.unit_bytes = stk_dtype_bytes(m->call->out[0].dtype)};
    gpu_add_axis(&box, stk_shape_count(m->call->in[0].shape), 1, 1);
    gpu_copy_box(m, box, 0, 0);
    gpu_copies(m, 0, 0);
    m->in_place[0] = 1;
}

static int add_instr(stk_fused *program, stk_fused_instr *instr, stk_op op, stk_dtype dtype, int a, int b)
{
    stk_fused_instr *to = &instr[program->n_instr];
    *to = (stk_fused_instr){.op = op, .dtype = dtype, .src_dtype = STK_F32, .operand = {a, b, -1}};
    return program->n_in + program->n_instr++;
}

/* A group whose outputs are all the same sum, rounded once. */
void gpu_make_all_reduce(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_fused_input input[MOST_SUMMANDS];
    stk_fused_instr instr[MOST_SUMMANDS + 3];
    int32_t out[MOST_SUMMANDS];
    stk_dtype dtype = call->in[0].dtype;
    if (call->n_in > MOST_SUMMANDS || !stk_dtype_is_float(dtype)) {
        gpu_refuse(m);
        return;
    }
    stk_fused program = {.shape = {.rank = 1, .dim = {stk_shape_count(call->in[0].shape)}},
                         .n_in = call->n_in,
                         .n_out = call->n_out,
                         .input = input,
                         .instr = instr,
                         .out = out};
    int sum = 0;
    memset(input, 0, sizeof(input));
    for (int j = 0; j < call->n_in; j++)
        input[j] = (stk_fused_input){.dtype = dtype, .stride = {1}};
    for (int j = 1; j < call->n_in; j++) {
        sum = add_instr(&program, instr, STK_OP_binary, STK_F32, sum, j);
        instr[program.n_instr - 1].kind = STK_BINARY_add;
    }
    if (call->attrs->all_reduce.mean) {
        int n = add_instr(&program, instr, STK_OP_constant, STK_F32, -1, -1);
        instr[program.n_instr - 1].value = call->n_in;
        sum = add_instr(&program, instr, STK_OP_binary, STK_F32, sum, n);
        instr[program.n_instr - 1].kind = STK_BINARY_div;
    }
    sum = add_instr(&program, instr, STK_OP_cast, dtype, sum, -1);
    for (int i = 0; i < call->n_out; i++)
        out[i] = sum;
    gpu_make_group(m, &program);
}
