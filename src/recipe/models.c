/* The networks that there are, and how large they are. See stoker/nn/models.h. */
#include "stoker/nn/models.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/graph.h"
#include "nn/model_list.h"
#include "recipe/build.h"
#include "tensor/shape.h"

/* A row of the listing. */
typedef struct row {
    const stk_model_class *class;
    const stk_model_sample *sample;
} row;

static int place_of(const stk_model_class *class)
{
    return class->place ? class->place : INT_MAX;
}

/* Row number i: by the models' places, then as the list has them. False past the last. */
static bool get_row(int i, row *out)
{
    const stk_model_class *class;
    int n_before = 0;
    for (int c = 0; (class = stk_model_class_at(c)); c++) {
        const stk_model_class *other;
        n_before = 0;
        for (int d = 0; (other = stk_model_class_at(d)); d++)
            if (place_of(other) < place_of(class) || (d < c && place_of(other) == place_of(class)))
                for (int k = 0; k < STK_MODEL_MOST_SAMPLES; k++)
                    n_before += other->sample[k].of != NULL;
        for (int k = 0; k < STK_MODEL_MOST_SAMPLES && class->sample[k].of; k++)
            if (n_before + k == i) {
                *out = (row){class, &class->sample[k]};
                return true;
            }
    }
    return false;
}

static const char *name_of(const row *r)
{
    return r->sample->name ? r->sample->name : r->class->key.name;
}

bool stk_known_model_get(int i, stk_known_model *out)
{
    if (!out) return false;
    row r;
    if (!get_row(i, &r)) return false;
    *out = (stk_known_model){name_of(&r), r.sample->of};
    return true;
}

/* By the whole name, else by what stands before its settings, of which the last counts. */
static bool find_row(const char *name, row *out)
{
    row r;
    size_t n = strcspn(name, ":");
    bool found = false;
    for (int i = 0; get_row(i, &r); i++) {
        bool is_it = !strcmp(name_of(&r), name);
        if (!is_it && (strlen(r.class->key.name) != n || strncmp(r.class->key.name, name, n))) continue;
        *out = r;
        found = true;
        if (is_it) break;
    }
    return found;
}

static stk_status refuse_name(const char *name)
{
    enum { MOST_NAMES = 64 };
    row r;
    const char *names[MOST_NAMES + 1] = {NULL};
    for (int i = 0; i < MOST_NAMES && get_row(i, &r); i++)
        names[i] = name_of(&r);
    const char *nearest = stk_nearest_name(name, names);
    return stk_fail(STK_NOT_FOUND, "there is no model '%.60s'%s%s%s; 'stoker models' lists them", name,
                    nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

/* "vit: {size: tiny}" as {vit: {classes: 1000, size: tiny}}: the source of random samples does not tell how many. */
static void add_model(stk_text *text, const char *name, int classes)
{
    size_t n = strcspn(name, ":");
    const char *open = strchr(name, '{');
    stk_text_add(text, "{");
    stk_text_add_bytes(text, name, n);
    stk_text_add(text, ": {");
    if (classes && !strstr(name, "classes")) stk_text_add(text, "classes: %d%s", classes, open ? ", " : "");
    stk_text_add(text, "%s}\n", open ? open + 1 : "}");
}

/* A recipe on random samples that fit, whose model is built and never trained. */
static stk_status build(const row *r, const char *name, stk_recipe **recipe, stk_dataset **train, stk_model **model)
{
    stk_text text = {0};
    stk_status status;
    stk_text_add(&text, "data:\n  train:\n    source: {synthetic: {fields: {%s}", r->sample->fields);
    if (r->sample->n_classes) stk_text_add(&text, ", classes: %d", r->sample->n_classes);
    stk_text_add(&text, "}}\nbatch: 1\n%s\nmodel: ", r->sample->rest ? r->sample->rest : "");
    add_model(&text, strchr(name, ':') ? name : name_of(r), r->sample->n_classes);
    STK_TRY(stk_text_status(&text));
    STK_TRY(stk_recipe_parse("model", stk_text_get(&text), text.n, NULL, 0, recipe));
    STK_TRY(stk_build_dataset(*recipe, STK_PART_TRAIN, train));
    STK_TRY(stk_build_model(*recipe, *train, model));
done:
    stk_text_free(&text);
    return status;
}

/* "layer1.0.conv1" of "layer1.0.conv1.weight". */
static size_t layer_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static stk_status show_layers(const stk_graph *graph, void (*on_line)(void *user, const stk_model_line *line),
                              void *user)
{
    char shape[STK_SHAPE_TEXT_BYTES];
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable || !node->attrs.leaf.trainable) continue;
        size_t n = layer_length(node->name);
        stk_text name = {0};
        stk_text_add_bytes(&name, node->name, n);
        STK_RETURN_IF_ERROR(stk_text_status(&name));
        stk_model_line line = {.name = stk_text_get(&name),
                               .shape = stk_shape_text(graph->value[node->first_out].desc.shape, shape)};
        /* Those that follow belong to it as long as their names do. */
        for (; i < graph->n_nodes; i++) {
            const stk_node *next = &graph->node[i];
            if (next->op != STK_OP_variable) continue;
            if (layer_length(next->name) != n || strncmp(next->name, node->name, n)) break;
            if (next->attrs.leaf.trainable)
                line.n_parameters += stk_shape_count(graph->value[next->first_out].desc.shape);
        }
        i--;
        on_line(user, &line);
        stk_text_free(&name);
    }
    return STK_OK;
}

stk_status stk_known_model_show(const char *name, bool layers, void (*on_line)(void *user, const stk_model_line *line),
                                void *user)
{
    STK_NEED(name);
    STK_NEED(on_line);
    stk_recipe *recipe = NULL;
    stk_dataset *train = NULL;
    stk_model *model = NULL;
    stk_status status;
    row r;
    if (!find_row(name, &r)) return refuse_name(name);
    STK_TRY(build(&r, name, &recipe, &train, &model));
    if (layers) STK_TRY(show_layers(stk_model_graph(model), on_line, user));
    stk_model_size size = stk_model_get_size(model);
    on_line(user, &(stk_model_line){.n_parameters = size.n_parameters, .forward_flops = size.forward_flops});
done:
    stk_model_free(model);
    stk_dataset_free(train);
    stk_recipe_free(recipe);
    return status;
}
