/* Opening the source of stk_dataset_ragged. */
#ifndef STK_DATA_SOURCE_RAGGED_H
#define STK_DATA_SOURCE_RAGGED_H

#include "data/source/source.h"
#include "stoker/data/ragged.h"

stk_status stk_source_open_ragged(int64_t n_samples, const stk_ragged_field *fields, int n_fields, stk_source **out);

#endif
