/* Models as parts of networks: shapes of a batch that is not known yet, what else computes with its size is refused,
 * several inputs, and batch norms and dropouts that train.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "onnx/model.h"

enum { MOST_NODES = 8, MOST_NAMES = 6, MOST_LISTS = 6 };

/* Whole numbers, or floats, with a name. */
typedef struct list {
    const char *name;
    int n; /* 0: a scalar of the one number */
    int64_t at[4];
    bool is_float, is_quarter; /* of the number 0.25 */
} list;

#define INTS(word, count, ...)                                                                                         \
    {                                                                                                                  \
        .name = word, .n = count, .at = { __VA_ARGS__ }                                                                \
    }
#define FLOATS(word, count, ...)                                                                                       \
    {                                                                                                                  \
        .name = word, .n = count, .at = {__VA_ARGS__}, .is_float = true                                                \
    }

/* A node: its op, what it reads, what it makes, an attribute. */
typedef struct node {
    const char *op, *in[MOST_NAMES], *out, *attribute;
    int64_t value;
} node;

typedef struct model {
    node node[MOST_NODES];
    list list[MOST_LISTS];
    const char *producer, *second; /* NULL: x is its only input */
} model;

static const stk_onnx_part whole;

static void must(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

static Onnx__TensorProto *tensor_of(stk_arena *arena, const list *l)
{
    Onnx__TensorProto *t = stk_arena_alloc(arena, sizeof(*t));
    int n = l->n ? l->n : 1;
    onnx__tensor_proto__init(t);
    t->name = (char *)(uintptr_t)l->name;
    t->has_data_type = t->has_raw_data = 1;
    t->data_type = l->is_float ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT : ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    t->n_dims = l->n ? 1 : 0;
    t->dims = stk_arena_alloc(arena, sizeof(*t->dims));
    t->dims[0] = n;
    t->raw_data.len = (size_t)n * (l->is_float ? sizeof(float) : sizeof(int64_t));
    t->raw_data.data = stk_arena_alloc(arena, t->raw_data.len);
    float *number = (float *)(void *)t->raw_data.data;
    for (int i = 0; i < n && l->is_float; i++)
        number[i] = (float)l->at[i];
    if (l->is_quarter) number[0] = 0.25F;
    if (!l->is_float) memcpy(t->raw_data.data, l->at, t->raw_data.len);
    return t;
}

static Onnx__NodeProto *node_of(stk_arena *arena, const node *from)
{
    Onnx__NodeProto *to = stk_arena_alloc(arena, sizeof(*to));
    onnx__node_proto__init(to);
    to->name = to->op_type = (char *)(uintptr_t)from->op;
    to->input = stk_arena_alloc(arena, MOST_NAMES * sizeof(*to->input));
    while (to->n_input < MOST_NAMES && from->in[to->n_input]) {
        to->input[to->n_input] = (char *)(uintptr_t)from->in[to->n_input];
        to->n_input++;
    }
    to->output = stk_arena_alloc(arena, sizeof(*to->output));
    to->output[0] = (char *)(uintptr_t)from->out;
    to->n_output = 1;
    if (!from->attribute) return to;
    Onnx__AttributeProto *a = stk_arena_alloc(arena, sizeof(*a));
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)from->attribute;
    a->has_i = a->has_type = 1;
    a->i = from->value;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    to->attribute = stk_arena_alloc(arena, sizeof(*to->attribute));
    to->attribute[0] = a;
    to->n_attribute = 1;
    return to;
}

