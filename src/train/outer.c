/* See train/outer.h. */
#include "train/outer.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "train/trainer_state.h"

static const char begun_name[] = ".outer", velocity_name[] = ".outer_velocity";

/* Weights whose sums go together. */
enum { TOGETHER_BYTES = 1 << 20 };

typedef struct weight {
    stk_value now, begun, velocity;
} weight;

stk_status stk_outer_check(const stk_trainer *trainer)
{
    const stk_trainer_config *config = &trainer->config;
    const stk_outer *outer = &config->outer;
    if (outer->every == 0) return STK_OK;
    if (outer->every < 0 || !(outer->lr > 0) || !(outer->momentum >= 0 && outer->momentum < 1))
        return stk_fail(STK_INVALID,
                        "sync: every %lld steps with lr %g and momentum %g: wants 1 or more, above 0, and from 0 to 1",
                        (long long)outer->every, outer->lr, outer->momentum);
    const char *other = config->average.decay > 0                          ? "a mean of the weights ('ema')"
                        : config->lookahead.every > 0                      ? "'lookahead'"
                        : trainer->loss_scale.kind >= STK_LOSS_SCALE_FIXED ? "a loss scale (f16)"
                        : config->on_nan == STK_ON_NAN_SKIP                ? "'on_nan: skip'"
                        : config->shared == STK_SHARED_OPTIMIZER           ? "'shard: optimizer'"
                                                                           : NULL;
    if (!other) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "'sync', where ranks have other weights between its steps, does not go with %s",
                    other);
}

static stk_status add_variable(stk_graph *graph, const stk_variable_view *view, const char *end, stk_value *out)
{
    char name[512];
    bool is_weight = !end[0];
    if (snprintf(name, sizeof(name), "%s%s", view->name, end) >= (int)sizeof(name))
        return stk_fail(STK_UNSUPPORTED, "the name '%s' is too long for an outer step", view->name);
    *out = stk_graph_variable(graph, name, view->view.desc.dtype, view->view.desc.shape,
                              (stk_init){STK_INIT_CONSTANT, 0}, is_weight);
    return stk_graph_status(graph);
}

static void step_weight(const stk_outer *outer, stk_graph *graph, const weight *w, stk_value mean)
{
    stk_value way = stk_sub(w->begun, mean);
    stk_value velocity = stk_add(stk_scale_by(w->velocity, outer->momentum), way);
    stk_value all = stk_add(way, stk_scale_by(velocity, outer->momentum));
    stk_value next = stk_sub(w->begun, stk_scale_by(all, outer->lr));
    stk_graph_update(graph, w->velocity, velocity);
    stk_graph_update(graph, w->begun, next);
    stk_graph_update(graph, w->now, next);
}

static stk_status sum_ranks(stk_graph *graph, const stk_value *x, int n, stk_value *sum)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_value first = stk_graph_add(graph, STK_OP_rank_sum, &attrs, x, n);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int i = 0; i < n; i++)
        sum[i] = stk_value_of(graph, first.id + i);
    return STK_OK;
}

static stk_status step_weights(const stk_trainer *trainer, stk_graph *graph, const weight *w, int n)
{
    stk_value now[STK_MOST_RANK_SUMS] = {{0}}, sum[STK_MOST_RANK_SUMS];
    int n_ranks = stk_comm_n_ranks(trainer->comm);
    for (int i = 0; i < n; i++)
        now[i] = sum[i] = w[i].now;
    if (n_ranks > 1) STK_RETURN_IF_ERROR(sum_ranks(graph, now, n, sum));
    for (int i = 0; i < n; i++)
        step_weight(&trainer->config.outer, graph, &w[i], stk_scale_by(sum[i], 1 / (double)n_ranks));
    return stk_graph_status(graph);
}

static stk_status build(const stk_trainer *trainer, stk_graph *graph)
{
    weight w[STK_MOST_RANK_SUMS];
    size_t bytes = 0;
    int n = 0, n_variables = stk_engine_n_variables(trainer->engine);
    for (int i = 0; i < n_variables; i++) {
        stk_variable_view view = stk_engine_variable(trainer->engine, i);
        if (!view.trainable) continue;
        bool differs = n > 0 && stk_value_dtype(w[0].now) != view.view.desc.dtype;
        if (n == STK_MOST_RANK_SUMS || bytes >= TOGETHER_BYTES || differs) {
            STK_RETURN_IF_ERROR(step_weights(trainer, graph, w, n));
            n = 0;
            bytes = 0;
        }
        STK_RETURN_IF_ERROR(add_variable(graph, &view, "", &w[n].now));
        STK_RETURN_IF_ERROR(add_variable(graph, &view, begun_name, &w[n].begun));
        STK_RETURN_IF_ERROR(add_variable(graph, &view, velocity_name, &w[n].velocity));
        bytes += stk_desc_bytes(view.view.desc);
        n++;
    }
    return n > 0 ? step_weights(trainer, graph, w, n) : STK_OK;
}

stk_status stk_outer_prepare(stk_trainer *trainer)
{
    if (trainer->config.outer.every == 0 || trainer->outer_program) return STK_OK;
    stk_graph *graph = stk_graph_new();
    if (!graph) return stk_fail_memory(sizeof(void *));
    stk_status status = build(trainer, graph);
    if (status != STK_OK) {
        stk_graph_free(graph);
        return status;
    }
    stk_compile_options options = {.comm = trainer->comm};
    STK_RETURN_IF_ERROR(stk_engine_compile(trainer->engine, graph, &options, &trainer->outer_program));
    stk_memory_note_program(trainer, trainer->outer_program);
    return STK_OK;
}

static int find_tensor(const stk_trainer *trainer, const char *name, size_t n)
{
    for (size_t i = 0; i < trainer->n_tensors; i++)
        if (strlen(trainer->tensor[i].name) == n && !strncmp(trainer->tensor[i].name, name, n)) return (int)i;
    return -1;
}

stk_status stk_outer_start(stk_trainer *trainer)
{
    const stk_named_tensor *tensors;
    size_t n, n_end = sizeof(begun_name) - 1;
    if (!trainer->outer_program || trainer->state.step > 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(tensors[i].name);
        if (length <= n_end || strcmp(tensors[i].name + length - n_end, begun_name)) continue;
        int from = find_tensor(trainer, tensors[i].name, length - n_end);
        if (from >= 0) memcpy(tensors[i].view.data, tensors[from].view.data, stk_desc_bytes(tensors[i].view.desc));
    }
    return stk_trainer_put_tensors(trainer);
}

bool stk_outer_is_due(const stk_trainer *trainer)
{
    const stk_train_state *state = &trainer->state;
    if (!trainer->outer_program) return false;
    return state->step % trainer->config.outer.every == 0 || state->i_batch == trainer->n_batches;
}

stk_status stk_outer_step(stk_trainer *trainer)
{
    if (!stk_outer_is_due(trainer)) return STK_OK;
    stk_status status = stk_program_run(trainer->outer_program);
    trainer->is_torn = status != STK_OK; /* Weights of one rank's steps alone are no state of all. */
    return status;
}
