/* What a program tells of its entries: their cost, however many inputs a node has, and which of them are copies of
 * variables and packed weights.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/breakdown.h"
#include "engine/engine.h"
#include "engine/profile.h"
#include "engine/program.h"
#include "graph/layers.h"
#include "graph/query.h"
#include "passes/plan_offsets.h"

enum { MOST_PARTS = 200, WIDTH = 6 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* n_parts inputs joined. */
static stk_program *compile_joined(stk_engine *engine, int n_parts)
{
    stk_graph *graph = stk_graph_new();
    stk_value part[MOST_PARTS];
    stk_program *program;
    for (int i = 0; i < n_parts; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%d", i);
        part[i] = stk_graph_input(graph, name, STK_F32, STK_SHAPE(2, WIDTH));
    }
    stk_graph_output(graph, "joined", stk_concat(part, n_parts, 0));
    expect_ok(stk_engine_compile(engine, graph, NULL, &program));
    return program;
}

/* Each part costs the same, the 65th as the first. */
static void nodes_of_many_inputs_are_counted(void **state)
{
    (void)state;
    static const int counts[] = {1, 15, 30, 31, 32, 63, 64, 65, 66, MOST_PARTS, MOST_PARTS};
    stk_engine *engine;
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    stk_program_info one = stk_program_get_info(compile_joined(engine, 2));
    stk_program_info two = stk_program_get_info(compile_joined(engine, 3));
    double flops = two.flops - one.flops, bytes = two.bytes - one.bytes;
    assert_true(flops >= 0 && bytes >= 2 * 2 * WIDTH * 4); /* read, and written */
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        if (counts[i] < 2) continue;
        stk_program *program = compile_joined(engine, counts[i]);
        stk_program_info info = stk_program_get_info(program);
        assert_true(info.flops == one.flops + flops * (counts[i] - 2));
        assert_true(info.bytes == one.bytes + bytes * (counts[i] - 2));
        assert_int_equal(info.used_bytes, info.arena_bytes);
        stk_memory_plan plan;
        expect_ok(stk_program_break_down(program, &plan));
        assert_int_equal(plan.program_bytes, info.program_bytes);
        /* The last is one too many for what is not counted. */
        if (i + 1 == sizeof(counts) / sizeof(*counts)) assert_true(plan.program_bytes > 0);
        assert_true(plan.flops == info.flops && plan.bytes == info.bytes);
        assert_int_equal(plan.arena_bytes, info.arena_bytes);
        assert_int_equal(plan.lower_bound_bytes, info.lower_bound_bytes);
        assert_int_equal(plan.program_bytes, info.program_bytes);
        assert_int_equal(plan.n_micro, info.n_micro);
        stk_memory_plan_free(&plan);
        stk_device_speed speed = {.flops_per_s = 1e30, .bytes_per_s = 1};
        assert_true(stk_program_expect_s(program, &speed) == info.bytes);
        const stk_trace_kernel *about;
        int n;
        double told = 0;
        expect_ok(stk_program_get_about(program, &about, &n));
        for (int e = 0; e < n; e++) {
            assert_true(about[e].shape[0] != 0);
            told += about[e].bytes;
        }
        assert_true(told == info.bytes);
    }
    stk_engine_close(engine);
}

/* What is alive at a node is what the plan keeps there: the most of it is the plan's bound. */
static void what_is_alive_is_told(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_graph *graph = stk_graph_new();
    const stk_trace_kernel *about;
    int n;
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(WIDTH, WIDTH)), y = x;
    for (int i = 0; i < 4; i++)
        y = stk_matmul(y, i % 2 ? x : y, false, i == 2);
    stk_graph_output(graph, "y", stk_matmul(y, stk_softmax(x), false, false));
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, NULL, &program));
    expect_ok(stk_program_get_about(program, &about, &n));
    int64_t most = 0;
    for (int e = 0; e < n; e++) {
        int64_t alive = 0;
        for (int32_t i = 0; i < program->plan.n_buffers; i++) {
            const stk_plan_buffer *b = &program->plan.buffer[i];
            if (b->first <= about[e].node && about[e].node <= b->last) alive += (int64_t)b->bytes;
        }
        assert_int_equal(about[e].alive_bytes, alive);
        if (alive > most) most = alive;
    }
    assert_int_equal(most, program->plan.lower_bound_bytes);
    stk_engine_close(engine);
}

