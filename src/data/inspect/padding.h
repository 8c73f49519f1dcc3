/* How much of an epoch's batches is padding. */
#ifndef STK_DATA_INSPECT_PADDING_H
#define STK_DATA_INSPECT_PADDING_H

#include "data/dataset/dataset.h"

/* The share of the elements of padded fields that are not samples', in the first million samples of epoch 0; -1 where
 * nothing is padded, lengths are not known, or memory is short. */
double stk_padding_share(const stk_dataset *dataset);

#endif
