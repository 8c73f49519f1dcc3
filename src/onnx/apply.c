/* A model as a part of another network: see stk_onnx_apply in stoker/files/onnx.h. */
#include <stdlib.h>
#include <string.h>

#include "onnx/model.h"

/* --- the value that feeds it --- */

static bool is_integer(stk_dtype dtype)
{
    return dtype == STK_I32 || dtype == STK_I64;
}

/* Axis i of the model's input, of a value with images stored [N,H,W,C]. */
static int64_t side(stk_shape shape, int i)
{
    static const int nchw[] = {0, 3, 1, 2};
    return shape.dim[shape.rank == 4 ? nchw[i] : i];
}

static stk_status check_shape(const Onnx__TensorShapeProto *dims, stk_shape shape)
{
    char text[STK_SHAPE_TEXT_BYTES];
    bool fits = dims->n_dim == (size_t)shape.rank;
    /* The first is the batch's, whatever the model was exported with. */
    for (int i = 1; fits && i < shape.rank; i++)
        fits = dims->dim[i]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
               dims->dim[i]->dim_value == side(shape, i);
    if (fits) return STK_OK;
    stk_text wanted = {0};
    for (size_t i = 0; i < dims->n_dim; i++) {
        bool known = i && dims->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        stk_text_add(&wanted, known ? "%s%lld" : "%s?", i ? "," : "", known ? (long long)dims->dim[i]->dim_value : 0LL);
    }
    stk_status status =
        stk_fail(STK_MISMATCH, "the model reads [%s]%s, and what comes is %s", stk_text_get(&wanted),
                 dims->n_dim == 4 ? " (its axes 1 to 3: channels, height, width)" : "", stk_shape_text(shape, text));
    stk_text_free(&wanted);
    return status;
}

/* x as the model's only input that is no weight. */
static stk_status feed(stk_onnx *model, const Onnx__GraphProto *graph, stk_value x)
{
    const Onnx__ValueInfoProto *input = NULL;
    stk_dtype dtype;
    for (size_t i = 0; i < graph->n_input; i++) {
        if (!graph->input[i]->name) return stk_fail(STK_CORRUPT, "an input has no name");
        if (stk_onnx_find(model, graph->input[i]->name))
            continue; /* Older models name initialisers among the inputs. */
        if (input)
            return stk_fail(STK_UNSUPPORTED, "the model has several inputs ('%s', '%s'), and may have one", input->name,
                            graph->input[i]->name);
        input = graph->input[i];
    }
    if (!input) return stk_fail(STK_UNSUPPORTED, "the model has no input");
    const Onnx__TypeProto *type = input->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return stk_fail(STK_UNSUPPORTED, "input '%s' is no tensor", input->name);
    STK_RETURN_IF_ERROR(stk_onnx_dtype(type->tensor_type->elem_type, &dtype));
    if (type->tensor_type->shape) STK_RETURN_IF_ERROR(check_shape(type->tensor_type->shape, stk_value_shape(x)));
    if (is_integer(dtype) && is_integer(stk_value_dtype(x)) && dtype != stk_value_dtype(x)) x = stk_cast_to(x, dtype);
    if (dtype != stk_value_dtype(x))
        return stk_fail(STK_MISMATCH, "the model reads %s, and what comes is %s", stk_dtype_name(dtype),
                        stk_dtype_name(stk_value_dtype(x)));
    return stk_onnx_put(model, input->name,
                        (stk_onnx_value){.value = x, .is_input = true, .nhwc = stk_value_shape(x).rank == 4});
}

/* --- the nodes --- */

/* Those that the value depends on. Nodes stand in order, so each is reached after all that read it. */
static stk_status mark_needed(const Onnx__GraphProto *graph, const char *output, bool *needed)
{
    stk_name_table maker = {0};
    stk_status status = STK_OK;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++) {
            const char *name = graph->node[i]->output[k];
            if (name && name[0] && stk_name_table_find(&maker, name) < 0)
                STK_TRY(stk_name_table_add(&maker, name, (int32_t)i));
        }
    int32_t made_by = stk_name_table_find(&maker, output);
    if (made_by >= 0) needed[made_by] = true;
    for (int32_t i = (int32_t)graph->n_node - 1; i >= 0; i--) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input && needed[i]; k++) {
            made_by = node->input[k] ? stk_name_table_find(&maker, node->input[k]) : -1;
            if (made_by >= 0 && made_by < i) needed[made_by] = true;
        }
    }
