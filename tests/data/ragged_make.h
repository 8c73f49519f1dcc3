/* A ragged data set whose values tell where they come from: sample i is 100 * i, 100 * i + 1, ... Include after
 * cmocka.h. */
#ifndef TESTS_DATA_RAGGED_MAKE_H
#define TESTS_DATA_RAGGED_MAKE_H

#include "data/dataset/dataset.h"
#include "stoker/data/ragged.h"

enum { MOST_RAGGED = 5000, MOST_VALUES = 200000 };

static int32_t ragged_values[MOST_VALUES], ragged_ids[MOST_RAGGED];
static int64_t ragged_offsets[MOST_RAGGED + 1];

/* Fields "tokens" i32 [?] and "id" i32 []. The arrays are used again by the next call. */
static inline stk_dataset *make_ragged(const int64_t *lengths, int64_t n)
{
    for (int64_t i = 0, at = 0; i < n; i++) {
        ragged_ids[i] = (int32_t)i;
        for (int64_t k = 0; k < lengths[i]; k++)
            ragged_values[at++] = (int32_t)(100 * i + k);
        ragged_offsets[i + 1] = at;
    }
    const stk_ragged_field fields[] = {
        {.name = "tokens", .dtype = STK_I32, .values = ragged_values, .offsets = ragged_offsets},
        {.name = "id", .dtype = STK_I32, .values = ragged_ids}};
    return stk_dataset_ragged(n, fields, 2);
}

#endif
