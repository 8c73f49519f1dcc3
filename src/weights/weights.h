/* Weights from files of others into our tensors, and ours into files for others: names by weights/name_map.h, types and
 * layouts converted. Weights of rank 4 and 5 are convolutions': ours [O,KH,KW,I], theirs [O,I,KH,KW]. A file whose
 * metadata says "layout": "channels_last" has ours. Threads: one at a time for each set of tensors.
 */
#ifndef STK_WEIGHTS_WEIGHTS_H
#define STK_WEIGHTS_WEIGHTS_H

#include "base/text.h"
#include "stoker/files/safetensors.h"
#include "weights/name_map.h"
#include "weights/train_state.h"

#define STK_LAYOUT_KEY  "layout"
#define STK_LAYOUT_OURS "channels_last"

typedef struct stk_weights_report {
    const stk_naming *naming; /* that fits best */
    int64_t n_loaded, n_left; /* of our tensors; left as they were, as asked */
    int64_t n_extra;          /* tensors of the file that are no parameters: counters, masks, second names */
    int64_t n_unused;         /* the file's others that nothing took */
    stk_text left, unused;    /* their names, comma-separated; stk_weights_report_free */
} stk_weights_report;

/* Fills the tensors from the file; nothing is changed unless all is well (but where a number does not
 * fit an integer tensor). leave: parts of names, comma-separated, whose
 * tensors stay as they are ("fc." for a new head); NULL: none. names: of the naming to go by; NULL: the one that most
 * of the tensors are found by. STK_MISMATCH names both sides of what does not fit; a tensor that the file lacks is one,
 * too. Pages of the file are given back as they are read. */
stk_status stk_weights_load(const stk_safetensors_file *file, const stk_named_tensor *tensors, size_t n,
                            const char *leave, const char *names, stk_weights_report *report);
void stk_weights_report_free(stk_weights_report *report);

/* The order of axes that turns our layout into theirs, [rank]; NULL where they are the same. */
const int32_t *stk_weights_to_theirs(int rank);
const int32_t *stk_weights_to_ours(int rank);

#endif
