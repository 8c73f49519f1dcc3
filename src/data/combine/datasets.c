/* Several data sets as one, and what else stoker/data/combine.h has. */
#include "stoker/data/combine.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/combine/combine.h"

/* --- several data sets as one --- */

static stk_status check_children(const char *what, stk_dataset *const *children, int n)
{
    if (n < 1 || !children) return stk_fail(STK_INVALID, "'%s' needs at least one data set", what);
    for (int i = 0; i < n; i++) {
        const stk_dataset *child = children[i];
        if (!child) return stk_fail(STK_INVALID, "data set %d of '%s' is NULL", i + 1, what);
        stk_status status = stk_dataset_status(child);
        if (status != STK_OK) return stk_fail_prefix(status, "data set %d of '%s': ", i + 1, what);
        if (child->n_rows)
            return stk_fail(STK_INVALID, "data set %d of '%s' has batches: batch the result instead", i + 1, what);
        STK_RETURN_IF_ERROR(stk_dataset_check_hint(child));
        if (!stk_dataset_has_numbers(children[i], what)) return children[i]->status;
        for (int k = 0; k < i; k++)
            if (children[k] == child)
                return stk_fail(STK_INVALID, "data sets %d and %d of '%s' are one and the same: make one for each",
                                k + 1, i + 1, what);
    }
    return STK_OK;
}

/* Each once, though one may be there several times. */
static void free_children(stk_dataset *const *children, int n)
{
    for (int i = 0; children && i < n; i++) {
        bool is_new = true;
        for (int k = 0; k < i; k++)
            is_new = is_new && children[k] != children[i];
        if (is_new) stk_dataset_free(children[i]);
    }
}

static stk_dataset *combine(const char *what, const stk_combine *how, stk_dataset *const *children, int n)
{
    stk_source *source = NULL;
    stk_error_policy policy = {STK_ON_ERROR_STOP, 0};
    stk_status status = check_children(what, children, n);
    if (status == STK_OK && how->kind == STK_COMBINE_MIX && !how->weights)
        status = stk_fail(STK_INVALID, "'weights' is NULL");
    if (status == STK_OK) status = stk_source_open_combined(how, children, n, &source);
    for (int i = 0; i < n && status == STK_OK; i++)
        if (children[i]->on_error != STK_ON_ERROR_STOP)
            policy = (stk_error_policy){children[i]->on_error, children[i]->most_errors};
    /* The text of the error is kept before the children go, which may set another. */
    stk_dataset *dataset = stk_dataset_make(status, source);
    if (status != STK_OK) free_children(children, n);
    if (status == STK_OK) stk_dataset_on_error_with(dataset, policy);
    return dataset;
}

stk_dataset *stk_dataset_concatenate(stk_dataset *const *datasets, int n)
{
    return combine("concatenate", &(stk_combine){.kind = STK_COMBINE_CONCATENATE}, datasets, n);
}

stk_dataset *stk_dataset_zip(stk_dataset *const *datasets, int n)
{
    return combine("zip", &(stk_combine){.kind = STK_COMBINE_ZIP}, datasets, n);
}

stk_dataset *stk_dataset_interleave(stk_dataset *const *datasets, int n, int64_t cycle, int64_t block)
{
    return combine("interleave", &(stk_combine){.kind = STK_COMBINE_INTERLEAVE, .cycle = cycle, .block = block},
                   datasets, n);
}

stk_dataset *stk_dataset_mix(stk_dataset *const *datasets, const double *weights, int n, bool stop_at_empty,
                             uint64_t seed)
{
    const stk_combine how = {.kind = STK_COMBINE_MIX, .weights = weights, .stop_at_empty = stop_at_empty, .seed = seed};
    return combine("mix", &how, datasets, n);
}

void stk_dataset_rename(stk_dataset *dataset, const char *field, const char *name)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "rename")) return;
    stk_source *source = dataset->source;
    size_t most = sizeof(source->field[0].name) - 1;
    int i = stk_dataset_find_field(dataset, field ? field : "image");
    stk_status status = i < 0 ? STK_NOT_FOUND : STK_OK;
    if (i >= 0 && (!name || !name[0] || strlen(name) > most))
        status = stk_fail(STK_INVALID, "field '%s' needs a name of 1 to %zu characters", source->field[i].name, most);
    for (int k = 0; k < source->n_fields && status == STK_OK; k++)
        if (k != i && !strcmp(source->field[k].name, name))
            status = stk_fail(STK_INVALID, "cannot rename '%s': there is a field '%s' already", field, name);
    if (stk_dataset_keep_error(dataset, status) == STK_OK)
        snprintf(source->field[i].name, sizeof(source->field[i].name), "%s", name);
}

/* --- shuffle --- */

void stk_dataset_shuffle_with(stk_dataset *dataset, stk_shuffle shuffle)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "shuffle")) return;
    stk_dataset_keep_error(dataset,
                           stk_order_shuffle_with(&dataset->order, shuffle.seed, shuffle.window, !shuffle.once));
}

/* --- shards --- */

stk_status stk_dataset_check_hint(const stk_dataset *dataset)
{
    if (!stk_order_has_hint(&dataset->order)) return STK_OK;
    return stk_fail(STK_INVALID, "the place of 'shard_hint' is still empty: shard with the policy HINT");
}

static int64_t file_of(const void *user, int64_t i_record)
{
    const stk_source *source = user;
    return source->class->file_of ? source->class->file_of(source, i_record) : i_record;
}

static stk_status shard_files(stk_dataset *dataset, int64_t n_shards, int64_t i_shard)
{
    const stk_source *source = dataset->source;
    if (n_shards == 1 && i_shard == 0) return STK_OK;
    if (source->n_files == 0)
        return stk_fail(STK_INVALID, "cannot shard by file: source '%s' does not consist of files; shard by data",
                        source->class->name);
    return stk_order_shard_files(&dataset->order, source->n_files, file_of, source, n_shards, i_shard);
}

static stk_status shard_by(stk_dataset *dataset, stk_shard_policy policy, int64_t n_shards, int64_t i_shard)
{
    stk_order *order = &dataset->order;
    switch (policy) {
    case STK_SHARD_OFF: return STK_OK;
    case STK_SHARD_AUTO:
        if (dataset->source->n_files == 0) return stk_order_shard(order, n_shards, i_shard);
        return shard_files(dataset, n_shards, i_shard);
    case STK_SHARD_FILE: return shard_files(dataset, n_shards, i_shard);
    case STK_SHARD_DATA: return stk_order_shard(order, n_shards, i_shard);
    case STK_SHARD_HINT: return stk_order_fill_hint(order, n_shards, i_shard);
    }
    return stk_fail(STK_INVALID, "a shard policy cannot be %d", (int)policy);
}

void stk_dataset_shard_by(stk_dataset *dataset, stk_shard_policy policy, int64_t n_shards, int64_t i_shard)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "shard"))
        stk_dataset_keep_error(dataset, shard_by(dataset, policy, n_shards, i_shard));
}

void stk_dataset_shard_hint(stk_dataset *dataset)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "shard_hint"))
        stk_dataset_keep_error(dataset, stk_order_shard_hint(&dataset->order));
}
