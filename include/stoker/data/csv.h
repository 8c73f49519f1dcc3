/* Tables as a source: CSV and TSV files, a sample being a row. RFC 4180: cells may be quoted, and then hold delimiters,
 * line ends and, doubled, quotes. Not here: guessing the types of columns.
 *
 * The call returns a new data set, never NULL; an error stays inside for stk_dataset_status. What is given is borrowed
 * until the call returns. Paths may be patterns and addresses, .gz files are unpacked, and where rows begin is found
 * once and kept, as for stk_dataset_tfrecord. Errors of rows name file, line and column. Threads: as for every data
 * set.
 */
#ifndef STOKER_DATA_CSV_H
#define STOKER_DATA_CSV_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_csv_kind {
    STK_CSV_NUMBER, /* dtype; several columns become one array */
    STK_CSV_TEXT,   /* u8 [?], the bytes of the cell; for stk_tokenize */
    STK_CSV_CLASS   /* i32 []: the number of the cell's text among the classes, sorted by bytes */
} stk_csv_kind;

typedef struct stk_csv_field {
    const char *name;           /* of the field, as "label" */
    const char *const *columns; /* [n_columns] their names in the first row; without one, "0", "1", ... */
    int n_columns;              /* 1: a scalar; more: an array of N, of numbers only */
    stk_csv_kind kind;
    stk_dtype dtype;            /* of numbers: f32, f64, i32, i64, i8, u8 or bool (0, 1, false, true) */
    const char *default_value;  /* the number for missing cells; NULL: a missing cell is an error of the record */
    const char *const *classes; /* [n_classes] those of STK_CSV_CLASS; another is an error of the record */
    int n_classes;              /* 0: the texts that are there, for which all rows are read once */
} stk_csv_field;

typedef struct stk_csv_config {
    const stk_csv_field *fields; /* [n_fields], at most 8 */
    int n_fields;
    char delimiter;      /* 0: a comma; '\t' for TSV */
    bool no_header;      /* the first row of each file is data */
    bool no_quotes;      /* a quote is a sign like others, and a row is a line, as most TSV files have it */
    const char *missing; /* what stands for a missing cell besides the empty one, as "NA"; may be NULL */
    bool in_memory;      /* the files are read when the data set is made, and not again: faster for short rows */
} stk_csv_config;
/* A comma, a row of names, quotes; no fields yet. */
STK_API stk_csv_config stk_csv_config_default(void);
/* Every row has as many cells as the first. Empty lines are no rows. With a row of names all files have the same. */
STK_API stk_dataset *stk_dataset_csv(const char *const *paths, int n_paths, const stk_csv_config *config);

#ifdef __cplusplus
}
#endif
#endif
