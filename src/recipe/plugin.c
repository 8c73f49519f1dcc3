/* The layer plugin: layers from shared objects. See stoker/nn/plugin.h. */
#include "stoker/nn/plugin.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/layer_list.h"

/* Stays loaded: graphs may hold texts of it. */
static stk_status open_plugin(const stk_yaml_node *file, const stk_plugin_info **out)
{
    void *handle = dlopen(file->text, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return stk_yaml_fail(file, "cannot load '%s': %s", file->text, dlerror());
    *out = dlsym(handle, "stoker_plugin");
    if (!*out)
        return stk_yaml_fail(file, "'%s' is no plug-in: it has no 'stoker_plugin' (STK_EXPORT_LAYERS)", file->text);
    if ((*out)->abi != STK_PLUGIN_ABI || (*out)->bytes_of_value != sizeof(stk_value))
        return stk_yaml_fail(file, "'%s' was built for plug-ins of version %u, this program takes %d: rebuild it",
                             file->text, (unsigned)(*out)->abi, STK_PLUGIN_ABI);
    return STK_OK;
}

static stk_status find_layer(const stk_plugin_info *info, const stk_yaml_node *name, const stk_layer_plugin **out)
{
    for (*out = info->layers; (*out)->name; (*out)++)
        if (!name || !strcmp(name->text, (*out)->name)) return STK_OK;
    stk_text text = {0};
    for (const stk_layer_plugin *layer = info->layers; layer->name; layer++)
        stk_text_add(&text, "%s%s", text.n ? ", " : "", layer->name);
    stk_status status =
        stk_yaml_fail(name, "the plug-in has no layer '%.60s'; it has %s", name->text, stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

static stk_status build(const stk_yaml_node *settings, stk_value *x)
{
    const stk_plugin_info *info = NULL;
    const stk_layer_plugin *layer = NULL;
    const stk_yaml_node *file = stk_yaml_get(settings, "file"), *name = stk_yaml_get(settings, "layer");
    stk_graph *graph = x->graph;
    STK_RETURN_IF_ERROR(open_plugin(file, &info));
    if (!info->layers || !info->layers->name) return stk_yaml_fail(file, "'%s' has no layers", file->text);
    STK_RETURN_IF_ERROR(find_layer(info, name, &layer));
    *x = layer->build(*x, stk_yaml_get(settings, "settings")->text);
    if (stk_graph_status(graph) != STK_OK) return STK_OK; /* The list tells. */
    if (x->graph == graph && x->id >= 0) return STK_OK;
    return stk_yaml_fail(settings, "the layer '%s' of '%s' gave no value of this network", layer->name, file->text);
}

static const stk_key keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "A shared object, looked for as data is."},
    {.name = "layer", .type = STK_KEY_TEXT, .doc = "Which of its layers. Default: the first."},
    {.name = "settings", .type = STK_KEY_TEXT, .default_value = "''", .doc = "A text for it."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_plugin = {
    .key = {.name = "plugin", .type = STK_KEY_MAP, .keys = keys, .doc = "A layer of one's own in C; custom.md."},
    .build = build,
    .reads_file = true,
};
