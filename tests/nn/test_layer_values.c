/* Layers made of several ops against what PyTorch computes, values and gradients, on both devices; their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/query.h"
#include "stoker/nn/layers.h"
#include "tensor/shape.h"

typedef enum layer_kind {
    GROUP_NORM,
    NEAREST,
    LINEAR,
    MAX_POOL,
    MEAN,
    RELU6,
    LEAKY,
    ELU,
    HARD_SIGMOID,
    HARD_SWISH,
    SOFTPLUS
} layer_kind;

typedef struct layer_case {
    layer_kind kind;
    double number;
    stk_shape x_shape, y_shape;
    const float *x, *y, *r, *grad;
} layer_case;

#include "golden/layers_golden.h"

static stk_value build(const layer_case *c, stk_value x)
{
    switch (c->kind) {
    case GROUP_NORM: return stk_group_norm(x, (int64_t)c->number);
    case NEAREST: return stk_upsample_nearest(x, (int)c->number);
    case LINEAR: return stk_upsample_linear(x, (int)c->number);
    case MAX_POOL: return stk_global_max_pool(x);
    case MEAN: return stk_global_mean(x);
    case RELU6: return stk_relu6(x);
    case LEAKY: return stk_leaky_relu(x, c->number);
    case ELU: return stk_elu(x);
    case HARD_SIGMOID: return stk_hard_sigmoid(x);
    case HARD_SWISH: return stk_hard_swish(x);
    case SOFTPLUS: return stk_softplus(x);
    }
    return x;
}

static void compare(size_t i_case, const char *what, const float *is, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - want[i]) <= 1e-5 + 1e-5 * fabs((double)want[i])))
            fail_msg("case %zu: %s %lld is %.9g, and must be %.9g", i_case, what, (long long)i, (double)is[i],
                     (double)want[i]);
}

static stk_shape open_batch(stk_shape shape)
{
    shape.dim[0] = STK_ANY;
    return shape;
}

static void run_case(size_t i_case, const char *device)
{
    const layer_case *c = &layer_cases[i_case];
    stk_device_config config = {.n_threads = 2};
    stk_engine *engine;
    stk_program *program;
    stk_graph *open = stk_graph_new();
    stk_value x = stk_graph_input(open, "x", STK_F32, open_batch(c->x_shape)), y = build(c, x);
    stk_value r = stk_graph_input(open, "r", STK_F32, open_batch(c->y_shape));
    stk_graph *graph = stk_graph_clone(open, c->x_shape.dim[0]);
    if (stk_graph_status(graph) != STK_OK) fail_msg("case %zu: %s", i_case, stk_error_text());
    y = stk_value_of(graph, y.id);
    if (!stk_shape_equal(stk_value_shape(y), c->y_shape)) fail_msg("case %zu has another shape", i_case);
    stk_graph_output(graph, "y", y);
    stk_value sum = stk_reduce_sum(stk_mul(y, stk_value_of(graph, r.id)), 0);
    stk_graph_output(graph, "grad", stk_grad(sum, stk_value_of(graph, x.id)));
    assert_int_equal(stk_engine_open(device, &config, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("case %zu: %s", i_case, stk_error_text());
    stk_program_bind(program, stk_program_input(program, "x"), c->x);
    stk_program_bind(program, stk_program_input(program, "r"), c->r);
    if (stk_program_run(program) != STK_OK) fail_msg("case %zu: %s", i_case, stk_error_text());
    stk_tensor_desc desc;
    compare(i_case, "value", stk_program_output(program, "y", &desc), c->y, stk_shape_count(c->y_shape));
    compare(i_case, "gradient", stk_program_output(program, "grad", &desc), c->grad, stk_shape_count(c->x_shape));
    stk_engine_close(engine);
    stk_graph_free(open);
}

static void recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(layer_cases) / sizeof(layer_cases[0]); i++) {
        run_case(i, "reference");
        run_case(i, "cpu");
    }
}

static void refused(const char *part, stk_graph *graph)
{
    assert_int_not_equal(stk_graph_status(graph), STK_OK);
    if (!strstr(stk_error_text(), part)) fail_msg("'%s' is not in '%s'", part, stk_error_text());
    stk_graph_free(graph);
}

static stk_value input(stk_shape shape)
{
    return stk_graph_input(stk_graph_new(), "x", STK_F32, shape);
}

static void errors(void **state)
{
    (void)state;
    refused("layer 'group_norm': 5 channels do not divide into 2 groups",
            stk_group_norm(input(STK_SHAPE(STK_ANY, 4, 5)), 2).graph);
    refused("layer 'group_norm': the number of groups is 6, and must be 5 or less",
            stk_group_norm(input(STK_SHAPE(STK_ANY, 4, 5)), 6).graph);
    refused("layer 'upsample': its input is [?,4], and must be images [N,H,W,C]",
            stk_upsample_linear(input(STK_SHAPE(STK_ANY, 4)), 2).graph);
    refused("layer 'upsample': the scale is 0, and must be 1 or more",
            stk_upsample_nearest(input(STK_SHAPE(STK_ANY, 4, 4, 1)), 0).graph);
    refused("layer 'global_max_pool': its input is [?,4], and must be [N,...,C] with something in between",
            stk_global_max_pool(input(STK_SHAPE(STK_ANY, 4))).graph);
    refused("layer 'leaky_relu': the slope is 1, and must be in [0,1)",
            stk_leaky_relu(input(STK_SHAPE(STK_ANY, 4)), 1).graph);
    refused("layer 'positions': sequences of 9 positions are longer than the 8 that there are",
            stk_positions(input(STK_SHAPE(STK_ANY, 9, 4)), 8, NULL).graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
