/* Networks by name beyond nn.h's: from an input to logits, or to another image. Each is one readable file in src/nn.
 * Names of parameters are torchvision's where it has the network; errors and threads as in nn.h.
 */
#ifndef STOKER_NN_NETWORKS_H
#define STOKER_NN_NETWORKS_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Simonyan & Zisserman 2015: 138,357,544 parameters with 224 x 224 pixels, 1000 classes and hidden 4096. Its dense
 * layers take the last 7 x 7 pixels as torchvision's do, channels first. Images that give other sizes are meaned
 * instead, and the first dense layer is [hidden,512]. */
STK_API stk_value stk_vgg16(stk_value x, int64_t hidden, int64_t classes);

/* Sandler et al. 2018, width 1: 3,504,872 parameters with 1000 classes. The cifar stem has stride 1 in the first
 * convolution and the second stage. */
STK_API stk_value stk_mobilenet_v2(stk_value x, int64_t classes, stk_resnet_stem stem);

/* Ronneberger et al. 2015, with padding and batch norm: [N,H,W,C] -> [N,H,W,classes]. H and W divide by 2^(n_widths -
 * 1). Channels at each depth are widths; 64, 128, 256, 512, 1024 are the paper's. */
STK_API stk_value stk_unet(stk_value x, const int64_t *widths, int n_widths, int64_t classes);

/* Volumes or clips [N,D,H,W,C] -> logits: for each width a 3x3x3 convolution, batch norm and ReLU, with 2x2x2 max
 * pooling between them, sides of 1 left as they are; global mean, dense. */
STK_API stk_value stk_cnn3d(stk_value x, const int64_t *widths, int n_widths, int64_t classes);

/* Images [N,H,W,C] -> the same shape, through `code` numbers: 3x3 convolutions of stride 2 to the widths, dense, and
 * back by transposed convolutions. H and W divide by 2^n_widths. Hinton & Salakhutdinov 2006, with convolutions. */
STK_API stk_value stk_autoencoder(stk_value x, const int64_t *widths, int n_widths, int64_t code);

/* Cheng et al. 2016, for tables: a linear model of all features next to a network of embeddings [rows[i],width] and
 * numbers. ids: i32 [N] each; numbers f32 [N,K], or none (id -1). -> [N,outputs] */
STK_API stk_value stk_wide_and_deep(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers,
                                    int64_t width, const int64_t *hidden, int n_hidden, int64_t outputs);

#ifdef __cplusplus
}
#endif
#endif
