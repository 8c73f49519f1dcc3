/* What was learnt, as a tokenizer.json. */
#ifndef STK_DATA_TEXT_TOKENIZER_WRITE_H
#define STK_DATA_TEXT_TOKENIZER_WRITE_H

#include "data/text/merges.h"

/* tokens: the first n_special are special ones. Byte-level BPE as GPT-2's; returned: free(). */
stk_status stk_tokenizer_write_bpe(const stk_words *tokens, size_t n_special, const stk_merge *merges, size_t n_merges,
                                   char **json);
/* A token for each character: BPE without merges, and not of bytes. [UNK] is among the special tokens. */
stk_status stk_tokenizer_write_characters(const stk_words *tokens, size_t n_special, char **json);
/* WordPiece as BERT's; [CLS] and [SEP] are among the special tokens. */
stk_status stk_tokenizer_write_wordpiece(const stk_words *tokens, size_t n_special, bool cased, char **json);

#endif
