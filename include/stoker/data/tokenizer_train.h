/* Tokenizers trained on one's own texts: a tokenizer.json that stk_tokenizer_open and the Python package `tokenizers`
 * read alike.
 *
 *   BPE         over bytes, words as GPT-2 cuts them: Sennrich et al. 2016, algorithm 1; Radford et al. 2019. The
 *               merges are those of `tokenizers`' BpeTrainer with the byte alphabet: of pairs that are equally frequent
 *               the one with the lower numbers comes first.
 *   WordPiece   words as BERT cuts them, merged by frequency as `tokenizers`' WordPieceTrainer does. That numbers the
 *               alphabet differently each time, and with it breaks ties; here it is sorted, so that a run repeats.
 *
 *   characters  a token for each, in the order of their numbers: [UNK], for all others, and special tokens come first.
 *               In the file it is BPE without merges, which `tokenizers` reads as the same.
 *
 * How often a word occurs is counted once; then pairs of neighbours are counted, and each merge changes only the words
 * that have its pair. Threads: one at a time for each file.
 */
#ifndef STOKER_DATA_TOKENIZER_TRAIN_H
#define STOKER_DATA_TOKENIZER_TRAIN_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_tokenizer_kind {
    STK_TOKENIZER_BPE,
    STK_TOKENIZER_WORDPIECE,
    STK_TOKENIZER_CHARACTERS
} stk_tokenizer_kind;

typedef struct stk_tokenizer_training {
    stk_tokenizer_kind kind;
    int64_t vocabulary;     /* tokens at most, special ones and the alphabet included */
    int64_t min_count;      /* a pair that occurs less often is not merged, a character gets no token; 0: 2, and 1 */
    const char *characters; /* all that get a token, in this order, instead of texts; NULL: those of the texts */
    bool cased;             /* WordPiece: upper case and accents are kept */
    const char *const
        *special;        /* [n_special]: they get the first numbers; BERT's five stand before them for WordPiece */
    int n_special;       /* 0, but for WordPiece: <|endoftext|> */
    size_t memory_bytes; /* that words and pairs may take; 0: half of what is free */
    /* Called now and then; false stops: STK_INTERRUPTED, and nothing is written. May be NULL. */
    bool (*on_progress)(void *user, int64_t n_done, int64_t n_all, bool merging); /* bytes of text, then tokens */
    void *user;
} stk_tokenizer_training;
/* BPE, 8000 tokens. */
STK_API stk_tokenizer_training stk_tokenizer_training_default(void);

typedef struct stk_tokenizer_result {
    int64_t n_bytes, n_words, n_different; /* of text; words in it; different ones */
    int64_t n_tokens, n_merges;            /* fewer tokens than asked for: no pair occurs often enough */
} stk_tokenizer_result;

/* Files, patterns and addresses; .gz is unpacked. Lines are texts of their own, as `tokenizers` reads files. out is
 * written whole or not at all. STK_NO_MEMORY where memory_bytes are not enough, STK_BUSY where out is a file of another
 * kind. training and result may be NULL. */
STK_API stk_status stk_tokenizer_train(const char *const *paths, int n_paths, const char *out,
                                       const stk_tokenizer_training *training, stk_tokenizer_result *result);

#ifdef __cplusplus
}
#endif
#endif
