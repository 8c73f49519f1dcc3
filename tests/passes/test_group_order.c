/* Whether groups wait for each other, compared with a search of the whole graph, while random groups of random graphs
 * join. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "passes/group_order.h"

enum { N = 60, MOST_EDGES = 3 * N };

typedef struct random_graph {
    stk_graph *graph;
    int32_t group[N], next[N], first_user[N + 1], user[MOST_EDGES];
    stk_groups groups;
} random_graph;

static void make(random_graph *r, stk_rng *rng)
{
    stk_value value[N];
    int32_t n_edges = 0;
    r->graph = stk_graph_new();
    for (int i = 0; i < N; i++) {
        value[i] = i < 4 ? stk_graph_input(r->graph, (const char[]){(char)('a' + i), 0}, STK_F32, STK_SHAPE(4))
                         : stk_add(value[stk_rng_below(rng, (uint32_t)i)],
                                   value[i - 1 - (int)stk_rng_below(rng, (uint32_t)(i < 8 ? i : 8))]);
        r->group[i] = i;
        r->next[i] = -1;
    }
    assert_int_equal(r->graph->n_nodes, N);
    for (int i = 0; i < N; i++) {
        r->first_user[i] = n_edges;
        for (int k = 0; k < N; k++)
            for (int j = 0; j < r->graph->node[k].n_in; j++)
                if (r->graph->value[r->graph->node[k].in[j]].node == i) r->user[n_edges++] = k;
    }
    r->first_user[N] = n_edges;
    r->groups = (stk_groups){r->graph, N, r->group, r->next, r->first_user, r->user};
}

/* Over groups other than `late`, which is where it begins, and `early`; seen: groups that have been looked at. */
static bool reaches(const random_graph *r, int32_t from, int32_t early, int32_t late, bool *seen)
{
    if (seen[from]) return false;
    seen[from] = true;
    for (int i = 0; i < N; i++)
        for (int j = 0; r->group[i] == from && j < r->graph->node[i].n_in; j++) {
            int32_t maker = r->group[r->graph->value[r->graph->node[i].in[j]].node];
            if (maker == early && from != late) return true;
            if (maker != early && reaches(r, maker, early, late, seen)) return true;
        }
    return false;
}

static void join(random_graph *r, int32_t a, int32_t b)
{
    int32_t name = a < b ? a : b, last = -1;
    for (int32_t i = 0; i < N; i++) {
        if (r->group[i] != a && r->group[i] != b) continue;
        r->group[i] = name;
        if (last >= 0) r->next[last] = i;
        r->next[i] = -1;
        last = i;
    }
}

static void waiting_is_found(void **state)
{
    (void)state;
    int n_joined = 0;
    for (int seed = 0; seed < 30; seed++) {
        static random_graph r;
        stk_rng rng = stk_rng_make((uint64_t)seed, 1, 2, 3);
        stk_group_order order;
        make(&r, &rng);
        assert_int_equal(stk_group_order_make(&r.groups, &order), STK_OK);
        for (int k = 0; k < 4 * N; k++) {
            int32_t a = r.group[stk_rng_below(&rng, N)], b = r.group[stk_rng_below(&rng, N)];
            bool seen[N] = {false}, seen_back[N] = {false};
            if (a == b) continue;
            bool waits = reaches(&r, b, a, b, seen), waits_back = reaches(&r, a, b, a, seen_back);
            assert_int_equal(stk_group_order_waits(&order, a, b), waits);
            assert_int_equal(stk_group_order_waits(&order, b, a), waits_back);
            if (waits || waits_back) continue;
            stk_group_order_join(&order, a, b);
            join(&r, a, b);
            n_joined++;
        }
        stk_group_order_free(&order);
        stk_graph_free(r.graph);
    }
    assert_true(n_joined > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waiting_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
