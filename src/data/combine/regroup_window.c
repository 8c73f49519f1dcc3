/* Windows over samples. See stoker/data/regroup.h. */
#include <string.h>

#include "base/error.h"
#include "data/combine/regroup.h"

/* Samples of a window. */
static int64_t count_of(const stk_regroup *s, int64_t i_record)
{
    int64_t left = s->n_samples - i_record * s->shift, n = (left - 1) / s->stride + 1;
    return n < s->size ? n : s->size;
}

/* Puts sample k of a window of n where it belongs; the first says what the others must be. */
static stk_status add_sample(const stk_regroup *s, stk_regroup_work *work, int64_t k, int64_t n, stk_item *item)
{
    char is[STK_SHAPE_TEXT_BYTES], first[STK_SHAPE_TEXT_BYTES];
    for (int f = 0; f < s->base.n_fields; f++) {
        const stk_item *sample = &work->item[f];
        stk_shape shape = {.rank = sample->type.desc.shape.rank + 1, .dim = {n}};
        memcpy(shape.dim + 1, sample->type.desc.shape.dim, (size_t)(shape.rank - 1) * sizeof(shape.dim[0]));
        if (k == 0) {
            item[f].type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(sample->type.desc.dtype, shape)};
            item[f].n_bytes = (size_t)n * sample->n_bytes;
            item[f].data = stk_scratch_get(&work->out[f], item[f].n_bytes ? item[f].n_bytes : 1);
            if (!item[f].data) return STK_NO_MEMORY;
        }
        if (!stk_shape_equal(shape, item[f].type.desc.shape))
            return stk_fail(STK_MISMATCH, "field '%s' is [n]%s in one window with [n]%s: make them agree, or pad them",
                            s->base.field[f].name, stk_shape_text(sample->type.desc.shape, is),
                            stk_shape_text(item[f].type.desc.shape, first));
        memcpy((char *)item[f].data + (size_t)k * sample->n_bytes, sample->data, sample->n_bytes);
    }
    return STK_OK;
}

static stk_status read_window(const stk_regroup *s, int64_t i_record, const stk_stage_key *key, stk_regroup_work *work,
                              stk_item *item)
{
    int64_t n = count_of(s, i_record);
    for (int64_t k = 0; k < n; k++) {
        STK_RETURN_IF_ERROR(stk_regroup_read_sample(s, i_record * s->shift + k * s->stride, key, work));
        STK_RETURN_IF_ERROR(add_sample(s, work, k, n, item));
    }
    return STK_OK;
}

static int64_t first_of(const stk_regroup *s, int64_t i_record)
{
    return i_record * s->shift;
}

static stk_status check_windows(const stk_windows *w)
{
    const int64_t most = INT64_C(1) << 31;
    if (w->size < 1 || w->size > most)
        return stk_fail(STK_INVALID, "a window cannot have %lld samples", (long long)w->size);
    if (w->shift < 0 || w->shift > most || w->stride < 0 || w->stride > most)
        return stk_fail(STK_INVALID, "a window cannot shift by %lld or stride by %lld", (long long)w->shift,
                        (long long)w->stride);
    return STK_OK;
}

stk_status stk_regroup_window(stk_regroup *s, stk_windows w)
{
    STK_RETURN_IF_ERROR(check_windows(&w));
    s->size = w.size;
    s->shift = w.shift ? w.shift : w.size;
    s->stride = w.stride ? w.stride : 1;
    /* Of those that begin, how many are full. */
    int64_t n = (s->n_samples - 1) / s->shift + 1, last = (s->size - 1) * s->stride;
    int64_t n_full = s->n_samples <= last ? 0 : (s->n_samples - last - 1) / s->shift + 1;
    s->base.n_records = w.drop_remainder ? n_full : n;
    if (s->base.n_records == 0)
        return stk_fail(STK_INVALID, "%lld samples do not fill one window of %lld, and the remainder is to be dropped",
                        (long long)s->n_samples, (long long)s->size);
    for (int f = 0; f < s->base.n_fields; f++) {
        const stk_tensor_desc *desc = &s->base.field[f].type.desc;
        stk_shape shape = {.rank = desc->shape.rank + 1, .dim = {s->base.n_records == n_full ? s->size : STK_ANY}};
        if (shape.rank > STK_MAX_RANK)
            return stk_fail(STK_INVALID, "field '%s' has too many sides for one more", s->base.field[f].name);
        memcpy(shape.dim + 1, desc->shape.dim, (size_t)desc->shape.rank * sizeof(shape.dim[0]));
        stk_regroup_set_field(s, f, s->base.field[f].name, desc->dtype, shape);
        STK_RETURN_IF_ERROR(stk_desc_check(s->base.field[f].type.desc));
    }
    s->read = read_window;
    s->first_of = first_of;
    return STK_OK;
}
