/* Cutting a text into the words that a tokenizer's model works on. Threads: any. */
#ifndef STK_DATA_TEXT_SPLIT_H
#define STK_DATA_TEXT_SPLIT_H

#include <stdbool.h>

#include "base/file.h"

typedef enum stk_split {
    STK_SPLIT_NONE,   /* one word */
    STK_SPLIT_GPT2,   /* the pattern of GPT-2 (Radford et al. 2019, encoder.py) */
    STK_SPLIT_CL100K, /* that of GPT-4 and Llama 3 */
    STK_SPLIT_QWEN2,  /* the same with single digits */
    STK_SPLIT_BERT,   /* spaces removed, punctuation alone (Devlin et al. 2018, BasicTokenizer) */
    STK_SPLIT_SPACES, /* spaces removed */
    STK_SPLIT_WORDS   /* \w+|[^\w\s]+, spaces removed */
} stk_split;

/* The pattern as tokenizer.json has it; STK_SPLIT_NONE for an unknown one. */
stk_split stk_split_of_pattern(const char *pattern);

/* The next word of [*at, end); moves *at behind it. False where there is none. Bytes that are no character are taken
 * for signs that are neither letter, number nor space. stk_classes_load comes first. */
bool stk_split_next(stk_split how, const uint8_t **at, const uint8_t *end, stk_span *word);

#endif
