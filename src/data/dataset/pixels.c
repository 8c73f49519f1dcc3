/* See data/dataset/pixels.h. */
#include "data/dataset/pixels.h"

#include <stdlib.h>
#include <string.h>

bool stk_pixels_find(const stk_dataset *dataset, const char *field, stk_pixels *out)
{
    stk_dtype dtype;
    stk_shape shape;
    stk_view view;
    bool fits = false;
    int i_field = 0;
    *out = (stk_pixels){.i_field = -1};
    while (i_field < dataset->source->n_fields && strcmp(dataset->source->field[i_field].name, field))
        i_field++;
    if (i_field == dataset->source->n_fields) return false;
    const stk_chain *chain = &dataset->chain[i_field];
    const stk_field_type *before = &chain->type[chain->n_stages > 0 ? chain->n_stages - 1 : 0];
    if (chain->n_stages < 1 || before->kind != STK_FIELD_ARRAY || before->desc.dtype != STK_U8) return false;
    if (stk_dataset_field(dataset, field, true, &dtype, &shape) != STK_OK || shape.rank != 3) return false;
    if (shape.dim[2] < 1 || shape.dim[2] > STK_VIEW_CHANNELS) return false;
    const stk_stage *last = chain->stage[chain->n_stages - 1];
    stk_view_init(&view, shape.dim[0], shape.dim[1]);
    if (!last->class->view || last->class->view(last->params, NULL, &view, &fits) != STK_OK || !fits || !view.is_f32)
        return false;
    *out = (stk_pixels){.i_field = i_field, .n = (int)shape.dim[2]};
    memcpy(out->a, view.a, sizeof(out->a));
    memcpy(out->b, view.b, sizeof(out->b));
    return true;
}

stk_dataset *stk_pixels_cut(const stk_dataset *dataset, const stk_pixels *pixels)
{
    stk_chain rest;
    stk_dataset *cut = malloc(sizeof(*cut));
    if (!cut) return NULL;
    *cut = *dataset;
    atomic_store(&cut->n_users, 0);
    const stk_chain *chain = &dataset->chain[pixels->i_field];
    stk_chain_cut(chain, chain->n_stages - 1, &cut->chain[pixels->i_field], &rest);
    return cut;
}
