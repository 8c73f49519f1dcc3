/* Element-wise ops alone: each is a group of one instruction, so that there is one implementation of them. */
#include "device/cpu/fused/program.h"

enum { MOST_IN = 3 };

uint64_t stk_element_bits(stk_isa isa, stk_dtype dtype, double value)
{
    bool is_half = dtype == STK_BF16 || dtype == STK_F16;
    float narrow = (float)value;
    const void *from = is_half ? (const void *)&narrow : (const void *)&value;
    uint64_t bits = 0;
    stk_element_of(isa)->cast[is_half ? STK_F32 : STK_F64][dtype](1, &bits, &from);
    return bits;
}

static stk_status make_single(const stk_cpu_device *device, const stk_op_call *call, stk_fused_instr instr,
                              stk_kernel *out)
{
    stk_fused_input input[MOST_IN] = {{0}};
    stk_shape shape = call->out[0].shape;
    int32_t result = call->n_in;
    if (call->n_in > MOST_IN) return stk_cpu_unsupported(call);
    instr.op = call->op;
    instr.dtype = call->out[0].dtype;
    for (int i = 0; i < 3; i++)
        instr.operand[i] = i < call->n_in ? i : -1;
    for (int i = 0; i < call->n_in; i++) {
        int64_t step = 1;
        input[i].dtype = call->in[i].dtype;
        /* The scalars of dropout keep strides of 0. */
        for (int axis = shape.rank - 1; axis >= 0 && stk_shape_equal(call->in[i].shape, shape); axis--) {
            input[i].stride[axis] = step;
            step *= shape.dim[axis];
        }
    }
    stk_fused group = {
        .shape = shape, .n_in = call->n_in, .n_instr = 1, .n_out = 1, .input = input, .instr = &instr, .out = &result};
    return stk_fused_program_kernel(device, &group, out);
}

stk_status stk_cpu_fused_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_fused_program_kernel(device, call->attrs->fused.program, out));
    return STK_OK;
}

stk_status stk_cpu_constant_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_single(device, call, (stk_fused_instr){.value = call->attrs->constant.value}, out);
}

static stk_status make_element(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_fused_instr instr = {.kind = call->attrs->element.kind, .src_dtype = call->in[0].dtype};
    return make_single(device, call, instr, out);
}

stk_status stk_cpu_unary_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_element(device, call, out);
}

stk_status stk_cpu_binary_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_element(device, call, out);
}

stk_status stk_cpu_compare_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_element(device, call, out);
}

stk_status stk_cpu_select_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_single(device, call, (stk_fused_instr){.src_dtype = call->in[1].dtype}, out);
}

stk_status stk_cpu_cast_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make_single(device, call, (stk_fused_instr){.src_dtype = call->in[0].dtype}, out);
}

stk_status stk_cpu_dropout_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_fused_instr instr = {
        .src_dtype = call->in[0].dtype, .value = call->attrs->dropout.rate, .stream = call->attrs->dropout.stream};
    return make_single(device, call, instr, out);
}
