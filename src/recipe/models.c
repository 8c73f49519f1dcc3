/* The networks that there are, and how large they are. See stoker/nn/models.h. */
#include "stoker/nn/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/graph.h"
#include "recipe/build.h"
#include "tensor/shape.h"

#define IMAGES "image: [224, 224, 3]"
#define SMALL  "image: [32, 32, 3]"
#define TOKENS "tokens: {shape: [128], below: 30522}"
#define TEXT   "tokens: {shape: [1024], below: 50257}, targets: {shape: [1024], below: 50257}"
static const struct {
    stk_known_model shown;
    const char *fields, *rest; /* of the source, and further keys */
    int classes;
} models[] = {
    {{"mlp", "28 x 28 x 1, 10 classes"}, "image: [28, 28, 1]", "", 10},
    {{"cnn", "32 x 32 x 3, 10 classes"}, SMALL, "", 10},
    {{"vgg16", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"resnet18", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"resnet34", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"resnet50", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"resnet101", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"mobilenet_v2", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"vit: {size: tiny}", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"vit: {size: base}", "224 x 224 x 3, 1000 classes"}, IMAGES, "", 1000},
    {{"unet: {classes: 2}", "256 x 256 x 3, a class a pixel"},
     "image: [256, 256, 3], mask: {shape: [256, 256], below: 2}",
     "",
     0},
    {{"autoencoder", "28 x 28 x 1"}, "image: [28, 28, 1]", "\nloss: mse", 0},
    {{"cnn3d", "16 x 32 x 32 x 1, 4 classes"}, "image: [16, 32, 32, 1]", "", 4},
    {{"wide_and_deep: {categories: {a: 100, b: 100}, numbers: x}", "2 categories, 8 numbers"},
     "a: {shape: [], below: 100}, b: {shape: [], below: 100}, x: [8], label: [1]",
     "\nloss: bce",
     0},
    {{"bert: {size: mini}", "128 tokens, 2 classes"}, TOKENS, "", 2},
    {{"bert: {size: base}", "128 tokens, 2 classes"}, TOKENS, "", 2},
    {{"lstm: {vocabulary: 30522}", "32 tokens, 2 classes"}, "tokens: {shape: [32], below: 30522}", "", 2},
    {{"gru: {vocabulary: 30522}", "32 tokens, 2 classes"}, "tokens: {shape: [32], below: 30522}", "", 2},
    {{"gpt2: {size: mini}", "1024 tokens"}, TEXT, "", 0},
    {{"gpt2: {size: 124m}", "1024 tokens"}, TEXT, "", 0},
};
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

bool stk_known_model_get(int i, stk_known_model *out)
{
    if (i < 0 || i >= N_MODELS) return false;
    *out = models[i].shown;
    return true;
}

/* By the whole name, else by what stands before its settings. */
static int find_model(const char *name)
{
    size_t n = strcspn(name, ":");
    for (int i = 0; i < N_MODELS; i++)
        if (!strcmp(models[i].shown.name, name)) return i;
    for (int i = N_MODELS - 1; i >= 0; i--)
        if (strcspn(models[i].shown.name, ":") == n && !strncmp(models[i].shown.name, name, n)) return i;
    return -1;
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
static stk_status build(int i_model, const char *name, stk_recipe **recipe, stk_dataset **train, stk_model **model)
{
    stk_text text = {0};
    stk_status status;
    stk_text_add(&text, "data:\n  train:\n    source: {synthetic: {fields: {%s}", models[i_model].fields);
    if (models[i_model].classes) stk_text_add(&text, ", classes: %d", models[i_model].classes);
    stk_text_add(&text, "}}\nbatch: 1%s\nmodel: ", models[i_model].rest);
    add_model(&text, strchr(name, ':') ? name : models[i_model].shown.name, models[i_model].classes);
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
    stk_recipe *recipe = NULL;
    stk_dataset *train = NULL;
    stk_model *model = NULL;
    stk_status status;
    int i = find_model(name);
    if (i < 0) {
        const char *names[N_MODELS + 1] = {NULL};
        for (int j = 0; j < N_MODELS; j++)
            names[j] = models[j].shown.name;
        const char *nearest = stk_nearest_name(name, names);
        return stk_fail(STK_NOT_FOUND, "there is no model '%.60s'%s%s%s; 'stoker models' lists them", name,
                        nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
    }
    STK_TRY(build(i, name, &recipe, &train, &model));
    if (layers) STK_TRY(show_layers(stk_model_graph(model), on_line, user));
    stk_model_size size = stk_model_get_size(model);
    on_line(user, &(stk_model_line){.n_parameters = size.n_parameters, .forward_flops = size.forward_flops});
done:
    stk_model_free(model);
    stk_dataset_free(train);
    stk_recipe_free(recipe);
    return status;
}
