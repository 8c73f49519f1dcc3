/* Layers: shapes, names, initialisers, attributes, and errors that name the layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "harness/run_graph.h"
#include "stoker/nn/nn.h"

static stk_model *model; /* rebuilt for each test */

static int set_up(void **state)
{
    (void)state;
    model = stk_model_new("test");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stk_model_free(model);
    return 0;
}

static stk_graph *graph(void)
{
    return stk_model_graph(model);
}

static void check_shape(stk_value x, stk_shape shape)
{
    if (stk_model_status(model) != STK_OK) fail_msg("%s", stk_error_text());
    char have[STK_SHAPE_TEXT_BYTES], want[STK_SHAPE_TEXT_BYTES];
    assert_string_equal(stk_shape_text(stk_value_shape(x), have), stk_shape_text(shape, want));
}

static void check_variable(const char *name, stk_shape shape, bool trainable, stk_init_kind kind, double a)
{
    stk_value x = stk_graph_find(graph(), STK_OP_variable, name);
    if (x.id < 0) fail_msg("there is no variable '%s'", name);
    check_shape(x, shape);
    const stk_attrs *attrs = &stk_value_node(x)->attrs;
    assert_int_equal(attrs->leaf.trainable, trainable);
    assert_int_equal(attrs->leaf.init.kind, kind);
    assert_true(fabs(attrs->leaf.init.a - a) <= 1e-12 * fabs(a));
}

/* The graph has failed with STK_INVALID and this text; starts another model. */
static void check_error(const char *text)
{
    assert_int_equal(stk_model_status(model), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_model_free(model);
    model = stk_model_new("test");
}

static stk_value image(int64_t side, int64_t channels)
{
    return stk_model_input(model, STK_F32, side, side, channels);
}

static void dense_layers(void **state)
{
    (void)state;
    stk_value x = stk_model_input(model, STK_F32, 784);
    x = stk_dense(x, 128);
    check_shape(x, STK_SHAPE(STK_ANY, 128));
    x = stk_dense(x, 10);
    check_shape(x, STK_SHAPE(STK_ANY, 10));
    check_variable("dense.weight", STK_SHAPE(128, 784), true, STK_INIT_UNIFORM, 1 / 28.0);
    check_variable("dense.bias", STK_SHAPE(128), true, STK_INIT_UNIFORM, 1 / 28.0);
    check_variable("dense_1.weight", STK_SHAPE(10, 128), true, STK_INIT_UNIFORM, 1 / sqrt(128));

    stk_dense_with(x, &(stk_dense_config){.units = 6, .no_bias = true, .init = STK_INIT_GLOROT_NORMAL});
    check_variable("dense_2.weight", STK_SHAPE(6, 10), true, STK_INIT_NORMAL, sqrt(2 / 16.0));
    assert_int_equal(stk_graph_find(graph(), STK_OP_variable, "dense_2.bias").id, -1);
    stk_dense_with(x, &(stk_dense_config){.units = 6, .init = STK_INIT_HE_UNIFORM, .name = "head"});
    check_variable("head.weight", STK_SHAPE(6, 10), true, STK_INIT_UNIFORM, sqrt(0.6));
    check_variable("head.bias", STK_SHAPE(6), true, STK_INIT_CONSTANT, 0);

    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 784 * 128 + 128 + 1290 + 60 + 66);
    assert_int_equal(size.n_trainable, size.n_parameters);
}

static void dense_over_more_axes(void **state)
{
    (void)state;
    check_shape(stk_dense(stk_model_input(model, STK_F32, 7, 5, 12), 4), STK_SHAPE(STK_ANY, 7, 5, 4));
}