/* y of x; the model's input is a tensor of floats without a shape, so that any fits. */
static stk_value apply(stk_value x, const model *m, const stk_onnx_part *part)
{
    stk_arena *arena = stk_arena_new();
    Onnx__ModelProto proto = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
    Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__ValueInfoProto input[2] = {ONNX__VALUE_INFO_PROTO__INIT, ONNX__VALUE_INFO_PROTO__INIT}, output = input[0];
    Onnx__ValueInfoProto *inputs[] = {&input[0], &input[1]}, *outputs = &output;
    Onnx__NodeProto *nodes[MOST_NODES];
    Onnx__TensorProto *lists[MOST_LISTS];
    tensor.has_elem_type = 1;
    tensor.elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type.tensor_type = &tensor;
    input[0].name = (char *)"x";
    input[1].name = (char *)(uintptr_t)m->second;
    input[0].type = input[1].type = &type;
    output.name = (char *)"y";
    opset.has_version = 1;
    opset.version = 17;
    graph.node = nodes;
    graph.initializer = lists;
    graph.input = inputs;
    graph.output = &outputs;
    graph.n_input = m->second ? 2 : 1;
    graph.n_output = 1;
    while (graph.n_node < MOST_NODES && m->node[graph.n_node].op) {
        nodes[graph.n_node] = node_of(arena, &m->node[graph.n_node]);
        graph.n_node++;
    }
    while (graph.n_initializer < MOST_LISTS && m->list[graph.n_initializer].name) {
        lists[graph.n_initializer] = tensor_of(arena, &m->list[graph.n_initializer]);
        graph.n_initializer++;
    }
    proto.graph = &graph;
    proto.opset_import = &opsets;
    proto.n_opset_import = 1;
    proto.producer_name = (char *)(uintptr_t)m->producer;
    size_t n = onnx__model_proto__get_packed_size(&proto);
    uint8_t *bytes = stk_arena_alloc(arena, n + 1);
    onnx__model_proto__pack(&proto, bytes);
    stk_value y = stk_onnx_apply_bytes(x, (stk_span){bytes, n}, part);
    stk_arena_free(arena);
    return y;
}

/* y for a batch of n, where x is 0, 1, 2, ... of the shape [?,...]. */
static void check_values(const model *m, stk_shape shape, int n, stk_shape want, const float *numbers)
{
    float x[64];
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    stk_graph *graph = stk_graph_new();
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    stk_graph_output(graph, "y", apply(stk_graph_input(graph, "x", STK_F32, shape), m, &whole));
    must(stk_graph_status(graph));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(graph, n), &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    must(stk_program_run(program));
    const float *got = stk_program_output(program, "y", &desc);
    assert_true(stk_shape_equal(desc.shape, want));
    for (int i = 0; i < stk_shape_count(want); i++)
        assert_true(got[i] == numbers[i]);
    stk_engine_close(engine);
    stk_graph_free(graph);
}

