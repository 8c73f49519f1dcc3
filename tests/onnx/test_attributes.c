/* Models of one node: attributes that are not honoured are refused by name, and those that are give the values that
 * ONNX's definition has.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "onnx/model.h"

enum { MOST = 8, MOST_BYTES = 4096 };

/* A node of up to two inputs "x" and "y" and an output "z". */
typedef struct model_parts {
    Onnx__AttributeProto attribute[MOST], *attributes[MOST];
    Onnx__NodeProto node, *nodes[1];
    Onnx__TensorShapeProto__Dimension dim[2][MOST], *dims[2][MOST];
    Onnx__TensorShapeProto shape[2];
    Onnx__TypeProto__Tensor tensor[2];
    Onnx__TypeProto type[2];
    Onnx__ValueInfoProto info[3], *in[2], *out[1];
    Onnx__TensorProto list[MOST], *lists[MOST];
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__ModelProto model;
    char *in_name[MOST], *out_name[1];
} model_parts;

static void add_input(model_parts *p, const char *name, const int64_t *shape, int rank)
{
    size_t i = p->graph.n_input++;
    p->node.n_input++;
    p->in_name[i] = (char *)name;
    p->in[i] = &p->info[i];
    onnx__value_info_proto__init(&p->info[i]);
    onnx__type_proto__init(&p->type[i]);
    onnx__type_proto__tensor__init(&p->tensor[i]);
    onnx__tensor_shape_proto__init(&p->shape[i]);
    p->info[i].name = (char *)name;
    p->info[i].type = &p->type[i];
    p->type[i].value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    p->type[i].tensor_type = &p->tensor[i];
    p->tensor[i].has_elem_type = 1;
    p->tensor[i].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    p->tensor[i].shape = &p->shape[i];
    p->shape[i].n_dim = (size_t)rank;
    p->shape[i].dim = p->dims[i];
    for (int k = 0; k < rank; k++) {
        p->dims[i][k] = &p->dim[i][k];
        onnx__tensor_shape_proto__dimension__init(&p->dim[i][k]);
        p->dim[i][k].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        p->dim[i][k].dim_value = shape[k];
    }
}

static void begin(model_parts *p, const char *op, int64_t opset)
{
    memset(p, 0, sizeof(*p));
    onnx__node_proto__init(&p->node);
    onnx__graph_proto__init(&p->graph);
    onnx__model_proto__init(&p->model);
    onnx__operator_set_id_proto__init(&p->opset);
    onnx__value_info_proto__init(&p->info[2]);
    p->node.name = (char *)"the_node";
    p->node.op_type = (char *)op;
    p->node.input = p->in_name;
    p->node.output = p->out_name;
    p->node.n_output = 1;
    p->out_name[0] = p->info[2].name = (char *)"z";
    p->node.attribute = p->attributes;
    p->nodes[0] = &p->node;
    p->graph.node = p->nodes;
    p->graph.n_node = 1;
    p->graph.input = p->in;
    p->out[0] = &p->info[2];
    p->graph.output = p->out;
    p->graph.n_output = 1;
    p->opset.has_version = 1;
    p->opset.version = opset;
    p->opsets[0] = &p->opset;
    p->model.n_opset_import = 1;
    p->model.opset_import = p->opsets;
    p->model.graph = &p->graph;
}

static Onnx__AttributeProto *add_attribute(model_parts *p, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = p->attributes[p->node.n_attribute] = &p->attribute[p->node.n_attribute];
    p->node.n_attribute++;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    return a;
}

