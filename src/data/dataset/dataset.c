/* Building a data set: the first error stays, with its text. See stoker/data/dataset.h; dataset/probe.c reads records.
 */
#include "data/dataset/dataset.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "data/remote/http.h"
#include "data/source/records.h"
#include "data/stage/each.h"

/* Stands for a data set that could not be allocated. Builders leave one with an error alone, so it is never written. */
static const stk_dataset out_of_memory = {.status = STK_NO_MEMORY, .error = "cannot allocate memory for a data set"};

stk_status stk_dataset_keep_error(stk_dataset *dataset, stk_status status)
{
    if (status == STK_OK || dataset->status != STK_OK) return status;
    dataset->status = status;
    snprintf(dataset->error, sizeof(dataset->error), "%s", stk_error_text());
    return status;
}

/* --- sources --- */

stk_dataset *stk_dataset_make(stk_status status, stk_source *source)
{
    stk_dataset *dataset = calloc(1, sizeof(*dataset));
    if (!dataset) {
        if (source) source->class->close(source);
        return (stk_dataset *)&out_of_memory;
    }
    if (status == STK_OK) {
        dataset->source = source;
        for (int i = 0; i < source->n_fields; i++)
            stk_chain_init(&dataset->chain[i], source->field[i].name, source->class->name, &source->field[i].type);
        status = stk_order_init(&dataset->order, source->n_records);
    }
    stk_dataset_keep_error(dataset, status);
    return dataset;
}

stk_dataset *stk_dataset_images(const char *folder)
{
    stk_source *source = NULL;
    stk_status status =
        folder ? stk_source_open_image_folder(folder, &source) : stk_fail(STK_INVALID, "'folder' is NULL");
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_idx(const char *images, const char *labels)
{
    stk_source *source = NULL;
    stk_status status =
        images ? stk_source_open_idx(images, labels, &source) : stk_fail(STK_INVALID, "'images' is NULL");
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_arrays(int64_t n_samples, const stk_array_field *fields, int n_fields)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_arrays(n_samples, fields, n_fields, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_function(int64_t n_samples, const stk_array_field *fields, int n_fields, stk_sample_fn fn,
                                  void *user)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_function(n_samples, fields, n_fields, fn, user, &source);
    return stk_dataset_make(status, source);
}

void stk_dataset_hold(const stk_dataset *dataset)
{
    /* Who holds it changes nothing else of it. */
    if (dataset != &out_of_memory) atomic_fetch_add(&((stk_dataset *)(uintptr_t)dataset)->n_users, 1);
}

bool stk_dataset_can_change(stk_dataset *dataset, const char *what)
{
    if (dataset->status != STK_OK || atomic_load(&dataset->n_users) == 0) return true;
    stk_dataset_keep_error(dataset, stk_fail(STK_BUSY, "'%s' comes while a loader or trainer uses the data set", what));
    return false;
}

void stk_dataset_free(stk_dataset *dataset)
{
    if (!dataset || dataset == &out_of_memory) return;
    if (atomic_fetch_sub(&dataset->n_users, 1) > 0) return;
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        stk_chain_free(&dataset->chain[i]);
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        stk_pad_plan_free(&dataset->pad[i]);
    stk_buckets_plan_free(&dataset->buckets);
    stk_row_cache_free(dataset->cache);
    free(dataset->masked);
    stk_order_free(&dataset->order);
    if (dataset->source) dataset->source->class->close(dataset->source);
    free(dataset);
}

/* --- order --- */

bool stk_dataset_can_order(stk_dataset *dataset, const char *what)
{
    if (dataset->status != STK_OK || !stk_dataset_has_numbers(dataset, what)) return false;
    if (dataset->n_rows == 0) return true;
    stk_dataset_keep_error(dataset, stk_fail(STK_INVALID, "'%s' comes after 'batch': batch last of all", what));
    return false;
}

void stk_dataset_shuffle(stk_dataset *dataset, uint64_t seed)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "shuffle"))
        stk_dataset_keep_error(dataset, stk_order_shuffle(&dataset->order, seed));
}

void stk_dataset_take(stk_dataset *dataset, int64_t n)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "take")) stk_dataset_keep_error(dataset, stk_order_take(&dataset->order, n));
}