static void scopes(void **state)
{
    (void)state;
    stk_value x = stk_model_input(model, STK_F32, 4);
    stk_scope_push(graph(), "encoder");
    x = stk_dense(x, 4);
    stk_scope_push(graph(), "block.0");
    x = stk_dense(stk_dense(x, 4), 4);
    stk_scope_pop(graph());
    x = stk_dense(x, 4);
    stk_scope_pop(graph());
    stk_dense(x, 4);
    const char *names[] = {"encoder.dense.weight", "encoder.block.0.dense.weight", "encoder.block.0.dense_1.weight",
                           "encoder.dense_1.weight", "dense.weight"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_variable(names[i], STK_SHAPE(4, 4), true, STK_INIT_UNIFORM, 0.5);

    stk_scope_pop(graph());
    check_error("stk_scope_pop without a stk_scope_push before it");
    stk_scope_push(graph(), "");
    check_error("the name of a scope is empty");
}

static void names_go_on_in_a_clone(void **state)
{
    (void)state;
    stk_value x = stk_dense(stk_model_input(model, STK_F32, 4), 4);
    stk_graph *clone = stk_graph_clone(graph(), STK_ANY);
    stk_dense((stk_value){clone, x.id}, 4);
    assert_int_equal(stk_graph_status(clone), STK_OK);
    assert_true(stk_graph_find(clone, STK_OP_variable, "dense_1.weight").id >= 0);
    stk_graph_free(clone);
}

static void conv2d_padding(void **state)
{
    (void)state;
    stk_value x = image(33, 6);
    check_shape(stk_conv2d(x, 8, 3), STK_SHAPE(STK_ANY, 33, 33, 8));
    check_variable("conv2d.weight", STK_SHAPE(8, 3, 3, 6), true, STK_INIT_UNIFORM, 1 / sqrt(54));
    check_variable("conv2d.bias", STK_SHAPE(8), true, STK_INIT_UNIFORM, 1 / sqrt(54));
    check_shape(stk_conv2d(x, 8, 4), STK_SHAPE(STK_ANY, 33, 33, 8)); /* An even kernel keeps the size too. */
    stk_conv2d_config c = {.filters = 8, .kernel = 5, .padding = -1};
    check_shape(stk_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 29, 29, 8));
    c = (stk_conv2d_config){.filters = 8, .kernel = 3, .dilation = 4};
    check_shape(stk_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 33, 33, 8));
    c = (stk_conv2d_config){.filters = 8, .kernel = 7, .stride = 2, .padding = 3};
    check_shape(stk_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 17, 17, 8));
    c = (stk_conv2d_config){.filters = 9, .groups = 3, .init = STK_INIT_HE_NORMAL_FAN_OUT};
    check_shape(stk_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 33, 33, 9));
    check_variable("conv2d_5.weight", STK_SHAPE(9, 3, 3, 2), true, STK_INIT_NORMAL, sqrt(2 / 81.0));
}

/* TensorFlow's SAME on a 32-pixel image with stride 2 pads 0 before and 1 after; PyTorch's layers 1 and 1. */
static void other_convolutions(void **state)
{
    (void)state;
    stk_value x = stk_model_input(model, STK_F32, 9, 8, 6),
              v = stk_graph_input(graph(), "v", STK_F32, STK_SHAPE(STK_ANY, 5, 6, 7, 2));
    check_shape(stk_conv3d(v, 8, 3), STK_SHAPE(STK_ANY, 5, 6, 7, 8));
    check_variable("conv3d.weight", STK_SHAPE(8, 3, 3, 3, 2), true, STK_INIT_UNIFORM, 1 / sqrt(54));
    stk_conv2d_config c = {.filters = 4, .stride = 2, .padding = -1, .groups = 2, .no_bias = true};
    check_shape(stk_conv3d_with(v, &c), STK_SHAPE(STK_ANY, 2, 2, 3, 4));
    check_shape(stk_depthwise_conv2d(x, 3), STK_SHAPE(STK_ANY, 9, 8, 6));
    check_variable("depthwise_conv2d.weight", STK_SHAPE(6, 3, 3, 1), true, STK_INIT_UNIFORM, 1 / 3.0);
    c = (stk_conv2d_config){.filters = 12, .stride = 2};
    check_shape(stk_depthwise_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 5, 4, 12));
    check_shape(stk_conv2d_transpose(x, 10, 2, 2), STK_SHAPE(STK_ANY, 18, 16, 10));
    check_variable("conv2d_transpose.weight", STK_SHAPE(6, 2, 2, 10), true, STK_INIT_UNIFORM, 1 / sqrt(40));
    check_variable("conv2d_transpose.bias", STK_SHAPE(10), true, STK_INIT_UNIFORM, 1 / sqrt(40));
    stk_conv2d_transpose_config t = {
        .filters = 4, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2};
    check_shape(stk_conv2d_transpose_with(x, &t), STK_SHAPE(STK_ANY, 18, 16, 4));
    check_shape(stk_max_pool3d(v, 2), STK_SHAPE(STK_ANY, 2, 3, 3, 2));
    check_shape(stk_avg_pool3d_with(v, 3, 2, 1), STK_SHAPE(STK_ANY, 3, 3, 4, 2));
    check_shape(stk_avg_pool_with(x, 3, 2, 1), STK_SHAPE(STK_ANY, 5, 4, 6));
    check_shape(stk_global_pool(v), STK_SHAPE(STK_ANY, 2));
}

