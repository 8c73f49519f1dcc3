/* Which columns of a table make which field, and the classes of those that name them. See source/csv.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "data/source/csv.h"
#include "data/source/fields.h"
#include "data/source/text_records.h"

enum { MOST_COLUMNS = 1 << 16, MOST_CLASSES = 1 << 20 };

/* --- the first row --- */

static stk_status name_columns(stk_csv_source *s, const stk_span *cell, int n, bool none)
{
    s->column_name = calloc((size_t)n + 1, sizeof(*s->column_name)); /* ended by NULL, for the nearest name */
    if (!s->column_name) return stk_fail_memory((size_t)n * sizeof(*s->column_name));
    s->n_columns = n;
    for (int i = 0; i < n; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", i);
        s->column_name[i] = none ? strdup(number) : strndup((const char *)cell[i].data, cell[i].n);
        if (!s->column_name[i]) return stk_fail_memory(cell[i].n);
    }
    return STK_OK;
}

static stk_status check_names(const stk_csv_source *s, const stk_span *cell, int n)
{
    bool same = n == s->n_columns;
    for (int i = 0; i < n && same; i++)
        same = cell[i].n == strlen(s->column_name[i]) && !memcmp(cell[i].data, s->column_name[i], cell[i].n);
    return same ? STK_OK : stk_fail(STK_MISMATCH, "its first row names other columns than that of the first file");
}

/* The first row of one file. */
static stk_status read_first(stk_csv_source *s, const stk_shard *shard, stk_scratch scratch[2], bool none)
{
    uint64_t end = shard->n_records > 1 ? shard->start[1] : shard->file.n_bytes;
    stk_span row;
    int n = 0;
    STK_RETURN_IF_ERROR(
        stk_shard_read((stk_shard_place){shard, 0, shard->start[0], end - shard->start[0]}, &scratch[0], &row));
    size_t n_cells = MOST_COLUMNS * sizeof(stk_span);
    char *memory = stk_scratch_get(&scratch[1], n_cells + row.n + 1);
    if (!memory) return STK_NO_MEMORY;
    stk_span *cell = (stk_span *)(void *)memory;
    STK_RETURN_IF_ERROR(stk_csv_cells(row, &s->cells, (uint8_t *)memory + n_cells, cell, MOST_COLUMNS, &n));
    if (n > MOST_COLUMNS) return stk_fail(STK_UNSUPPORTED, "more than %d columns are not supported", MOST_COLUMNS);
    if (!s->column_name) return name_columns(s, cell, n, none);
    return none ? STK_OK : check_names(s, cell, n);
}

/* The first row of each file is no record any more. */
static void drop_first(stk_shards *shards)
{
    shards->n_records = 0;
    for (int i = 0; i < shards->n_shards; i++) {
        stk_shard *shard = &shards->shard[i];
        shard->i_first = shards->n_records;
        if (shard->n_records > 0) {
            shard->n_skipped = 1;
            shard->n_records--;
            memmove(shard->start, shard->start + 1, (size_t)shard->n_records * sizeof(*shard->start));
        }
        shards->n_records += shard->n_records;
    }
}

stk_status stk_csv_read_header(stk_csv_source *s, bool none)
{
    stk_scratch scratch[2] = {{0}};
    stk_status status = STK_OK;
    for (int i = 0; i < s->shards.n_shards && status == STK_OK; i++) {
        const stk_shard *shard = &s->shards.shard[i];
        if (shard->n_records == 0) continue;
        status = read_first(s, shard, scratch, none);
        if (status != STK_OK) stk_fail_prefix(status, "'%s': ", shard->path);
    }
    stk_scratch_free(&scratch[0]);
    stk_scratch_free(&scratch[1]);
    STK_RETURN_IF_ERROR(status);
    if (!none) drop_first(&s->shards);
    if (s->shards.n_records > 0) return STK_OK;
    return stk_fail(STK_INVALID, "'%s'%s has no row but that of names", s->shards.shard[0].path,
                    s->shards.n_shards > 1 ? " and what follows" : "");
}

