/* Tokens that are found in a text as they are, before it is cut into words: [MASK], <|endoftext|>. Of several the
 * leftmost, of those the longest. Threads: one while tokens are added; then any. */
#ifndef STK_DATA_TEXT_ADDED_H
#define STK_DATA_TEXT_ADDED_H

#include <stdbool.h>

#include "base/file.h"

enum {
    STK_ADDED_WORD = 1, /* only where no letter or digit stands next to it ("single_word") */
    STK_ADDED_LEFT = 2, /* takes the spaces before it ("lstrip") */
    STK_ADDED_RIGHT = 4 /* takes the spaces behind it ("rstrip") */
};

typedef struct stk_added_token {
    uint8_t *text; /* owned */
    size_t n;
    int32_t id;
    int flags;
} stk_added_token;

typedef struct stk_added {
    stk_added_token *token;
    int n, room;
    int first[257]; /* by first byte, where its tokens begin; the longest first */
} stk_added;

/* The text is copied and must not be empty. */
stk_status stk_added_add(stk_added *added, stk_span text, int32_t id, int flags);
/* After all tokens. */
void stk_added_finish(stk_added *added);
void stk_added_free(stk_added *added);

typedef struct stk_added_match {
    const uint8_t *start, *end; /* with the spaces it takes */
    const uint8_t *next;        /* where to look for the next one: its spaces may be in that, too */
    int32_t id;
} stk_added_match;
/* The next token of a text at or after `from`. It takes no spaces before `taken`, the end of the last match. False
 * where there is none. */
bool stk_added_next(const stk_added *added, stk_span text, const uint8_t *from, const uint8_t *taken,
                    stk_added_match *out);
/* The number of the token with this very text; -1: there is none. */
int32_t stk_added_find(const stk_added *added, stk_span text);

#endif
