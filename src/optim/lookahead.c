#include "optim/lookahead.h"

#include "base/error.h"
#include "graph/query.h"
#include "optim/step.h"

/* Scalars of one step. */
typedef struct lookahead {
    stk_graph *graph;
    stk_value first; /* bool: no step was done before */
    stk_value due;   /* bool: the slow weights move */
    stk_value taken; /* bool: the weights become the slow ones */
    stk_value share; /* f32: of the way that the slow weights go */
} lookahead;

stk_status stk_lookahead_check(const stk_lookahead *settings)
{
    if (settings->every < 0)
        return stk_fail(STK_INVALID, "lookahead: 'every' is %lld steps, and must be 1 or more",
                        (long long)settings->every);
    if (!(settings->alpha >= 0 && settings->alpha <= 1))
        return stk_fail(STK_INVALID, "lookahead: 'alpha' is %g, and must be from 0 to 1", settings->alpha);
    if (!(settings->power >= 0 && settings->power < 1e6))
        return stk_fail(STK_INVALID, "lookahead: 'power' is %g, and must be 0 or more", settings->power);
    return STK_OK;
}

static stk_value scalar(stk_graph *graph, stk_dtype dtype, double x)
{
    return stk_graph_constant(graph, dtype, (stk_shape){.rank = 0}, x);
}

/* All counting is in f64, which holds every number of steps. */
static lookahead prepare(stk_graph *graph, const stk_lookahead *settings, int64_t n_steps)
{
    lookahead l = {.graph = graph};
    double alpha = settings->alpha;
    stk_value count = stk_graph_variable(graph, "lookahead.count", STK_I64, (stk_shape){.rank = 0},
                                         (stk_init){STK_INIT_CONSTANT, 0}, false);
    stk_value done = stk_add(count, scalar(graph, STK_I64, 1)), zero = scalar(graph, STK_F64, 0);
    stk_graph_update(graph, count, done);
    l.first = stk_equal(count, scalar(graph, STK_I64, 0));
    stk_value t = stk_cast_to(done, STK_F64), every = scalar(graph, STK_F64, (double)settings->every);
    stk_value since = stk_sub(t, stk_mul(stk_floor(stk_div(t, every)), every));
    /* By the number of the step, not the count, from which skipped steps are missing. */
    stk_value step = stk_cast_to(stk_graph_scalar_input(graph, "step", STK_I64), STK_F64);
    stk_value left = stk_abs(stk_sub(scalar(graph, STK_F64, (double)n_steps - 1), step));
    l.due = stk_equal(since, zero);
    l.taken = stk_equal(stk_min(since, left), zero);
    if (settings->power == 0) {
        l.share = scalar(graph, STK_F32, alpha);
        return l;
    }
    stk_value way =
        stk_min(stk_div(t, scalar(graph, STK_F64, n_steps > 0 ? (double)n_steps : 1)), scalar(graph, STK_F64, 1));
    stk_value held = stk_mul(stk_pow(way, scalar(graph, STK_F64, settings->power)), scalar(graph, STK_F64, 1 - alpha));
    l.share = stk_cast_to(stk_sub(scalar(graph, STK_F64, 1), held), STK_F32);
    return l;
}

/* The variable's new content, where `updated` was to be that. */
static stk_value follow(const lookahead *l, stk_value variable, stk_value updated)
{
    stk_value slow = stk_optim_state(variable, "slow");
    stk_value share = stk_cast_to(l->share, stk_value_dtype(variable));
    stk_value before = stk_select(l->first, variable, slow);
    stk_value after = stk_select(l->due, stk_add(before, stk_mul(stk_sub(updated, before), share)), before);
    stk_graph_update(l->graph, slow, after);
    return stk_select(l->taken, after, updated);
}

static bool goes_along(const stk_graph *graph, int i_root, int n_statistics)
{
    int32_t variable = graph->root[i_root].variable;
    if (variable < 0 || !stk_dtype_is_float(graph->value[variable].desc.dtype)) return false;
    if (graph->node[graph->value[variable].node].attrs.leaf.trainable) return true;
    const stk_node *maker = &graph->node[graph->value[graph->root[i_root].value].node];
    /* Those of a frozen batch norm stay as they are. */
    return i_root < n_statistics && !(maker->op == STK_OP_batch_norm && maker->attrs.batch_norm.frozen);
}

stk_status stk_lookahead_build(stk_graph *graph, const stk_lookahead *settings, int n_statistics, int64_t n_steps)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    STK_RETURN_IF_ERROR(stk_graph_keep_error(graph, stk_lookahead_check(settings)));
    if (settings->every == 0) return STK_OK;
    int n_roots = graph->n_roots; /* without those that are added here */
    lookahead l = prepare(graph, settings, n_steps);
    for (int i = 0; i < n_roots && stk_graph_status(graph) == STK_OK; i++) {
        if (!goes_along(graph, i, n_statistics)) continue;
        stk_value next =
            follow(&l, stk_value_of(graph, graph->root[i].variable), stk_value_of(graph, graph->root[i].value));
        if (next.id >= 0) graph->root[i].value = next.id;
    }
    return stk_graph_status(graph);
}
