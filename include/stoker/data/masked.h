/* Masked language modelling: some tokens of each sample are hidden, and what they were is to be guessed. Devlin et al.
 * 2019, section 3.1.
 *
 * Works on whole batches of the fields "tokens" and "targets", both i32 [length], as stk_dataset_tokens gives them,
 * after all stages. Each token is chosen with probability `share`, but never one that the tokenizer calls special. Of
 * those chosen 80 % become the mask token, 10 % any token of the vocabulary, and 10 % stay; `targets` becomes what they
 * were, and -100 everywhere else. Draws are keyed by (seed, epoch, sample), so that they do not depend on threads or on
 * the size of a batch, and a sample is masked again in each epoch.
 */
#ifndef STOKER_DATA_MASKED_H
#define STOKER_DATA_MASKED_H

#include "stoker/data/dataset.h"
#include "stoker/data/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tokenizer: borrowed; it needs a token [MASK] or <mask>. 0 < share < 1; 0.15 is usual. Errors as of all calls on a
 * data set. */
STK_API void stk_dataset_mask_tokens(stk_dataset *dataset, const stk_tokenizer *tokenizer, double share);

#ifdef __cplusplus
}
#endif
#endif
