/* JSON by jansson, and what it does not tell: where memory is short its parser drops characters of names, texts and
 * numbers, and its writers drop members, without an error. From the first use of this on, each of its allocations that
 * fails is counted, for each thread; they go on to the functions that the program has set for jansson.
 *
 *   unsigned mark = stk_json_mark();
 *   json_t *root = json_pack(...);                  with whatever is set and appended; no result needs to be looked at
 *   status = stk_json_print(root, mark, JSON_INDENT(1), &text);
 *
 * Threads: any; a value is made by one.
 */
#ifndef STK_BASE_JSON_H
#define STK_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "stoker/status.h"

/* STK_CORRUPT: not JSON, and error says where, as the text does: "line 3: ..."; STK_NO_MEMORY. *out is then NULL.
 * Returned: json_decref. */
stk_status stk_json_parse(const void *text, size_t n, size_t flags, json_t **out, json_error_t *error);
/* The same of a file; STK_CORRUPT names it. STK_UNSUPPORTED: its tree would take more than 256 MiB. */
stk_status stk_json_read(const char *path, size_t flags, json_t **out);

unsigned stk_json_mark(void);
/* Whether this thread's jansson went without memory since the mark. */
bool stk_json_lost(unsigned mark);
/* Takes root; NULL: it could not be made. STK_NO_MEMORY: a part of it is lost since the mark; STK_INVALID: a text is no
 * UTF-8. Returned in *out: free(). */
stk_status stk_json_print(json_t *root, unsigned mark, size_t flags, char **out);

#endif
