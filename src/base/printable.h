/* Names and texts that others have chosen, as they may be shown: no character of them moves a cursor, changes a colour
 * or the direction of writing, or ends a line. The public side is stk_printable in stoker/printable.h.
 * Threads: any.
 */
#ifndef STK_BASE_PRINTABLE_H
#define STK_BASE_PRINTABLE_H

#include "base/text.h"
#include "stoker/printable.h"

/* Appends text: control characters, marks of direction, ends of lines and bytes that are no UTF-8 as "\n", "\x1b" or
 * "\u202e", all others as they are. */
void stk_text_add_printable(stk_text *out, const char *text);
/* The same, with a backslash before each quote and backslash. */
void stk_text_add_quotable(stk_text *out, const char *text);
/* stk_printable for a text of several lines, which they stay. */
const char *stk_printable_lines(const char *text, char *out, size_t capacity);

/* True where the character at p, of n bytes (stk_character_bytes; 0: no character), is not to be shown as it is. */
bool stk_is_unprintable(const unsigned char *p, int n);
/* Its number. n: as above, and not 0. */
uint32_t stk_character_code(const unsigned char *p, int n);

#endif
