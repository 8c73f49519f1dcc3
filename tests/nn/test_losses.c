/* Losses and their gradients against what PyTorch computes, recorded in tests/golden, on both devices; and the errors
 * of arguments that do not fit.
 */
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
#include "stoker/nn/loss.h"
#include "tensor/shape.h"

typedef enum loss_kind { MSE, MAE, HUBER, BCE, CLASSES, DICE, TRIPLET, HARD, SEMI_HARD } loss_kind;

typedef struct loss_case {
    const char *name;
    loss_kind kind;
    stk_shape x_shape, y_shape;
    const float *x, *y, *loss, *grad, *more[1];
    const int32_t *labels;                      /* in place of y */
    double number, smoothing, weights[4], mean; /* of the batch, as PyTorch has it; 0: not recorded */
    int64_t n_weights, ignore_index;
    bool ignores;
} loss_case;

#include "golden/losses_golden.h"

static stk_shape sample_of(stk_shape shape)
{
    stk_shape sample = {.rank = shape.rank - 1};
    for (int i = 0; i < sample.rank; i++)
        sample.dim[i] = shape.dim[1 + i];
    return sample;
}

static stk_value build(const loss_case *c, stk_model *model, stk_value x, stk_value *weight)
{
    stk_value y = stk_model_label_shape(model, c->labels ? STK_I32 : STK_F32, sample_of(c->y_shape));
    stk_cross_entropy_config config = {.smoothing = c->smoothing,
                                       .class_weights = c->n_weights ? c->weights : NULL,
                                       .n_class_weights = c->n_weights,
                                       .ignores = c->ignores,
                                       .ignore_index = c->ignore_index};
    switch (c->kind) {
    case HARD:
    case SEMI_HARD:
        return stk_triplet_mined(x, y, c->kind == HARD ? STK_TRIPLET_HARD : STK_TRIPLET_SEMI_HARD, c->number, weight);
    case MSE: return stk_mean_squared_error(x, y);
    case MAE: return stk_mean_absolute_error(x, y);
    case HUBER: return stk_huber(x, y, c->number);
    case BCE: return stk_binary_cross_entropy(x, y, c->number > 0 ? c->number : 1);
    case CLASSES: return stk_cross_entropy_with(x, y, &config, weight);
    case DICE: return stk_dice(x, y, c->number);
    case TRIPLET:
        return stk_triplet(x, y, stk_model_input_named(model, "more", STK_F32, sample_of(c->y_shape)), c->number);
    }
    return x;
}

static void compare(const loss_case *c, const char *what, const float *is, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - want[i]) <= 1e-5 + 1e-5 * fabs((double)want[i])))
            fail_msg("%s: %s %lld is %.9g, and must be %.9g", c->name, what, (long long)i, (double)is[i],
                     (double)want[i]);
}

