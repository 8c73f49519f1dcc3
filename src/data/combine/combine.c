/* See data/combine/combine.h; combine_fields.c makes the fields agree. */
#include "data/combine/combine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/combine/child.h"
#include "data/combine/combine_fields.h"
#include "data/order/mix.h"
#include "data/order/runs.h"

typedef struct combined_source {
    stk_source base;
    stk_combine_kind kind;
    int n_children;
    stk_dataset **child; /* owned */
    stk_combine_fields fields;
    stk_runs runs;
    stk_mix mix;
} combined_source;

static void locate(const combined_source *s, int64_t i_record, int64_t *i_child, int64_t *i_in_child)
{
    if (s->kind == STK_COMBINE_MIX)
        stk_mix_find(&s->mix, i_record, i_child, i_in_child);
    else
        stk_runs_find(&s->runs, i_record, i_child, i_in_child);
}

/* --- reading --- */

/* The thread's memory for child i, which comes with the first sample of it. */
static stk_status get_work(const combined_source *s, int64_t i, void **work, stk_child_work **out)
{
    size_t bytes = (size_t)s->n_children * sizeof(stk_child_work *);
    if (!*work) *work = calloc(1, bytes);
    if (!*work) return stk_fail_memory(bytes);
    stk_child_work **of = *work;
    if (!of[i]) of[i] = calloc(1, sizeof(stk_child_work));
    if (!of[i]) return stk_fail_memory(sizeof(stk_child_work));
    *out = of[i];
    return STK_OK;
}

static stk_status read_from(const combined_source *s, int64_t i, int64_t position, const stk_stage_key *key,
                            void **work, stk_item *item)
{
    stk_child_work *own = NULL;
    stk_item fields[STK_MAX_FIELDS];
    STK_RETURN_IF_ERROR(get_work(s, i, work, &own));
    STK_RETURN_IF_ERROR(stk_child_read(s->child[i], i, position, key, own, fields));
    const signed char *place = s->fields.place[i];
    for (int f = 0; f < s->child[i]->source->n_fields; f++)
        item[place[f]] = fields[f];
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, const stk_stage_key *key, void **work,
                              stk_item *item)
{
    const combined_source *s = (const combined_source *)source;
    int64_t i, position;
    if (s->kind == STK_COMBINE_ZIP) {
        for (i = 0; i < s->n_children; i++)
            STK_RETURN_IF_ERROR(read_from(s, i, i_record, key, work, item));
        return STK_OK;
    }
    locate(s, i_record, &i, &position);
    return read_from(s, i, position, key, work, item);
}

static void name_record(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes)
{
    const combined_source *s = (const combined_source *)source;
    int64_t i = 0, position = i_record;
    /* A zipped sample goes by its first part; an error of another part names that one itself. */
    if (s->kind != STK_COMBINE_ZIP) locate(s, i_record, &i, &position);
    stk_child_name(s->child[i], position, epoch, out, out_bytes);
}

static void name_in_epoch_0(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    name_record(source, i_record, 0, out, out_bytes);
}

/* --- closing --- */

static void free_work(const stk_source *source, void *work)
{
    const combined_source *s = (const combined_source *)source;
    stk_child_work **of = work;
    for (int i = 0; i < s->n_children; i++) {
        stk_child_work *child = of[i];
        if (!child) continue;
        stk_child_work_free(s->child[i], child);
        free(child);
    }
    free(of);
}

static void close_source(stk_source *source)
{
    combined_source *s = (combined_source *)source;
    for (int i = 0; s->child && i < s->n_children; i++)
        stk_dataset_free(s->child[i]);
    stk_runs_free(&s->runs);
    stk_mix_free(&s->mix);
    stk_combine_fields_free(&s->fields);
    free(s->child);
    free(s);
}

static size_t held_bytes(const stk_source *source)
{
    const combined_source *s = (const combined_source *)source;
    size_t n = 0;
    for (int i = 0; i < s->n_children; i++)
        n += stk_source_held_bytes(s->child[i]->source);
    return n;
}

