/* The few calls of a data set that read records outside a loader: probing sizes, and transforming one image. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/jpeg_crop.h"
#include "data/dataset/dataset.h"
#include "data/source/reader.h"

size_t stk_dataset_held_bytes(const stk_dataset *dataset)
{
    const stk_source *source = dataset->source;
    size_t n = stk_source_held_bytes(source);
    if (dataset->order.kept) n += (size_t)stk_order_n_met(&dataset->order) * sizeof(*dataset->order.kept);
    n += (size_t)dataset->buckets.n * sizeof(*dataset->buckets.bucket);
    for (int f = 0; f < source->n_fields; f++)
        if (dataset->pad[f].lengths) n += (size_t)source->n_records * sizeof(*dataset->pad[f].lengths);
    return n;
}

stk_status stk_dataset_enter_memory(const stk_dataset *dataset, stk_memory **own)
{
    return stk_memory_enter_own(dataset->memory_limit_bytes, own);
}

void stk_dataset_leave_memory(stk_memory *own)
{
    stk_jpeg_reader *reader = own ? stk_jpeg_reader_of_thread() : NULL;
    if (reader) stk_jpeg_reader_trim(reader);
    stk_memory_leave_own(own);
}

stk_status stk_dataset_fail_record(const stk_dataset *dataset, stk_status status, stk_order_place place)
{
    char name[STK_RECORD_NAME_BYTES];
    stk_source_name(dataset->source, place.i_record, place.epoch, name, sizeof(name));
    if (strstr(stk_error_text(), name)) return status;
    return stk_fail_prefix(status, "%s: ", name);
}

/* Reads record i_record and measures the fields whose sides are open. */
static stk_status measure_record(const stk_dataset *dataset, stk_order_place place, stk_reader *reader,
                                 stk_field_type *types)
{
    const stk_source *source = dataset->source;
    stk_item item[STK_MAX_FIELDS];
    stk_stage_key key = {.epoch = place.epoch, .i_sample = (uint64_t)place.i_record};
    STK_RETURN_IF_ERROR(stk_reader_read(reader, source, place.i_record, &key, item));
    for (int i = 0; i < source->n_fields; i++) {
        if (dataset->pad[i].on || stk_field_type_known(stk_chain_type(&dataset->chain[i]))) continue;
        STK_RETURN_IF_ERROR(stk_chain_measure(&dataset->chain[i], &key, &item[i], &types[i]));
        if (!stk_field_type_known(&types[i]))
            return stk_fail(STK_INTERNAL, "field '%s' has no definite size", source->field[i].name);
        STK_RETURN_IF_ERROR(stk_desc_check(types[i].desc));
    }
    return STK_OK;
}

/* The first n records were tried; fewer than all of them where another error or STK_MAX_TRIES ended that. */
static void fail_all(stk_status status, int64_t n, int64_t n_records)
{
    if (n == n_records)
        stk_fail_prefix(status, "none of the %lld record%s could be read, the last one ", (long long)n,
                        n == 1 ? "" : "s");
    else if (n == STK_MAX_TRIES)
        stk_fail_prefix(status, "none of %lld records that were tried, of %lld, could be read, the last one ",
                        (long long)n, (long long)n_records);
}

stk_status stk_dataset_probe(const stk_dataset *dataset, stk_field_type types[STK_MAX_FIELDS],
                             char name[STK_RECORD_NAME_BYTES])
{
    const stk_source *source = dataset->source;
    bool known = true;
    name[0] = 0;
    for (int i = 0; i < source->n_fields; i++) {
        STK_RETURN_IF_ERROR(stk_chain_check_end(&dataset->chain[i]));
        types[i] = *stk_chain_type(&dataset->chain[i]);
        if (dataset->pad[i].on) types[i].desc.shape.dim[0] = dataset->pad[i].longest;
        known = known && stk_field_type_known(&types[i]);
    }
    if (known) return STK_OK;
    stk_reader reader = {0};
    stk_status status = STK_OK;
    stk_memory *own;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &own));
    /* Where records may be skipped the first good one serves. */
    int64_t n_tries = dataset->on_error != STK_ON_ERROR_STOP ? STK_MAX_TRIES : 1;
    int64_t n = 0;
    for (; n < n_tries && n < dataset->order.count; n++) {
        stk_order_place place = stk_order_map(&dataset->order, NULL, 0, n);
        status = measure_record(dataset, place, &reader, types);
        if (status == STK_OK) stk_source_name(source, place.i_record, place.epoch, name, STK_RECORD_NAME_BYTES);
        if (status != STK_OK) stk_dataset_fail_record(dataset, status, place);
        if (status == STK_OK || !stk_record_can_skip(status)) break;
    }
    if (status != STK_OK && dataset->on_error != STK_ON_ERROR_STOP) fail_all(status, n, dataset->order.count);
    stk_reader_free(&reader, source);
    stk_dataset_leave_memory(own);
    return status;
}

stk_status stk_dataset_transform(const stk_dataset *dataset, const void *encoded, size_t n_bytes, void *dst)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    STK_NEED(encoded);
    STK_NEED(dst);
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    const stk_chain *chain = NULL;
    for (int i = 0; i < dataset->source->n_fields; i++)
        if (!strcmp(dataset->chain[i].field, "image")) chain = &dataset->chain[i];
    if (!chain || chain->type[0].kind != STK_FIELD_ENCODED)
        return stk_fail(STK_UNSUPPORTED, "source '%s' has no encoded field 'image'", dataset->source->class->name);
    stk_field_type want;
    want.kind = STK_FIELD_ARRAY;
    STK_RETURN_IF_ERROR(stk_dataset_field(dataset, "image", true, &want.desc.dtype, &want.desc.shape));
    stk_memory *own;
    stk_chain_work *work = calloc(1, sizeof(*work));
    if (!work) return stk_fail_memory(sizeof(*work));
    stk_status status = stk_dataset_enter_memory(dataset, &own);
    if (status != STK_OK) {
        free(work);
        return status;
    }
    /* Items have one type for input and output; stages do not write to their input. */
    stk_item item = {.type = chain->type[0], .data = (void *)(uintptr_t)encoded, .n_bytes = n_bytes};
    bool wrong_size = false;
    status = stk_chain_run(chain, &(stk_stage_key){0}, &item, &want, dst, work, &wrong_size);
    if (wrong_size) stk_fail_prefix(status, "the image ");
    stk_chain_work_trim(work);
    stk_dataset_leave_memory(own);
    free(work);
    return status;
}
