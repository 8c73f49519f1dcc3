/* GELU and its gradient of all 65,536 numbers of bf16, compared with the formulas in double. The cpu device has one
 * loop for each (program_whole.c): the forward pass is off by the rounding of its result alone. On the reference device
 * each instruction rounds, and the limits are wide. Together in one group they have a step in common, and the bits of
 * each alone. In f32 the bits are those of each op by itself.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/engine.h"
#include "stoker/nn/layers.h"

enum { N = 65536 };

static uint16_t x[N], dy[N], one[N];

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static double value_of(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float y;
    memcpy(&y, &wide, sizeof(y));
    return (double)y;
}

/* The step between numbers of bf16 next to y. */
static double step_at(double y)
{
    int e;
    frexp(y, &e);
    return ldexp(1, e - 8);
}

static double exact(double a, bool is_tanh, bool is_slope)
{
    double density = exp(-a * a / 2) / sqrt(2 * acos(-1.0)), share = erfc(-a / sqrt(2)) / 2;
    if (is_tanh) {
        double c = sqrt(2 / acos(-1.0)), u = c * (a + 0.044715 * a * a * a);
        share = 1 / (1 + exp(-2 * u));
        density = share * (1 - share) * 2 * c * (1 + 3 * 0.044715 * a * a);
    }
    return is_slope ? share + a * density : a * share;
}

/* What the loops promise: rounding, where the slope of x near its zero adds terms that cancel, and 0 far below 0. */
static void expect_near(double got, double right, double size, double a, const char *name)
{
    double limit = 0.51 * step_at(right) + 1e-4 * size + 1e-36;
    if (!(fabs(got - right) <= limit)) fail_msg("%s of %.9g is %.9g instead of %.9g", name, a, got, right);
}

static void check(bool is_tanh, bool is_whole, const uint16_t *y, const uint16_t *dx)
{
    for (int i = 0; i < N; i++) {
        double a = value_of(x[i]), g = value_of(dy[i]);
        if (isnan(a)) {
            assert_true(isnan(value_of(y[i])) && isnan(value_of(dx[i])));
            continue;
        }
        /* x^2 is not to overflow. */
        if (fabs(a) > 1e18) continue;
        double right = exact(a, is_tanh, false), slope = exact(a, is_tanh, true);
        if (is_whole) {
            expect_near(value_of(y[i]), right, 0, a, is_tanh ? "gelu_tanh" : "gelu");
            expect_near(value_of(dx[i]), g * slope, fabs(g), a, "the gradient");
        } else {
            assert_true(fabs(value_of(y[i]) - right) <= 0.02 * fabs(right) + 0.02);
            assert_true(fabs(value_of(dx[i]) - g * slope) <= fabs(g) * 0.05);
        }
    }
}

typedef struct gelu_case {
    const char *device;
    stk_dtype dtype;
    bool is_tanh, is_remade,
        no_fuse;         /* is_remade: y comes from the backward pass, which makes it once more next to dx */
    void *x, *dy, *ones; /* [N] */
} gelu_case;

static void run(const gelu_case *c, void *y_out, void *dx_out)
{
    stk_engine *engine;
    stk_program *program;
    size_t bytes = N * stk_dtype_bytes(c->dtype);
    stk_graph *graph = stk_graph_new();
    stk_value in = stk_graph_input(graph, "x", c->dtype, STK_SHAPE(N));
    stk_value above = stk_graph_input(graph, "dy", c->dtype, STK_SHAPE(N));
    stk_value y = c->is_tanh ? stk_gelu_tanh(in) : stk_gelu(in);
    stk_value ones = stk_graph_input(graph, "ones", c->dtype, STK_SHAPE(N));
    stk_value loss = stk_reduce_sum(stk_cast_to(stk_mul(stk_mul(y, above), ones), STK_F32), 1);
    /* The gradient is ones times y. */
    stk_graph_output(graph, "y", c->is_remade ? stk_grad(loss, above) : y);
    stk_graph_output(graph, "dx", stk_grad(loss, in));
    stk_compile_options options = {.no_fuse = c->no_fuse};
    expect_ok(stk_engine_open(c->device, NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), c->x);
    stk_program_bind(program, stk_program_input(program, "dy"), c->dy);
    stk_program_bind(program, stk_program_input(program, "ones"), c->ones);
    expect_ok(stk_program_run(program));
    memcpy(y_out, stk_program_output(program, "y", NULL), bytes);
    memcpy(dx_out, stk_program_output(program, "dx", NULL), bytes);
    stk_engine_close(engine);
}

/* Bits, but for those that say which NaN it is. */
static void expect_same(uint16_t a, uint16_t b)
{
    assert_true(a == b || (isnan(value_of(a)) && isnan(value_of(b))));
}

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        x[i] = (uint16_t)i;
        one[i] = 0x3f80;
        /* 1 to 2, of both signs. */
        dy[i] = (uint16_t)((i * 37 & 0x807f) | 0x3f80);
    }
}

static void all_numbers(void **state)
{
    static uint16_t y[N], dx[N], y_beside[N], dx_beside[N];
    (void)state;
    fill();
    for (int is_tanh = 0; is_tanh < 2; is_tanh++) {
        gelu_case c = {.device = "cpu", .dtype = STK_BF16, .is_tanh = is_tanh, .x = x, .dy = dy, .ones = one};
        run(&c, y, dx);
        check(is_tanh, true, y, dx);
        c.is_remade = true;
        run(&c, y_beside, dx_beside);
        for (int i = 0; i < N; i++) {
            expect_same(y_beside[i], y[i]);
            expect_same(dx_beside[i], dx[i]);
        }
        c.device = "reference";
        c.is_remade = false;
        run(&c, y, dx);
        check(is_tanh, false, y, dx);
    }
}

/* --- f32 --- */

static float wide_x[N], wide_dy[N], wide_ones[N];

static void expect_same_f32(float a, float b, float at)
{
    if (memcmp(&a, &b, sizeof(a)) && !(isnan(a) && isnan(b))) fail_msg("%a instead of %a at %a", a, b, at);
}

static void bits_of_each_op_in_f32(void **state)
{
    static float y[N], dx[N], y_alone[N], dx_alone[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        /* Numbers of bf16 with other low bits. */
        uint32_t bits = (uint32_t)i << 16 | ((uint32_t)i * 40503 & 0xffff);
        memcpy(&wide_x[i], &bits, sizeof(bits));
        wide_dy[i] = (float)(1 + i % 977) * (i % 3 ? 0.37f : -0.0113f);
        wide_ones[i] = 1;
    }
    for (int is_tanh = 0; is_tanh < 2; is_tanh++)
        for (int is_remade = 0; is_remade < 2; is_remade++) {
            gelu_case c = {.device = "cpu",
                           .dtype = STK_F32,
                           .is_tanh = is_tanh,
                           .is_remade = is_remade,
                           .x = wide_x,
                           .dy = wide_dy,
                           .ones = wide_ones};
            run(&c, y, dx);
            c.no_fuse = true;
            run(&c, y_alone, dx_alone);
            for (int i = 0; i < N; i++) {
                expect_same_f32(y[i], y_alone[i], wide_x[i]);
                expect_same_f32(dx[i], dx_alone[i], wide_x[i]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_numbers), cmocka_unit_test(bits_of_each_op_in_f32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
