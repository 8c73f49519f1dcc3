/* The walk over a graph that becomes an ONNX model. See onnx/export.h and onnx/writer.h. */
#include "onnx/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/layers.h"
#include "graph/op.h"
#include "onnx/writer.h"
#include "passes/passes.h"

enum { OPSET = 17, IR_VERSION = 8 };

/* --- errors and memory --- */

bool stk_writer_ok(const stk_writer *w)
{
    return w->status == STK_OK;
}

void stk_writer_fail(stk_writer *w, stk_status status)
{
    if (w->status == STK_OK) w->status = status;
}

void stk_writer_refuse(stk_writer *w, const stk_node *node, const char *why)
{
    stk_layer_name *layer = stk_writer_alloc(w, (size_t)w->graph->n_nodes * sizeof(*layer));
    if (!layer) return;
    stk_writer_fail(w, stk_graph_find_layers(w->graph, layer));
    if (!stk_writer_ok(w)) return;
    stk_layer_name of = layer[node - w->graph->node];
    stk_writer_fail(w, stk_fail(STK_UNSUPPORTED, "op '%s'%s%s%s%.*s%s cannot be written as ONNX", stk_op_name(node->op),
                                why[0] ? " " : "", why, of.text ? " in layer '" : "", of.text ? of.n : 0,
                                of.text ? of.text : "", of.text ? "'" : ""));
}

void *stk_writer_alloc(stk_writer *w, size_t bytes)
{
    void *p = w->status == STK_OK ? stk_arena_alloc(w->arena, bytes + 1) : NULL;
    if (!p && w->status == STK_OK) stk_writer_fail(w, stk_fail_memory(bytes));
    return p;
}

const char *stk_writer_text(stk_writer *w, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    char *copy = stk_writer_alloc(w, strlen(text));
    return copy ? strcpy(copy, text) : NULL;
}

/* An array that is one longer. Old ones stay in the arena: twice the size each time. */
static bool grow(stk_writer *w, void *array, int n, int *capacity)
{
    void **grown;
    if (n < *capacity) return w->status == STK_OK;
    int wanted = *capacity ? 2 * *capacity : 64;
    if (!(grown = stk_writer_alloc(w, (size_t)wanted * sizeof(void *)))) return false;
    if (n) memcpy(grown, *(void **)array, (size_t)n * sizeof(void *));
    *(void **)array = grown;
    *capacity = wanted;
    return true;
}

/* --- nodes --- */

const char *stk_writer_put(stk_writer *w, const char *op, int n_in, const char *const *in)
{
    Onnx__NodeProto *node = stk_writer_alloc(w, sizeof(*node));
    const char *name = stk_writer_text(w, "v%d", w->n_made++);
    char **names = stk_writer_alloc(w, (size_t)(n_in + 2) * sizeof(*names));
    if (!node || !name || !names || !grow(w, &w->node, w->n_nodes, &w->node_capacity)) return NULL;
    for (int i = 0; i < n_in; i++)
        if (!(names[i] = (char *)in[i])) return NULL; /* after an error */
    onnx__node_proto__init(node);
    node->op_type = (char *)op;
    node->name = (char *)stk_writer_text(w, "%s_%d", op, w->n_nodes);
    node->n_input = (size_t)n_in;
    node->input = names;
    node->output = names + n_in + 1; /* The place before is for a convolution's bias. */
    node->output[0] = (char *)name;
    node->n_output = 1;
    w->node[w->n_nodes++] = node;
    return name;
}

static Onnx__AttributeProto *put_attribute(stk_writer *w, const char *name, Onnx__AttributeProto__AttributeType type)
{
    enum { MOST = 8 };
    Onnx__AttributeProto *a = stk_writer_alloc(w, sizeof(*a));
    if (!a || w->n_nodes == 0) return NULL;
    Onnx__NodeProto *node = w->node[w->n_nodes - 1];
    if (!node->attribute) node->attribute = stk_writer_alloc(w, MOST * sizeof(a));
    if (!node->attribute || node->n_attribute == MOST) return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    node->attribute[node->n_attribute++] = a;
    return a;
}

