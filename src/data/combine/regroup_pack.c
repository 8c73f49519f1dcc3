/* Several short samples in one row. See stoker/data/regroup.h. */
#include <string.h>

#include "base/error.h"
#include "data/combine/regroup.h"

/* --- planning --- */

static stk_status plan_field(stk_regroup *s, int f, const stk_packing *how)
{
    const stk_source_field *field = &s->base.field[f];
    stk_shape element = field->type.desc.shape;
    char text[STK_SHAPE_TEXT_BYTES];
    bool open = field->type.kind == STK_FIELD_ARRAY && element.rank > 0 && element.dim[0] == STK_ANY;
    element.dim[0] = 1;
    if (!open || !stk_shape_known(element))
        return stk_fail(STK_INVALID,
                        "field '%s' is %s, and only fields whose first side is open are packed: name the "
                        "'fields' to pack, the others are left out",
                        field->name,
                        field->type.kind == STK_FIELD_ENCODED ? "encoded" : stk_desc_text(field->type.desc, text));
    stk_pad_plan *pad = &s->pad[s->n_packed];
    pad->element_bytes = stk_desc_bytes(stk_desc_make(field->type.desc.dtype, element));
    s->packed[s->n_packed++] = f;
    return stk_pad_plan_set_value(pad, how->value, field->type.desc.dtype, field->name);
}

stk_status stk_regroup_plan_pack(stk_regroup *s, const stk_packing *how)
{
    const stk_dataset *child = s->child;
    if (how->length < 1 || how->length > INT32_MAX)
        return stk_fail(STK_INVALID, "rows cannot have %lld elements", (long long)how->length);
    if (how->n_fields < 0 || (how->n_fields && !how->fields)) return stk_fail(STK_INVALID, "'fields' is missing");
    for (int i = 0; i < how->n_fields; i++) {
        int f = how->fields[i] ? stk_dataset_find_field(child, how->fields[i]) : -1;
        if (f < 0) return how->fields[i] ? STK_NOT_FOUND : stk_fail(STK_INVALID, "a field's name is NULL");
        for (int k = 0; k < s->n_packed; k++)
            if (s->packed[k] == f) return stk_fail(STK_INVALID, "field '%s' is there twice", how->fields[i]);
        STK_RETURN_IF_ERROR(plan_field(s, f, how));
    }
    for (int f = 0; f < child->source->n_fields && how->n_fields == 0; f++)
        STK_RETURN_IF_ERROR(plan_field(s, f, how));
    if (s->n_packed + 2 > STK_MAX_FIELDS)
        return stk_fail(STK_INVALID, "%d fields are too many to pack: at most %d are possible", s->n_packed,
                        STK_MAX_FIELDS - 2);
    for (int k = 0; k < s->n_packed; k++) {
        const char *name = s->base.field[s->packed[k]].name;
        if (!strcmp(name, "segment") || !strcmp(name, "position"))
            return stk_fail(STK_INVALID, "field '%s' has the name of one that packing makes: rename it", name);
    }
    s->length = how->length;
    return STK_OK;
}

/* --- reading --- */

stk_status stk_regroup_measure_packed(const stk_regroup *s, const stk_item *item, int64_t *out)
{
    for (int k = 0; k < s->n_packed; k++) {
        int64_t n = item[s->packed[k]].type.desc.shape.dim[0];
        if (k > 0 && n != *out)
            return stk_fail(STK_MISMATCH,
                            "field '%s' has %lld elements and field '%s' %lld: packed fields are equally "
                            "long",
                            s->child->source->field[s->packed[k]].name, (long long)n,
                            s->child->source->field[s->packed[0]].name, (long long)*out);
        *out = n;
    }
    return STK_OK;
}

/* Puts the sample in work at element `at` of the row. */
static void add_sample(const stk_regroup *s, const stk_regroup_work *work, int64_t at, int64_t n, int32_t i_segment,
                       stk_item *item)
{
    int32_t *segment = item[s->n_packed].data, *position = item[s->n_packed + 1].data;
    for (int k = 0; k < s->n_packed; k++) {
        size_t bytes = s->pad[k].element_bytes;
        if (n) memcpy((char *)item[k].data + (size_t)at * bytes, work->item[s->packed[k]].data, (size_t)n * bytes);
    }
    for (int64_t i = 0; i < n; i++) {
        segment[at + i] = i_segment;
        position[at + i] = (int32_t)i;
    }
}

static stk_status read_row(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                           stk_item *item)
{
    int64_t at = 0, from = s->rows.start[i_record], to = s->rows.start[i_record + 1];
    for (int k = 0; k < s->base.n_fields; k++) {
        item[k].type = s->base.field[k].type;
        item[k].n_bytes = stk_desc_bytes(item[k].type.desc);
        item[k].data = stk_scratch_get(&work->out[k], item[k].n_bytes ? item[k].n_bytes : 1);
        if (!item[k].data) return STK_NO_MEMORY;
    }
    for (int64_t i = from; i < to; i++) {
        int64_t n = 0;
        STK_RETURN_IF_ERROR(stk_regroup_read_sample(s, s->rows.member[i], key, work));
        STK_RETURN_IF_ERROR(stk_regroup_measure_packed(s, work->item, &n));
        if (n > s->length) n = s->length;
        if (n > s->length - at)
            return stk_fail(STK_MISMATCH, "a sample is longer than it was when the rows were packed: no stage before "
                                          "may draw lengths at random");
        add_sample(s, work, at, n, (int32_t)(i - from) + 1, item);
        at += n;
    }
    for (int k = 0; k < s->base.n_fields; k++) {
        size_t bytes = item[k].n_bytes / (size_t)s->length, rest = (size_t)(s->length - at) * bytes;
        if (k < s->n_packed && rest)
            stk_pad_plan_fill(&s->pad[k], (char *)item[k].data + (size_t)at * bytes, rest);
        else
            memset((char *)item[k].data + (size_t)at * bytes, 0, rest);
    }
    return STK_OK;
}

static int64_t first_of(const stk_regroup *s, int64_t i_record)
{
    return s->rows.member[s->rows.start[i_record]];
}

stk_status stk_regroup_pack(stk_regroup *s, const stk_packing *how, const int32_t *lengths)
{
    STK_RETURN_IF_ERROR(stk_first_fit(lengths, s->n_samples, how->length, &s->rows));
    if (s->rows.n == 0) return stk_fail(STK_INVALID, "no sample has anything to pack");
    for (int k = 0; k < s->n_packed; k++) {
        const stk_source_field *of = &s->child->source->field[s->packed[k]];
        stk_tensor_desc desc = stk_chain_type(&s->child->chain[s->packed[k]])->desc;
        desc.shape.dim[0] = how->length;
        stk_regroup_set_field(s, k, of->name, desc.dtype, desc.shape);
    }
    stk_shape row = {1, {how->length}};
    stk_regroup_set_field(s, s->n_packed, "segment", STK_I32, row);
    stk_regroup_set_field(s, s->n_packed + 1, "position", STK_I32, row);
    s->base.n_fields = s->n_packed + 2;
    s->base.n_records = s->rows.n;
    s->read = read_row;
    s->first_of = first_of;
    return STK_OK;
}
