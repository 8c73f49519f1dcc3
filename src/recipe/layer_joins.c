/* Layers that name, join and hold others of their list. See recipe/layer_walk.h. */
#include <string.h>

#include "base/text.h"
#include "recipe/layer_walk.h"
#include "tensor/shape.h"

enum { MOST_PARTS = 32, MOST_SCOPE_BYTES = 1 << 10 };

/* --- names --- */

stk_status stk_layer_walk_find(const stk_layer_walk *walk, const stk_yaml_node *node, const char *name, stk_value *out)
{
    for (int i = walk->n_named - 1; i >= 0; i--) {
        if (strcmp(walk->named[i].name, name)) continue;
        *out = walk->named[i].value;
        return STK_OK;
    }
    stk_status status = stk_build_field(walk->data, node, name, out);
    if (status != STK_NOT_FOUND) return status;
    stk_text text = {0};
    for (int i = 0; i < walk->n_named; i++)
        stk_text_add(&text, "%s%s", i ? ", " : " (the names are ", walk->named[i].name);
    stk_text_add(&text, "%s, and %s", walk->n_named ? ")" : "", stk_error_text());
    status = stk_yaml_fail(node, "nothing before is named '%.60s'%s", name, stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

static stk_status build_name(stk_layer_walk *walk, const stk_yaml_node *node, stk_value *x)
{
    for (int i = 0; i < walk->n_named; i++)
        if (!strcmp(walk->named[i].name, node->text))
            return stk_yaml_fail(node, "the name '%.60s' is given twice", node->text);
    if (walk->n_named == STK_MOST_NAMES) return stk_yaml_fail(node, "more than %d names", STK_MOST_NAMES);
    walk->named[walk->n_named].name = node->text;
    walk->named[walk->n_named++].value = *x;
    return STK_OK;
}

static stk_status build_from(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    return stk_layer_walk_find(walk, s, s->text, x);
}

const stk_layer_class stk_layer_class_name = {
    .key = {.name = "name", .type = STK_KEY_TEXT, .doc = "Names what comes out of the layers so far."},
    .build_in = build_name,
    .begins = true,
};
const stk_layer_class stk_layer_class_from = {
    .key = {.name = "from",
            .type = STK_KEY_TEXT,
            .doc = "Goes on from what has that name, or from a field of the data."},
    .build_in = build_from,
    .begins = true,
};

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

/* One more value into *x, which stays as it is where the two do not fit. */
typedef stk_status join_fn(const stk_yaml_node *name, stk_value part, stk_value *x);

static stk_status add_part(const stk_yaml_node *name, stk_value part, stk_value *x)
{
    /* The addition would broadcast, which nobody means here. */
    if (!stk_shape_equal(stk_value_shape(*x), stk_value_shape(part)))
        return refuse_shapes(name, name->text, *x, part, "they must be equal to be added");
    *x = stk_add(*x, part);
    return STK_OK;
}

static stk_status mul_part(const stk_yaml_node *name, stk_value part, stk_value *x)
{
    if (!can_multiply(stk_value_shape(*x), stk_value_shape(part)))
        return refuse_shapes(name, name->text, *x, part, "sides must be equal or 1 to be multiplied");
    *x = stk_mul(*x, part);
    return STK_OK;
}

static stk_status check_part(const stk_yaml_node *name, stk_value part, stk_value *x)
{
    if (can_concatenate(stk_value_shape(*x), stk_value_shape(part))) return STK_OK;
    return refuse_shapes(name, name->text, *x, part, "all sides but the last must be equal");
}

/* join_one with each of the names; part[0] is *x, and the others follow. */
static stk_status join(stk_layer_walk *walk, const stk_yaml_node *node, join_fn *join_one, stk_value part[MOST_PARTS],
                       int *n_parts, stk_value *x)
{
    int n = 1;
    part[0] = *x;
    for (const stk_yaml_node *name = node->child; name; name = name->next, n++) {
        if (n == MOST_PARTS) return stk_yaml_fail(node, "more than %d values", MOST_PARTS - 1);
        STK_RETURN_IF_ERROR(stk_layer_walk_find(walk, name, name->text, &part[n]));
        STK_RETURN_IF_ERROR(join_one(name, part[n], x));
    }
    *n_parts = n;
    return STK_OK;
}

static stk_status build_add(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    stk_value part[MOST_PARTS];
    int n = 1;
    return join(walk, s, add_part, part, &n, x);
}

static stk_status build_mul(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    stk_value part[MOST_PARTS];
    int n = 1;
    return join(walk, s, mul_part, part, &n, x);
}

static stk_status build_concat(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    stk_value part[MOST_PARTS];
    int n = 1;
    STK_RETURN_IF_ERROR(join(walk, s, check_part, part, &n, x));
    *x = stk_concat(part, n, stk_value_shape(*x).rank - 1);
    return STK_OK;
}

static const stk_key value_key = {.name = "name", .type = STK_KEY_TEXT};
#define JOINT(kind, text)                                                                                              \
    const stk_layer_class stk_layer_class_##kind = {                                                                   \
        .key = {.name = #kind, .type = STK_KEY_LIST, .element = &value_key, .one_is_list = true, .doc = text},         \
        .build_in = build_##kind,                                                                                      \
    };
JOINT(add, "Adds what has these names; all shapes must be equal.")
JOINT(mul, "Multiplies by what has these names; sides must be equal or 1.")
JOINT(concat, "Puts what has these names behind it, along the channels.")

/* --- layers that hold others --- */

static stk_status build_residual(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    stk_value main_way = *x, shortcut = *x;
    const stk_yaml_node *before = walk->before;
    STK_RETURN_IF_ERROR(stk_layer_walk_list(walk, stk_yaml_get(s, "layers"), &main_way));
    walk->before = before;
    STK_RETURN_IF_ERROR(stk_layer_walk_list(walk, stk_yaml_get(s, "shortcut"), &shortcut));
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

static const stk_key residual_keys[] = {{.name = "layers",
                                         .type = STK_KEY_LIST,
                                         .element = &stk_layer_key,
                                         .required = true,
                                         .doc = "The way that learns."},
                                        {.name = "shortcut",
                                         .type = STK_KEY_LIST,
                                         .element = &stk_layer_key,
                                         .default_value = "[]",
                                         .doc = "Layers of the other way. Default: none."},
                                        STK_KEY_DTYPE,
                                        {.name = NULL}};

const stk_layer_class stk_layer_class_residual = {
    .key = {.name = "residual", .type = STK_KEY_MAP, .keys = residual_keys, .doc = "The sum of layers and shortcut."},
    .build_in = build_residual,
};

/* Its layers, under its name and as often as it says: encoder.0.dense, encoder.1.dense. */
static stk_status build_block(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *scope = stk_yaml_get(s, "scope");
    int64_t n = stk_yaml_get(s, "repeat")->integer;
    stk_graph *graph = stk_model_graph(walk->data->model);
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
        STK_RETURN_IF_ERROR(stk_layer_walk_list(walk, stk_yaml_get(s, "layers"), x));
        if (scope) stk_scope_pop(graph);
    }
    return STK_OK;
}

static const stk_key block_keys[] = {
    {.name = "layers", .type = STK_KEY_LIST, .element = &stk_layer_key, .required = true, .doc = "What is in it."},
    {.name = "scope", .type = STK_KEY_TEXT, .doc = "What stands before the names of its parameters: 'encoder.'"},
    {.name = "repeat",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1000,
     .default_value = "1",
     .doc = "How often it comes."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_block = {
    .key =
        {.name = "block", .type = STK_KEY_MAP, .keys = block_keys, .no_short = true, .doc = "Layers under one name."},
    .build_in = build_block,
};