static void shapes_have_the_batch_in_them(void **state)
{
    (void)state;
    static const float same[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    static const float row[] = {5, 6, 7, 8, 9, 10}, ones[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const float rows[] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    /* x.view(x.size(0), -1), and its rows x.view(x.size(0) * 2, 3). */
    const model flat = {.node = {{"Shape", {"x"}, "s"},
                                 {"Gather", {"s", "zero"}, "n"},
                                 {"Unsqueeze", {"n", "axis"}, "n1"},
                                 {"Concat", {"n1", "rest"}, "to", "axis", 0},
                                 {"Reshape", {"x", "to"}, "y"}},
                        .list = {INTS("zero", 0, 0), INTS("axis", 1, 0), INTS("rest", 1, -1)}};
    check_values(&flat, STK_SHAPE(STK_ANY, 2, 3), 4, STK_SHAPE(4, 6), same);
    check_values(&flat, STK_SHAPE(STK_ANY, 2, 3), 1, STK_SHAPE(1, 6), same);
    const model folded = {.node = {{"Shape", {"x"}, "s", "end", 1},
                                   {"Mul", {"s", "two"}, "n"},
                                   {"Concat", {"n", "three"}, "to", "axis", 0},
                                   {"Reshape", {"x", "to"}, "y"}},
                          .list = {INTS("two", 1, 2), INTS("three", 1, 3)}};
    check_values(&folded, STK_SHAPE(STK_ANY, 2, 3), 4, STK_SHAPE(8, 3), same);
    /* And back, two rows for each sample: z.view(x.size(0), 2, -1). */
    const model unfolded = {.node = {{"Reshape", {"x", "rows"}, "z"},
                                     {"Shape", {"x"}, "s", "end", 1},
                                     {"Concat", {"s", "ends"}, "to", "axis", 0},
                                     {"Reshape", {"z", "to"}, "y"}},
                            .list = {INTS("rows", 2, -1, 3), INTS("ends", 2, 2, -1)}};
    check_values(&unfolded, STK_SHAPE(STK_ANY, 6), 4, STK_SHAPE(4, 2, 3), same);
    /* One row for each sample: PyTorch's expand() asks whether a size is -1. */
    const model spread = {
        .node = {{"Shape", {"x"}, "s", "end", 1},
                 {"Concat", {"s", "three"}, "to", "axis", 0},
                 {"Equal", {"to", "minus"}, "stays"},
                 {"Where", {"stays", "one", "to"}, "size"},
                 {"Expand", {"token", "size"}, "y"}},
        .list = {INTS("three", 1, 3), INTS("minus", 1, -1), INTS("one", 1, 1), FLOATS("token", 3, 1, 2, 3)}};
    check_values(&spread, STK_SHAPE(STK_ANY, 2), 3, STK_SHAPE(3, 3), rows);
    /* As many zeros as x has, with all of the batch, and ones in their place. */
    const model filled = {.node = {{"Shape", {"x"}, "s"},
                                   {"ConstantOfShape", {"s"}, "zeros"},
                                   {"Shape", {"x"}, "n", "end", 1},
                                   {"Slice", {"zeros", "start", "n", "first"}, "all"},
                                   {"Add", {"all", "one"}, "ones"},
                                   {"Add", {"x", "ones"}, "y"}},
                          .list = {INTS("start", 1, 0), INTS("first", 1, 0), FLOATS("one", 1, 1)}};
    check_values(&filled, STK_SHAPE(STK_ANY, 6), 2, STK_SHAPE(2, 6), ones);
    /* Rows x.view(-1, 3), of which there are two for each sample, with others and a row made for them. */
    static const float sums[] = {1, 3, 5, 4, 6, 8, 7, 9, 11, 10, 12, 14};
    const model made = {.node = {{"Reshape", {"x", "rows"}, "z"},
                                 {"Shape", {"z"}, "n", "end", 1},
                                 {"Concat", {"n", "three"}, "to", "axis", 0},
                                 {"Expand", {"token", "to"}, "tokens"},
                                 {"ConstantOfShape", {"to"}, "zeros"},
                                 {"Add", {"z", "zeros"}, "same"},
                                 {"Add", {"same", "tokens"}, "y"}},
                        .list = {INTS("rows", 2, -1, 3), INTS("three", 1, 3), FLOATS("token", 3, 1, 2, 3)}};
    check_values(&made, STK_SHAPE(STK_ANY, 2, 3), 2, STK_SHAPE(4, 3), sums);
    static const float products[] = {5, 7, 7, 9, 9, 11, 11, 13};
    const model gemm = {.node = {{"Reshape", {"x", "rows"}, "z"},
                                 {"Reshape", {"one", "square"}, "w"},
                                 {"Gemm", {"z", "w", "bias"}, "p"},
                                 {"Shape", {"x"}, "s"},
                                 {"Reshape", {"p", "s"}, "y"}},
                        .list = {INTS("rows", 2, -1, 2), INTS("square", 2, 2, 2), FLOATS("one", 4, 1, 0, 0, 1),
                                 FLOATS("bias", 2, 5, 6)}};
    check_values(&gemm, STK_SHAPE(STK_ANY, 2, 2), 2, STK_SHAPE(2, 2, 2), products);
    const model cast = {.node = {{"Shape", {"x"}, "s"},
                                 {"Cast", {"s"}, "t", "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64},
                                 {"Reshape", {"x", "t"}, "z"},
                                 {"Add", {"z", "five"}, "y"}},
                        .list = {FLOATS("five", 1, 5)}};
    check_values(&cast, STK_SHAPE(STK_ANY, 3), 2, STK_SHAPE(2, 3), row);
}

static void refuse(const model *m, const char *words)
{
    stk_graph *graph = stk_graph_new();
    assert_true(apply(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, 4)), m, &whole).id < 0);
    if (stk_graph_status(graph) == STK_OK) fail_msg("it is read, and should say '%s'", words);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_graph_free(graph);
}

/* Each would compute with the number that stands for the batch's size. */
static void nothing_else_is_made_of_it(void **state)
{
    (void)state;
    static const char words[] = "it computes with the size of the batch, which a part of a network cannot";
    const node shape = {.op = "Shape", .in = {"x"}, .out = "s", .attribute = "end", .value = 1};
    const list one = INTS("one", 1, 1), five = INTS("five", 1, 5), axis = INTS("axis", 1, 1), zero = INTS("zero", 1, 0);
    const list number = INTS("number", 0, 0), step = INTS("step", 0, 1);
    refuse(&(model){.node = {shape, {"Add", {"s", "one"}, "t"}, {"Reshape", {"x", "t"}, "y"}}, .list = {one}},
           "a dimension is");
    refuse(&(model){.node = {shape, {"Div", {"x", "s"}, "y"}}}, words);
    refuse(&(model){.node = {shape, {"Expand", {"s", "one"}, "y"}}, .list = {one}}, words);
    refuse(
        &(model){
            .node = {{"Shape", {"x"}, "s"}, {"Gather", {"s", "number"}, "n"}, {"Range", {"n", "step", "step"}, "y"}},
            .list = {number, step}},
        words);
    refuse(
        &(model){
            .node = {{"Shape", {"x"}, "s"}, {"Gather", {"s", "number"}, "n"}, {"Range", {"step", "n", "step"}, "y"}},
            .list = {number, step}},
        "it counts to the size of the batch otherwise");
    refuse(&(model){.node = {shape,
                             {"Cast", {"s"}, "t", "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT},
                             {"Mul", {"x", "t"}, "y"}}},
           "(Cast): it makes f32 of the size of the batch");
    refuse(&(model){.node = {shape, {"Equal", {"s", "five"}, "y"}}, .list = {five}},
           "it compares the size of the batch");
    refuse(&(model){.node = {shape, {"Slice", {"x", "zero", "s", "axis"}, "y"}}, .list = {zero, axis}},
           "it takes as many as the batch is large");
    refuse(&(model){.node = {shape, {"Mul", {"s", "s"}, "t"}, {"Reshape", {"x", "t"}, "y"}}}, "a dimension is");
    refuse(&(model){.node = {shape, {"Squeeze", {"s"}, "y"}}}, "the output 'y' is the size of the batch");
    refuse(&(model){.node = {{"Size", {"x"}, "y"}}}, "it needs to know a dimension that is open");
}

/* --- several inputs --- */

static void each_input_reads_its_own(void **state)
{
    (void)state;
    static const model m = {.node = {{"Sub", {"x", "z"}, "y"}}, .second = "z"};
    static const float a[] = {5, 7, 9, 11}, b[] = {1, 2, 3, 4}, want[] = {4, 5, 6, 7};
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    /* Whichever of both is the one that the others go with. */
    for (int turned = 0; turned < 2; turned++) {
        stk_engine *engine;
        stk_program *program;
        stk_tensor_desc desc;
        stk_graph *graph = stk_graph_new();
        stk_value one = stk_graph_input(graph, "a", STK_F32, STK_SHAPE(STK_ANY, 2));
        stk_value other = stk_graph_input(graph, "b", STK_F32, STK_SHAPE(STK_ANY, 2));
        stk_onnx_feed more = turned ? (stk_onnx_feed){"x", one} : (stk_onnx_feed){"z", other};
        stk_onnx_part part = {.input = turned ? "z" : NULL, .more = &more, .n_more = 1};
        stk_graph_output(graph, "y", apply(turned ? other : one, &m, &part));
        must(stk_graph_status(graph));
        must(stk_engine_open("cpu", &device, 1, &engine));
        must(stk_engine_compile(engine, stk_graph_clone(graph, 2), &options, &program));
        stk_program_bind(program, stk_program_input(program, "a"), a);
        stk_program_bind(program, stk_program_input(program, "b"), b);
        must(stk_program_run(program));
        assert_memory_equal(stk_program_output(program, "y", &desc), want, sizeof(want));
        stk_engine_close(engine);
        stk_graph_free(graph);
    }
}

static void refuse_inputs(const stk_onnx_feed *more, int n_more, const char *words)
{
    static const model m = {.node = {{"Sub", {"x", "z"}, "y"}}, .second = "z"};
    stk_graph *graph = stk_graph_new();
    stk_onnx_feed given[2];
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, 2));
    stk_value id = stk_graph_input(graph, "id", STK_I32, STK_SHAPE(STK_ANY, 2));
    for (int i = 0; i < n_more; i++)
        given[i] = (stk_onnx_feed){more[i].name, more[i].x.id ? id : x};
    assert_true(apply(x, &m, &(stk_onnx_part){.more = given, .n_more = n_more}).id < 0);
    assert_true(stk_graph_status(graph) != STK_OK);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_graph_free(graph);
}

