#include "data/source/manifest.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"

enum { MOST_BYTES = 256 << 20, MOST_TREE_BYTES = 512 << 20 };

static void free_shard(stk_pack_shard *shard)
{
    free(shard->file);
    free(shard->entries);
}

void stk_pack_manifest_free(stk_pack_manifest *m)
{
    for (int64_t i = 0; i < m->n_shards; i++)
        free_shard(&m->shard[i]);
    for (int64_t i = 0; m->class_name && i < m->n_classes; i++)
        free(m->class_name[i]);
    free(m->shard);
    free(m->class_name);
    *m = (stk_pack_manifest){0};
}

stk_status stk_pack_manifest_add(stk_pack_manifest *m, stk_pack_shard shard)
{
    stk_pack_shard *grown = realloc(m->shard, (size_t)(m->n_shards + 1) * sizeof(*grown));
    if (!grown) {
        free_shard(&shard);
        return stk_fail_memory((size_t)(m->n_shards + 1) * sizeof(*grown));
    }
    m->shard = grown;
    m->shard[m->n_shards++] = shard;
    return STK_OK;
}

static stk_status get_int(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *out >= 0 ? STK_OK : stk_fail(STK_CORRUPT, "'%s' is missing or no whole number", key);
}

static stk_status get_hex(const json_t *object, const char *key, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *end = NULL;
    if (text && text[0]) *out = strtoull(text, &end, 16);
    return end && !*end ? STK_OK : stk_fail(STK_CORRUPT, "'%s' is missing or not a number", key);
}

/* A name in the pack's own folder. */
static bool is_plain_name(const char *name)
{
    return name && name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 200;
}

static stk_status get_shard(const json_t *object, stk_pack_manifest *out)
{
    stk_pack_shard shard = {0};
    const char *file = json_string_value(json_object_get(object, "file"));
    const char *entries = json_string_value(json_object_get(object, "entries"));
    uint64_t crc = 0;
    if (!is_plain_name(file)) return stk_fail(STK_CORRUPT, "a shard has no file name");
    STK_RETURN_IF_ERROR(get_int(object, "n_records", &shard.n_records));
    STK_RETURN_IF_ERROR(get_int(object, "n_bytes", &shard.n_bytes));
    STK_RETURN_IF_ERROR(get_hex(object, "crc32", &crc));
    shard.crc32 = (uint32_t)crc;
    if (entries && !is_plain_name(entries)) return stk_fail(STK_CORRUPT, "entry points have a bad file name");
    shard.file = strdup(file);
    shard.entries = entries ? strdup(entries) : NULL;
    if (!shard.file || (entries && !shard.entries)) {
        free_shard(&shard);
        return stk_fail_memory(strlen(file));
    }
    return stk_pack_manifest_add(out, shard);
}

static stk_status get_classes(const json_t *list, stk_pack_manifest *out)
{
    if (!list || json_is_null(list)) return STK_OK;
    if (!json_is_array(list) || json_array_size(list) == 0) return stk_fail(STK_CORRUPT, "'classes' is no list");
    size_t n = json_array_size(list);
    out->class_name = calloc(n, sizeof(*out->class_name));
    if (!out->class_name) return stk_fail_memory(n * sizeof(*out->class_name));
    out->n_classes = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name) return stk_fail(STK_CORRUPT, "class %zu has no name", i);
        if (!(out->class_name[i] = strdup(name))) return stk_fail_memory(strlen(name));
    }
    return STK_OK;
}

static stk_status get_all(const json_t *root, stk_pack_manifest *out)
{
    int64_t format;
    const json_t *shards = json_object_get(root, "shards");
    STK_RETURN_IF_ERROR(get_int(root, "stoker_pack", &format));
    if (format != STK_PACK_FORMAT)
        return stk_fail(STK_UNSUPPORTED, "it has format %lld, this version of Stoker reads %d", (long long)format,
                        STK_PACK_FORMAT);
    STK_RETURN_IF_ERROR(get_int(root, "n_records", &out->n_records));
    STK_RETURN_IF_ERROR(get_hex(root, "fingerprint", &out->fingerprint));
    const char *shard_format = json_string_value(json_object_get(root, "format"));
    out->is_tfrecord = shard_format && !strcmp(shard_format, "tfrecord");
    if (shard_format && !out->is_tfrecord && strcmp(shard_format, "tar") != 0)
        return stk_fail(STK_UNSUPPORTED, "its shards are '%.40s', which this version of Stoker does not read",
                        shard_format);
    out->has_labels = json_is_true(json_object_get(root, "has_labels"));
    STK_RETURN_IF_ERROR(get_classes(json_object_get(root, "classes"), out));
    if (!json_is_array(shards)) return stk_fail(STK_CORRUPT, "'shards' is no list");
    for (size_t i = 0; i < json_array_size(shards); i++)
        STK_RETURN_IF_ERROR(get_shard(json_array_get(shards, i), out));
    return STK_OK;
}

stk_status stk_pack_manifest_parse(stk_span bytes, stk_pack_manifest *out)
{
    json_error_t error;
    *out = (stk_pack_manifest){0};
    if (bytes.n > MOST_BYTES) return stk_fail(STK_CORRUPT, "it is too large");
    STK_RETURN_IF_ERROR(stk_json_check(bytes, MOST_TREE_BYTES));
    json_t *root;
    STK_RETURN_IF_ERROR(stk_json_parse(bytes.data, bytes.n, JSON_REJECT_DUPLICATES, &root, &error));
    stk_status status = get_all(root, out);
    json_decref(root);
    return status;
}
