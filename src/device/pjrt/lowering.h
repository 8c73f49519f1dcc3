/* How an op is written in StableHLO: a function for each, in a file of its family in lower/, and a line in the list.
 *
 * A lowering gets the call with all shapes known and the values of its inputs; it adds operations to the module and
 * sets out[i], whose type must be that of output i. An op that is not in the list is made of others (pass decompose),
 * or refused by name. What a list of StableHLO's operations cannot say of a call is STK_UNSUPPORTED. docs/tpu.md.
 */
#ifndef STK_DEVICE_PJRT_LOWERING_H
#define STK_DEVICE_PJRT_LOWERING_H

#include "device/pjrt/module.h"

#define PJRT_LOWERING_LIST(X)                                                                                          \
    X(constant)                                                                                                        \
    X(unary)                                                                                                           \
    X(binary)                                                                                                          \
    X(compare)                                                                                                         \
    X(select)                                                                                                          \
    X(cast)                                                                                                            \
    X(broadcast)                                                                                                       \
    X(reshape)                                                                                                         \
    X(transpose)                                                                                                       \
    X(slice)                                                                                                           \
    X(pad)                                                                                                             \
    X(concat)                                                                                                          \
    X(reduce)                                                                                                          \
    X(matmul)                                                                                                          \
    X(conv2d)                                                                                                          \
    X(conv2d_grad_data)                                                                                                \
    X(conv2d_grad_weight)                                                                                              \
    X(conv3d)                                                                                                          \
    X(conv3d_grad_data)                                                                                                \
    X(conv3d_grad_weight)                                                                                              \
    X(gather)                                                                                                          \
    X(scatter_add)                                                                                                     \
    X(iota)                                                                                                            \
    X(dropout)                                                                                                         \
    X(accumulate)

/* accumulate gets a third input, what the micro-batch before left, where there is any: n_in is then 3. */
typedef stk_status (*pjrt_lowering)(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                    pjrt_value *out);
#define X(name)                                                                                                        \
    stk_status pjrt_lower_##name(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,              \
                                 pjrt_value *out);
PJRT_LOWERING_LIST(X)
#undef X

/* What ranks do together (stk_op_is_of_ranks). */
stk_status pjrt_lower_ranks(pjrt_module *m, const stk_op_call *call, int n_ranks, const pjrt_value *in,
                            pjrt_value *out);

/* NULL: the op has none. */
pjrt_lowering pjrt_find_lowering(stk_op op);

#endif
