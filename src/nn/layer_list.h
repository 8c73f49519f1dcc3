/* Every layer that a recipe's `layers:` can name, once and in the order of docs/recipe.md: its descriptor is
 * stk_layer_class_<name>, at the end of its file. See docs/adding-a-layer.md.
 *
 * Those that name, join or hold other layers are parts of a list, and onnx and plugin need what lies above: residual,
 * and all from block on, are in src/recipe.
 */
#ifndef STK_NN_LAYER_LIST_H
#define STK_NN_LAYER_LIST_H

#include "nn/layer_class.h"

#define STK_LAYER_LIST(X)                                                                                              \
    X(dense)                                                                                                           \
    X(conv2d)                                                                                                          \
    X(depthwise_conv2d)                                                                                                \
    X(conv2d_transpose)                                                                                                \
    X(conv3d)                                                                                                          \
    X(batch_norm)                                                                                                      \
    X(relu)                                                                                                            \
    X(gelu)                                                                                                            \
    X(silu)                                                                                                            \
    X(tanh)                                                                                                            \
    X(sigmoid)                                                                                                         \
    X(softmax)                                                                                                         \
    X(max_pool)                                                                                                        \
    X(avg_pool)                                                                                                        \
    X(max_pool3d)                                                                                                      \
    X(avg_pool3d)                                                                                                      \
    X(global_pool)                                                                                                     \
    X(flatten)                                                                                                         \
    X(dropout)                                                                                                         \
    X(residual)                                                                                                        \
    X(conv3d_transpose)                                                                                                \
    X(upsample)                                                                                                        \
    X(layer_norm)                                                                                                      \
    X(group_norm)                                                                                                      \
    X(global_max_pool)                                                                                                 \
    X(embedding)                                                                                                       \
    X(positions)                                                                                                       \
    X(attention_block)                                                                                                 \
    X(relu6)                                                                                                           \
    X(leaky_relu)                                                                                                      \
    X(elu)                                                                                                             \
    X(hard_sigmoid)                                                                                                    \
    X(hard_swish)                                                                                                      \
    X(softplus)                                                                                                        \
    X(scale)                                                                                                           \
    X(reshape)                                                                                                         \
    X(block)                                                                                                           \
    X(name)                                                                                                            \
    X(from)                                                                                                            \
    X(add)                                                                                                             \
    X(mul)                                                                                                             \
    X(concat)                                                                                                          \
    X(onnx)                                                                                                            \
    X(plugin)

#define X(layer) extern const stk_layer_class stk_layer_class_##layer;
STK_LAYER_LIST(X)
#undef X

#endif
