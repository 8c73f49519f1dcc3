/* Changing a text before it is cut into words: case, accents, Unicode's normal forms. Threads: any, once built. */
#ifndef STK_DATA_TEXT_NORMALIZE_H
#define STK_DATA_TEXT_NORMALIZE_H

#include <stdbool.h>

#include "base/file.h"

typedef enum stk_normalize_step {
    STK_STEP_CLEAN, /* control characters are removed, each space becomes ' ' (BERT) */
    STK_STEP_CJK,   /* a space on each side of Chinese characters (BERT) */
    STK_STEP_NFD,   /* Unicode Standard Annex 15 */
    STK_STEP_NFC,
    STK_STEP_NFKD,
    STK_STEP_NFKC,
    STK_STEP_ACCENTS, /* nonspacing marks are removed (BERT) */
    STK_STEP_MARKS,   /* all marks are removed */
    STK_STEP_LOWER
} stk_normalize_step;

enum { STK_MOST_STEPS = 8, STK_NORMALIZE_RUN = 512, STK_NORMALIZE_CHARACTERS = 20 * STK_NORMALIZE_RUN };
/* Bytes that stk_normalizer_run works in. */
enum { STK_NORMALIZE_WORK = 2 * STK_NORMALIZE_CHARACTERS * 4 };

typedef struct stk_normalizer {
    stk_normalize_step step[STK_MOST_STEPS];
    int n_steps;
    bool decomposes, composes;
    int growth;         /* the most bytes that a byte can become */
    uint8_t ascii[128]; /* what such a character becomes; 0xff: nothing */
} stk_normalizer;

/* STK_UNSUPPORTED where this build lacks the library that a step needs, or there are too many. Starts zeroed. */
stk_status stk_normalizer_add(stk_normalizer *normalizer, stk_normalize_step step);
/* After all steps. */
void stk_normalizer_finish(stk_normalizer *normalizer);
/* The most bytes that a text of n bytes becomes. */
size_t stk_normalizer_room(const stk_normalizer *normalizer, size_t n);
/* Writes the text again to out. Bytes that are no character become U+FFFD. work: STK_NORMALIZE_WORK bytes, 4-aligned.
 */
stk_status stk_normalizer_run(const stk_normalizer *normalizer, stk_span text, uint8_t *out, uint32_t *work,
                              size_t *n_out);

#endif