void stk_writer_put_int(stk_writer *w, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = put_attribute(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!a) return;
    a->has_i = 1;
    a->i = value;
}

void stk_writer_put_ints(stk_writer *w, const char *name, const int64_t *values, int n)
{
    Onnx__AttributeProto *a = put_attribute(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = stk_writer_alloc(w, (size_t)n * sizeof(*copy));
    if (!a || !copy) return;
    memcpy(copy, values, (size_t)n * sizeof(*copy));
    a->ints = copy;
    a->n_ints = (size_t)n;
}

void stk_writer_put_float(stk_writer *w, const char *name, double value)
{
    Onnx__AttributeProto *a = put_attribute(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (!a) return;
    a->has_f = 1;
    a->f = (float)value;
}

/* --- initialisers --- */

int32_t stk_onnx_type(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    case STK_F64: return ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
    case STK_F16: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    case STK_BF16: return ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    case STK_I64: return ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    case STK_I32: return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
    case STK_I8: return ONNX__TENSOR_PROTO__DATA_TYPE__INT8;
    case STK_U8: return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    default: return ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    }
}

const char *stk_writer_put_tensor(stk_writer *w, const char *name, stk_dtype dtype, stk_shape shape, const void *data)
{
    Onnx__TensorProto *t = stk_writer_alloc(w, sizeof(*t));
    int64_t *dims = stk_writer_alloc(w, STK_MAX_RANK * sizeof(*dims));
    if (!t || !dims || !name || !grow(w, &w->initializer, w->n_initializers, &w->initializer_capacity)) return NULL;
    onnx__tensor_proto__init(t);
    memcpy(dims, shape.dim, sizeof(shape.dim));
    t->name = (char *)name;
    t->n_dims = (size_t)shape.rank;
    t->dims = dims;
    t->has_data_type = 1;
    t->data_type = stk_onnx_type(dtype);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){stk_desc_bytes(stk_desc_make(dtype, shape)), (uint8_t *)data};
    w->initializer[w->n_initializers++] = t;
    w->weight_bytes += (int64_t)t->raw_data.len;
    return name;
}

const char *stk_writer_put_list(stk_writer *w, const int64_t *values, int n)
{
    int64_t *copy = stk_writer_alloc(w, (size_t)n * sizeof(*copy));
    if (!copy) return NULL;
    memcpy(copy, values, (size_t)n * sizeof(*copy));
    return stk_writer_put_tensor(w, stk_writer_text(w, "list%d", w->n_made++), STK_I64, (stk_shape){1, {n}}, copy);
}

/* False for what has no numbers here. */
static bool store_number(stk_dtype dtype, double value, void *data, int64_t i)
{
    switch (dtype) {
    case STK_F32: ((float *)data)[i] = (float)value; return true;
    case STK_F64: ((double *)data)[i] = value; return true;
    case STK_I64: ((int64_t *)data)[i] = (int64_t)value; return true;
    case STK_I32: ((int32_t *)data)[i] = (int32_t)value; return true;
    case STK_I8: ((int8_t *)data)[i] = (int8_t)value; return true;
    case STK_U8:
    case STK_BOOL: ((uint8_t *)data)[i] = (uint8_t)value; return true;
    default: return false;
    }
}

const char *stk_writer_put_number(stk_writer *w, stk_dtype dtype, double value)
{
    void *data = stk_writer_alloc(w, 8);
    if (!data) return NULL;
    if (!store_number(dtype, value, data, 0)) {
        stk_writer_fail(w, stk_fail(STK_UNSUPPORTED, "constants of %s", stk_dtype_name(dtype)));
        return NULL;
    }
    return stk_writer_put_tensor(w, stk_writer_text(w, "number%d", w->n_made++), dtype, (stk_shape){0}, data);
}