done:
    stk_name_table_free(&maker);
    return status;
}

static stk_status add_nodes(stk_onnx *model, const Onnx__ModelProto *proto, const char *output)
{
    const Onnx__GraphProto *graph = proto->graph;
    int64_t opset;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_onnx_opset(proto, &opset));
    bool *needed = calloc(graph->n_node + 1, sizeof(*needed));
    if (!needed) return stk_fail_memory(graph->n_node);
    STK_TRY(mark_needed(graph, output, needed));
    for (size_t i = 0; i < graph->n_node; i++)
        if (needed[i]) STK_TRY(stk_onnx_add_node(model, graph->node[i], opset));
done:
    free(needed);
    return status;
}

static stk_status import_part(stk_onnx *model, const Onnx__ModelProto *proto, stk_value x, const char *output,
                              stk_value *out)
{
    const Onnx__GraphProto *graph = proto->graph;
    STK_RETURN_IF_ERROR(stk_onnx_add_initializers(model, graph));
    STK_RETURN_IF_ERROR(feed(model, graph, x));
    if (!output && (graph->n_output < 1 || !graph->output[0]->name))
        return stk_fail(STK_CORRUPT, "the model has no output");
    if (!output) output = graph->output[0]->name;
    STK_RETURN_IF_ERROR(add_nodes(model, proto, output));
    stk_onnx_value *made = stk_onnx_find(model, output);
    if (!made || (made->value.id < 0 && made->tensor))
        return stk_fail(STK_NOT_FOUND, "no node makes a value '%s'", output);
    bool is_image = stk_value_shape(made->value).rank == 4;
    *out = is_image && made->nhwc ? made->value : stk_onnx_plain(model, made);
    if (is_image && !made->nhwc) *out = stk_onnx_to_nhwc(*out);
    return stk_graph_status(model->graph);
}

/* --- from a file --- */

typedef struct application {
    stk_value x, *out;
    const char *output;
} application;

static void free_model(void *model)
{
    stk_onnx_free(model);
}

static stk_status apply(const Onnx__ModelProto *proto, const char *folder, void *context)
{
    const application *a = context;
    stk_status status;
    stk_onnx *model = stk_onnx_new(a->x.graph);
    if (!model) return stk_fail_memory(sizeof(*model));
    model->folder = folder;
    STK_TRY(import_part(model, proto, a->x, a->output, a->out));
    STK_TRY(stk_graph_hold(a->x.graph, model, free_model));
    model->options = NULL;
    model->folder = NULL;
    model = NULL;
done:
    stk_onnx_free(model);
    return status;
}

/* y, or no value and the error in the graph, with the file and the node. */
static stk_value settle(stk_status status, stk_value y)
{
    if (status == STK_OK) return y;
    y.graph->status = STK_OK; /* It was before; an error since then has no place in its text. */
    stk_graph_keep_error(y.graph, status);
    return stk_value_none(y.graph);
}

stk_value stk_onnx_apply(stk_value x, const char *path, const char *output)
{
    stk_value y = stk_value_none(x.graph);
    application a = {x, &y, output};
    if (!x.graph || stk_graph_status(x.graph) != STK_OK || x.id < 0) return y;
    return settle(stk_onnx_read_file(path, apply, &a), y);
}

stk_value stk_onnx_apply_bytes(stk_value x, stk_span bytes, const char *output)
{
    stk_value y = stk_value_none(x.graph);
    application a = {x, &y, output};
    if (!x.graph || stk_graph_status(x.graph) != STK_OK || x.id < 0) return y;
    return settle(stk_onnx_read_bytes(bytes, apply, &a), y);
}
