/* Which records a run has left out, each once, over all epochs, parts and resumptions: by a key of its text, and the
 * texts of the first ones for people.
 *
 * Threads: plain data.
 */
#ifndef STK_WEIGHTS_SKIPPED_H
#define STK_WEIGHTS_SKIPPED_H

#include <stddef.h>
#include <stdint.h>

enum { STK_SKIPPED_MOST_TEXTS = 100, STK_SKIPPED_MOST_KEPT = 100000 };

typedef struct stk_skipped {
    int64_t *key; /* [n_keys], rising */
    int64_t n_keys;
    size_t key_capacity;
    char **text; /* [n_texts] */
    size_t n_texts;
} stk_skipped;

/* Without memory for a key it is not counted, and a text is not listed. */
void stk_skipped_add_key(stk_skipped *list, int64_t key);
void stk_skipped_add_text(stk_skipped *list, const char *text);
void stk_skipped_free(stk_skipped *list);

#endif
