/* Checkpoints: folders RUN/step-N, each whole or absent.
 *
 *   model.safetensors      parameters and running statistics
 *   optimizer.safetensors  the optimiser's state ("<parameter>.velocity", ".m", ".v")
 *   state.json             stk_train_state, versions, the recipe's text
 *   manifest.json          bytes and XXH64 of each file; written last
 *
 * A save in the background copies the tensors and returns; a thread writes them: to a folder with a temporary name,
 * every file synced, the folder synced, renamed, RUN synced. Only then older ones are removed, never to make room: a
 * save that finds the disk full fails, and what was saved before it stays. A folder without a
 * manifest that agrees is never read. The manifest has no checksum itself: damage that leaves its meaning alone, as in
 * its white space or in the case of a digit, does no harm, since every other file is compared with that meaning.
 *
 * Tensors with a source and without data are asked for while the copy is made, or, in place, while they are written;
 * loading leaves them alone. The copy takes as many bytes as the tensors. It is kept for the next save. A save in place
 * needs none, and returns when all is written. Threads: one at a time for each writer.
 */
#ifndef STK_WEIGHTS_CHECKPOINT_H
#define STK_WEIGHTS_CHECKPOINT_H

#include "base/text.h"
#include "weights/train_state.h"

typedef struct stk_checkpoint_writer stk_checkpoint_writer;

/* keep: how many of the newest whole ones stay, at least 2; the best one stays besides, and each with something else in
 * its folder. Puts in order what a killed save left behind. */
stk_status stk_checkpoint_writer_open(const char *run_dir, int keep, stk_checkpoint_writer **out);
/* Waits for the save under way. Accepts NULL. */
void stk_checkpoint_writer_close(stk_checkpoint_writer *writer);

/* Takes a snapshot and starts writing; waits first where a save is still under way. best: this one is the best so far.
 * A failure of the writing itself shows in poll or wait. recipe: a text kept inside, may be NULL. */
stk_status stk_checkpoint_save(stk_checkpoint_writer *writer, const stk_named_tensor *tensors, size_t n_tensors,
                               const stk_train_state *state, const char *recipe, bool best);
/* The same without a copy: returns when the tensors are written, or writing them failed. */
stk_status stk_checkpoint_save_in_place(stk_checkpoint_writer *writer, const stk_named_tensor *tensors,
                                        size_t n_tensors, const stk_train_state *state, const char *recipe, bool best);

/* What became of a save since the last call. */
typedef struct stk_checkpoint_report {
    bool finished;     /* false: nothing new */
    bool is_there;     /* a whole checkpoint is at path, even where something behind it failed */
    stk_status status; /* on failure the text is in error */
    int64_t step;
    char path[4096]; /* of the folder */
    char error[512];
} stk_checkpoint_report;
void stk_checkpoint_poll(stk_checkpoint_writer *writer, stk_checkpoint_report *out);
/* Waits for the save under way, then polls. */
void stk_checkpoint_wait(stk_checkpoint_writer *writer, stk_checkpoint_report *out);

/* The path of the newest whole checkpoint in run_dir, or with best the best one where there is one. STK_NOT_FOUND:
 * none; STK_CORRUPT: none that is whole. Damaged ones are passed over; warnings (may be NULL) then says which and why,
 * a line each. */
stk_status stk_checkpoint_find(const char *run_dir, bool best, char *path, size_t path_bytes, stk_text *warnings);
/* The path of the one that a user asks for: "best", "last" or a step's number; NULL: the best one, or else the last.
 * STK_NOT_FOUND says which there are. */
stk_status stk_checkpoint_pick(const char *run_dir, const char *which, char *path, size_t path_bytes,
                               stk_text *warnings);
/* Reads into the tensors' memory; names and types must be those of the checkpoint (without optimizer: of the model's
 * part only, and tensors of the optimiser stay as they are). Nothing is changed unless all is well. recipe: a text that
 * the caller frees; may be NULL, as may state. */
stk_status stk_checkpoint_load(const char *path, const stk_named_tensor *tensors, size_t n_tensors, bool optimizer,
                               stk_train_state *state, char **recipe);
/* Adds the records that a run had left out when it saved this checkpoint, which has been loaded, and so checked. After
 * a failure some may be there. */
stk_status stk_checkpoint_load_skipped(const char *path, stk_skipped *into);

#endif
