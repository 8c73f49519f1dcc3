/* See codec/wire.h. */
#include "data/codec/wire.h"

enum { MOST_DEPTH = 100 }; /* of groups; protobuf's own limit */

static bool take_bytes(stk_wire *w, uint64_t n, stk_span *out)
{
    if (n > (uint64_t)(w->end - w->p)) return false;
    *out = (stk_span){w->p, (size_t)n};
    w->p += n;
    return true;
}

static bool next_plain(stk_wire *w, stk_wire_field *out)
{
    uint64_t tag, n;
    if (!stk_wire_varint(w, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
    out->number = (uint32_t)(tag >> 3);
    out->type = (int)(tag & 7);
    switch (out->type) {
    case STK_WIRE_VARINT: return stk_wire_varint(w, &out->value);
    case STK_WIRE_64: return take_bytes(w, 8, &out->bytes);
    case STK_WIRE_BYTES: return stk_wire_varint(w, &n) && take_bytes(w, n, &out->bytes);
    case STK_WIRE_32: return take_bytes(w, 4, &out->bytes);
    case STK_WIRE_GROUP:
    case STK_WIRE_GROUP_END: return true;
    default: return false;
    }
}

bool stk_wire_next(stk_wire *w, stk_wire_field *out)
{
    uint32_t group[MOST_DEPTH];
    int depth = 0;
    if (!next_plain(w, out) || out->type == STK_WIRE_GROUP_END) return false;
    if (out->type != STK_WIRE_GROUP) return true;
    stk_wire_field inner = *out;
    group[depth++] = out->number;
    while (depth > 0) {
        if (w->p == w->end || !next_plain(w, &inner)) return false;
        if (inner.type == STK_WIRE_GROUP_END && inner.number != group[--depth]) return false;
        if (inner.type != STK_WIRE_GROUP) continue;
        if (depth == MOST_DEPTH) return false;
        group[depth++] = inner.number;
    }
    return true;
}
