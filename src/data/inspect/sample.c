/* See data/inspect/sample.h. */
#include "data/inspect/sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/image.h"
#include "data/source/reader.h"

typedef struct sums {
    double bytes, height, width;
    int64_t n, n_images;
} sums;

static stk_status look_at_image(const stk_dataset *dataset, int f, const stk_stage_key *key, const stk_item *item,
                                stk_scratch *pixels, sums *s, stk_record_sample *out)
{
    stk_span encoded = {item->data, item->n_bytes};
    int64_t height, width;
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    if (pixels) {
        uint8_t *dst = stk_scratch_get(pixels, (size_t)(height * width * 3));
        if (!dst) return STK_NO_MEMORY;
        STK_RETURN_IF_ERROR(stk_image_decode(encoded, 3, dst));
    }
    if (s->n_images++ == 0) out->n_pass = stk_chain_pass(&dataset->chain[f], key, item);
    s->height += (double)height;
    s->width += (double)width;
    return STK_OK;
}

static stk_status look_at(const stk_dataset *dataset, int64_t i, stk_reader *reader, stk_scratch *pixels, sums *s,
                          stk_record_sample *out)
{
    const stk_source *source = dataset->source;
    stk_item item[STK_MAX_FIELDS];
    stk_stage_key key = {.i_sample = (uint64_t)i};
    STK_RETURN_IF_ERROR(stk_reader_read(reader, source, i, &key, item));
    for (int f = 0; f < source->n_fields; f++)
        if (item[f].type.kind == STK_FIELD_ENCODED && !strcmp(source->field[f].name, "image"))
            STK_RETURN_IF_ERROR(look_at_image(dataset, f, &key, &item[f], pixels, s, out));
    for (int f = 0; f < source->n_fields; f++)
        s->bytes += (double)item[f].n_bytes;
    s->n++;
    return STK_OK;
}

stk_status stk_sample_records(const stk_dataset *dataset, int64_t n_most, bool decodes, stk_record_sample *out)
{
    const stk_source *source = dataset->source;
    stk_reader reader = {0};
    stk_scratch pixels = {0};
    stk_status status = STK_OK;
    sums s = {0};
    stk_memory *own;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &own));
    *out = (stk_record_sample){.n = source->n_records < n_most ? source->n_records : n_most};
    if (source->in_order) out->n = 0; /* its samples are the loader's */
    for (int64_t i = 0; i < out->n; i++) {
        int64_t i_record = i * (source->n_records / out->n);
        status = look_at(dataset, i_record, &reader, decodes ? &pixels : NULL, &s, out);
        if (status == STK_OK) continue;
        if (!stk_record_can_skip(status)) {
            stk_dataset_fail_record(dataset, status, (stk_order_place){.i_record = i_record});
            break;
        }
        if (out->n_corrupt++ == 0) stk_source_name(source, i_record, 0, out->corrupt, sizeof(out->corrupt));
        status = STK_OK;
    }
    if (s.n) out->record_bytes = s.bytes / (double)s.n;
    if (s.n_images) out->height = (int64_t)(s.height / (double)s.n_images + 0.5);
    if (s.n_images) out->width = (int64_t)(s.width / (double)s.n_images + 0.5);
    stk_reader_free(&reader, source);
    stk_scratch_free(&pixels);
    stk_dataset_leave_memory(own);
    return status;
}
