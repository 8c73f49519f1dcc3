/* See codec/example.h. */
#include "data/codec/example.h"

#include <string.h>

#include "base/error.h"
#include "base/little.h"
#include "data/codec/wire.h"

/* What a Feature holds; the numbers are those of its fields. */
typedef enum list_kind { LIST_NONE, LIST_BYTES, LIST_FLOAT, LIST_INT64 } list_kind;

static const char *const kind_names[] = {"nothing", "a BytesList", "a FloatList", "an Int64List"};

static stk_status fail_damaged(void)
{
    return stk_fail(STK_CORRUPT, "the Example is damaged");
}

/* --- keys --- */

/* An entry of the map: its key, and its value where it has one. */
static bool parse_entry(stk_span entry, stk_span *key, stk_span *value)
{
    stk_wire w = stk_wire_start(entry);
    stk_wire_field field;
    *key = *value = (stk_span){entry.data, 0};
    while (w.p < w.end) {
        if (!stk_wire_next(&w, &field)) return false;
        if (field.type != STK_WIRE_BYTES) continue;
        if (field.number == 1) *key = field.bytes;
        if (field.number == 2) *value = field.bytes;
    }
    return true;
}

stk_status stk_example_find(stk_span example, const stk_span *key, int n, stk_span *value)
{
    stk_wire w = stk_wire_start(example);
    stk_wire_field features, entry;
    stk_span name, found;
    for (int i = 0; i < n; i++)
        value[i] = (stk_span){0};
    int i = 0; /* the key that is likely to come next: Examples of a file mostly have the same order */
    while (w.p < w.end) {
        if (!stk_wire_next(&w, &features)) return fail_damaged();
        if (features.number != 1 || features.type != STK_WIRE_BYTES) continue;
        stk_wire inner = stk_wire_start(features.bytes);
        while (inner.p < inner.end) {
            if (!stk_wire_next(&inner, &entry)) return fail_damaged();
            if (entry.number != 1 || entry.type != STK_WIRE_BYTES) continue;
            if (!parse_entry(entry.bytes, &name, &found)) return fail_damaged();
            for (int k = 0; k < n; k++) {
                bool is_it = key[i].n == name.n && !memcmp(key[i].data, name.data, name.n);
                if (is_it) value[i] = found;
                i = i + 1 < n ? i + 1 : 0;
                if (is_it) break;
            }
        }
    }
    return STK_OK;
}

/* --- values --- */

/* The lists of a Feature, in pieces: all of the last kind that was met. */
typedef struct lists {
    list_kind kind;
    const uint8_t *from; /* the first piece of that kind since another kind was met */
} lists;

static stk_status find_lists(stk_span feature, lists *out)
{
    stk_wire w = stk_wire_start(feature);
    stk_wire_field field;
    *out = (lists){LIST_NONE, feature.data};
    while (w.p < w.end) {
        const uint8_t *at = w.p;
        if (!stk_wire_next(&w, &field)) return fail_damaged();
        if (field.type != STK_WIRE_BYTES || field.number < LIST_BYTES || field.number > LIST_INT64) continue;
        if (out->kind == (list_kind)field.number) continue;
        *out = (lists){(list_kind)field.number, at};
    }
    return STK_OK;
}

/* The values of all lists, one after the other. */
typedef struct values {
    list_kind kind;
    stk_wire outer, list;
    stk_wire packed; /* numbers of one packed field */
} values;

static values start_values(stk_span feature, const lists *from)
{
    static const uint8_t none[1];
    stk_wire empty = {none, none};
    return (values){from->kind, {from->from, feature.data + feature.n}, empty, empty};
}

/* The next field of value = 1 in one of the lists; *ended when there is none. */
static bool next_field(values *v, stk_wire_field *out, bool *ended)
{
    *ended = false;
    for (;;) {
        while (v->list.p < v->list.end) {
            if (!stk_wire_next(&v->list, out)) return false;
            if (out->number == 1) return true;
        }
        if (v->outer.p == v->outer.end) {
            *ended = true;
            return true;
        }
        if (!stk_wire_next(&v->outer, out)) return false;
        if (out->type == STK_WIRE_BYTES && out->number == (uint32_t)v->kind) v->list = stk_wire_start(out->bytes);
    }
}

bool stk_feature_is_empty(stk_span feature)
{
    lists found;
    return feature.n == 0 || (find_lists(feature, &found) == STK_OK && found.kind == LIST_NONE);
}

stk_status stk_feature_bytes(stk_span feature, stk_span *out)
{
    lists found;
    stk_wire_field field;
    bool ended;
    int64_t n = 0;
    STK_RETURN_IF_ERROR(find_lists(feature, &found));
    if (found.kind != LIST_BYTES)
        return stk_fail(STK_MISMATCH, "it has %s, where a BytesList is needed", kind_names[found.kind]);
    values v = start_values(feature, &found);
    for (;; n++) {
        if (!next_field(&v, &field, &ended)) return fail_damaged();
        if (ended) break;
        if (field.type != STK_WIRE_BYTES) return fail_damaged();
        *out = field.bytes;
    }
    if (n == 1) return STK_OK;
    return stk_fail(STK_MISMATCH, "its BytesList has %lld values, where 1 is needed", (long long)n);
}

static stk_status fail_count(list_kind kind, int64_t n, int64_t wanted, stk_tensor_desc desc)
{
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_MISMATCH, "it has %s of %s%lld values, where %lld are needed for %s", kind_names[kind],
                    n > wanted ? "more than " : "", (long long)(n > wanted ? wanted : n), (long long)wanted,
                    stk_desc_text(desc, text));
}

