/* A token for each character. Threads: one while it is built; then any. */
#ifndef STK_DATA_TEXT_CHARACTERS_H
#define STK_DATA_TEXT_CHARACTERS_H

#include "data/text/vocab.h"

typedef struct stk_characters {
    stk_vocab vocab;
    int32_t unknown;    /* of characters that have no token, and of bytes that are none; -1: they are left out */
    int32_t ascii[128]; /* -1: it has no token */
} stk_characters;

/* Builds the table of the vocabulary, which may have longer tokens: they are for decoding. */
void stk_characters_finish(stk_characters *model);
/* The token of the character at *at, which lies before end; moves *at behind it. -1: none, and it is left out. */
int32_t stk_characters_next(const stk_characters *model, const uint8_t **at, const uint8_t *end);
void stk_characters_free(stk_characters *model);

#endif
