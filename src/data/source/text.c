/* Lines of text files, or whole files, as records. A record is read with one call, or lies in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/source/keys.h"
#include "data/source/labels.h"
#include "data/source/paths.h"
#include "data/source/shards.h"
#include "data/source/source_list.h"
#include "data/source/text_records.h"

typedef struct text_source {
    stk_source base;
    stk_shards shards;
    stk_file_labels labels; /* by file */
    bool whole;
} text_source;

stk_status stk_shard_read(stk_shard_place place, stk_scratch *scratch, stk_span *record)
{
    if (place.shard->bytes) {
        *record = (stk_span){place.shard->bytes + place.at, place.n_bytes};
    } else {
        uint8_t *own = stk_scratch_get(scratch, place.n_bytes + 1);
        if (!own) return STK_NO_MEMORY;
        STK_RETURN_IF_ERROR(stk_input_read(&place.shard->file, place.at, own, place.n_bytes));
        *record = (stk_span){own, place.n_bytes};
    }
    /* A mark of the byte order is no text. */
    if (place.at == 0 && record->n >= 3 && !memcmp(record->data, "\xef\xbb\xbf", 3))
        *record = (stk_span){record->data + 3, record->n - 3};
    return STK_OK;
}

stk_item stk_text_item(const stk_source_field *field, stk_span text)
{
    stk_item item = {field->type, (void *)(uintptr_t)text.data, text.n};
    item.type.desc.shape.dim[0] = (int64_t)text.n;
    return item;
}

stk_source_field stk_text_field(const char *name)
{
    stk_source_field field = {.type = {STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(STK_ANY))}};
    snprintf(field.name, sizeof(field.name), "%s", name);
    return field;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const text_source *s = (const text_source *)source;
    stk_shard_place place = stk_shards_find(&s->shards, i_record);
    stk_span text;
    STK_RETURN_IF_ERROR(stk_shard_read(place, &scratch[0], &text));
    item[0] = stk_text_item(&source->field[0], s->whole ? text : stk_line_trim(text));
    if (source->n_fields > 1)
        item[1] = (stk_item){source->field[1].type, &s->labels.label[place.shard - s->shards.shard], 4};
    return STK_OK;
}

void stk_shard_name(stk_shard_place place, const char *what, int64_t n, char *out, size_t out_bytes)
{
    char where[80] = "'";
    if (what) snprintf(where, sizeof(where), "', %s %lld", what, (long long)n);
    size_t n_where = strlen(where), n_path = strlen(place.shard->path);
    /* The end of a long path tells more than its beginning, and the place must be there. */
    size_t room = out_bytes > n_where + 2 ? out_bytes - n_where - 2 : 0;
    snprintf(out, out_bytes, "'%s%s", place.shard->path + (n_path > room ? n_path - room : 0), where);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const text_source *s = (const text_source *)source;
    stk_shard_place place = stk_shards_find(&s->shards, i_record);
    stk_shard_name(place, s->whole ? NULL : "line", place.i_in_shard + place.shard->n_skipped + 1, out, out_bytes);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    stk_shards_prefetch(&((const text_source *)source)->shards, i_record);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const stk_shards *shards = &((const text_source *)source)->shards;
    return stk_shards_find(shards, i_record).shard - shards->shard;
}

static void close_source(stk_source *source)
{
    text_source *s = (text_source *)source;
    stk_shards_close(&s->shards);
    stk_labels_free(&s->labels);
    free(s);
}

static size_t held_bytes(const stk_source *source)
{
    return stk_shards_bytes(&((const text_source *)source)->shards);
}

static const stk_source_class class_text = {.name = "text",
                                            .read = read_record,
                                            .name_record = name_record,
                                            .close = close_source,
                                            .prefetch = prefetch,
                                            .held_bytes = held_bytes,
                                            .file_of = file_of};

static void set_fields(text_source *s, bool labels)
{
    stk_source *base = &s->base;
    base->class = &class_text;
    base->n_records = s->shards.n_records;
    base->n_files = s->shards.n_shards;
    base->n_fields = labels ? 2 : 1;
    base->field[0] = stk_text_field("text");
    base->field[1] = (stk_source_field){"label", {STK_FIELD_ARRAY, stk_desc_make(STK_I32, (stk_shape){0})}};
    base->class_names = (const char *const *)s->labels.class_name;
    base->n_classes = s->labels.n_classes;
    for (int i = 0; i < s->shards.n_shards && s->shards.shard[i].bytes; i++)
        base->n_bytes += (int64_t)s->shards.shard[i].file.n_bytes;
    if (s->shards.n_stale)
        snprintf(base->note, sizeof(base->note),
                 "the index of '%.120s'%s did not fit the file any more and has been rebuilt", s->shards.stale,
                 s->shards.n_stale > 1 ? ", and others," : "");
}

stk_status stk_source_open_text(const char *const *paths, int n_paths, const stk_text_config *config, stk_source **out)
{
    stk_names names = {0};
    stk_status status;
    if (!config) return stk_fail(STK_INVALID, "'config' is NULL");
    if (config->skip < 0) return stk_fail(STK_INVALID, "%lld lines cannot be skipped", (long long)config->skip);
    if (config->whole && config->skip) return stk_fail(STK_INVALID, "lines are skipped, but records are whole files");
    text_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->whole = config->whole;
    STK_TRY(stk_paths_expand(paths, n_paths, false, &names));
    STK_TRY(stk_shards_open_lines(&names, NULL, config->whole, config->skip, config->in_memory, &s->shards));
    if (config->by_folder) STK_TRY(stk_labels_by_folder(&names, &s->labels));
    set_fields(s, config->by_folder);
    *out = &s->base;
done:
    stk_names_free(&names);
    if (status != STK_OK) close_source(&s->base);
    return status;
}

/* --- settings --- */

static const char *const record_words[] = {"line", "file", NULL};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "Text files, plain or .gz; patterns stand for their matches by name."),
    {.name = "record",
     .type = STK_KEY_WORD,
     .words = record_words,
     .default_value = "line",
     .doc = "What a sample is."},
    STK_SOURCE_BY_FOLDER,
    {.name = "skip",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 1e15,
     .doc = "The first lines of each file do not count."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether the files are read into memory at the start and not again; faster where lines are short."},
    STK_KEY_END};

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const char **paths;
    int n_paths;
    stk_text_config config = {.whole = stk_yaml_is(settings, "record", "file"),
                              .by_folder = stk_yaml_get(settings, "by") != NULL,
                              .skip = stk_yaml_int(settings, "skip", 0),
                              .in_memory = stk_yaml_bool(settings, "in_memory")};
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &n_paths));
    stk_status status = stk_yaml_locate(settings, stk_source_open_text(paths, n_paths, &config, out));
    free(paths);
    return status;
}

const stk_source_kind stk_source_kind_text = {
    .key = {.name = "text", .type = STK_KEY_MAP, .keys = keys, .doc = "Lines of text files, or whole files."},
    .open = open_settings};
