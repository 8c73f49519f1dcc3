/* Layers beyond nn.h's: norms over groups, larger images, further activations and pools. Names, errors and threads as
 * in nn.h.
 */
#ifndef STOKER_NN_LAYERS_H
#define STOKER_NN_LAYERS_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Over the positions and the channels of a group, [N,...,C] in `groups` groups of neighbouring channels: Wu & He 2018.
 * As many groups as channels are an instance norm, with scale and bias. eps 0: 1e-5, as PyTorch's. */
typedef struct stk_group_norm_config {
    int64_t groups;
    double eps;
    const char *name;
} stk_group_norm_config;
STK_API stk_value stk_group_norm(stk_value x, int64_t groups);
STK_API stk_value stk_group_norm_with(stk_value x, const stk_group_norm_config *config);

/* Volumes [N,D,H,W,C], larger by the stride. Weight [C,k,k,k,filters]. */
STK_API stk_value stk_conv3d_transpose_with(stk_value x, const stk_conv2d_transpose_config *config);

/* [N,H,W,C] -> [N,H*scale,W*scale,C], or all three sides of a volume; without parameters. Nearest: each pixel scale x
 * scale times. Linear: PyTorch's bilinear (of volumes trilinear) without aligned corners. */
STK_API stk_value stk_upsample_nearest(stk_value x, int scale);
STK_API stk_value stk_upsample_linear(stk_value x, int scale);

/* [N,...,C] -> [N,C], the largest of all positions. */
STK_API stk_value stk_global_max_pool(stk_value x);
/* [N,T,C] -> [N,C] too, the mean of sequences, images and volumes. */
STK_API stk_value stk_global_mean(stk_value x);

STK_API stk_value stk_relu6(stk_value x);                    /* min(max(x, 0), 6) */
STK_API stk_value stk_leaky_relu(stk_value x, double slope); /* x below 0 times slope; Maas et al. 2013 */
STK_API stk_value stk_elu(stk_value x);                      /* exp(x) - 1 below 0; Clevert et al. 2016 */
STK_API stk_value stk_hard_sigmoid(stk_value x);             /* relu6(x + 3) / 6 */
STK_API stk_value stk_hard_swish(stk_value x);               /* x * hard_sigmoid(x); Howard et al. 2019 */
STK_API stk_value stk_softplus(stk_value x);                 /* log(1 + exp(x)) */

/* x [N,T,C] plus a weight "<name>.weight" [rows,C] that is learned, normal with deviation 0.02, its first T rows. */
STK_API stk_value stk_positions(stk_value x, int64_t rows, const char *name);

#ifdef __cplusplus
}
#endif
#endif
