/* Tokenizers: text to token numbers and back. Read from the files that models come with; nothing is trained here.
 *
 * Encoding gives the same numbers as the Python package `tokenizers` with the same file. What a file asks for that is
 * not supported is refused by name when it is opened. Four kinds:
 *
 *   bytes       a byte is its own number; 256 is "<|endoftext|>"
 *   BPE         over bytes: Sennrich et al. 2016, Radford et al. 2019 (GPT-2, GPT-4's and Llama 3's, Qwen 2's patterns)
 *   characters  a token for each: in the file, BPE without merges and without a pre-tokenizer
 *   WordPiece   Devlin et al. 2018 (BERT)
 *
 * Texts are UTF-8. Bytes that are none are kept by the first two kinds, so that decoding gives them back, and become
 * U+FFFD before WordPiece and wherever the file asks for a normal form or lower case.
 *
 * Threads: any number may use one tokenizer at once.
 */
#ifndef STOKER_DATA_TOKENIZER_H
#define STOKER_DATA_TOKENIZER_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_tokenizer stk_tokenizer;

typedef struct stk_tokenizer_config {
    bool lowercase; /* for vocab.txt, which does not say: lower case, without accents */
} stk_tokenizer_config;
/* lowercase true. */
STK_API stk_tokenizer_config stk_tokenizer_config_default(void);

/* path: "bytes"; a tokenizer.json; a vocab.json with merges.txt next to it; a vocab.txt; or a folder that holds one of
 * these (the first of them). config NULL: the default. STK_UNSUPPORTED for what is in the file and not supported. */
STK_API stk_status stk_tokenizer_open(const char *path, const stk_tokenizer_config *config, stk_tokenizer **out);
/* Another reference to the same; each is freed for itself. */
STK_API stk_tokenizer *stk_tokenizer_share(stk_tokenizer *tokenizer);
/* Accepts NULL. */
STK_API void stk_tokenizer_free(stk_tokenizer *tokenizer);

/* One more than the largest token number. */
STK_API int64_t stk_tokenizer_vocabulary(const stk_tokenizer *tokenizer);
/* The number of a token by its text ("[PAD]", " the"); -1: there is none. */
STK_API int32_t stk_tokenizer_find(const stk_tokenizer *tokenizer, const char *token);

/* text [n_bytes] -> the first `room` of its *n_ids tokens; *n_ids may be more than room, and ids may be NULL with room
 * 0, to ask for the number. special: with the tokens that the file puts before and behind a text, as [CLS] and [SEP].
 */
STK_API stk_status stk_tokenizer_encode(const stk_tokenizer *tokenizer, const char *text, size_t n_bytes, bool special,
                                        int32_t *ids, size_t room, size_t *n_ids);
/* ids [n_ids] -> the first `room` bytes of *n_bytes of text, without a final 0. skip_special: tokens that the file
 * calls special are left out. Numbers that are no token are STK_INVALID. */
STK_API stk_status stk_tokenizer_decode(const stk_tokenizer *tokenizer, const int32_t *ids, size_t n_ids,
                                        bool skip_special, char *text, size_t room, size_t *n_bytes);

#ifdef __cplusplus
}
#endif
#endif
