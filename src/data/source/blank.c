/* See data/source/blank.h. */
#include "data/source/blank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "data/codec/image.h"

typedef struct blank_source {
    stk_source base;
    stk_blank_field blank[STK_MAX_FIELDS];
    stk_arena *names;
    const char **class_names; /* [n_classes] */
} blank_source;

/* A black image, so that what depends on its size can be found out. */
static stk_status make_image(const stk_blank_field *field, stk_scratch *scratch, stk_item *item)
{
    uint8_t *pixels = NULL, *png = NULL, *out;
    size_t n_pixels, n = 0;
    stk_status status = STK_OK;
    if (!stk_image_can_be(field->height, field->width))
        return stk_fail(STK_NOT_FOUND, "the data are not here, and how large its field '%s' is was not recorded",
                        field->name);
    n_pixels = (size_t)field->height * (size_t)field->width;
    pixels = calloc(n_pixels, 1);
    if (!pixels) STK_TRY(stk_fail_memory(n_pixels));
    STK_TRY(stk_png_encode(pixels, field->height, field->width, 1, &png, &n));
    if (!(out = stk_scratch_get(scratch, n))) STK_TRY(STK_NO_MEMORY);
    memcpy(out, png, n);
    *item = (stk_item){.type = field->type, .data = out, .n_bytes = n};
done:
    free(pixels);
    free(png);
    return status;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const blank_source *s = (const blank_source *)source;
    (void)i_record;
    for (int f = 0; f < source->n_fields; f++) {
        const stk_blank_field *field = &s->blank[f];
        if (field->type.kind == STK_FIELD_ENCODED) {
            STK_RETURN_IF_ERROR(make_image(field, &scratch[f], &item[f]));
            continue;
        }
        size_t n = stk_desc_bytes(field->type.desc);
        void *out = stk_scratch_get(&scratch[f], n);
        if (!out) return STK_NO_MEMORY;
        memset(out, 0, n);
        item[f] = (stk_item){.type = field->type, .data = out, .n_bytes = n};
    }
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "blank record %lld", (long long)i_record);
}

static void close_source(stk_source *source)
{
    blank_source *s = (blank_source *)source;
    stk_arena_free(s->names);
    free(s->class_names);
    free(s);
}

static const stk_source_class class_blank = {
    .name = "blank", .read = read_record, .name_record = name_record, .close = close_source};

static stk_status set_field(blank_source *s, const stk_blank_field *field)
{
    stk_source_field *out = &s->base.field[s->base.n_fields];
    bool is_array = field->type.kind == STK_FIELD_ARRAY;
    if (is_array && !stk_shape_known(field->type.desc.shape))
        return stk_fail(STK_INVALID, "a blank field '%s' needs a whole shape", field->name);
    if (is_array) STK_RETURN_IF_ERROR(stk_desc_check(field->type.desc));
    snprintf(out->name, sizeof(out->name), "%s", field->name);
    out->type = field->type;
    s->blank[s->base.n_fields++] = *field;
    return STK_OK;
}

static stk_status set_classes(blank_source *s, const char *const *classes, int64_t n)
{
    s->class_names = calloc((size_t)n + 1, sizeof(*s->class_names));
    s->names = stk_arena_new();
    if (!s->class_names || !s->names) return stk_fail_memory((size_t)n * sizeof(*s->class_names));
    for (int64_t i = 0; i < n; i++)
        if (!(s->class_names[i] = stk_arena_text(s->names, classes[i]))) return stk_fail_memory(strlen(classes[i]));
    s->base.class_names = s->class_names;
    s->base.n_classes = n;
    return STK_OK;
}

stk_status stk_source_open_blank(int64_t n_records, const stk_blank_field *fields, int n_fields,
                                 const char *const *classes, int64_t n_classes, stk_source **out)
{
    stk_status status = STK_OK;
    *out = NULL;
    if (n_records < 1 || n_fields < 1 || n_fields > STK_MAX_FIELDS)
        return stk_fail(STK_INVALID, "%d fields and %lld records cannot be stood for", n_fields, (long long)n_records);
    blank_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base.class = &class_blank;
    s->base.n_records = n_records;
    for (int f = 0; f < n_fields; f++)
        STK_TRY(set_field(s, &fields[f]));
    if (classes) STK_TRY(set_classes(s, classes, n_classes));
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}
