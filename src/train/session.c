/* See stoker/graph/session.h: the engine, by hand. */
#include "stoker/graph/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "train/session.h"

typedef struct session_input {
    char *name;
    stk_tensor_desc desc;
    int number; /* of the program's input; -1: the passes found that nothing needs it */
    bool is_set;
} session_input;

struct stk_session_step {
    stk_session *session;
    stk_session_step *next;
    stk_program *program;
    session_input *input;
    char **output; /* names */
    int n_inputs, n_outputs;
    int lr, step, seed, sample; /* numbers of inputs; -1: it has none */
    float rate;
    int64_t n_runs;
};

struct stk_session {
    stk_engine *engine;
    stk_session_step *steps;
    int64_t seed, n_runs;
    stk_status status;
    char error[512];
};

stk_status stk_session_keep(stk_session *session, stk_status status)
{
    if (status == STK_OK || session->status != STK_OK) return status;
    session->status = status;
    snprintf(session->error, sizeof(session->error), "%s", stk_error_text());
    return status;
}

stk_session *stk_session_new(const char *device, int n_threads, uint64_t seed)
{
    stk_session *session = calloc(1, sizeof(*session));
    if (!session) return NULL;
    session->seed = (int64_t)seed;
    const stk_device_config config = {.n_threads = n_threads};
    (void)stk_session_keep(session, stk_engine_open(device ? device : "cpu", &config, seed, &session->engine));
    return session;
}

static void free_step(stk_session_step *step)
{
    for (int i = 0; i < step->n_inputs; i++)
        free(step->input[i].name);
    for (int i = 0; i < step->n_outputs; i++)
        free(step->output[i]);
    free(step->output);
    free(step->input);
    free(step);
}

void stk_session_free(stk_session *session)
{
    if (!session) return;
    while (session->steps) {
        stk_session_step *step = session->steps;
        session->steps = step->next;
        free_step(step);
    }
    stk_engine_close(session->engine);
    free(session);
}

stk_status stk_session_status(const stk_session *session)
{
    if (!session) return stk_fail_memory(sizeof(*session));
    return session->status == STK_OK ? STK_OK : stk_fail(session->status, "%s", session->error);
}

void stk_session_forget(stk_session *session)
{
    if (session && session->engine) session->status = STK_OK;
}

stk_engine *stk_session_engine(stk_session *session)
{
    return session->engine;
}

/* --- steps --- */

static bool is_own(const char *name)
{
    return !strcmp(name, "lr") || !strcmp(name, "step") || !strcmp(name, "seed") || !strcmp(name, "sample");
}

/* The graph's inputs but our own, and the rate that stk_minimize left there. */
static stk_status list_inputs(stk_session_step *step, const stk_graph *graph)
{
    step->input = calloc((size_t)graph->n_nodes + 1, sizeof(*step->input));
    if (!step->input) return stk_fail_memory((size_t)graph->n_nodes * sizeof(*step->input));
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_input) continue;
        if (!strcmp(node->name, "lr")) step->rate = (float)node->attrs.leaf.init.a;
        if (is_own(node->name)) continue;
        session_input *input = &step->input[step->n_inputs++];
        input->desc = graph->value[node->first_out].desc;
        input->name = strdup(node->name);
        if (!input->name) return stk_fail_memory(strlen(node->name));
    }
    return STK_OK;
}

static stk_status list_outputs(stk_session_step *step, const stk_graph *graph)
{
    step->output = calloc((size_t)graph->n_roots + 1, sizeof(*step->output));
    if (!step->output) return stk_fail_memory((size_t)graph->n_roots * sizeof(*step->output));
    for (int32_t i = 0; i < graph->n_roots; i++) {
        if (!graph->root[i].name) continue;
        if (!(step->output[step->n_outputs++] = strdup(graph->root[i].name)))
            return stk_fail_memory(strlen(graph->root[i].name));
    }
    return STK_OK;
}

static stk_status compile(stk_session_step *step, stk_graph *graph, bool training)
{
    const stk_compile_options options = {.inference = !training};
    stk_status status = stk_graph_status(graph);
    if (status == STK_OK) status = list_inputs(step, graph);
    if (status == STK_OK) status = list_outputs(step, graph);
    if (status != STK_OK) {
        stk_graph_free(graph);
        return status;
    }
    STK_RETURN_IF_ERROR(stk_engine_compile(step->session->engine, graph, &options, &step->program));
    for (int i = 0; i < step->n_inputs; i++)
        step->input[i].number = stk_program_input(step->program, step->input[i].name);
    step->lr = stk_program_input(step->program, "lr");
    step->step = stk_program_input(step->program, "step");
    step->seed = stk_program_input(step->program, "seed");
    step->sample = stk_program_input(step->program, "sample");
    return STK_OK;
}

stk_session_step *stk_session_compile(stk_session *session, stk_graph *graph, bool training)
{
    stk_session_step *step = session && session->status == STK_OK ? calloc(1, sizeof(*step)) : NULL;
    if (!step) {
        if (session && session->status == STK_OK) (void)stk_session_keep(session, stk_fail_memory(sizeof(*step)));
        stk_graph_free(graph);
        return NULL;
    }
    step->session = session;
    if (stk_session_keep(session, compile(step, graph, training)) != STK_OK) {
        free_step(step);
        return NULL;
    }
    step->next = session->steps;
    session->steps = step;
    return step;
}

void stk_session_input(stk_session_step *step, const char *name, const void *data)
{
    if (!step) return;
    if (!name) {
        (void)stk_session_keep(step->session, stk_fail(STK_INVALID, "the input to be set has no name"));
        return;
    }
    for (int i = 0; i < step->n_inputs; i++) {
        session_input *input = &step->input[i];
        if (strcmp(name, input->name)) continue;
        input->is_set = data != NULL;
        if (data && input->number >= 0) stk_program_bind(step->program, input->number, data);
        return;
    }
    (void)stk_session_keep(step->session,
                           stk_fail(STK_NOT_FOUND,
                                    is_own(name) ? "input '%s' is set by the session" : "the step has no input '%s'",
                                    name));
}

stk_status stk_session_step_input(const stk_session_step *step, int i, stk_session_value *out)
{
    if (!step || !out || i < 0) return stk_fail(STK_INVALID, "there is no step, no place or no input of that number");
    if (i >= step->n_inputs) return stk_fail(STK_NO_ROW, "the step has %d inputs", step->n_inputs);
    const session_input *input = &step->input[i];
    *out = (stk_session_value){input->name, input->desc.dtype, input->desc.shape};
    return STK_OK;
}

stk_status stk_session_step_output(const stk_session_step *step, int i, stk_session_value *out)
{
    stk_tensor_desc desc = {0};
    if (!step || !out || i < 0) return stk_fail(STK_INVALID, "there is no step, no place or no output of that number");
    if (i >= step->n_outputs) return stk_fail(STK_NO_ROW, "the step has %d outputs", step->n_outputs);
    (void)stk_program_output(step->program, step->output[i], &desc);
    *out = (stk_session_value){step->output[i], desc.dtype, desc.shape};
    return STK_OK;
}

void stk_session_rate(stk_session_step *step, double lr)
{
    if (step) step->rate = (float)lr;
}

/* What optimisers and dropout count by. */
static stk_status set_own(stk_session_step *step)
{
    stk_session *session = step->session;
    stk_program *program = step->program;
    STK_RETURN_IF_ERROR(stk_program_set(program, step->lr, &step->rate));
    STK_RETURN_IF_ERROR(stk_program_set(program, step->step, &step->n_runs));
    STK_RETURN_IF_ERROR(stk_program_set(program, step->seed, &session->seed));
    /* Far apart, so that no two rows of any two runs draw alike. */
    int64_t sample = session->n_runs << 24;
    return stk_program_set(program, step->sample, &sample);
}

static stk_status run(stk_session_step *step)
{
    for (int i = 0; i < step->n_inputs; i++)
        if (!step->input[i].is_set)
            return stk_fail(STK_INVALID, "input '%s' is not set: stk_session_input", step->input[i].name);
    STK_RETURN_IF_ERROR(set_own(step));
    STK_RETURN_IF_ERROR(stk_program_run(step->program));
    step->n_runs++;
    step->session->n_runs++;
    return stk_program_wait(step->program, 0);
}

stk_status stk_session_run(stk_session_step *step)
{
    if (!step) return stk_fail(STK_INVALID, "there is no step to run: see stk_session_status");
    STK_RETURN_IF_ERROR(stk_session_status(step->session));
    return stk_session_keep(step->session, run(step));
}

const void *stk_session_output(const stk_session_step *step, const char *name)
{
    stk_tensor_desc desc;
    if (!step || !name || step->session->status != STK_OK || step->n_runs == 0) return NULL;
    return stk_program_output(step->program, name, &desc);
}

double stk_session_scalar(const stk_session_step *step, const char *name)
{
    stk_tensor_desc desc;
    if (!stk_session_output(step, name)) return NAN;
    const void *p = stk_program_output(step->program, name, &desc);
    if (stk_shape_count(desc.shape) != 1) return NAN;
    return desc.dtype == STK_F64 ? *(const double *)p : desc.dtype == STK_F32 ? *(const float *)p : (double)NAN;
}
