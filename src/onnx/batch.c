/* The size of the batch in a part of a network, which is not known when the part is built. Shape gives a number that
 * stands for it, nodes that compute shapes carry it on, and in a shape it is an open side. Any other node is refused,
 * so that no result has it in it.
 */
#include <string.h>

#include "graph/query.h"
#include "onnx/model.h"

/* Masks of inputs: of those that may hold the batch's size and hand it on, and of those that are shapes or bounds. */
typedef struct batch_op {
    const char *op;
    uint32_t carries, is_shape;
} batch_op;

/* clang-format off */
static const batch_op batch_ops[] = {
    {"Add", 3, 0},
    {"Cast", 1, 0},
    {"CastLike", 1, 2},
    {"Concat", UINT32_MAX, 0},
    {"ConstantOfShape", 0, 1},
    {"Equal", 3, 0},
    {"Expand", 0, 2},
    {"Gather", 1, 0},
    {"Identity", 1, 0},
    {"Mul", 3, 0},
    {"Range", 0, 2},
    {"Reshape", 1, 2},
    {"Shape", 0, 1},
    {"Slice", 1, 6},
    {"Squeeze", 1, 0},
    {"Sub", 3, 0},
    {"Unsqueeze", 1, 0},
    {"Where", 7, 0},
};
/* clang-format on */

bool stk_onnx_is_batch(int64_t n)
{
    return n > 0 && n % STK_ONNX_BATCH == 0;
}

/* An open dimension may be a multiple of the batch's size, as of all rows [N*T,C] of [N,T,C]: it is what it is for one
 * sample. */
stk_status stk_onnx_size_by_batch(stk_value x, int axis, int64_t *out)
{
    stk_graph *one = stk_graph_clone(x.graph, 1);
    if (!one) return stk_fail_memory(sizeof(*x.graph));
    stk_status status = stk_graph_status(one);
    int64_t n = status == STK_OK ? stk_value_shape((stk_value){one, x.id}).dim[axis] : 0;
    stk_graph_free(one);
    *out = n * STK_ONNX_BATCH;
    if (status != STK_OK || (n > 0 && n < 1 << 20)) return status;
    return stk_fail(STK_UNSUPPORTED, "its axis %d is %lld times as long as the batch", axis, (long long)n);
}

/* A value that is made anew may have one open side, its first. */
stk_status stk_onnx_check_open(const int64_t *list, int n)
{
    for (int i = 1; i < n; i++)
        if (stk_onnx_is_batch(list[i]))
            return stk_fail(STK_UNSUPPORTED, "its shape has the size of the batch in axis %d, and may in the first", i);
    return STK_OK;
}

static const batch_op *find(const char *op)
{
    for (size_t i = 0; op && i < sizeof(batch_ops) / sizeof(batch_ops[0]); i++)
        if (!strcmp(batch_ops[i].op, op)) return &batch_ops[i];
    return NULL;
}

static bool holds_batch(stk_build *b, int i)
{
    const stk_onnx_value *v = stk_onnx_input_entry(b, i);
    return v && v->holds_batch;
}

/* Sizes are compared with none that the batch's might be: exporters ask for -1. */
static stk_status check_equal(stk_build *b)
{
    int n, other = holds_batch(b, 0);
    const int64_t *list;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, other, &list, &n));
    for (int i = 0; i < n; i++)
        if (list[i] > 0) return stk_fail(STK_UNSUPPORTED, "it compares the size of the batch, which is not known yet");
    return STK_OK;
}

/* Other types may not hold the number that stands for it. */
static stk_status check_cast(stk_build *b)
{
    if (!b->carries_batch) return STK_OK; /* It is cast like the batch's size, and is none. */
    bool like = !strcmp(b->node->op_type, "CastLike");
    stk_dtype to = like ? stk_value_dtype(stk_onnx_input(b, 1)) : STK_F32;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (!like) STK_RETURN_IF_ERROR(stk_onnx_dtype((int32_t)stk_onnx_attribute_int(b, "to", 0), &to));
    if (to == STK_I64) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "it makes %s of the size of the batch, which is not known yet",
                    stk_dtype_name(to));
}

stk_status stk_onnx_settle_batch(stk_build *b)
{
    const char *op = b->node->op_type;
    const batch_op *may = find(op);
    bool any = false;
    for (int i = 0; i < stk_onnx_n_inputs(b); i++) {
        if (!holds_batch(b, i)) continue;
        uint32_t bit = i < 32 ? 1u << i : 1u << 31;
        if (!may || !((may->carries | may->is_shape) & bit))
            return stk_fail(STK_UNSUPPORTED,
                            "it computes with the size of the batch, which a part of a network cannot");
        any = true;
        if (may->carries & bit) b->carries_batch = true;
    }
    if (any && !strcmp(op, "Equal")) return check_equal(b);
    return any && !strncmp(op, "Cast", 4) ? check_cast(b) : STK_OK;
}
