/* A stage for images, run on each slice of [T,H,W,C] with the same draws: frames of a clip, planes of a volume. */
#include "data/stage/each.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct each_params {
    const struct each_stage *stage;
} each_params;

typedef struct each_stage {
    stk_stage base;        /* first, so that freeing it frees all */
    stk_stage_class class; /* with the inner stage's name */
    stk_stage inner;
} each_stage;

static stk_field_type slice_of(const stk_field_type *type)
{
    const int64_t *dim = type->desc.shape.dim;
    return (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(type->desc.dtype, STK_SHAPE(dim[1], dim[2], dim[3]))};
}

static void stack(stk_field_type *type, int64_t n)
{
    const int64_t *dim = type->desc.shape.dim;
    type->desc.shape = STK_SHAPE(n, dim[0], dim[1], dim[2]);
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const each_stage *s = ((const each_params *)params)->stage;
    stk_field_type slice = slice_of(in);
    STK_RETURN_IF_ERROR(s->inner.class->plan(s->inner.params, &slice, out));
    stack(out, in->desc.shape.dim[0]);
    return STK_OK;
}

static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    const each_stage *s = ((const each_params *)params)->stage;
    stk_item slice = {.type = slice_of(&in->type), .data = in->data};
    if (!s->inner.class->measure) return plan(params, &in->type, out);
    STK_RETURN_IF_ERROR(s->inner.class->measure(s->inner.params, key, &slice, out));
    stack(out, in->type.desc.shape.dim[0]);
    return STK_OK;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const each_stage *s = ((const each_params *)params)->stage;
    stk_item src = {.type = slice_of(&in->type)}, dst = {.type = slice_of(&out->type)};
    src.n_bytes = stk_desc_bytes(src.type.desc);
    dst.n_bytes = stk_desc_bytes(dst.type.desc);
    for (int64_t i = 0; i < in->type.desc.shape.dim[0]; i++) {
        src.data = (char *)in->data + (size_t)i * src.n_bytes;
        dst.data = (char *)out->data + (size_t)i * dst.n_bytes;
        STK_RETURN_IF_ERROR(s->inner.class->run(s->inner.params, key, &src, &dst, scratch));
    }
    return STK_OK;
}

/* Whether stage takes slices of this type and not the whole. */
static bool needs_each(const stk_stage *stage, const stk_field_type *in)
{
    stk_field_type slice, out;
    if (stage->status != STK_OK || stage->class->unique) return false;
    if (in->kind != STK_FIELD_ARRAY || in->desc.shape.rank != 4) return false;
    slice = slice_of(in);
    return stage->class->plan(stage->params, in, &out) != STK_OK &&
           stage->class->plan(stage->params, &slice, &out) == STK_OK && out.kind == STK_FIELD_ARRAY &&
           out.desc.shape.rank == 3;
}

stk_stage *stk_stage_for(stk_stage *stage, const stk_field_type *in)
{
    if (!needs_each(stage, in)) return stage;
    each_stage *s = calloc(1, sizeof(*s));
    if (!s) {
        stk_stage_free(stage);
        return stk_stage_new_failed(STK_NO_MEMORY, "cannot allocate memory for a stage");
    }
    s->inner = *stage;
    s->class = *stage->class;
    s->class.params_bytes = sizeof(each_params);
    s->class.plan = plan;
    s->class.measure = measure;
    s->class.run = run;
    s->class.view = NULL;
    s->class.unique = true;
    s->class.rescales = false;  /* its values come slice by slice */
    s->class.geometric = false; /* of several fields each has one of its own */
    s->base.class = &s->class;
    *(each_params *)(void *)s->base.params = (each_params){s};
    stk_stage_free(stage);
    return &s->base;
}
