/* The file stoker-pack.json: reading and writing it; see source/manifest.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/json.h"
#include "data/remote/remote.h"
#include "data/source/manifest.h"

stk_status stk_pack_manifest_read(const char *folder, const char *name, stk_pack_manifest *out)
{
    char path[4096];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    stk_status status;
    *out = (stk_pack_manifest){0};
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, name));
    status = stk_read_input(path, &bytes, &capacity, &n);
    if (status == STK_OK) {
        status = stk_pack_manifest_parse((stk_span){bytes, n}, out);
        if (status != STK_OK) stk_fail_prefix(status, "'%s': ", path);
    }
    free(bytes);
    return status;
}

/* --- writing --- */

static json_t *put_shard(const stk_pack_shard *shard)
{
    char crc[16];
    snprintf(crc, sizeof(crc), "%08" PRIx32, shard->crc32);
    return json_pack("{s:s, s:I, s:I, s:s, s:s*}", "file", shard->file, "n_records", (json_int_t)shard->n_records,
                     "n_bytes", (json_int_t)shard->n_bytes, "crc32", crc, "entries", shard->entries);
}

/* NULL: out of memory. */
static json_t *put_all(const stk_pack_manifest *m)
{
    char fingerprint[32];
    snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, m->fingerprint);
    json_t *root = json_pack("{s:i, s:s, s:I, s:s, s:b}", "stoker_pack", STK_PACK_FORMAT, "format",
                             m->is_tfrecord ? "tfrecord" : "tar", "n_records", (json_int_t)m->n_records, "fingerprint",
                             fingerprint, "has_labels", (int)m->has_labels);
    json_t *classes = m->class_name ? json_array() : json_null(), *shards = json_array();
    bool bad = !root || !classes || !shards;
    for (int64_t i = 0; m->class_name && i < m->n_classes && !bad; i++)
        bad = json_array_append_new(classes, json_string(m->class_name[i])) != 0;
    for (int64_t i = 0; i < m->n_shards && !bad; i++)
        bad = json_array_append_new(shards, put_shard(&m->shard[i])) != 0;
    bad = bad || json_object_set(root, "classes", classes) || json_object_set(root, "shards", shards);
    json_decref(classes);
    json_decref(shards);
    if (!bad) return root;
    json_decref(root);
    return NULL;
}

stk_status stk_pack_manifest_write(const stk_pack_manifest *m, const char *folder, const char *name)
{
    char path[4096];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, name));
    unsigned mark = stk_json_mark();
    char *text;
    stk_status status = stk_json_print(put_all(m), mark, JSON_INDENT(1), &text);
    /* Class names that are no UTF-8 cannot be written as JSON. */
    if (status == STK_INVALID) return stk_fail(status, "'%s' cannot be made: a class name is no UTF-8", path);
    STK_RETURN_IF_ERROR(status);
    status = stk_file_write_durably(path, text, strlen(text));
    free(text);
    return status;
}
