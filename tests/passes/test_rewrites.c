/* The rewriting passes by their effect on small graphs. That values stay the same is tests/engine/test_engine.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/fused.h"
#include "passes/passes.h"
#include "stoker/nn/nn.h"

static const stk_pass_options options = {0};

static int count_nodes(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static void simplify_folds_and_merges(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    stk_value one = stk_graph_constant(graph, STK_F32, STK_SHAPE(3), 1);
    stk_value a = stk_mul(x, stk_mul(one, one)); /* x * broadcast(1 * 1) is x */
    stk_value b = stk_exp(a), c = stk_exp(x);    /* equal once a is x */
    stk_graph_output(graph, "y", stk_add(b, c));
    stk_log(x); /* dead */
    expect_ok(stk_graph_status(graph));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_unary), 1);
    assert_int_equal(count_nodes(graph, STK_OP_binary), 1);
    assert_int_equal(count_nodes(graph, STK_OP_broadcast), 0);
    stk_graph_free(graph);
}

/* A table that is looked up twice and multiplied with: its gradient is the product's, with the rest added onto it. */
static void simplify_adds_embeddings_in_place(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value table = stk_graph_variable(graph, "table", STK_F32, STK_SHAPE(9, 4), one, true);
    stk_value first = stk_graph_input(graph, "first", STK_I32, STK_SHAPE(5));
    stk_value second = stk_graph_input(graph, "second", STK_I32, STK_SHAPE(5));
    stk_value x = stk_mul(stk_embedding_raw(table, first), stk_embedding_raw(table, second));
    stk_value loss = stk_reduce_sum(stk_exp(stk_matmul(x, table, false, true)), 0);
    stk_graph_output(graph, "dtable", stk_grad(loss, table));
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(stk_graph_verify(graph));
    int n_onto = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n_onto += graph->node[i].op == STK_OP_scatter_add && graph->node[i].n_in == 3;
    assert_int_equal(count_nodes(graph, STK_OP_scatter_add), 2);
    assert_int_equal(n_onto, 2);
    assert_int_equal(count_nodes(graph, STK_OP_binary), 3); /* All are products. */
    stk_graph_free(graph);
}

/* The gradient of what three slices are taken of, in another order than they lie in; and of what is cut in two with a
 * gap, or across both axes, where zeros have to be added. */
static void simplify_puts_slices_together(void **state)
{
    static const struct {
        int64_t start[3][2], stop[3][2];
        int n, n_concat;
    } cases[] = {
        {{{0, 6}, {0, 0}, {0, 2}}, {{4, 9}, {4, 2}, {4, 6}}, 3, 1},
        {{{0, 0}, {0, 3}}, {{4, 2}, {4, 9}}, 2, 0},
        {{{0, 0}, {0, 4}}, {{4, 4}, {4, 8}}, 2, 0},
        {{{0, 0}, {2, 4}}, {{2, 4}, {4, 9}}, 2, 0},
        {{{0, 0}, {0, 4}}, {{4, 5}, {4, 9}}, 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 9)), loss = stk_value_none(graph);
        for (int k = 0; k < cases[i].n; k++) {
            stk_value part = stk_slice(x, cases[i].start[k], cases[i].stop[k], (int64_t[]){1, 1});
            stk_value sum = stk_reduce_sum(stk_square(part), 0);
            loss = k ? stk_add(loss, sum) : sum;
        }
        stk_graph_output(graph, "dx", stk_grad(loss, x));
        expect_ok(pass_autodiff(graph, &options));
        expect_ok(pass_simplify(graph, &options));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_nodes(graph, STK_OP_concat), cases[i].n_concat);
        assert_int_equal(count_nodes(graph, STK_OP_slice_grad), cases[i].n_concat ? 0 : cases[i].n);
        stk_graph_free(graph);
    }
}

/* Only the update reads the decayed weight, so that the copy made there leaves the original without a reader. */
static void recompute_leaves_nothing_unread(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(256, 256), one, true);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 256));
    stk_value decayed = stk_sqrt(stk_square(w));
    stk_value grad = stk_grad(stk_reduce_sum(stk_exp(stk_matmul(x, w, false, true)), 0), w);
    stk_graph_update(graph, w, stk_sub(decayed, grad));
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_recompute(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_unary), 3); /* square, sqrt, exp */
    expect_ok(pass_fuse(graph, &options));
    stk_graph_free(graph);
}

