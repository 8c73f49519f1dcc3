/* Tar shards in WebDataset's naming; see source/tar_samples.h. A field is a list of extensions, of which the first that
 * a sample has counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/idx.h"
#include "data/remote/http.h"
#include "data/remote/remote.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/open_many.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/shards.h"
#include "data/source/source_list.h"
#include "data/source/tar_samples.h"
#include "data/source/text_records.h"

typedef enum content { CONTENT_OTHER, CONTENT_IMAGE, CONTENT_NUMBER, CONTENT_TEXT } content;

typedef struct tar_shard {
    char *path;
    stk_input file;
    stk_tar_samples samples;
    int64_t i_first;
    bool was_stale; /* its index had to be rebuilt */
} tar_shard;

typedef struct tar_source {
    stk_source base;
    tar_shard *shard;
    int n_shards;
    char *extensions[STK_MAX_FIELDS];
    content content[STK_MAX_FIELDS];
} tar_source;

/* "seg.png" is an image too. */
static content content_of(const char *extension, size_t n)
{
    static const struct {
        const char *extension;
        content content;
    } known[] = {{"jpg", CONTENT_IMAGE},  {"jpeg", CONTENT_IMAGE},   {"png", CONTENT_IMAGE},    {"webp", CONTENT_IMAGE},
                 {"cls", CONTENT_NUMBER}, {"cls2", CONTENT_NUMBER},  {"index", CONTENT_NUMBER}, {"inx", CONTENT_NUMBER},
                 {"id", CONTENT_NUMBER},  {"count", CONTENT_NUMBER}, {"txt", CONTENT_TEXT},     {"text", CONTENT_TEXT},
                 {"json", CONTENT_TEXT}};
    for (const char *dot; (dot = memchr(extension, '.', n)); extension = dot + 1)
        n -= (size_t)(dot + 1 - extension);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strncmp(known[i].extension, extension, n) && !known[i].extension[n]) return known[i].content;
    return CONTENT_OTHER;
}

static const tar_shard *find_shard(const tar_source *s, int64_t i_record)
{
    int low = 0, high = s->n_shards - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (i_record >= s->shard[middle].i_first)
            low = middle;
        else
            high = middle - 1;
    }
    return &s->shard[low];
}

/* The part for one field of sample i; NULL where it has none of the extensions. */
static const stk_tar_part *find_part(const tar_shard *shard, int64_t i, const char *extensions)
{
    for (const char *p = extensions;; p++) {
        size_t n = strcspn(p, ";");
        const stk_tar_part *part = n ? stk_tar_samples_find(&shard->samples, i, p, n) : NULL;
        p += n;
        if (part || !*p) return part;
    }
}

/* --- reading --- */

enum { NEAR_BYTES = 8192 }; /* that may be read for nothing: they cost less than another system call */

static stk_status parse_number(const char *text, const char *extensions, int32_t *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    while (*end == ' ' || *end == '\n' || *end == '\r')
        end++;
    if (errno || end == text || *end || value < INT32_MIN || value > INT32_MAX)
        return stk_fail(STK_CORRUPT, "its .%s is no whole number: '%.20s'", extensions, text);
    *out = (int32_t)value;
    return STK_OK;
}

/* Bytes of an archive that are in memory, if any. */
typedef struct window {
    uint64_t at, n;
    const uint8_t *bytes;
} window;

static stk_status read_field(const tar_source *s, const tar_shard *shard, const stk_tar_part *part, int i,
                             const window *near, stk_scratch *scratch, stk_item *item)
{
    bool is_number = s->content[i] == CONTENT_NUMBER;
    if (is_number && part->n_bytes > 30) return stk_fail(STK_CORRUPT, "its .%s is no whole number", s->extensions[i]);
    size_t n = (size_t)part->n_bytes;
    uint8_t *bytes = NULL, *dst;
    if (!near->bytes || is_number) {
        bytes = stk_scratch_get(scratch, is_number ? 64 : n + 1);
        if (!bytes) return STK_NO_MEMORY;
        dst = is_number ? bytes + 16 : bytes;
        if (near->bytes)
            memcpy(dst, near->bytes + (part->at - near->at), n);
        else
            STK_RETURN_IF_ERROR(stk_input_read(&shard->file, part->at, dst, n));
    } else {
        bytes = (uint8_t *)(uintptr_t)near->bytes + (part->at - near->at);
    }
    *item = (stk_item){s->base.field[i].type, bytes, n};
    if (s->content[i] == CONTENT_TEXT) *item = stk_text_item(&s->base.field[i], (stk_span){bytes, n});
    if (!is_number) return STK_OK;
    bytes[16 + n] = 0;
    item->n_bytes = sizeof(int32_t);
    return parse_number((const char *)bytes + 16, s->extensions[i], item->data);
}