void stk_dataset_skip(stk_dataset *dataset, int64_t n)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "skip")) stk_dataset_keep_error(dataset, stk_order_skip(&dataset->order, n));
}

void stk_dataset_repeat(stk_dataset *dataset, int64_t n)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "repeat")) stk_dataset_keep_error(dataset, stk_order_repeat(&dataset->order, n));
}

void stk_dataset_shard(stk_dataset *dataset, int64_t n_shards, int64_t i_shard)
{
    if (!dataset) return;
    if (stk_dataset_can_order(dataset, "shard"))
        stk_dataset_keep_error(dataset, stk_order_shard(&dataset->order, n_shards, i_shard));
}

void stk_dataset_split(stk_dataset *dataset, double share, bool keep_rest, uint64_t seed)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "split")) return;
    stk_status status = stk_order_split(&dataset->order, share, keep_rest, seed);
    if (status == STK_OK && dataset->source->varies)
        status = stk_fail(STK_INVALID,
                          "cannot split what is shuffled again for each epoch inside of '%s': split the data "
                          "sets first",
                          dataset->source->class->name);
    stk_dataset_keep_error(dataset, status);
}

void stk_dataset_batch(stk_dataset *dataset, int64_t n, bool drop_remainder)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "batch")) return;
    int64_t count = dataset->order.count;
    stk_status status = stk_dataset_check_hint(dataset);
    if (status == STK_OK && (n < 1 || n > INT32_MAX))
        status = stk_fail(STK_INVALID, "a batch cannot have %lld samples", (long long)n);
    else if (status == STK_OK && drop_remainder && n > count)
        status = stk_fail(STK_INVALID, "%lld samples do not fill one batch of %lld, and the remainder is to be dropped",
                          (long long)count, (long long)n);
    if (stk_dataset_keep_error(dataset, status) != STK_OK) return;
    dataset->n_rows = n;
    dataset->drop_remainder = drop_remainder;
}

/* --- stages --- */

int stk_dataset_find_field(const stk_dataset *dataset, const char *name)
{
    const stk_source *source = dataset->source;
    const char *names[STK_MAX_FIELDS + 1] = {NULL};
    char list[STK_MAX_FIELDS * 40] = "";
    size_t n = 0;
    for (int i = 0; i < source->n_fields; i++) {
        if (!strcmp(source->field[i].name, name)) return i;
        names[i] = source->field[i].name;
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s'%s'", i ? ", " : "", names[i]);
    }
    const char *nearest = stk_nearest_name(name, names);
    if (nearest)
        stk_fail(STK_NOT_FOUND, "source '%s' has no field '%s'; did you mean '%s'?", source->class->name, name,
                 nearest);
    else
        stk_fail(STK_NOT_FOUND, "source '%s' has no field '%s'; it has %s", source->class->name, name, list);
    return -1;
}

void stk_dataset_apply_to(stk_dataset *dataset, const char *field, stk_stage *stage)
{
    if (!dataset) {
        stk_stage_free(stage);
        return;
    }
    if (!stage) {
        if (dataset->status == STK_OK) stk_dataset_keep_error(dataset, stk_fail(STK_INVALID, "'stage' is NULL"));
        return;
    }
    (void)stk_dataset_can_change(dataset, stage->status == STK_OK ? stage->class->key.name : "apply");
    stk_status status = dataset->status;
    if (status != STK_OK) goto done;
    if (stage->status != STK_OK) {
        status = stk_dataset_keep_error(dataset, stk_fail(stage->status, "%s", stage->error));
        goto done;
    }
    if (!field) field = stage->class->field ? stage->class->field : "image";
    int i = stk_dataset_find_field(dataset, field);
    if (dataset->n_padded)
        STK_TRY(stk_dataset_keep_error(dataset, stk_fail(STK_INVALID,
                                                         "stage '%s' comes after 'padded_batch': batch "
                                                         "last of all",
                                                         stage->class->key.name)));
    if (i >= 0) stage = stk_stage_for(stage, stk_chain_type(&dataset->chain[i]));
    if (stage->status != STK_OK) stk_fail(stage->status, "%s", stage->error);
    status = stage->status != STK_OK ? stage->status : i < 0 ? STK_NOT_FOUND : stk_chain_add(&dataset->chain[i], stage);
    stk_dataset_keep_error(dataset, status);
done:
    if (status != STK_OK) stk_stage_free(stage);
}