/* A weight's 16 bits, read by the product and by its gradient, are made once a step, cheap as recomputing them is.
 * Under a limit they may be made twice. */
static void recompute_keeps_narrow_weights(void **state)
{
    enum { WIDTH = 1024 };
    static const stk_pass_options cases[] = {{.recompute = "auto", .recompute_share = 0.9, .recompute_most = 99},
                                             {.recompute = "auto", .recompute_most = 99}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        stk_graph *graph = stk_graph_new();
        stk_init one = {STK_INIT_CONSTANT, 1};
        stk_value x = stk_graph_input(graph, "x", STK_BF16, STK_SHAPE(4, WIDTH)), w[3];
        for (int k = 0; k < 3; k++) {
            char name[] = {(char)('a' + k), 0};
            w[k] = stk_graph_variable(graph, name, STK_F32, STK_SHAPE(WIDTH, WIDTH), one, true);
            x = stk_matmul(x, stk_cast_to(w[k], STK_BF16), false, true);
        }
        stk_value loss = stk_reduce_sum(stk_cast_to(x, STK_F32), 0);
        for (int k = 0; k < 3; k++)
            stk_graph_update(graph, w[k], stk_sub(w[k], stk_grad(loss, w[k])));
        expect_ok(pass_autodiff(graph, &options));
        expect_ok(pass_simplify(graph, &options));
        int before = count_nodes(graph, STK_OP_cast);
        expect_ok(pass_recompute(graph, &cases[i]));
        expect_ok(stk_graph_verify(graph));
        if (i == 0)
            assert_int_equal(count_nodes(graph, STK_OP_cast), before);
        else
            assert_true(count_nodes(graph, STK_OP_cast) > before);
        stk_graph_free(graph);
    }
}

/* What lies behind a shape's last dimension does not matter. */
static void simplify_merges_equal_shapes(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_shape shape;
    memset(&shape, 0x5a, sizeof(shape));
    shape.rank = 1;
    shape.dim[0] = 4;
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
    stk_value a = stk_graph_constant(graph, STK_F32, shape, 2), b = stk_graph_constant(graph, STK_F32, STK_SHAPE(4), 2);
    stk_graph_output(graph, "y", stk_mul(stk_add(x, a), stk_sub(x, b)));
    expect_ok(pass_simplify(graph, &options));
    assert_int_equal(count_nodes(graph, STK_OP_constant), 1);
    stk_graph_free(graph);
}

static void simplify_respects_barriers(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
    stk_value a = stk_exp(x), b = stk_exp(x);
    graph->node[graph->value[b.id].node].barrier = true;
    stk_graph_output(graph, "y", stk_add(a, b));
    expect_ok(pass_simplify(graph, &options));
    assert_int_equal(count_nodes(graph, STK_OP_unary), 2);
    stk_graph_free(graph);
}

/* Two dropouts with one mask become one, and only where it is that mask. */
static void remask_draws_once(void **state)
{
    (void)state;
    for (int other_mask = 0; other_mask < 2; other_mask++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
        stk_value seed = stk_graph_input(graph, "seed", STK_I64, (stk_shape){0});
        stk_value sample = stk_graph_input(graph, "sample", STK_I64, (stk_shape){0});
        stk_value relu = stk_relu(x), dropped = stk_dropout_raw(relu, seed, sample, 0.25, 7);
        stk_value loss = stk_reduce_sum(stk_square(dropped), 0);
        stk_graph_output(graph, "dx", stk_grad(loss, x));
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_autodiff(graph, &options));
        expect_ok(pass_simplify(graph, &options));
        assert_int_equal(count_nodes(graph, STK_OP_dropout), 2);
        for (int i = graph->n_nodes - 1; other_mask && i > 0; i--)
            if (graph->node[i].op == STK_OP_dropout) {
                graph->node[i].attrs.dropout.stream = 8;
                break;
            }
        expect_ok(pass_remask(graph, &options));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_nodes(graph, STK_OP_dropout), other_mask ? 2 : 1);
        stk_graph_free(graph);
    }
}