/* Parts that lie close together are read at once, into the scratch memory of the first field that is no number. */
static stk_status read_near(const tar_source *s, const tar_shard *shard, const stk_tar_part *const *part,
                            stk_scratch *scratch, window *near)
{
    uint64_t low = UINT64_MAX, high = 0, wanted = 0;
    int i_place = -1;
    for (int i = 0; i < s->base.n_fields; i++) {
        if (part[i]->at < low) low = part[i]->at;
        if (part[i]->at + part[i]->n_bytes > high) high = part[i]->at + part[i]->n_bytes;
        wanted += part[i]->n_bytes;
        if (i_place < 0 && s->content[i] != CONTENT_NUMBER) i_place = i;
    }
    *near = (window){.at = low, .n = high - low};
    if (s->base.n_fields < 2 || i_place < 0 || near->n > wanted + NEAR_BYTES) return STK_OK;
    uint8_t *bytes = stk_scratch_get(&scratch[i_place], (size_t)near->n + 1);
    if (!bytes) return STK_NO_MEMORY;
    near->bytes = bytes;
    return stk_input_read(&shard->file, low, bytes, (size_t)near->n);
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const tar_source *s = (const tar_source *)source;
    const tar_shard *shard = find_shard(s, i_record);
    const stk_tar_part *part[STK_MAX_FIELDS];
    window near;
    for (int i = 0; i < source->n_fields; i++) {
        part[i] = find_part(shard, i_record - shard->i_first, s->extensions[i]);
        if (!part[i]) return stk_fail(STK_CORRUPT, "it has no file .%s", s->extensions[i]);
    }
    STK_RETURN_IF_ERROR(read_near(s, shard, part, scratch, &near));
    for (int i = 0; i < source->n_fields; i++)
        STK_RETURN_IF_ERROR(read_field(s, shard, part[i], i, &near, &scratch[i], &item[i]));
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const tar_shard *shard = find_shard((const tar_source *)source, i_record);
    const stk_tar_sample *sample = &shard->samples.sample[i_record - shard->i_first];
    uint64_t at = shard->samples.part[sample->i_part].at;
    snprintf(out, out_bytes, "'%s', sample '%s' at byte %llu", shard->path, shard->samples.names + sample->key_at,
             (unsigned long long)at);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    const tar_source *s = (const tar_source *)source;
    const tar_shard *shard = find_shard(s, i_record);
    for (int i = 0; i < source->n_fields; i++) {
        const stk_tar_part *part = find_part(shard, i_record - shard->i_first, s->extensions[i]);
        if (part && !stk_input_fetch(&shard->file, part->at, (size_t)part->n_bytes)) return false;
    }
    return true;
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const tar_source *s = (const tar_source *)source;
    return find_shard(s, i_record) - s->shard;
}

static void close_source(stk_source *source)
{
    tar_source *s = (tar_source *)source;
    for (int i = 0; i < s->n_shards; i++) {
        stk_input_close(&s->shard[i].file);
        stk_tar_samples_free(&s->shard[i].samples);
        free(s->shard[i].path);
    }
    free(s->shard);
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        free(s->extensions[i]);
    free(s);
}

static size_t held_bytes(const stk_source *source)
{
    const tar_source *s = (const tar_source *)source;
    size_t n = 0;
    for (int i = 0; i < s->n_shards; i++) {
        const stk_tar_samples *samples = &s->shard[i].samples;
        n += samples->names_capacity + (size_t)samples->part_capacity * sizeof(*samples->part) +
             (size_t)samples->sample_capacity * sizeof(*samples->sample);
    }
    return n;
}

