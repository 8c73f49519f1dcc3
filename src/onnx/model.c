/* From messages to a graph: weights, inputs, nodes in their order, outputs. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/query.h"
#include "onnx/export.h"
#include "onnx/model.h"

enum { MOST_NODES = 200000 };

stk_onnx_value *stk_onnx_find(stk_onnx *model, const char *name)
{
    int32_t i = stk_name_table_find(&model->by_name, name);
    return i < 0 ? NULL : &model->value[i];
}

static stk_status grow(void **array, int n, int *capacity, size_t bytes)
{
    if (n < *capacity) return STK_OK;
    int wanted = *capacity ? 2 * *capacity : 64;
    void *larger = realloc(*array, (size_t)wanted * bytes);
    if (!larger) return stk_fail_memory((size_t)wanted * bytes);
    *array = larger;
    *capacity = wanted;
    return STK_OK;
}

stk_status stk_onnx_put(stk_onnx *model, const char *name, stk_onnx_value value)
{
    void *array = model->value;
    if (stk_onnx_find(model, name)) return stk_fail(STK_CORRUPT, "the name '%s' stands for two values", name);
    STK_RETURN_IF_ERROR(grow(&array, model->n_values, &model->capacity, sizeof(value)));
    model->value = array;
    value.name = stk_arena_text(model->arena, name);
    if (!value.name) return stk_fail_memory(strlen(name));
    STK_RETURN_IF_ERROR(stk_name_table_add(&model->by_name, value.name, model->n_values));
    model->value[model->n_values++] = value;
    return STK_OK;
}

/* The tensor with its channels last. NULL: no memory. */
static const stk_onnx_tensor *turn(stk_onnx *model, const stk_onnx_tensor *t)
{
    stk_shape shape = t->shape;
    size_t bytes = stk_dtype_bytes(t->dtype);
    int64_t n_channels = shape.dim[1], n_inner = stk_shape_product(shape, 2, shape.rank);
    for (int i = 1; i < shape.rank - 1; i++)
        shape.dim[i] = shape.dim[i + 1];
    shape.dim[shape.rank - 1] = n_channels;
    stk_onnx_tensor *turned = stk_arena_alloc(model->arena, sizeof(*turned));
    char *to = stk_arena_alloc(model->arena, stk_desc_bytes((stk_tensor_desc){t->dtype, shape}) + 1);
    if (!turned || !to) return NULL;
    *turned = (stk_onnx_tensor){t->name, t->dtype, shape, to};
    for (int64_t n = 0; n < shape.dim[0]; n++)
        for (int64_t i = 0; i < n_inner; i++)
            for (int64_t c = 0; c < n_channels; c++, to += bytes)
                memcpy(to, (const char *)t->data + (size_t)((n * n_channels + c) * n_inner + i) * bytes, bytes);
    return turned;
}

/* A variable whose content is the tensor's. Of a network weights are as its own: with channels last. */
static stk_value make_weight(stk_onnx *model, stk_onnx_value *v)
{
    void *array = model->weight;
    const stk_onnx_tensor *t = v->tensor;
    bool trains = stk_dtype_is_float(t->dtype) && !v->is_fixed;
    v->nhwc = model->borrows_graph && trains && (t->shape.rank == 4 || t->shape.rank == 5);
    if (v->nhwc) t = turn(model, t);
    stk_status status = t ? grow(&array, model->n_weights, &model->weight_capacity, sizeof(*t)) : stk_fail_memory(64);
    if (stk_graph_keep_error(model->graph, status) != STK_OK) return stk_value_none(model->graph);
    model->weight = array;
    const char *scope = model->graph->scope ? model->graph->scope->prefix : "";
    stk_text full = {0};
    stk_text_add(&full, "%s%s", scope, v->name);
    stk_graph_keep_error(model->graph, stk_text_status(&full));
    stk_value value = stk_graph_variable(model->graph, stk_text_get(&full), t->dtype, t->shape,
                                         (stk_init){STK_INIT_CONSTANT, 0}, trains);
    stk_text_free(&full);
    const stk_node *node = stk_value_node(value);
    if (!node) return value;
    if (model->borrows_graph) stk_graph_set_content(value, t->data);
    status = stk_name_table_add(&model->weight_by_name, node->name, model->n_weights);
    if (stk_graph_keep_error(model->graph, status) != STK_OK) return stk_value_none(model->graph);
    model->weight[model->n_weights] = *t;
    model->weight[model->n_weights++].name = node->name;
    return value;
}

static bool all_alike(const stk_onnx_tensor *t)
{
    int64_t n = stk_shape_count(t->shape);
    size_t bytes = stk_dtype_bytes(t->dtype);
    for (int64_t i = 1; i < n; i++)
        if (memcmp(t->data, (const char *)t->data + (size_t)i * bytes, bytes)) return false;
    /* A constant is a double, which does not hold every i64. */
    return n > 0 && stk_onnx_number(t, 0) < 9e15 && stk_onnx_number(t, 0) > -9e15;
}

