/* TFRecord shards of tf.train.Example. A record is read with one call into the worker's own memory; byte strings are
 * handed on where they lie in it, and lists of numbers become arrays in front of it.
 *
 *     scratch[0]:   [ array of feature 0 | array of feature 1 | ... | the record ]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "data/codec/example.h"
#include "data/codec/tfrecord.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/records.h"
#include "data/source/shards.h"
#include "data/source/source_list.h"

enum { ALIGNMENT = 64 };

typedef struct tfrecord_source {
    stk_source base;
    stk_shards shards;
    stk_span key[STK_MAX_FIELDS]; /* in the Examples; owned */
    size_t place[STK_MAX_FIELDS]; /* of each array in scratch[0] */
    size_t arrays_bytes;
    void *default_value[STK_MAX_FIELDS]; /* NULL: the key is needed */
} tfrecord_source;

/* --- reading --- */

static stk_status read_feature(const tfrecord_source *s, int i, stk_span feature, uint8_t *arrays, stk_item *item)
{
    const stk_field_type *type = &s->base.field[i].type;
    *item = (stk_item){*type, arrays + s->place[i], 0};
    if (type->kind == STK_FIELD_ENCODED) {
        stk_span bytes;
        STK_RETURN_IF_ERROR(stk_feature_bytes(feature, &bytes));
        item->data = (void *)(uintptr_t)bytes.data;
        item->n_bytes = bytes.n;
        return STK_OK;
    }
    item->n_bytes = stk_desc_bytes(type->desc);
    if (stk_dtype_bytes(type->desc.dtype) == 1) {
        const void *in_place = stk_feature_in_place(feature, type->desc);
        if (in_place) {
            item->data = (void *)(uintptr_t)in_place;
            return STK_OK;
        }
    }
    return stk_feature_array(feature, type->desc, item->data);
}

static stk_status read_example(const tfrecord_source *s, stk_span example, uint8_t *arrays, stk_item *item)
{
    stk_span feature[STK_MAX_FIELDS];
    int n = s->base.n_fields;
    STK_RETURN_IF_ERROR(stk_example_find(example, s->key, n, feature));
    for (int i = 0; i < n; i++) {
        const char *key = (const char *)s->key[i].data;
        if (!feature[i].data || stk_feature_is_empty(feature[i])) {
            if (!s->default_value[i]) return stk_fail(STK_CORRUPT, "the Example has no key '%s'", key);
            item[i] =
                (stk_item){s->base.field[i].type, s->default_value[i], stk_desc_bytes(s->base.field[i].type.desc)};
            continue;
        }
        stk_status status = read_feature(s, i, feature[i], arrays, &item[i]);
        if (status != STK_OK) return stk_fail_prefix(status, "key '%s': ", key);
    }
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const tfrecord_source *s = (const tfrecord_source *)source;
    stk_shard_place place = stk_shards_find(&s->shards, i_record);
    stk_span data;
    const uint8_t *held = place.shard->bytes;
    size_t n_scratch = s->arrays_bytes + (held ? 1 : place.n_bytes);
    uint8_t *arrays = stk_scratch_get(&scratch[0], n_scratch);
    if (!arrays) return STK_NO_MEMORY;
    uint8_t *own = arrays + s->arrays_bytes;
    if (!held) STK_RETURN_IF_ERROR(stk_input_read(&place.shard->file, place.at, own, place.n_bytes));
    const uint8_t *record = held ? held + place.at : own;
    STK_RETURN_IF_ERROR(stk_tfrecord_parse((stk_span){record, place.n_bytes}, &data));
    return read_example(s, data, arrays, item);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    stk_shard_place place = stk_shards_find(&((const tfrecord_source *)source)->shards, i_record);
    char where[80];
    int n = snprintf(where, sizeof(where), "', record %lld at byte %llu", (long long)place.i_in_shard,
                     (unsigned long long)place.at);
    /* The end of a long path tells more than its beginning, and the place must be there. */
    size_t room = out_bytes > (size_t)n + 2 ? out_bytes - (size_t)n - 2 : 0, n_path = strlen(place.shard->path);
    snprintf(out, out_bytes, "'%s%s", place.shard->path + (n_path > room ? n_path - room : 0), where);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    stk_shards_prefetch(&((const tfrecord_source *)source)->shards, i_record);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    stk_shard_place place = stk_shards_find(&((const tfrecord_source *)source)->shards, i_record);
    return place.shard->bytes || stk_input_fetch(&place.shard->file, place.at, place.n_bytes);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const stk_shards *shards = &((const tfrecord_source *)source)->shards;
    return stk_shards_find(shards, i_record).shard - shards->shard;
}

static void close_source(stk_source *source)
{
    tfrecord_source *s = (tfrecord_source *)source;
    stk_shards_close(&s->shards);
    for (int i = 0; i < STK_MAX_FIELDS; i++) {
        free(s->default_value[i]);
        free((void *)(uintptr_t)s->key[i].data);
    }
    free(s);
}

