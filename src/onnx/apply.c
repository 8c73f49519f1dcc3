/* A model as a part of another network: see stk_onnx_apply in stoker/files/onnx.h. */
#include <stdlib.h>
#include <string.h>

#include "onnx/export.h"
#include "onnx/model.h"

/* --- the value that feeds it --- */

enum { MOST_SCALING = 4 };

static bool is_integer(stk_dtype dtype)
{
    return dtype == STK_I32 || dtype == STK_I64;
}

static bool is_image(stk_value x)
{
    int rank = stk_value_shape(x).rank;
    return rank == 4 || rank == 5;
}

/* Does a value of this shape, which has its channels last, fit as it is, or turned to channels first? */
static bool fits(const Onnx__TensorShapeProto *dims, stk_shape shape, bool turned)
{
    if (dims->n_dim != (size_t)shape.rank) return false;
    /* The first is the batch's, whatever the model was exported with. */
    for (int i = 1; i < shape.rank; i++) {
        int axis = !turned ? i : i == 1 ? shape.rank - 1 : i - 1;
        if (dims->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            dims->dim[i]->dim_value != shape.dim[axis])
            return false;
    }
    return true;
}

static stk_status fail_shape(const Onnx__TensorShapeProto *dims, stk_shape shape)
{
    char text[STK_SHAPE_TEXT_BYTES];
    stk_text wanted = {0};
    for (size_t i = 0; i < dims->n_dim; i++) {
        bool known = i && dims->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        stk_text_add(&wanted, known ? "%s%lld" : "%s?", i ? "," : "", known ? (long long)dims->dim[i]->dim_value : 0LL);
    }
    stk_status status = stk_fail(STK_MISMATCH, "the model reads [%s], and what comes is %s%s", stk_text_get(&wanted),
                                 stk_shape_text(shape, text),
                                 shape.rank > 3 ? ", which fits neither as it is nor with its channels first" : "");
    stk_text_free(&wanted);
    return status;
}

/* Has the model its channels last, as values have here? Those that were written here do, most others do not; where
   only one of both fits, it is that. */
static stk_status find_layout(const Onnx__ModelProto *proto, const Onnx__TensorShapeProto *dims, stk_value x,
                              bool *channels_last)
{
    stk_shape shape = stk_value_shape(x);
    *channels_last = stk_onnx_is_ours(proto);
    if (!dims || fits(dims, shape, is_image(x) && !*channels_last)) return STK_OK;
    if (!is_image(x) || !fits(dims, shape, *channels_last)) return fail_shape(dims, shape);
    *channels_last = !*channels_last;
    return STK_OK;
}