static bool stamp_of(const stk_source *source, int64_t i_record, uint64_t *n_bytes, int64_t *stamp)
{
    const stk_input *file = &find_shard((const tar_source *)source, i_record)->file;
    *n_bytes = file->n_bytes;
    *stamp = stk_input_stamp(file);
    return true;
}

static const stk_source_class class_tar = {.name = "tar",
                                           .held_bytes = held_bytes,
                                           .stamp = stamp_of,
                                           .read = read_record,
                                           .name_record = name_record,
                                           .close = close_source,
                                           .fetch = fetch,
                                           .file_of = file_of};

/* --- opening --- */

static stk_status open_shard(const char *path, bool keep_open, tar_shard *shard, bool *stale)
{
    uint8_t start[2];
    char *unpacked;
    stk_status status;
    if (!(shard->path = strdup(path))) return stk_fail_memory(strlen(path));
    STK_RETURN_IF_ERROR(stk_open_input(path, keep_open, &shard->file));
    if (shard->file.n_bytes >= sizeof(start)) STK_TRY(stk_input_read(&shard->file, 0, start, sizeof(start)));
    if (shard->file.n_bytes >= sizeof(start) && stk_is_gzip((stk_span){start, sizeof(start)})) {
        STK_TRY(stk_unpack_to_cache(&shard->file, &unpacked));
        stk_input_close(&shard->file);
        status = stk_open_input(unpacked, keep_open, &shard->file);
        free(unpacked);
        STK_TRY(status);
    }
    STK_TRY(stk_tar_samples_open(&shard->file, &shard->samples, stale));
done:
    return status == STK_OK || strstr(stk_error_text(), path) ? status : stk_fail_prefix(status, "'%s': ", path);
}

typedef struct opening {
    tar_source *source;
    const stk_names *names;
} opening;

static stk_status open_one(void *user, size_t i)
{
    const opening *o = user;
    tar_shard *shard = &o->source->shard[i];
    return open_shard(o->names->name[i], i < STK_MOST_OPEN_SHARDS, shard, &shard->was_stale);
}

static stk_status open_shards(tar_source *s, const stk_names *names)
{
    opening o = {s, names};
    s->shard = calloc(names->n, sizeof(*s->shard));
    if (!s->shard) return stk_fail_memory(names->n * sizeof(*s->shard));
    s->n_shards = (int)names->n;
    for (int i = 0; i < s->n_shards; i++)
        s->shard[i].file.fd = -1;
    STK_RETURN_IF_ERROR(stk_open_many(names->n, names->n && stk_is_remote(names->name[0]), open_one, &o));
    for (int i = 0; i < s->n_shards; i++) {
        tar_shard *shard = &s->shard[i];
        shard->i_first = s->base.n_records;
        s->base.n_records += shard->samples.n_samples;
        s->base.is_far = s->base.is_far || shard->file.backend;
        if (shard->was_stale && !s->base.note[0])
            snprintf(s->base.note, sizeof(s->base.note),
                     "the index of '%.120s' did not fit the file any more and has been rebuilt", shard->path);
    }
    s->base.n_files = s->n_shards;
    if (s->base.n_records == 0)
        return stk_fail(STK_INVALID, "'%s'%s holds no sample: files named KEY.EXTENSION",
                        names->n ? names->name[0] : "", names->n > 1 ? " and what follows" : "");
    return STK_OK;
}

/* All extensions of a field must make the same kind of field. */
static stk_status set_content(tar_source *s, const stk_tar_field *field, int i)
{
    for (const char *p = field->extensions; *p; p += *p == ';') {
        size_t n = strcspn(p, ";");
        content one = content_of(p, n);
        if (one == CONTENT_OTHER)
            return stk_fail(STK_UNSUPPORTED,
                            "field '%s' is to be made of '.%.*s' files, which cannot be put into a batch; images (jpg, "
                            "jpeg, png, webp), texts (txt, text, json) and whole numbers (cls, cls2, index, inx, id, "
                            "count) can",
                            field->name, (int)n, p);
        if (p > field->extensions && one != s->content[i])
            return stk_fail(STK_INVALID, "field '%s' cannot be of two kinds, images, texts or numbers: '%s'",
                            field->name, field->extensions);
        s->content[i] = one;
        p += n;
    }
    return STK_OK;
}