const char *stk_writer_put_indices(stk_writer *w, stk_dtype dtype, stk_shape shape, int axis)
{
    int64_t n = stk_shape_count(shape), inner = stk_shape_product(shape, axis + 1, shape.rank);
    void *data = stk_writer_alloc(w, (size_t)n * stk_dtype_bytes(dtype));
    for (int64_t i = 0; data && i < n; i++)
        if (!store_number(dtype, (double)(i / inner % shape.dim[axis]), data, i)) {
            stk_writer_fail(w, stk_fail(STK_UNSUPPORTED, "constants of %s", stk_dtype_name(dtype)));
            return NULL;
        }
    return data ? stk_writer_put_tensor(w, stk_writer_text(w, "indices%d", w->n_made++), dtype, shape, data) : NULL;
}

/* --- values --- */

stk_shape stk_writer_shape_of(const stk_writer *w, int32_t value)
{
    return w->graph->value[value].desc.shape;
}

stk_dtype stk_writer_dtype_of(const stk_writer *w, int32_t value)
{
    return w->graph->value[value].desc.dtype;
}

const stk_node *stk_writer_maker_of(const stk_writer *w, int32_t value)
{
    return &w->graph->node[w->graph->value[value].node];
}

void stk_writer_set_plain(stk_writer *w, int32_t value, const char *name)
{
    w->form[value].plain = name;
}

void stk_writer_set_first(stk_writer *w, int32_t value, const char *name)
{
    w->form[value].first = name;
}

int32_t stk_writer_source_of(const stk_writer *w, int32_t value)
{
    while (stk_writer_maker_of(w, value)->op == STK_OP_broadcast)
        value = stk_writer_maker_of(w, value)->in[0];
    return value;
}

/* permutation of axes: channels from last to second, or back. */
static void channel_order(int rank, bool to_first, int32_t *out)
{
    for (int i = 0; i < rank; i++)
        out[i] = i == 0 ? 0 : to_first ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
}

