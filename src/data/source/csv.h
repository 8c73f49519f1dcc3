/* The source of stoker/data/csv.h inside: csv.c reads rows, csv_fields.c finds out which columns make which field. */
#ifndef STK_DATA_SOURCE_CSV_H
#define STK_DATA_SOURCE_CSV_H

#include "base/name_table.h"
#include "data/codec/csv.h"
#include "data/source/shards.h"
#include "data/source/source.h"
#include "stoker/data/csv.h"

/* The columns of one field. */
typedef struct stk_csv_column_set {
    stk_csv_kind kind;
    stk_dtype dtype;
    int *column; /* [n_columns] */
    int n_columns;
    size_t place;        /* of its elements */
    void *default_value; /* one element for missing cells; NULL: none */
    char **class_name;   /* of classes, sorted once all are known */
    int64_t n_classes, classes_room;
    stk_name_table seen; /* until then: the classes */
    bool classes_given;
} stk_csv_column_set;

typedef struct stk_csv_source {
    stk_source base;
    stk_shards shards;
    stk_cells cells;
    char **column_name; /* [n_columns] */
    int n_columns;
    stk_csv_column_set set[STK_MAX_FIELDS]; /* by field */
    size_t elements_bytes;
    char *missing;
    size_t n_missing;
} stk_csv_source;

typedef struct stk_csv_row {
    stk_span *cell; /* [n_columns] */
    char *elements;
} stk_csv_row;

stk_status stk_source_open_csv(const char *const *paths, int n_paths, const stk_csv_config *config, stk_source **out);
/* Reads a row into scratch[0] and [1]. */
stk_status stk_csv_read_row(const stk_csv_source *source, int64_t i_record, stk_scratch *scratch, stk_csv_row *row);

/* The columns' names from the first row of each file, which then does not count, or "0", "1", ... */
stk_status stk_csv_read_header(stk_csv_source *source, bool none);
stk_status stk_csv_set_fields(stk_csv_source *source, const stk_csv_config *config);
/* Reads all rows where classes are not given. */
stk_status stk_csv_find_classes(stk_csv_source *source);
/* -1: there is none of that name. */
int32_t stk_csv_find_class(const stk_csv_column_set *set, stk_span name);
void stk_csv_free_set(stk_csv_column_set *set);

#endif
