/* Every network that a recipe can name, once and in the order of docs/recipe.md: its descriptor is
 * stk_model_class_<name>, at the end of its file. See docs/adding-a-model.md. `layers` is in src/recipe/build_layers.c.
 */
#ifndef STK_NN_MODEL_LIST_H
#define STK_NN_MODEL_LIST_H

#include "nn/model_class.h"

#define STK_MODEL_LIST(X)                                                                                              \
    X(mlp)                                                                                                             \
    X(cnn)                                                                                                             \
    X(resnet18)                                                                                                        \
    X(resnet34)                                                                                                        \
    X(resnet50)                                                                                                        \
    X(resnet101)                                                                                                       \
    X(vgg16)                                                                                                           \
    X(mobilenet_v2)                                                                                                    \
    X(vit)                                                                                                             \
    X(unet)                                                                                                            \
    X(cnn3d)                                                                                                           \
    X(autoencoder)                                                                                                     \
    X(wide_and_deep)                                                                                                   \
    X(bert)                                                                                                            \
    X(gpt2)                                                                                                            \
    X(lstm)                                                                                                            \
    X(gru)                                                                                                             \
    X(layers)

#define X(model) extern const stk_model_class stk_model_class_##model;
STK_MODEL_LIST(X)
#undef X

#endif