/* Three updates, of which the second is large; the first parameter's average reads its update. */
static stk_graph *make_updates(void)
{
    static const char *const names[] = {"a", "b", "c"};
    stk_graph *graph = stk_graph_new();
    stk_attrs attrs = stk_attrs_zero();
    stk_value rate = stk_graph_input(graph, "rate", STK_F32, (stk_shape){0});
    for (int i = 0; i < 3; i++) {
        stk_shape shape = STK_SHAPE(i == 1 ? 1 << 20 : 4);
        stk_value w = stk_graph_variable(graph, names[i], STK_F32, shape, (stk_init){STK_INIT_CONSTANT, 1}, true);
        stk_value in[] = {w, stk_exp(w), rate};
        stk_value updated = stk_graph_add(graph, STK_OP_sgd_update, &attrs, in, 3);
        stk_graph_update(graph, w, updated);
        if (i == 0) stk_graph_output(graph, "average", stk_exp(updated));
    }
    expect_ok(stk_graph_status(graph));
    return graph;
}

static void small_updates_go_last(void **state)
{
    (void)state;
    stk_device_caps caps = stk_device_caps_all;
    for (int joins = 0; joins < 2; joins++) {
        stk_graph *graph = make_updates();
        caps.joins_updates = joins;
        expect_ok(pass_postpone(graph, &(stk_pass_options){.caps = &caps}));
        expect_ok(stk_graph_verify(graph));
        int place[3], n = 0;
        for (int i = 0; i < graph->n_nodes; i++)
            if (graph->node[i].op == STK_OP_sgd_update) place[n++] = i;
        assert_int_equal(n, 3);
        /* The large one, then the small ones, then the average. */
        assert_int_equal(stk_shape_count(graph->value[graph->node[place[joins ? 0 : 1]].first_out].desc.shape),
                         1 << 20);
        assert_int_equal(place[2] - place[1] == 1 && place[2] == graph->n_nodes - 2, joins);
        stk_graph_free(graph);
    }
}

static int count_wide(const stk_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_values; i++)
        n += graph->value[i].desc.dtype == STK_F64;
    return n;
}

/* A share that counters make is narrowed; nothing is where the caller has given an f64. */
static void narrow_leaves_what_was_given(void **state)
{
    (void)state;
    stk_device_caps caps = stk_device_caps_all;
    for (int given = 0; given < 2; given++) {
        stk_graph *graph = stk_graph_new();
        stk_value count = stk_graph_input(graph, "count", given ? STK_F64 : STK_I64, (stk_shape){0});
        stk_value of = stk_graph_constant(graph, STK_F64, (stk_shape){0}, 3);
        stk_value share = stk_div(given ? count : stk_cast_to(count, STK_F64), of);
        stk_graph_output(graph, "share", stk_add(stk_cast_to(share, STK_F32), stk_cast_to(share, STK_F32)));
        stk_graph_output(graph, "wide", share);
        const int n = count_wide(graph);
        caps.f64 = true;
        expect_ok(pass_narrow(graph, &(stk_pass_options){.caps = &caps}));
        assert_int_equal(count_wide(graph), n);
        caps.f64 = false;
        expect_ok(pass_narrow(graph, &(stk_pass_options){.caps = &caps}));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_wide(graph), given ? n : 0);
        stk_graph_free(graph);
    }
}

