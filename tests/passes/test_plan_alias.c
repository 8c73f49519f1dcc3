/* No value of a plan is overwritten while somebody will read it. Random graphs whose kernels say at random what they do
 * in place are run in thought: memory holds the numbers of values, and each reader must find its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "passes/passes.h"
#include "passes/plan.h"
#include "passes/plan_offsets.h"

enum { N_SIZES = 4, MOST_NODES = 256, N_VARIABLES = 4, N_WIDE = 40 };
static const int64_t sizes[N_SIZES] = {16, 17, 20, 64}; /* 17 and 20 take the same bytes */

typedef struct region {
    stk_place place;
    int32_t leaf;
    size_t from, to; /* in bytes */
    int32_t holds;   /* what value was written there last */
} region;

typedef struct memory {
    const stk_graph *graph;
    const stk_plan *plan;
    const stk_kernel *kernel;
    int32_t is[4 * MOST_NODES]; /* by value: that value, or what it is another name of */
    region at[16 * MOST_NODES];
    int n;
    int n_in_place, n_updated; /* outputs that took over an input's memory, a variable's */
} memory;

static bool overlap(region a, region b)
{
    return a.place == b.place && (a.place == STK_PLACE_ARENA || a.leaf == b.leaf) && a.from < b.to && b.from < a.to;
}

static region region_of(const memory *m, int32_t value)
{
    const stk_planned_value *v = &m->plan->value[value];
    size_t bytes = (stk_desc_bytes(m->graph->value[value].desc) + 63) / 64 * 64;
    if (v->place != STK_PLACE_ARENA) return (region){v->place, v->leaf, 0, bytes, m->is[value]};
    assert_true(v->offset + bytes <= m->plan->arena_bytes);
    return (region){v->place, 0, v->offset, v->offset + bytes, m->is[value]};
}

static void put(memory *m, region r)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (!overlap(m->at[i], r)) m->at[n++] = m->at[i];
    assert_true(n < 16 * MOST_NODES);
    m->at[n++] = r;
    m->n = n;
}

static void expect_there(const memory *m, int32_t value, const char *who, int32_t i)
{
    region r = region_of(m, value);
    for (int k = 0; k < m->n; k++)
        if (m->at[k].holds == r.holds && overlap(m->at[k], r) && m->at[k].from == r.from && m->at[k].to == r.to) return;
    fail_msg("%s %d does not find value %d any more", who, i, value);
}

/* What output o may overwrite: a variable whose readers here all allow it; one input in the arena, of as many bytes. */
static void check_output(memory *m, int32_t i, int o, region out)
{
    const stk_node *node = &m->graph->node[i];
    int n_taken = 0;
    for (int j = 0; j < node->n_in; j++) {
        region in = region_of(m, node->in[j]);
        if (!overlap(in, out)) continue;
        bool allowed = j < 32 && (m->kernel[i].in_place[o] >> j & 1);
        if (!allowed || in.from != out.from || in.to != out.to)
            fail_msg("output %d of node %d lies where its input %d is", o, i, j);
        n_taken++;
    }
    if (out.place == STK_PLACE_ARENA && n_taken > 1) fail_msg("node %d reads twice what it overwrites", i);
    m->n_in_place += out.place == STK_PLACE_ARENA && n_taken;
    m->n_updated += out.place == STK_PLACE_VARIABLE;
}

static void run_node(memory *m, int32_t i)
{
    const stk_node *node = &m->graph->node[i];
    region out[8], scratch = {STK_PLACE_ARENA, 0, 0, 0, -1};
    if (m->plan->skipped[i]) {
        bool is_leaf = node->op == STK_OP_input || node->op == STK_OP_variable;
        m->is[node->first_out] = is_leaf ? node->first_out : m->is[node->in[0]];
        if (is_leaf) put(m, region_of(m, node->first_out));
        return;
    }
    if (m->kernel[i].scratch_bytes) {
        scratch.from = m->plan->scratch_offset[i];
        scratch.to = scratch.from + m->kernel[i].scratch_bytes;
    }
    for (int j = 0; j < node->n_in; j++) {
        expect_there(m, node->in[j], "node", i);
        assert_false(overlap(scratch, region_of(m, node->in[j])));
    }
    for (int o = 0; o < node->n_out; o++) {
        m->is[node->first_out + o] = node->first_out + o;
        out[o] = region_of(m, node->first_out + o);
        check_output(m, i, o, out[o]);
        assert_false(overlap(scratch, out[o]));
        for (int k = 0; k < o; k++)
            assert_false(overlap(out[k], out[o]));
    }
    if (scratch.to) put(m, scratch);
    for (int o = 0; o < node->n_out; o++)
        put(m, out[o]);
}

/* Runs the plan; outputs and the variables' new contents are there in the end. */
static void run_plan(memory *m)
{
    for (int32_t i = 0; i < m->graph->n_nodes; i++)
        run_node(m, i);
    for (int i = 0; i < m->plan->n_copies; i++) {
        region variable = region_of(m, m->plan->copy[i].variable);
        expect_there(m, m->plan->copy[i].value, "copy", i);
        variable.holds = m->is[m->plan->copy[i].value];
        put(m, variable);
    }
    for (int i = 0; i < m->graph->n_roots; i++) {
        const stk_graph_root *root = &m->graph->root[i];
        if (root->variable < 0) {
            expect_there(m, root->value, "output", i);
            continue;
        }
        region variable = region_of(m, root->variable);
        bool is_there = false;
        for (int k = 0; k < m->n; k++)
            is_there |= m->at[k].holds == m->is[root->value] && overlap(m->at[k], variable);
        assert_true(is_there);
    }
}

