/* Orders that depend on what is in the records.
 *
 * Which samples a filter keeps cannot be worked out from their numbers. So each record is asked once, by several
 * threads, when the data set is built (a scan), and its answer kept as one small number; from then on the order is
 * arithmetic like all others: counts are exact, any thread finds any sample, and resuming costs nothing. What a scan
 * found and took is a line of stk_dataset_explain. Records are read for it, so build such data sets once, and call
 * stk_dataset_on_error before: records that cannot be read are left out, under STK_ON_ERROR_STOP the first of them
 * is the data set's error.
 *
 * Threads: as for stoker/data/dataset.h; a caller's function is called by several threads at once, with different
 * records.
 */
#ifndef STOKER_DATA_FILTER_H
#define STOKER_DATA_FILTER_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- filter --- */

/* One field of a record as the source gives it, before any stage. Borrowed for the call. */
typedef struct stk_record_field {
    const char *name;
    bool encoded;    /* data is a file's bytes; dtype and shape do not count */
    stk_dtype dtype; /* else an array, row-major */
    stk_shape shape;
    const void *data;
    size_t n_bytes;
} stk_record_field;

/* True keeps the record. A pure function of the fields, [n_fields]. */
typedef bool (*stk_filter_fn)(void *user, const stk_record_field *fields, int n_fields);
/* Keeps the records that fn keeps: tf.data's filter. Comes after take, skip and shard where they are called before it,
 * and works before a shuffle or repeat in any case. A data set that chooses other records in every epoch (take after
 * shuffle) cannot be filtered, nor one of which none is kept. user is borrowed for the call. */
STK_API void stk_dataset_filter(stk_dataset *dataset, stk_filter_fn fn, void *user);

/* What a record must be to be kept; everything that is set. */
typedef struct stk_filter_rule {
    const char *field;     /* NULL: "label" */
    const int64_t *values; /* [n_values]; the field, one whole number, is one of them; NULL: any */
    int n_values;
    bool drop;                         /* it is none of them */
    double least, most;                /* the field, one number of any type, lies between */
    int64_t least_bytes, most_bytes;   /* of the field as the source gives it: of a file, of an array */
    int64_t least_length, most_length; /* of the field's first side, after the stages that were applied so far */
} stk_filter_rule;
/* Keeps everything. */
STK_API stk_filter_rule stk_filter_rule_default(void);
/* Reads nothing but the field where the source can do so: labels of images cost no reading. Borrows filter for the
 * call. */
STK_API void stk_dataset_filter_by(stk_dataset *dataset, const stk_filter_rule *filter);

#ifdef __cplusplus
}
#endif
#endif