static void bad_arguments_of_other_convolutions(void **state)
{
    (void)state;
    stk_conv3d(stk_model_input(model, STK_F32, 9, 8, 6), 4, 3);
    check_error("layer 'conv3d': its input is [?,9,8,6], and must be volumes [N,D,H,W,C] of known size");
    stk_conv2d_transpose_config t = {.filters = 4, .kernel = 3, .stride = 2, .output_padding = 2};
    stk_conv2d_transpose_with(stk_model_input(model, STK_F32, 9, 8, 6), &t);
    check_error("layer 'conv2d_transpose': the output padding is 2, and must be 1 or less");
    t = (stk_conv2d_transpose_config){.filters = 4, .kernel = 3, .padding = 16};
    stk_conv2d_transpose_with(stk_model_input(model, STK_F32, 9, 8, 6), &t);
    check_error("layer 'conv2d_transpose': the output of x [?,9,8,6] would have -5 pixels of the height");
    stk_conv2d_config c = {.filters = 8};
    stk_depthwise_conv2d_with(stk_model_input(model, STK_F32, 9, 8, 6), &c);
    check_error("layer 'depthwise_conv2d': 6 input channels and 8 filters do not divide into 6 groups");
}

static void conv2d_like_keras(void **state)
{
    (void)state;
    stk_value x = image(32, 3);
    stk_conv2d_config c = {.filters = 4, .stride = 2, .no_bias = true, .like_keras = true};
    stk_value y = stk_conv2d_with(x, &c);
    check_shape(y, STK_SHAPE(STK_ANY, 16, 16, 4));
    const stk_window *window = &stk_value_node(y)->attrs.window;
    assert_int_equal(window->pad_low[0], 0);
    assert_int_equal(window->pad_high[0], 1);
    c = (stk_conv2d_config){.filters = 4, .kernel = 1, .stride = 3, .no_bias = true, .like_keras = true};
    check_shape(stk_conv2d_with(x, &c), STK_SHAPE(STK_ANY, 11, 11, 4));
}

