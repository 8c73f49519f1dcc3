/* `layers:` lists: one layer after the other, and what names, joins and repeats them. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/query.h"
#include "recipe/build.h"
#include "recipe/plugin.h"
#include "stoker/files/onnx.h"
#include "tensor/shape.h"

enum { MOST_NAMES = 256, MOST_PARTS = 32, MOST_LAYERS = 10000, MOST_NODES = 250000, MOST_SCOPE_BYTES = 1 << 10 };

/* A value that a `from` left behind, by the last layer before it. */
typedef struct branch_end {
    const stk_yaml_node *layer;
    stk_value value;
} branch_end;

/* What a list knows besides its layers. */
typedef struct network {
    const stk_dataset *train;
    stk_model *model;
    struct {
        const char *name;
        stk_value value;
    } named[MOST_NAMES];
    int n_named;
    const stk_yaml_node *before; /* the layer whose value a list begins with; NULL: a field of the data */
    branch_end *end;             /* free() */
    int n_ends, n_room;
    int n_layers; /* built so far: blocks in blocks multiply */
} network;

/* --- names --- */

stk_status stk_build_field(const stk_yaml_node *place, const stk_dataset *train, stk_model *model, const char *field,
                           stk_value *out)
{
    stk_tensor_desc desc;
    *out = stk_graph_find(stk_model_graph(model), STK_OP_input, field);
    if (out->id >= 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dataset_field(train, field, true, &desc.dtype, &desc.shape));
    if (!stk_shape_known(desc.shape))
        return stk_yaml_fail(place, "field '%s' differs from sample to sample: training needs one shape", field);
    *out = stk_model_input_named(model, field, desc.dtype, desc.shape);
    return STK_OK;
}

static stk_status find_value(const network *net, const stk_yaml_node *node, const char *name, stk_value *out)
{
    for (int i = net->n_named - 1; i >= 0; i--) {
        if (strcmp(net->named[i].name, name)) continue;
        *out = net->named[i].value;
        return STK_OK;
    }
    stk_status status = stk_build_field(node, net->train, net->model, name, out);
    if (status != STK_NOT_FOUND && status != STK_INVALID) return status;
    stk_text text = {0};
    for (int i = 0; i < net->n_named; i++)
        stk_text_add(&text, "%s%s", i ? ", " : ": ", net->named[i].name);
    status = stk_yaml_fail(node, "nothing before is named '%.60s', and the data has no such field; the names are%s",
                           name, net->n_named ? stk_text_get(&text) : " none");
    stk_text_free(&text);
    return status;
}

static stk_status keep_name(network *net, const stk_yaml_node *node, stk_value x)
{
    for (int i = 0; i < net->n_named; i++)
        if (!strcmp(net->named[i].name, node->text))
            return stk_yaml_fail(node, "the name '%.60s' is given twice", node->text);
    if (net->n_named == MOST_NAMES) return stk_yaml_fail(node, "more than %d names", MOST_NAMES);
    net->named[net->n_named].name = node->text;
    net->named[net->n_named++].value = x;
    return STK_OK;
}

/* --- branches --- */

static stk_status keep_end(network *net, const stk_yaml_node *layer, stk_value x)
{
    if (net->n_ends == net->n_room) {
        int room = 2 * net->n_room + 16;
        branch_end *grown = realloc(net->end, (size_t)room * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)room * sizeof(*grown));
        net->end = grown;
        net->n_room = room;
    }
    net->end[net->n_ends++] = (branch_end){layer, x};
    return STK_OK;
}

/* Layers that the output does not depend on would be dropped in silence. The last such end is told: what ends before it
 * may be used by it alone. */