static const char *transpose(stk_writer *w, const char *x, int rank, const int32_t *permutation)
{
    int64_t perm[STK_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = permutation[i];
    const char *y = STK_WRITER_PUT(w, "Transpose", x);
    stk_writer_put_ints(w, "perm", perm, rank);
    return y;
}

/* A copy with its axes in another order. */
static const void *turn(stk_writer *w, const uint8_t *src, stk_dtype dtype, stk_shape shape, const int32_t *permutation)
{
    size_t bytes = stk_dtype_bytes(dtype);
    int64_t n = stk_shape_count(shape), index[STK_MAX_RANK] = {0}, stride[STK_MAX_RANK], at = 0;
    uint8_t *dst = stk_writer_alloc(w, (size_t)n * bytes);
    if (!dst) return NULL;
    for (int i = 0; i < shape.rank; i++)
        stride[i] = stk_shape_product(shape, permutation[i] + 1, shape.rank);
    for (int64_t k = 0; k < n; k++) {
        memcpy(dst + (size_t)k * bytes, src + (size_t)at * bytes, bytes);
        for (int i = shape.rank - 1; i >= 0; i--) {
            at += stride[i];
            if (++index[i] < shape.dim[permutation[i]]) break;
            at -= stride[i] * shape.dim[permutation[i]];
            index[i] = 0;
        }
    }
    return dst;
}

static const char *put_variable(stk_writer *w, const stk_node *node, const char *name, const int32_t *permutation)
{
    stk_tensor_desc desc = w->graph->value[node->first_out].desc;
    stk_shape shape = desc.shape;
    const void *data = NULL;
    if (!stk_writer_ok(w)) return NULL;
    stk_writer_fail(w, w->options->weight(w->options->user, node->name, &data));
    if (!stk_writer_ok(w)) return NULL;
    if (permutation) {
        data = turn(w, data, desc.dtype, shape, permutation);
        for (int i = 0; i < shape.rank; i++)
            shape.dim[i] = desc.shape.dim[permutation[i]];
    }
    w->n_weights++;
    return data ? stk_writer_put_tensor(w, name, desc.dtype, shape, data) : NULL;
}

/* A batch that is open has no number to expand to, but stays as it is where the value has it already. */
static const char *expand(stk_writer *w, int32_t value)
{
    stk_shape shape = stk_writer_shape_of(w, value);
    const stk_node *node = stk_writer_maker_of(w, value);
    bool is_constant = node->op == STK_OP_constant;
    const char *x = is_constant ? stk_writer_put_number(w, node->attrs.dtype, node->attrs.constant.value)
                                : stk_writer_plain(w, node->in[0]);
    stk_shape source = is_constant ? (stk_shape){0} : stk_writer_shape_of(w, node->in[0]);
    if (shape.rank == 0) return x;
    for (int i = 0; i < shape.rank; i++) {
        int at = i - (shape.rank - source.rank);
        if (shape.dim[i] >= 0) continue;
        if (at < 0 || source.dim[at] >= 0) {
            stk_writer_refuse(w, node, "over a batch that is open");
            return NULL;
        }
        shape.dim[i] = 1;
    }
    return STK_WRITER_PUT(w, "Expand", x, stk_writer_put_list(w, shape.dim, shape.rank));
}

const char *stk_writer_plain(stk_writer *w, int32_t value)
{
    stk_form *form = &w->form[value];
    int32_t order[STK_MAX_RANK];
    if (form->plain || !stk_writer_ok(w)) return form->plain;
    const stk_node *node = stk_writer_maker_of(w, value);
    int rank = stk_writer_shape_of(w, value).rank;
    if (form->first) {
        channel_order(rank, false, order);
        form->plain = transpose(w, form->first, rank, order);
    } else if (node->op == STK_OP_variable) {
        form->plain = put_variable(w, node, node->name, NULL);
    } else if (node->op == STK_OP_constant || node->op == STK_OP_broadcast) {
        form->plain = expand(w, value);
    } else {
        stk_writer_fail(w, stk_fail(STK_INTERNAL, "value %d was not made", (int)value));
    }
    return form->plain;
}

const char *stk_writer_first(stk_writer *w, int32_t value)
{
    stk_form *form = &w->form[value];
    int32_t order[STK_MAX_RANK];
    if (form->first || !stk_writer_ok(w)) return form->first;
    int rank = stk_writer_shape_of(w, value).rank;
    channel_order(rank, true, order);
    return form->first = transpose(w, stk_writer_plain(w, value), rank, order);
}

const char *stk_writer_operand(stk_writer *w, int32_t value, bool first)
{
    int rank = stk_writer_shape_of(w, value).rank;
    int32_t source = stk_writer_source_of(w, value);
    const stk_node *node = stk_writer_maker_of(w, source);
    if (w->form[value].plain || w->form[value].first) source = value;
    int source_rank = stk_writer_shape_of(w, source).rank;
    if (node->op == STK_OP_constant) return stk_writer_put_number(w, node->attrs.dtype, node->attrs.constant.value);
    if (!first || source_rank == 0) return stk_writer_plain(w, source);
    if (source_rank == rank) return stk_writer_first(w, source);
    /* [C] next to [N,C,H,W] is [C,1,1]. */
    int64_t column[STK_MAX_RANK] = {stk_writer_shape_of(w, source).dim[0]};
    for (int i = 1; i < rank - 1; i++)
        column[i] = 1;
    return STK_WRITER_PUT(w, "Reshape", stk_writer_plain(w, source), stk_writer_put_list(w, column, rank - 1));
}

const char *stk_writer_turned(stk_writer *w, int32_t value, const int32_t *permutation)
{
    const stk_node *node = stk_writer_maker_of(w, value);
    if (node->op != STK_OP_variable)
        return transpose(w, stk_writer_plain(w, value), stk_writer_shape_of(w, value).rank, permutation);
    /* A second use keeps the name for the first. */
    bool taken = w->form[value].plain != NULL;
    for (int i = 0; i < w->n_initializers && !taken; i++)
        taken = !strcmp(w->initializer[i]->name, node->name);
    return put_variable(w, node, taken ? stk_writer_text(w, "%s.turned%d", node->name, w->n_made++) : node->name,
                        permutation);
}

/* --- the model --- */

static Onnx__ValueInfoProto *value_info(stk_writer *w, const char *name, stk_dtype dtype, stk_shape shape)
{
    Onnx__ValueInfoProto *info = stk_writer_alloc(w, sizeof(*info));
    Onnx__TypeProto *type = stk_writer_alloc(w, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = stk_writer_alloc(w, sizeof(*tensor));
    Onnx__TensorShapeProto *dims = stk_writer_alloc(w, sizeof(*dims));
    Onnx__TensorShapeProto__Dimension **list = stk_writer_alloc(w, STK_MAX_RANK * sizeof(*list));
    Onnx__TensorShapeProto__Dimension *dim = stk_writer_alloc(w, STK_MAX_RANK * sizeof(*dim));
    if (!info || !type || !tensor || !dims || !list || !dim) return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    for (int i = 0; i < shape.rank; i++) {
        list[i] = &dim[i];
        onnx__tensor_shape_proto__dimension__init(&dim[i]);
        bool known = shape.dim[i] >= 0;
        dim[i].value_case = known ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                                  : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        if (known)
            dim[i].dim_value = shape.dim[i];
        else
            dim[i].dim_param = (char *)"N";
    }
    dims->n_dim = (size_t)shape.rank;
    dims->dim = list;
    tensor->has_elem_type = 1;
    tensor->elem_type = stk_onnx_type(dtype);
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = (char *)name;
    info->type = type;
    return info;
}

/* u8 pixels become what the graph's input is. */
static const char *scale_pixels(stk_writer *w, const stk_onnx_pixels *p, const char *name)
{
    float *data = stk_writer_alloc(w, 8 * sizeof(*data));
    stk_shape shape = {1, {p->n}};
    if (!data) return NULL;
    memcpy(data, p->a, sizeof(p->a));
    memcpy(data + 4, p->b, sizeof(p->b));
    const char *x = STK_WRITER_PUT(w, "Cast", name);
    stk_writer_put_int(w, "to", stk_onnx_type(STK_F32));
    x = STK_WRITER_PUT(w, "Mul", x, stk_writer_put_tensor(w, STK_ONNX_PIXELS "factor", STK_F32, shape, data));
    return STK_WRITER_PUT(w, "Add", x, stk_writer_put_tensor(w, STK_ONNX_PIXELS "term", STK_F32, shape, data + 4));
}

static void add_inputs(stk_writer *w, Onnx__GraphProto *graph)
{
    graph->input = stk_writer_alloc(w, (size_t)w->graph->n_nodes * sizeof(*graph->input));
    for (int i = 0; i < w->graph->n_nodes && stk_writer_ok(w); i++) {
        const stk_node *node = &w->graph->node[i];
        if (node->op != STK_OP_input) continue;
        const stk_onnx_pixels *p = w->options->pixels;
        bool is_pixels = p && !strcmp(p->input, node->name);
        stk_dtype dtype = is_pixels ? STK_U8 : stk_writer_dtype_of(w, node->first_out);
        graph->input[graph->n_input++] = value_info(w, node->name, dtype, stk_writer_shape_of(w, node->first_out));
        stk_writer_set_plain(w, node->first_out, is_pixels ? scale_pixels(w, p, node->name) : node->name);
    }
}

static bool reads_input(const stk_writer *w, const char *name)
{
    for (int i = 0; i < w->n_nodes; i++)
        for (size_t k = 0; k < w->node[i]->n_input; k++)
            if (!strcmp(w->node[i]->input[k], name)) return true;
    return false;
}

/* What only training reads, as the seed of dropout, is no input of the model. */
static void drop_unread_inputs(const stk_writer *w, Onnx__GraphProto *graph)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_input; i++)
        if (reads_input(w, graph->input[i]->name)) graph->input[n++] = graph->input[i];
    graph->n_input = n;
}

