/* Models: a graph with the values that training and evaluation look for. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "nn/model_class.h"
#include "stoker/nn/nn.h"

struct stk_model {
    stk_graph *graph;
    int32_t loss, weight, output, target; /* value ids; -1: not set */
    bool ignores, is_embedding, borrows;  /* the graph */
    int64_t ignore_index;
    char name[];
};

/* What stk_model_new returns when there is no memory: it has no graph, and building on none does nothing. */
static stk_model no_memory_model = {.loss = -1, .weight = -1, .output = -1, .target = -1};

stk_model *stk_model_new(const char *name)
{
    if (!name) name = "model";
    size_t n = strlen(name);
    stk_model *model = calloc(1, sizeof(*model) + n + 1);
    if (!model) return &no_memory_model;
    memcpy(model->name, name, n);
    model->graph = stk_graph_new();
    model->loss = model->weight = model->output = model->target = -1;
    return model;
}

stk_model *stk_model_over(stk_graph *graph)
{
    stk_model *model = calloc(1, sizeof(*model) + 1);
    if (!model) return NULL;
    model->graph = graph;
    model->borrows = true;
    model->loss = model->weight = model->output = model->target = -1;
    return model;
}

void stk_model_free(stk_model *model)
{
    if (!model || model == &no_memory_model) return;
    if (!model->borrows) stk_graph_free(model->graph);
    free(model);
}

stk_status stk_model_status(const stk_model *model)
{
    if (!model) return stk_fail(STK_INVALID, "there is no model");
    if (!model->graph) return stk_fail(STK_NO_MEMORY, "cannot allocate memory for a model");
    return stk_graph_status(model->graph);
}

stk_graph *stk_model_graph(stk_model *model)
{
    if (!model) return NULL;
    return model->graph;
}

static stk_value add_input(stk_model *model, const char *name, stk_dtype dtype, stk_shape sample)
{
    stk_graph *graph = model->graph;
    if (!graph) return (stk_value){NULL, -1};
    if (sample.rank < 0 || sample.rank >= STK_MAX_RANK) {
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "input '%s' has rank %d for a sample, and may have 0 to %d",
                                             name, (int)sample.rank, STK_MAX_RANK - 1));
        return stk_value_none(graph);
    }
    stk_shape shape = {.rank = sample.rank + 1, .dim = {STK_ANY}};
    for (int i = 0; i < sample.rank; i++) {
        if (sample.dim[i] < 1) {
            char text[STK_SHAPE_TEXT_BYTES];
            stk_graph_keep_error(graph, stk_fail(STK_INVALID, "input '%s' has samples %s of an unknown or empty shape",
                                                 name, stk_shape_text(sample, text)));
            return stk_value_none(graph);
        }
        shape.dim[1 + i] = sample.dim[i];
    }
    return stk_graph_input(graph, name, dtype, shape);
}

stk_value stk_model_input_shape(stk_model *model, stk_dtype dtype, stk_shape sample)
{
    if (!model) return (stk_value){0};
    return add_input(model, "image", dtype, sample);
}

stk_value stk_model_input_named(stk_model *model, const char *name, stk_dtype dtype, stk_shape sample)
{
    if (!model) return (stk_value){0};
    return add_input(model, name, dtype, sample);
}

stk_value stk_model_label_shape(stk_model *model, stk_dtype dtype, stk_shape sample)
{
    if (!model) return (stk_value){0};
    return add_input(model, "label", dtype, sample);
}

stk_value stk_model_label(stk_model *model)
{
    if (!model) return (stk_value){0};
    return stk_model_label_shape(model, STK_I32, (stk_shape){.rank = 0});
}

/* False, with an error kept, unless x is a float value of the model's graph. */
static bool is_usable(stk_model *model, const char *what, stk_value x)
{
    stk_graph *graph = model->graph;
    if (!graph || graph->status != STK_OK) return false;
    if (x.graph != graph || x.id < 0 || x.id >= graph->n_values)
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "the %s is no value of model '%s'", what, model->name));
    else if (!stk_dtype_is_float(stk_value_dtype(x)))
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "the %s of model '%s' is %s, and must be a float", what,
                                             model->name, stk_dtype_name(stk_value_dtype(x))));
    return graph->status == STK_OK;
}

