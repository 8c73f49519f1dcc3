/* Writing tf.train.Example; see codec/example.h. Numbers are packed, as TensorFlow writes them. */
#include "data/codec/example.h"

#include <string.h>

#include "base/little.h"

static size_t put_varint(uint64_t x, uint8_t out[10])
{
    size_t n = 0;
    for (; x >= 128; x >>= 7)
        out[n++] = (uint8_t)(x | 128);
    out[n++] = (uint8_t)x;
    return n;
}

static void add_varint(stk_text *text, uint64_t x)
{
    uint8_t bytes[10];
    stk_text_add_bytes(text, bytes, put_varint(x, bytes));
}

/* A field of bytes. */
static void add_field(stk_text *text, uint32_t number, const void *bytes, size_t n)
{
    add_varint(text, (uint64_t)number << 3 | 2);
    add_varint(text, n);
    stk_text_add_bytes(text, bytes, n);
}

/* A map entry of key and a Feature with one list, whose bytes are given. Frees list. */
static void add_entry(stk_text *features, const char *key, uint32_t kind, stk_text *list)
{
    stk_text feature = {0}, entry = {0};
    add_field(&feature, kind, stk_text_get(list), list->n);
    add_field(&entry, 1, key, strlen(key));
    add_field(&entry, 2, stk_text_get(&feature), feature.n);
    add_field(features, 1, stk_text_get(&entry), entry.n);
    if (list->failed || feature.failed || entry.failed) features->failed = true;
    stk_text_free(list);
    stk_text_free(&feature);
    stk_text_free(&entry);
}

void stk_example_add_bytes(stk_text *features, const char *key, const void *bytes, size_t n)
{
    stk_text list = {0};
    add_field(&list, 1, bytes, n);
    add_entry(features, key, 1, &list);
}

void stk_example_add_floats(stk_text *features, const char *key, const float *values, size_t n)
{
    stk_text list = {0}, packed = {0};
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[4];
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        stk_put_little32(bytes, bits);
        stk_text_add_bytes(&packed, bytes, 4);
    }
    add_field(&list, 1, stk_text_get(&packed), packed.n);
    list.failed = list.failed || packed.failed;
    stk_text_free(&packed);
    add_entry(features, key, 2, &list);
}

void stk_example_add_ints(stk_text *features, const char *key, const int64_t *values, size_t n)
{
    stk_text list = {0}, packed = {0};
    for (size_t i = 0; i < n; i++)
        add_varint(&packed, (uint64_t)values[i]);
    add_field(&list, 1, stk_text_get(&packed), packed.n);
    list.failed = list.failed || packed.failed;
    stk_text_free(&packed);
    add_entry(features, key, 3, &list);
}

void stk_example_finish(const stk_text *features, stk_text *out)
{
    add_field(out, 1, stk_text_get(features), features->n);
    out->failed = out->failed || features->failed;
}
