/* Rows of CSV and TSV files. See stoker/data/csv.h.
 *
 *     scratch[0]:   the row, where its file is not in memory
 *     scratch[1]:   [ the elements of the fields | the cells | where quotes are undone ]
 */
#include "data/source/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/paths.h"
#include "data/source/source_list.h"
#include "data/source/text_records.h"
#include "tensor/shape.h"

enum { ALIGNMENT = 64, MOST_COUNTED_BYTES = 64 << 20 };

/* --- rows --- */

stk_status stk_csv_read_row(const stk_csv_source *s, int64_t i_record, stk_scratch *scratch, stk_csv_row *row)
{
    stk_shard_place place = stk_shards_find(&s->shards, i_record);
    stk_span bytes;
    int n = 0;
    STK_RETURN_IF_ERROR(stk_shard_read(place, &scratch[0], &bytes));
    size_t n_cells = stk_round_up((size_t)s->n_columns * sizeof(stk_span), ALIGNMENT);
    char *memory = stk_scratch_get(&scratch[1], s->elements_bytes + n_cells + bytes.n + 1);
    if (!memory) return STK_NO_MEMORY;
    row->elements = memory;
    row->cell = (stk_span *)(void *)(memory + s->elements_bytes);
    uint8_t *work = (uint8_t *)memory + s->elements_bytes + n_cells;
    STK_RETURN_IF_ERROR(stk_csv_cells(bytes, &s->cells, work, row->cell, s->n_columns, &n));
    if (n == s->n_columns) return STK_OK;
    return stk_fail(STK_CORRUPT, "the row has %d cell%s, the first one of its kind %d", n, n == 1 ? "" : "s",
                    s->n_columns);
}

/* Empty, or what stands for that. */
static bool is_missing(const stk_csv_source *s, stk_span cell)
{
    return cell.n == 0 || (s->n_missing && cell.n == s->n_missing && !memcmp(cell.data, s->missing, cell.n));
}

static stk_status read_cell(const stk_csv_source *s, const stk_csv_column_set *set, int k, stk_span cell, char *dst)
{
    size_t n = stk_dtype_bytes(set->dtype);
    stk_status status;
    if (!is_missing(s, cell))
        status = stk_csv_number(cell, set->dtype, dst);
    else if (set->default_value)
        return memcpy(dst, set->default_value, n), STK_OK;
    else
        status = stk_fail(STK_CORRUPT, "the cell is empty, and the field has no default");
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "column '%s': ", s->column_name[set->column[k]]);
}

static stk_status read_field(const stk_csv_source *s, int f, const stk_csv_row *row, stk_item *item)
{
    const stk_csv_column_set *set = &s->set[f];
    stk_span cell = row->cell[set->column[0]];
    char *dst = row->elements + set->place;
    size_t n = stk_dtype_bytes(set->dtype);
    if (set->kind == STK_CSV_TEXT) {
        *item = stk_text_item(&s->base.field[f], cell);
        return STK_OK;
    }
    *item = (stk_item){s->base.field[f].type, dst, n * (size_t)set->n_columns};
    if (set->kind == STK_CSV_CLASS) {
        int32_t i = stk_csv_find_class(set, cell);
        if (i < 0)
            return stk_fail(STK_CORRUPT, "column '%s': '%.*s' is none of its %lld classes",
                            s->column_name[set->column[0]], (int)(cell.n < 60 ? cell.n : 60), (const char *)cell.data,
                            (long long)set->n_classes);
        memcpy(dst, &i, sizeof(i));
        return STK_OK;
    }
    for (int k = 0; k < set->n_columns; k++)
        STK_RETURN_IF_ERROR(read_cell(s, set, k, row->cell[set->column[k]], dst + (size_t)k * n));
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const stk_csv_source *s = (const stk_csv_source *)source;
    stk_csv_row row;
    STK_RETURN_IF_ERROR(stk_csv_read_row(s, i_record, scratch, &row));
    for (int f = 0; f < source->n_fields; f++)
        STK_RETURN_IF_ERROR(read_field(s, f, &row, &item[f]));
    return STK_OK;
}

/* --- names --- */

/* The line of a file that byte `at` lies in, counted from 1; 0 where it takes too long to tell. */
static int64_t count_lines(const stk_input *file, uint64_t at)
{
    enum { BLOCK = 1 << 16 };
    int64_t n = 1;
    uint8_t *block = at <= MOST_COUNTED_BYTES ? malloc(BLOCK) : NULL;
    if (!block) return 0;
    for (uint64_t from = 0; from < at && n; from += BLOCK) {
        size_t n_block = at - from < BLOCK ? (size_t)(at - from) : BLOCK;
        if (stk_input_read(file, from, block, n_block) != STK_OK) n = 0;
        for (size_t i = 0; i < n_block && n; i++)
            n += block[i] == '\n';
    }
    free(block);
    return n;
}

