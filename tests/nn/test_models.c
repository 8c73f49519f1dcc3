/* Whole networks: parameter counts, names, sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "stoker/nn/nn.h"

static void check_status(const stk_model *model)
{
    if (stk_model_status(model) != STK_OK) fail_msg("%s", stk_error_text());
}

static stk_model *make_resnet(int64_t side, int64_t classes, stk_resnet_stem stem)
{
    stk_model *model = stk_model_new("resnet18");
    stk_value x = stk_model_input(model, STK_F32, side, side, 3);
    x = stk_resnet18(x, classes, stem);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    check_status(model);
    assert_int_equal(stk_value_shape(x).dim[1], classes);
    assert_int_equal(stk_graph_verify(stk_model_graph(model)), STK_OK);
    return model;
}

/* torchvision's resnet18(num_classes=10) with a 3x3 stem without pooling, on 32 x 32: 11,173,962 parameters. Its
 * convolutions and the dense layer take 0.5556 G multiply-adds. */
static void resnet18_cifar(void **state)
{
    (void)state;
    stk_model *model = make_resnet(32, 10, STK_STEM_CIFAR);
    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 11173962);
    assert_int_equal(size.n_trainable, 11173962);
    assert_true(size.forward_flops > 1.11e9 && size.forward_flops < 1.13e9);
    stk_model_free(model);
}

/* torchvision's resnet18 as it is: 11,689,512 parameters, 1.814 G multiply-adds on 224 x 224. */
static void resnet18_imagenet(void **state)
{
    (void)state;
    stk_model *model = make_resnet(224, 1000, STK_STEM_IMAGENET);
    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 11689512);
    assert_true(size.forward_flops > 3.628e9 && size.forward_flops < 3.70e9);
    stk_model_free(model);
}

/* torchvision's resnet34, resnet50 and resnet101 as they are; multiply-adds on 224 x 224: 3.664, 4.089 and 7.801 G. */
static void deeper_resnets(void **state)
{
    static const struct {
        int depth;
        int64_t n_parameters;
        double flops;
    } want[] = {{34, 21797672, 7.33e9}, {50, 25557032, 8.18e9}, {101, 44549160, 15.6e9}};
    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        stk_model *model = stk_model_new("resnet");
        stk_value x = stk_resnet(stk_model_input(model, STK_F32, 224, 224, 3), want[i].depth, 1000, STK_STEM_IMAGENET);
        stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
        check_status(model);
        stk_model_size size = stk_model_get_size(model);
        assert_int_equal(size.n_parameters, want[i].n_parameters);
        assert_true(size.forward_flops > want[i].flops && size.forward_flops < 1.03 * want[i].flops);
        stk_model_free(model);
    }
}

/* v1.5: the stride of a bottleneck is in its 3x3 convolution, and the shortcut of the first block only widens. */
static void bottleneck_names(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("resnet50");
    stk_resnet(stk_model_input(model, STK_F32, 224, 224, 3), 50, 1000, STK_STEM_IMAGENET);
    check_status(model);
    const stk_graph *graph = stk_model_graph(model);
    static const struct {
        const char *name;
        int64_t dim[4], stride;
    } want[] = {{"layer1.0.downsample.0.weight", {256, 1, 1, 64}, 1},
                {"layer2.0.conv1.weight", {128, 1, 1, 256}, 1},
                {"layer2.0.conv2.weight", {128, 3, 3, 128}, 2},
                {"layer4.2.conv3.weight", {2048, 1, 1, 512}, 1}};
    for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
        bool found = false;
        for (int i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            if (node->op != STK_OP_conv2d) continue;
            const stk_node *weight = stk_value_node(stk_value_of((stk_graph *)graph, node->in[1]));
            if (strcmp(weight->name, want[k].name)) continue;
            found = true;
            assert_int_equal(node->attrs.window.stride[0], want[k].stride);
            assert_memory_equal(graph->value[node->in[1]].desc.shape.dim, want[k].dim, sizeof(want[k].dim));
        }
        if (!found) fail_msg("no convolution '%s'", want[k].name);
    }
    stk_model_free(model);
}

/* The variables in the order of torchvision's state_dict (without num_batches_tracked). */
static void resnet18_names(void **state)
{
    (void)state;
    static const char *const norm[] = {"weight", "bias", "running_mean", "running_var"};
    char want[128][64];
    int n = 0, i_want = 0;
#define ADD(...) snprintf(want[n++], sizeof(want[0]), __VA_ARGS__)
    ADD("conv1.weight");
    for (int k = 0; k < 4; k++)
        ADD("bn1.%s", norm[k]);
    for (int i = 1; i <= 4; i++) {
        for (int j = 0; j < 2; j++) {
            for (int c = 1; c <= 2; c++) {
                ADD("layer%d.%d.conv%d.weight", i, j, c);
                for (int k = 0; k < 4; k++)
                    ADD("layer%d.%d.bn%d.%s", i, j, c, norm[k]);
            }
            if (i == 1 || j == 1) continue;
            ADD("layer%d.%d.downsample.0.weight", i, j);
            for (int k = 0; k < 4; k++)
                ADD("layer%d.%d.downsample.1.%s", i, j, norm[k]);
        }
    }
    ADD("fc.weight");
    ADD("fc.bias");
#undef ADD
    stk_model *model = make_resnet(32, 10, STK_STEM_CIFAR);
    const stk_graph *graph = stk_model_graph(model);
    for (int i = 0; i < graph->n_nodes; i++) {
        if (graph->node[i].op != STK_OP_variable) continue;
        assert_true(i_want < n);
        assert_string_equal(graph->node[i].name, want[i_want++]);
    }
    assert_int_equal(i_want, n);
    assert_int_equal(n, 122 - 20); /* torchvision's state_dict without its 20 counters of batches */
    stk_model_free(model);
}

