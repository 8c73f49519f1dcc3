/* Strings and their numbers, both ways. Threads: one while strings are added; then any. */
#ifndef STK_DATA_TEXT_VOCAB_H
#define STK_DATA_TEXT_VOCAB_H

#include <stdbool.h>

#include "base/file.h"

enum { STK_MOST_TOKENS = 1 << 22 };

typedef struct stk_vocab {
    uint8_t *bytes; /* of all strings, one after the other */
    size_t n_bytes, bytes_room;
    size_t *at; /* [n_ids]; where a string begins */
    uint32_t *length;
    uint8_t *flags; /* STK_TOKEN_... */
    int64_t n_ids, ids_room;
    int32_t *slot; /* a hash table of ids; -1: free */
    size_t n_slots;
} stk_vocab;

enum {
    STK_TOKEN_USED = 1,    /* there is a token of this number */
    STK_TOKEN_SPECIAL = 2, /* left out when decoding without special tokens */
    STK_TOKEN_WHOLE = 4    /* may be looked up; others are for decoding only */
};

/* Gives number id a string, which is copied; another one that it had before is replaced. STK_INVALID for a number out
 * of range. */
stk_status stk_vocab_set(stk_vocab *vocab, int64_t id, stk_span text, int flags);
/* Makes the strings with STK_TOKEN_WHOLE ready to be looked up; after all have been set. */
stk_status stk_vocab_index(stk_vocab *vocab);
/* -1: there is none. */
int32_t stk_vocab_find(const stk_vocab *vocab, const uint8_t *text, size_t n);
/* The string of a number; {NULL, 0} where there is none. */
stk_span stk_vocab_text(const stk_vocab *vocab, int64_t id);
void stk_vocab_free(stk_vocab *vocab);

/* A mixing hash for tables in memory; not for files. */
static inline uint64_t stk_spread64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

#endif
