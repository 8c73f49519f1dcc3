/* Parts of recipes alone: a layer, a network, a loss or an optimiser by its text. See stoker/nn/parse.h. */
#include <stdlib.h>
#include <string.h>

#include "nn/layer_list.h"
#include "nn/loss_list.h"
#include "nn/model_list.h"
#include "optim/optimizer.h"
#include "recipe/build.h"
#include "recipe/keys.h"
#include "recipe/layer_walk.h"
#include "stoker/nn/parse.h"

/* text as `key` has it. The caller frees *out, also after an error. */
static stk_status read(const char *what, const char *text, const stk_key *key, stk_yaml **out)
{
    *out = NULL;
    if (!text) return stk_fail(STK_INVALID, "the %s's text is NULL", what);
    STK_RETURN_IF_ERROR(stk_yaml_parse(what, text, strlen(text), out));
    return stk_schema_check(*out, (*out)->root, key);
}

/* The text, and a model around the graph, which what recipes name is built in. The caller frees both. */
static stk_status begin(stk_graph *graph, const char *what, const char *text, const stk_key *key, stk_yaml **yaml,
                        stk_model **model)
{
    *model = stk_model_over(graph);
    if (!*model) return stk_fail_memory(sizeof(*graph));
    return read(what, text, key, yaml);
}

/* What stays of building: a value, or the graph's error. */
static stk_value settle(stk_graph *graph, stk_status status, stk_value x)
{
    if (status == STK_OK) return x;
    stk_graph_keep_error(graph, status);
    return stk_value_none(graph);
}

static bool is_value(stk_value x)
{
    return x.graph && x.id >= 0 && x.graph->status == STK_OK;
}

stk_value stk_layers_parse(stk_value x, const char *text)
{
    static const stk_key key = {.name = "layers", .type = STK_KEY_LIST, .element = &stk_layer_key, .one_is_list = true};
    if (!is_value(x)) return stk_value_none(x.graph);
    stk_graph *graph = x.graph;
    stk_yaml *yaml = NULL;
    stk_model *model = NULL;
    stk_status status = begin(graph, "layer", text, &key, &yaml, &model);
    stk_layer_walk walk = {.data = &(stk_model_data){.model = model}};
    if (status == STK_OK) status = stk_layer_walk_list(&walk, yaml->root, &x);
    free(walk.end);
    x = settle(graph, status, x);
    stk_yaml_free(yaml);
    stk_model_free(model);
    return x;
}

stk_value stk_network_parse(stk_value x, int64_t n_classes, const char *text)
{
    static const stk_key key = {.name = "network", .type = STK_KEY_CHOICE, .kinds = stk_model_kinds};
    if (!is_value(x)) return stk_value_none(x.graph);
    stk_graph *graph = x.graph;
    stk_yaml *yaml = NULL;
    stk_model *model = NULL;
    stk_value out = stk_value_none(graph);
    stk_status status = begin(graph, "network", text, &key, &yaml, &model);
    stk_model_data data = {.model = model};
    if (status == STK_OK) {
        const stk_yaml_node *settings = yaml->root->child;
        const stk_model_class *class = stk_model_class_find(settings->key);
        stk_model_call call = {.settings = settings,
                               .x = x,
                               .targets = out,
                               .n_classes = stk_yaml_int(settings, "classes", n_classes),
                               .get_field = stk_build_field,
                               .data = &data};
        if (!class->build || class->takes == STK_MODEL_TAKES_FIELDS)
            status = stk_yaml_fail_key(settings, "'%s' is no network of one value: build it by layers", settings->key);
        else if (class->has_classes && call.n_classes < 1)
            status = stk_yaml_fail_key(settings, "%lld classes: say how many", (long long)call.n_classes);
        else
            status = class->build(&call, &out);
    }
    out = settle(graph, status, out);
    stk_yaml_free(yaml);
    stk_model_free(model);
    return out;
}

stk_value stk_loss_parse(stk_value output, stk_value target, const char *text, stk_value *weight)
{
    static const stk_key key = {.name = "loss", .type = STK_KEY_CHOICE, .kinds = stk_loss_kinds};
    if (weight) *weight = stk_value_none(output.graph);
    if (!is_value(output)) return stk_value_none(output.graph);
    stk_graph *graph = output.graph;
    stk_yaml *yaml = NULL;
    stk_model *model = NULL;
    stk_value loss = stk_value_none(graph);
    stk_status status = begin(graph, "loss", text, &key, &yaml, &model);
    if (status == STK_OK) {
        const stk_yaml_node *settings = yaml->root->child;
        const stk_loss_class *class = stk_loss_class_of(settings->key);
        status = class->compares == STK_LOSS_TOKENS
                     ? stk_yaml_fail_key(settings, "'%s' is no loss of one value and a target", settings->key)
                     : class->build(settings, model, output, target);
    }
    if (status == STK_OK) loss = stk_model_get_loss(model);
    if (status == STK_OK && weight) *weight = stk_model_get_loss_weight(model);
    loss = settle(graph, status, loss);
    stk_yaml_free(yaml);
    stk_model_free(model);
    return loss;
}

stk_status stk_optimizer_parse(const char *text, stk_optimizer *out)
{
    static const stk_key key = {.name = "optimizer", .type = STK_KEY_CHOICE, .kinds = stk_optimizer_kinds};
    STK_NEED(out);
    stk_yaml *yaml = NULL;
    stk_optimizer read_one;
    stk_status status = read("optimizer", text, &key, &yaml);
    if (status == STK_OK) status = stk_optimizer_read(yaml->root->child, &read_one);
    if (status == STK_OK) *out = read_one;
    stk_yaml_free(yaml);
    return status;
}