static void run_case(const loss_case *c, const char *device)
{
    stk_device_config config = {.n_threads = 2};
    stk_engine *engine;
    stk_program *program;
    stk_model *model = stk_model_new("test");
    stk_value x = stk_model_input_named(model, "x", STK_F32, sample_of(c->x_shape));
    stk_value loss = build(c, model, x, NULL);
    stk_model_loss(model, loss);
    if (stk_model_status(model) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), c->x_shape.dim[0]);
    loss = stk_value_of(graph, loss.id);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "grad", stk_grad(stk_reduce_sum(loss, 0), stk_value_of(graph, x.id)));
    assert_int_equal(stk_engine_open(device, &config, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_program_bind(program, stk_program_input(program, "x"), c->x);
    stk_program_bind(program, stk_program_input(program, "label"),
                     c->labels ? (const void *)c->labels : (const void *)c->y);
    if (c->more[0]) stk_program_bind(program, stk_program_input(program, "more"), c->more[0]);
    if (stk_program_run(program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_tensor_desc desc;
    compare(c, "loss", stk_program_output(program, "loss", &desc), c->loss, c->x_shape.dim[0]);
    assert_int_equal(desc.shape.rank, 1);
    compare(c, "gradient", stk_program_output(program, "grad", &desc), c->grad, stk_shape_count(c->x_shape));
    stk_engine_close(engine);
    stk_model_free(model);
}

static void recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(loss_cases) / sizeof(loss_cases[0]); i++) {
        run_case(&loss_cases[i], "reference");
        run_case(&loss_cases[i], "cpu");
    }
}

/* The losses times what each sample counts for, over their sum, are PyTorch's mean. */
static void run_mean(const loss_case *c, const char *device)
{
    stk_device_config config = {.n_threads = 2};
    stk_engine *engine;
    stk_program *program;
    stk_model *model = stk_model_new("test");
    stk_value weight, x = stk_model_input_named(model, "x", STK_F32, sample_of(c->x_shape));
    stk_value loss = build(c, model, x, &weight);
    if (stk_model_status(model) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), c->x_shape.dim[0]);
    stk_graph_output(graph, "loss", stk_value_of(graph, loss.id));
    if (weight.id >= 0) stk_graph_output(graph, "weight", stk_value_of(graph, weight.id));
    assert_int_equal(stk_engine_open(device, &config, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_program_bind(program, stk_program_input(program, "x"), c->x);
    stk_program_bind(program, stk_program_input(program, "label"),
                     c->labels ? (const void *)c->labels : (const void *)c->y);
    if (stk_program_run(program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_tensor_desc desc;
    const float *each = stk_program_output(program, "loss", &desc), *w = stk_program_output(program, "weight", &desc);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < c->x_shape.dim[0]; i++) {
        sum += (double)each[i] * (w ? (double)w[i] : 1);
        total += w ? (double)w[i] : 1;
    }
    if (!(fabs(sum / total - c->mean) <= 1e-5)) fail_msg("%s: the mean is %g, not %g", c->name, sum / total, c->mean);
    stk_engine_close(engine);
    stk_model_free(model);
}

static void means(void **state)
{
    int n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(loss_cases) / sizeof(loss_cases[0]); i++) {
        if (loss_cases[i].mean == 0) continue;
        run_mean(&loss_cases[i], "reference");
        run_mean(&loss_cases[i], "cpu");
        n++;
    }
    assert_true(n > 6);
}

/* --- errors --- */

static void refused(stk_value (*make)(stk_model *model), const char *part)
{
    stk_model *model = stk_model_new("test");
    make(model);
    assert_int_not_equal(stk_model_status(model), STK_OK);
    if (!strstr(stk_error_text(), part)) fail_msg("'%s' is not in '%s'", part, stk_error_text());
    stk_model_free(model);
}

static stk_value logits(stk_model *model)
{
    return stk_model_input(model, STK_F32, 4, 3);
}

static stk_value other_sizes(stk_model *model)
{
    return stk_cross_entropy_with(logits(model), stk_model_label_shape(model, STK_I32, STK_SHAPE(5)), NULL, NULL);
}

static stk_value few_weights(stk_model *model)
{
    stk_cross_entropy_config c = {.class_weights = (double[]){1, 2}, .n_class_weights = 2};
    return stk_cross_entropy_with(logits(model), stk_model_label_shape(model, STK_I32, STK_SHAPE(4)), &c, NULL);
}

static stk_value negative_weight(stk_model *model)
{
    stk_cross_entropy_config c = {.class_weights = (double[]){1, 2, -1}, .n_class_weights = 3};
    return stk_cross_entropy_with(logits(model), stk_model_label_shape(model, STK_I32, STK_SHAPE(4)), &c, NULL);
}

static stk_value whole_numbers(stk_model *model)
{
    return stk_binary_cross_entropy(logits(model), stk_model_label_shape(model, STK_F32, STK_SHAPE(3)), 0);
}

static stk_value dice_of_others(stk_model *model)
{
    return stk_dice(logits(model), stk_model_label_shape(model, STK_F32, STK_SHAPE(4)), 1);
}

static stk_value no_smooth(stk_model *model)
{
    return stk_dice(logits(model), stk_model_label_shape(model, STK_I32, STK_SHAPE(4)), 0);
}

static stk_value no_positive_weight(stk_model *model)
{
    return stk_binary_cross_entropy(logits(model), stk_model_label_shape(model, STK_F32, STK_SHAPE(4, 3)), 0);
}

static stk_value no_delta(stk_model *model)
{
    return stk_huber(logits(model), stk_model_label_shape(model, STK_F32, STK_SHAPE(4, 3)), 0);
}

static stk_value no_such_mining(stk_model *model)
{
    stk_value x = stk_model_input(model, STK_F32, 3);
    stk_value y = stk_model_label_shape(model, STK_I32, (stk_shape){0});
    return stk_triplet_mined(x, y, (stk_triplet_mining)2, 1, NULL);
}

static stk_value mined_by_shares(stk_model *model)
{
    stk_value x = stk_model_input(model, STK_F32, 3);
    return stk_triplet_mined(x, stk_model_label_shape(model, STK_F32, STK_SHAPE(3)), STK_TRIPLET_HARD, 1, NULL);
}

static stk_value deep_triplet(stk_model *model)
{
    stk_value x = logits(model);
    return stk_triplet(x, x, x, 1);
}

static void errors(void **state)
{
    (void)state;
    refused(other_sizes, "layer 'cross_entropy': the logits are [?,4,3] and the labels i32[?,5]; they must be");
    refused(few_weights, "there are 2 class weights for 3 classes");
    refused(negative_weight, "the weight of class 2 is -1, and must not be negative");
    refused(whole_numbers, "the two values are [?,4,3] and [?,3], and must both be the same [N,...]");
    refused(dice_of_others, "layer 'dice': the logits are [?,4,3] and the labels f32[?,4]");
    refused(no_smooth, "smooth is 0, and must be above 0");
    refused(no_positive_weight, "the positive weight is 0, and must be above 0");
    refused(no_delta, "delta is 0, and must be above 0");
    refused(no_such_mining, "layer 'triplet': there is no mining 2");
    refused(mined_by_shares, "the labels f32[?,3], and must be [N,D] and i32 [N]");
    refused(deep_triplet, "the rows are [?,4,3], and must be [N,D]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded), cmocka_unit_test(means), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
