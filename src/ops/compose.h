/* Pieces of the compositions that rules have for devices without a kernel of the op (stk_op_rule.decompose). Sums,
 * normalisations and losses are computed in f32 (f64 for f64) and rounded once at the end, as the ops themselves do.
 */
#ifndef STK_OPS_COMPOSE_H
#define STK_OPS_COMPOSE_H

#include "ops/rule.h"

/* x in the dtype of its statistics. */
stk_value stk_compose_wide(stk_value x);
/* Sets made[i], rounded to what output i has. */
void stk_compose_set(const stk_decompose_call *call, int i, stk_value x);
/* y, which lacks those axes of the shape, with 1 in their place: it spreads over the shape by itself. */
stk_value stk_compose_keep(stk_value y, stk_shape shape, uint32_t axes);
/* Over those axes, which stay with size 1; none: x itself. A mean of nothing is 0. */
stk_value stk_compose_sum(stk_value x, uint32_t axes);
stk_value stk_compose_mean(stk_value x, uint32_t axes);
stk_value stk_compose_max(stk_value x, uint32_t axes);
/* Over all axes but the last: [C] of x [..., C]. */
stk_value stk_compose_sum_rows(stk_value x);
/* All axes but the last. */
uint32_t stk_compose_rows(stk_shape shape);
stk_value stk_compose_constant(stk_value like, double value);
/* x where the condition holds, else the value. */
stk_value stk_compose_where(stk_value condition, stk_value x, double value);
/* max(0, x) of a sum that `on` says to be followed by that. */
stk_value stk_compose_relu(stk_value x, bool on);
/* i32 numbers as they are; the run fails where one is not in [0, n), as it does in gather. */
stk_value stk_compose_check(stk_value numbers, int64_t n);
/* The same of one i64 number, as i32. */
stk_value stk_compose_check_position(stk_value position, int64_t n);
/* Elements start .. start + size - 1 along the axis; and the opposite: zeros before and behind. */
stk_value stk_compose_cut(stk_value x, int axis, int64_t start, int64_t size);
stk_value stk_compose_pad(stk_value x, int axis, int64_t low, int64_t high, double value);

#endif
