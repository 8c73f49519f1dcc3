/* The layer reshape of a recipe: a sample's sides, of which one may be -1. */
#include "nn/layer_list.h"
#include "tensor/shape.h"

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_shape shape = {.rank = 1, .dim = {STK_ANY}}, from = stk_value_shape(*x);
    int64_t count = from.rank > 0 ? stk_shape_product(from, 1, from.rank) : 0, known = 1;
    int open = -1;
    for (const stk_yaml_node *side = s->child; side; side = side->next) {
        if (shape.rank == STK_MAX_RANK) return stk_yaml_fail(s, "more than %d sides", STK_MAX_RANK - 1);
        if (side->integer == 0 || (side->integer < 0 && open >= 0))
            return stk_yaml_fail(side, "a side is 0, or the second that is -1");
        if (side->integer < 0)
            open = shape.rank;
        else
            known = stk_dim_times(known, side->integer);
        shape.dim[shape.rank++] = side->integer;
    }
    if (open >= 0) shape.dim[open] = count / known;
    if (count < 1 || (open < 0 ? known : stk_dim_times(known, shape.dim[open])) != count) {
        char a[STK_SHAPE_TEXT_BYTES];
        return stk_yaml_fail(s, "%s a sample has %lld numbers, which these sides do not hold", stk_shape_text(from, a),
                             (long long)count);
    }
    *x = stk_reshape(*x, shape);
    return STK_OK;
}

static const stk_key side_key = {.name = "side", .type = STK_KEY_INT, .least = -1, .most = 1e9};

const stk_layer_class stk_layer_class_reshape = {
    .key = {.name = "reshape",
            .type = STK_KEY_LIST,
            .element = &side_key,
            .doc = "Another shape of a sample: [7, 7, 32]; one side may be -1, what is left."},
    .build = build,
};