/* The model's only input that is no weight, and not fed yet; or the one of that name. */
static stk_status find_input(stk_onnx *model, const Onnx__GraphProto *graph, const char *name,
                             const Onnx__ValueInfoProto **out)
{
    const Onnx__ValueInfoProto *input = NULL;
    for (size_t i = 0; i < graph->n_input; i++) {
        if (!graph->input[i]->name) return stk_fail(STK_CORRUPT, "an input has no name");
        if (stk_onnx_find(model, graph->input[i]->name))
            continue; /* Older models name initialisers among the inputs. */
        if (name && strcmp(graph->input[i]->name, name)) continue;
        if (input)
            return stk_fail(STK_UNSUPPORTED,
                            "the model has several inputs ('%s', '%s'): name what each reads, by inputs", input->name,
                            graph->input[i]->name);
        input = graph->input[i];
    }
    if (!input && name) return stk_fail(STK_NOT_FOUND, "the model has no input '%s', or it is named twice", name);
    if (!input) return stk_fail(STK_UNSUPPORTED, "the model has no input");
    if (!input->type || input->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return stk_fail(STK_UNSUPPORTED, "input '%s' is no tensor", input->name);
    *out = input;
    return STK_OK;
}

/* The one node that reads a value, or NULL. */
static const Onnx__NodeProto *find_reader(const Onnx__GraphProto *graph, const char *name)
{
    const Onnx__NodeProto *reader = NULL;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            if (graph->node[i]->input[k] && !strcmp(graph->node[i]->input[k], name)) {
                if (reader) return NULL;
                reader = graph->node[i];
            }
    return reader;
}

static bool is_made_constant(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (graph->node[i]->n_output && graph->node[i]->output[0] && !strcmp(graph->node[i]->output[0], name))
            return graph->node[i]->op_type && !strcmp(graph->node[i]->op_type, "Constant");
    return false;
}

/* A node that does nothing but scale its first input by known numbers. */
static bool scales(stk_onnx *model, const Onnx__GraphProto *graph, const Onnx__NodeProto *node)
{
    static const char *const scaling[4] = {"Mul", "Add", "Sub", "Div"};
    bool is_one = false;
    for (int i = 0; node && node->op_type && i < 4; i++)
        is_one = is_one || !strcmp(node->op_type, scaling[i]);
    return is_one && node->n_input == 2 && node->input[1] && node->n_output == 1 && node->output[0] &&
           (stk_onnx_find(model, node->input[1]) || is_made_constant(graph, node->input[1]));
}

static const char *stages_of(const Onnx__ModelProto *proto)
{
    for (size_t i = 0; i < proto->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = proto->metadata_props[i];
        if (entry->key && entry->value && !strcmp(entry->key, STK_ONNX_STAGES)) return entry->value;
    }
    return NULL;
}

/* Where it reads pixels and floats come, it may begin behind its Cast, or behind what scales them. */
static stk_status fail_dtype(stk_onnx *model, const Onnx__ModelProto *proto, const char *input, stk_dtype wanted,
                             stk_dtype given)
{
    const Onnx__NodeProto *node = find_reader(proto->graph, input);
    bool is_cast = node && node->op_type && !strcmp(node->op_type, "Cast") && node->n_output == 1 && node->output[0];
    stk_text text = {0};
    stk_text_add(&text, "the model reads %s, and what comes is %s", stk_dtype_name(wanted), stk_dtype_name(given));
    if (is_cast && !is_integer(given)) {
        const char *cast = node->output[0], *scaled = NULL, *stages = stages_of(proto);
        stk_text_add(&text, ": let it begin behind its Cast, by input: '%s', with the stage {cast: f32} and no scaling",
                     cast);
        node = find_reader(proto->graph, cast);
        for (int i = 0; i < MOST_SCALING && scales(model, proto->graph, node); i++) { /* A bad graph may be a ring. */
            stk_text_add(&text, scaled ? ", %s" : "; or behind its %s", node->op_type);
            scaled = node->output[0];
            node = find_reader(proto->graph, scaled);
        }
        if (scaled) stk_text_add(&text, ", by input: '%s', where your stages scale just as it does", scaled);
        if (scaled && stages) stk_text_add(&text, ": %.200s", stages);
    }
    stk_status status = stk_fail(STK_MISMATCH, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

/* x as an input, or as the value inside of the model whose name is given. */
static stk_status feed(stk_onnx *model, const Onnx__ModelProto *proto, const Onnx__ValueInfoProto *input, stk_value x,
                       const char *name, bool *channels_last)
{
    bool last;
    stk_dtype dtype;
    STK_RETURN_IF_ERROR(find_layout(proto, input->type->tensor_type->shape, x, &last));
    if (is_image(x)) *channels_last = last;
    if (!name || !strcmp(name, input->name)) {
        name = input->name;
        STK_RETURN_IF_ERROR(stk_onnx_dtype(input->type->tensor_type->elem_type, &dtype));
        if (is_integer(dtype) && is_integer(stk_value_dtype(x)) && dtype != stk_value_dtype(x))
            x = stk_cast_to(x, dtype);
        if (dtype != stk_value_dtype(x)) return fail_dtype(model, proto, name, dtype, stk_value_dtype(x));
    }
    return stk_onnx_put(model, name, (stk_onnx_value){.value = x, .is_input = true, .nhwc = is_image(x) && !last});
}

/* Errors name the input, where there are several. */
static stk_status feed_all(stk_onnx *model, const Onnx__ModelProto *proto, stk_value x, const stk_onnx_part *part,
                           bool *channels_last)
{
    const Onnx__ValueInfoProto *input = NULL;
    *channels_last = stk_onnx_is_ours(proto);
    for (int i = 0; i < part->n_more; i++) {
        const stk_onnx_feed *one = &part->more[i];
        if (!one->name || one->x.graph != x.graph || one->x.id < 0)
            return stk_fail(STK_INVALID, "input number %d has no name, or is no value of this graph", i);
        STK_RETURN_IF_ERROR(find_input(model, proto->graph, one->name, &input));
        stk_status status = feed(model, proto, input, one->x, one->name, channels_last);
        if (status != STK_OK) return stk_fail_prefix(status, "input '%s': ", one->name);
    }
    STK_RETURN_IF_ERROR(find_input(model, proto->graph, NULL, &input));
    stk_status status = feed(model, proto, input, x, part->input, channels_last);
    return status == STK_OK || part->n_more == 0 ? status : stk_fail_prefix(status, "input '%s': ", input->name);
}

/* --- the nodes --- */

static void mark(const stk_name_table *maker, const char *name, int32_t before, bool *needed)
{
    int32_t made_by = name ? stk_name_table_find(maker, name) : -1;
    if (made_by >= 0 && made_by < before) needed[made_by] = true;
}

/* Those that output depends on, of what stands behind input (NULL: the model's own). Nodes stand in order, so each is
   reached after all that read it. */
static stk_status mark_needed(const Onnx__GraphProto *graph, const char *input, const char *output, bool *needed)
{
    stk_name_table maker = {0};
    stk_status status = STK_OK;
    bool found = !input;
    for (size_t i = 0; i < graph->n_input && !found; i++)
        found = !strcmp(graph->input[i]->name, input);
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++) {
            const char *name = graph->node[i]->output[k];
            bool is_input = input && name && !strcmp(name, input);
            found = found || is_input;
            if (name && name[0] && !is_input && stk_name_table_find(&maker, name) < 0)
                STK_TRY(stk_name_table_add(&maker, name, (int32_t)i));
        }
    if (!found) STK_TRY(stk_fail(STK_NOT_FOUND, "no node makes a value '%s'", input));
    mark(&maker, output, INT32_MAX, needed);
    for (int32_t i = (int32_t)graph->n_node - 1; i >= 0; i--)
        for (size_t k = 0; k < graph->node[i]->n_input && needed[i]; k++)
            mark(&maker, graph->node[i]->input[k], i, needed);
done:
    stk_name_table_free(&maker);
    return status;
}

static stk_status add_nodes(stk_onnx *model, const Onnx__ModelProto *proto, const char *input, const char *output)
{
    const Onnx__GraphProto *graph = proto->graph;
    int64_t opset;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_onnx_opset(proto, &opset));
    bool *needed = calloc(graph->n_node + 1, sizeof(*needed));
    if (!needed) return stk_fail_memory(graph->n_node);
    STK_TRY(mark_needed(graph, input, output, needed));
    for (size_t i = 0; i < graph->n_node; i++)
        if (needed[i]) STK_TRY(stk_onnx_add_node(model, graph->node[i], opset));
done:
    free(needed);
    return status;
}

static stk_status import_part(stk_onnx *model, const Onnx__ModelProto *proto, stk_value x, const stk_onnx_part *part,
                              stk_value *out)
{
    const char *input = part->input, *output = part->output;
    const Onnx__GraphProto *graph = proto->graph;
    bool channels_last = false;
    STK_RETURN_IF_ERROR(stk_onnx_add_initializers(model, proto));
    STK_RETURN_IF_ERROR(feed_all(model, proto, x, part, &channels_last));
    if (!output && (graph->n_output < 1 || !graph->output[0]->name))
        return stk_fail(STK_CORRUPT, "the model has no output");
    if (!output) output = graph->output[0]->name;
    STK_RETURN_IF_ERROR(add_nodes(model, proto, input, output));
    stk_onnx_value *made = stk_onnx_find(model, output);
    if (!made || (made->value.id < 0 && made->tensor))
        return stk_fail(STK_NOT_FOUND, "no node makes a value '%s'", output);
    if (made->holds_batch)
        return stk_fail(STK_UNSUPPORTED, "the output '%s' is the size of the batch, which is not known yet", output);
    bool turn = !channels_last && is_image(made->value);
    *out = turn && made->nhwc ? made->value : stk_onnx_plain(model, made);
    if (turn && !made->nhwc)
        *out =
            stk_value_shape(*out).rank == 5 ? stk_transpose(*out, (int32_t[]){0, 2, 3, 4, 1}) : stk_onnx_to_nhwc(*out);
    return stk_graph_status(model->graph);
}

/* --- from a file --- */

typedef struct application {
    stk_value x, *out;
    stk_onnx_part part;
} application;

static void free_model(void *model)
{
    stk_onnx_free(model);
}

static stk_status apply(const Onnx__ModelProto *proto, const char *folder, void *context)
{
    const application *a = context;
    stk_status status;
    stk_onnx *model = stk_onnx_new(a->x.graph);
    if (!model) return stk_fail_memory(sizeof(*model));
    model->folder = folder;
    model->trains_batch_norm = a->part.trains_batch_norm;
    STK_TRY(import_part(model, proto, a->x, &a->part, a->out));
    STK_TRY(stk_graph_hold(a->x.graph, model, free_model));
    model->options = NULL;
    model->folder = NULL;
    model = NULL;
done:
    stk_onnx_free(model);
    return status;
}

/* y, or no value and the error in the graph, with the file and the node. */
static stk_value settle(stk_status status, stk_value y)
{
    if (status == STK_OK) return y;
    y.graph->status = STK_OK; /* It was before; an error since then has no place in its text. */
    stk_graph_keep_error(y.graph, status);
    return stk_value_none(y.graph);
}

stk_value stk_onnx_apply(stk_value x, const char *path, const char *output)
{
    return stk_onnx_apply_with(x, path, &(stk_onnx_part){.output = output});
}

stk_value stk_onnx_apply_with(stk_value x, const char *path, const stk_onnx_part *part)
{
    stk_value y = stk_value_none(x.graph);
    application a = {x, &y, part ? *part : (stk_onnx_part){0}};
    if (x.graph && !path) stk_graph_keep_error(x.graph, stk_fail(STK_INVALID, "the path of a model is NULL"));
    if (!x.graph || stk_graph_status(x.graph) != STK_OK || x.id < 0) return y;
    return settle(stk_onnx_read_file(path, apply, &a), y);
}

stk_value stk_onnx_apply_bytes(stk_value x, stk_span bytes, const stk_onnx_part *part)
{
    stk_value y = stk_value_none(x.graph);
    application a = {x, &y, *part};
    if (!x.graph || stk_graph_status(x.graph) != STK_OK || x.id < 0) return y;
    return settle(stk_onnx_read_bytes(bytes, apply, &a), y);
}
