/* Models of one node that no exporter would write: each is refused with words that say why, or comes out right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "onnx/model.h"

enum { MOST_LIST = 16 };

typedef struct list {
    int n;
    int64_t at[MOST_LIST];
} list;
#define LIST(...) ((list){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

/* One node "n" of input "x" and, where it has elements, a list of whole numbers "w", or a weight of that shape, as many
 * times as `times` says (0: once). */
typedef struct hostile {
    const char *op;
    stk_dtype dtype;
    list shape, input, weight;
    int times;
    const char *attribute[3];
    list value[3];     /* n 0: the first number, as an int */
    const char *words; /* NULL: it can be read */
} hostile;

static Onnx__ValueInfoProto *value_info(stk_arena *arena, const hostile *h)
{
    Onnx__ValueInfoProto *info = stk_arena_alloc(arena, sizeof(*info));
    Onnx__TypeProto *type = stk_arena_alloc(arena, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = stk_arena_alloc(arena, sizeof(*tensor));
    Onnx__TensorShapeProto *dims = stk_arena_alloc(arena, sizeof(*dims));
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    dims->n_dim = (size_t)h->shape.n;
    dims->dim = stk_arena_alloc(arena, (dims->n_dim + 1) * sizeof(*dims->dim));
    for (int i = 0; i < h->shape.n; i++) {
        dims->dim[i] = stk_arena_alloc(arena, sizeof(**dims->dim));
        onnx__tensor_shape_proto__dimension__init(dims->dim[i]);
        dims->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims->dim[i]->dim_value = h->shape.at[i];
    }
    tensor->has_elem_type = 1;
    tensor->elem_type = h->dtype == STK_U8 ? 2 : 1;
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = (char *)"x";
    info->type = type;
    return info;
}

/* "w": the whole numbers of h->input, or zeros of the shape h->weight. */
static Onnx__TensorProto *initializer(stk_arena *arena, const hostile *h)
{
    Onnx__TensorProto *t = stk_arena_alloc(arena, sizeof(*t));
    bool is_weight = h->weight.n > 0;
    int64_t n = is_weight ? 1 : h->input.n;
    onnx__tensor_proto__init(t);
    t->name = (char *)"w";
    t->has_data_type = t->has_raw_data = 1;
    t->data_type = is_weight ? 1 : 7;
    t->n_dims = is_weight ? (size_t)h->weight.n : 1;
    t->dims = stk_arena_alloc(arena, t->n_dims * sizeof(*t->dims));
    t->dims[0] = n;
    for (int i = 0; i < h->weight.n; i++)
        n *= t->dims[i] = h->weight.at[i];
    t->raw_data.len = (size_t)n * (is_weight ? 4 : 8);
    t->raw_data.data = stk_arena_alloc(arena, t->raw_data.len + 1);
    if (!is_weight) memcpy(t->raw_data.data, h->input.at, t->raw_data.len);
    return t;
}

static void add_attributes(stk_arena *arena, const hostile *h, Onnx__NodeProto *node)
{
    node->attribute = stk_arena_alloc(arena, 3 * sizeof(*node->attribute));
    for (int i = 0; i < 3 && h->attribute[i]; i++) {
        Onnx__AttributeProto *a = stk_arena_alloc(arena, sizeof(*a));
        onnx__attribute_proto__init(a);
        a->name = (char *)(uintptr_t)h->attribute[i];
        a->has_i = h->value[i].n == 0;
        a->i = h->value[i].at[0];
        a->n_ints = (size_t)h->value[i].n;
        a->ints = (int64_t *)(uintptr_t)h->value[i].at;
        node->attribute[node->n_attribute++] = a;
    }
}

static stk_status parse(const hostile *h, stk_onnx **out)
{
    stk_arena *arena = stk_arena_new();
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes = &node;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
    Onnx__ValueInfoProto output = ONNX__VALUE_INFO_PROTO__INIT, *outputs = &output, *inputs = value_info(arena, h);
    Onnx__TensorProto *weights = initializer(arena, h);
    char w[] = "w", *names[] = {(char *)"x", w, w, w, w}, *results[] = {(char *)"y"};
    output.name = results[0];
    opset.has_version = 1;
    opset.version = 17;
    node.name = (char *)"n";
    node.op_type = (char *)(uintptr_t)h->op;
    node.input = names;
    node.n_input = h->times ? (size_t)h->times + 1 : h->input.n || h->weight.n ? 2 : 1;
    node.output = results;
    node.n_output = 1;
    add_attributes(arena, h, &node);
    graph.n_node = graph.n_input = graph.n_output = graph.n_initializer = 1;
    graph.node = &nodes;
    graph.input = &inputs;
    graph.output = &outputs;
    graph.initializer = &weights;
    model.graph = &graph;
    model.opset_import = &opsets;
    model.n_opset_import = 1;
    size_t n = onnx__model_proto__get_packed_size(&model);
    uint8_t *bytes = stk_arena_alloc(arena, n + 1);
    onnx__model_proto__pack(&model, bytes);
    stk_status status = stk_onnx_parse(bytes, n, NULL, out);
    stk_arena_free(arena);
    return status;
}

static void check(const hostile *h, int n)
{
    for (int i = 0; i < n; i++) {
        stk_onnx *model;
        stk_status status = parse(&h[i], &model);
        if (h[i].words && status == STK_OK) fail_msg("%s number %d is read", h[i].op, i);
        if (!h[i].words && status != STK_OK) fail_msg("%s number %d: %s", h[i].op, i, stk_error_text());
        if (h[i].words && !strstr(stk_error_text(), h[i].words))
            fail_msg("%s number %d: '%s' lacks '%s'", h[i].op, i, stk_error_text(), h[i].words);
        if (status == STK_OK) stk_onnx_free(model);
    }
}
#define CHECK(...) check((const hostile[]){__VA_ARGS__}, (int)(sizeof((hostile[]){__VA_ARGS__}) / sizeof(hostile)))

/* The axes' order was read past a list of four. */
static void windows_of_other_ranks_are_refused(void **state)
{
    (void)state;
    CHECK({.op = "MaxPool", .shape = LIST(1, 2, 3, 3, 3, 3), .words = "can have 3 to 5"},
          {.op = "AveragePool", .shape = LIST(1, 2, 3, 3, 3, 3, 3, 3), .words = "can have 3 to 5"},
          {.op = "MaxPool", .shape = LIST(4, 4), .words = "can have 3 to 5"},
          {.op = "Conv", .shape = LIST(1, 2, 3, 3, 3, 3), .weight = LIST(1, 2, 1, 1, 1, 1), .words = "can have 3 to 5"},
          {.op = "Conv", .shape = LIST(1, 2, 3, 3), .weight = LIST(1, 2, 1, 1, 1, 1), .words = "can have 3 to 5"},
          {.op = "ConvTranspose",
           .shape = LIST(1, 2, 3, 3, 3, 3, 3),
           .weight = LIST(2, 1, 1, 1, 1, 1, 1),
           .words = "can have 3 to 5"});
}

/* A bias of more axes made the result's axes more than the list of their order. */
static void parameters_of_channels_are_vectors(void **state)
{
    (void)state;
    CHECK({.op = "Conv",
           .shape = LIST(1, 2, 3, 3),
           .weight = LIST(2, 2, 1, 1),
           .times = 2,
           .words = "not one number for each channel"},
          {.op = "BatchNormalization", .shape = LIST(1, 2, 3, 3), .weight = LIST(2), .times = 4},
          {.op = "BatchNormalization",
           .shape = LIST(1, 2, 3, 3),
           .weight = LIST(3),
           .times = 4,
           .words = "not one number for each channel"});
}

/* The largest of none is not a number that kernels agree about. */
static void pooling_of_no_pixels_is_refused(void **state)
{
    (void)state;
    CHECK({.op = "MaxPool",
           .shape = LIST(1, 6, 0, 0, 0),
           .attribute = {"kernel_shape", "pads"},
           .value = {LIST(3, 3, 3), LIST(2, 2, 2, 2, 2, 2)},
           .words = "no pixels"},
          {.op = "AveragePool",
           .shape = LIST(1, 6, 0, 4),
           .attribute = {"kernel_shape", "pads"},
           .value = {LIST(2, 2), LIST(1, 1, 1, 1)},
           .words = "no pixels"});
}

/* Sizes that wrap around when they are multiplied or added. */
static void sizes_do_not_wrap_around(void **state)
{
    (void)state;
    const int64_t huge = INT32_MAX;
    CHECK({.op = "SpaceToDepth",
           .dtype = STK_U8,
           .shape = LIST(1, huge, 0, 0),
           .attribute = {"blocksize"},
           .value = {{0, {1024}}},
           .words = "too large"},
          {.op = "Tile", .dtype = STK_U8, .shape = LIST(0, huge), .input = LIST(1, INT32_MAX), .words = "too large"},
          {.op = "Unsqueeze",
           .shape = LIST(1, 2),
           .attribute = {"axes"},
           .value = {LIST(0, 1, 2, 3, 4, 5, 6, 7, 8)},
           .words = "dimensions are too many"},
          {.op = "ConvTranspose",
           .shape = LIST(1, 0, huge, 1),
           .weight = LIST(0, 1, 1, 1),
           .attribute = {"strides"},
           .value = {LIST(1 << 20, 1)},
           .words = "too large"},
          {.op = "ConvTranspose",
           .shape = LIST(1, 1, 4, 4),
           .weight = LIST(1, 1, 2, 2),
           .attribute = {"output_shape"},
           .value = {LIST(INT64_MIN, INT64_MIN)},
           .words = "may have 0 to 1048576"},
          {.op = "Conv",
           .shape = LIST(1, 4, 4, 4),
           .weight = LIST(4, 4, 1, 1),
           .attribute = {"group"},
           .value = {{0, {INT64_MAX}}},
           .words = "weight"},
          {.op = "CumSum", .shape = LIST(2, 2), .input = LIST(INT64_MIN), .words = "the axis"});
}

/* A byte that is neither 0 nor 1 compared unequal to another truth. */
static void truth_is_zero_or_one(void **state)
{
    (void)state;
    uint8_t bytes[] = {0, 1, 2, 255};
    int64_t n = sizeof(bytes);
    stk_arena *arena = stk_arena_new();
    stk_onnx_tensor tensor;
    Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    proto.has_data_type = proto.has_raw_data = 1;
    proto.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    proto.n_dims = 1;
    proto.dims = &n;
    proto.raw_data = (ProtobufCBinaryData){sizeof(bytes), bytes};
    assert_int_equal(stk_onnx_read_tensor(arena, NULL, &proto, "t", &tensor), STK_OK);
    assert_memory_equal(tensor.data, ((const uint8_t[]){0, 1, 1, 1}), sizeof(bytes));
    stk_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_other_ranks_are_refused),
        cmocka_unit_test(parameters_of_channels_are_vectors),
        cmocka_unit_test(pooling_of_no_pixels_is_refused),
        cmocka_unit_test(sizes_do_not_wrap_around),
        cmocka_unit_test(truth_is_zero_or_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
