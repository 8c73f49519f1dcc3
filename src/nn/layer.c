#include "nn/layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* prefix + name, or prefix + kind + the first counter that is free. The counter lives in the variables' names alone, so
 * that a copy of a graph goes on where the original stood. */
static stk_status make_name(stk_graph *graph, const char *kind, const char *name, const char **out)
{
    const char *prefix = graph->scope ? graph->scope->prefix : "";
    stk_text text = {0};
    stk_text_add(&text, "%s%s", prefix, name ? name : kind);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK && !name) status = stk_graph_new_scope(graph, text.data, out);
    if (status == STK_OK && name && !(*out = stk_arena_text(graph->arena, text.data))) status = stk_fail_memory(text.n);
    stk_text_free(&text);
    return status;
}

bool stk_layer_begin(stk_layer *layer, stk_value x, const char *kind, const char *name)
{
    stk_graph *graph = x.graph;
    if (!graph || graph->status != STK_OK) return false;
    *layer = (stk_layer){.graph = graph, .name = kind, .x = x};
    if (stk_graph_keep_error(graph, make_name(graph, kind, name, &layer->name)) != STK_OK) return false;
    if (x.id < 0 || x.id >= graph->n_values) {
        stk_layer_fail(layer, "its input is no value");
        return false;
    }
    if (name && !name[0]) {
        stk_layer_fail(layer, "its name is empty");
        return false;
    }
    layer->shape = stk_value_shape(x);
    layer->dtype = stk_value_dtype(x) == STK_F64 ? STK_F64 : STK_F32;
    return true;
}

stk_value stk_layer_variable(const stk_layer *layer, const char *part, stk_shape shape, stk_init init, bool trainable)
{
    stk_text name = {0};
    stk_text_add(&name, "%s.%s", layer->name, part);
    stk_value variable = stk_value_none(layer->graph);
    if (stk_graph_keep_error(layer->graph, stk_text_status(&name)) == STK_OK)
        variable = stk_graph_variable(layer->graph, stk_text_get(&name), layer->dtype, shape, init, trainable);
    stk_text_free(&name);
    return variable;
}

stk_value stk_layer_fail(const stk_layer *layer, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    stk_graph_keep_error(layer->graph, stk_fail(STK_INVALID, "layer '%s': %s", layer->name, text));
    return stk_value_none(layer->graph);
}

stk_value stk_layer_end(const stk_layer *layer, stk_value y)
{
    stk_graph *graph = layer->graph;
    if (graph->status == STK_OK) return y;
    stk_fail(graph->status, "%s", graph->error);
    stk_fail_prefix(graph->status, "layer '%s': ", layer->name);
    snprintf(graph->error, sizeof(graph->error), "%s", stk_error_text());
    return stk_value_none(graph);
}

const char *stk_layer_own_name(const stk_layer *layer)
{
    return layer->name + (layer->graph->scope ? strlen(layer->graph->scope->prefix) : 0);
}

bool stk_layer_need_float(const stk_layer *layer)
{
    stk_dtype dtype = stk_value_dtype(layer->x);
    if (dtype == STK_F32 || dtype == STK_F64) return true;
    stk_layer_fail(layer, "its input is %s, and must be f32 or f64", stk_dtype_name(dtype));
    return false;
}

bool stk_layer_need_space(const stk_layer *layer, int n_dims)
{
    const stk_shape *x = &layer->shape;
    bool is_known = x->rank == n_dims + 2;
    for (int i = 1; i < x->rank; i++)
        is_known = is_known && x->dim[i] > 0;
    if (is_known) return stk_layer_need_float(layer);
    char text[STK_SHAPE_TEXT_BYTES];
    stk_layer_fail(layer, "its input is %s, and must be %s of known size", stk_shape_text(*x, text),
                   n_dims == 2 ? "images [N,H,W,C]" : "volumes [N,D,H,W,C]");
    return false;
}

bool stk_layer_need_sequence(const stk_layer *layer)
{
    const stk_shape *x = &layer->shape;
    if (x->rank == 3 && x->dim[1] > 0 && x->dim[2] > 0) return stk_layer_need_float(layer);
    char text[STK_SHAPE_TEXT_BYTES];
    stk_layer_fail(layer, "its input is %s, and must be [N,T,C] of known T and C", stk_shape_text(*x, text));
    return false;
}

bool stk_layer_need_range(const stk_layer *layer, const char *what, int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high) return true;
    if (value < low)
        stk_layer_fail(layer, "%s is %lld, and must be %lld or more", what, (long long)value, (long long)low);
    else
        stk_layer_fail(layer, "%s is %lld, and must be %lld or less", what, (long long)value, (long long)high);
    return false;
}