/* The logits of the cross-entropy that the loss depends on, the last one where there are several; -1: none. */
static int32_t find_logits(const stk_graph *graph, stk_value loss)
{
    int32_t logits = -1;
    bool *needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    if (!needed) return -2;
    stk_graph_mark_needed(loss, needed);
    for (int i = 0; i < graph->n_nodes; i++)
        if (needed[i] && graph->node[i].op == STK_OP_cross_entropy) logits = graph->node[i].in[0];
    free(needed);
    return logits;
}

void stk_model_loss(stk_model *model, stk_value loss)
{
    if (!model) return;
    if (!is_usable(model, "loss", loss)) return;
    stk_shape shape = stk_value_shape(loss);
    if (shape.rank != 1) {
        char text[STK_SHAPE_TEXT_BYTES];
        stk_graph_keep_error(model->graph,
                             stk_fail(STK_INVALID, "the loss of model '%s' is %s, and must be [N], one for each sample",
                                      model->name, stk_shape_text(shape, text)));
        return;
    }
    model->loss = loss.id;
    if (model->output >= 0) return;
    int32_t logits = find_logits(model->graph, loss);
    if (logits == -2)
        stk_graph_keep_error(model->graph, stk_fail_memory((size_t)model->graph->n_nodes));
    else
        model->output = logits;
}

void stk_model_loss_weight(stk_model *model, stk_value weight)
{
    if (!model) return;
    char text[STK_SHAPE_TEXT_BYTES];
    if (!is_usable(model, "loss's weight", weight)) return;
    if (stk_value_shape(weight).rank == 1 && stk_value_dtype(weight) == STK_F32)
        model->weight = weight.id;
    else
        stk_graph_keep_error(model->graph, stk_fail(STK_INVALID,
                                                    "the loss's weight of model '%s' is %s %s, and must be f32 [N], "
                                                    "one for each sample",
                                                    model->name, stk_dtype_name(stk_value_dtype(weight)),
                                                    stk_shape_text(stk_value_shape(weight), text)));
}

void stk_model_output(stk_model *model, stk_value logits)
{
    if (!model) return;
    if (is_usable(model, "output", logits)) model->output = logits.id;
}

void stk_model_embedding(stk_model *model, stk_value rows)
{
    if (!model) return;
    stk_model_output(model, rows);
    if (model->graph) model->is_embedding = true;
}

bool stk_model_is_embedding(const stk_model *model)
{
    if (!model) return false;
    return model->is_embedding;
}

stk_value stk_model_get_loss(const stk_model *model)
{
    if (!model) return (stk_value){0};
    return (stk_value){model->graph, model->loss};
}

stk_value stk_model_get_loss_weight(const stk_model *model)
{
    if (!model) return (stk_value){0};
    return (stk_value){model->graph, model->weight};
}

stk_value stk_model_get_output(const stk_model *model)
{
    if (!model) return (stk_value){0};
    return (stk_value){model->graph, model->output};
}

void stk_model_target(stk_model *model, stk_value target, bool ignores, int64_t ignore_index)
{
    if (!model) return;
    stk_graph *graph = model->graph;
    if (!graph || graph->status != STK_OK) return;
    if (target.graph != graph || target.id < 0 || target.id >= graph->n_values) {
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "the target is no value of model '%s'", model->name));
        return;
    }
    model->target = target.id;
    model->ignores = ignores;
    model->ignore_index = ignore_index;
}

stk_value stk_model_get_target(const stk_model *model, bool *ignores, int64_t *ignore_index)
{
    if (!model) return (stk_value){0};
    if (ignores) *ignores = model->ignores;
    if (ignore_index) *ignore_index = model->ignore_index;
    return (stk_value){model->graph, model->target};
}
