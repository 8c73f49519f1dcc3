/* Transformers: attention over a sequence, blocks of it, BERT and GPT-2.
 *
 * Sequences are [N,T,C], N samples of T positions; tokens are i32 [N,T]. Layers and errors are as in stoker/nn/nn.h.
 * The parameters of BERT and GPT-2 have the names and layouts of Hugging Face's, so that its weights can be taken over
 * name by name. Weights begin normal with deviation 0.02 and biases with 0. Threads: one at a time for each model.
 */
#ifndef STOKER_NN_TRANSFORMER_H
#define STOKER_NN_TRANSFORMER_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys and values of positions before, kept between runs in variables of the layer, "cached_keys" and "cached_values"
 * [N,rows,heads,C/heads]. What a run is given is written at `position`, an i64 scalar; without one (id -1) at 0, where
 * it sees itself only. Two graphs of one engine, one for a prompt and one for the tokens after it, share the variables.
 */
typedef struct stk_attend_cache {
    int64_t rows; /* of all positions that there may be */
    stk_value position;
} stk_attend_cache;

typedef struct stk_attend_config {
    int heads;                     /* C must divide by it */
    bool causal;                   /* position t sees positions 0 to t only */
    double dropout;                /* of the weights after the softmax, in training */
    const stk_value *mask;         /* bool [N,S]: the positions that count as keys; NULL: all */
    const stk_attend_cache *cache; /* for generation: causal, without mask and dropout, N known; NULL: none */
} stk_attend_config;
/* softmax(q k' / sqrt(C / heads)) v for each head: q [N,T,C], k and v [N,S,C] -> [N,T,C]. No parameters. The weights
 * are never stored (stk_attention_raw). Vaswani et al. 2017. */
STK_API stk_value stk_attend(stk_value q, stk_value k, stk_value v, const stk_attend_config *config);

/* Self-attention of x [N,T,C] with its four dense layers "query", "key", "value" and "output". */
typedef struct stk_self_attention_config {
    stk_attend_config attend;
    const char *name;
} stk_self_attention_config;
STK_API stk_value stk_self_attention(stk_value x, const stk_self_attention_config *config);

typedef struct stk_block_config {
    stk_attend_config attend; /* its dropout is of the weights only */
    int64_t hidden;           /* width of the layer in between; 0: 4 C */
    double dropout;           /* of what each half adds */
    double eps;               /* of the layer norms; 0: 1e-12 (encoder), 1e-5 (decoder) */
    double deviation;         /* of the weights of layers that write into the sum of a decoder; 0: 0.02 */
} stk_block_config;
/* x [N,T,C] -> [N,T,C]: attention, then two dense layers with the exact GELU between them; each half is added to its
 * input, and the sum is normalised. Devlin et al. 2019. Names within the scope: attention.self.query, ...,
 * output.LayerNorm. */
STK_API stk_value stk_encoder_block(stk_value x, const stk_block_config *config);
/* The same, causal, with each half's input normalised instead, and the GELU by tanh. Radford et al. 2019. Names within
 * the scope: ln_1, attn.c_attn, attn.c_proj, ln_2, mlp.c_fc, mlp.c_proj; weights of c_* are stored [in,out]. */
STK_API stk_value stk_decoder_block(stk_value x, const stk_block_config *config);

typedef struct stk_transformer_config {
    int layers, heads;
    int64_t width, hidden; /* hidden 0: 4 width */
    int64_t vocabulary;
    int64_t positions; /* the longest sequence */
    double dropout;    /* of embeddings, attention's weights and what blocks add */
    double smoothing;  /* of the loss of GPT-2: the share of each target that goes to all words alike */
} stk_transformer_config;

/* "tiny", "mini", "base": 2, 4 and 12 layers of 128, 256 and 768 (Turc et al. 2019); 30522 words, 512 positions,
 * dropout 0.1. False: there is no such size. */
STK_API bool stk_bert_size(const char *size, stk_transformer_config *out);
/* Classes of sequences: tokens [N,T] -> logits [N,classes], from the first position. mask as in stk_attend_config.
 * Devlin et al. 2019. BERT-base has 109,483,778 parameters with two classes. */
STK_API stk_value stk_bert(stk_value tokens, const stk_value *mask, const stk_transformer_config *config,
                           int64_t classes);

/* A masked language model's loss: tokens [N,T], some of them hidden, targets i32 [N,T] what they were, and -100 where
 * none is -> [N], the mean cross-entropy of a sample's targets; stk_count_targets goes with it. The head is a dense
 * layer, GELU, a layer norm, the embedding's weight and a bias, of the names of BertForMaskedLM. See
 * stoker/data/masked.h.
 */
STK_API stk_value stk_bert_masked(stk_value tokens, const stk_value *mask, stk_value targets,
                                  const stk_transformer_config *config);

/* "mini", "124m": 6 and 12 layers of 192 and 768; 50257 words, 1024 positions, no dropout. False: there is no such
 * size. */
STK_API bool stk_gpt2_size(const char *size, stk_transformer_config *out);
/* A language model's loss: tokens [N,T], targets i32 [N,T], the token after each -> [N], the mean cross-entropy of a
 * sample's positions, but those with a target of -100. The head is the embedding's weight, and its logits are never
 * stored (stk_linear_cross_entropy_raw). Radford et al. 2019. GPT-2's 124m has 124,439,808 parameters. */
STK_API stk_value stk_gpt2(stk_value tokens, stk_value targets, const stk_transformer_config *config);
/* How many of a sample's targets count: i32 [N,T] -> f32 [N], without those of -100. As stk_model_loss_weight it makes
 * every target count alike, whatever sample it is in, as torch's cross_entropy with ignore_index does. */
STK_API stk_value stk_count_targets(stk_value targets);

/* The same network's logits, for generation: tokens [N,T] -> [M,vocabulary], at row_ids i32 [M] of the N * T positions
 * (sample n's position t is n * T + t). With a cache the tokens are those from its position on. Dropout and smoothing
 * of the configuration do not count. */
STK_API stk_value stk_gpt2_logits(stk_value tokens, stk_value row_ids, const stk_transformer_config *config,
                                  const stk_attend_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
