/* Text files to one file of token numbers, as stk_dataset_tokens reads it (stoker/data/text.h).
 *
 * The file is u16 where the vocabulary fits, else u32; next to it lies NAME.json with "dtype", "vocabulary" and
 * "tokens". It is whole or absent: it gets its name when it is complete and on the disk. The tokens do not depend on
 * the number of threads. Threads: one at a time for each file.
 */
#ifndef STOKER_DATA_TOKENIZE_H
#define STOKER_DATA_TOKENIZE_H

#include "stoker/data/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_tokenize_progress {
    int64_t n_bytes, n_bytes_done; /* of text */
    int64_t n_tokens, n_documents; /* so far */
    /* Bytes that are in no text: NULs, and what is no UTF-8. Not counted for the tokenizer of bytes, which takes all.
     */
    int64_t n_bad;
    int64_t bad_at;     /* the first of them in its file, from 0 */
    char bad_file[256]; /* its path, cut where it is longer */
} stk_tokenize_progress;

typedef struct stk_tokenize_options {
    bool lines;            /* a line is a document, and empty ones are none; else a file is one */
    const char *separator; /* the token behind each document; NULL: the tokenizer's own, one of <|endoftext|>,
                              <|end_of_text|>, </s> and [SEP]; "": none */
    int n_threads;         /* 0: one for each core */
    int64_t piece_bytes;   /* about so much text is worked on at a time in each thread; 0: 1 MiB */
    const char *tokenizer; /* what the file next to it notes as the tokenizer's path, for stoker/train/generate.h; NULL:
                              nothing */
    /* Called now and then; false stops: STK_INTERRUPTED, and nothing is left behind. May be NULL. */
    bool (*on_progress)(void *user, const stk_tokenize_progress *progress);
    void *user;
} stk_tokenize_options;

/* Files, patterns and addresses, in the order given; .gz is unpacked. Special tokens are not put around documents.
 * The folder of out is made where it is not there. STK_BUSY where out is something else than tokens. options and result
 * may be NULL. */
STK_API stk_status stk_tokenize_files(const char *const *paths, int n_paths, const stk_tokenizer *tokenizer,
                                      const char *out, const stk_tokenize_options *options,
                                      stk_tokenize_progress *result);

#ifdef __cplusplus
}
#endif
#endif
