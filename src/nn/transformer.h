/* What transformers share: dense layers whose weights begin normal, embeddings of positions. See
 * stoker/nn/transformer.h.
 */
#ifndef STK_NN_TRANSFORMER_H
#define STK_NN_TRANSFORMER_H

#include "graph/query.h"
#include "nn/layer.h"
#include "settings/schema.h"
#include "stoker/nn/transformer.h"

/* Of BERT's and GPT-2's first weights. */
#define STK_TRANSFORMER_DEVIATION 0.02

/* A dense layer whose weight [units,C] is normal with that deviation, the bias 0. */
stk_value stk_normal_dense(stk_value x, int64_t units, const char *name);
/* The embeddings of tokens by a new weight "<name>.weight" [vocabulary,width], which goes to *weight. */
stk_value stk_embed_words(stk_value tokens, const stk_transformer_config *config, const char *name, stk_value *weight);
/* A new weight [rows,width] "<name>.weight", and x [N,T,width] plus its first T rows. */
stk_value stk_add_positions(stk_value x, int64_t rows, const char *name);
/* The mean over each sample's positions that count of the cross-entropy of the logits x weight': x [N,T,C], weight
 * [vocabulary,C], targets i32 [N,T] -> [N]. */
stk_value stk_tied_loss(stk_value x, stk_value weight, stk_value targets, double smoothing);
/* The hidden width of blocks on x [N,T,C]. */
int64_t stk_block_hidden(const stk_block_config *config, stk_value x);

/* A size by its name, and what STK_TRANSFORMER_KEYS say beyond it. */
stk_status stk_transformer_configure(const stk_yaml_node *settings,
                                     bool (*get_size)(const char *size, stk_transformer_config *out),
                                     stk_transformer_config *out);
#define STK_TRANSFORMER_KEYS                                                                                           \
    {.name = "length",                                                                                                 \
     .type = STK_KEY_INT,                                                                                              \
     .least = 1,                                                                                                       \
     .most = 1 << 24,                                                                                                  \
     .doc = "Tokens of a sample, which the data must have. Default: as many as the data has."},                        \
        {.name = "vocabulary",                                                                                         \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 2147483647,                                                                                           \
         .doc = "Rows of the embedding; tokens are below it. Default: as the data's tokenizer or the note next to "    \
                "its files says; else 30522 for bert, 50257 for gpt2."},                                               \
        {.name = "positions",                                                                                          \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 1 << 24,                                                                                              \
         .doc = "The longest sequence that it could take. Default: 512 for bert, 1024 for gpt2."},                     \
        {.name = "layers", .type = STK_KEY_INT, .least = 1, .most = 1000, .doc = "Default: as size says."},            \
        {.name = "heads", .type = STK_KEY_INT, .least = 1, .most = 1000, .doc = "Default: as size says."},             \
        {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6, .doc = "Default: as size says."},              \
        {.name = "hidden", .type = STK_KEY_INT, .least = 1, .most = 1e7, .doc = "Default: four times the width."},     \
    {                                                                                                                  \
        .name = "dropout", .type = STK_KEY_REAL, .least = 0, .most = 0.99,                                             \
        .doc = "Of embeddings, attention and what blocks add. Default: 0.1 for bert, 0 for gpt2."                      \
    }

/* False, with an error kept, unless the configuration makes a network for tokens i32 [N,T]. */
bool stk_transformer_check(const stk_layer *layer, const stk_transformer_config *config);

#endif