static void add_int(model_parts *p, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = add_attribute(p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = value;
}

static void add_text(model_parts *p, const char *name, const char *value)
{
    Onnx__AttributeProto *a = add_attribute(p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s = (ProtobufCBinaryData){strlen(value), (uint8_t *)value};
}

static void add_ints(model_parts *p, const char *name, int n, const int64_t *values)
{
    Onnx__AttributeProto *a = add_attribute(p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = (size_t)n;
    a->ints = (int64_t *)values;
}

/* The node's input i, of f32 or i64. */
static void add_list(model_parts *p, size_t i, const char *name, int dtype, int64_t *dims, int rank, void *data, int n)
{
    Onnx__TensorProto *t = p->lists[p->graph.n_initializer] = &p->list[p->graph.n_initializer];
    onnx__tensor_proto__init(t);
    p->graph.n_initializer++;
    p->graph.initializer = p->lists;
    if (p->node.n_input <= i) p->node.n_input = i + 1;
    for (size_t k = 0; k < p->node.n_input; k++)
        if (!p->in_name[k]) p->in_name[k] = (char *)"";
    p->in_name[i] = t->name = (char *)name;
    t->has_data_type = 1;
    t->data_type = dtype;
    t->dims = dims;
    t->n_dims = (size_t)rank;
    if (dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT) {
        t->float_data = data;
        t->n_float_data = (size_t)n;
    } else {
        t->int64_data = data;
        t->n_int64_data = (size_t)n;
    }
}

static stk_status parse(const model_parts *p, stk_onnx **out)
{
    static uint8_t bytes[MOST_BYTES];
    assert_true(onnx__model_proto__get_packed_size(&p->model) <= MOST_BYTES);
    return stk_onnx_parse(bytes, onnx__model_proto__pack(&p->model, bytes), NULL, out);
}

static void expect_refusal(const model_parts *p, stk_status status, const char *words)
{
    stk_onnx *model = NULL;
    assert_int_equal(parse(p, &model), status);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    assert_non_null(strstr(stk_error_text(), "node 'the_node' ("));
}

/* The model's program, its inputs bound. */
static stk_program *make_program(const model_parts *p, const void *x, const void *y, stk_onnx **model,
                                 stk_engine **engine)
{
    stk_program *program;
    if (parse(p, model) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_engine_open("cpu", NULL, 1, engine), STK_OK);
    assert_int_equal(stk_engine_compile(*engine, stk_graph_clone(stk_onnx_graph(*model), STK_ANY), NULL, &program),
                     STK_OK);
    for (int i = 0; i < stk_engine_n_variables(*engine); i++) {
        stk_variable_view v = stk_engine_variable(*engine, i);
        memcpy(v.view.data, stk_onnx_weight(*model, i).data, stk_desc_bytes(v.view.desc));
    }
    stk_program_bind(program, stk_program_input(program, "x"), x);
    if (y) stk_program_bind(program, stk_program_input(program, "y"), y);
    return program;
}

static void expect_failure(const model_parts *p, const void *x, const void *y, const char *words)
{
    stk_onnx *model;
    stk_engine *engine;
    stk_program *program = make_program(p, x, y, &model, &engine);
    assert_int_not_equal(stk_program_run(program), STK_OK);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_engine_close(engine);
    stk_onnx_free(model);
}

/* Runs the model; z [n] is the engine's. */
static const void *run_model(const model_parts *p, const void *x, const void *y, int n, stk_onnx **model,
                             stk_engine **engine)
{
    stk_tensor_desc desc;
    stk_program *program = make_program(p, x, y, model, engine);
    assert_int_equal(stk_program_run(program), STK_OK);
    const void *z = stk_program_output(program, "z", &desc);
    assert_int_equal(stk_shape_count(desc.shape), n);
    return z;
}

static void expect_values(const model_parts *p, const float *x, const float *y, int n, const float *want)
{
    stk_onnx *model;
    stk_engine *engine;
    const float *z = run_model(p, x, y, n, &model, &engine);
    for (int i = 0; i < n; i++)
        if (!(isnan(want[i]) ? isnan(z[i]) : z[i] == want[i]))
            fail_msg("element %d is %.9g, and must be %.9g", i, (double)z[i], (double)want[i]);
    stk_engine_close(engine);
    stk_onnx_free(model);
}

static void expect_near(const model_parts *p, const float *x, int n, const float *want)
{
    stk_onnx *model;
    stk_engine *engine;
    const float *z = run_model(p, x, NULL, n, &model, &engine);
    for (int i = 0; i < n; i++)
        if (!(fabsf(z[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("element %d is %.9g, and must be %.9g", i, (double)z[i], (double)want[i]);
    stk_engine_close(engine);
    stk_onnx_free(model);
}

/* Beyond 2^53 too, where doubles have gaps. */
static void whole_numbers_are_divided_exactly(void **state)
{
    static const int64_t some[] = {1,
                                   -1,
                                   3,
                                   -7,
                                   10,
                                   1000003,
                                   INT64_C(1) << 53,
                                   (INT64_C(1) << 53) + 1,
                                   INT64_MAX,
                                   INT64_MAX - 1,
                                   INT64_MIN + 1,
                                   INT64_C(-9007199254740993),
                                   INT64_C(4611686018427387903)};
    enum { N = sizeof(some) / sizeof(some[0]) };
    static int64_t x[N * N], y[N * N];
    const int64_t shape[] = {N * N};
    model_parts p;
    stk_onnx *model;
    stk_engine *engine;
    (void)state;
    for (int i = 0; i < N * N; i++) {
        x[i] = some[i / N];
        y[i] = some[i % N];
    }
    begin(&p, "Div", 14);
    add_input(&p, "x", shape, 1);
    add_input(&p, "y", shape, 1);
    p.tensor[0].elem_type = p.tensor[1].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    const int64_t *z = run_model(&p, x, y, N * N, &model, &engine);
    for (int i = 0; i < N * N; i++)
        if (z[i] != x[i] / y[i]) fail_msg("%lld / %lld is %lld", (long long)x[i], (long long)y[i], (long long)z[i]);
    stk_engine_close(engine);
    stk_onnx_free(model);
}

static void what_is_not_honoured_is_refused_by_name(void **state)
{
    (void)state;
    model_parts p;
    const int64_t image[] = {1, 1, 4, 4};
    begin(&p, "Relu", 13);
    add_input(&p, "x", image, 4);
    add_int(&p, "slope", 1);
    expect_refusal(&p, STK_UNSUPPORTED, "(Relu): its attribute 'slope' is not known here");
    begin(&p, "Pad", 19);
    add_input(&p, "x", image, 4);
    add_text(&p, "mode", "circular");
    expect_refusal(&p, STK_UNSUPPORTED, "'mode' is circular, and can be constant, reflect, edge or wrap here");
    begin(&p, "LayerNormalization", 17);
    add_input(&p, "x", image, 4);
    add_int(&p, "stash_type", 11);
    expect_refusal(&p, STK_UNSUPPORTED, "'stash_type' is 11, and can be 1 here");
    begin(&p, "Softmax", 13);
    add_input(&p, "x", image, 4);
    add_text(&p, "axis", "1");
    expect_refusal(&p, STK_INVALID, "'axis' has the wrong type: s, and must be i");
    begin(&p, "MaxPool", 12);
    add_input(&p, "x", image, 4);
    add_ints(&p, "kernel_shape", 2, (int64_t[]){2, 2});
    add_ints(&p, "strides", 1, (int64_t[]){2});
    expect_refusal(&p, STK_INVALID, "'strides' has 1 numbers, and must have 2");
    begin(&p, "Add", 6);
    add_input(&p, "x", image, 4);
    add_input(&p, "y", image + 1, 1);
    add_int(&p, "axis", 1);
    expect_refusal(&p, STK_UNSUPPORTED, "(Add): its attribute 'axis' is not known here");
}

/* Some writers leave out a 0. */
static void an_attribute_without_its_number_is_0(void **state)
{
    (void)state;
    model_parts p;
    const int64_t rows[] = {2, 2};
    begin(&p, "Softmax", 13);
    add_input(&p, "x", rows, 2);
    add_attribute(&p, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    expect_values(&p, (float[]){1, 2, 1, 2}, NULL, 4, (float[]){0.5f, 0.5f, 0.5f, 0.5f});
}

/* What older opsets had as a default may be written out. */
static void defaults_of_old_opsets_are_read(void **state)
{
    (void)state;
    model_parts p;
    const int64_t rows[] = {2, 2};
    begin(&p, "Add", 6);
    add_input(&p, "x", rows, 2);
    add_input(&p, "y", rows, 2);
    add_int(&p, "broadcast", 0);
    expect_values(&p, (float[]){1, 2, 3, 4}, (float[]){1, 1, 1, 1}, 4, (float[]){2, 3, 4, 5});
}

static void pads_wrap(void **state)
{
    (void)state;
    model_parts p;
    begin(&p, "Pad", 2);
    add_input(&p, "x", (int64_t[]){1, 3}, 2);
    add_ints(&p, "pads", 4, (int64_t[]){0, 2, 0, 4});
    add_text(&p, "mode", "wrap");
    expect_values(&p, (float[]){1, 2, 3}, NULL, 9, (float[]){2, 3, 1, 2, 3, 1, 2, 3, 1});
    /* Negative pads take away first. */
    begin(&p, "Pad", 2);
    add_input(&p, "x", (int64_t[]){1, 3}, 2);
    add_ints(&p, "pads", 4, (int64_t[]){0, -1, 0, 1});
    expect_values(&p, (float[]){1, 2, 3}, NULL, 3, (float[]){2, 3, 0});
}

/* A last window that begins in the padding is none; one that stands out beyond the padding counts what lies in it. */
static void averages_count_padding_alone(void **state)
{
    (void)state;
    model_parts p;
    begin(&p, "AveragePool", 19);
    add_input(&p, "x", (int64_t[]){1, 1, 4}, 3);
    add_ints(&p, "kernel_shape", 1, (int64_t[]){2});
    add_ints(&p, "strides", 1, (int64_t[]){2});
    add_ints(&p, "pads", 2, (int64_t[]){0, 1});
    add_int(&p, "ceil_mode", 1);
    add_int(&p, "count_include_pad", 1);
    expect_values(&p, (float[]){1, 3, 5, 7}, NULL, 2, (float[]){2, 6});
    begin(&p, "AveragePool", 19);
    add_input(&p, "x", (int64_t[]){1, 1, 4}, 3);
    add_ints(&p, "kernel_shape", 1, (int64_t[]){4});
    add_ints(&p, "strides", 1, (int64_t[]){3});
    add_ints(&p, "pads", 2, (int64_t[]){1, 1});
    add_int(&p, "ceil_mode", 1);
    add_int(&p, "count_include_pad", 1);
    /* 0 1 2 3 | 3 4 5+0: three of the second window's four places exist. */
    expect_values(&p, (float[]){3, 6, 9, 12}, NULL, 2, (float[]){4.5f, 7});
}

static void rests_are_exact(void **state)
{
    (void)state;
    model_parts p;
    static const float x[] = {1e30f, -3e38f, 5, -5, 7.5f, INFINITY, 1, 0, 1e20f},
                       y[] = {3, 7e-30f, INFINITY, INFINITY, -2, 3, 0, 5, 1};
    float want[9];
    for (int i = 0; i < 9; i++)
        want[i] = fmodf(x[i], y[i]);
    begin(&p, "Mod", 13);
    add_input(&p, "x", (int64_t[]){9}, 1);
    add_input(&p, "y", (int64_t[]){9}, 1);
    add_int(&p, "fmod", 1);
    expect_values(&p, x, y, 9, want);
}

static void windows_that_find_no_room_are_refused(void **state)
{
    (void)state;
    model_parts p;
    const char *const ops[] = {"MaxPool", "AveragePool", "LpPool"};
    for (int i = 0; i < 3; i++) {
        begin(&p, ops[i], 18);
        add_input(&p, "x", (int64_t[]){1, 1, 4, 6}, 4);
        add_ints(&p, "kernel_shape", 2, (int64_t[]){3, 2});
        add_ints(&p, "dilations", 2, (int64_t[]){2, 1});
        expect_refusal(&p, STK_UNSUPPORTED, "its window spans 5 pixels, and the image has 4 with its padding");
    }
    begin(&p, "Conv", 18);
    add_input(&p, "x", (int64_t[]){1, 1, 4, 4}, 4);
    add_input(&p, "y", (int64_t[]){2, 1, 7, 1}, 4);
    add_ints(&p, "pads", 4, (int64_t[]){1, 0, 1, 0});
    expect_refusal(&p, STK_UNSUPPORTED, "its window spans 7 pixels, and the image has 6 with its padding");
}

static void numbers_at_the_edge_are_ieees(void **state)
{
    (void)state;
    model_parts p;
    static const float x[] = {-3e38f, -1e20f, -3000, -1, 0.5f, 1, NAN, INFINITY};
    begin(&p, "Acosh", 9);
    add_input(&p, "x", (int64_t[]){8}, 1);
    expect_values(&p, x, NULL, 8, (float[]){NAN, NAN, NAN, NAN, NAN, 0, NAN, INFINITY});
    begin(&p, "Sign", 13);
    add_input(&p, "x", (int64_t[]){8}, 1);
    expect_values(&p, x, NULL, 8, (float[]){-1, -1, -1, -1, 1, 1, NAN, 1});
    begin(&p, "ReduceLogSumExp", 13);
    add_input(&p, "x", (int64_t[]){4, 2}, 2);
    add_ints(&p, "axes", 1, (int64_t[]){1});
    expect_values(&p, (float[]){-INFINITY, -INFINITY, INFINITY, 1, NAN, 0, -INFINITY, 3}, NULL, 4,
                  (float[]){-INFINITY, INFINITY, NAN, 3});
}

/* 3 pixels by 1.5 are 4: the last of the 4 is the last of the 3 for PyTorch; the standard divides by 4.5 - 1. */
static void corners_meet_as_the_writer_means(void **state)
{
    (void)state;
    model_parts p;
    float scales[] = {1, 1.5f};
    for (int pytorchs = 0; pytorchs < 2; pytorchs++) {
        begin(&p, "Resize", 18);
        add_input(&p, "x", (int64_t[]){1, 3}, 2);
        add_list(&p, 2, "scales", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){2}, 1, scales, 2);
        add_text(&p, "mode", "linear");
        add_text(&p, "coordinate_transformation_mode", "align_corners");
        if (pytorchs) p.model.producer_name = (char *)"pytorch";
        float step = pytorchs ? 2.0f / 3 : 2 / 3.5f, want[4];
        for (int i = 0; i < 4; i++)
            want[i] = 21 * (float)i * step;
        expect_near(&p, (float[]){0, 21, 42}, 4, want);
    }
}

/* An index that is no place ends the run, and so does a length that is none. */
static void what_is_out_of_range_is_told(void **state)
{
    (void)state;
    model_parts p;
    int64_t ids[] = {1, 4}, lengths[] = {2, 4};
    static float w[4 * 2], r[4];
    const float zeros[12] = {0};
    const int f32 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, i64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    for (int i = 0; i < 2; i++) {
        begin(&p, "ScatterND", 18);
        add_input(&p, "x", (int64_t[]){4, 3}, 2);
        add_input(&p, "y", (int64_t[]){2, 3}, 2);
        add_list(&p, 1, "ids", i64, (int64_t[]){2, 1}, 2, ids, 2);
        p.in_name[2] = (char *)"y";
        p.node.n_input = 3;
        if (i) add_text(&p, "reduction", "max");
        expect_failure(&p, zeros, zeros, "id 4 at position 1 is not one of the 4 rows");
    }
    begin(&p, "LSTM", 14);
    add_input(&p, "x", (int64_t[]){3, 2, 2}, 3);
    add_list(&p, 1, "w", f32, (int64_t[]){1, 4, 2}, 3, w, 8);
    add_list(&p, 2, "r", f32, (int64_t[]){1, 4, 1}, 3, r, 4);
    add_list(&p, 4, "lengths", i64, (int64_t[]){2}, 1, lengths, 2);
    p.list[2].data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    add_int(&p, "hidden_size", 1);
    expect_refusal(&p, STK_INVALID, "its sequence 1 has 4 steps of 3");
}

/* [0,2,-1] of an open batch. */
static void what_is_left_is_known_beside_a_batch(void **state)
{
    (void)state;
    model_parts p;
    stk_onnx *model;
    int64_t to[] = {0, 2, -1};
    begin(&p, "Reshape", 13);
    add_input(&p, "x", (int64_t[]){-1, 3, 4}, 3);
    p.dim[0][0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
    add_list(&p, 1, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, (int64_t[]){3}, 1, to, 3);
    if (parse(&p, &model) != STK_OK) fail_msg("%s", stk_error_text());
    stk_onnx_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_divided_exactly),
        cmocka_unit_test(what_is_not_honoured_is_refused_by_name),
        cmocka_unit_test(defaults_of_old_opsets_are_read),
        cmocka_unit_test(an_attribute_without_its_number_is_0),
        cmocka_unit_test(pads_wrap),
        cmocka_unit_test(averages_count_padding_alone),
        cmocka_unit_test(rests_are_exact),
        cmocka_unit_test(windows_that_find_no_room_are_refused),
        cmocka_unit_test(numbers_at_the_edge_are_ieees),
        cmocka_unit_test(corners_meet_as_the_writer_means),
        cmocka_unit_test(what_is_out_of_range_is_told),
        cmocka_unit_test(what_is_left_is_known_beside_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