/* The first node is a variable as well as another. */
static void variables_are_counted(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4), one, true);
    stk_value v = stk_graph_variable(graph, "v", STK_F32, STK_SHAPE(4), one, true);
    stk_graph_output(graph, "sum", stk_add(w, v));
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, NULL, &program));
    assert_int_equal(stk_program_variable_bytes(program), 2 * 4 * sizeof(float));
    stk_engine_close(engine);
}

/* --- copies and packs --- */

static stk_device_class packer;

/* Packs a weight as itself; a run reads it from there, and from nowhere else. */
typedef struct packed_product {
    stk_kernel inner;
    size_t n;
} packed_product;

static stk_status run_packed(const void *state, const stk_kernel_args *args)
{
    const packed_product *s = state;
    void *in[2] = {args->in[0], args->packed ? (void *)args->packed : args->in[1]};
    stk_kernel_args own = {.in = in, .out = args->out, .scratch = args->scratch};
    return s->inner.run(s->inner.state, &own);
}

/* In bf16, which rounds to even. */
static stk_status pack(const void *state, const stk_kernel_args *args)
{
    const packed_product *s = state;
    const uint32_t *src = args->in[0];
    uint16_t *dst = args->out[0];
    for (size_t i = 0; i < s->n; i++)
        dst[i] = (uint16_t)((src[i] + 0x7fff + (src[i] >> 16 & 1)) >> 16);
    return STK_OK;
}

static void release(void *state)
{
    packed_product *s = state;
    stk_kernel_free(&s->inner);
    free(s);
}

static stk_status find_kernel(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_device_class_reference.kernel(device, call, out));
    if (call->op != STK_OP_matmul || call->n_in != 2 || call->in[1].dtype != STK_BF16) return STK_OK;
    packed_product *s = malloc(sizeof(*s));
    assert_non_null(s);
    *s = (packed_product){*out, (size_t)stk_shape_count(call->in[1].shape)};
    *out = (stk_kernel){.run = run_packed, .state = s, .release = release, .pack = pack};
    out->scratch_bytes = s->inner.scratch_bytes;
    out->packed_bytes = s->n * sizeof(uint16_t);
    out->packed_layout = call->attrs->matmul.transpose_b;
    out->packed_input = 1;
    return STK_OK;
}

static stk_status open_packer(const stk_device_config *config, stk_device **out)
{
    STK_RETURN_IF_ERROR(stk_device_class_reference.open(config, out));
    (*out)->class = &packer;
    return STK_OK;
}

enum { N_COUNTERS = 3, N_WEIGHTS = 3 };

/* Counters whose old content is read behind the update, so that it is a copy; products whose weights are packed. */
static stk_graph *make_counters(void)
{
    static const char *const names[] = {"a", "b", "c"}, *const weights[] = {"v", "w", "x"};
    stk_graph *graph = stk_graph_new();
    stk_value y = stk_graph_input(graph, "y", STK_F32, STK_SHAPE(WIDTH, WIDTH));
    for (int i = 0; i < N_WEIGHTS; i++) {
        stk_init init = {STK_INIT_CONSTANT, 0.125 * (i + 1)};
        stk_value w = stk_graph_variable(graph, weights[i], STK_F32, STK_SHAPE(WIDTH, WIDTH), init, true);
        stk_value narrow = stk_relu(stk_matmul(y, w, false, false)); /* what is the last one stays in f32 */
        stk_graph_output(graph, weights[i], stk_matmul(narrow, y, false, false));
        stk_graph_update(graph, w, stk_shift_by(w, 1)); /* read by the product before */
    }
    for (int i = 0; i < N_COUNTERS; i++) {
        stk_init init = {STK_INIT_CONSTANT, 10 * (i + 1)};
        stk_value c = stk_graph_variable(graph, names[i], STK_F32, STK_SHAPE(4), init, false);
        stk_value next = stk_shift_by(c, 1 + i);
        stk_graph_update(graph, c, next);
        stk_graph_output(graph, names[i], stk_add(stk_reduce_sum(next, 0), stk_reduce_sum(c, 0)));
    }
    return graph;
}

