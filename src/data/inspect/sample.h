/* A few records from all over a source, for judging the rest by them. Threads: any. */
#ifndef STK_DATA_INSPECT_SAMPLE_H
#define STK_DATA_INSPECT_SAMPLE_H

#include "data/dataset/dataset.h"

typedef struct stk_record_sample {
    int64_t n, n_corrupt;
    char corrupt[STK_RECORD_NAME_BYTES]; /* name of the first */
    double record_bytes;                 /* mean of the others, all fields */
    int64_t height, width;               /* mean of the encoded field "image"; 0: there is none */
    int n_pass;                          /* first stages of "image" that run as one pass, judged by the first record */
} stk_record_sample;

/* Reads up to n_most records; decodes: their images too, in full. Only a lack of memory and the like fail. */
stk_status stk_sample_records(const stk_dataset *dataset, int64_t n_most, bool decodes, stk_record_sample *out);

#endif
