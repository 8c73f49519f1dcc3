/* The mean over views of an image: the same as computing each view's output from an image moved by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "stoker/nn/nn.h"
#include "train/views.h"

enum { ROWS = 3, H = 5, W = 6, C = 2, CLASSES = 4, N_IMAGE = ROWS * H * W * C };

/* A network with a batch norm, and somebody who uses its output. */
static stk_graph *make_graph(const stk_views *views)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_batch_norm(stk_conv2d(stk_model_input(model, STK_F32, H, W, C), 3, 3));
    x = stk_dense(stk_flatten(stk_gelu(x)), CLASSES);
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), ROWS);
    stk_graph_output(graph, "y", stk_scale_by(stk_value_of(graph, x.id), 3));
    if (views && stk_views_average(graph, stk_value_of(graph, x.id), views) != STK_OK) fail_msg("%s", stk_error_text());
    stk_model_free(model);
    assert_int_equal(stk_graph_verify(graph), STK_OK);
    return graph;
}

/* Adds share times the output for the image, whose pixels come from moved places. */
static void run(const stk_views *views, const float *image, double share, double *out)
{
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.inference = true};
    assert_int_equal(stk_engine_open("cpu", NULL, 7, &engine), STK_OK);
    if (stk_engine_compile(engine, make_graph(views), &options, &program) != STK_OK) fail_msg("%s", stk_error_text());
    stk_program_bind(program, stk_program_input(program, "image"), image);
    assert_int_equal(stk_program_run(program), STK_OK);
    assert_int_equal(stk_program_wait(program, 0), STK_OK);
    const float *y = stk_program_output(program, "y", NULL);
    for (int i = 0; i < ROWS * CLASSES; i++)
        out[i] += share * (double)y[i];
    stk_engine_close(engine);
}

static int mirror(int i, int n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

/* Its pixel y, x is that of y + shift, x + shift, then left-right. */
static void move(const float *image, int shift, bool flip, float *out)
{
    for (int i = 0; i < N_IMAGE; i++) {
        int c = i % C, x = i / C % W, y = i / C / W % H, row = i / C / W / H;
        int from_x = mirror((flip ? W - 1 - x : x) + shift, W), from_y = mirror(y + shift, H);
        out[i] = image[((row * H + from_y) * W + from_x) * C + c];
    }
}

static void check(stk_views views)
{
    float image[N_IMAGE], moved[N_IMAGE];
    double want[ROWS * CLASSES] = {0}, got[ROWS * CLASSES] = {0};
    for (int i = 0; i < N_IMAGE; i++)
        image[i] = sinf((float)(i * i + 1));
    for (int s = -1; s <= 1; s++)
        for (int flip = 0; flip <= views.flip; flip++) {
            if (s && !views.shift) continue;
            move(image, s * views.shift, flip, moved);
            run(NULL, moved, (views.shift ? (s ? 0.25 : 0.5) : 1) / (views.flip ? 2 : 1), want);
        }
    run(&views, image, 1, got);
    for (int i = 0; i < ROWS * CLASSES; i++)
        if (!(fabs(got[i] - want[i]) < 1e-5)) fail_msg("output %d is %g, not %g", i, got[i], want[i]);
}

static void the_mean_over_views(void **state)
{
    (void)state;
    check((stk_views){.flip = true});
    check((stk_views){.shift = 2});
    check((stk_views){.flip = true, .shift = 1});
    check((stk_views){.flip = false});
}

static void refuse(stk_graph *graph, stk_value output, stk_views views, const char *text)
{
    assert_int_equal(stk_views_average(graph, output, &views), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_graph_free(graph);
}

static void what_has_no_views_is_refused(void **state)
{
    (void)state;
    stk_graph *graph = make_graph(NULL);
    refuse(graph, stk_graph_find_output(graph, "y"), (stk_views){.shift = H},
           "'tta' cannot shift images of 5 x 6 by 5 pixels");
    graph = make_graph(NULL);
    refuse(graph, stk_value_none(graph), (stk_views){.flip = true},
           "'tta' takes the mean of the model's output, and it has none");
    graph = stk_graph_new();
    refuse(graph, stk_graph_input(graph, "image", STK_F32, STK_SHAPE(2, 3)), (stk_views){.flip = true},
           "'tta' is for networks with an input 'image' of [N,H,W,C]");
    graph = stk_graph_new();
    stk_graph_input(graph, "image", STK_F32, STK_SHAPE(2, 3, 3, 1));
    refuse(graph, stk_graph_input(graph, "other", STK_F32, STK_SHAPE(2, 3)), (stk_views){.flip = true},
           "'tta': the output does not depend on the image");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_over_views),
        cmocka_unit_test(what_has_no_views_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
