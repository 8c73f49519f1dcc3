/* The reference device: plain C, one element after the other, obviously right. It is the oracle for every other device
 * and does not try to be fast.
 *
 * Two ways to write a kernel:
 *   wide   all inputs become doubles in scratch, the body computes doubles, which are rounded into the outputs;
 *   plain  the body reads and writes memory as it is: for integers and for moving elements.
 */
#ifndef STK_DEVICE_REFERENCE_REFERENCE_H
#define STK_DEVICE_REFERENCE_REFERENCE_H

#include "base/error.h"
#include "device/device.h"
#include "device/reference/element.h"

enum { STK_REF_MOST = 8 }; /* inputs, and outputs, of a wide kernel */

typedef struct stk_ref_state stk_ref_state;
typedef stk_status (*stk_ref_wide)(const stk_op_call *call, const double *const *in, double *const *out);
typedef stk_status (*stk_ref_plain)(const stk_op_call *call, const stk_kernel_args *args);

/* Make a kernel that keeps a copy of the call. in_place: bits of inputs whose memory output 0 may use. */
stk_status stk_ref_make_wide(const stk_op_call *call, stk_ref_wide body, stk_kernel *out);
stk_status stk_ref_make_plain(const stk_op_call *call, stk_ref_plain body, uint32_t in_place, stk_kernel *out);

/* Bits of the inputs that have as many bytes as output i. */
uint32_t stk_ref_same_bytes(const stk_op_call *call, int i);

/* Element strides of a row-major shape. */
void stk_ref_strides(stk_shape shape, int64_t stride[STK_MAX_RANK]);
/* Where element number i of a shape lies under other strides. */
int64_t stk_ref_offset(stk_shape shape, int64_t i, const int64_t stride[STK_MAX_RANK]);

/* One function for each op that is computed; the table is in reference.c. */
#define X(name) stk_status stk_ref_##name##_kernel(const stk_op_call *call, stk_kernel *out);
STK_KERNEL_OP_LIST(X)
#undef X

#endif