static void batch_norm(void **state)
{
    (void)state;
    stk_value x = image(8, 5), y = stk_batch_norm(x);
    check_shape(y, STK_SHAPE(STK_ANY, 8, 8, 5));
    check_variable("batch_norm.weight", STK_SHAPE(5), true, STK_INIT_CONSTANT, 1);
    check_variable("batch_norm.bias", STK_SHAPE(5), true, STK_INIT_CONSTANT, 0);
    check_variable("batch_norm.running_mean", STK_SHAPE(5), false, STK_INIT_CONSTANT, 0);
    check_variable("batch_norm.running_var", STK_SHAPE(5), false, STK_INIT_CONSTANT, 1);
    const stk_attrs *attrs = &stk_value_node(y)->attrs;
    assert_true(attrs->batch_norm.momentum == 0.1 && attrs->batch_norm.eps == 1e-5 && attrs->batch_norm.unbiased);
    assert_int_equal(graph()->n_roots, 2);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "batch_norm.running_var" : "batch_norm.running_mean";
        assert_int_equal(graph()->root[i].variable, stk_graph_find(graph(), STK_OP_variable, name).id);
        assert_int_equal(graph()->root[i].value, y.id + 3 + i);
    }
    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 10); /* Running statistics are none. */
    assert_int_equal(size.n_trainable, 10);

    y = stk_batch_norm_with(x, &(stk_batch_norm_config){.like_keras = true, .zero_scale = true, .name = "last"});
    attrs = &stk_value_node(y)->attrs;
    assert_true(attrs->batch_norm.momentum == 0.01 && attrs->batch_norm.eps == 1e-3 && !attrs->batch_norm.unbiased);
    check_variable("last.weight", STK_SHAPE(5), true, STK_INIT_CONSTANT, 0);
    y = stk_batch_norm_with(x, &(stk_batch_norm_config){.like_keras = true, .momentum = 0.75});
    assert_true(stk_value_node(y)->attrs.batch_norm.momentum == 0.25);
}

static void pooling_and_shapes(void **state)
{
    (void)state;
    stk_value x = image(9, 6);
    check_shape(stk_max_pool(x, 2), STK_SHAPE(STK_ANY, 4, 4, 6));
    check_shape(stk_avg_pool(x, 3), STK_SHAPE(STK_ANY, 3, 3, 6));
    check_shape(stk_max_pool_with(x, 3, 2, 1), STK_SHAPE(STK_ANY, 5, 5, 6));
    check_shape(stk_global_pool(x), STK_SHAPE(STK_ANY, 6));
    check_shape(stk_flatten(x), STK_SHAPE(STK_ANY, 9 * 9 * 6));
    check_shape(stk_flatten(stk_global_pool(x)), STK_SHAPE(STK_ANY, 6));
    check_shape(stk_gelu(x), STK_SHAPE(STK_ANY, 9, 9, 6));
    check_shape(stk_gelu_tanh(x), STK_SHAPE(STK_ANY, 9, 9, 6));
    check_shape(stk_silu(x), STK_SHAPE(STK_ANY, 9, 9, 6));
    check_shape(stk_flatten(stk_model_label(model)), STK_SHAPE(STK_ANY, 1));
}

static void layer_norm(void **state)
{
    (void)state;
    stk_value x = stk_model_input(model, STK_F32, 7, 12), y = stk_layer_norm(x);
    check_shape(y, STK_SHAPE(STK_ANY, 7, 12));
    check_variable("layer_norm.weight", STK_SHAPE(12), true, STK_INIT_CONSTANT, 1);
    check_variable("layer_norm.bias", STK_SHAPE(12), true, STK_INIT_CONSTANT, 0);
    assert_true(stk_value_node(y)->attrs.layer_norm.eps == 1e-5);
    y = stk_layer_norm_with(x, &(stk_layer_norm_config){.like_keras = true, .name = "last"});
    assert_true(stk_value_node(y)->attrs.layer_norm.eps == 1e-3);
    y = stk_layer_norm_with(x, &(stk_layer_norm_config){.eps = 1e-12});
    assert_true(stk_value_node(y)->attrs.layer_norm.eps == 1e-12);
    stk_layer_norm_with(x, &(stk_layer_norm_config){.eps = -1});
    check_error("layer 'layer_norm_2': eps is -1, and must be more than 0");
}

static void embedding(void **state)
{
    (void)state;
    stk_value ids = stk_model_input(model, STK_I32, 7);
    check_shape(stk_embedding(ids, 100, 12), STK_SHAPE(STK_ANY, 7, 12));
    check_variable("embedding.weight", STK_SHAPE(100, 12), true, STK_INIT_NORMAL, 1);
    stk_embedding_with(ids, &(stk_embedding_config){.rows = 5, .width = 3, .deviation = 0.02});
    check_variable("embedding_1.weight", STK_SHAPE(5, 3), true, STK_INIT_NORMAL, 0.02);
    stk_embedding_with(ids, &(stk_embedding_config){.rows = 5, .width = 3, .like_keras = true, .name = "wte"});
    check_variable("wte.weight", STK_SHAPE(5, 3), true, STK_INIT_UNIFORM, 0.05);
    stk_embedding(ids, 0, 12);
    check_error("layer 'embedding_2': rows is 0, and must be 1 or more");
    stk_embedding(image(4, 1), 10, 12);
    check_error(
        "layer 'embedding': its input is f32[?,4,4,1], and must be numbers i32[N,...] of fewer than 8 dimensions");
}

