/* Dropout, which drops where a part of a network trains: Srivastava et al. 2014. */
#include "graph/query.h"
#include "onnx/build_list.h"

/* A share of x at random in training; rows of x that are several of a sample are drawn together. */
static stk_status drop(stk_value x, double rate, stk_value *out)
{
    int64_t n = STK_ONNX_BATCH;
    stk_graph *graph = x.graph;
    stk_shape shape = stk_value_shape(x);
    stk_value seed = stk_graph_scalar_input(graph, "seed", STK_I64);
    stk_value sample = stk_graph_scalar_input(graph, "sample", STK_I64);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (shape.rank > 1 && shape.dim[0] == STK_ANY) STK_RETURN_IF_ERROR(stk_onnx_size_by_batch(x, 0, &n));
    int64_t n_row = n / STK_ONNX_BATCH * stk_shape_product(shape, 1, shape.rank);
    bool is_several = n != STK_ONNX_BATCH;
    stk_value rows = is_several ? stk_reshape(x, STK_SHAPE(STK_ANY, n_row)) : x;
    stk_value y = stk_dropout_raw(rows, seed, sample, rate, stk_graph_next_stream(graph));
    *out = is_several ? stk_reshape(y, shape) : y;
    return stk_graph_status(graph);
}

/* Outside of training nothing is dropped, and the mask is all true. A part of a network trains where the model says it.
 */
stk_status stk_onnx_build_Dropout(stk_build *b)
{
    const stk_onnx_tensor *t;
    stk_onnx_value *v = stk_onnx_input_entry(b, 0);
    bool trains = b->opset < 7 && !stk_onnx_attribute_int(b, "is_test", 0);
    bool has_mask = stk_onnx_has_output(b, 1), nhwc = v && v->nhwc && !has_mask;
    stk_value x = nhwc ? v->value : stk_onnx_input(b, 0);
    double ratio = stk_onnx_attribute_float(b, "ratio", 0.5);
    if (stk_onnx_has_input(b, 2)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 2, &t));
        trains = stk_shape_count(t->shape) == 1 && stk_onnx_number(t, 0) != 0;
    }
    if (trains && stk_onnx_has_input(b, 1)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 1, &t));
        ratio = stk_shape_count(t->shape) == 1 ? stk_onnx_number(t, 0) : 0.5;
    }
    if (trains && ratio != 0) {
        if (!b->model->borrows_graph || has_mask)
            return stk_fail(STK_UNSUPPORTED, "it draws random numbers; export the model for inference");
        STK_RETURN_IF_ERROR(drop(x, ratio, &x));
    }
    STK_RETURN_IF_ERROR(nhwc ? stk_onnx_output_nhwc(b, 0, x) : stk_onnx_output(b, 0, x));
    return has_mask ? stk_onnx_output(
                          b, 1, stk_equal(stk_broadcast(stk_onnx_like(x, 0), stk_value_shape(x)), stk_onnx_like(x, 0)))
                    : STK_OK;
}
