/* How long a product or a convolution takes in oneDNN alone: on tensors in the formats that oneDNN likes best, which
 * nobody had to make, and products also by its sgemm; whichever is fastest. What a network that keeps everything in
 * those formats, and does nothing else, could come to.
 */
#ifndef STK_BENCH_ONEDNN_ALONE_H
#define STK_BENCH_ONEDNN_ALONE_H

#include "device/device.h"

/* True for the ops that have such a time: matmul, the convolutions, and the losses over a vocabulary, of
 * which it is the time of their products. */
bool onednn_alone_has(stk_op op);
/* The fastest of the calls that fit into `seconds`, two at least, each way in turn, by as many threads as OpenMP gives
 * the caller; memory comes from device. What oneDNN has not in 16 bits on this processor is done in f32, and *is_f32 is
 * set. STK_UNSUPPORTED where oneDNN does not have it at all. */
stk_status onednn_alone_time(stk_device *device, const stk_op_call *call, double seconds, double *ns, bool *is_f32);

#endif
