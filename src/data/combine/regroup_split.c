/* Samples that are parts of one: rows of it, or what a function makes of it. See stoker/data/regroup.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/combine/regroup.h"
#include "data/source/fields.h"

/* --- which part of which sample --- */

static void locate(const stk_regroup *s, int64_t i_record, int64_t *i_sample, int64_t *i_part)
{
    int64_t low = 0, high = s->n_samples - 1;
    if (s->n_parts) {
        *i_sample = i_record / s->n_parts;
        *i_part = i_record % s->n_parts;
        return;
    }
    /* The last sample whose parts begin there or before, of which those without parts are none. */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (s->first[middle] <= i_record)
            low = middle;
        else
            high = middle - 1;
    }
    *i_sample = low;
    *i_part = i_record - s->first[low];
}

static int64_t first_of(const stk_regroup *s, int64_t i_record)
{
    int64_t i_sample, i_part;
    locate(s, i_record, &i_sample, &i_part);
    return i_sample;
}

stk_status stk_regroup_split(stk_regroup *s, const int32_t *counts)
{
    s->first_of = first_of;
    s->read = s->read_part;
    if (s->n_parts) {
        if (!__builtin_mul_overflow(s->n_samples, s->n_parts, &s->base.n_records)) return STK_OK;
        return stk_fail(STK_INVALID, "%lld parts of %lld samples are more than can be counted", (long long)s->n_parts,
                        (long long)s->n_samples);
    }
    s->first = malloc((size_t)(s->n_samples + 1) * sizeof(*s->first));
    if (!s->first) return stk_fail_memory((size_t)(s->n_samples + 1) * sizeof(*s->first));
    s->first[0] = 0;
    for (int64_t i = 0; i < s->n_samples; i++)
        s->first[i + 1] = s->first[i] + (counts[i] > 0 ? counts[i] : 0);
    s->base.n_records = s->first[s->n_samples];
    return s->base.n_records ? STK_OK : stk_fail(STK_INVALID, "nothing is made of any sample");
}

/* --- rows --- */

stk_status stk_regroup_count_rows(const stk_regroup *s, const stk_item *item, int64_t *out)
{
    for (int f = 0; f < s->child->source->n_fields; f++) {
        int64_t n = item[f].type.desc.shape.dim[0];
        if (f > 0 && n != *out)
            return stk_fail(STK_MISMATCH, "field '%s' has %lld rows and field '%s' %lld",
                            s->child->source->field[0].name, (long long)*out, s->child->source->field[f].name,
                            (long long)n);
        *out = n;
    }
    return STK_OK;
}

static stk_status read_row(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                           stk_item *item)
{
    int64_t i_sample, i_part, n = 0;
    locate(s, i_record, &i_sample, &i_part);
    STK_RETURN_IF_ERROR(stk_regroup_read_sample(s, i_sample, key, work));
    STK_RETURN_IF_ERROR(stk_regroup_count_rows(s, work->item, &n));
    if (i_part >= n)
        return stk_fail(STK_MISMATCH, "a sample has fewer rows than it had when they were counted: no stage before may "
                                      "draw sizes at random");
    for (int f = 0; f < s->base.n_fields; f++) {
        const stk_item *sample = &work->item[f];
        stk_shape shape = {.rank = sample->type.desc.shape.rank - 1};
        memcpy(shape.dim, sample->type.desc.shape.dim + 1, (size_t)shape.rank * sizeof(shape.dim[0]));
        item[f].type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(sample->type.desc.dtype, shape)};
        item[f].n_bytes = stk_desc_bytes(item[f].type.desc);
        item[f].data = (char *)sample->data + (size_t)i_part * item[f].n_bytes;
    }
    return STK_OK;
}

