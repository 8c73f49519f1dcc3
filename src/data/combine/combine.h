/* A source of whole data sets: its record i is a sample of one of them, or of zip one of each, as their own order and
 * stages give it in that epoch. */
#ifndef STK_DATA_COMBINE_COMBINE_H
#define STK_DATA_COMBINE_COMBINE_H

#include "data/dataset/dataset.h"

typedef enum stk_combine_kind {
    STK_COMBINE_CONCATENATE,
    STK_COMBINE_ZIP,
    STK_COMBINE_INTERLEAVE,
    STK_COMBINE_MIX
} stk_combine_kind;

typedef struct stk_combine {
    stk_combine_kind kind;
    int64_t cycle, block;  /* of interleave */
    const double *weights; /* of mix, [n_children]; borrowed for the call */
    bool stop_at_empty;
    uint64_t seed;
} stk_combine;

/* Takes the children, [n_children], once it succeeds; they are without errors and batches. */
stk_status stk_source_open_combined(const stk_combine *how, stk_dataset *const *children, int n_children,
                                    stk_source **out);

#endif
