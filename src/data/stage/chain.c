/* See data/stage/chain.h. */
#include "data/stage/chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/source/mcu_index.h"
#include "data/stage/decode.h"
#include "data/stage/stage_list.h"
#include "trace/trace.h"

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
    const char *name = stage->class->key.name;
    if (n == STK_MAX_STAGES)
        return stk_fail(STK_INVALID, "stage '%s' is one too many: field '%s' has %d already", name, chain->field, n);
    stk_status status = stage->class->plan(stage->params, &chain->type[n], &chain->type[n + 1]);
    if (status == STK_OK && chain->type[n + 1].kind == STK_FIELD_ARRAY)
        status = stk_desc_check(chain->type[n + 1].desc);
    if (status != STK_OK)
        return stk_fail_prefix(status, "stage '%s' does not fit after %s'%s' on field '%s': ", name, n ? "" : "source ",
                               n ? chain->stage[n - 1]->class->key.name : chain->source_name, chain->field);
    chain->i_key[n] = (unsigned char)n;
    chain->i_joint[n] = 0;
    chain->stage[chain->n_stages++] = stage;
    return STK_OK;
}

stk_status stk_chain_add_joint(stk_chain *chain, stk_stage *stage, int i_key, int i_joint)
{
    STK_RETURN_IF_ERROR(stk_chain_add(chain, stage));
    chain->i_key[chain->n_stages - 1] = (unsigned char)i_key;
    chain->i_joint[chain->n_stages - 1] = (unsigned char)i_joint;
    return STK_OK;
}

void stk_chain_cut(const stk_chain *chain, int n, stk_chain *head, stk_chain *rest)
{
    *head = *rest = *chain;
    head->n_stages = n;
    rest->n_stages -= n;
    memmove(rest->stage, chain->stage + n, (size_t)rest->n_stages * sizeof(rest->stage[0]));
    memmove(rest->type, chain->type + n, ((size_t)rest->n_stages + 1) * sizeof(rest->type[0]));
    memmove(rest->i_key, chain->i_key + n, (size_t)rest->n_stages * sizeof(rest->i_key[0]));
    memmove(rest->i_joint, chain->i_joint + n, (size_t)rest->n_stages * sizeof(rest->i_joint[0]));
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
                    chain->n_stages ? chain->stage[chain->n_stages - 1]->class->key.name : "",
                    chain->n_stages ? "'" : "");
}

/* Later stages were planned for the type that this one stated: sides may have been open, nothing else. */
static stk_status check_measured(const stk_stage *stage, const stk_field_type *planned, const stk_field_type *got)
{
    const stk_shape *a = &planned->desc.shape, *b = &got->desc.shape;
    bool fits = planned->kind == got->kind && planned->desc.dtype == got->desc.dtype && a->rank == b->rank;
    for (int i = 0; fits && i < a->rank; i++)
        fits = b->dim[i] >= 0 && (a->dim[i] == STK_ANY || a->dim[i] == b->dim[i]);
    if (fits) return stk_desc_check(got->desc);
    char planned_text[STK_SHAPE_TEXT_BYTES], got_text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_MISMATCH, "stage '%s' was planned to give %s and gives %s", stage->class->key.name,
                    stk_desc_text(planned->desc, planned_text), stk_desc_text(got->desc, got_text));
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
    stk_stage_key stage_key = *key;
    stage_key.i_stage = chain->i_key[i];
    STK_RETURN_IF_ERROR(stage->class->measure ? stage->class->measure(stage->params, &stage_key, in, out)
                                              : stage->class->plan(stage->params, &in->type, out));
    return check_measured(stage, &chain->type[i + 1], out);
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