stk_status stk_regroup_plan_rows(stk_regroup *s)
{
    bool all_known = true;
    char text[STK_SHAPE_TEXT_BYTES];
    for (int f = 0; f < s->base.n_fields; f++) {
        const stk_tensor_desc desc = s->base.field[f].type.desc;
        if (desc.shape.rank == 0)
            return stk_fail(STK_INVALID, "field '%s' is %s and has no rows", s->base.field[f].name,
                            stk_desc_text(desc, text));
        int64_t n = desc.shape.dim[0];
        if (n == STK_ANY) all_known = false;
        if (n != STK_ANY && s->n_parts && n != s->n_parts)
            return stk_fail(STK_INVALID, "field '%s' has %lld rows, others have %lld", s->base.field[f].name,
                            (long long)n, (long long)s->n_parts);
        if (n == 0) return stk_fail(STK_INVALID, "field '%s' has no rows", s->base.field[f].name);
        if (n != STK_ANY) s->n_parts = n;
        stk_shape shape = {.rank = desc.shape.rank - 1};
        memcpy(shape.dim, desc.shape.dim + 1, (size_t)shape.rank * sizeof(shape.dim[0]));
        stk_regroup_set_field(s, f, s->base.field[f].name, desc.dtype, shape);
    }
    if (!all_known) s->n_parts = 0;
    s->read_part = read_row;
    return STK_OK;
}

/* --- by a function --- */

static void show_fields(const stk_regroup *s, const stk_item *item, stk_record_field *out)
{
    const stk_source *source = s->child->source;
    for (int f = 0; f < source->n_fields; f++)
        out[f] = (stk_record_field){.name = source->field[f].name,
                                    .encoded = item[f].type.kind == STK_FIELD_ENCODED,
                                    .dtype = item[f].type.desc.dtype,
                                    .shape = item[f].type.desc.shape,
                                    .data = item[f].data,
                                    .n_bytes = item[f].n_bytes};
}

stk_status stk_regroup_count_made(const stk_regroup *s, const stk_item *item, int64_t *out)
{
    stk_record_field field[STK_MAX_FIELDS];
    show_fields(s, item, field);
    *out = s->map.count(s->map.user, field, s->child->source->n_fields);
    if (*out >= 0 && *out <= INT32_MAX) return STK_OK;
    return stk_fail(STK_CORRUPT, "the count is %lld, not 0 to 2^31 - 1", (long long)*out);
}

static stk_status read_made(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                            stk_item *item)
{
    int64_t i_sample, i_part;
    stk_record_field field[STK_MAX_FIELDS];
    void *out[STK_MAX_FIELDS];
    locate(s, i_record, &i_sample, &i_part);
    STK_RETURN_IF_ERROR(stk_regroup_read_sample(s, i_sample, key, work));
    show_fields(s, work->item, field);
    for (int f = 0; f < s->base.n_fields; f++) {
        size_t n = stk_desc_bytes(s->base.field[f].type.desc);
        out[f] = stk_scratch_get(&work->out[f], n ? n : 1);
        if (!out[f]) return STK_NO_MEMORY;
        item[f] = (stk_item){s->base.field[f].type, out[f], n};
    }
    stk_fail(STK_OK, "the function of flat_map failed"); /* What the text says unless the function sets a better one. */
    return s->map.make(s->map.user, field, s->child->source->n_fields, i_part, out);
}

stk_status stk_regroup_plan_map(stk_regroup *s, const stk_flat_map *map)
{
    if (!map || !map->make || (!map->count && map->n_parts == 0))
        return stk_fail(STK_INVALID, "a function of flat_map is missing");
    if (map->n_parts < 0 || (map->count && map->n_parts))
        return stk_fail(STK_INVALID, "'n_parts' is %lld%s", (long long)map->n_parts,
                        map->count ? ", and 'count' says how many there are, too" : "");
    STK_RETURN_IF_ERROR(stk_source_set_fields(&s->base, s->n_samples, map->fields, map->n_fields));
    s->map = *map;
    s->n_parts = map->n_parts;
    s->read_part = read_made;
    return STK_OK;
}
