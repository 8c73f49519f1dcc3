/* Networks by name: parameter counts as torchvision and timm have them, and the logits of torchvision's with the same
 * weights, recorded in tests/golden.
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
#include "graph/query.h"
#include "stoker/nn/models.h"
#include "stoker/nn/networks.h"
#include "stoker/nn/vit.h"
#include "tensor/shape.h"

#include "golden/networks_golden.h"

/* --- sizes --- */

static void keep_size(void *user, const stk_model_line *line)
{
    if (!line->name) *(stk_model_line *)user = *line;
}

static void counts(void **state)
{
    static const struct {
        const char *name;
        int64_t n_parameters;
    } want[] = {{"vgg16", 138357544},
                {"mobilenet_v2", 3504872},
                {"vit: {size: base}", 86567656},
                {"vit: {size: tiny}", 5717416},
                {"resnet50", 25557032}};
    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        stk_model_line all = {0};
        if (stk_known_model_show(want[i].name, false, keep_size, &all) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(all.n_parameters, want[i].n_parameters);
    }
    stk_known_model model;
    for (int i = 0; stk_known_model_get(i, &model); i++) {
        stk_model_line all = {0};
        if (stk_known_model_show(model.name, false, keep_size, &all) != STK_OK)
            fail_msg("%s: %s", model.name, stk_error_text());
        assert_true(all.n_parameters > 0 && all.forward_flops > 0);
    }
    assert_int_equal(stk_known_model_show("resnet5", false, keep_size, NULL), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "did you mean 'resnet50'"));
}

/* --- logits --- */

static double formula(int64_t i, int64_t start)
{
    return (double)((i * 7919 + start) % 1009) / 1009 - 0.5;
}

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static double weight_of(const char *name, stk_shape shape, double v)
{
    if (ends(name, "running_var")) return 1 + fabs(v);
    if (ends(name, "weight") && shape.rank == 1) return 1 + v / 5;
    if (!ends(name, "weight")) return v;
    return 2 * v / sqrt((double)stk_shape_product(shape, 1, shape.rank));
}

/* By the place that the element has in PyTorch's layout: weights of convolutions [O,I,KH,KW] there, [O,KH,KW,I] here.
 */
static void fill(const stk_variable_view *variable)
{
    stk_shape s = variable->view.desc.shape;
    float *data = variable->view.data;
    int64_t start = 0, n = stk_shape_count(s), area = s.rank == 4 ? s.dim[1] * s.dim[2] : 1;
    for (const char *c = variable->name; *c; c++)
        start += (unsigned char)*c;
    for (int64_t i = 0; i < n; i++) {
        int64_t theirs = i;
        if (s.rank == 4) {
            int64_t in = s.dim[3], o = i / (area * in), pixel = i / in % area, c = i % in;
            theirs = (o * in + c) * area + pixel;
        }
        data[i] = (float)weight_of(variable->name, s, formula(theirs, start));
    }
}

static void compare(const char *name, stk_graph *open, stk_value y, int64_t side, const float *want)
{
    stk_device_config config = {.n_threads = 2};
    stk_compile_options options = {.inference = true};
    stk_engine *engine;
    stk_program *program;
    stk_graph *graph = stk_graph_clone(open, 2);
    int64_t n = 2 * side * side * 3;
    float *image = malloc((size_t)n * sizeof(*image));
    for (int64_t i = 0; i < n; i++)
        image[i] = (float)formula(i, 0);
    if (stk_graph_status(graph) != STK_OK) fail_msg("%s: %s", name, stk_error_text());
    stk_graph_output(graph, "y", stk_value_of(graph, y.id));
    assert_int_equal(stk_engine_open("cpu", &config, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, &options, &program) != STK_OK) fail_msg("%s: %s", name, stk_error_text());
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_variable_view variable = stk_engine_variable(engine, i);
        fill(&variable);
    }
    stk_program_bind(program, stk_program_input(program, "image"), image);
    if (stk_program_run(program) != STK_OK) fail_msg("%s: %s", name, stk_error_text());
    stk_tensor_desc desc;
    const float *logits = stk_program_output(program, "y", &desc);
    assert_int_equal(stk_shape_count(desc.shape), 10);
    for (int i = 0; i < 10; i++)
        if (!(fabs((double)logits[i] - want[i]) <= 1e-4 * (1 + fabs((double)want[i]))))
            fail_msg("%s: logit %d is %g, and must be %g", name, i, (double)logits[i], (double)want[i]);
    free(image);
    stk_engine_close(engine);
}

static void logits(void **state)
{
    (void)state;
    stk_vit_config c = {.layers = 2, .heads = 2, .patch = 8, .width = 32, .hidden = 64};
    stk_model *vit = stk_model_new("vit"), *mobilenet = stk_model_new("mobilenet");
    stk_value y = stk_vit(stk_model_input(vit, STK_F32, 32, 32, 3), &c, 5);
    compare("vit", stk_model_graph(vit), y, 32, vit_logits);
    y = stk_mobilenet_v2(stk_model_input(mobilenet, STK_F32, 32, 32, 3), 5, STK_STEM_IMAGENET);
    compare("mobilenet", stk_model_graph(mobilenet), y, 32, mobilenet_logits);
    stk_model_free(vit);
    stk_model_free(mobilenet);
}

/* --- errors --- */

static void refused(stk_value y, const char *part)
{
    assert_int_not_equal(stk_graph_status(y.graph), STK_OK);
    if (!strstr(stk_error_text(), part)) fail_msg("'%s' is not in '%s'", part, stk_error_text());
    stk_graph_free(y.graph);
}

static stk_value image(int64_t h, int64_t w)
{
    return stk_graph_input(stk_graph_new(), "image", STK_F32, STK_SHAPE(STK_ANY, h, w, 3));
}

static void errors(void **state)
{
    (void)state;
    stk_vit_config c;
    int64_t widths[] = {8, 16, 32};
    assert_true(stk_vit_size("tiny", &c) && !stk_vit_size("huge", &c));
    refused(stk_vit(image(32, 40), &c, 5), "layer 'vit': images of 32 x 40 do not divide into patches of 16");
    refused(stk_unet(image(30, 32), widths, 3, 2), "layer 'unet': images of 30 x 32 cannot be halved 2 times");
    refused(stk_autoencoder(image(28, 28), widths, 3, 4), "images of 28 x 28 cannot be halved 3 times");
    refused(stk_cnn3d(image(28, 28), widths, 3, 4), "must be volumes [N,D,H,W,C]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(logits), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