static void inputs_that_do_not_fit_are_named(void **state)
{
    (void)state;
    const stk_onnx_feed none = {"w", {0}}, ids = {"z", {NULL, 1}}, twice[2] = {{"z", {0}}, {"z", {0}}};
    refuse_inputs(NULL, 0, "several inputs ('x', 'z')");
    refuse_inputs(&none, 1, "the model has no input 'w'");
    refuse_inputs(&ids, 1, "input 'z': the model reads f32, and what comes is i32");
    refuse_inputs(twice, 2, "or it is named twice");
}

/* --- batch norms that train --- */

static void read_variable(stk_engine *engine, const char *name, float *to)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        if (!strcmp(stk_engine_variable(engine, i).name, name)) {
            must(stk_engine_read_variable(engine, i, to));
            return;
        }
    fail_msg("there is no variable '%s'", name);
}

/* Rows [4,2], of which one step is run. */
static void check_norm(const char *producer, bool trains, const float *mean, const float *var)
{
    static const float x[] = {1, 2, 3, 6, 5, 10, 7, 14};
    const model m = {
        .node = {{"BatchNormalization", {"x", "scale", "bias", "mean", "var"}, "y"}},
        .list = {FLOATS("scale", 2, 1, 2), FLOATS("bias", 2, 0, 5), FLOATS("mean", 2, 1, 2), FLOATS("var", 2, 4, 9)},
        .producer = producer};
    float got_mean[2], got_var[2];
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {0};
    stk_graph *graph = stk_graph_new();
    stk_graph_output(graph, "y",
                     apply(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, 2)), &m,
                           &(stk_onnx_part){.trains_batch_norm = trains}));
    must(stk_graph_status(graph));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(graph, 4), &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    must(stk_program_run(program));
    const float *y = stk_program_output(program, "y", &desc);
    static const float of_batch[2][2] = {{4, 5}, {8, 20}}; /* mean and variance of the columns */
    for (int i = 0; i < 8; i++) {
        int c = i % 2;
        float middle = trains ? of_batch[c][0] : c ? 2.0F : 1.0F, spread = trains ? of_batch[c][1] : c ? 9.0F : 4.0F;
        float want = (x[i] - middle) / sqrtf(spread + 1e-5F) * (c ? 2.0F : 1.0F) + (c ? 5.0F : 0.0F);
        if (!(fabsf(y[i] - want) < 1e-5F)) fail_msg("y[%d] is %g, not %g", i, (double)y[i], (double)want);
    }
    read_variable(engine, "mean", got_mean);
    read_variable(engine, "var", got_var);
    for (int c = 0; c < 2; c++)
        if (!(fabsf(got_mean[c] - mean[c]) < 1e-5F && fabsf(got_var[c] - var[c]) < 1e-5F))
            fail_msg("channel %d: %g and %g, not %g and %g", c, (double)got_mean[c], (double)got_var[c],
                     (double)mean[c], (double)var[c]);
    stk_engine_close(engine);
    stk_graph_free(graph);
}

