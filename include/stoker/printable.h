/* Names and texts that others have chosen, as they may be shown. Threads: any. */
#ifndef STOKER_PRINTABLE_H
#define STOKER_PRINTABLE_H

#include <stddef.h>

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* text as it may stand in a line of a terminal or a log: control characters, marks of direction, ends of lines and
 * bytes that are no UTF-8 become "\n", "\x1b" or "\u202e"; all else stays. Into out [capacity], which is returned; cut
 * at a whole character where it is longer. The details of errors (stk_error_text) are so already. */
STK_API const char *stk_printable(const char *text, char *out, size_t capacity);

/* stk_printable for the character that text begins with; text is not empty. Returns how many bytes of text it is. */
enum { STK_PRINTABLE_BYTES = 12 };
STK_API int stk_printable_character(const char *text, char out[STK_PRINTABLE_BYTES]);

/* text without the secrets of addresses that it names: "http://anna:***@host/x?token=***". Into out [capacity], which
 * is returned; cut where it is longer. The details of errors are so already. */
STK_API const char *stk_hide_secrets(const char *text, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