/* Recorded: torch.nn.functional.gelu(x, approximate="tanh"). */
static void gelu_tanh(void **state)
{
    (void)state;
    static const float x[4] = {-2, -0.5f, 0.5f, 2};
    static const double want[4] = {-0.04540230591222727, -0.15428599018123766, 0.34571400981876234, 1.9545976940877728};
    graph_run run;
    stk_device *device;
    stk_value in = stk_graph_input(graph(), "x", STK_F32, STK_SHAPE(4));
    stk_graph_output(graph(), "y", stk_gelu_tanh(in));
    assert_int_equal(stk_device_open("reference", NULL, &device), STK_OK);
    assert_int_equal(graph_run_open(graph(), device, &run), STK_OK);
    memcpy(graph_run_leaf(&run, "x"), x, sizeof(x));
    assert_int_equal(graph_run_all(&run), STK_OK);
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)((const float *)graph_run_output(&run, "y"))[i] - want[i]) < 1e-6);
    graph_run_close(&run);
    stk_device_close(device);
}

static void dropout(void **state)
{
    (void)state;
    stk_value x = image(4, 1), y = stk_dropout(x, 0.5), z = stk_dropout(y, 0.25);
    check_shape(z, STK_SHAPE(STK_ANY, 4, 4, 1));
    assert_int_equal(stk_value_node(y)->attrs.dropout.stream, 0);
    assert_int_equal(stk_value_node(z)->attrs.dropout.stream, 1);
    assert_true(stk_value_node(z)->attrs.dropout.rate == 0.25);
    for (int i = 1; i < 3; i++) /* Both have the same inputs. */
        assert_int_equal(stk_value_node(y)->in[i], stk_value_node(z)->in[i]);
    assert_int_equal(stk_value_dtype(stk_graph_find(graph(), STK_OP_input, "seed")), STK_I64);
    assert_int_equal(stk_value_dtype(stk_graph_find(graph(), STK_OP_input, "sample")), STK_I64);
    assert_int_equal(stk_dropout(x, 0).id, x.id);
}

static void losses(void **state)
{
    (void)state;
    stk_value x = stk_model_input(model, STK_F32, 10);
    stk_value label = stk_model_label(model);
    check_shape(stk_cross_entropy(x, label), STK_SHAPE(STK_ANY));
    stk_value smooth = stk_cross_entropy_smooth(x, label, 0.1);
    assert_true(stk_value_node(smooth)->attrs.cross_entropy.smoothing == 0.1);
    check_shape(stk_mean_squared_error(x, stk_square(x)), STK_SHAPE(STK_ANY));
    stk_value one = stk_reduce_sum(x, 2);
    check_shape(stk_mean_squared_error(one, stk_square(one)), STK_SHAPE(STK_ANY));
}

static void model_finds_its_output(void **state)
{
    (void)state;
    assert_int_equal(stk_model_get_loss(model).id, -1);
    assert_int_equal(stk_model_get_output(model).id, -1);
    stk_value logits = stk_dense(stk_model_input(model, STK_F32, 4), 3);
    stk_value loss = stk_scale_by(stk_cross_entropy(logits, stk_model_label(model)), 0.5);
    stk_model_loss(model, loss);
    assert_int_equal(stk_model_get_loss(model).id, loss.id);
    assert_int_equal(stk_model_get_output(model).id, logits.id);
    stk_value other = stk_sigmoid(logits);
    stk_model_output(model, other);
    assert_int_equal(stk_model_get_output(model).id, other.id);
    assert_int_equal(stk_model_status(model), STK_OK);
}

