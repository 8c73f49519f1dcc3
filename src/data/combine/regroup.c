/* See data/combine/regroup.h. */
#include "data/combine/regroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* --- samples --- */

stk_status stk_regroup_read_sample(const stk_regroup *s, int64_t position, const stk_stage_key *key,
                                   stk_regroup_work *work)
{
    if (work->i_read == position + 1 && work->epoch == key->epoch && work->seed == key->seed) return STK_OK;
    work->i_read = 0;
    STK_RETURN_IF_ERROR(stk_child_read(s->child, 0, position, key, &work->child, work->item));
    work->i_read = position + 1;
    work->epoch = key->epoch;
    work->seed = key->seed;
    return STK_OK;
}

/* The sample as it is. */
static stk_status read_same(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                            stk_item *item)
{
    STK_RETURN_IF_ERROR(stk_regroup_read_sample(s, i_record, key, work));
    for (int f = 0; f < s->child->source->n_fields; f++)
        item[f] = work->item[f];
    return STK_OK;
}

static int64_t first_of_same(const stk_regroup *s, int64_t i_record)
{
    (void)s;
    return i_record;
}

/* --- the source --- */

static stk_status read_record(const stk_source *source, int64_t i_record, const stk_stage_key *key, void **work,
                              stk_item *item)
{
    const stk_regroup *s = (const stk_regroup *)source;
    if (!*work) *work = calloc(1, sizeof(stk_regroup_work));
    if (!*work) return stk_fail_memory(sizeof(stk_regroup_work));
    return s->read(s, i_record, key, *work, item);
}

static void free_work(const stk_source *source, void *work)
{
    const stk_regroup *s = (const stk_regroup *)source;
    stk_regroup_work *w = work;
    stk_child_work_free(s->child, &w->child);
    for (int f = 0; f < STK_MAX_FIELDS; f++)
        stk_scratch_free(&w->out[f]);
    free(w);
}

static void name_keyed(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes)
{
    const stk_regroup *s = (const stk_regroup *)source;
    stk_child_name(s->child, s->first_of(s, i_record), epoch, out, out_bytes);
}

static void name_in_epoch_0(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    name_keyed(source, i_record, 0, out, out_bytes);
}

static size_t held_bytes(const stk_source *source)
{
    const stk_regroup *s = (const stk_regroup *)source;
    size_t n = stk_dataset_held_bytes(s->child);
    if (s->rows.n) n += (size_t)(s->rows.n + 2) * sizeof(*s->rows.start) + (size_t)s->n_samples * 4;
    if (s->first) n += (size_t)(s->n_samples + 1) * sizeof(*s->first);
    return n;
}

static void close_source(stk_source *source)
{
    stk_regroup *s = (stk_regroup *)source;
    stk_dataset_free(s->child);
    stk_rows_free(&s->rows);
    free(s->first);
    free(s);
}

static const stk_dataset *get_child(const stk_source *source, int i)
{
    return i == 0 ? ((const stk_regroup *)source)->child : NULL;
}

#define CLASS(class_name)                                                                                              \
    {                                                                                                                  \
        .name = class_name, .read_keyed = read_record, .free_work = free_work, .name_keyed = name_keyed,               \
        .name_record = name_in_epoch_0, .close = close_source, .held_bytes = held_bytes, .child = get_child            \
    }
static const stk_source_class classes[] = {CLASS("pack_sequences"), CLASS("window"), CLASS("unbatch"),
                                           CLASS("flat_map")};

static const stk_source_class *find_class(const char *name)
{
    size_t i = 0;
    while (i + 1 < sizeof(classes) / sizeof(classes[0]) && strcmp(classes[i].name, name) != 0)
        i++;
    return &classes[i];
}

stk_status stk_regroup_open(const char *name, stk_dataset *child, stk_regroup **out)
{
    const stk_source *source = child->source;
    stk_regroup *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base.class = find_class(name);
    s->child = child;
    s->n_samples = s->base.n_records = child->order.count;
    s->base.n_fields = source->n_fields;
    for (int f = 0; f < source->n_fields; f++) {
        s->base.field[f] = source->field[f];
        s->base.field[f].type = *stk_chain_type(&child->chain[f]);
    }
    s->base.varies = source->varies || stk_order_varies(&child->order);
    s->base.n_bytes = source->n_bytes;
    if (source->window_bytes) s->base.file_bytes = s->base.window_bytes = -1;
    snprintf(s->base.note, sizeof(s->base.note), "%s", source->note);
    s->read = read_same;
    s->first_of = first_of_same;
    *out = s;
    return STK_OK;
}

void stk_regroup_set_field(stk_regroup *s, int i, const char *name, stk_dtype dtype, stk_shape shape)
{
    stk_source_field *field = &s->base.field[i];
    if (field->name != name) snprintf(field->name, sizeof(field->name), "%s", name);
    field->type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(dtype, shape)};
}
