/* See data/combine/combine_fields.h. */
#include "data/combine/combine_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int find_field(const stk_source *source, const char *name)
{
    for (int i = 0; i < source->n_fields; i++)
        if (!strcmp(source->field[i].name, name)) return i;
    return -1;
}

static const char *type_text(const stk_field_type *type, char text[STK_SHAPE_TEXT_BYTES])
{
    return type->kind == STK_FIELD_ENCODED ? "encoded" : stk_desc_text(type->desc, text);
}

/* Makes *type what holds both: sides that differ are left open. False where there is no such type. */
static bool widen_type(stk_field_type *type, const stk_field_type *other)
{
    if (type->kind != other->kind) return false;
    if (type->kind == STK_FIELD_ENCODED) return true;
    stk_shape *shape = &type->desc.shape;
    if (type->desc.dtype != other->desc.dtype || shape->rank != other->desc.shape.rank) return false;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != other->desc.shape.dim[i]) shape->dim[i] = STK_ANY;
    return true;
}

/* --- zip: all fields of all children --- */

static stk_status join_fields(stk_source *source, stk_dataset *const *children, int n_children,
                              stk_combine_fields *fields)
{
    int from[STK_MAX_FIELDS];
    for (int i = 0; i < n_children; i++)
        for (int f = 0; f < children[i]->source->n_fields; f++) {
            const stk_source_field *field = &children[i]->source->field[f];
            int known = find_field(source, field->name);
            if (known >= 0)
                return stk_fail(STK_INVALID,
                                "field '%s' is in data sets %d and %d of 'zip': give one of them another name with "
                                "'rename'",
                                field->name, from[known] + 1, i + 1);
            if (source->n_fields == STK_MAX_FIELDS)
                return stk_fail(STK_INVALID,
                                "field '%s' of data set %d of 'zip' is one too many: at most %d are "
                                "possible",
                                field->name, i + 1, STK_MAX_FIELDS);
            from[source->n_fields] = i;
            fields->place[i][f] = (signed char)source->n_fields;
            source->field[source->n_fields] = *field;
            source->field[source->n_fields++].type = *stk_chain_type(&children[i]->chain[f]);
        }
    return STK_OK;
}

/* --- the rest: the same fields in all children --- */

static stk_status fail_field(const stk_source *source, int i_first, int i_second, const char *name)
{
    return stk_fail(STK_INVALID, "field '%s' is in data set %d of '%s' and not in data set %d", name, i_first + 1,
                    source->class->name, i_second + 1);
}

static stk_status agree_field(stk_source *source, int i, int f, const stk_field_type *type)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    stk_source_field *field = &source->field[f];
    const stk_field_type before = field->type;
    if (widen_type(&field->type, type)) return STK_OK;
    bool decode = before.kind != type->kind;
    return stk_fail(STK_INVALID, "field '%s' is %s in data set 1 of '%s' and %s in data set %d: apply %s first",
                    field->name, type_text(&before, a), source->class->name, type_text(type, b), i + 1,
                    decode ? "the stage 'decode'" : "stages that make them agree");
}

static stk_status agree_fields(stk_source *source, stk_dataset *const *children, int n_children,
                               stk_combine_fields *fields)
{
    const stk_source *first = children[0]->source;
    source->n_fields = first->n_fields;
    for (int f = 0; f < first->n_fields; f++) {
        source->field[f] = first->field[f];
        source->field[f].type = *stk_chain_type(&children[0]->chain[f]);
    }
    for (int i = 0; i < n_children; i++) {
        const stk_source *other = children[i]->source;
        for (int f = 0; f < other->n_fields; f++) {
            int place = find_field(source, other->field[f].name);
            if (place < 0) return fail_field(source, i, 0, other->field[f].name);
            fields->place[i][f] = (signed char)place;
            STK_RETURN_IF_ERROR(agree_field(source, i, place, stk_chain_type(&children[i]->chain[f])));
        }
        for (int f = 0; f < source->n_fields; f++)
            if (find_field(other, source->field[f].name) < 0) return fail_field(source, 0, i, source->field[f].name);
    }
    return STK_OK;
}

/* --- classes --- */

static stk_status fail_class(const stk_source *source, const char *name, int with, int without)
{
    return stk_fail(
        STK_INVALID,
        "the classes of the data sets of '%s' differ, so that their labels mean other things: '%.80s' is in "
        "data set %d and not in data set %d",
        source->class->name, name, with + 1, without + 1);
}

/* The classes of all children that have names for them must be the same; of zip the first that has any counts. */
static stk_status take_classes(stk_source *source, bool join, stk_dataset *const *children, int n_children)
{
    int i_first = -1;
    bool all = true;
    for (int i = 0; i < n_children; i++) {
        const stk_source *other = children[i]->source;
        if (!other->class_names) {
            all = false;
            continue;
        }
        if (i_first < 0) {
            i_first = i;
            source->class_names = other->class_names;
            source->n_classes = other->n_classes;
        }
        for (int64_t k = 0; !join && (k < source->n_classes || k < other->n_classes); k++) {
            const char *a = k < source->n_classes ? source->class_names[k] : NULL;
            const char *b = k < other->n_classes ? other->class_names[k] : NULL;
            if (a && b && !strcmp(a, b)) continue;
            bool only_first = !b || (a && strcmp(a, b) < 0);
            return only_first ? fail_class(source, a, i_first, i) : fail_class(source, b, i, i_first);
        }
    }
    if (!join && !all) {
        source->class_names = NULL;
        source->n_classes = 0;
    }
    return STK_OK;
}

stk_status stk_combine_fields_make(stk_source *source, bool join, stk_dataset *const *children, int n_children,
                                   stk_combine_fields *out)
{
    out->place = calloc((size_t)n_children, sizeof(*out->place));
    if (!out->place) return stk_fail_memory((size_t)n_children * sizeof(*out->place));
    STK_RETURN_IF_ERROR(join ? join_fields(source, children, n_children, out)
                             : agree_fields(source, children, n_children, out));
    return take_classes(source, join, children, n_children);
}

void stk_combine_fields_free(stk_combine_fields *fields)
{
    free(fields->place);
    fields->place = NULL;
}
