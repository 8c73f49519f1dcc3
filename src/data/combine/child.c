/* See data/combine/child.h. */
#include "data/combine/child.h"

#include "base/error.h"
#include "base/rng.h"

/* Field f of a child's sample, after its stages. */
static stk_status run_chain(const stk_dataset *child, int f, const stk_stage_key *key, const stk_item *in,
                            stk_child_work *work, stk_item *out)
{
    const stk_chain *chain = &child->chain[f];
    bool wrong_size = false;
    if (chain->n_stages == 0) {
        *out = *in;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(stk_chain_measure(chain, key, in, &out->type));
    out->n_bytes = stk_desc_bytes(out->type.desc);
    out->data = stk_scratch_get(&work->out[f], out->n_bytes ? out->n_bytes : 1);
    if (!out->data) return STK_NO_MEMORY;
    work->chain[f].rows.hint = work->reader.scratch[f].jpeg;
    return stk_chain_run(chain, key, in, &out->type, out->data, &work->chain[f], &wrong_size);
}

stk_status stk_child_read(const stk_dataset *child, int64_t i, int64_t position, const stk_stage_key *outer,
                          stk_child_work *work, stk_item *item)
{
    stk_item raw[STK_MAX_FIELDS];
    stk_order_place place = stk_order_map(&child->order, &work->cursor, outer->epoch, position);
    /* Children may have the same records, and must not have the same random numbers. */
    stk_stage_key key = {.seed = stk_mix64(outer->seed + 0x9E3779B97F4A7C15u * ((uint64_t)i + 1)),
                         .epoch = place.epoch,
                         .i_sample = (uint64_t)place.i_record};
    stk_joint_sides joint = {0};
    if (child->n_joints) key.joint = &joint;
    stk_status status = stk_reader_read(&work->reader, child->source, place.i_record, &key, raw);
    for (int f = 0; f < child->source->n_fields && status == STK_OK; f++)
        status = run_chain(child, f, &key, &raw[f], work, &item[f]);
    return status == STK_OK ? STK_OK : stk_dataset_fail_record(child, status, place);
}

void stk_child_work_free(const stk_dataset *child, stk_child_work *work)
{
    stk_reader_free(&work->reader, child->source);
    stk_order_cursor_free(&work->cursor);
    for (int f = 0; f < STK_MAX_FIELDS; f++) {
        stk_chain_work_trim(&work->chain[f]);
        stk_scratch_free(&work->out[f]);
    }
}

void stk_child_name(const stk_dataset *child, int64_t position, uint64_t epoch, char *out, size_t out_bytes)
{
    stk_order_place place = stk_order_map(&child->order, NULL, epoch, position);
    stk_source_name(child->source, place.i_record, place.epoch, out, out_bytes);
}