/* ONNX's running variance is of the batch as it is; PyTorch's is the unbiased one, whatever its models say. */
static void batch_norms_train_where_they_shall(void **state)
{
    (void)state;
    check_norm(NULL, false, (const float[]){1, 2}, (const float[]){4, 9});
    check_norm(NULL, true, (const float[]){1.3F, 2.6F}, (const float[]){4.1F, 10.1F});
    check_norm("pytorch", true, (const float[]){1.3F, 2.6F}, (const float[]){4.26666667F, 10.7666667F});
}

/* --- dropouts that train --- */

/* Of 2 * N rows of 4 ones, two for each sample, a quarter at random: what the rows of both `sample`s became. */
static void drop_rows(bool evaluates, const int64_t *sample, int n_runs, float y[][4096])
{
    enum { N = 512 };
    static const model m = {
        .node = {{"Reshape", {"x", "rows"}, "z"}, {"Dropout", {"z", "rate", "one"}, "y"}},
        .list = {INTS("rows", 2, -1, 4), {.name = "rate", .is_quarter = true, .is_float = true}, INTS("one", 0, 1)}};
    static float x[N * 8];
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    int64_t seed = 1;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = evaluates};
    stk_graph *graph = stk_graph_new();
    for (int i = 0; i < N * 8; i++)
        x[i] = 1;
    stk_graph_output(graph, "y", apply(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, 8)), &m, &whole));
    must(stk_graph_status(graph));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(graph, N), &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    if (!evaluates) stk_program_bind(program, stk_program_input(program, "seed"), &seed);
    for (int run = 0; run < n_runs; run++) {
        if (!evaluates) stk_program_bind(program, stk_program_input(program, "sample"), &sample[run]);
        must(stk_program_run(program));
        const float *got = stk_program_output(program, "y", &desc);
        assert_true(stk_shape_equal(desc.shape, STK_SHAPE(2 * N, 4)));
        memcpy(y[run], got, sizeof(y[run]));
    }
    stk_engine_close(engine);
    stk_graph_free(graph);
}

