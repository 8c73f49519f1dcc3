/* Losses of class numbers: [N,C,d1,...] and [N,d1,...]. */
#include "onnx/build_list.h"

/* logs holds log-probabilities; input 2 of the node may be the classes' weights. */
static stk_status build_loss(stk_build *b, stk_value logs)
{
    stk_shape shape = stk_value_shape(logs), classes = shape;
    stk_graph *graph = b->model->graph;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (shape.rank < 2) return stk_fail(STK_INVALID, "its input has no classes");
    stk_value target = stk_cast_to(stk_onnx_input(b, 1), STK_I32), zero = stk_onnx_like(logs, 0);
    classes.dim[1] = 1;
    target = stk_reshape(target, classes);
    stk_value is_target = stk_equal(stk_iota(graph, STK_I32, shape, 1), target);
    const Onnx__AttributeProto *ignored = stk_onnx_attribute(b, "ignore_index");
    if (ignored) {
        stk_value counts = stk_not_equal(target, stk_onnx_like(target, (double)(int32_t)ignored->i));
        is_target = stk_select(is_target, stk_broadcast(counts, shape), stk_onnx_like(counts, 0));
    }
    stk_value weight = stk_onnx_like(logs, 1);
    if (stk_onnx_has_input(b, 2)) {
        stk_shape row = {.rank = shape.rank};
        for (int i = 0; i < shape.rank; i++)
            row.dim[i] = i == 1 ? shape.dim[1] : 1;
        weight = stk_reshape(stk_onnx_input(b, 2), row);
    }
    stk_value share = stk_select(is_target, weight, zero);
    stk_value loss = stk_neg(stk_reduce_sum(stk_select(is_target, stk_mul(logs, weight), zero), 2));
    if (stk_onnx_attribute_is(b, "reduction", "none")) return stk_onnx_output(b, 0, loss);
    loss = stk_reduce_sum(loss, 0);
    if (stk_onnx_attribute_is(b, "reduction", "sum")) return stk_onnx_output(b, 0, loss);
    return stk_onnx_output(b, 0, stk_div(loss, stk_reduce_sum(share, 0)));
}

stk_status stk_onnx_build_NegativeLogLikelihoodLoss(stk_build *b)
{
    return build_loss(b, stk_onnx_input(b, 0));
}

stk_status stk_onnx_build_SoftmaxCrossEntropyLoss(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    if (stk_value_shape(x).rank < 2) return stk_fail(STK_INVALID, "its input has no classes");
    stk_value logs = stk_onnx_log_softmax_of(x, 1);
    STK_RETURN_IF_ERROR(build_loss(b, logs));
    return stk_onnx_has_output(b, 1) ? stk_onnx_output(b, 1, logs) : STK_OK;
}
