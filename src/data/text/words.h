/* How often each word occurs. Threads: one at a time. */
#ifndef STK_DATA_TEXT_WORDS_H
#define STK_DATA_TEXT_WORDS_H

#include "base/file.h"

typedef struct stk_word {
    size_t at; /* in bytes */
    uint32_t n;
    uint64_t hash;
    int64_t count;
} stk_word;

typedef struct stk_words {
    uint8_t *bytes; /* of all different words, one after the other */
    size_t n_bytes, bytes_room;
    stk_word *word; /* [n] */
    size_t n, room;
    int32_t *slot; /* a hash table of numbers of words; -1: free */
    size_t n_slots;
    size_t limit_bytes; /* of all of it */
} stk_words;

/* Its number, in the order in which words became known; -1: it is not. */
int32_t stk_words_find(const stk_words *words, stk_span word);
/* Counts one more, or makes it known with 1. */
stk_status stk_words_add(stk_words *words, stk_span word);
/* Sorted by bytes, so that nothing depends on the order in which texts came. Nothing is added after it. */
void stk_words_sort(stk_words *words);
stk_span stk_words_text(const stk_words *words, size_t i);
void stk_words_free(stk_words *words);

#endif