/* The ends of two residual blocks, forward and backward; the first one's sum is read by the second, too. */
static void residual_joins_batch_norms(void **state)
{
    (void)state;
    for (int other = 0; other < 3; other++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 8));
        stk_value first = stk_batch_norm(stk_dense(x, 8)), second = stk_batch_norm(stk_dense(x, 8));
        stk_value y = stk_relu(stk_add(first, second));
        stk_value norm = stk_batch_norm(stk_dense(y, 8));
        if (other == 1) norm = stk_square(norm); /* a group of element-wise nodes, in either direction */
        stk_value end = stk_relu(stk_add(norm, y)), loss = stk_reduce_sum(stk_square(stk_dense(end, 8)), 0);
        if (other == 2) stk_graph_output(graph, "norm", norm); /* it is wanted alone as well */
        stk_graph_output(graph, "dx", stk_grad(stk_reduce_sum(loss, 0), x));
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_autodiff(graph, &options));
        expect_ok(pass_simplify(graph, &options));
        expect_ok(pass_fuse_residual(graph, &options));
        expect_ok(stk_graph_verify(graph));
        int n_onto = 0;
        for (int i = 0; i < graph->n_nodes; i++)
            n_onto += graph->node[i].op == STK_OP_batch_norm && graph->node[i].n_in == 6;
        assert_int_equal(n_onto, other ? 1 : 2);
        assert_int_equal(count_nodes(graph, STK_OP_batch_norm_sum_grad), other == 1 ? 0 : 1);
        stk_graph_free(graph);
    }
}

/* What is made on a device that has all is left alone on one that has primitives, and no composite op comes of it. */
static void passes_ask_the_device(void **state)
{
    (void)state;
    static const stk_device_caps none = {.capture = false};
    const stk_pass_options lacking = {.caps = &none, .n_micro = 2};
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 6, 6, 3));
    stk_value a = stk_relu(stk_batch_norm(stk_relu(stk_conv2d(x, 3, 3))));
    stk_value y = stk_relu(stk_add(stk_batch_norm(a), a)), rows = stk_reshape(y, STK_SHAPE(24, 18));
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(5, 18), (stk_init){STK_INIT_UNIFORM, 1}, true);
    stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(24));
    stk_value loss = stk_linear_cross_entropy_raw(rows, w, labels, stk_linear_cross_entropy_default());
    loss = stk_reduce_sum(loss, 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "dw", stk_grad(loss, w));
    stk_graph_output(graph, "dx", stk_grad(loss, x));
    expect_ok(pass_fuse_norm_relu(graph, &lacking));
    expect_ok(pass_accumulate(graph, &lacking));
    expect_ok(pass_autodiff(graph, &lacking));
    expect_ok(pass_simplify(graph, &lacking));
    int n_losses = count_nodes(graph, STK_OP_linear_cross_entropy);
    expect_ok(pass_fuse_loss(graph, &lacking));
    assert_int_equal(count_nodes(graph, STK_OP_linear_cross_entropy), n_losses);
    expect_ok(pass_carry(graph, &lacking));
    assert_int_equal(count_nodes(graph, STK_OP_carry), 0);
    for (int decomposed = 0; decomposed < 2; decomposed++) {
        if (decomposed) expect_ok(pass_decompose(graph, &lacking));
        expect_ok(pass_fuse_residual(graph, &lacking));
        expect_ok(pass_fuse_epilogue(graph, &lacking));
        expect_ok(pass_fuse(graph, &lacking));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_nodes(graph, STK_OP_batch_norm_sum_grad) + count_nodes(graph, STK_OP_fused), 0);
        for (int i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            if (node->op == STK_OP_conv2d) assert_true(node->n_in == 2 && !node->attrs.activation);
            if (node->op == STK_OP_batch_norm) assert_true(node->n_in == 5 && !node->attrs.batch_norm.relu);
            assert_true(!decomposed || stk_op_is_primitive(node->op));
        }
    }
    stk_graph_free(graph);
}

