/* The source of random samples from its keys. See recipe/build.h and stoker/data/random.h. */
#include "stoker/data/random.h"

#include "base/error.h"
#include "recipe/build.h"
#include "tensor/shape.h"

enum { MOST_FIELDS = 8 };

static stk_status read_field(const stk_yaml_node *node, stk_synthetic_field *out)
{
    const stk_yaml_node *dtype = stk_yaml_get(node, "dtype"), *below = stk_yaml_get(node, "below");
    const stk_yaml_node *shape = stk_yaml_get(node, "shape");
    *out = (stk_synthetic_field){
        .name = node->key, .dtype = below ? STK_I32 : STK_F32, .below = below ? below->integer : 0};
    if (dtype) stk_dtype_from_name(dtype->text, &out->dtype);
    if (shape->n_children > STK_MAX_RANK)
        return stk_yaml_fail(shape, "more than %d dimensions are not possible", STK_MAX_RANK);
    for (const stk_yaml_node *side = shape->child; side; side = side->next)
        out->sample.dim[out->sample.rank++] = side->integer;
    return STK_OK;
}

stk_status stk_build_synthetic(const stk_yaml_node *source, stk_dataset **out)
{
    const stk_yaml_node *fields = stk_yaml_get(source, "fields"), *classes = stk_yaml_get(source, "classes");
    stk_synthetic_field field[MOST_FIELDS + 1];
    int n = 0;
    if (fields->n_children > MOST_FIELDS) return stk_yaml_fail(fields, "more than %d fields", MOST_FIELDS);
    for (const stk_yaml_node *node = fields->child; node; node = node->next)
        STK_RETURN_IF_ERROR(read_field(node, &field[n++]));
    if (classes) field[n++] = (stk_synthetic_field){.name = "label", .dtype = STK_I32, .below = classes->integer};
    *out = stk_dataset_synthetic(stk_yaml_get(source, "samples")->integer, field, n,
                                 (uint64_t)stk_yaml_get(source, "seed")->integer);
    return STK_OK;
}