static void bad_arguments_of_dense_and_conv2d(void **state)
{
    (void)state;
    stk_dense(stk_dense(stk_model_input(model, STK_F32, 4), 2), 0);
    check_error("layer 'dense_1': units is 0, and must be 1 or more");
    stk_dense(stk_model_label(model), 5);
    check_error("layer 'dense': its input is i32, and must be f32 or f64");
    stk_dense(stk_model_label_shape(model, STK_F32, (stk_shape){0}), 5);
    check_error("layer 'dense': its input is [?], and must be [N,...,C] with a known C");
    stk_dense_with(stk_dense_with(stk_model_input(model, STK_F32, 4), &(stk_dense_config){.units = 4, .name = "a"}),
                   &(stk_dense_config){.units = 4, .name = "a"});
    check_error("layer 'a': variable 'a.weight' exists already");
    stk_dense_with(image(4, 1), NULL);
    check_error("layer 'dense': units is 0, and must be 1 or more");
    stk_dense(stk_model_get_loss(model), 4);
    check_error("layer 'dense': its input is no value");

    stk_scope_push(graph(), "layer1");
    stk_conv2d(stk_model_input(model, STK_F32, 10), 4, 3);
    check_error("layer 'layer1.conv2d': its input is [?,10], and must be images [N,H,W,C] of known size");
    stk_conv2d(image(8, 3), -1, 3);
    check_error("layer 'conv2d': the number of filters is -1, and must be 1 or more");
    stk_conv2d(image(8, 3), 4, 0);
    check_error("layer 'conv2d': the kernel is -1, and must be 1 or more");
    stk_conv2d_with(image(8, 3), &(stk_conv2d_config){.filters = 4, .groups = 2});
    check_error("layer 'conv2d': 3 input channels and 4 filters do not divide into 2 groups");
    stk_conv2d_with(image(8, 3), &(stk_conv2d_config){.filters = 4, .dilation = INT32_MAX});
    check_error("layer 'conv2d': the dilation is 2147483647, and must be 16384 or less");
    stk_conv2d_with(image(8, 3), &(stk_conv2d_config){.filters = 4, .kernel = 9, .padding = -1});
    assert_int_equal(stk_model_status(model), STK_INVALID);
    assert_ptr_equal(strstr(stk_error_text(), "layer 'conv2d': "), stk_error_text());
    assert_non_null(strstr(stk_error_text(), "9 pixels"));
}

static void bad_arguments_elsewhere(void **state)
{
    (void)state;
    stk_max_pool(image(8, 3), 0);
    check_error("layer 'max_pool': the size is 0, and must be 1 or more");
    stk_max_pool_with(image(8, 3), 3, 2, 2);
    check_error("layer 'max_pool': the padding is 2, and must be 1 or less");
    stk_max_pool_with(image(8, 3), 3, 0, 0);
    check_error("layer 'max_pool': the stride is 0, and must be 1 or more");
    stk_global_pool(stk_model_input(model, STK_F32, 3));
    check_error("layer 'global_pool': its input is [?,3], and must be images [N,H,W,C] of known size");
    stk_dropout(image(8, 3), 1);
    check_error("layer 'dropout': the rate is 1, and must be in [0,1)");
    stk_dropout(image(8, 3), nan(""));
    assert_int_equal(stk_model_status(model), STK_INVALID);
    stk_model_free(model);
    model = stk_model_new("test");
    stk_graph_input(graph(), "seed", STK_F32, STK_SHAPE(2));
    stk_dropout(image(8, 3), 0.5);
    check_error("layer 'dropout': input 'seed' is f32[2], and must be i64[]");
    stk_batch_norm_with(image(8, 3), &(stk_batch_norm_config){.momentum = 2});
    check_error("layer 'batch_norm': momentum is 2, and must be between 0 and 1");
    stk_batch_norm_with(image(8, 3), &(stk_batch_norm_config){.eps = -1});
    check_error("layer 'batch_norm': eps is -1, and must be more than 0");
    stk_cross_entropy(image(8, 3), stk_model_label(model));
    check_error("layer 'cross_entropy': the logits are [?,8,8,3], and must be [N,classes]");
    stk_cross_entropy_smooth(stk_model_input(model, STK_F32, 3), stk_model_label(model), 1);
    check_error("layer 'cross_entropy': the smoothing is 1, and must be in [0,1)");
    stk_cross_entropy(stk_model_input(model, STK_F32, 3), stk_model_get_loss(model));
    check_error("layer 'cross_entropy': the labels are no value");
    stk_value x = stk_model_input(model, STK_F32, 1);
    stk_mean_squared_error(x, stk_reduce_sum(x, 2));
    check_error("layer 'mean_squared_error': the two values are [?,1] and [?], and must both be the same [N,...]");
}