/* The bias of a dense layer, in the orders and precisions in which it comes. */
static void epilogue_adds_biases(void **state)
{
    (void)state;
    enum { PLAIN, BIAS_FIRST, HALF, ROWS, PRODUCT_READ, N };
    for (int kind = 0; kind < N; kind++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 8));
        stk_value w = stk_graph_input(graph, "w", STK_F32, STK_SHAPE(4, 8));
        stk_value bias = stk_graph_input(graph, "bias", STK_F32, kind == ROWS ? STK_SHAPE(4, 1) : STK_SHAPE(4));
        stk_value b = kind == HALF ? stk_cast_to(bias, STK_BF16) : bias;
        stk_value c = kind == HALF ? stk_matmul(stk_cast_to(x, STK_BF16), stk_cast_to(w, STK_BF16), false, true)
                                   : stk_matmul(x, w, false, true);
        if (kind == PRODUCT_READ) stk_graph_output(graph, "c", c);
        stk_graph_output(graph, "y", kind == BIAS_FIRST ? stk_add(b, c) : stk_add(c, b));
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_fuse_epilogue(graph, &options));
        expect_ok(stk_graph_verify(graph));
        bool joined = kind != ROWS && kind != PRODUCT_READ;
        assert_int_equal(count_nodes(graph, STK_OP_binary), joined ? 0 : 1);
        for (int i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            if (node->op != STK_OP_matmul) continue;
            assert_int_equal(node->n_in, joined ? 3 : 2);
            if (joined) assert_string_equal(graph->node[graph->value[node->in[2]].node].name, "bias");
        }
        stk_graph_free(graph);
    }
}

/* The bias of a convolution and the ReLU behind it; what else reads them keeps them apart. */
static void epilogue_finishes_convolutions(void **state)
{
    (void)state;
    enum { PLAIN, HALF, VOLUME, NO_BIAS, TWICE, SUM_READ, CONV_READ, GRAD, N };
    for (int kind = 0; kind < N; kind++) {
        stk_graph *graph = stk_graph_new();
        bool is_half = kind == HALF, is_volume = kind == VOLUME;
        stk_shape image = is_volume ? STK_SHAPE(2, 4, 4, 4, 3) : STK_SHAPE(2, 4, 4, 3);
        stk_shape kernel = is_volume ? STK_SHAPE(5, 1, 1, 1, 3) : STK_SHAPE(5, 1, 1, 3);
        stk_window window = stk_window_make(1, 1);
        if (is_volume) window.kernel[2] = window.stride[2] = window.dilation[2] = 1;
        stk_value x = stk_graph_input(graph, "x", STK_F32, image), w = stk_graph_input(graph, "w", STK_F32, kernel);
        stk_value bias = stk_graph_input(graph, "bias", STK_F32, STK_SHAPE(5));
        if (is_half) x = stk_cast_to(x, STK_BF16), w = stk_cast_to(w, STK_BF16);
        stk_value c = is_volume ? stk_conv3d_raw(x, w, window) : stk_conv2d_raw(x, w, window);
        stk_value sum = kind == NO_BIAS ? c : stk_add(c, is_half ? stk_cast_to(bias, STK_BF16) : bias);
        stk_value y = stk_relu(sum);
        if (kind == TWICE) y = stk_relu(y);
        if (kind == CONV_READ) stk_graph_output(graph, "c", c);
        if (kind == SUM_READ) stk_graph_output(graph, "sum", sum);
        if (kind == GRAD) {
            stk_value loss = stk_reduce_sum(stk_mul(y, y), 15u);
            stk_graph_output(graph, "dw", stk_grad(loss, w));
            expect_ok(pass_autodiff(graph, &options));
        }
        stk_graph_output(graph, "y", y);
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_fuse_epilogue(graph, &options));
        expect_ok(stk_graph_verify(graph));
        const stk_node *conv = NULL;
        for (int i = 0; i < graph->n_nodes && !conv; i++)
            if (graph->node[i].op == STK_OP_conv2d || graph->node[i].op == STK_OP_conv3d) conv = &graph->node[i];
        bool has_bias = kind != NO_BIAS && kind != CONV_READ, has_relu = kind != SUM_READ && kind != CONV_READ;
        assert_int_equal(conv->n_in, has_bias ? 3 : 2);
        assert_int_equal(conv->attrs.activation, has_relu ? STK_ACTIVATION_RELU : STK_ACTIVATION_NONE);
        assert_int_equal(count_nodes(graph, STK_OP_unary), has_relu ? kind == TWICE : 1);
        stk_graph_free(graph);
    }
}

