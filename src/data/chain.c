/* See data/chain.h. */
#include "data/chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void stk_chain_init(stk_chain *chain, const char *field, const char *source_name, const stk_field_type *type)
{
    *chain = (stk_chain){.field = field, .source_name = source_name};
    chain->type[0] = *type;
}

void stk_chain_free(stk_chain *chain)
{
    for (int i = 0; i < chain->n_stages; i++)
        stk_stage_free(chain->stage[i]);
    chain->n_stages = 0;
}

stk_status stk_chain_add(stk_chain *chain, stk_stage *stage)
{
    int n = chain->n_stages;
    const char *name = stage->class->name;
    if (n == STK_MAX_STAGES)
        return stk_fail(STK_INVALID, "stage '%s' is one too many: field '%s' has %d already", name, chain->field, n);
    stk_status status = stage->class->plan(stage->params, &chain->type[n], &chain->type[n + 1]);
    if (status == STK_OK && chain->type[n + 1].kind == STK_FIELD_ARRAY)
        status = stk_desc_check(chain->type[n + 1].desc);
    if (status != STK_OK)
        return stk_fail_prefix(status, "stage '%s' does not fit after %s'%s' on field '%s': ", name, n ? "" : "source ",
                               n ? chain->stage[n - 1]->class->name : chain->source_name, chain->field);
    chain->stage[chain->n_stages++] = stage;
    return STK_OK;
}

const stk_field_type *stk_chain_type(const stk_chain *chain)
{
    return &chain->type[chain->n_stages];
}

bool stk_field_type_known(const stk_field_type *type)
{
    return type->kind == STK_FIELD_ARRAY && stk_shape_known(type->desc.shape);
}

stk_status stk_chain_check_end(const stk_chain *chain)
{
    if (stk_chain_type(chain)->kind == STK_FIELD_ARRAY) return STK_OK;
    return stk_fail(STK_INVALID, "field '%s' of source '%s' is still encoded %s%s%s: apply the stage 'decode'",
                    chain->field, chain->source_name, chain->n_stages ? "after stage '" : "when it is batched",
                    chain->n_stages ? chain->stage[chain->n_stages - 1]->class->name : "", chain->n_stages ? "'" : "");
}

/* The type of what stage i makes of this item. */
static stk_status measure_stage(const stk_chain *chain, int i, const stk_stage_key *key, const stk_item *in,
                                stk_field_type *out)
{
    const stk_stage *stage = chain->stage[i];
    if (stk_field_type_known(&chain->type[i + 1])) {
        *out = chain->type[i + 1];
        return STK_OK;
    }
    if (!stage->class->measure) return stage->class->plan(stage->params, &in->type, out);
    stk_stage_key stage_key = *key;
    stage_key.i_stage = (uint64_t)i;
    return stage->class->measure(stage->params, &stage_key, in, out);
}

stk_status stk_chain_measure(const stk_chain *chain, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    stk_item item = *in;
    for (int i = 0; i < chain->n_stages; i++) {
        stk_field_type type;
        STK_RETURN_IF_ERROR(measure_stage(chain, i, key, &item, &type));
        /* Sizes of arrays follow from their types; there are no elements yet. */
        item = (stk_item){.type = type};
    }
    *out = item.type;
    return STK_OK;
}

static stk_status check_size(const stk_chain *chain, const stk_field_type *got, const stk_field_type *want,
                             bool *wrong_size)
{
    if (got->kind == want->kind && got->desc.dtype == want->desc.dtype &&
        stk_shape_equal(got->desc.shape, want->desc.shape))
        return STK_OK;
    *wrong_size = true;
    char got_text[STK_SHAPE_TEXT_BYTES], want_text[STK_SHAPE_TEXT_BYTES];
    bool read_only = chain->n_stages == 0;
    return stk_fail(STK_MISMATCH, "is %s %s '%s', the batch needs %s", stk_shape_text(got->desc.shape, got_text),
                    read_only ? "in source" : "after stage",
                    read_only ? chain->source_name : chain->stage[chain->n_stages - 1]->class->name,
                    stk_shape_text(want->desc.shape, want_text));
}

/* True when stage i may write to dst already, because the stages after it work in place on as many bytes. */
static bool can_write_dst(const stk_chain *chain, int i, size_t n_bytes, size_t dst_bytes)
{
    if (n_bytes != dst_bytes) return false;
    for (int k = i + 1; k < chain->n_stages; k++) {
        if (!chain->stage[k]->class->in_place || !stk_field_type_known(&chain->type[k + 1])) return false;
        if (stk_desc_bytes(chain->type[k + 1].desc) != n_bytes) return false;
    }
    return true;
}

stk_status stk_chain_run(const stk_chain *chain, const stk_stage_key *key, const stk_item *in,
                         const stk_field_type *want, void *dst, stk_chain_work *work, bool *wrong_size)
{
    int n = chain->n_stages;
    bool planned = stk_field_type_known(&chain->type[n]);
    size_t dst_bytes = stk_desc_bytes(want->desc);
    if (n == 0) {
        if (!planned) STK_RETURN_IF_ERROR(check_size(chain, &in->type, want, wrong_size));
        memcpy(dst, in->data, dst_bytes);
        return STK_OK;
    }
    stk_item item[2] = {*in};
    stk_stage_key stage_key = *key;
    for (int i = 0; i < n; i++) {
        const stk_stage *stage = chain->stage[i];
        stk_item *src = &item[i & 1], *out = &item[(i + 1) & 1];
        STK_RETURN_IF_ERROR(measure_stage(chain, i, key, src, &out->type));
        out->n_bytes = stk_desc_bytes(out->type.desc);
        if (i == n - 1 && !planned) STK_RETURN_IF_ERROR(check_size(chain, &out->type, want, wrong_size));
        if (i == n - 1 || can_write_dst(chain, i, out->n_bytes, dst_bytes)) {
            out->data = dst;
        } else if (i > 0 && stage->class->in_place && out->n_bytes == src->n_bytes) {
            out->data = src->data; /* the chain's own buffer, as it is not the first stage's input */
        } else {
            /* Not the buffer that the input lies in, which an in-place stage may have kept for several stages. */
            stk_scratch *place = &work->between[src->data == work->between[0].data];
            out->data = stk_scratch_get(place, out->n_bytes ? out->n_bytes : 1);
            if (!out->data) return stk_fail_memory(out->n_bytes);
        }
        stage_key.i_stage = (uint64_t)i;
        STK_RETURN_IF_ERROR(stage->class->run(stage->params, &stage_key, src, out, &work->stage[i]));
    }
    return STK_OK;
}

void stk_chain_work_free(stk_chain_work *work)
{
    for (int i = 0; i < STK_MAX_STAGES; i++)
        free(work->stage[i].data);
    for (int i = 0; i < 2; i++)
        free(work->between[i].data);
    *work = (stk_chain_work){0};
}
