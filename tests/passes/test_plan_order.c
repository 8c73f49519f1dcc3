/* Programs of several queues: who happens before whom, and which buffers may lie in the same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "passes/passes.h"
#include "passes/plan.h"

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* The number of the node that makes x. */
static int32_t node_of(stk_value x)
{
    return x.graph->value[x.id].node;
}

static bool *find_skipped(const stk_graph *graph)
{
    bool *skipped = calloc((size_t)graph->n_nodes + 1, sizeof(*skipped));
    assert_non_null(skipped);
    for (int32_t i = 0; i < graph->n_nodes; i++)
        skipped[i] = graph->node[i].op == STK_OP_input || graph->node[i].op == STK_OP_reshape;
    return skipped;
}

/*  queue 0   a --- b --- d(b, back)
 *  queue 1    '- there --- c ---^          */
static void copies_order_queues(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(16));
    stk_value a = stk_exp(x), same = stk_reshape(a, STK_SHAPE(4, 4)), there = stk_copy_to(same, 1), b = stk_exp(a);
    stk_value c = stk_exp(there), back = stk_copy_to(c, 0), d = stk_add(stk_reshape(b, STK_SHAPE(4, 4)), back);
    stk_graph_output(graph, "d", d);
    expect_ok(stk_graph_status(graph));
    stk_plan_order order;
    bool *skipped = find_skipped(graph);
    expect_ok(stk_plan_order_make(graph, skipped, &order));
    const struct {
        stk_value first, second;
        bool is_before, is_after;
    } pairs[] = {
        {a, b, true, false},      {a, there, true, false}, {there, c, true, false}, {c, d, true, false},
        {there, b, false, false}, {c, b, false, false},    {b, d, true, false},     {a, a, false, false},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int32_t p = node_of(pairs[i].first), q = node_of(pairs[i].second);
        assert_int_equal(stk_plan_before(&order, p, q), pairs[i].is_before);
        assert_int_equal(stk_plan_before(&order, q, p), pairs[i].is_after);
    }
    /* Each copy waits for what makes its value, behind the name; nothing else waits. */
    assert_int_equal(order.first_wait[graph->n_nodes], 2);
    assert_int_equal(order.wait[order.first_wait[node_of(there)]], node_of(a));
    assert_int_equal(order.wait[order.first_wait[node_of(back)]], node_of(c));
    stk_plan_order_free(&order);
    free(skipped);
    stk_graph_free(graph);
}

/* --- whole plans --- */

static stk_status find_kernels(stk_device *device, const stk_graph *graph, stk_kernel *kernel)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        stk_tensor_desc in[16], out[16];
        if (graph->node[i].op == STK_OP_input) continue;
        stk_op_call call = stk_graph_call(graph, i, in, out);
        STK_RETURN_IF_ERROR(device->class->kernel(device, &call, &kernel[i]));
    }
    return STK_OK;
}

static bool uses(const stk_graph *graph, const stk_plan *plan, int32_t node, int32_t buffer)
{
    const stk_node *n = &graph->node[node];
    bool any = false;
    for (int j = 0; j < n->n_in + n->n_out; j++) {
        const stk_planned_value *v = &plan->value[j < n->n_in ? n->in[j] : n->first_out + j - n->n_in];
        any |= v->place == STK_PLACE_ARENA && v->buffer == buffer;
    }
    return any && !plan->skipped[node];
}

/* Every use of one happens before every use of the other. */
static bool is_before(const stk_graph *graph, const stk_plan *plan, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        for (int32_t k = 0; uses(graph, plan, i, a) && k < graph->n_nodes; k++)
            if (uses(graph, plan, k, b) && !stk_plan_before(&plan->order, i, k)) return false;
    return true;
}

static int count_shared(const stk_graph *graph, const stk_plan *plan)
{
    int n_shared = 0;
    for (int32_t a = 0; a < plan->n_buffers; a++)
        for (int32_t b = 0; b < a; b++) {
            const stk_plan_buffer *x = &plan->buffer[a], *y = &plan->buffer[b];
            if (x->value < 0 || y->value < 0 || graph->value[x->value].device != graph->value[y->value].device)
                continue;
            if (x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes) continue;
            assert_true(is_before(graph, plan, a, b) || is_before(graph, plan, b, a));
            n_shared++;
        }
    return n_shared;
}

/* Chains of sums on each of some devices, that read each other's values here and there; by a fixed pattern. */
static stk_graph *make_mesh(uint32_t pattern, int n_devices)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(32, 32)), last[STK_MOST_DEVICES];
    for (int d = 0; d < n_devices; d++)
        last[d] = stk_exp(stk_copy_to(x, d));
    for (int i = 0; i < 60; i++) {
        pattern = pattern * 1664525u + 1013904223u;
        int d = (int)(pattern >> 8) % n_devices, from = (int)(pattern >> 16) % n_devices;
        stk_value other = pattern >> 28 > 5 ? stk_transpose(last[d], (int32_t[]){1, 0}) : stk_copy_to(last[from], d);
        last[d] = pattern >> 29 & 1 ? stk_matmul(last[d], other, false, false) : stk_add(last[d], other);
    }
    stk_value sum = last[0];
    for (int d = 1; d < n_devices; d++)
        sum = stk_add(sum, stk_copy_to(last[d], 0));
    stk_graph_output(graph, "sum", sum);
    return graph;
}

static void memory_is_shared_by_what_is_over(void **state)
{
    (void)state;
    stk_device *device;
    int n_shared = 0;
    expect_ok(stk_device_open("reference", NULL, &device));
    for (uint32_t pattern = 1; pattern <= 24; pattern++) {
        int n_devices = 2 + (int)pattern % 3;
        stk_graph *graph = make_mesh(pattern, n_devices);
        stk_plan plan, again;
        expect_ok(stk_graph_status(graph));
        stk_kernel *kernel = calloc((size_t)graph->n_nodes + 1, sizeof(*kernel));
        assert_non_null(kernel);
        expect_ok(find_kernels(device, graph, kernel));
        expect_ok(stk_plan_make(graph, kernel, NULL, NULL, &plan));
        expect_ok(stk_plan_make(graph, kernel, NULL, NULL, &again));
        assert_int_equal(plan.n_devices, n_devices);
        size_t all = 0;
        for (int d = 0; d < n_devices; d++)
            all += plan.device_bytes[d];
        assert_int_equal(plan.arena_bytes, all);
        assert_true(plan.arena_bytes >= plan.lower_bound_bytes);
        n_shared += count_shared(graph, &plan);
        assert_memory_equal(plan.device_bytes, again.device_bytes, sizeof(plan.device_bytes));
        stk_plan_free(&plan);
        stk_plan_free(&again);
        for (int32_t i = 0; i < graph->n_nodes; i++)
            stk_kernel_free(&kernel[i]);
        free(kernel);
        stk_graph_free(graph);
    }
    assert_true(n_shared > 100);
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_order_queues),
                                       cmocka_unit_test(memory_is_shared_by_what_is_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