/* A transposed convolution likewise, but for a bias that a group behind it adds while it reads all, or in 16 bits. */
static void epilogue_finishes_transposed(void **state)
{
    (void)state;
    enum { PLAIN, VOLUME, NO_RELU, FOR_GROUP, HALF, N };
    for (int kind = 0; kind < N; kind++) {
        stk_graph *graph = stk_graph_new();
        bool is_volume = kind == VOLUME;
        stk_shape image = is_volume ? STK_SHAPE(2, 4, 4, 4, 3) : STK_SHAPE(2, 4, 4, 3);
        stk_shape kernel = is_volume ? STK_SHAPE(3, 1, 1, 1, 5) : STK_SHAPE(3, 1, 1, 5);
        stk_window window = stk_window_make(1, 1);
        if (is_volume) window.kernel[2] = window.stride[2] = window.dilation[2] = 1;
        const int32_t more[3] = {0};
        stk_value x = stk_graph_input(graph, "x", STK_F32, image), w = stk_graph_input(graph, "w", STK_F32, kernel);
        stk_value bias = stk_graph_input(graph, "bias", STK_F32, STK_SHAPE(5));
        if (kind == HALF) x = stk_cast_to(x, STK_BF16), w = stk_cast_to(w, STK_BF16);
        stk_value c =
            is_volume ? stk_conv3d_transpose_raw(x, w, window, more) : stk_conv2d_transpose_raw(x, w, window, more);
        stk_value y = stk_add(c, stk_cast_to(bias, stk_value_dtype(c)));
        if (kind == FOR_GROUP) y = stk_exp(y);
        if (kind != NO_RELU && kind != FOR_GROUP) y = stk_relu(y);
        stk_graph_output(graph, "y", y);
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_fuse_epilogue(graph, &options));
        expect_ok(stk_graph_verify(graph));
        const stk_node *conv = stk_value_node(stk_graph_find_output(graph, "y"));
        bool is_conv = conv->op == STK_OP_conv2d_grad_data || conv->op == STK_OP_conv3d_grad_data;
        assert_int_equal(is_conv, kind < FOR_GROUP);
        assert_int_equal(count_nodes(graph, STK_OP_binary), kind >= FOR_GROUP);
        if (is_conv) assert_int_equal(conv->n_in, 3);
        if (is_conv)
            assert_int_equal(conv->attrs.activation, kind == NO_RELU ? STK_ACTIVATION_NONE : STK_ACTIVATION_RELU);
        stk_graph_free(graph);
    }
}

static void autodiff_leaves_no_marks(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(3, 2), (stk_init){STK_INIT_CONSTANT, 1}, true);
    stk_value unused = stk_graph_variable(graph, "u", STK_F32, STK_SHAPE(2), (stk_init){STK_INIT_CONSTANT, 1}, true);
    stk_value loss = stk_reduce_sum(stk_square(stk_matmul(x, w, false, false)), 0);
    stk_graph_output(graph, "dw", stk_grad(loss, w));
    stk_graph_output(graph, "du", stk_grad(loss, unused));
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_grad), 0);
    assert_int_equal(count_nodes(graph, STK_OP_matmul), 2);
    stk_value du = stk_graph_find_output(graph, "du");
    assert_int_equal(stk_value_node(du)->op, STK_OP_constant);
    stk_graph_free(graph);
}

/* relu(x * s + t) twice used, with a matmul in between: p -> matmul -> back into the group must not be fused. */
static void fuse_makes_no_cycle(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 4));
    stk_value bias = stk_graph_input(graph, "bias", STK_F32, STK_SHAPE(4));
    stk_value p = stk_relu(stk_add(x, bias));
    stk_value q = stk_matmul(p, x, false, false);
    stk_graph_output(graph, "y", stk_add(stk_exp(p), stk_mul(q, q)));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_fuse(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_matmul), 1);
    assert_int_equal(count_nodes(graph, STK_OP_fused), 2);
    assert_int_equal(count_nodes(graph, STK_OP_broadcast), 0);
    stk_graph_free(graph);
}