/* Counting reads the file, which must not change the error that is being told. */
static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const stk_csv_source *s = (const stk_csv_source *)source;
    stk_shard_place place = stk_shards_find(&s->shards, i_record);
    char kept[1024];
    snprintf(kept, sizeof(kept), "%s", stk_error_text());
    int64_t line = count_lines(&place.shard->file, place.at);
    stk_fail(STK_OK, "%s", kept);
    if (line)
        stk_shard_name(place, "line", line, out, out_bytes);
    else
        stk_shard_name(place, "row", place.i_in_shard + place.shard->n_skipped + 1, out, out_bytes);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    stk_shards_prefetch(&((const stk_csv_source *)source)->shards, i_record);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const stk_shards *shards = &((const stk_csv_source *)source)->shards;
    return stk_shards_find(shards, i_record).shard - shards->shard;
}

static void close_source(stk_source *source)
{
    stk_csv_source *s = (stk_csv_source *)source;
    stk_shards_close(&s->shards);
    for (int i = 0; i < s->n_columns && s->column_name; i++)
        free(s->column_name[i]);
    free(s->column_name);
    for (int f = 0; f < STK_MAX_FIELDS; f++)
        stk_csv_free_set(&s->set[f]);
    free(s->missing);
    free(s);
}

static size_t held_bytes(const stk_source *source)
{
    return stk_shards_bytes(&((const stk_csv_source *)source)->shards);
}

static const stk_source_class class_csv = {.name = "csv",
                                           .read = read_record,
                                           .name_record = name_record,
                                           .close = close_source,
                                           .prefetch = prefetch,
                                           .held_bytes = held_bytes,
                                           .file_of = file_of};

/* --- opening --- */

/* Cells that hold elements are laid out one field after the other. */
static void place_elements(stk_csv_source *s)
{
    for (int f = 0; f < s->base.n_fields; f++) {
        s->set[f].place = s->elements_bytes;
        s->elements_bytes += stk_round_up(stk_dtype_bytes(s->set[f].dtype) * (size_t)s->set[f].n_columns, ALIGNMENT);
    }
}

static stk_status open_source(stk_csv_source *s, const stk_names *names, const stk_csv_config *config)
{
    stk_source *base = &s->base;
    STK_RETURN_IF_ERROR(stk_shards_open_lines(names, &s->cells, false, 0, config->in_memory, &s->shards));
    STK_RETURN_IF_ERROR(stk_csv_read_header(s, config->no_header));
    base->n_records = s->shards.n_records;
    base->n_files = s->shards.n_shards;
    STK_RETURN_IF_ERROR(stk_csv_set_fields(s, config));
    place_elements(s);
    for (int i = 0; i < s->shards.n_shards && config->in_memory; i++)
        base->n_bytes += (int64_t)s->shards.shard[i].file.n_bytes;
    return stk_csv_find_classes(s);
}

stk_status stk_source_open_csv(const char *const *paths, int n_paths, const stk_csv_config *config, stk_source **out)
{
    stk_names names = {0};
    stk_status status;
    if (!config) return stk_fail(STK_INVALID, "'config' is NULL");
    stk_csv_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base.class = &class_csv;
    s->cells = (stk_cells){config->delimiter ? config->delimiter : ',', config->no_quotes ? 0 : '"'};
    if (strchr("\"\r\n", s->cells.delimiter))
        STK_TRY(stk_fail(STK_INVALID, "a quote or the end of a line cannot be the delimiter"));
    if (config->missing && config->missing[0]) {
        if (!(s->missing = strdup(config->missing))) STK_TRY(stk_fail_memory(strlen(config->missing)));
        s->n_missing = strlen(s->missing);
    }
    STK_TRY(stk_paths_expand(paths, n_paths, false, &names));
    STK_TRY(open_source(s, &names, config));
    *out = &s->base;
done:
    stk_names_free(&names);
    if (status != STK_OK) close_source(&s->base);
    return status;
}

/* --- settings --- */