static stk_status check_size(const stk_chain *chain, const stk_field_type *is, const stk_field_type *want,
                             bool *wrong_size)
{
    stk_field_type same = *is;
    const stk_field_type *got = &same;
    /* An open first side takes any. */
    if (want->desc.shape.rank && want->desc.shape.dim[0] == STK_ANY && same.desc.shape.rank)
        same.desc.shape.dim[0] = STK_ANY;
    if (got->kind == want->kind && got->desc.dtype == want->desc.dtype &&
        stk_shape_equal(got->desc.shape, want->desc.shape))
        return STK_OK;
    *wrong_size = true;
    char got_text[STK_SHAPE_TEXT_BYTES], want_text[STK_SHAPE_TEXT_BYTES];
    bool read_only = chain->n_stages == 0;
    return stk_fail(STK_MISMATCH, "is %s %s '%s', the batch needs %s", stk_shape_text(got->desc.shape, got_text),
                    read_only ? "in source" : "after stage",
                    read_only ? chain->source_name : chain->stage[chain->n_stages - 1]->class->key.name,
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

/* One run of a chain. */
typedef struct chain_run {
    const stk_chain *chain;
    const stk_stage_key *key;
    const stk_field_type *want;
    void *dst;
    size_t dst_bytes;
    stk_chain_work *work;
    bool *wrong_size;
} chain_run;

/* Where stage i puts its output, whose type is set; in_place: where its input src lies will do. */
static stk_status place_output(const chain_run *run, int i, const stk_item *src, bool in_place, stk_item *out)
{
    const stk_chain *chain = run->chain;
    bool is_last = i == chain->n_stages - 1;
    out->n_bytes = stk_desc_bytes(out->type.desc);
    if (is_last && !stk_field_type_known(stk_chain_type(chain)))
        STK_RETURN_IF_ERROR(check_size(chain, &out->type, run->want, run->wrong_size));
    if ((is_last && out->n_bytes <= run->dst_bytes) || can_write_dst(chain, i, out->n_bytes, run->dst_bytes)) {
        out->data = run->dst;
    } else if (in_place && out->n_bytes == src->n_bytes) {
        out->data = src->data;
    } else {
        /* Not the buffer that the input lies in, which an in-place stage may have kept for several stages. */
        stk_scratch *place = &run->work->between[src->data == run->work->between[0].data];
        out->data = stk_scratch_get(place, out->n_bytes ? out->n_bytes : 1);
        if (!out->data) return STK_NO_MEMORY;
    }
    return STK_OK;
}

static void add_time(stk_chain_work *work, int i, int n_stages, int64_t since_ns)
{
    stk_stage_time *t = &work->time[i];
    stk_counter_set(&t->n_stages, n_stages);
    stk_counter_add(&t->ns, stk_clock_ns() - since_ns);
    stk_counter_add(&t->n_timed, 1);
}

/* Fields that are cropped alike must be equally large: the draws depend on the sides. */
static stk_status check_joint(const stk_chain *chain, int i, const stk_stage_key *key, int64_t height, int64_t width)
{
    if (!chain->i_joint[i] || !key->joint) return STK_OK;
    int64_t *side = key->joint->side[chain->i_joint[i] - 1];
    if (side[0] == 0) {
        side[0] = height;
        side[1] = width;
    }
    if (side[0] == height && side[1] == width) return STK_OK;
    return stk_fail(STK_CORRUPT,
                    "field '%s' is %lld x %lld before '%s', which the fields with it meet at %lld x %lld: they must be "
                    "equally large",
                    chain->field, (long long)height, (long long)width, chain->stage[i]->class->key.name,
                    (long long)side[0], (long long)side[1]);
}

/* What the stages from `decode` on make of an image together, as far as they can be one pass over rows; *n_done is how
 * many, 0 for none worth it. */
static stk_status plan_row_pass(const stk_chain *chain, const stk_stage_key *sample_key, const stk_item *in,
                                stk_view *view, int *n_done)
{
    stk_stage_key key = *sample_key;
    int64_t height, width;
    int n = 1;
    *n_done = 0;
    if (chain->n_stages < 2 || chain->stage[0]->class != &stk_stage_decode || !chain->stage[1]->class->view)
        return STK_OK;
    /* Rows of a turned image are not rows of the file. */
    if (stk_decode_turns(chain->stage[0]->params, (stk_span){in->data, in->n_bytes})) return STK_OK;
    STK_RETURN_IF_ERROR(stk_image_size((stk_span){in->data, in->n_bytes}, &height, &width));
    stk_view_init(view, height, width);
    for (; n < chain->n_stages && chain->stage[n]->class->view; n++) {
        bool fits = false;
        key.i_stage = chain->i_key[n];
        STK_RETURN_IF_ERROR(check_joint(chain, n, sample_key, view->height, view->width));
        STK_RETURN_IF_ERROR(chain->stage[n]->class->view(chain->stage[n]->params, &key, view, &fits));
        if (!fits) break;
    }
    if (n > 1) *n_done = n;
    return STK_OK;
}

int stk_chain_pass(const stk_chain *chain, const stk_stage_key *key, const stk_item *in)
{
    stk_view view;
    int n;
    return plan_row_pass(chain, key, in, &view, &n) == STK_OK ? n : 0;
}

static stk_status run_row_pass(const chain_run *run, const stk_item *in, stk_item *out, int *n_done)
{
    const stk_chain *chain = run->chain;
    stk_view view;
    int64_t start_ns = run->work->timed ? stk_clock_ns() : 0;
    int n;
    *n_done = 0;
    STK_RETURN_IF_ERROR(plan_row_pass(chain, run->key, in, &view, &n));
    if (n == 0) return STK_OK;
    int64_t channels = chain->type[1].desc.shape.dim[2];
    out->type = (stk_field_type){
        STK_FIELD_ARRAY, stk_desc_make(view.is_f32 ? STK_F32 : STK_U8, STK_SHAPE(view.height, view.width, channels))};
    STK_RETURN_IF_ERROR(place_output(run, n - 1, in, false, out));
    *n_done = n;
    STK_RETURN_IF_ERROR(
        stk_row_pass_run(&view, (stk_span){in->data, in->n_bytes}, (int)channels, out->data, &run->work->rows));
    if (run->work->timed) {
        add_time(run->work, 0, n, start_ns);
        stk_trace_end(stk_trace_on() ? start_ns : 0, STK_TRACE_DATA, chain->stage[0]->class->key.name, n);
    }
    return STK_OK;
}

/* Runs the stages, at least one. */
static stk_status run_stages(const chain_run *run, const stk_item *in, stk_item *got)
{
    const stk_chain *chain = run->chain;
    const stk_stage_key *key = run->key;
    stk_chain_work *work = run->work;
    int n = chain->n_stages, i = 0;
    stk_item item[2] = {*in};
    stk_stage_key stage_key = *key;
    work->rows.learned.n = 0;
    STK_RETURN_IF_ERROR(run_row_pass(run, in, &item[1], &i));
    if (i > 0 && !(i & 1)) item[0] = item[1];
    for (; i < n; i++) {
        const stk_stage *stage = chain->stage[i];
        stk_item *src = &item[i & 1], *out = &item[(i + 1) & 1];
        int64_t start_ns = work->timed ? stk_clock_ns() : 0;
        const int64_t *dim = src->type.desc.shape.dim + (src->type.desc.shape.rank == 4); /* of slices: H, W */
        STK_RETURN_IF_ERROR(check_joint(chain, i, key, dim[0], dim[1]));
        STK_RETURN_IF_ERROR(measure_stage(chain, i, key, src, &out->type));
        /* The first stage's input is not the chain's own. */
        STK_RETURN_IF_ERROR(place_output(run, i, src, i > 0 && stage->class->in_place, out));
        stage_key.i_stage = chain->i_key[i];
        STK_RETURN_IF_ERROR(stage->class->run(stage->params, &stage_key, src, out, &work->stage[i]));
        if (work->timed) {
            add_time(work, i, 1, start_ns);
            stk_trace_end(stk_trace_on() ? start_ns : 0, STK_TRACE_DATA, stage->class->key.name, 1);
        }
    }
    if (work->rows.hint.mcu_index)
        stk_mcu_index_take(&work->rows.hint, (stk_span){in->data, in->n_bytes}, &work->rows.learned);
    *got = item[n & 1];
    return STK_OK;
}

stk_status stk_chain_run_open(const stk_chain *chain, const stk_stage_key *key, const stk_item *in,
                              const stk_field_type *want, void *dst, size_t dst_bytes, stk_chain_work *work,
                              stk_item *got, bool *wrong_size)
{
    const chain_run run = {chain, key, want, dst, dst_bytes, work, wrong_size};
    if (chain->n_stages) return run_stages(&run, in, got);
    *got = *in;
    if (stk_field_type_known(stk_chain_type(chain))) return STK_OK;
    return check_size(chain, &in->type, want, wrong_size);
}

stk_status stk_chain_run(const stk_chain *chain, const stk_stage_key *key, const stk_item *in,
                         const stk_field_type *want, void *dst, stk_chain_work *work, bool *wrong_size)
{
    stk_item got;
    size_t n = stk_desc_bytes(want->desc);
    STK_RETURN_IF_ERROR(stk_chain_run_open(chain, key, in, want, dst, n, work, &got, wrong_size));
    if (chain->n_stages == 0) memcpy(dst, in->data, n);
    return STK_OK;
}

void stk_chain_work_trim(stk_chain_work *work)
{
    for (int i = 0; i < STK_MAX_STAGES; i++)
        stk_scratch_free(&work->stage[i]);
    for (int i = 0; i < 2; i++)
        stk_scratch_free(&work->between[i]);
    stk_row_pass_work_free(&work->rows);
}
