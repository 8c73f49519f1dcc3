/* `layers:` lists: one layer after the other. What names, joins and holds them is in layer_joins.c. See recipe/build.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/query.h"
#include "recipe/layer_walk.h"

enum { MOST_LAYERS = 10000, MOST_NODES = 250000 };

#define X(layer) &stk_layer_class_##layer,
static const stk_layer_class *const classes[] = {STK_LAYER_LIST(X) NULL};
#undef X

const stk_layer_class *stk_layer_class_find(const char *name)
{
    for (int i = 0; classes[i]; i++)
        if (!strcmp(classes[i]->key.name, name)) return classes[i];
    return NULL;
}

/* --- branches --- */

static stk_status keep_end(stk_layer_walk *walk, const stk_yaml_node *layer, stk_value x)
{
    if (walk->n_ends == walk->n_room) {
        int room = 2 * walk->n_room + 16;
        stk_branch_end *grown = realloc(walk->end, (size_t)room * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)room * sizeof(*grown));
        walk->end = grown;
        walk->n_room = room;
    }
    walk->end[walk->n_ends++] = (stk_branch_end){layer, x};
    return STK_OK;
}

/* Layers that the output does not depend on would be dropped in silence. The last such end is told: what ends before it
 * may be used by it alone. */
static stk_status check_ends(const stk_layer_walk *walk, stk_value output)
{
    const stk_graph *graph = output.graph;
    stk_status status = STK_OK;
    if (walk->n_ends == 0) return STK_OK;
    bool *needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    if (!needed) return stk_fail_memory((size_t)graph->n_nodes);
    stk_graph_mark_needed(output, needed);
    for (int i = walk->n_ends - 1; i >= 0 && status == STK_OK; i--) {
        const stk_branch_end *end = &walk->end[i];
        if (needed[graph->value[end->value.id].node]) continue;
        if (stk_layer_class_find(end->layer->key) == &stk_layer_class_name)
            status = stk_yaml_fail_key(end->layer,
                                       "the output does not depend on '%.60s': join it by add, mul or concat, or take "
                                       "this branch out",
                                       end->layer->text);
        else
            status = stk_yaml_fail_key(end->layer,
                                       "the output does not depend on this layer, '%s': give what it makes a {name: "
                                       "...} and join it by add, mul or concat, or take this branch out",
                                       end->layer->key);
    }
    free(needed);
    return status;
}

/* --- lists --- */

/* Does the layer name what it takes, so that it may stand where there is no value yet? */
static bool names_inputs(const stk_layer_class *class, const stk_yaml_node *s)
{
    return class == &stk_layer_class_from || (class == &stk_layer_class_onnx && stk_yaml_get(s, "inputs"));
}

static stk_status build_one(stk_layer_walk *walk, const stk_layer_class *class, const stk_yaml_node *s, stk_value *x)
{
    if (!class) return stk_yaml_fail(s, "layer '%.60s' cannot be built", s->key);
    if (x->id < 0 && !class->begins && !names_inputs(class, s))
        return stk_yaml_fail_key(s, "no input before: begin with {from: FIELD}, a field of the data");
    if (class->build_in) return class->build_in(walk, s, x);
    if (class->build) return class->build(s, x);
    *x = class->apply(*x);
    return STK_OK;
}

stk_status stk_layer_walk_list(stk_layer_walk *walk, const stk_yaml_node *layers, stk_value *x)
{
    stk_graph *graph = stk_model_graph(walk->data->model);
    for (const stk_yaml_node *layer = layers ? layers->child : NULL; layer; layer = layer->next) {
        const stk_layer_class *class = stk_layer_class_find(layer->child->key);
        if (++walk->n_layers > MOST_LAYERS)
            return stk_yaml_fail_key(layer->child, "more than %d layers, those that 'repeat' makes among them",
                                     MOST_LAYERS);
        if (names_inputs(class, layer->child) && x->id >= 0)
            STK_RETURN_IF_ERROR(keep_end(walk, walk->before ? walk->before : layer->child, *x));
        bool keeps_f32 = stk_yaml_is(layer->child, "dtype", "f32");
        if (keeps_f32) stk_f32_push(graph);
        STK_RETURN_IF_ERROR(build_one(walk, class, layer->child, x));
        if (keeps_f32) stk_f32_pop(graph);
        walk->before = layer->child;
        if (graph->n_nodes > MOST_NODES)
            return stk_yaml_fail_key(layer->child, "the network has %d nodes so far, and may have %d", graph->n_nodes,
                                     MOST_NODES);
        if (stk_graph_status(graph) == STK_OK) continue;
        /* The graph knows what is wrong, the recipe where. */
        stk_text text = {0};
        stk_text_add(&text, "%s", stk_error_text());
        stk_status status = stk_yaml_fail(layer, "%s", stk_text_get(&text));
        stk_text_free(&text);
        return status;
    }
    return STK_OK;
}

/* --- the model --- */

/* It begins with an input of its own, unless its first layer names what it takes. */
static stk_status build_model(const stk_model_call *call, stk_value *out)
{
    const stk_yaml_node *layers = call->settings, *first = layers->child;
    stk_layer_walk walk = {.data = call->data};
    *out = call->x;
    if (!first || !names_inputs(stk_layer_class_find(first->child->key), first->child))
        STK_RETURN_IF_ERROR(stk_build_input(call->data, true, out));
    if (!first) return stk_yaml_fail(layers, "'layers' is empty");
    stk_status status = stk_layer_walk_list(&walk, layers, out);
    if (status == STK_OK && stk_graph_status(out->graph) == STK_OK) status = check_ends(&walk, *out);
    free(walk.end);
    return status;
}

const stk_model_class stk_model_class_layers = {
    .key = {.name = "layers",
            .type = STK_KEY_LIST,
            .element = &stk_layer_key,
            .doc = "Your own, from input to output; see below."},
    .takes = STK_MODEL_TAKES_FIELDS,
    .build = build_model,
};

/* --- keys --- */

#define X(layer) &stk_layer_class_##layer.key,
static const stk_key *const kinds[] = {STK_LAYER_LIST(X) NULL};
#undef X

const stk_key stk_layer_key = {.name = "layer", .type = STK_KEY_CHOICE, .kinds = kinds};