static stk_status fail_kind(list_kind kind, stk_tensor_desc desc)
{
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_MISMATCH, "it has %s, which %s cannot be made of", kind_names[kind], stk_desc_text(desc, text));
}

static stk_status read_floats(values *v, stk_tensor_desc desc, int64_t wanted, void *dst)
{
    stk_wire_field field;
    bool ended;
    int64_t n = 0;
    for (;;) {
        if (!next_field(v, &field, &ended)) return fail_damaged();
        if (ended) break;
        if ((field.type != STK_WIRE_BYTES && field.type != STK_WIRE_32) || field.bytes.n % 4) return fail_damaged();
        int64_t n_here = (int64_t)(field.bytes.n / 4);
        if (n_here > wanted - n) return fail_count(LIST_FLOAT, wanted + 1, wanted, desc);
        for (int64_t i = 0; i < n_here && desc.dtype == STK_F64; i++) {
            float value;
            memcpy(&value, field.bytes.data + 4 * i, 4);
            ((double *)dst)[n + i] = value;
        }
        if (desc.dtype == STK_F32) memcpy((float *)dst + n, field.bytes.data, field.bytes.n);
        n += n_here;
    }
    return n == wanted ? STK_OK : fail_count(LIST_FLOAT, n, wanted, desc);
}

/* False where x is outside of the type's range. */
static bool store_int(int64_t x, stk_dtype dtype, int64_t at, void *dst)
{
    switch (dtype) {
    case STK_I64: ((int64_t *)dst)[at] = x; return true;
    case STK_I32: ((int32_t *)dst)[at] = (int32_t)x; return x >= INT32_MIN && x <= INT32_MAX;
    case STK_I8: ((int8_t *)dst)[at] = (int8_t)x; return x >= INT8_MIN && x <= INT8_MAX;
    case STK_U8: ((uint8_t *)dst)[at] = (uint8_t)x; return x >= 0 && x <= UINT8_MAX;
    default: ((uint8_t *)dst)[at] = (uint8_t)x; return x == 0 || x == 1; /* bool */
    }
}

static stk_status read_ints(values *v, stk_tensor_desc desc, int64_t wanted, void *dst)
{
    stk_wire_field field;
    bool ended;
    int64_t n = 0;
    for (;;) {
        if (!next_field(v, &field, &ended)) return fail_damaged();
        if (ended) break;
        if (field.type != STK_WIRE_BYTES && field.type != STK_WIRE_VARINT) return fail_damaged();
        bool packed = field.type == STK_WIRE_BYTES;
        stk_wire numbers = packed ? stk_wire_start(field.bytes) : (stk_wire){0};
        while (!packed || numbers.p < numbers.end) {
            uint64_t x = field.value;
            if (packed && !stk_wire_varint(&numbers, &x)) return fail_damaged();
            if (n == wanted) return fail_count(LIST_INT64, n + 1, wanted, desc);
            if (!store_int((int64_t)x, desc.dtype, n++, dst))
                return stk_fail(STK_CORRUPT, "its value %lld is outside of %s", (long long)x,
                                stk_dtype_name(desc.dtype));
            if (!packed) break;
        }
    }
    return n == wanted ? STK_OK : fail_count(LIST_INT64, n, wanted, desc);
}

static stk_status find_raw(stk_span feature, stk_tensor_desc desc, stk_span *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_feature_bytes(feature, out));
    size_t wanted = stk_desc_bytes(desc);
    if (out->n == wanted) return STK_OK;
    return stk_fail(STK_MISMATCH, "it has %zu bytes, where %zu are needed for %s", out->n, wanted,
                    stk_desc_text(desc, text));
}

stk_status stk_feature_array(stk_span feature, stk_tensor_desc desc, void *dst)
{
    lists found;
    stk_span raw;
    int64_t wanted = stk_shape_count(desc.shape);
    STK_RETURN_IF_ERROR(find_lists(feature, &found));
    values v = start_values(feature, &found);
    bool is_float = desc.dtype == STK_F32 || desc.dtype == STK_F64;
    if (found.kind == LIST_FLOAT && is_float) return read_floats(&v, desc, wanted, dst);
    if (found.kind == LIST_INT64 && !stk_dtype_is_float(desc.dtype)) return read_ints(&v, desc, wanted, dst);
    if (found.kind != LIST_BYTES) return fail_kind(found.kind, desc);
    STK_RETURN_IF_ERROR(find_raw(feature, desc, &raw));
    memcpy(dst, raw.data, raw.n);
    return STK_OK;
}

const void *stk_feature_in_place(stk_span feature, stk_tensor_desc desc)
{
    /* One BytesList with one string, and nothing else: how every writer spells it. */
    stk_wire w = stk_wire_start(feature);
    stk_wire_field list, value;
    if (w.p == w.end || !stk_wire_next(&w, &list) || w.p != w.end) return NULL;
    if (list.number != LIST_BYTES || list.type != STK_WIRE_BYTES) return NULL;
    w = stk_wire_start(list.bytes);
    if (w.p == w.end || !stk_wire_next(&w, &value) || w.p != w.end) return NULL;
    if (value.number != 1 || value.type != STK_WIRE_BYTES || value.bytes.n != stk_desc_bytes(desc)) return NULL;
    return value.bytes.data;
}