static void bad_models(void **state)
{
    (void)state;
    stk_model_loss(model, image(8, 3));
    check_error("the loss of model 'test' is [?,8,8,3], and must be [N], one for each sample");
    stk_model_loss(model, stk_model_label(model));
    check_error("the loss of model 'test' is i32, and must be a float");
    stk_model_loss(model, stk_model_get_loss(model));
    check_error("the loss is no value of model 'test'");
    stk_model_output(model, (stk_value){NULL, 0});
    check_error("the output is no value of model 'test'");
    image(8, 3);
    image(8, 3);
    check_error("input 'image' exists already");
    stk_model_input(model, STK_F32, STK_ANY, 3);
    check_error("input 'image' has samples [?,3] of an unknown or empty shape");
    stk_model_input_shape(model, STK_F32, (stk_shape){.rank = STK_MAX_RANK});
    check_error("input 'image' has rank 8 for a sample, and may have 0 to 7");
    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 0);
    stk_model_free(NULL);
}

/* After an error, and on no graph at all, everything returns no value and changes nothing. */
static void nothing_happens_after_an_error(void **state)
{
    (void)state;
    stk_value broken = stk_dense(image(4, 1), 0);
    for (int i = 0; i < 2; i++) {
        stk_value x = i ? (stk_value){NULL, -1} : broken;
        stk_value all[] = {stk_dense(x, 1),
                           stk_conv2d(x, 1, 1),
                           stk_batch_norm(x),
                           stk_max_pool(x, 1),
                           stk_avg_pool(x, 1),
                           stk_global_pool(x),
                           stk_flatten(x),
                           stk_dropout(x, 0.5),
                           stk_layer_norm(x),
                           stk_embedding(x, 3, 4),
                           stk_gelu(x),
                           stk_gelu_tanh(x),
                           stk_silu(x),
                           stk_cross_entropy(x, x),
                           stk_mean_squared_error(x, x),
                           stk_mlp(x, NULL, 0, 0, 2),
                           stk_cnn(x, NULL, 0, 2),
                           stk_resnet18(x, 10, STK_STEM_CIFAR)};
        for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
            assert_int_equal(all[j].id, -1);
        stk_scope_push(x.graph, "a");
        stk_scope_pop(x.graph);
        stk_scope_pop(x.graph);
    }
    stk_model_loss(model, broken);
    stk_model_output(model, broken);
    check_error("layer 'dense': units is 0, and must be 1 or more");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(dense_layers),
        CASE(dense_over_more_axes),
        CASE(scopes),
        CASE(names_go_on_in_a_clone),
        CASE(conv2d_padding),
        CASE(conv2d_like_keras),
        CASE(other_convolutions),
        CASE(bad_arguments_of_other_convolutions),
        CASE(batch_norm),
        CASE(layer_norm),
        CASE(embedding),
        CASE(gelu_tanh),
        CASE(pooling_and_shapes),
        CASE(dropout),
        CASE(losses),
        CASE(model_finds_its_output),
        CASE(bad_arguments_of_dense_and_conv2d),
        CASE(bad_arguments_elsewhere),
        CASE(bad_models),
        CASE(nothing_happens_after_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