/* --- fields --- */

static stk_status find_column(const stk_csv_source *s, const char *name, int *out)
{
    for (*out = 0; *out < s->n_columns; ++*out)
        if (!strcmp(s->column_name[*out], name)) return STK_OK;
    const char *nearest = stk_nearest_name(name, (const char *const *)s->column_name);
    if (nearest) return stk_fail(STK_NOT_FOUND, "there is no column '%s'; did you mean '%s'?", name, nearest);
    enum { MOST = 8 };
    stk_text names = {0};
    for (int i = 0; i < s->n_columns && i < MOST; i++)
        stk_text_add(&names, "%s'%.80s'", i ? ", " : "", s->column_name[i]);
    stk_status status = stk_fail(
        STK_NOT_FOUND, "there is no column '%s'; there are %s%s (a field of another name says which by 'columns')",
        name, stk_text_get(&names), s->n_columns > MOST ? " and more" : "");
    stk_text_free(&names);
    return status;
}

static stk_status add_class(stk_csv_column_set *set, const char *name, size_t n)
{
    if (memchr(name, 0, n)) return stk_fail(STK_CORRUPT, "a class has a name with a byte 0");
    if (stk_name_table_find_part(&set->seen, name, n) >= 0) return STK_OK;
    if (set->n_classes == MOST_CLASSES) return stk_fail(STK_UNSUPPORTED, "more than %d classes", MOST_CLASSES);
    if (set->n_classes == set->classes_room) {
        int64_t room = 2 * set->classes_room + 64;
        char **p = realloc(set->class_name, (size_t)room * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)room * sizeof(*p));
        set->class_name = p;
        set->classes_room = room;
    }
    char *copy = strndup(name, n);
    if (!copy) return stk_fail_memory(n);
    set->class_name[set->n_classes++] = copy;
    return stk_name_table_add(&set->seen, copy, 0);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_classes(stk_csv_column_set *set)
{
    stk_name_table_free(&set->seen);
    if (set->n_classes) qsort(set->class_name, (size_t)set->n_classes, sizeof(*set->class_name), compare_names);
}