static size_t held_bytes(const stk_source *source)
{
    return stk_shards_bytes(&((const tfrecord_source *)source)->shards);
}

static bool stamp_of(const stk_source *source, int64_t i_record, uint64_t *n_bytes, int64_t *stamp)
{
    const stk_input *file = &stk_shards_find(&((const tfrecord_source *)source)->shards, i_record).shard->file;
    *n_bytes = file->n_bytes;
    *stamp = stk_input_stamp(file);
    return !file->memory; /* which was read once and has no time */
}

static const stk_source_class class_tfrecord = {.name = "tfrecord",
                                                .held_bytes = held_bytes,
                                                .stamp = stamp_of,
                                                .read = read_record,
                                                .name_record = name_record,
                                                .close = close_source,
                                                .prefetch = prefetch,
                                                .fetch = fetch,
                                                .file_of = file_of};

/* --- opening --- */

static stk_status set_feature(tfrecord_source *s, const stk_feature *feature, int i)
{
    stk_source_field *field = &s->base.field[i];
    char *key = strdup(feature->key ? feature->key : feature->name);
    if (!key) return stk_fail_memory(sizeof(field->name));
    s->key[i] = (stk_span){(const uint8_t *)key, strlen(key)};
    if (feature->encoded) {
        field->type = (stk_field_type){.kind = STK_FIELD_ENCODED};
        return STK_OK;
    }
    size_t n = stk_desc_bytes(field->type.desc);
    s->place[i] = s->arrays_bytes;
    s->arrays_bytes += stk_round_up(n, ALIGNMENT);
    if (!feature->default_value) return STK_OK;
    if (!(s->default_value[i] = malloc(n))) return stk_fail_memory(n);
    memcpy(s->default_value[i], feature->default_value, n);
    return STK_OK;
}

static stk_status set_features(tfrecord_source *s, const stk_feature *features, int n_features)
{
    stk_array_field fields[STK_MAX_FIELDS];
    if (n_features < 1 || n_features > STK_MAX_FIELDS || !features)
        return stk_fail(STK_INVALID, "%d features: 1 to %d are possible", n_features, STK_MAX_FIELDS);
    for (int i = 0; i < n_features; i++) {
        bool encoded = features[i].encoded;
        fields[i] = (stk_array_field){.name = features[i].name,
                                      .dtype = encoded ? STK_U8 : features[i].dtype,
                                      .sample = encoded ? (stk_shape){0} : features[i].shape};
    }
    STK_RETURN_IF_ERROR(stk_source_set_fields(&s->base, s->shards.n_records, fields, n_features));
    for (int i = 0; i < n_features; i++)
        STK_RETURN_IF_ERROR(set_feature(s, &features[i], i));
    return STK_OK;
}

stk_status stk_source_open_tfrecord(const char *const *paths, int n_paths, const stk_feature *features, int n_features,
                                    bool in_memory, stk_source **out)
{
    stk_status status;
    tfrecord_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(stk_shards_open_tfrecord(paths, n_paths, in_memory, &s->shards));
    STK_TRY(set_features(s, features, n_features));
    if (s->shards.n_stale)
        snprintf(s->base.note, sizeof(s->base.note),
                 "the index of '%.120s'%s did not fit the file any more and has been rebuilt", s->shards.stale,
                 s->shards.n_stale > 1 ? ", and others," : "");
    for (int i = 0; i < s->shards.n_shards; i++) {
        if (in_memory) s->base.n_bytes += (int64_t)s->shards.shard[i].file.n_bytes;
        s->base.is_far = s->base.is_far || s->shards.shard[i].file.backend;
    }
    s->base.n_files = s->shards.n_shards;
    s->base.class = &class_tfrecord;
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

/* --- settings --- */

enum { MOST_DEFAULT_BYTES = 1 << 20 };

static const char *const feature_words[] = {"encoded", "u8",   "i8",  "bool", "i32", "i64",
                                            "f16",     "bf16", "f32", "f64",  NULL};
static const stk_key side_key = {.name = "side", .type = STK_KEY_INT, .least = 1, .most = 1e12};
static const stk_key feature_keys[] = {
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = feature_words,
     .required = true,
     .doc = "The element type; encoded: one JPEG, PNG or WebP file."},
    {.name = "shape",
     .type = STK_KEY_LIST,
     .element = &side_key,
     .default_value = "[]",
     .doc = "Of one sample's array; [] is a single number."},
    {.name = "key", .type = STK_KEY_TEXT, .doc = "The Example's key, as image/encoded. Default: the field's name."},
    {.name = "default",
     .type = STK_KEY_REAL,
     .doc = "What all elements are where the key is missing. Default: a missing key is an error."},
    STK_KEY_END};
