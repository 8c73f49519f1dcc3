/* Text as a source: windows of tokens out of files of token numbers, lines, whole files; and the stage that makes
 * tokens of text.
 *
 * Calls return a new data set, never NULL; an error stays inside for stk_dataset_status, as with the sources in
 * stoker/data/dataset.h. Texts and structs given are borrowed until the call returns. Paths may be patterns
 * ("train-*.bin"; their matches by name) and addresses, as for stk_dataset_tfrecord. Threads: as for every data set.
 */
#ifndef STOKER_DATA_TEXT_H
#define STOKER_DATA_TEXT_H

#include "stoker/data/dataset.h"
#include "stoker/data/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- tokens --- */

typedef enum stk_token_type {
    STK_TOKENS_AUTO, /* what 'NAME.json' next to the file says ("dtype": "u16"), or the file's own header */
    STK_TOKENS_U16,
    STK_TOKENS_U32
} stk_token_type;

typedef struct stk_tokens_config {
    int64_t length;      /* T: tokens of a sample, at least 1 */
    int64_t stride;      /* tokens from the start of one window to that of the next; 0: length */
    stk_token_type type; /* of the files' numbers, little-endian */
    int64_t vocabulary;  /* a number that is not below it is an error of the record; 0: as 'NAME.json' says, or any */
} stk_tokens_config;
/* length 1024, stride 0, type auto, vocabulary 0. */
STK_API stk_tokens_config stk_tokens_config_default(void);
/* Files of tokens, one number after the other. Sample i of a file is the window of length + 1 tokens that begins at
 * token i * stride: the first `length` of them are the field "tokens" i32 [length], the last `length` the field
 * "targets" i32 [length], so that targets[k] is the token after tokens[k]. Windows do not go from one file to the next,
 * and what does not fill a window is left out. Nothing is read but the windows that are asked for. A header of 256 i32
 * as llm.c writes it (magic 20240520: u16, 20240801: u32) is known and skipped. */
STK_API stk_dataset *stk_dataset_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config);

/* --- lines and whole files --- */

typedef struct stk_text_config {
    bool whole;     /* a record is a whole file, not a line */
    bool by_folder; /* a field "label" i32 []: the folder that a file lies in, classes sorted by name */
    int64_t skip;   /* the first lines of each file do not count */
    bool in_memory; /* the files are read when the data set is made, and not again: faster for short lines */
} stk_text_config;
/* All false and 0. */
STK_API stk_text_config stk_text_config_default(void);
/* Text files, plain or GZIP. Field: "text" u8 [?], the bytes of a line without its \n or \r\n, or of a file; empty
 * lines are records, too. A batch needs it as tokens (stk_tokenize), or padded (stoker/data/ragged.h). Where lines
 * begin is found once and kept as for stk_dataset_tfrecord. config NULL: the default. */
STK_API stk_dataset *stk_dataset_text(const char *const *paths, int n_paths, const stk_text_config *config);

/* --- the stage --- */

typedef struct stk_tokenize_config {
    int64_t length; /* tokens of a sample at most; what is more is left out, the special ones stay. 0: all of them */
    bool special;   /* with the tokens that the tokenizer puts around a text */
    bool pad;       /* filled up to `length`, which is not 0; else samples differ in length, for padded batches */
    int32_t
        pad_id; /* what they are filled up with; -1: the tokenizer's [PAD], <pad>, <|pad|> or <|endoftext|>, else 0 */
} stk_tokenize_config;
/* length 0, special true, pad false, pad_id -1. */
STK_API stk_tokenize_config stk_tokenize_config_default(void);
/* u8 [?] of text -> i32 [length], or i32 [?] without pad: the tokens of it. Shares the tokenizer, which the caller
 * frees for itself. For stk_dataset_apply_to(dataset, "text", ...); it comes first unless it pads. config NULL: the
 * default. */
STK_API stk_stage *stk_tokenize(stk_tokenizer *tokenizer, const stk_tokenize_config *config);

#ifdef __cplusplus
}
#endif
#endif