/* He normal by fan out for convolutions, PyTorch's default for the dense layer. */
static void resnet18_initialisation(void **state)
{
    (void)state;
    stk_model *model = make_resnet(32, 10, STK_STEM_CIFAR);
    stk_graph *graph = stk_model_graph(model);
    const stk_attrs *attrs = &stk_value_node(stk_graph_find(graph, STK_OP_variable, "layer2.0.conv1.weight"))->attrs;
    assert_int_equal(attrs->leaf.init.kind, STK_INIT_NORMAL);
    assert_true(fabs(attrs->leaf.init.a - sqrt(2 / (9.0 * 128))) < 1e-12);
    attrs = &stk_value_node(stk_graph_find(graph, STK_OP_variable, "fc.weight"))->attrs;
    assert_int_equal(attrs->leaf.init.kind, STK_INIT_UNIFORM);
    assert_true(fabs(attrs->leaf.init.a - 1 / sqrt(512)) < 1e-12);
    stk_model_free(model);
}

static void mlp(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("mlp");
    stk_value x = stk_model_input(model, STK_F32, 28, 28, 1);
    x = stk_mlp(x, (const int64_t[]){512, 256}, 2, 0.2, 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    check_status(model);
    stk_model_size size = stk_model_get_size(model);
    assert_int_equal(size.n_parameters, 784 * 512 + 512 + 512 * 256 + 256 + 2570);
    double products = 2.0 * (784 * 512 + 512 * 256 + 2560);
    assert_true(size.forward_flops >= products && size.forward_flops < 1.05 * products);
    assert_true(stk_graph_find(stk_model_graph(model), STK_OP_variable, "dense_2.bias").id >= 0);
    stk_model_free(model);
}

static void cnn(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("cnn");
    stk_value x = stk_cnn(stk_model_input(model, STK_F32, 32, 32, 3), (const int64_t[]){16, 32}, 2, 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    check_status(model);
    assert_int_equal(stk_model_get_size(model).n_parameters, 16 * 27 + 32 + 32 * 144 + 64 + 330);
    stk_model_free(model);
}

static void check_failure(stk_model *model, const char *text)
{
    assert_int_equal(stk_model_status(model), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_model_free(model);
}

static void bad_networks(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("bad");
    stk_mlp(stk_model_input(model, STK_F32, 4), NULL, 2, 0, 10);
    check_failure(model, "layer 'mlp': the hidden widths are missing");
    model = stk_model_new("bad");
    stk_mlp(stk_model_input(model, STK_F32, 4), (const int64_t[]){8, 0}, 2, 0, 10);
    check_failure(model, "layer 'dense_1': units is 0, and must be 1 or more");
    model = stk_model_new("bad");
    stk_cnn(stk_model_input(model, STK_F32, 2, 2, 1), (const int64_t[]){8, 8, 8}, 0, 10);
    check_failure(model, "layer 'cnn': the number of widths is 0, and must be 1 or more");
    model = stk_model_new("bad");
    stk_cnn(stk_model_input(model, STK_F32, 2, 2, 1), (const int64_t[]){8, 8, 8}, 3, 10);
    assert_int_equal(stk_model_status(model), STK_INVALID);
    assert_ptr_equal(strstr(stk_error_text(), "layer 'max_pool': "), stk_error_text());
    stk_model_free(model);
    model = stk_model_new("bad");
    stk_resnet18(stk_model_input(model, STK_F32, 32, 32, 3), 0, STK_STEM_CIFAR);
    check_failure(model, "layer 'fc': units is 0, and must be 1 or more");
    model = stk_model_new("bad");
    stk_resnet18(stk_model_input(model, STK_F32, 32), 10, STK_STEM_IMAGENET);
    check_failure(model, "layer 'conv1': its input is [?,32], and must be images [N,H,W,C] of known size");
    model = stk_model_new("bad");
    stk_resnet(stk_model_input(model, STK_F32, 32, 32, 3), 19, 10, STK_STEM_CIFAR);
    check_failure(model, "there is no ResNet-19 here; there are 18, 34, 50 and 101");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_cifar),
        cmocka_unit_test(resnet18_imagenet),
        cmocka_unit_test(resnet18_names),
        cmocka_unit_test(deeper_resnets),
        cmocka_unit_test(bottleneck_names),
        cmocka_unit_test(resnet18_initialisation),
        cmocka_unit_test(mlp),
        cmocka_unit_test(cnn),
        cmocka_unit_test(bad_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
