/* How much memory a JSON text would take as a tree of values, told before one is made of it: some three bytes of text
 * can become 150 bytes of tree. One pass over the text, which need not be right. Threads: any. */
#ifndef STK_BASE_JSON_SIZE_H
#define STK_BASE_JSON_SIZE_H

#include "base/file.h"

/* Bytes at most, as jansson makes trees on a machine of 64 bits. */
size_t stk_json_tree_bytes(stk_span text);
/* STK_UNSUPPORTED, with both figures, where that is more than most_bytes. */
stk_status stk_json_check(stk_span text, size_t most_bytes);

#endif