static const char *const cell_words[] = {"f32", "f64", "i32", "i64", "i8", "u8", "bool", "text", "class", NULL};
static const stk_key column_key = {.name = "column", .type = STK_KEY_TEXT};
static const stk_key csv_field_keys[] = {
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = cell_words,
     .required = true,
     .doc =
         "Of numbers; text: the bytes of the cell, for the stage tokenize; class: the number of the cell's text among "
         "the classes."},
    {.name = "columns",
     .type = STK_KEY_LIST,
     .element = &column_key,
     .one_is_list = true,
     .doc = "The column, or several columns of numbers that become one array. Default: the field's name."},
    {.name = "default",
     .type = STK_KEY_TEXT,
     .doc = "The number for missing cells. Default: a missing cell is an error."},
    {.name = "classes",
     .type = STK_KEY_LIST,
     .element = &column_key,
     .doc = "The classes, of which another is an error. Default: the texts that are there, for which all rows are read "
            "once."},
    STK_KEY_END};
static const stk_key csv_field_key = {
    .name = "field", .type = STK_KEY_MAP, .keys = csv_field_keys, .doc = "A field; f32 alone is {dtype: f32}."};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "CSV or TSV files, plain or .gz; patterns stand for their matches by name."),
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &csv_field_key,
     .required = true,
     .doc = "The fields of a sample: {label: class, x: {dtype: f32, columns: [a, b]}}."},
    {.name = "delimiter", .type = STK_KEY_TEXT, .default_value = ",", .doc = "One sign between cells, or tab."},
    {.name = "header",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether the first row of each file names the columns; otherwise they are 0, 1, ..."},
    {.name = "quotes",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc =
         "Whether cells may be quoted, as RFC 4180 says; false: a quote is a sign like others, as in most TSV files."},
    {.name = "missing", .type = STK_KEY_TEXT, .doc = "What stands for a missing cell besides the empty one, as NA."},
    {.name = "in_memory",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether the files are read into memory at the start and not again; faster where rows are short."},
    STK_KEY_END};

static stk_status make_field(const stk_yaml_node *node, const char ***columns, const char ***classes,
                             stk_csv_field *out)
{
    const stk_yaml_node *given = stk_yaml_get(node, "default"), *column = stk_yaml_get(node, "columns"),
                        *class = stk_yaml_get(node, "classes");
    const char *dtype = stk_yaml_get(node, "dtype")->text;
    *out = (stk_csv_field){.name = node->key, .n_columns = 1, .default_value = given ? given->text : NULL};
    if (!strcmp(dtype, "text"))
        out->kind = STK_CSV_TEXT;
    else if (!strcmp(dtype, "class"))
        out->kind = STK_CSV_CLASS;
    else
        stk_dtype_from_name(dtype, &out->dtype);
    if (class && out->kind != STK_CSV_CLASS) return stk_yaml_fail(class, "'classes' is for the dtype class");
    if (class) STK_RETURN_IF_ERROR(stk_yaml_texts(class, classes, &out->n_classes));
    if (column) STK_RETURN_IF_ERROR(stk_yaml_texts(column, columns, &out->n_columns));
    out->columns = column ? *columns : (const char *const *)&node->key;
    out->classes = *classes;
    return STK_OK;
}

static stk_status read_delimiter(const stk_yaml_node *node, char *out)
{
    *out = !strcmp(node->text, "tab") ? '\t' : node->text[0];
    if (*out && (*out == '\t' || !node->text[1])) return STK_OK;
    return stk_yaml_fail(node, "the delimiter is one sign, or tab, not '%.20s'", node->text);
}

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    enum { MOST = 16 };
    const stk_yaml_node *fields = stk_yaml_get(settings, "fields"), *missing = stk_yaml_get(settings, "missing");
    const char **paths = NULL, **columns[MOST] = {NULL}, **classes[MOST] = {NULL};
    stk_csv_field field[MOST];
    stk_csv_config config = {.fields = field,
                             .no_header = !stk_yaml_get(settings, "header")->truth,
                             .no_quotes = !stk_yaml_get(settings, "quotes")->truth,
                             .missing = missing ? missing->text : NULL,
                             .in_memory = stk_yaml_get(settings, "in_memory")->truth};
    stk_status status;
    int n_paths;
    if (fields->n_children > MOST) return stk_yaml_fail(fields, "more than %d fields", MOST);
    STK_TRY(read_delimiter(stk_yaml_get(settings, "delimiter"), &config.delimiter));
    for (const stk_yaml_node *node = fields->child; node; node = node->next, config.n_fields++)
        STK_TRY(make_field(node, &columns[config.n_fields], &classes[config.n_fields], &field[config.n_fields]));
    STK_TRY(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &n_paths));
    STK_TRY(stk_yaml_locate(settings, stk_source_open_csv(paths, n_paths, &config, out)));
done:
    for (int i = 0; i < MOST; i++) {
        free(columns[i]);
        free(classes[i]);
    }
    free(paths);
    return status;
}

const stk_source_kind stk_source_kind_csv = {
    .key = {.name = "csv", .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = "Rows of CSV and TSV files."},
    .open = open_settings};
