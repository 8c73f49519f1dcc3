/* The JSON files of a checkpoint: state and manifest, to text and back. No files here; fuzzed. */
#ifndef STK_WEIGHTS_CHECKPOINT_STATE_H
#define STK_WEIGHTS_CHECKPOINT_STATE_H

#include "base/file.h"
#include "weights/train_state.h"

/* Returned: free(). NULL when out of memory. */
char *stk_state_to_json(const stk_train_state *state, const char *recipe);
/* recipe may be NULL; otherwise a text that the caller frees, NULL where none is kept. */
stk_status stk_state_from_json(stk_span text, stk_train_state *out, char **recipe);
/* Adds what the state has, whose own list is NULL. After a failure some may be there. */
stk_status stk_skipped_from_json(stk_span text, stk_skipped *into);

enum { STK_MANIFEST_FILES = 3 };
typedef struct stk_manifest_file {
    const char *name;
    uint64_t n_bytes, hash; /* XXH64, seed 0 */
} stk_manifest_file;
extern const char *const stk_manifest_names[STK_MANIFEST_FILES];

char *stk_manifest_to_json(const stk_manifest_file *files);
/* files[i].name is set by the caller. */
stk_status stk_manifest_from_json(stk_span text, stk_manifest_file *files);

#endif