int32_t stk_csv_find_class(const stk_csv_column_set *set, stk_span name)
{
    int64_t low = 0, high = set->n_classes;
    if (memchr(name.data, 0, name.n)) return -1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = strncmp(set->class_name[middle], (const char *)name.data, name.n);
        if (order == 0 && !set->class_name[middle][name.n]) return (int32_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static stk_status set_default_value(stk_csv_column_set *set, const char *text)
{
    set->default_value = calloc(1, 8);
    if (!set->default_value) return stk_fail_memory(8);
    stk_status status = stk_csv_number((stk_span){(const uint8_t *)text, strlen(text)}, set->dtype, set->default_value);
    return status == STK_OK ? STK_OK : stk_fail_prefix(STK_INVALID, "the default ");
}

static stk_status set_columns(stk_csv_source *s, const stk_csv_field *field, stk_csv_column_set *set)
{
    if (field->n_columns < 1 || !field->columns) return stk_fail(STK_INVALID, "it has no columns");
    if (field->n_columns > 1 && field->kind != STK_CSV_NUMBER)
        return stk_fail(STK_INVALID, "only numbers of several columns can be put together");
    set->column = calloc((size_t)field->n_columns, sizeof(*set->column));
    if (!set->column) return stk_fail_memory((size_t)field->n_columns * sizeof(*set->column));
    for (set->n_columns = 0; set->n_columns < field->n_columns; set->n_columns++)
        STK_RETURN_IF_ERROR(find_column(s, field->columns[set->n_columns], &set->column[set->n_columns]));
    return STK_OK;
}

static stk_status set_field(stk_csv_source *s, const stk_csv_field *field, stk_csv_column_set *set)
{
    set->kind = field->kind;
    set->dtype = field->kind == STK_CSV_NUMBER ? field->dtype : field->kind == STK_CSV_CLASS ? STK_I32 : STK_U8;
    if (set->dtype == STK_F16 || set->dtype == STK_BF16)
        return stk_fail(STK_UNSUPPORTED, "%s is not read from text: use f32", stk_dtype_name(set->dtype));
    STK_RETURN_IF_ERROR(set_columns(s, field, set));
    if (field->default_value && field->kind != STK_CSV_NUMBER)
        return stk_fail(STK_INVALID, "only numbers have a default");
    if (field->default_value) STK_RETURN_IF_ERROR(set_default_value(set, field->default_value));
    set->classes_given = field->n_classes > 0;
    for (int i = 0; i < field->n_classes; i++)
        STK_RETURN_IF_ERROR(add_class(set, field->classes[i], strlen(field->classes[i])));
    sort_classes(set);
    return STK_OK;
}

stk_status stk_csv_set_fields(stk_csv_source *s, const stk_csv_config *config)
{
    stk_array_field fields[STK_MAX_FIELDS];
    int n = config->n_fields;
    if (n < 1 || n > STK_MAX_FIELDS || !config->fields)
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible; numbers of several columns can be one", n,
                        STK_MAX_FIELDS);
    for (int i = 0; i < n; i++) {
        const stk_csv_field *field = &config->fields[i];
        stk_status status = set_field(s, field, &s->set[i]);
        if (status != STK_OK) return stk_fail_prefix(status, "field '%s': ", field->name ? field->name : "");
        fields[i] = (stk_array_field){.name = field->name, .dtype = s->set[i].dtype};
        if (field->n_columns > 1) fields[i].sample = STK_SHAPE(field->n_columns);
    }
    STK_RETURN_IF_ERROR(stk_source_set_fields(&s->base, s->base.n_records, fields, n));
    for (int i = 0; i < n; i++)
        if (s->set[i].kind == STK_CSV_TEXT) s->base.field[i] = stk_text_field(s->base.field[i].name);
    return STK_OK;
}

/* --- classes --- */

static stk_status collect(stk_csv_source *s, stk_scratch *scratch)
{
    stk_csv_row row;
    for (int64_t i = 0; i < s->base.n_records; i++) {
        stk_status status = stk_csv_read_row(s, i, scratch, &row);
        for (int f = 0; f < s->base.n_fields && status == STK_OK; f++) {
            stk_csv_column_set *set = &s->set[f];
            stk_span cell = set->kind == STK_CSV_CLASS ? row.cell[set->column[0]] : (stk_span){NULL, 0};
            if (set->kind == STK_CSV_CLASS && !set->classes_given)
                status = add_class(set, (const char *)cell.data, cell.n);
        }
        /* A corrupt row is told, or skipped, when it is read as a record. */
        if (status != STK_OK && status != STK_CORRUPT) return status;
    }
    return STK_OK;
}

stk_status stk_csv_find_classes(stk_csv_source *s)
{
    stk_scratch scratch[2] = {{0}};
    bool any = false;
    for (int f = 0; f < s->base.n_fields; f++)
        any = any || (s->set[f].kind == STK_CSV_CLASS && !s->set[f].classes_given);
    stk_status status = any ? collect(s, scratch) : STK_OK;
    stk_scratch_free(&scratch[0]);
    stk_scratch_free(&scratch[1]);
    for (int f = 0; f < s->base.n_fields; f++)
        sort_classes(&s->set[f]);
    for (int f = 0; f < s->base.n_fields; f++)
        if (s->set[f].kind == STK_CSV_CLASS && !strcmp(s->base.field[f].name, "label")) {
            s->base.class_names = (const char *const *)s->set[f].class_name;
            s->base.n_classes = s->set[f].n_classes;
        }
    return status;
}

void stk_csv_free_set(stk_csv_column_set *set)
{
    for (int64_t i = 0; i < set->n_classes; i++)
        free(set->class_name[i]);
    free(set->class_name);
    stk_name_table_free(&set->seen);
    free(set->column);
    free(set->default_value);
}
