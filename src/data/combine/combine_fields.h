/* The fields of a source of data sets, out of theirs: joined by zip, else the same in all of them. */
#ifndef STK_DATA_COMBINE_COMBINE_FIELDS_H
#define STK_DATA_COMBINE_COMBINE_FIELDS_H

#include "data/dataset/dataset.h"

typedef struct stk_combine_fields {
    signed char (*place)[STK_MAX_FIELDS]; /* [child][its field]: which field of the source it is */
} stk_combine_fields;

/* Sets the fields and classes of source, whose class is set. Free *out with stk_combine_fields_free, after an error
 * too. */
stk_status stk_combine_fields_make(stk_source *source, bool join, stk_dataset *const *children, int n_children,
                                   stk_combine_fields *out);
void stk_combine_fields_free(stk_combine_fields *fields);

#endif