static const stk_key feature_key = {.name = "feature",
                                    .type = STK_KEY_MAP,
                                    .keys = feature_keys,
                                    .doc = "A field out of a feature of tf.train.Example; u8 alone is {dtype: u8}."};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "Shards, plain, GZIP or ZLIB; patterns stand for their matches by name."),
    {.name = "parse_example",
     .type = STK_KEY_NAMED,
     .element = &feature_key,
     .required = true,
     .doc = "The fields of a sample."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether the shards are read into memory at the start and not again; faster where records are small."},
    STK_KEY_END};

/* All elements of one value. The caller frees *out. */
static stk_status make_default(const stk_yaml_node *node, stk_tensor_desc desc, void **out)
{
    size_t bytes = stk_dtype_bytes(desc.dtype);
    int64_t whole = fabs(node->real) < 0x1p62 ? (int64_t)node->real : 0, n = stk_shape_count(desc.shape);
    if (desc.dtype == STK_F16 || desc.dtype == STK_BF16)
        return stk_yaml_fail(node, "%s has no default", stk_dtype_name(desc.dtype));
    if (!stk_dtype_is_float(desc.dtype) && (double)whole != node->real)
        return stk_yaml_fail(node, "the default of %s must be a whole number", stk_dtype_name(desc.dtype));
    if (stk_desc_bytes(desc) > MOST_DEFAULT_BYTES) return stk_yaml_fail(node, "so large an array has no default");
    float f32 = (float)node->real;
    int32_t i32 = (int32_t)whole;
    int8_t i8 = (int8_t)whole;
    uint8_t u8 = (uint8_t)whole;
    bool fits = desc.dtype == STK_I32    ? i32 == whole
                : desc.dtype == STK_I8   ? i8 == whole
                : desc.dtype == STK_U8   ? u8 == whole
                : desc.dtype == STK_BOOL ? whole == 0 || whole == 1
                                         : true;
    if (!fits) return stk_yaml_fail(node, "the default is outside of %s", stk_dtype_name(desc.dtype));
    const void *element = desc.dtype == STK_F32   ? (const void *)&f32
                          : desc.dtype == STK_F64 ? (const void *)&node->real
                          : desc.dtype == STK_I64 ? (const void *)&whole
                          : desc.dtype == STK_I32 ? (const void *)&i32
                          : desc.dtype == STK_I8  ? (const void *)&i8
                                                  : (const void *)&u8;
    char *p = *out = malloc(stk_desc_bytes(desc));
    if (!p) return stk_fail_memory(stk_desc_bytes(desc));
    for (int64_t i = 0; i < n; i++)
        memcpy(p + (size_t)i * bytes, element, bytes);
    return STK_OK;
}

static stk_status make_feature(const stk_yaml_node *node, stk_feature *out, void **default_value)
{
    const stk_yaml_node *shape = stk_yaml_get(node, "shape"), *given = stk_yaml_get(node, "default");
    const char *dtype = stk_yaml_text(node, "dtype");
    *out = (stk_feature){.name = node->key, .key = stk_yaml_text(node, "key"), .encoded = !strcmp(dtype, "encoded")};
    if (out->encoded) {
        if (shape && shape->child) return stk_yaml_fail(shape, "encoded bytes have no shape");
        return given ? stk_yaml_fail(given, "encoded bytes have no default") : STK_OK;
    }
    stk_dtype_from_name(dtype, &out->dtype);
    if (shape->n_children > STK_MAX_RANK)
        return stk_yaml_fail(shape, "more than %d dimensions are not possible", STK_MAX_RANK);
    for (const stk_yaml_node *side = shape->child; side; side = side->next)
        out->shape.dim[out->shape.rank++] = side->integer;
    if (stk_desc_check(stk_desc_make(out->dtype, out->shape)) != STK_OK)
        return stk_yaml_fail(shape, "so large a shape is not possible");
    if (!given) return STK_OK;
    STK_RETURN_IF_ERROR(make_default(given, stk_desc_make(out->dtype, out->shape), default_value));
    out->default_value = *default_value;
    return STK_OK;
}

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const stk_yaml_node *parse = stk_yaml_get(settings, "parse_example");
    stk_feature features[STK_SOURCE_MOST_NAMES];
    void *default_value[STK_SOURCE_MOST_NAMES] = {NULL};
    const char **paths = NULL;
    int n_paths, n = 0;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_source_check_names(parse));
    STK_TRY(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &n_paths));
    for (const stk_yaml_node *child = parse->child; child; child = child->next, n++)
        STK_TRY(make_feature(child, &features[n], &default_value[n]));
    STK_TRY(stk_yaml_locate(
        settings, stk_source_open_tfrecord(paths, n_paths, features, n, stk_yaml_bool(settings, "in_memory"), out)));
done:
    for (int i = 0; i < STK_SOURCE_MOST_NAMES; i++)
        free(default_value[i]);
    free(paths);
    return status;
}

const stk_source_kind stk_source_kind_tfrecord = {.key = {.name = "tfrecord",
                                                          .type = STK_KEY_MAP,
                                                          .keys = keys,
                                                          .no_short = true,
                                                          .doc = "TFRecord shards of tf.train.Example."},
                                                  .open = open_settings};