/* p joins what a product reads first; the group that also reads p and waits for another product joins that. */
static void fuse_joins_groups(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 4));
    stk_value w = stk_graph_input(graph, "w", STK_F32, STK_SHAPE(4, 4));
    stk_value p = stk_exp(x), q = stk_mul(p, x);
    stk_value other = stk_matmul(x, w, false, false);
    stk_graph_output(graph, "y", stk_matmul(q, w, false, true));
    stk_graph_output(graph, "z", stk_mul(stk_add(other, p), other));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_fuse(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_fused), 1);
    assert_int_equal(count_nodes(graph, STK_OP_unary) + count_nodes(graph, STK_OP_binary), 0);
    stk_graph_free(graph);
}

static void inference_drops_updates_and_dropout(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1}, zero = {STK_INIT_CONSTANT, 0};
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    stk_value seed = stk_graph_input(graph, "seed", STK_I64, (stk_shape){0});
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4, 3), one, true);
    stk_value in[5] = {x, stk_graph_variable(graph, "scale", STK_F32, STK_SHAPE(3), one, true),
                       stk_graph_variable(graph, "bias", STK_F32, STK_SHAPE(3), zero, true),
                       stk_graph_variable(graph, "mean", STK_F32, STK_SHAPE(3), zero, false),
                       stk_graph_variable(graph, "var", STK_F32, STK_SHAPE(3), one, false)};
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = 1e-5;
    attrs.batch_norm.momentum = 0.1;
    stk_value y = stk_graph_add(graph, STK_OP_batch_norm, &attrs, in, 5);
    y = stk_dropout_raw(stk_relu(y), seed, seed, 0.5, 0);
    stk_graph_update(graph, w, stk_add(w, y));
    stk_graph_output(graph, "y", y);
    expect_ok(stk_graph_status(graph));
    expect_ok(pass_inference(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_batch_norm), 0);
    assert_int_equal(count_nodes(graph, STK_OP_dropout), 0);
    assert_int_equal(graph->n_roots, 1);
    assert_int_equal(stk_graph_find(graph, STK_OP_variable, "w").id, -1);
    stk_graph_free(graph);
}

/* Few weights are scaled by the batch norm's factor, also before a bias, which leaves no sum of its own; many ones are
 * not, nor those of a convolution, or of its sum, that is read. */
static void inference_scales_convolutions(void **state)
{
    (void)state;
    enum { FEW, BIAS, BIAS_IN_16_BITS, MANY, READ, SUM_READ, N };
    for (int kind = 0; kind < N; kind++) {
        stk_graph *graph = stk_graph_new();
        stk_dtype dtype = kind == BIAS_IN_16_BITS ? STK_BF16 : STK_F32;
        int64_t side = kind == MANY ? 1 : 4;
        stk_value x = stk_graph_input(graph, "x", dtype, STK_SHAPE(4, side, side, 3));
        stk_value w = stk_graph_input(graph, "w", dtype, STK_SHAPE(5, 1, 1, 3));
        stk_value conv = stk_conv2d_raw(x, w, stk_window_make(1, 1)), in[5] = {conv};
        stk_value own = stk_cast_to(stk_graph_input(graph, "own", STK_F32, STK_SHAPE(5)), dtype);
        if (kind == BIAS || kind == BIAS_IN_16_BITS) in[0] = stk_add(conv, own);
        if (kind == SUM_READ) in[0] = stk_add(own, conv);
        const char *names[] = {"", "scale", "bias", "mean", "var"};
        for (int i = 1; i < 5; i++)
            in[i] = stk_graph_input(graph, names[i], STK_F32, STK_SHAPE(5));
        stk_attrs attrs = stk_attrs_zero();
        attrs.batch_norm.eps = 1e-5;
        stk_graph_output(graph, "y", stk_relu(stk_graph_add(graph, STK_OP_batch_norm, &attrs, in, 5)));
        if (kind == READ || kind == SUM_READ) stk_graph_output(graph, "conv", in[0]);
        expect_ok(stk_graph_status(graph));
        expect_ok(pass_inference(graph, &options));
        expect_ok(pass_fuse_epilogue(graph, &options));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_nodes(graph, STK_OP_conv2d), 1);
        for (int i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            stk_shape y = graph->value[node->first_out].desc.shape;
            assert_false(node->op == STK_OP_binary && y.rank == 4 && y.dim[0] == 4 && kind <= BIAS_IN_16_BITS);
            if (node->op != STK_OP_conv2d) continue;
            bool is_scaled = kind <= BIAS_IN_16_BITS;
            assert_int_equal(stk_graph_find(graph, STK_OP_input, "w").id != node->in[1], is_scaled);
            assert_int_equal(node->n_in, is_scaled || kind == SUM_READ ? 3 : 2);
            assert_int_equal(node->attrs.activation, is_scaled ? STK_ACTIVATION_RELU : STK_ACTIVATION_NONE);
        }
        stk_graph_free(graph);
    }
}

