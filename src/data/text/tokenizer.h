/* What a tokenizer is made of. The public side is stoker/data/tokenizer.h.
 *
 *     text -> added tokens as they are -> normalizer -> added tokens -> words -> model -> ids
 */
#ifndef STK_DATA_TEXT_TOKENIZER_H
#define STK_DATA_TEXT_TOKENIZER_H

#include <stdatomic.h>

#include "data/common/item.h"
#include "data/text/added.h"
#include "data/text/bpe.h"
#include "data/text/characters.h"
#include "data/text/normalize.h"
#include "data/text/split.h"
#include "data/text/wordpiece.h"
#include "stoker/data/tokenizer.h"

enum { STK_MOST_AROUND = 16, STK_BYTES_SEPARATOR = 256 };

typedef enum stk_model_kind {
    STK_MODEL_BYTES,
    STK_MODEL_CHARACTERS,
    STK_MODEL_BPE,
    STK_MODEL_WORDPIECE
} stk_model_kind;

struct stk_tokenizer {
    atomic_int n_refs;
    stk_model_kind kind;
    stk_characters characters;
    stk_bpe bpe;
    stk_wordpiece wordpiece;
    stk_added raw, normal; /* looked for before and after the normalizer */
    stk_normalizer normalizer;
    stk_split split;
    bool prefix_space; /* a text that does not begin with a space gets one */
    char prefix[16];   /* of continuing tokens, for decoding */
    bool clean_up;     /* decoding takes the space before punctuation away */
    int32_t before[STK_MOST_AROUND], after[STK_MOST_AROUND];
    int n_before, n_after; /* special tokens around a text */
};

/* Empty, with one reference. */
stk_status stk_tokenizer_make(stk_model_kind kind, stk_tokenizer **out);
/* Whether a number is of a special token. */
bool stk_tokenizer_is_special(const stk_tokenizer *tokenizer, int64_t id);
/* The vocabulary of its model. */
stk_vocab *stk_tokenizer_vocab(stk_tokenizer *tokenizer);
const stk_vocab *stk_tokenizer_words(const stk_tokenizer *tokenizer);
/* A token of its model; the string is as files have it, where a byte of BPE is a letter. */
stk_status stk_tokenizer_set(stk_tokenizer *tokenizer, int64_t id, const char *text, size_t n);
/* An added token; flags of text/added.h. */
stk_status stk_tokenizer_add(stk_tokenizer *tokenizer, int64_t id, stk_span text, bool special, bool normalized,
                             int flags);
/* Last of all: tables are built. */
stk_status stk_tokenizer_finish(stk_tokenizer *tokenizer);

/* The letter that files of byte-level BPE write for a byte. */
uint32_t stk_letter_of_byte(uint8_t byte);
/* The bytes that a token of a byte-level BPE file stands for: the letters that files write for bytes, back to bytes.
 * False where there are others among them. out: n bytes. */
bool stk_bytes_of_letters(stk_span letters, uint8_t *out, size_t *n_out);

/* stk_tokenizer_encode, with the caller's memory. stop: only the first `room` tokens matter, so that *n_ids may be less
 * than there are, but not less than room. */
stk_status stk_tokenizer_run(const stk_tokenizer *tokenizer, stk_span text, bool special, bool stop,
                             stk_scratch *scratch, int32_t *ids, size_t room, size_t *n_ids);

/* From the bytes of files. Fuzzed. The caller frees *out. */
stk_status stk_tokenizer_parse_json(stk_span json, stk_tokenizer **out);
stk_status stk_tokenizer_parse_bpe(stk_span vocab_json, stk_span merges, stk_tokenizer **out);
stk_status stk_tokenizer_parse_vocab(stk_span lines, bool lowercase, stk_tokenizer **out);

#endif
