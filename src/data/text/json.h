/* What the readers of tokenizer files share. Errors do not name the file. Threads: any. */
#ifndef STK_DATA_TEXT_JSON_H
#define STK_DATA_TEXT_JSON_H

#include <jansson.h>

#include "data/text/tokenizer.h"

/* The tree of a tokenizer's JSON, at most: the largest in use, of a million tokens and merges, take a third of it. */
enum { STK_TOKENIZER_TREE_BYTES = 512 << 20 };

/* {"token": number}, and ready to be looked up. */
stk_status stk_json_vocab(stk_tokenizer *tokenizer, json_t *vocab);
/* ["a b", ...] or [["a", "b"], ...] */
stk_status stk_json_merges(stk_bpe *bpe, const json_t *merges);
/* "a b" */
stk_status stk_add_merge_line(stk_bpe *bpe, stk_span line, size_t rank);

#endif
