/* The shapes that a data set's batches have: what the data alone decide. Threads: any. */
#ifndef STK_TRAIN_BATCH_SHAPES_H
#define STK_TRAIN_BATCH_SHAPES_H

#include "data/dataset/dataset.h"
#include "stoker/data/ragged.h"

/* Whether a field's length is each batch's own. */
static inline bool stk_shapes_is_open(const stk_dataset *dataset, int i_field)
{
    return dataset->pad[i_field].on && !dataset->pad[i_field].fixed;
}

/* Whether batches of the data set differ in rows or in length. */
bool stk_shapes_vary(const stk_dataset *dataset);

/* The rows and the length of the largest batch. A length of 0: no field has an open side. */
void stk_shapes_largest(const stk_dataset *dataset, int64_t *rows, int64_t *length);

#endif