static stk_status set_fields(tar_source *s, const stk_tar_field *fields, int n_fields)
{
    stk_array_field own[STK_MAX_FIELDS] = {{0}};
    if (n_fields < 0 || n_fields > STK_MAX_FIELDS || (n_fields && !fields))
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible", n_fields, STK_MAX_FIELDS);
    for (int i = 0; i < n_fields; i++) {
        if (!fields[i].extensions || !fields[i].extensions[0])
            return stk_fail(STK_INVALID, "the extensions of field %d are missing", i);
        own[i] = (stk_array_field){.name = fields[i].name, .dtype = STK_I32};
    }
    STK_RETURN_IF_ERROR(stk_source_set_fields(&s->base, s->base.n_records, own, n_fields));
    for (int i = 0; i < n_fields; i++) {
        STK_RETURN_IF_ERROR(set_content(s, &fields[i], i));
        if (s->content[i] == CONTENT_IMAGE) s->base.field[i].type = (stk_field_type){.kind = STK_FIELD_ENCODED};
        if (s->content[i] == CONTENT_TEXT)
            s->base.field[i].type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(STK_ANY))};
        if (!(s->extensions[i] = strdup(fields[i].extensions))) return stk_fail_memory(strlen(fields[i].extensions));
    }
    return STK_OK;
}

/* The usual fields, as far as the first sample has them. */
static stk_status set_usual_fields(tar_source *s)
{
    static const stk_tar_field usual[] = {{"image", "jpg;jpeg;png;webp"}, {"label", "cls"}};
    stk_tar_field fields[2];
    int n = 0;
    const tar_shard *shard = find_shard(s, 0);
    for (int i = 0; i < 2; i++)
        if (find_part(shard, 0, usual[i].extensions)) fields[n++] = usual[i];
    if (n > 0) return set_fields(s, fields, n);
    const stk_tar_sample *sample = shard->samples.sample;
    return stk_fail(STK_INVALID,
                    "'%s': its first sample '%s' has neither an image (jpg, jpeg, png, webp) nor a cls; its first "
                    "file is a .%s",
                    shard->path, shard->samples.names + sample->key_at,
                    shard->samples.names + shard->samples.part[sample->i_part].extension_at);
}

stk_status stk_source_open_tar(const char *const *paths, int n_paths, const stk_tar_field *fields, int n_fields,
                               stk_source **out)
{
    stk_names names = {0};
    stk_status status;
    tar_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(stk_paths_expand(paths, n_paths, false, &names));
    STK_TRY(open_shards(s, &names));
    STK_TRY(n_fields ? set_fields(s, fields, n_fields) : set_usual_fields(s));
    s->base.class = &class_tar;
    *out = &s->base;
    s = NULL;
done:
    stk_names_free(&names);
    if (s) close_source(&s->base);
    return status;
}

/* --- settings --- */

static const stk_key extensions_key = {.name = "extensions", .type = STK_KEY_TEXT};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "Shards, plain or .gz; patterns stand for their matches by name."),
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &extensions_key,
     .doc = "The fields of a sample and what they are made of: {image: jpg;png, mask: seg.png}. Default: image and "
            "label, of jpg;jpeg;png;webp and cls, as far as the first sample has them."},
    STK_KEY_END};

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    stk_tar_field fields[STK_SOURCE_MOST_NAMES];
    const stk_yaml_node *chosen = stk_yaml_get(settings, "fields");
    const char **paths;
    int n_paths, n = 0;
    if (chosen) STK_RETURN_IF_ERROR(stk_source_check_names(chosen));
    for (const stk_yaml_node *child = chosen ? chosen->child : NULL; child; child = child->next)
        fields[n++] = (stk_tar_field){child->key, child->text};
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &n_paths));
    stk_status status = stk_yaml_locate(settings, stk_source_open_tar(paths, n_paths, fields, n, out));
    free(paths);
    return status;
}

const stk_source_kind stk_source_kind_tar = {
    .key = {.name = "tar", .type = STK_KEY_MAP, .keys = keys, .doc = "Tar shards in WebDataset's naming."},
    .open = open_settings};
