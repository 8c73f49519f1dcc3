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
#include "data/source/paths.h"
#include "data/source/text_records.h"

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