static void add_outputs(stk_writer *w, Onnx__GraphProto *graph)
{
    graph->output = stk_writer_alloc(w, (size_t)(w->graph->n_roots + 1) * sizeof(*graph->output));
    for (int i = 0; i < w->graph->n_roots && stk_writer_ok(w); i++) {
        const stk_graph_root *root = &w->graph->root[i];
        if (!root->name) continue;
        (void)STK_WRITER_PUT(w, "Identity", stk_writer_plain(w, root->value));
        if (!stk_writer_ok(w)) return;
        w->node[w->n_nodes - 1]->output[0] = (char *)root->name;
        graph->output[graph->n_output++] =
            value_info(w, root->name, stk_writer_dtype_of(w, root->value), stk_writer_shape_of(w, root->value));
    }
}

static void add_metadata(stk_writer *w, Onnx__ModelProto *model)
{
    const char *const *pair = w->options->metadata;
    size_t n = 0;
    while (pair && pair[2 * n])
        n++;
    model->metadata_props = stk_writer_alloc(w, n * sizeof(*model->metadata_props));
    for (size_t i = 0; i < n && stk_writer_ok(w); i++) {
        Onnx__StringStringEntryProto *entry = stk_writer_alloc(w, sizeof(*entry));
        if (!entry) return;
        onnx__string_string_entry_proto__init(entry);
        entry->key = (char *)pair[2 * i];
        entry->value = (char *)pair[2 * i + 1];
        model->metadata_props[model->n_metadata_props++] = entry;
    }
}

