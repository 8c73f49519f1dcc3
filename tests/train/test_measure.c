/* Metrics against scikit-learn's values, recorded in tests/golden: in batches with padded rows, on both devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "graph/query.h"
#include "tensor/shape.h"
#include "train/measure.h"
#include "train/trainer_state.h"

typedef struct measure_case {
    const char *name;
    stk_shape x_shape, y_shape;
    const float *x, *y;
    const int32_t *labels; /* in place of y */
    int n;
    struct {
        stk_measure measure;
        double value;
    } want[8];
    const int32_t *confusion;
    bool ignores;
} measure_case;

#include "golden/measures_golden.h"

enum { BATCH = 16 };

/* Copies up to BATCH rows from the first on, and fills up with the last; returns how many are real. */
static int64_t take_rows(const void *src, stk_shape shape, int64_t first, void *dst)
{
    size_t row = (size_t)stk_shape_product(shape, 1, shape.rank) * 4;
    int64_t left = shape.dim[0] - first, n = left < BATCH ? left : BATCH;
    for (int64_t i = 0; i < BATCH; i++)
        memcpy((char *)dst + (size_t)i * row, (const char *)src + (size_t)(first + (i < n ? i : n - 1)) * row, row);
    return n;
}

static stk_shape rows_of(stk_shape shape)
{
    shape.dim[0] = BATCH;
    return shape;
}

static void run_case(const measure_case *c, const char *device)
{
    stk_device_config config = {.n_threads = 2};
    stk_engine *engine;
    stk_program *program;
    stk_measure_plan plan;
    stk_measure list[STK_MOST_MEASURES];
    stk_graph *graph = stk_graph_new();
    int n = c->n;
    for (int i = 0; i < n; i++)
        list[i] = c->want[i].measure;
    if (c->confusion) list[n++] = (stk_measure){.kind = STK_MEASURE_CONFUSION};
    stk_value x = stk_graph_input(graph, "x", STK_F32, rows_of(c->x_shape));
    stk_value y = stk_graph_input(graph, "y", c->labels ? STK_I32 : STK_F32, rows_of(c->y_shape));
    stk_value w = stk_graph_input(graph, "w", STK_F32, STK_SHAPE(BATCH));
    if (stk_measure_plan_make(list, n, x, y, false, &plan) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
    stk_graph_output(graph, "sums", stk_measure_build(&plan, x, y, w, c->ignores, 255));
    assert_int_equal(stk_engine_open(device, &config, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());

    int64_t n_sums = plan.n_sums;
    double *sums = calloc((size_t)n_sums, sizeof(*sums));
    char *x_rows = malloc((size_t)stk_shape_count(rows_of(c->x_shape)) * 4);
    char *y_rows = malloc((size_t)stk_shape_count(rows_of(c->y_shape)) * 4);
    for (int64_t first = 0; first < c->x_shape.dim[0]; first += BATCH) {
        float weight[BATCH];
        int64_t n_real = take_rows(c->x, c->x_shape, first, x_rows);
        take_rows(c->labels ? (const void *)c->labels : (const void *)c->y, c->y_shape, first, y_rows);
        for (int64_t i = 0; i < BATCH; i++)
            weight[i] = i < n_real ? 1.0f : 0.0f;
        stk_program_bind(program, stk_program_input(program, "x"), x_rows);
        stk_program_bind(program, stk_program_input(program, "y"), y_rows);
        stk_program_bind(program, stk_program_input(program, "w"), weight);
        if (stk_program_run(program) != STK_OK) fail_msg("%s: %s", c->name, stk_error_text());
        stk_tensor_desc desc;
        const double *own = stk_program_output(program, "sums", &desc);
        assert_int_equal(stk_shape_count(desc.shape), n_sums);
        for (int64_t i = 0; i < n_sums; i++)
            sums[i] += own[i];
    }

    stk_measured value[STK_MOST_MEASURES];
    double accuracy = -1;
    stk_measure_finish(&plan, sums, 0, value, &accuracy);
    for (int i = 0, j = 0; i < c->n; i++) {
        bool is_accuracy = c->want[i].measure.kind == STK_MEASURE_ACCURACY;
        double is = is_accuracy ? accuracy : value[j].value;
        const char *name = is_accuracy ? "accuracy" : value[j++].name;
        double allowed = c->want[i].measure.kind == STK_MEASURE_AUC ? 1e-3 : 1e-9;
        if (!(fabs(is - c->want[i].value) <= allowed))
            fail_msg("%s on %s: %s is %.12g, and must be %.12g", c->name, device, name, is, c->want[i].value);
    }
    for (int64_t i = 0; c->confusion && i < plan.n_classes * plan.n_classes; i++)
        assert_int_equal((int64_t)sums[plan.start[STK_MEASURE_CONFUSION] + i], c->confusion[i]);
    free(sums);
    free(x_rows);
    free(y_rows);
    stk_engine_close(engine);
}

static void recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(measure_cases) / sizeof(measure_cases[0]); i++) {
        run_case(&measure_cases[i], "reference");
        run_case(&measure_cases[i], "cpu");
    }
}

static void refused(stk_measure measure, stk_shape x, stk_dtype dtype, stk_shape y, const char *part)
{
    stk_measure_plan plan;
    stk_graph *graph = stk_graph_new();
    stk_value output = stk_graph_input(graph, "x", STK_F32, x), target = stk_graph_input(graph, "y", dtype, y);
    assert_int_equal(stk_measure_plan_make(&measure, 1, output, target, false, &plan), STK_INVALID);
    if (!strstr(stk_error_text(), part)) fail_msg("'%s' is not in '%s'", part, stk_error_text());
    stk_graph_free(graph);
}

