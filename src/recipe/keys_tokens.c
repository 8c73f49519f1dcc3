/* Keys of networks for samples of tokens: BERT, GPT-2, and the text classifiers lstm and gru. */
#include "recipe/keys.h"

#define SHAPE_OF_IT                                                                                                    \
    {.name = "length",                                                                                                 \
     .type = STK_KEY_INT,                                                                                              \
     .least = 1,                                                                                                       \
     .most = 1 << 24,                                                                                                  \
     .doc = "Tokens of a sample, which the data must have. Default: as many as the data has."},                        \
        {.name = "vocabulary",                                                                                         \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 2147483647,                                                                                           \
         .doc = "Rows of the embedding; tokens are below it. Default: as the data's tokenizer or the note beside "     \
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

static const char *const bert_words[] = {"base", "mini", "tiny", NULL};
const stk_key stk_bert_keys[] = {
    {.name = "size",
     .type = STK_KEY_WORD,
     .words = bert_words,
     .default_value = "base",
     .doc = "12 layers of 768, 4 of 256, 2 of 128."},
    {.name = "classes",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "How many classes there are. Default: as many as the data has."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that sequences are filled up with, which nothing attends to. Default: all tokens count."},
    SHAPE_OF_IT,
    END};
static const char *const gpt2_words[] = {"124m", "mini", NULL};
const stk_key stk_gpt2_keys[] = {{.name = "size",
                                  .type = STK_KEY_WORD,
                                  .words = gpt2_words,
                                  .default_value = "124m",
                                  .doc = "12 layers of 768, 6 of 192."},
                                 SHAPE_OF_IT,
                                 END};

const stk_key stk_recurrent_keys[] = {
    {.name = "vocabulary",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .required = true,
     .doc = "Rows of the embedding; tokens are below it."},
    {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6, .default_value = "128", .doc = "Of the embedding."},
    {.name = "units",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .default_value = "128",
     .doc = "Of the state, in each direction."},
    {.name = "layers",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 100,
     .default_value = "1",
     .doc = "One upon the other."},
    {.name = "bidirectional",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "A second state, from the end to the start."},
    {.name = "dropout",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 0.99,
     .default_value = "0",
     .doc = "Of embeddings, between layers, and of the last state."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that sequences are filled up with, at which the state stays as it is. Default: all count."},
    {.name = "classes",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "How many classes there are. Default: as many as the data has."},
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1 << 24,
     .doc = "Tokens of a sample, which the data must have. Default: as many as the data has."},
    END};