static stk_status write_graph(stk_writer *w, const char *path, stk_onnx_export_report *report)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    for (int i = 0; i < w->graph->n_nodes; i++)
        for (int k = 0; k < w->graph->node[i].n_in; k++)
            w->form[w->graph->node[i].in[k]].n_uses++;
    for (int i = 0; i < w->graph->n_roots; i++)
        w->form[w->graph->root[i].value].n_uses++;
    add_inputs(w, &graph);
    for (int i = 0; i < w->graph->n_nodes && stk_writer_ok(w); i++)
        stk_writer_put_node(w, &w->graph->node[i]);
    add_outputs(w, &graph);
    add_metadata(w, &model);
    STK_RETURN_IF_ERROR(w->status);
    drop_unread_inputs(w, &graph);
    stk_onnx_describe_values(graph.input, graph.n_input, report->inputs);
    stk_onnx_describe_values(graph.output, graph.n_output, report->outputs);
    graph.name = (char *)(w->options->name ? w->options->name : "stoker");
    graph.n_node = (size_t)w->n_nodes;
    graph.node = w->node;
    graph.n_initializer = (size_t)w->n_initializers;
    graph.initializer = w->initializer;
    opset.domain = (char *)"";
    opset.has_version = 1;
    opset.version = OPSET;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = (char *)STK_ONNX_PRODUCER;
    model.producer_version = (char *)stk_version();
    model.n_opset_import = 1;
    model.opset_import = opsets;
    model.graph = &graph;
    return stk_writer_save(w, &model, path, &report->external);
}

/* Recurrent layers become steps, since ONNX's have no mask. *copy: the graph of these, or NULL where there are none. */
static stk_status spell_out_steps(const stk_graph *graph, stk_graph **copy)
{
    stk_device_caps caps = stk_device_caps_all;
    bool any = false;
    *copy = NULL;
    for (int i = 0; i < graph->n_nodes; i++)
        any |= graph->node[i].op == STK_OP_lstm || graph->node[i].op == STK_OP_gru;
    if (!any) return STK_OK;
    caps.has[STK_OP_lstm] = caps.has[STK_OP_gru] = false;
    if (!(*copy = stk_graph_clone(graph, STK_ANY))) return stk_fail_memory((size_t)graph->n_values);
    return pass_decompose(*copy, &(stk_pass_options){.caps = &caps});
}

stk_status stk_onnx_save(const stk_graph *graph, const stk_onnx_export *options, const char *path,
                         stk_onnx_export_report *report)
{
    stk_writer w = {.options = options};
    stk_status status = STK_OK;
    stk_graph *steps = NULL;
    *report = (stk_onnx_export_report){0};
    STK_TRY(spell_out_steps(graph, &steps));
    w.graph = graph = steps ? steps : graph;
    w.arena = stk_arena_new();
    w.form = calloc((size_t)graph->n_values + 1, sizeof(*w.form));
    if (!w.arena || !w.form) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*w.form)));
    STK_TRY(write_graph(&w, path, report));
    report->n_nodes = w.n_nodes;
    report->n_weights = w.n_weights;
    report->weight_bytes = w.weight_bytes;
done:
    free(w.form);
    stk_arena_free(w.arena);
    stk_graph_free(steps);
    return status;
}
