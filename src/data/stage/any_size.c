/* See data/stage/any_size.h. */
#include "data/stage/any_size.h"

#include <stdlib.h>

#include "base/error.h"

static bool is_image(const stk_field_type *type)
{
    return type->kind == STK_FIELD_ARRAY && type->desc.shape.rank == 3;
}

/* How many of the first stages make an image of bytes; 0: none do. */
static int count_decoding(const stk_chain *chain)
{
    for (int i = 1; i <= chain->n_stages; i++)
        if (is_image(&chain->type[i])) return i;
    return 0;
}

/* What the stages behind the decoding make of an image of these sides; an error where they refuse it. */
static stk_status plan_rest(const stk_chain *rest, int64_t height, int64_t width, stk_field_type *out)
{
    stk_chain planned;
    stk_field_type in = rest->type[0];
    in.desc.shape.dim[0] = height;
    in.desc.shape.dim[1] = width;
    stk_chain_init(&planned, rest->field, rest->source_name, &in);
    for (int i = 0; i < rest->n_stages; i++)
        STK_RETURN_IF_ERROR(stk_chain_add(&planned, rest->stage[i])); /* borrowed: it is not freed */
    *out = *stk_chain_type(&planned);
    return STK_OK;
}

/* Whether that is what is wanted; *off: how far the first two sides are from it. */
static bool gives(const stk_chain *rest, int64_t height, int64_t width, const stk_field_type *want, int64_t off[2])
{
    stk_field_type got;
    off[0] = off[1] = 0;
    if (height < 1 || width < 1 || plan_rest(rest, height, width, &got) != STK_OK) return false;
    if (got.desc.shape.rank != want->desc.shape.rank || got.desc.dtype != want->desc.dtype) return false;
    for (int i = 0; i < 2 && i < want->desc.shape.rank; i++)
        off[i] = want->desc.shape.dim[i] - got.desc.shape.dim[i];
    return stk_shape_equal(got.desc.shape, want->desc.shape);
}

/* The size behind the decoding that leads to what is wanted: that of the first stage which fixes one, that of the end,
 * rows first or behind the channels, or that of the end less what stages between add. */
static bool find_size(const stk_chain *rest, const stk_field_type *want, int64_t *height, int64_t *width)
{
    const int64_t *dim = want->desc.shape.dim;
    int64_t off[2], tried[3][2] = {{0}};
    for (int i = 1; i <= rest->n_stages && tried[0][0] == 0; i++)
        if (is_image(&rest->type[i]) && stk_field_type_known(&rest->type[i])) {
            tried[0][0] = rest->type[i].desc.shape.dim[0];
            tried[0][1] = rest->type[i].desc.shape.dim[1];
        }
    if (want->desc.shape.rank == 3) {
        tried[1][0] = dim[0], tried[1][1] = dim[1];
        tried[2][0] = dim[1], tried[2][1] = dim[2];
    }
    for (int i = 0; i < 3; i++) {
        *height = tried[i][0];
        *width = tried[i][1];
        if (gives(rest, *height, *width, want, off)) return true;
        *height += off[0];
        *width += off[1];
        if (gives(rest, *height, *width, want, off)) return true;
    }
    return false;
}

/* Sides that depend on more than the input's are the stages' own business. */
static bool fits(const stk_chain *rest, const stk_field_type *decoded, const stk_field_type *want)
{
    stk_field_type got;
    const int64_t *dim = decoded->desc.shape.dim;
    if (plan_rest(rest, dim[0], dim[1], &got) != STK_OK) return false;
    return !stk_field_type_known(&got) || stk_shape_equal(got.desc.shape, want->desc.shape);
}

static stk_status add_stage(stk_chain *chain, stk_stage *stage)
{
    if (stage->status != STK_OK) return stk_fail(stage->status, "%s", stage->error);
    return stk_chain_add(chain, stage);
}

/* The decoding, the two stages, and the rest. All are borrowed. */
static stk_status join(const stk_chain *head, stk_stage *resize, stk_stage *crop, const stk_chain *rest, stk_chain *out)
{
    *out = *head;
    STK_RETURN_IF_ERROR(add_stage(out, resize));
    STK_RETURN_IF_ERROR(add_stage(out, crop));
    for (int i = 0; i < rest->n_stages; i++)
        STK_RETURN_IF_ERROR(stk_chain_add(out, rest->stage[i]));
    return STK_OK;
}

static stk_status run_chain(const stk_chain *chain, const stk_item *item, const stk_field_type *want, void *dst)
{
    bool wrong_size = false;
    stk_chain_work *work = calloc(1, sizeof(*work));
    if (!work) return stk_fail_memory(sizeof(*work));
    stk_status status = stk_chain_run(chain, &(stk_stage_key){0}, item, want, dst, work, &wrong_size);
    if (wrong_size) stk_fail_prefix(status, "the image ");
    stk_chain_work_trim(work);
    free(work);
    return status;
}

/* From an image is[0] x is[1] to its middle of height x width. */
static stk_status run_fitted(const stk_chain *head, const stk_chain *rest, const int64_t *is, int64_t height,
                             int64_t width, const stk_item *item, const stk_field_type *want, void *dst)
{
    bool by_height = height * is[1] >= width * is[0];
    stk_chain joined;
    stk_status status;
    stk_stage *resize =
        by_height ? stk_resize(height, is[1] * height / is[0], true) : stk_resize(is[0] * width / is[1], width, true);
    stk_stage *crop = stk_center_crop(height, width);
    STK_TRY(join(head, resize, crop, rest, &joined));
    STK_TRY(run_chain(&joined, item, want, dst));
done:
    stk_stage_free(resize);
    stk_stage_free(crop);
    return status;
}

stk_status stk_chain_run_any_size(const stk_chain *chain, stk_span encoded, const stk_field_type *want, void *dst,
                                  bool *fitted)
{
    /* Items have one type for input and output; stages do not write to their input. */
    stk_item item = {.type = chain->type[0], .data = (void *)(uintptr_t)encoded.data, .n_bytes = encoded.n};
    stk_chain head, rest;
    stk_field_type decoded;
    stk_stage_key key = {0};
    int64_t height, width;
    int n_head = count_decoding(chain);
    *fitted = false;
    stk_chain_cut(chain, n_head, &head, &rest);
    STK_RETURN_IF_ERROR(stk_chain_measure(&head, &key, &item, &decoded));
    if (n_head == 0 || fits(&rest, &decoded, want) || !find_size(&rest, want, &height, &width)) {
        stk_error_clear();
        return run_chain(chain, &item, want, dst);
    }
    stk_error_clear(); /* What does not fit was only asked. */
    *fitted = true;
    return run_fitted(&head, &rest, decoded.desc.shape.dim, height, width, &item, want, dst);
}
