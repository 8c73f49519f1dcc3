/* The samples of one tar shard in WebDataset's naming: which members belong together, and where they lie. */
#ifndef STK_DATA_SOURCE_TAR_SAMPLES_H
#define STK_DATA_SOURCE_TAR_SAMPLES_H

#include "base/input.h"

typedef struct stk_tar_part {
    uint32_t extension_at; /* in names */
    uint64_t at, n_bytes;
} stk_tar_part;

typedef struct stk_tar_sample {
    uint64_t key_at; /* in names: the path up to the first dot of the file name */
    int64_t i_part;  /* its first part; the next sample's is one past its last */
} stk_tar_sample;

typedef struct stk_tar_samples {
    char *names; /* texts, each ended by 0 */
    size_t n_names, names_capacity;
    stk_tar_part *part;
    int64_t n_parts, part_capacity;
    stk_tar_sample *sample; /* n_samples and one more, which ends the last */
    int64_t n_samples, sample_capacity;
} stk_tar_samples;

/* From the index where it fits, else from the file; then the index is written. *stale: one did not fit. Texts do not
 * name the file. Free *out with stk_tar_samples_free, after an error too. */
stk_status stk_tar_samples_open(const stk_input *file, stk_tar_samples *out, bool *stale);
/* From an index's payload, which is checked against the file. Fuzzed. */
stk_status stk_tar_samples_parse(const stk_input *file, stk_span index, stk_tar_samples *out);
void stk_tar_samples_free(stk_tar_samples *samples);
/* The part of sample i with that extension; NULL where there is none. */
const stk_tar_part *stk_tar_samples_find(const stk_tar_samples *samples, int64_t i, const char *extension, size_t n);

#endif