static int count_text(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static float first_of(const stk_program *program, const char *name)
{
    return *(const float *)stk_program_output(program, name, NULL);
}

static void copies_and_packs_stay_apart(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.compute = STK_BF16, .keep_packed = true};
    stk_text text = {0};
    const stk_trace_kernel *about;
    int n, n_copies = 0, n_packs = 0;
    float y[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        y[i] = i % WIDTH == i / WIDTH; /* times one */
    expect_ok(stk_engine_open("packer", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_counters(), &options, &program));
    assert_int_equal(program->packed.n, N_WEIGHTS);
    assert_true(program->plan.n_copies >= N_COUNTERS);
    stk_program_print(program, &text);
    assert_int_equal(count_text(stk_text_get(&text), "  copy\n"), program->plan.n_copies);
    assert_int_equal(count_text(stk_text_get(&text), "  pack\n"), N_WEIGHTS);
    stk_text_free(&text);
    expect_ok(stk_program_get_about(program, &about, &n));
    assert_int_equal(n, program->n_entries);
    for (int e = 0; e < n; e++) {
        n_copies += !strcmp(about[e].op, "copy");
        n_packs += !strcmp(about[e].op, "pack");
        assert_int_equal(about[e].node < 0, !strcmp(about[e].op, "copy") || !strcmp(about[e].op, "pack"));
    }
    assert_int_equal(n_copies, program->plan.n_copies);
    assert_int_equal(n_packs, N_WEIGHTS);
    stk_program_bind(program, stk_program_input(program, "y"), y);
    for (int step = 0; step < 3; step++) {
        static const char *const names[] = {"a", "b", "c"}, *const weights[] = {"v", "w", "x"};
        expect_ok(stk_program_run(program));
        for (int i = 0; i < N_COUNTERS; i++) {
            float old = (float)(10 * (i + 1) + step * (1 + i));
            assert_true(first_of(program, names[i]) == 4 * (2 * old + (float)(1 + i)));
        }
        for (int i = 0; i < N_WEIGHTS; i++)
            assert_true(first_of(program, weights[i]) == 0.125f * (float)(i + 1) + (float)step);
    }
    stk_engine_close(engine);
}

/* A variable's state is of the variable's layer. */
static void layers_are_named_by_their_variables(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *layer;
    } cases[] = {{"a.conv.weight", "a.conv"},
                 {"a.conv.weight.momentum", "a.conv"},
                 {"a.conv.other", "a.conv"},
                 {"b", "b"},
                 {"b.momentum", "b"}};
    enum { N = sizeof(cases) / sizeof(cases[0]) };
    stk_graph *graph = stk_graph_new();
    stk_layer_name layer[N];
    for (int i = 0; i < N; i++)
        stk_graph_variable(graph, cases[i].variable, STK_F32, STK_SHAPE(2), (stk_init){0}, true);
    assert_int_equal(graph->n_nodes, N);
    expect_ok(stk_graph_find_layers(graph, layer));
    for (int i = 0; i < N; i++) {
        assert_int_equal(layer[i].n, strlen(cases[i].layer));
        assert_memory_equal(layer[i].text, cases[i].layer, strlen(cases[i].layer));
    }
    stk_graph_free(graph);
}

int main(void)
{
    packer = stk_device_class_reference;
    packer.name = "packer";
    packer.kernel = find_kernel;
    packer.open = open_packer;
    stk_device_add(&packer);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_many_inputs_are_counted),
        cmocka_unit_test(layers_are_named_by_their_variables),
        cmocka_unit_test(what_is_alive_is_told),
        cmocka_unit_test(variables_are_counted),
        cmocka_unit_test(copies_and_packs_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
