/* Wide and deep, for tables: Cheng et al. 2016. */
#include <stdio.h>

#include "nn/model_list.h"
#include "stoker/nn/networks.h"

enum { MOST_IDS = 64 };

/* The linear model: a weight for each number that a feature can have, and one for each of the numbers. */
static stk_value build_wide(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t outputs)
{
    stk_graph *graph = n_ids > 0 ? ids[0].graph : numbers.graph;
    stk_value sum = {graph, -1};
    stk_scope_push(graph, "wide");
    if (numbers.id >= 0) sum = stk_dense(numbers, outputs);
    for (int i = 0; i < n_ids; i++) {
        stk_value one =
            stk_embedding_with(ids[i], &(stk_embedding_config){.rows = rows[i], .width = outputs, .deviation = 1e-3});
        sum = sum.id >= 0 ? stk_add(sum, one) : one;
    }
    stk_scope_pop(graph);
    return sum;
}

static stk_value build_deep(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t width,
                            const int64_t *hidden, int n_hidden, int64_t outputs)
{
    stk_graph *graph = n_ids > 0 ? ids[0].graph : numbers.graph;
    stk_value part[MOST_IDS + 1];
    int n = 0;
    stk_scope_push(graph, "deep");
    for (int i = 0; i < n_ids; i++)
        part[n++] =
            stk_embedding_with(ids[i], &(stk_embedding_config){.rows = rows[i], .width = width, .deviation = 0.1});
    if (numbers.id >= 0) part[n++] = numbers;
    stk_value x = n > 1 ? stk_concat(part, n, 1) : part[0];
    for (int i = 0; i < n_hidden; i++)
        x = stk_relu(stk_dense(x, hidden[i]));
    x = stk_dense(x, outputs);
    stk_scope_pop(graph);
    return x;
}

stk_value stk_wide_and_deep(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t width,
                            const int64_t *hidden, int n_hidden, int64_t outputs)
{
    stk_layer layer;
    stk_value x = n_ids > 0 ? ids[0] : numbers;
    if (!stk_layer_begin(&layer, x, "wide_and_deep", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "the number of categories", n_ids, 0, MOST_IDS)) return stk_value_none(x.graph);
    stk_value wide = build_wide(ids, rows, n_ids, numbers, outputs);
    return stk_add(wide, build_deep(ids, rows, n_ids, numbers, width, hidden, n_hidden, outputs));
}

/* --- in a recipe --- */

/* A field of whole numbers as i32 [N]. */
static stk_status add_category(const stk_model_call *call, const stk_yaml_node *node, stk_value *out)
{
    STK_RETURN_IF_ERROR(call->get_field(call->data, node, node->key, out));
    stk_dtype dtype = stk_value_dtype(*out);
    if (stk_dtype_is_float(dtype) || stk_value_shape(*out).rank != 1)
        return stk_yaml_fail_key(node, "field '%s' is no whole number", node->key);
    if (dtype != STK_I32) *out = stk_cast_to(*out, STK_I32);
    return STK_OK;
}

static stk_status build(const stk_model_call *call, stk_value *out)
{
    stk_value ids[MOST_IDS], numbers = call->x;
    int64_t rows[MOST_IDS], hidden[STK_MOST_WIDTHS];
    int n = 0, n_hidden;
    const stk_yaml_node *s = call->settings, *categories = stk_yaml_get(s, "categories");
    const stk_yaml_node *field = stk_yaml_get(s, "numbers");
    for (const stk_yaml_node *node = categories ? categories->child : NULL; node; node = node->next, n++) {
        if (n == MOST_IDS) return stk_yaml_fail(categories, "more than %d categories", MOST_IDS);
        STK_RETURN_IF_ERROR(add_category(call, node, &ids[n]));
        rows[n] = node->integer;
    }
    if (field) STK_RETURN_IF_ERROR(call->get_field(call->data, field, field->text, &numbers));
    if (field && stk_value_shape(numbers).rank == 1) numbers = stk_reshape(numbers, STK_SHAPE(STK_ANY, 1));
    if (n == 0 && !field)
        return stk_yaml_fail(s, "'wide_and_deep' needs 'categories' or 'numbers': fields of the data");
    STK_RETURN_IF_ERROR(stk_widths_of(s, "hidden", hidden, &n_hidden));
    *out = stk_wide_and_deep(ids, rows, n, numbers, stk_yaml_int(s, "width", 8), hidden, n_hidden,
                             stk_yaml_int(s, "outputs", 1));
    return STK_OK;
}

static const stk_key rows_key = {.name = "rows", .type = STK_KEY_INT, .least = 1, .most = 2147483647};
static const stk_key keys[] = {{.name = "categories",
                                .type = STK_KEY_NAMED,
                                .element = &rows_key,
                                .doc = "Fields of whole numbers, and how many each can be: {user: 5000, item: 300}."},
                               {.name = "numbers", .type = STK_KEY_TEXT, .doc = "A field of numbers. Default: none."},
                               STK_KEY_NUMBER("width", "8", "Numbers that a category becomes."),
                               STK_KEY_WIDTHS("hidden", "[64, 32]", "The widths of the deep part's hidden layers."),
                               STK_KEY_NUMBER("outputs", "1", "Numbers that come out."),
                               {.name = NULL}};

const stk_model_class stk_model_class_wide_and_deep = {
    .key = {.name = "wide_and_deep",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "Tables; Cheng et al. 2016."},
    .takes = STK_MODEL_TAKES_FIELDS,
    .build = build,
    .sample = {{.name = "wide_and_deep: {categories: {a: 100, b: 100}, numbers: x}",
                .of = "2 categories, 8 numbers",
                .fields = "a: {shape: [], below: 100}, b: {shape: [], below: 100}, x: [8], label: [1]",
                .rest = "loss: bce"}},
    .place = 130,
};
