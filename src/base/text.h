/* A growing text. An allocation that fails is remembered; stk_text_status tells at the end. Threads: one at a time. */
#ifndef STK_BASE_TEXT_H
#define STK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

typedef struct stk_text {
    char *data; /* ends in 0; NULL while empty */
    size_t n, capacity;
    bool failed;
} stk_text;

void stk_text_add(stk_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void stk_text_add_bytes(stk_text *text, const void *bytes, size_t n);
stk_status stk_text_status(const stk_text *text);
/* The characters, "" while empty. Borrowed until the next change. */
const char *stk_text_get(const stk_text *text);
void stk_text_free(stk_text *text);

/* Bytes of the UTF-8 character that begins here, 1 to 4; 0 where there is none. p ends in 0. */
int stk_character_bytes(const unsigned char *p);

/* "1,234,567". n >= 0. Returns out. */
enum { STK_COUNT_TEXT = 32 };
const char *stk_count_text(int64_t n, char out[STK_COUNT_TEXT]);

/* The entry of names (ended by NULL) that is nearest to word, or NULL when none is near. For "did you mean". */
const char *stk_nearest_name(const char *word, const char *const *names);
/* How many letters must be inserted, removed, replaced or swapped. */
size_t stk_edit_distance(const char *a, const char *b);

#endif
