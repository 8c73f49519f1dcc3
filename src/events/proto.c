/* See events/proto.h. */
#include "events/proto.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, MOST_VARINT_BYTES = 10 };

static size_t make_varint(uint64_t x, uint8_t out[MOST_VARINT_BYTES])
{
    size_t n = 0;
    for (; x >= 128; x >>= 7)
        out[n++] = (uint8_t)(x | 128);
    out[n++] = (uint8_t)x;
    return n;
}

static void add_varint(stk_text *out, uint64_t x)
{
    uint8_t bytes[MOST_VARINT_BYTES];
    stk_text_add_bytes(out, bytes, make_varint(x, bytes));
}

static void add_key(stk_text *out, int field, int kind)
{
    add_varint(out, (uint64_t)field << 3 | (uint64_t)kind);
}

void stk_proto_add_int(stk_text *out, int field, int64_t value)
{
    add_key(out, field, VARINT);
    add_varint(out, (uint64_t)value);
}

void stk_proto_add_double(stk_text *out, int field, double value)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    add_key(out, field, FIXED64);
    stk_text_add_bytes(out, bytes, 8);
}

void stk_proto_add_bytes(stk_text *out, int field, const void *data, size_t n)
{
    add_key(out, field, BYTES);
    add_varint(out, n);
    if (n) stk_text_add_bytes(out, data, n);
}

void stk_proto_add_text(stk_text *out, int field, const char *text)
{
    stk_proto_add_bytes(out, field, text, strlen(text));
}

size_t stk_proto_begin(stk_text *out, int field)
{
    add_key(out, field, BYTES);
    return out->n;
}

/* The length comes before the message, and how long it is shows only now. */
void stk_proto_end(stk_text *out, size_t begin)
{
    uint8_t length[MOST_VARINT_BYTES];
    if (out->failed) return;
    size_t n = out->n - begin, n_length = make_varint(n, length);
    stk_text_add_bytes(out, length, n_length);
    if (out->failed) return;
    memmove(out->data + begin + n_length, out->data + begin, n);
    memcpy(out->data + begin, length, n_length);
}
