/* Layers, networks and losses by the text that recipes have for them, on values of any graph: for programs that are
 * given them as settings, and for other languages. docs/recipe.md has all of them and their keys. stk_optimizer_parse
 * (stoker/train/optim.h) is the same for optimisers.
 *
 * Text is YAML, or JSON, which is YAML too: "relu", "{dense: 10}", "[{conv2d: {filters: 32}}, relu]". Parameters are
 * named as in a recipe, within the graph's scopes. What is wrong with the text is the graph's error, with line and
 * column; what does not fit the value is the layer's, as ever. Paths in it are taken as they are. Threads: one at a
 * time for each graph.
 */
#ifndef STOKER_NN_PARSE_H
#define STOKER_NN_PARSE_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A layer, or a list of them, on x. {from: NAME} goes on from an input of the graph. */
STK_API stk_value stk_layers_parse(stk_value x, const char *text);
/* A network by name, as a recipe's `model`: "resnet18", "{vit: {size: tiny}}". n_classes, from 1, for those that have
 * classes and do not say how many; else it is not read. */
STK_API stk_value stk_network_parse(stk_value x, int64_t n_classes, const char *text);
/* A loss of output [N,...] and target, f32 [N]: "mse", "{cross_entropy: {smoothing: 0.1}}". *weight, which may be NULL,
 * becomes what each sample counts for, f32 [N], where the loss says so (stk_model_loss_weight); else no value. Losses
 * of networks of their own ('masked_lm') are refused. */
STK_API stk_value stk_loss_parse(stk_value output, stk_value target, const char *text, stk_value *weight);

#ifdef __cplusplus
}
#endif
#endif
