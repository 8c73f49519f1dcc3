#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "base/little.h"

/* The format's own bound on a header, and ours on its tree: some 250,000 tensors. */
enum { MOST_HEADER_BYTES = 100000000, MOST_TREE_BYTES = 256 << 20 };

/* like: a dtype of ours of the same size. */
static const struct {
    const char *name;
    stk_dtype dtype, like;
} types[] = {{"F32", STK_F32, STK_F32},        {"BF16", STK_BF16, STK_BF16},
             {"F16", STK_F16, STK_F16},        {"F64", STK_F64, STK_F64},
             {"I64", STK_I64, STK_I64},        {"I32", STK_I32, STK_I32},
             {"I8", STK_I8, STK_I8},           {"U8", STK_U8, STK_U8},
             {"BOOL", STK_BOOL, STK_BOOL},     {"I16", STK_N_DTYPES, STK_F16},
             {"U16", STK_N_DTYPES, STK_F16},   {"U32", STK_N_DTYPES, STK_I32},
             {"U64", STK_N_DTYPES, STK_I64},   {"F8_E4M3", STK_N_DTYPES, STK_I8},
             {"F8_E5M2", STK_N_DTYPES, STK_I8}};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static stk_status parse_type(const char *tensor, const char *text, int *out)
{
    for (*out = 0; text && *out < N_TYPES; ++*out)
        if (!strcmp(text, types[*out].name)) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "tensor '%s' has dtype '%s', which is not supported", tensor,
                    text ? text : "none");
}

static stk_status parse_shape(const char *tensor, json_t *array, stk_shape *out)
{
    *out = (stk_shape){0};
    if (!json_is_array(array) || json_array_size(array) > STK_MAX_RANK)
        return stk_fail(STK_CORRUPT, "tensor '%s' has no shape of at most %d dimensions", tensor, STK_MAX_RANK);
    out->rank = (int32_t)json_array_size(array);
    for (int i = 0; i < out->rank; i++) {
        json_t *dim = json_array_get(array, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return stk_fail(STK_CORRUPT, "tensor '%s' has a dimension that is no count", tensor);
        out->dim[i] = json_integer_value(dim);
    }
    return STK_OK;
}

static stk_status parse_entry(const char *name, json_t *value, size_t data_bytes, stk_safetensors_entry *out)
{
    json_t *offsets = json_object_get(value, "data_offsets");
    stk_shape shape;
    int type = 0;
    if (!json_is_object(value)) return stk_fail(STK_CORRUPT, "the entry of tensor '%s' is no object", name);
    STK_RETURN_IF_ERROR(parse_type(name, json_string_value(json_object_get(value, "dtype")), &type));
    STK_RETURN_IF_ERROR(parse_shape(name, json_object_get(value, "shape"), &shape));
    stk_tensor_desc like = stk_desc_make(types[type].like, shape);
    out->type = types[type].name;
    out->desc = stk_desc_make(types[type].dtype, shape);
    if (stk_desc_check(like) != STK_OK)
        return stk_fail_prefix(STK_CORRUPT, "the shape of tensor '%s' cannot be right: ", name);
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin) ||
        (uint64_t)json_integer_value(end) > data_bytes)
        return stk_fail(STK_CORRUPT, "tensor '%s' lies outside of the file", name);
    out->begin = (size_t)json_integer_value(begin);
    out->end = (size_t)json_integer_value(end);
    if (out->end - out->begin != stk_desc_bytes(like))
        return stk_fail(STK_CORRUPT, "tensor '%s' has %zu bytes where its shape needs %zu", name, out->end - out->begin,
                        stk_desc_bytes(like));
    out->name = strdup(name);
    return out->name ? STK_OK : stk_fail_memory(strlen(name));
}

static int compare_begins(const void *a, const void *b)
{
    const stk_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static stk_status check_places(const stk_safetensors *set, size_t data_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->entry[i].begin != at)
            return stk_fail(STK_CORRUPT, "tensor '%s' %s", set->entry[i].name,
                            set->entry[i].begin < at ? "overlaps another one" : "leaves a gap before it");
        at = set->entry[i].end;
    }
    if (at != data_bytes) return stk_fail(STK_CORRUPT, "%zu bytes after the last tensor", data_bytes - at);
    return STK_OK;
}

/* Texts only, as the format says. */
static stk_status parse_metadata(json_t *metadata, stk_safetensors *out)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return stk_fail(STK_CORRUPT, "'__metadata__' is no object");
    out->metadata = calloc(2 * json_object_size(metadata) + 1, sizeof(*out->metadata));
    if (!out->metadata) return stk_fail_memory(json_object_size(metadata) * 2 * sizeof(*out->metadata));
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) return stk_fail(STK_CORRUPT, "'__metadata__' has a value that is no text");
        char **pair = &out->metadata[2 * out->n_metadata++];
        pair[0] = strdup(key);
        pair[1] = strdup(json_string_value(value));
        if (!pair[0] || !pair[1]) return stk_fail_memory(strlen(key) + json_string_length(value));
    }
    return STK_OK;
}

static stk_status parse_entries(json_t *header, size_t data_bytes, stk_safetensors *out)
{
    const char *name;
    json_t *value;
    out->entry = calloc(json_object_size(header) + 1, sizeof(*out->entry));
    if (!out->entry) return stk_fail_memory(json_object_size(header) * sizeof(*out->entry));
    json_object_foreach(header, name, value)
    {
        if (!strcmp(name, "__metadata__")) {
            STK_RETURN_IF_ERROR(parse_metadata(value, out));
            continue;
        }
        STK_RETURN_IF_ERROR(parse_entry(name, value, data_bytes, &out->entry[out->n]));
        out->n++;
    }
    qsort(out->entry, out->n, sizeof(*out->entry), compare_begins);
    return check_places(out, data_bytes);
}