static void errors(void **state)
{
    (void)state;
    stk_shape row = STK_SHAPE(4, 3), many = STK_SHAPE(4, 600), list = STK_SHAPE(4);
    refused((stk_measure){.kind = STK_MEASURE_R2}, row, STK_I32, list, "metric 'r2' is of numbers");
    refused((stk_measure){.kind = STK_MEASURE_CONFUSION}, row, STK_F32, row, "metric 'confusion' is of classes");
    refused((stk_measure){.kind = STK_MEASURE_TOP_K, .k = 4}, row, STK_I32, list,
            "k is 4, and must be from 1 to the 3");
    refused((stk_measure){.kind = STK_MEASURE_TOP_K, .k = 0}, row, STK_I32, list,
            "k is 0, and must be from 1 to the 3");
    refused((stk_measure){.kind = STK_MEASURE_CONFUSION}, many, STK_I32, list, "600 classes is too large; 512 at most");
    refused((stk_measure){.kind = STK_MEASURE_AUC}, many, STK_I32, list, "takes 64 classes or labels at most");
    refused((stk_measure){.kind = STK_MEASURE_F1, .average = STK_AVERAGE_BINARY}, row, STK_I32, list,
            "the average 'binary' is for two classes, and there are 3");
    refused((stk_measure){.kind = STK_MEASURE_MSE}, row, STK_F32, list, "cannot compare the output [4,3]");
    refused((stk_measure){.kind = STK_N_MEASURES}, row, STK_I32, list, "metrics: there is no kind 14");
    refused((stk_measure){.kind = STK_MEASURE_F1, .average = (stk_average_kind)3}, row, STK_I32, list,
            "metric 'f1': there is no average 3");
}

/* The target may be the model's first value. */
static void shares_are_known_by_the_target(void **state)
{
    (void)state;
    enum { N = 8, CLASSES = 3 };
    static float x[N][2], y[N][CLASSES];
    const stk_array_field fields[] = {{"x", STK_F32, STK_SHAPE(2), x}, {"shares", STK_F32, STK_SHAPE(CLASSES), y}};
    stk_measure most[STK_MOST_MEASURES];
    for (int i = 0; i < STK_MOST_MEASURES; i++)
        most[i] = (stk_measure){.kind = STK_MEASURE_F1};
    for (int i = 0; i < N; i++)
        y[i][i % CLASSES] = 1;
    for (int first = 0; first < 2; first++) {
        stk_dataset *data = stk_dataset_arrays(N, fields, 2);
        stk_dataset_batch(data, N, true);
        stk_model *model = stk_model_new("shares");
        stk_value target = {NULL, -1};
        if (first) target = stk_model_input_named(model, "shares", STK_F32, STK_SHAPE(CLASSES));
        stk_value logits = stk_dense(stk_model_input_named(model, "x", STK_F32, STK_SHAPE(2)), CLASSES);
        if (!first) target = stk_model_input_named(model, "shares", STK_F32, STK_SHAPE(CLASSES));
        stk_model_loss(model, stk_cross_entropy(logits, target));
        stk_model_output(model, logits);
        stk_model_target(model, target, false, 0);
        stk_trainer *trainer = stk_trainer_new(model, data, stk_sgd(.lr = 0.1));
        stk_trainer_config config = stk_trainer_config_default();
        config.n_threads = 1;
        config.measures = most;
        config.n_measures = first ? STK_MOST_MEASURES : 1;
        stk_trainer_configure(trainer, &config);
        if (stk_trainer_run(trainer, 1) != STK_OK) fail_msg("%s", stk_error_text());
        assert_true(trainer->measures.are_classes);
        stk_trainer_free(trainer);
    }
}

/* A table of counts is neither better nor worse than another. */
static void what_has_no_number_judges_nothing(void **state)
{
    (void)state;
    enum { N = 8, CLASSES = 3 };
    static float x[N][2];
    static int32_t y[N];
    const stk_array_field fields[] = {{"x", STK_F32, STK_SHAPE(2), x}, {"label", STK_I32, {0}, y}};
    const stk_measure measures[] = {{.kind = STK_MEASURE_CONFUSION}, {.kind = STK_MEASURE_F1}};
    stk_dataset *data = stk_dataset_arrays(N, fields, 2);
    stk_dataset_batch(data, N, true);
    stk_model *model = stk_model_new("classes");
    stk_value logits = stk_dense(stk_model_input_named(model, "x", STK_F32, STK_SHAPE(2)), CLASSES);
    stk_value target = stk_model_label(model);
    stk_model_loss(model, stk_cross_entropy(logits, target));
    stk_model_output(model, logits);
    stk_model_target(model, target, false, 0);
    stk_trainer *trainer = stk_trainer_new(model, data, stk_sgd(.lr = 0.1));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.measures = measures;
    config.n_measures = 2;
    config.best_metric = "confusion";
    stk_trainer_configure(trainer, &config);
    assert_int_equal(stk_trainer_run(trainer, 1), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "no 'confusion' is measured, only loss, accuracy, f1"));
    stk_trainer_free(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded), cmocka_unit_test(errors),
                                       cmocka_unit_test(shares_are_known_by_the_target),
                                       cmocka_unit_test(what_has_no_number_judges_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
