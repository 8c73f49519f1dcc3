/* 3x3 convolutions of stride 1, and their gradients, with fewer multiplications: Winograd 1980, after Lavin & Gray
 * 2016. A tile is m x m outputs, which read n x n inputs, n = m + 2. F(2x2, 3x3) takes 16 multiplications where the
 * direct way has 36, F(4x4, 3x3) 36 where it has 144.
 *
 *     forward, data    inputs -> V [n n][tile][c_in]     weights -> U [n n][panel][c_in][columns]
 *                      M = V U, one product for each of n n positions; M -> outputs
 *     weights          inputs -> V, grad_dst -> D [n n][tile][c_out]; S += D' V; S [n n][c_out][c_in] -> grad_weight
 *
 * The transforms of 2 x 2 add, subtract and halve, so that results differ from the direct ones by rounding alone.
 * Those of 4 x 4 multiply, too, and lose two bits of 24 (docs/kernels.md); they are taken where a table or a
 * measurement says so. A number that is not finite reaches all outputs of its tiles, not only those that its taps
 * reach.
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WINOGRAD_H
#define STK_DEVICE_CPU_CONV_CONV2D_WINOGRAD_H

#include <stdbool.h>

#include "device/cpu/impl.h"
#include "device/cpu/onednn/onednn.h"

enum { STK_WINOGRAD_MOST_CHANNELS = 2048 };

/* Read-only after it is made. Inputs and outputs are those of the computation: for the gradient of data, inputs are
 * grad_dst; for that of weights, outputs are grad_dst. */
typedef struct stk_winograd {
    stk_conv_pass pass;
    int64_t n_images, in_h, in_w, c_in, out_h, out_w, c_out;
    int64_t pad_y, pad_x;              /* rows above and columns left of the image */
    int64_t side;                      /* of a tile, in outputs: 2 or 4 */
    int64_t tiles_y, tiles_x, n_tiles; /* n_tiles: of all images */
    int64_t block;                     /* tiles at a time */
    bool has_relu;
} stk_winograd;

typedef struct stk_winograd_fns {
    int rows; /* of a register tile: blocks are multiples of it */
    /* Scratch memory, in floats: of U or S, which all share; and of a block's V, with M or D. */
    int64_t (*shared_floats)(const stk_winograd *w);
    int64_t (*block_floats)(const stk_winograd *w);
    /* Forward and gradient of data, in two calls: U, then tiles [begin, end), a block at most, in memory `own`.
     * bias [c_out], or NULL: none. */
    void (*pack_share)(const stk_winograd *w, const void *weight, float *shared, int i_part, int n_parts);
    void (*run_block)(const stk_winograd *w, const void *x, const float *shared, const float *bias, void *y,
                      int64_t begin, int64_t end, float *own);
    /* Gradient of weights: for each block V and D of its tiles, then their product, which begins S where the block is
     * the first; after the last block, n_sums S, step floats apart, into grad_weight. */
    void (*spread_share)(const stk_winograd *w, const void *x, const void *grad_dst, int64_t begin, int64_t end,
                         float *own, int i_part, int n_parts);
    void (*multiply_share)(const stk_winograd *w, int64_t n, const float *own, float *shared, bool adds, int i_part,
                           int n_parts);
    void (*finish_share)(const stk_winograd *w, const float *shared, int n_sums, int64_t step, float *grad_weight,
                         int i_part, int n_parts);
} stk_winograd_fns;

/* Of tiles of 2 x 2 by the dtype of inputs, outputs and weights; of 4 x 4 in f32. Of the gradient of weights, sums and
 * results are f32. */
typedef struct stk_winograd_table {
    stk_winograd_fns fns[STK_N_DTYPES], of_4;
} stk_winograd_table;

STK_ISA_TABLE(stk_winograd_table, stk_winograd)

/* Pixels outside the image, of any float dtype. */
extern const float stk_winograd_zeros[STK_WINOGRAD_MOST_CHANNELS];

/* Products of a tile. */
static inline int64_t stk_winograd_positions(const stk_winograd *w)
{
    return (w->side + 2) * (w->side + 2);
}

/* Whether F(2x2, 3x3) is faster than the direct kernels: by shape alone. */
bool stk_conv_is_winograd(const stk_conv_shape *shape);
/* Of such a shape in f32 and 16-bit floats. */
bool stk_conv_winograd_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_winograd_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* F(4x4, 3x3), of f32. */
bool stk_conv_winograd_4_can(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_winograd_4_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif
