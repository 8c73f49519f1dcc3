/* See stoker/files/onnx_session.h. */
#include "stoker/files/onnx_session.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "graph/graph.h"
#include "infer/inference_graph.h"
#include "onnx/export.h"
#include "stoker/train/weights.h"
#include "train/session.h"
#include "train/trainer_state.h"

/* --- reading --- */

static stk_status set_weights(stk_session *session, const stk_onnx *model)
{
    for (int i = 0; i < stk_onnx_n_weights(model); i++) {
        stk_onnx_tensor t = stk_onnx_weight(model, i);
        size_t n_bytes = stk_desc_bytes(stk_desc_make(t.dtype, t.shape));
        stk_status status = stk_session_set_weight(session, t.name, t.data, n_bytes);
        /* One that nothing reads is no variable. */
        if (status != STK_OK && status != STK_NOT_FOUND) return status;
    }
    return STK_OK;
}

static stk_status check_sizes(const stk_graph *graph)
{
    char text[STK_SHAPE_TEXT_BYTES];
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        stk_shape shape = graph->value[graph->node[i].first_out].desc.shape;
        for (int k = 0; graph->node[i].op == STK_OP_input && k < shape.rank; k++)
            if (shape.dim[k] == STK_ANY)
                return stk_fail(
                    STK_INVALID,
                    "input '%s' is %s: to run the model, give stk_onnx_open a size for what it leaves open, by "
                    "the model's name for it (models that Stoker writes: N)",
                    graph->node[i].name, stk_shape_text(shape, text));
    }
    return STK_OK;
}

stk_session_step *stk_session_compile_onnx(stk_session *session, stk_onnx *model)
{
    if (!session) return NULL;
    if (!model) {
        (void)stk_session_keep(session, stk_fail(STK_INVALID, "there is no ONNX model to compile"));
        return NULL;
    }
    if (stk_session_keep(session, check_sizes(stk_onnx_graph(model))) != STK_OK) return NULL;
    stk_session_step *step = stk_session_compile(session, stk_graph_clone(stk_onnx_graph(model), STK_ANY), false);
    if (!step || stk_session_keep(session, set_weights(session, model)) != STK_OK) return NULL;
    return step;
}

/* --- writing --- */

typedef struct source {
    stk_session *session; /* or else */
    stk_trainer *trainer;
    const stk_graph *graph;
    stk_arena *arena; /* what was read */
} source;

static stk_status get_weight(void *user, const char *name, const void **out)
{
    source *s = user;
    stk_value variable = stk_graph_find(s->graph, STK_OP_variable, name);
    if (variable.id < 0) return stk_fail(STK_INTERNAL, "variable '%s' is not the graph's", name);
    size_t n = stk_desc_bytes(s->graph->value[variable.id].desc);
    void *data = stk_arena_alloc(s->arena, n + 1);
    if (!data) return stk_fail_memory(n);
    *out = data;
    if (s->session) return stk_session_get_weight(s->session, name, data, n);
    return stk_trainer_get_weight(s->trainer, name, data, n);
}

static stk_status save(source *s, const char *name, const char *path)
{
    stk_onnx_export_report report;
    stk_status status;
    if (!path) return stk_fail(STK_INVALID, "there is no path to write an ONNX model to");
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "an ONNX model of Stoker", 0, "\x08\x08\x12\x06stoker", 10));
    STK_RETURN_IF_ERROR(stk_dir_check_for(path));
    if (!(s->arena = stk_arena_new())) return stk_fail_memory(64);
    const stk_onnx_export how = {.name = name, .weight = get_weight, .user = s};
    status = stk_onnx_save(s->graph, &how, path, &report);
    stk_arena_free(s->arena);
    return status;
}

stk_status stk_session_export_onnx(stk_session *session, const stk_graph *graph, const char *path)
{
    source s = {.session = session, .graph = graph};
    if (!session) return stk_fail(STK_INVALID, "there is no session");
    if (!graph) return stk_fail(STK_INVALID, "there is no graph to write as an ONNX model");
    STK_RETURN_IF_ERROR(stk_session_status(session));
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    return save(&s, "stoker", path);
}

stk_status stk_trainer_export_onnx(stk_trainer *trainer, const char *path)
{
    stk_weight_info first;
    stk_graph *graph = NULL;
    stk_status status = stk_trainer_weight(trainer, 0, &first); /* It is prepared then. */
    if (status != STK_OK && status != STK_NO_ROW) return status;
    STK_RETURN_IF_ERROR(stk_inference_graph(trainer->model, STK_ANY, &graph));
    source s = {.trainer = trainer, .graph = graph};
    status = save(&s, "stoker", path);
    stk_graph_free(graph);
    return status;
}
