/* The layer attention_block of a recipe: a block of BERT, or of ViT where norms come first. */
#include "nn/layer_list.h"
#include "stoker/nn/vit.h"

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_block_config config = {.attend = {.heads = (int)stk_yaml_int(s, "heads", 1),
                                          .causal = stk_yaml_bool(s, "causal"),
                                          .dropout = stk_yaml_real(s, "dropout", 0)},
                               .hidden = stk_yaml_int(s, "hidden", 0),
                               .dropout = stk_yaml_real(s, "dropout", 0)};
    /* A scope of its own, or the names of a second block would be those of the first. */
    stk_layer layer;
    if (!stk_layer_begin(&layer, *x, "attention_block", NULL)) return STK_OK;
    stk_scope_push(x->graph, stk_layer_own_name(&layer));
    *x = stk_yaml_bool(s, "norm_first") ? stk_prenorm_block(*x, &config) : stk_encoder_block(*x, &config);
    stk_scope_pop(layer.graph);
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_COUNT("heads", 1e4, "Heads, which divide the width."),
    {.name = "causal",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether positions see only those before."},
    {.name = "hidden", .type = STK_KEY_INT, .least = 1, .most = 1e7, .doc = "The width in between. Default: 4 times."},
    {.name = "dropout", .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 0.99, .doc = "Of both halves."},
    {.name = "norm_first",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Norms before the halves, as in GPT-2 and ViT; otherwise behind their sums, as in BERT."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_attention_block = {
    .key = {.name = "attention_block",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Self-attention and two dense layers, each added to its input; Vaswani et al. 2017."},
    .build = build,
};
