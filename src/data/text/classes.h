/* What characters are to tokenizers: letters, numbers, spaces, accents. Threads: any. */
#ifndef STK_DATA_TEXT_CLASSES_H
#define STK_DATA_TEXT_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#include "data/text/utf8.h"

/* The order is that of tools/make_text_classes.py. */
enum {
    STK_LETTER = 1,       /* \p{L} */
    STK_NUMBER = 2,       /* \p{N} */
    STK_SPACE = 4,        /* \s */
    STK_WORD = 8,         /* \w */
    STK_CONTROL = 16,     /* what BERT's clean_text removes */
    STK_ACCENT = 32,      /* what BERT's strip_accents removes */
    STK_PUNCTUATION = 64, /* what BERT takes for punctuation */
    STK_MARK = 128        /* what the normalizer StripAccents removes */
};

/* By character, below U+10000. */
extern uint8_t stk_low_classes[0x10000];
/* Fills the table; call it once before the others. */
void stk_classes_load(void);
uint8_t stk_high_class(uint32_t c);

/* 0 for what is no character. */
static inline uint8_t stk_class_of(uint32_t c)
{
    return c < 0x10000 ? stk_low_classes[c] : stk_high_class(c);
}

/* The class of the character at p < end, and its bytes. */
static inline uint8_t stk_class_at(const uint8_t *p, const uint8_t *end, size_t *n)
{
    if (*p < 0x80) {
        *n = 1;
        return stk_low_classes[*p];
    }
    return stk_class_of(stk_utf8_next(p, end, n));
}

#endif