static void absorb_takes_relu(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value in[5] = {stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3))};
    const char *names[] = {"", "scale", "bias", "mean", "var"};
    for (int i = 1; i < 5; i++)
        in[i] = stk_graph_variable(graph, names[i], STK_F32, STK_SHAPE(3), one, i < 3);
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = 1e-5;
    stk_value y = stk_relu(stk_graph_add(graph, STK_OP_batch_norm, &attrs, in, 5));
    stk_graph_output(graph, "y", y);
    expect_ok(pass_fuse_norm_relu(graph, &options));
    assert_int_equal(count_nodes(graph, STK_OP_unary), 0);
    assert_true(stk_value_node(stk_graph_find_output(graph, "y"))->attrs.batch_norm.relu);
    stk_graph_free(graph);
}

/* The input is u8; what was read of it before reads the sum behind it. An input of another name is left alone. */
static void pixels_are_unpacked(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value image = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(2, 4, 4, 3));
    stk_graph_output(graph, "y", stk_exp(image));
    stk_graph_output(graph, "image", image);
    stk_pixel_scale scale = {.input = "mask", .n = 3, .a = {1, 2, 3}, .b = {4, 5, 6}};
    expect_ok(pass_unpack_pixels(graph, &(stk_pass_options){.pixels = &scale}));
    assert_int_equal(count_nodes(graph, STK_OP_cast), 0);
    scale.input = "image";
    expect_ok(pass_unpack_pixels(graph, &(stk_pass_options){.pixels = &scale}));
    expect_ok(stk_graph_verify(graph));
    image = stk_graph_find(graph, STK_OP_input, "image");
    assert_int_equal(stk_value_dtype(image), STK_U8);
    assert_int_equal(count_nodes(graph, STK_OP_cast), 1);
    assert_int_equal(count_nodes(graph, STK_OP_binary), 2);
    stk_value shown = stk_graph_find_output(graph, "image");
    assert_int_equal(stk_value_dtype(shown), STK_F32);
    assert_int_equal(stk_value_node(stk_graph_find_output(graph, "y"))->in[0], shown.id);
    scale.n = 2;
    assert_int_equal(pass_unpack_pixels(graph, &(stk_pass_options){.pixels = &scale}), STK_INTERNAL);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simplify_folds_and_merges),
        cmocka_unit_test(simplify_adds_embeddings_in_place),
        cmocka_unit_test(simplify_puts_slices_together),
        cmocka_unit_test(recompute_leaves_nothing_unread),
        cmocka_unit_test(recompute_keeps_narrow_weights),
        cmocka_unit_test(simplify_merges_equal_shapes),
        cmocka_unit_test(simplify_respects_barriers),
        cmocka_unit_test(remask_draws_once),
        cmocka_unit_test(small_updates_go_last),
        cmocka_unit_test(narrow_leaves_what_was_given),
        cmocka_unit_test(residual_joins_batch_norms),
        cmocka_unit_test(passes_ask_the_device),
        cmocka_unit_test(epilogue_adds_biases),
        cmocka_unit_test(epilogue_finishes_convolutions),
        cmocka_unit_test(epilogue_finishes_transposed),
        cmocka_unit_test(autodiff_leaves_no_marks),
        cmocka_unit_test(fuse_makes_no_cycle),
        cmocka_unit_test(fuse_joins_groups),
        cmocka_unit_test(inference_scales_convolutions),
        cmocka_unit_test(absorb_takes_relu),
        cmocka_unit_test(pixels_are_unpacked),
        cmocka_unit_test(inference_drops_updates_and_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
