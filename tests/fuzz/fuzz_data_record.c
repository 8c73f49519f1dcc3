/* A run's data.json from memory: what is accepted is opened, printed and read again, and must be the same; small
 * records are read.
 *
 * covers: recipe/data_record.c data/source/blank.c
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/source/reader.h"
#include "recipe/data_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 16 };

static bool is_small_field(json_t *field)
{
    double n = 8;
    size_t i;
    json_t *side, *sides = json_object_get(field, "shape");
    json_array_foreach(sides, i, side) n *= json_number_value(side);
    double n_pixels = json_number_value(json_object_get(field, "height"));
    n_pixels *= json_number_value(json_object_get(field, "width"));
    return n <= MOST_BYTES && n_pixels <= MOST_BYTES;
}

/* Whether the blank records are small enough to be made often. */
static bool is_small(const uint8_t *data, size_t size)
{
    json_t *root = json_loadb((const char *)data, size, 0, NULL), *part, *field;
    const char *name;
    size_t i;
    bool small = true;
    json_object_foreach(root, name, part) json_array_foreach(json_object_get(part, "fields"), i, field) small &=
        is_small_field(field);
    json_decref(root);
    return small;
}

/* The first record: its images are PNG files, its arrays as large as they say. */
static void read_record(const stk_source *source)
{
    stk_reader reader = {0};
    stk_item item[STK_MAX_FIELDS];
    stk_stage_key key = {.epoch = 0};
    if (stk_reader_read(&reader, source, 0, &key, item) == STK_OK)
        for (int i = 0; i < source->n_fields; i++)
            if (item[i].n_bytes > 0 && !item[i].data) abort();
    stk_reader_free(&reader, source);
}

/* All parts, opened; NULL for those that the record lacks. */
static void open_parts(const stk_data_record *record, stk_dataset *part[STK_N_PARTS], bool is_staged[STK_N_PARTS])
{
    for (int i = 0; i < STK_N_PARTS; i++)
        if (stk_data_record_open(record, i, &part[i], &is_staged[i]) != STK_OK && part[i]) abort();
}

static bool same_part(const stk_dataset *a, const stk_dataset *b)
{
    const char *const *a_names = NULL, *const *b_names = NULL;
    if (!a || !b) return a == b;
    if (stk_dataset_count(a) != stk_dataset_count(b) || a->source->n_fields != b->source->n_fields) return false;
    for (int i = 0; i < a->source->n_fields; i++) {
        const stk_source_field *x = &a->source->field[i], *y = &b->source->field[i];
        if (strcmp(x->name, y->name) || x->type.kind != y->type.kind) return false;
        if (x->type.kind == STK_FIELD_ARRAY && !stk_shape_equal(x->type.desc.shape, y->type.desc.shape)) return false;
    }
    int64_t n = stk_dataset_classes(a, &a_names);
    if (stk_dataset_classes(b, &b_names) != n || !a_names != !b_names) return false;
    for (int64_t i = 0; a_names && i < n; i++)
        if (strcmp(a_names[i], b_names[i])) return false;
    return true;
}

static void print_and_parse(const stk_dataset *const part[STK_N_PARTS])
{
    static const stk_recipe recipe;
    stk_text text = {0};
    stk_data_record *again;
    stk_dataset *again_part[STK_N_PARTS];
    bool is_staged[STK_N_PARTS];
    if (stk_data_record_print(&recipe, part, &text) != STK_OK) abort();
    if (text.n > 0) {
        if (stk_data_record_parse("again", text.data, text.n, &again) != STK_OK) abort();
        open_parts(again, again_part, is_staged);
        for (int i = 0; i < STK_N_PARTS; i++) {
            if (!same_part(part[i], again_part[i])) abort();
            stk_dataset_free(again_part[i]);
        }
        stk_data_record_free(again);
    }
    stk_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_data_record *record;
    stk_dataset *part[STK_N_PARTS];
    bool is_staged[STK_N_PARTS];
    if (stk_data_record_parse("data.json", (const char *)data, size, &record) != STK_OK) {
        if (record) abort(); /* an error leaves nothing behind */
        return 0;
    }
    open_parts(record, part, is_staged);
    if (is_small(data, size)) {
        for (int i = 0; i < STK_N_PARTS; i++)
            if (part[i]) read_record(part[i]->source);
        print_and_parse((const stk_dataset *const *)part);
    }
    for (int i = 0; i < STK_N_PARTS; i++)
        stk_dataset_free(part[i]);
    stk_data_record_free(record);
    return 0;
}
