/* Recurrent layers: LSTM (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000) and GRU (Cho et al.
 * 2014, with the reset gate behind the product, as PyTorch and cuDNN have it).
 *
 * Sequences are [N,T,C]. Parameters have PyTorch's names, shapes, order of gates (LSTM: i, f, g, o; GRU: r, z, n) and
 * first content, uniform within 1 / sqrt(units): weight_ih_l0 [gates * units, C], weight_hh_l0, bias_ih_l0, bias_hh_l0,
 * and the same with _reverse. All steps of a direction are one node, so that compiling takes the same time whatever the
 * length is; devices without a kernel for it have each step as nodes of its own, 4,096 at most. Lengths are fixed.
 * Threads: one at a time for each model.
 */
#ifndef STOKER_NN_RECURRENT_H
#define STOKER_NN_RECURRENT_H

#include "stoker/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_recurrent_kind { STK_RECURRENT_LSTM, STK_RECURRENT_GRU } stk_recurrent_kind;

typedef struct stk_recurrent_config {
    stk_recurrent_kind kind;
    int64_t units;         /* of the state, in each direction */
    int layers;            /* one upon the other; 0: 1 */
    bool bidirectional;    /* a second state from the last step to the first; its outputs stand behind the first's */
    double dropout;        /* of the outputs of all layers but the last, in training */
    const stk_value *mask; /* bool [N,T]: steps that count, as of padded sequences (PyTorch's packed ones): others leave
                              the state as it is, and their outputs are 0; NULL: all */
    const char *name;      /* NULL: "lstm", "gru" */
} stk_recurrent_config;

/* x [N,T,C] -> outputs of the last layer [N,T,D], D being units or twice as many. *last, may be NULL: its states after
 * the last step that counts of each direction [N,D]. */
STK_API stk_value stk_recurrent(stk_value x, const stk_recurrent_config *config, stk_value *last);
/* One layer, one direction. */
STK_API stk_value stk_lstm(stk_value x, int64_t units);
STK_API stk_value stk_gru(stk_value x, int64_t units);

/* Classes of texts: tokens i32 [N,T] -> logits [N,classes]: embeddings, recurrent layers, dropout, and a dense layer on
 * the last states. Names: embedding.weight, lstm.weight_ih_l0, ..., dense.weight. */
typedef struct stk_recurrent_classifier {
    stk_recurrent_config recurrent;
    int64_t vocabulary, width; /* rows of the embedding, and their length */
    double dropout;            /* of embeddings and last states */
} stk_recurrent_classifier;
STK_API stk_value stk_classify_recurrent(stk_value tokens, const stk_recurrent_classifier *config, int64_t classes);

#ifdef __cplusplus
}
#endif
#endif