void stk_onnx_make(stk_onnx *model, stk_onnx_value *v)
{
    const stk_onnx_tensor *t = v->tensor;
    if (v->value.id >= 0 || !t) return;
    /* Of a network a bias of one output is trained like any other; scalars are what exporters compute with. */
    bool trains = model->borrows_graph && !v->is_fixed && stk_dtype_is_float(t->dtype) && t->shape.rank > 0;
    if (all_alike(t) && ((stk_shape_count(t->shape) == 1 && !trains) || t->dtype == STK_BOOL))
        v->value = stk_graph_constant(model->graph, t->dtype, t->shape, stk_onnx_number(t, 0));
    else
        v->value = make_weight(model, v);
}

stk_value stk_onnx_plain(stk_onnx *model, stk_onnx_value *v)
{
    stk_onnx_make(model, v);
    if (!v->nhwc) return v->value;
    bool is_volume = v->value.id >= 0 && stk_value_shape(v->value).rank == 5;
    return is_volume ? stk_transpose(v->value, (int32_t[]){0, 4, 1, 2, 3}) : stk_onnx_to_nchw(v->value);
}

/* What has been copied is given back at once, so that large models are in memory once and not twice. */
static void drop_numbers(Onnx__TensorProto *proto)
{
    free(proto->raw_data.data);
    proto->raw_data = (ProtobufCBinaryData){0};
    proto->has_raw_data = 0;
}

static stk_status add_initializer(stk_onnx *model, Onnx__TensorProto *proto)
{
    stk_onnx_tensor *tensor = stk_arena_alloc(model->arena, sizeof(*tensor));
    if (!tensor) return stk_fail_memory(sizeof(*tensor));
    if (!proto->name) return stk_fail(STK_CORRUPT, "an initialiser has no name");
    stk_status status = stk_onnx_read_tensor(model->arena, model->folder, proto, NULL, tensor);
    if (status != STK_OK) return stk_fail_prefix(status, "initialiser '%s': ", proto->name);
    drop_numbers(proto);
    return stk_onnx_put(model, proto->name, (stk_onnx_value){.tensor = tensor, .value = stk_value_none(model->graph)});
}

/* What the options say of a dimension with a name. */
static int64_t size_of(const stk_onnx_options *options, const char *name)
{
    for (int i = 0; i < options->n_sizes; i++)
        if (!strcmp(options->size[i].name, name)) return options->size[i].n;
    return STK_ANY;
}

static stk_status read_dimension(stk_onnx *model, const Onnx__TensorShapeProto__Dimension *dim, int i, int64_t *out)
{
    bool known = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param;
    *out = known ? dim->dim_value : named ? size_of(model->options, dim->dim_param) : STK_ANY;
    if ((known || *out != STK_ANY) && (*out < 0 || *out > INT32_MAX))
        return stk_fail(STK_CORRUPT, "its dimension %d is %lld", i, (long long)*out);
    if (*out == STK_ANY && named) model->open_name = stk_arena_text(model->arena, dim->dim_param);
    if (*out != STK_ANY || i == 0) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "its dimension %d%s%s%s is open, and only the first may be; give it a size", i,
                    named ? ", '" : "", named ? dim->dim_param : "", named ? "'," : "");
}

static stk_status read_input_type(stk_onnx *model, const Onnx__ValueInfoProto *info, stk_dtype *dtype, stk_shape *shape)
{
    const Onnx__TypeProto *type = info->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape)
        return stk_fail(STK_UNSUPPORTED, "it is no tensor of known rank");
    const Onnx__TensorShapeProto *dims = type->tensor_type->shape;
    STK_RETURN_IF_ERROR(stk_onnx_dtype(type->tensor_type->elem_type, dtype));
    if (dims->n_dim > STK_MAX_RANK) return stk_fail(STK_UNSUPPORTED, "it has %zu dimensions", dims->n_dim);
    *shape = (stk_shape){.rank = (int32_t)dims->n_dim};
    for (int i = 0; i < shape->rank; i++)
        STK_RETURN_IF_ERROR(read_dimension(model, dims->dim[i], i, &shape->dim[i]));
    return STK_OK;
}

static stk_status add_input(stk_onnx *model, const Onnx__ValueInfoProto *info)
{
    stk_dtype dtype;
    stk_shape shape;
    if (!info->name) return stk_fail(STK_CORRUPT, "an input has no name");
    if (stk_onnx_find(model, info->name)) return STK_OK; /* Older models name initialisers among the inputs. */
    stk_status status = read_input_type(model, info, &dtype, &shape);
    if (status != STK_OK) return stk_fail_prefix(status, "input '%s': ", info->name);
    stk_onnx_value value = {.value = stk_graph_input(model->graph, info->name, dtype, shape), .is_input = true};
    for (int i = 0; i < model->options->n_known; i++) {
        const stk_onnx_tensor *t = &model->options->known[i];
        if (t->dtype == dtype && stk_shape_equal(t->shape, shape) && !strcmp(t->name, info->name))
            value.tensor = stk_onnx_new_tensor(model->arena, dtype, shape, t->data);
    }
    return stk_onnx_put(model, info->name, value);
}