/* The first eight bytes: how long the header is. */
static stk_status parse_length(const uint8_t *bytes, uint64_t file_bytes, size_t *out)
{
    uint64_t n = stk_little64(bytes);
    if (n > file_bytes - 8)
        return stk_fail(STK_CORRUPT, "the header's length, %llu bytes, cannot be right", (unsigned long long)n);
    if (n > MOST_HEADER_BYTES)
        return stk_fail(STK_CORRUPT, "the header has %llu bytes; the format allows %d", (unsigned long long)n,
                        MOST_HEADER_BYTES);
    *out = (size_t)n;
    return STK_OK;
}

static stk_status parse_header(stk_span text, size_t data_bytes, stk_safetensors *out)
{
    json_error_t error;
    stk_status status = stk_json_check(text, MOST_TREE_BYTES);
    if (status != STK_OK) return stk_fail_prefix(status, "the header is refused: ");
    json_t *header;
    status = stk_json_parse(text.data, text.n, JSON_REJECT_DUPLICATES, &header, &error);
    if (status == STK_CORRUPT) return stk_fail(STK_CORRUPT, "the header is not JSON: %s", error.text);
    STK_RETURN_IF_ERROR(status);
    if (!json_is_object(header)) STK_TRY(stk_fail(STK_CORRUPT, "the header is no JSON object"));
    STK_TRY(parse_entries(header, data_bytes, out));
done:
    json_decref(header);
    if (status != STK_OK) stk_safetensors_free(out);
    return status;
}

stk_status stk_safetensors_parse(stk_span file, stk_safetensors *out)
{
    size_t n = 0;
    *out = (stk_safetensors){0};
    if (file.n < 8) return stk_fail(STK_CORRUPT, "too short for a safetensors file (%zu bytes)", file.n);
    STK_RETURN_IF_ERROR(parse_length(file.data, file.n, &n));
    STK_RETURN_IF_ERROR(parse_header((stk_span){file.data + 8, n}, file.n - 8 - n, out));
    out->data_at = 8 + n;
    for (size_t i = 0; i < out->n; i++)
        out->entry[i].data = file.data + out->data_at + out->entry[i].begin;
    return STK_OK;
}

stk_status stk_safetensors_scan(const stk_input *file, stk_safetensors *out)
{
    uint8_t length[8], *header = NULL;
    size_t n = 0;
    stk_status status;
    *out = (stk_safetensors){0};
    if (file->n_bytes < 8)
        return stk_fail(STK_CORRUPT, "too short for a safetensors file (%llu bytes)",
                        (unsigned long long)file->n_bytes);
    STK_RETURN_IF_ERROR(stk_input_read(file, 0, length, 8));
    STK_RETURN_IF_ERROR(parse_length(length, file->n_bytes, &n));
    header = malloc(n + 1);
    if (!header) return stk_fail_memory(n);
    STK_TRY(stk_input_read(file, 8, header, n));
    STK_TRY(parse_header((stk_span){header, n}, (size_t)(file->n_bytes - 8 - n), out));
    out->data_at = 8 + n;
done:
    free(header);
    return status;
}

void stk_safetensors_free(stk_safetensors *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->entry[i].name);
    free(set->entry);
    for (size_t i = 0; i < 2 * set->n_metadata; i++)
        free(set->metadata[i]);
    free(set->metadata);
    *set = (stk_safetensors){0};
}

const stk_safetensors_entry *stk_safetensors_find(const stk_safetensors *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (!strcmp(set->entry[i].name, name)) return &set->entry[i];
    return NULL;
}

const char *stk_safetensors_type(stk_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype && types[i].like == dtype) return types[i].name;
    return "?";
}

/* Names are ours or a user's: quote and backslash need escaping, control characters are refused by the graph's users.
 */
static void add_json_text(stk_text *out, const char *text)
{
    stk_text_add(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') stk_text_add(out, "\\");
        if ((unsigned char)*text < 0x20)
            stk_text_add(out, "\\u%04x", (unsigned char)*text);
        else
            stk_text_add(out, "%c", *text);
    }
    stk_text_add(out, "\"");
}

stk_status stk_safetensors_header(const char *const *names, const stk_tensor_desc *descs, size_t n,
                                  const char *const *metadata, stk_text *out)
{
    size_t at = 0;
    unsigned char length[8] = {0};
    stk_text_add_bytes(out, length, 8);
    stk_text_add(out, "{\"__metadata__\":{\"format\":\"pt\"");
    for (; metadata && metadata[0]; metadata += 2) {
        stk_text_add(out, ",");
        add_json_text(out, metadata[0]);
        stk_text_add(out, ":");
        add_json_text(out, metadata[1]);
    }
    stk_text_add(out, "}");
    for (size_t i = 0; i < n; i++) {
        size_t bytes = stk_desc_bytes(descs[i]);
        stk_text_add(out, ",");
        add_json_text(out, names[i]);
        stk_text_add(out, ":{\"dtype\":\"%s\",\"shape\":[", stk_safetensors_type(descs[i].dtype));
        for (int d = 0; d < descs[i].shape.rank; d++)
            stk_text_add(out, "%s%lld", d ? "," : "", (long long)descs[i].shape.dim[d]);
        stk_text_add(out, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    stk_text_add(out, "}");
    while (out->n % 8 && !out->failed)
        stk_text_add(out, " ");
    STK_RETURN_IF_ERROR(stk_text_status(out));
    for (int i = 0; i < 8; i++)
        out->data[i] = (char)((uint64_t)(out->n - 8) >> (8 * i));
    return STK_OK;
}