static const stk_dataset *get_child(const stk_source *source, int i)
{
    const combined_source *s = (const combined_source *)source;
    return i < s->n_children ? s->child[i] : NULL;
}

#define CLASS(class_name)                                                                                              \
    {                                                                                                                  \
        .name = class_name, .read_keyed = read_record, .free_work = free_work, .name_keyed = name_record,              \
        .name_record = name_in_epoch_0, .close = close_source, .held_bytes = held_bytes, .child = get_child            \
    }
static const stk_source_class class_of[] = {[STK_COMBINE_CONCATENATE] = CLASS("concatenate"),
                                            [STK_COMBINE_ZIP] = CLASS("zip"),
                                            [STK_COMBINE_INTERLEAVE] = CLASS("interleave"),
                                            [STK_COMBINE_MIX] = CLASS("mix")};

/* --- opening --- */

static stk_status plan_order(combined_source *s, const stk_combine *how, const int64_t *counts)
{
    switch (how->kind) {
    case STK_COMBINE_ZIP:
        s->base.n_records = counts[0];
        for (int i = 1; i < s->n_children; i++)
            if (counts[i] < s->base.n_records) s->base.n_records = counts[i];
        return STK_OK;
    case STK_COMBINE_MIX:
        STK_RETURN_IF_ERROR(stk_mix_make(counts, how->weights, s->n_children, how->stop_at_empty, how->seed, &s->mix));
        s->base.n_records = s->mix.count;
        return STK_OK;
    case STK_COMBINE_CONCATENATE:
        STK_RETURN_IF_ERROR(stk_runs_interleave(counts, s->n_children, 1, INT64_MAX, &s->runs));
        break;
    case STK_COMBINE_INTERLEAVE:
        STK_RETURN_IF_ERROR(stk_runs_interleave(counts, s->n_children, how->cycle, how->block, &s->runs));
        break;
    }
    s->base.n_records = s->runs.count;
    return STK_OK;
}

/* What a combined source can say of itself comes from its children. */
static void take_notes(combined_source *s)
{
    stk_source *base = &s->base;
    bool all_known = true;
    for (int i = 0; i < s->n_children; i++) {
        const stk_source *source = s->child[i]->source;
        base->varies = base->varies || source->varies || stk_order_varies(&s->child[i]->order);
        all_known = all_known && source->n_bytes > 0;
        if (__builtin_add_overflow(base->n_bytes, source->n_bytes, &base->n_bytes)) all_known = false;
        if (source->window_bytes) base->file_bytes = base->window_bytes = -1; /* records differ in what they take */
        if (source->note[0] && !base->note[0]) snprintf(base->note, sizeof(base->note), "%s", source->note);
    }
    if (!all_known) base->n_bytes = 0;
}

stk_status stk_source_open_combined(const stk_combine *how, stk_dataset *const *children, int n_children,
                                    stk_source **out)
{
    stk_status status;
    size_t n = (size_t)n_children;
    int64_t *counts = NULL;
    combined_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->kind = how->kind;
    s->base.class = &class_of[how->kind];
    s->n_children = n_children;
    counts = calloc(n, sizeof(*counts));
    s->child = calloc(n, sizeof(*s->child));
    if (!counts || !s->child) STK_TRY(stk_fail_memory(n * sizeof(*counts)));
    for (int i = 0; i < n_children; i++)
        counts[i] = children[i]->order.count;
    STK_TRY(stk_combine_fields_make(&s->base, how->kind == STK_COMBINE_ZIP, children, n_children, &s->fields));
    STK_TRY(plan_order(s, how, counts));
    for (int i = 0; i < n_children; i++)
        s->child[i] = children[i];
    take_notes(s);
    *out = &s->base;
    s = NULL;
done:
    if (s) close_source(&s->base);
    free(counts);
    return status;
}