static stk_status check_ends(const network *net, stk_value output)
{
    const stk_graph *graph = output.graph;
    stk_status status = STK_OK;
    if (net->n_ends == 0) return STK_OK;
    bool *needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    if (!needed) return stk_fail_memory((size_t)graph->n_nodes);
    stk_graph_mark_needed(output, needed);
    for (int i = net->n_ends - 1; i >= 0 && status == STK_OK; i--) {
        const branch_end *end = &net->end[i];
        if (needed[graph->value[end->value.id].node]) continue;
        if (!strcmp(end->layer->key, "name"))
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

/* --- joints --- */

static stk_status refuse_shapes(const stk_yaml_node *node, const char *name, stk_value a, stk_value b, const char *must)
{
    char a_text[STK_SHAPE_TEXT_BYTES], b_text[STK_SHAPE_TEXT_BYTES];
    return stk_yaml_fail(node, "the layers so far give %s, and '%.60s' is %s; %s",
                         stk_shape_text(stk_value_shape(a), a_text), name, stk_shape_text(stk_value_shape(b), b_text),
                         must);
}

static bool can_multiply(stk_shape a, stk_shape b)
{
    bool can = a.rank == b.rank;
    for (int i = 0; can && i < a.rank; i++)
        can = a.dim[i] == b.dim[i] || a.dim[i] == 1 || b.dim[i] == 1;
    return can;
}

static bool can_concatenate(stk_shape a, stk_shape b)
{
    bool can = a.rank == b.rank && a.rank > 1;
    for (int i = 0; can && i < a.rank - 1; i++)
        can = a.dim[i] == b.dim[i];
    return can;
}

static stk_status join(network *net, const stk_yaml_node *node, stk_value *x)
{
    stk_value part[MOST_PARTS] = {*x};
    int n = 1;
    for (const stk_yaml_node *name = node->child; name; name = name->next, n++) {
        if (n == MOST_PARTS) return stk_yaml_fail(node, "more than %d values", MOST_PARTS - 1);
        STK_RETURN_IF_ERROR(find_value(net, name, name->text, &part[n]));
        stk_shape a = stk_value_shape(*x), b = stk_value_shape(part[n]);
        if (!strcmp(node->key, "add")) {
            if (!stk_shape_equal(a, b))
                return refuse_shapes(name, name->text, *x, part[n], "they must be equal to be added");
            *x = stk_add(*x, part[n]);
        } else if (!strcmp(node->key, "mul")) {
            if (!can_multiply(a, b))
                return refuse_shapes(name, name->text, *x, part[n], "sides must be equal or 1 to be multiplied");
            *x = stk_mul(*x, part[n]);
        } else if (!can_concatenate(a, b)) {
            return refuse_shapes(name, name->text, *x, part[n], "all sides but the last must be equal");
        }
    }
    if (!strcmp(node->key, "concat")) *x = stk_concat(part, n, stk_value_shape(*x).rank - 1);
    return STK_OK;
}

/* --- lists --- */

static stk_status build_list(network *net, const stk_yaml_node *layers, stk_value *x);

static stk_status build_residual(network *net, const stk_yaml_node *s, stk_value *x)
{
    stk_value main_way = *x, shortcut = *x;
    const stk_yaml_node *before = net->before;
    STK_RETURN_IF_ERROR(build_list(net, stk_yaml_get(s, "layers"), &main_way));
    net->before = before;
    STK_RETURN_IF_ERROR(build_list(net, stk_yaml_get(s, "shortcut"), &shortcut));
    stk_shape a = stk_value_shape(main_way), b = stk_value_shape(shortcut);
    /* The addition would broadcast, which a residual never means. */
    if (!stk_shape_equal(a, b)) {
        char a_text[STK_SHAPE_TEXT_BYTES], b_text[STK_SHAPE_TEXT_BYTES];
        return stk_yaml_fail(s, "the layers give %s and the shortcut %s; they must be equal to be added",
                             stk_shape_text(a, a_text), stk_shape_text(b, b_text));
    }
    *x = stk_add(main_way, shortcut);
    return STK_OK;
}

/* Its layers, under its name and as often as it says: encoder.0.dense, encoder.1.dense. */
static stk_status build_block(network *net, const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *scope = stk_yaml_get(s, "scope");
    int64_t n = stk_yaml_get(s, "repeat")->integer;
    stk_graph *graph = stk_model_graph(net->model);
    for (int64_t i = 0; i < n; i++) {
        stk_text name = {0};
        if (scope) stk_text_add(&name, "%s", scope->text);
        if (scope && n > 1) stk_text_add(&name, ".%lld", (long long)i);
        stk_status status = stk_text_status(&name);
        if (scope && status == STK_OK) stk_scope_push(graph, stk_text_get(&name));
        stk_text_free(&name);
        STK_RETURN_IF_ERROR(status);
        if (scope && graph->scope && strlen(graph->scope->prefix) > MOST_SCOPE_BYTES)
            return stk_yaml_fail(scope, "names of scopes, one in the other, of more than %d bytes", MOST_SCOPE_BYTES);
        STK_RETURN_IF_ERROR(build_list(net, stk_yaml_get(s, "layers"), x));
        if (scope) stk_scope_pop(graph);
    }
    return STK_OK;
}

/* Its errors are the graph's: the list tells them. */
static stk_status build_onnx(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *output = stk_yaml_get(s, "output");
    *x = stk_onnx_apply(*x, stk_yaml_get(s, "file")->text, output ? output->text : NULL);
    return STK_OK;
}

static stk_status build_one(network *net, const stk_yaml_node *s, stk_value *x)
{
    if (!strcmp(s->key, "name")) return keep_name(net, s, *x);
    if (!strcmp(s->key, "from")) return find_value(net, s, s->text, x);
    if (x->id < 0) return stk_yaml_fail_key(s, "no input before: begin with {from: FIELD}, a field of the data");
    if (!strcmp(s->key, "add") || !strcmp(s->key, "mul") || !strcmp(s->key, "concat")) return join(net, s, x);
    if (!strcmp(s->key, "residual")) return build_residual(net, s, x);
    if (!strcmp(s->key, "block")) return build_block(net, s, x);
    if (!strcmp(s->key, "plugin")) return stk_build_plugin(s, x);
    if (!strcmp(s->key, "onnx")) return build_onnx(s, x);
    return stk_build_layer(s, x);
}

static stk_status build_list(network *net, const stk_yaml_node *layers, stk_value *x)
{
    stk_graph *graph = stk_model_graph(net->model);
    for (const stk_yaml_node *layer = layers ? layers->child : NULL; layer; layer = layer->next) {
        const stk_yaml_node *dtype = stk_yaml_get(layer->child, "dtype");
        if (++net->n_layers > MOST_LAYERS)
            return stk_yaml_fail_key(layer->child, "more than %d layers, those that 'repeat' makes among them",
                                     MOST_LAYERS);
        if (!strcmp(layer->child->key, "from") && x->id >= 0)
            STK_RETURN_IF_ERROR(keep_end(net, net->before ? net->before : layer->child, *x));
        bool keeps_f32 = dtype && !strcmp(dtype->text, "f32");
        if (keeps_f32) stk_f32_push(graph);
        STK_RETURN_IF_ERROR(build_one(net, layer->child, x));
        if (keeps_f32) stk_f32_pop(graph);
        net->before = layer->child;
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

stk_status stk_build_layers(const stk_yaml_node *layers, const stk_dataset *train, stk_model *model, stk_value *x)
{
    network net = {.train = train, .model = model};
    stk_status status = build_list(&net, layers, x);
    if (status == STK_OK && stk_graph_status(stk_model_graph(model)) == STK_OK) status = check_ends(&net, *x);
    free(net.end);
    return status;
}
