/* A source that stands for data that are not there: fields and classes as they were, every record blank. Networks can
 * be built for it and images transformed as its stages say; there is nothing in it to learn from. Threads: any. */
#ifndef STK_DATA_SOURCE_BLANK_H
#define STK_DATA_SOURCE_BLANK_H

#include "data/source/source.h"

typedef struct stk_blank_field {
    char name[32];
    stk_field_type type;   /* arrays: all sides known */
    int64_t height, width; /* of encoded images: what a record looks like; 0: not known, and reading one fails */
} stk_blank_field;

/* classes: [n_classes] names, copied; NULL: none. */
stk_status stk_source_open_blank(int64_t n_records, const stk_blank_field *fields, int n_fields,
                                 const char *const *classes, int64_t n_classes, stk_source **out);

#endif
