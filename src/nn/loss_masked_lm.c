/* What hidden tokens were (Devlin et al. 2019): stk_bert_masked builds it with the network. */
#include "nn/loss.h"

const stk_loss_class stk_loss_class_masked_lm = {
    .key = {.name = "masked_lm",
            .type = STK_KEY_NONE,
            .doc = "Of bert: what hidden tokens were (data.train.masked); Devlin et al. 2019."},
    .compares = STK_LOSS_TOKENS,
    .network = "bert",
};