/* What no model needs, and what would be slow or large. */
static stk_status check_node(const Onnx__NodeProto *node)
{
    enum { MOST_ENDS = 65536, MOST_LIST = 1 << 24 };
    if (node->n_input > MOST_ENDS || node->n_output > MOST_ENDS)
        return stk_fail(STK_UNSUPPORTED, "it has %zu inputs and %zu outputs, and may have %d", node->n_input,
                        node->n_output, MOST_ENDS);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        size_t n = a->n_ints > a->n_floats ? a->n_ints : a->n_floats;
        if (n > MOST_LIST)
            return stk_fail(STK_UNSUPPORTED, "its attribute '%.80s' has %zu numbers, and may have %d",
                            a->name ? a->name : "", n, MOST_LIST);
    }
    return STK_OK;
}

stk_status stk_onnx_add_node(stk_onnx *model, const Onnx__NodeProto *node, int64_t opset)
{
    stk_build b = {.model = model, .node = node, .opset = opset};
    stk_status status = check_node(node);
    if (status == STK_OK) status = stk_onnx_settle_batch(&b);
    if (status == STK_OK) status = stk_onnx_build_node(&b);
    if (status == STK_OK) status = stk_graph_status(model->graph);
    if (status == STK_OK) return STK_OK;
    const char *name = node->name && node->name[0]         ? node->name
                       : node->n_output && node->output[0] ? node->output[0]
                                                           : "?";
    if (stk_graph_status(model->graph) != STK_OK) stk_graph_keep_error(model->graph, status);
    return stk_fail_prefix(status, "node '%s' (%s): ", name, node->op_type ? node->op_type : "?");
}

static stk_status add_output(stk_onnx *model, const Onnx__ValueInfoProto *info)
{
    stk_onnx_value *value = info->name ? stk_onnx_find(model, info->name) : NULL;
    if (!value) return stk_fail(STK_CORRUPT, "the output '%s' is made by no node", info->name ? info->name : "");
    stk_graph_output(model->graph, info->name, stk_onnx_plain(model, value));
    return stk_graph_status(model->graph);
}

stk_status stk_onnx_opset(const Onnx__ModelProto *proto, int64_t *out)
{
    enum { NEWEST = 28 };
    int64_t opset = 1;
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        const char *domain = proto->opset_import[i]->domain;
        if (!domain || !domain[0] || !strcmp(domain, "ai.onnx")) opset = proto->opset_import[i]->version;
    }
    *out = opset;
    if (opset <= NEWEST) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "its opset is %lld, and the newest that is known here is %d: export it with that",
                    (long long)opset, NEWEST);
}

bool stk_onnx_is_ours(const Onnx__ModelProto *proto)
{
    return proto->producer_name && !strcmp(proto->producer_name, STK_ONNX_PRODUCER);
}

stk_status stk_onnx_add_initializers(stk_onnx *model, const Onnx__ModelProto *proto)
{
    const Onnx__GraphProto *graph = proto->graph;
    model->is_pytorchs = proto->producer_name && !strcmp(proto->producer_name, "pytorch");
    if (graph->n_node > MOST_NODES || graph->n_initializer > MOST_NODES || graph->n_input > MOST_NODES)
        return stk_fail(STK_UNSUPPORTED,
                        "the model has %zu nodes, %zu initialisers and %zu inputs; %d of each are the most",
                        graph->n_node, graph->n_initializer, graph->n_input, MOST_NODES);
    for (size_t i = 0; i < graph->n_initializer; i++)
        STK_RETURN_IF_ERROR(add_initializer(model, graph->initializer[i]));
    /* A recipe's stages are no parameters of its network. */
    for (size_t i = 0; i < graph->n_initializer && stk_onnx_is_ours(proto); i++)
        if (!strncmp(graph->initializer[i]->name, STK_ONNX_PIXELS, sizeof(STK_ONNX_PIXELS) - 1))
            stk_onnx_find(model, graph->initializer[i]->name)->is_fixed = true;
    if (graph->n_sparse_initializer) return stk_fail(STK_UNSUPPORTED, "the model has sparse initialisers");
    return STK_OK;
}

stk_status stk_onnx_import(stk_onnx *model, const Onnx__ModelProto *proto)
{
    const Onnx__GraphProto *graph = proto->graph;
    int64_t opset;
    STK_RETURN_IF_ERROR(stk_onnx_opset(proto, &opset));
    STK_RETURN_IF_ERROR(stk_onnx_add_initializers(model, proto));
    for (size_t i = 0; i < graph->n_input; i++)
        STK_RETURN_IF_ERROR(add_input(model, graph->input[i]));
    for (size_t i = 0; i < graph->n_node; i++)
        STK_RETURN_IF_ERROR(stk_onnx_add_node(model, graph->node[i], opset));
    for (size_t i = 0; i < graph->n_output; i++)
        STK_RETURN_IF_ERROR(add_output(model, graph->output[i]));
    return stk_graph_status(model->graph);
}
