/* What a call of one of the convolutions is, for all ways to compute it. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_SHAPE_H
#define STK_DEVICE_CPU_CONV_CONV2D_SHAPE_H

#include "device/cpu/impl.h"
#include "device/cpu/onednn/onednn.h"
#include "graph/op.h"

/* Of any of the six ops. */
stk_conv_shape stk_conv_shape_of(const stk_op_call *call);
/* Of images, 1x1 in one group, nothing padded; any stride. */
bool stk_conv_is_point(const stk_conv_shape *shape);

#endif
