/* Fields of protobuf messages, read one after the other. Nothing is read past `end`. */
#ifndef STK_DATA_CODEC_WIRE_H
#define STK_DATA_CODEC_WIRE_H

#include "base/file.h"

typedef struct stk_wire {
    const uint8_t *p, *end;
} stk_wire;

/* Wire types; 3 and 4 are groups, which are skipped. */
enum { STK_WIRE_VARINT, STK_WIRE_64, STK_WIRE_BYTES, STK_WIRE_GROUP, STK_WIRE_GROUP_END, STK_WIRE_32 };

typedef struct stk_wire_field {
    uint32_t number;
    int type;
    uint64_t value; /* of a varint */
    stk_span bytes; /* of the others */
} stk_wire_field;

static inline stk_wire stk_wire_start(stk_span message)
{
    return (stk_wire){message.data, message.data + message.n};
}

/* At most ten bytes; bits above 64 are dropped, as protobuf does. */
static inline bool stk_wire_varint(stk_wire *w, uint64_t *out)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->p == w->end) return false;
        uint8_t byte = *w->p++;
        x |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = x;
            return true;
        }
    }
    return false;
}

/* The next field, with groups passed over; only while w->p < w->end. False for a message that is damaged. */
bool stk_wire_next(stk_wire *w, stk_wire_field *out);

#endif
