#include "ops/compose.h"

stk_value stk_compose_wide(stk_value x)
{
    return stk_cast_to(x, stk_rule_stat_dtype(stk_value_dtype(x)));
}

void stk_compose_set(const stk_decompose_call *call, int i, stk_value x)
{
    call->made[i] = stk_cast_to(x, stk_value_dtype(call->out[i]));
}

stk_value stk_compose_keep(stk_value y, stk_shape shape, uint32_t axes)
{
    for (int i = 0; i < shape.rank; i++)
        if (axes >> i & 1) shape.dim[i] = 1;
    return stk_reshape(y, shape);
}

stk_value stk_compose_sum(stk_value x, uint32_t axes)
{
    return axes ? stk_compose_keep(stk_reduce_sum(x, axes), stk_value_shape(x), axes) : x;
}

stk_value stk_compose_max(stk_value x, uint32_t axes)
{
    return axes ? stk_compose_keep(stk_reduce_max(x, axes), stk_value_shape(x), axes) : x;
}

stk_value stk_compose_mean(stk_value x, uint32_t axes)
{
    stk_shape shape = stk_value_shape(x);
    double n = 1;
    for (int i = 0; i < shape.rank; i++)
        if (axes >> i & 1) n *= (double)shape.dim[i];
    return stk_scale_by(stk_compose_sum(x, axes), n > 0 ? 1 / n : 0);
}

uint32_t stk_compose_rows(stk_shape shape)
{
    return (1u << (shape.rank - 1)) - 1u;
}

stk_value stk_compose_sum_rows(stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    return stk_reshape(stk_compose_sum(x, stk_compose_rows(shape)), STK_SHAPE(shape.dim[shape.rank - 1]));
}

stk_value stk_compose_constant(stk_value like, double value)
{
    return stk_rule_scalar(like.graph, stk_value_dtype(like), value);
}

stk_value stk_compose_where(stk_value condition, stk_value x, double value)
{
    return stk_select(condition, x, stk_compose_constant(x, value));
}

stk_value stk_compose_relu(stk_value x, bool on)
{
    return on ? stk_relu(x) : x;
}

stk_value stk_compose_check(stk_value numbers, int64_t n)
{
    return stk_gather(stk_iota(numbers.graph, STK_I32, STK_SHAPE(n), 0), numbers, 0);
}

stk_value stk_compose_check_position(stk_value position, int64_t n)
{
    return stk_compose_check(stk_cast_to(position, STK_I32), n);
}

stk_value stk_compose_cut(stk_value x, int axis, int64_t start, int64_t size)
{
    int64_t first[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
    for (int i = 0; i < STK_MAX_RANK; i++) {
        stop[i] = STK_ANY;
        step[i] = 1;
    }
    first[axis] = start;
    stop[axis] = start + size;
    return stk_slice(x, first, stop, step);
}

stk_value stk_compose_pad(stk_value x, int axis, int64_t low, int64_t high, double value)
{
    int64_t before[STK_MAX_RANK] = {0}, behind[STK_MAX_RANK] = {0};
    if (!low && !high) return x;
    before[axis] = low;
    behind[axis] = high;
    return stk_pad(x, before, behind, value);
}