static void dropouts_drop_where_they_train(void **state)
{
    (void)state;
    enum { N = 4096 };
    static float y[2][N];
    int n_zero = 0, n_alike = 0;
    drop_rows(true, NULL, 1, y);
    for (int i = 0; i < N; i++)
        assert_true(y[0][i] == 1);
    drop_rows(false, (const int64_t[]){0, 512}, 2, y);
    for (int i = 0; i < N; i++) {
        n_zero += y[0][i] == 0;
        assert_true(y[0][i] == 0 || fabsf(y[0][i] - 4.0F / 3) < 1e-6F);
    }
    assert_in_range(n_zero, N / 4 - 120, N / 4 + 120);
    /* A batch's last rows are not dropped like the next batch's first, though there are two of each sample. */
    for (int i = 0; i < N / 2; i++)
        n_alike += (y[0][N / 2 + i] == 0) == (y[1][i] == 0);
    assert_true(n_alike < N / 2 * 6 / 8); /* 5/8 by chance */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_have_the_batch_in_them),      cmocka_unit_test(nothing_else_is_made_of_it),
        cmocka_unit_test(each_input_reads_its_own),           cmocka_unit_test(inputs_that_do_not_fit_are_named),
        cmocka_unit_test(batch_norms_train_where_they_shall), cmocka_unit_test(dropouts_drop_where_they_train),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