/* --- random graphs --- */

typedef struct maker {
    stk_rng rng;
    stk_graph *graph;
    stk_value value[N_SIZES][MOST_NODES * 4], variable[N_VARIABLES], lr, step;
    int n[N_SIZES];
} maker;

static int below(maker *k, int n)
{
    return (int)stk_rng_below(&k->rng, (uint32_t)n);
}

static stk_value any(maker *k, int size)
{
    /* Mostly recent ones, so that values die. */
    int n = k->n[size], back = below(k, 4) ? below(k, n < 4 ? n : 4) : below(k, n);
    return k->value[size][n - 1 - back];
}

static void keep(maker *k, int size, stk_value x)
{
    k->value[size][k->n[size]++] = x;
}

static void add_node(maker *k)
{
    int size = below(k, N_SIZES);
    stk_value in[N_WIDE];
    switch (below(k, 8)) {
    case 0:
    case 1: keep(k, size, stk_exp(any(k, size))); break;
    case 2: keep(k, size, stk_reshape(any(k, size), STK_SHAPE(sizes[size]))); break;
    case 3:
        for (int i = 0; i < 4; i++)
            in[i] = any(k, 0);
        in[4] = k->lr, in[5] = k->step;
        stk_attrs attrs = stk_attrs_zero();
        stk_value first = stk_graph_add(k->graph, STK_OP_adam_update, &attrs, in, 6);
        for (int o = 0; o < 3; o++)
            keep(k, 0, stk_value_sibling(first, o));
        break;
    case 4:
        for (int i = 0; i < 4; i++)
            in[i] = any(k, 0);
        keep(k, 3, stk_concat(in, 4, 0));
        break;
    default: keep(k, size, stk_add(any(k, size), any(k, size)));
    }
}

static stk_graph *make_random_graph(maker *k, uint64_t seed)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    *k = (maker){.rng = stk_rng_make(seed, 2, 3, 4), .graph = stk_graph_new()};
    stk_init one = {STK_INIT_CONSTANT, 1};
    k->lr = stk_graph_scalar_input(k->graph, "lr", STK_F32);
    k->step = stk_graph_scalar_input(k->graph, "step", STK_I64);
    for (int i = 0; i < N_SIZES; i++)
        keep(k, i, stk_graph_input(k->graph, names[i], STK_F32, STK_SHAPE(sizes[i])));
    for (int i = 0; i < N_VARIABLES; i++)
        keep(k, 0, k->variable[i] = stk_graph_variable(k->graph, names[4 + i], STK_F32, STK_SHAPE(16), one, true));
    for (int i = 5 + below(k, 40); i > 0; i--)
        add_node(k);
    if (seed % 8 == 0) { /* More inputs than bits. */
        stk_value in[N_WIDE];
        for (int i = 0; i < N_WIDE; i++)
            in[i] = any(k, 0);
        stk_graph_output(k->graph, "wide", stk_exp(stk_concat(in, N_WIDE, 0)));
    }
    for (int i = 0; i < N_VARIABLES; i++) {
        stk_value next = any(k, 0);
        if (stk_value_node(next)->op != STK_OP_variable) stk_graph_update(k->graph, k->variable[i], next);
    }
    for (int i = 0; i < 3; i++) {
        stk_value out = any(k, i + 1);
        stk_graph_output(k->graph, names[i], stk_exp(out));
    }
    return k->graph;
}

static void nothing_is_overwritten_too_early(void **state)
{
    (void)state;
    static memory m;
    static maker k;
    int n_in_place = 0, n_updated = 0, n_copies = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        stk_plan plan;
        stk_graph *graph = make_random_graph(&k, seed);
        assert_int_equal(stk_graph_verify(graph), STK_OK);
        assert_true(graph->n_nodes < MOST_NODES && graph->n_values < 4 * MOST_NODES);
        stk_kernel *kernel = calloc((size_t)graph->n_nodes + 1, sizeof(*kernel));
        assert_non_null(kernel);
        for (int32_t i = 0; i < graph->n_nodes; i++) {
            for (int o = 0; o < 8; o++)
                kernel[i].in_place[o] = below(&k, 3) ? UINT32_MAX : (uint32_t)below(&k, 64);
            kernel[i].scratch_bytes = below(&k, 4) ? 0 : 64 * (size_t)(1 + below(&k, 5));
        }
        assert_int_equal(stk_plan_make(graph, kernel, NULL, NULL, &plan), STK_OK);
        m = (memory){.graph = graph, .plan = &plan, .kernel = kernel};
        run_plan(&m);
        n_in_place += m.n_in_place;
        n_updated += m.n_updated;
        n_copies += plan.n_copies;
        stk_plan_free(&plan);
        free(kernel);
        stk_graph_free(graph);
    }
    /* Memory is taken over often, and not always. */
    assert_true(n_in_place > 4000 && n_updated > 1000 && n_copies > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_overwritten_too_early)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