void stk_dataset_apply(stk_dataset *dataset, ...)
{
    va_list stages;
    va_start(stages, dataset);
    for (stk_stage *stage; (stage = va_arg(stages, stk_stage *));)
        stk_dataset_apply_to(dataset, "image", stage);
    va_end(stages);
}

/* --- what was built --- */

void stk_dataset_on_error_with(stk_dataset *dataset, stk_error_policy policy)
{
    if (!dataset) return;
    stk_status status = STK_OK;
    if (!stk_dataset_can_change(dataset, "on_error") || dataset->status != STK_OK) return;
    if (policy.what == STK_ON_ERROR_REPLACE && !stk_dataset_has_numbers(dataset, "replace")) return;
    if ((unsigned)policy.what > STK_ON_ERROR_REPLACE)
        status = stk_fail(STK_INVALID, "'on_error' cannot be %d", (int)policy.what);
    else if (policy.most < -1)
        status = stk_fail(STK_INVALID, "'most' of 'on_error' is %lld", (long long)policy.most);
    if (stk_dataset_keep_error(dataset, status) != STK_OK) return;
    dataset->on_error = policy.what;
    dataset->most_errors = policy.most;
}

void stk_dataset_on_error(stk_dataset *dataset, stk_on_error what)
{
    if (!dataset) return;
    stk_dataset_on_error_with(dataset, (stk_error_policy){.what = what});
}

stk_status stk_dataset_status(const stk_dataset *dataset)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    return dataset->status == STK_OK ? STK_OK : stk_fail(dataset->status, "%s", dataset->error);
}

int64_t stk_dataset_count(const stk_dataset *dataset)
{
    if (!dataset) return 0;
    if (dataset->status != STK_OK) return 0;
    return dataset->source->is_open ? -1 : dataset->order.count;
}

int64_t stk_dataset_n_batches(const stk_dataset *dataset)
{
    if (!dataset) return 0;
    if (dataset->status != STK_OK || dataset->n_rows == 0) return 0;
    if (dataset->source->is_open) return -1;
    if (dataset->buckets.n) return dataset->buckets.n_batches;
    int64_t n_full = dataset->order.count / dataset->n_rows;
    return n_full + (!dataset->drop_remainder && dataset->order.count % dataset->n_rows != 0);
}

int64_t stk_dataset_batch_size(const stk_dataset *dataset)
{
    if (!dataset) return 0;
    return dataset->status == STK_OK ? dataset->n_rows : 0;
}

int64_t stk_dataset_classes(const stk_dataset *dataset, const char *const **names)
{
    if (!dataset) return 0;
    const stk_source *source = dataset->source;
    bool has_names = source && source->class_names;
    if (names) *names = has_names ? source->class_names : NULL;
    return has_names ? source->n_classes : 0;
}

int64_t stk_dataset_source_bytes(const stk_dataset *dataset)
{
    if (!dataset) return 0;
    return dataset->source ? dataset->source->n_bytes : 0;
}

stk_status stk_dataset_field(const stk_dataset *dataset, const char *field, bool probe, stk_dtype *dtype,
                             stk_shape *shape)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    if (!field) field = "image";
    int i = stk_dataset_find_field(dataset, field);
    if (i < 0) return STK_NOT_FOUND;
    stk_field_type type = *stk_chain_type(&dataset->chain[i]);
    STK_RETURN_IF_ERROR(stk_chain_check_end(&dataset->chain[i]));
    /* The length of padded rows is each batch's own, unless it was given. */
    if (dataset->pad[i].fixed) type.desc.shape.dim[0] = dataset->pad[i].fixed;
    if (probe && !dataset->pad[i].on && !stk_field_type_known(&type)) {
        stk_field_type types[STK_MAX_FIELDS];
        char name[STK_RECORD_NAME_BYTES];
        STK_RETURN_IF_ERROR(stk_dataset_probe(dataset, types, name));
        type = types[i];
    }
    if (dtype) *dtype = type.desc.dtype;
    if (shape) *shape = type.desc.shape;
    return STK_OK;
}
