/* Learning merges: the most frequent pair of neighbours becomes a token, again and again. Sennrich et al. 2016,
 * algorithm 1, with the counts kept up to date instead of taken again. Threads: one at a time.
 */
#ifndef STK_DATA_TEXT_MERGES_H
#define STK_DATA_TEXT_MERGES_H

#include "data/text/words.h"

typedef struct stk_merge {
    int32_t left, right; /* tokens */
} stk_merge;

typedef struct stk_merge_rules {
    bool by_bytes;      /* a word's first symbols are its bytes; else its characters */
    const char *prefix; /* of symbols that do not begin a word, "##" or "" */
    int64_t vocabulary, min_count;
    size_t limit_bytes;
    bool (*on_progress)(void *user, int64_t n_done, int64_t n_all, bool merging); /* may be NULL */
    void *user;
} stk_merge_rules;

/* words: counted and sorted. tokens: the special ones and the alphabet come in, all tokens go out. Symbols with the
 * prefix become tokens as they are met. *merges [*n] is the caller's to free. */
stk_status stk_merges_learn(const stk_words *words, const stk_merge_rules *rules, stk_words *tokens, stk_merge **merges,
                            size_t *n);

#endif
