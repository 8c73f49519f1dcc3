/* Protocol buffers, written by hand into one growing text: the few kinds of fields that event files have. Messages nest
 * by begin and end. Nothing is read here. developers.google.com/protocol-buffers/docs/encoding.
 * Threads: one at a time for each text.
 */
#ifndef STK_EVENTS_PROTO_H
#define STK_EVENTS_PROTO_H

#include "base/text.h"

void stk_proto_add_int(stk_text *out, int field, int64_t value);
void stk_proto_add_double(stk_text *out, int field, double value);
void stk_proto_add_bytes(stk_text *out, int field, const void *data, size_t n);
void stk_proto_add_text(stk_text *out, int field, const char *text);
/* What is added between the two is the field's message. begin returns what end wants. */
size_t stk_proto_begin(stk_text *out, int field);
void stk_proto_end(stk_text *out, size_t begin);

#endif
