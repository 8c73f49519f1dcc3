/* See fuzz/onnx_grammar.h. Longer than most: inputs, lists and attributes draw from one another. */
#include "fuzz/onnx_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fuzz/onnx_forms.h"
#include "onnx/model.h"

enum { MOST_NODES = 6, MOST_IN = 8, MOST_MADE = 80, MOST_BYTES = 1 << 16 };

typedef struct made_value {
    const char *name;
    stk_dtype dtype;
    stk_shape shape;
} made_value;

typedef struct grammar {
    stk_arena *arena;
    fuzz_draw *draw;
    Onnx__GraphProto graph;
    Onnx__ModelProto model;
    Onnx__OperatorSetIdProto opset, *opsets;
    Onnx__ValueInfoProto *input[MOST_MADE], *output[MOST_MADE];
    Onnx__TensorProto *initializer[MOST_MADE];
    Onnx__NodeProto *node[MOST_NODES];
    made_value value[MOST_MADE]; /* inputs and what nodes have made, as the reader understands it */
    int n_values, n_names;
} grammar;

static void *take(grammar *g, size_t bytes)
{
    void *p = stk_arena_alloc(g->arena, bytes);
    if (!p) abort();
    return p;
}

static char *new_name(grammar *g, const char *prefix)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%d", prefix, g->n_names++);
    char *copy = stk_arena_text(g->arena, text);
    if (!copy) abort();
    return copy;
}

/* --- values from nowhere --- */

static int32_t type_of(stk_dtype dtype)
{
    static const int32_t types[] = {1, 16, 10, 11, 7, 6, 3, 2, 9}; /* in the order of stk_dtype */
    return types[dtype];
}

static stk_dtype draw_dtype(fuzz_draw *d)
{
    static const stk_dtype rare[] = {STK_F64, STK_I64, STK_I32, STK_BOOL, STK_F16, STK_BF16, STK_U8, STK_I8};
    return fuzz_chance(d, 64) ? rare[fuzz_below(d, 8)] : STK_F32;
}

static stk_shape draw_shape(fuzz_draw *d)
{
    static const int ranks[] = {4, 2, 3, 1, 5, 4, 0, 6, 7, 8, 4, 3};
    stk_shape shape = {.rank = ranks[fuzz_below(d, 12)]};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = fuzz_chance(d, 4) ? 0 : 1 + fuzz_below(d, shape.rank > 5 ? 2 : 6);
    return shape;
}

static void add_input(grammar *g)
{
    Onnx__ValueInfoProto *info = take(g, sizeof(*info));
    Onnx__TypeProto *type = take(g, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = take(g, sizeof(*tensor));
    Onnx__TensorShapeProto *dims = take(g, sizeof(*dims));
    made_value *v = &g->value[g->n_values++];
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    *v = (made_value){new_name(g, "in"), draw_dtype(g->draw), draw_shape(g->draw)};
    dims->n_dim = (size_t)v->shape.rank;
    dims->dim = take(g, (dims->n_dim + 1) * sizeof(*dims->dim));
    for (size_t i = 0; i < dims->n_dim; i++) {
        dims->dim[i] = take(g, sizeof(**dims->dim));
        onnx__tensor_shape_proto__dimension__init(dims->dim[i]);
        dims->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims->dim[i]->dim_value = v->shape.dim[i];
    }
    tensor->has_elem_type = 1;
    tensor->elem_type = type_of(v->dtype);
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = (char *)v->name;
    info->type = type;
    g->input[g->graph.n_input++] = info;
}

/* An initialiser of N elements; numbers lie in raw_data, which the caller fills. */
static Onnx__TensorProto *add_tensor(grammar *g, stk_dtype dtype, stk_shape shape)
{
    Onnx__TensorProto *t = take(g, sizeof(*t));
    onnx__tensor_proto__init(t);
    int64_t n = 1;
    t->n_dims = (size_t)shape.rank;
    t->dims = take(g, (t->n_dims + 1) * sizeof(*t->dims));
    for (int i = 0; i < shape.rank; i++) {
        bool fits = shape.dim[i] >= 0 && shape.dim[i] <= MOST_BYTES / 8 && n * shape.dim[i] <= MOST_BYTES / 8;
        t->dims[i] = fits ? shape.dim[i] : 0; /* A side of a value without elements may be of any length. */
        n *= t->dims[i];
    }
    t->name = new_name(g, "w");
    t->has_data_type = t->has_raw_data = 1;
    t->data_type = type_of(dtype);
    t->raw_data.len = (size_t)n * stk_dtype_bytes(dtype);
    t->raw_data.data = take(g, t->raw_data.len + 1);
    if (g->graph.n_initializer < MOST_MADE) g->initializer[g->graph.n_initializer++] = t;
    return t;
}

static const char *add_floats(grammar *g, stk_shape shape, stk_dtype dtype)
{
    bool is_double = dtype == STK_F64;
    Onnx__TensorProto *t = add_tensor(g, is_double ? STK_F64 : STK_F32, shape);
    uint64_t seed = (uint64_t)fuzz_byte(g->draw), n = t->raw_data.len / (is_double ? 8 : 4);
    for (uint64_t i = 0; i < n; i++) {
        double x = ((double)(stk_philox(seed, 1, i).v[0] >> 24) - 127.5) / 64;
        if (is_double)
            ((double *)t->raw_data.data)[i] = x;
        else
            ((float *)t->raw_data.data)[i] = (float)x;
    }
    return t->name;
}

static const char *add_ints(grammar *g, const int64_t *list, int n, bool is_scalar)
{
    stk_shape shape = {.rank = is_scalar ? 0 : 1, .dim = {is_scalar ? 0 : n}};
    Onnx__TensorProto *t = add_tensor(g, STK_I64, shape);
    memcpy(t->raw_data.data, list, t->raw_data.len);
    return t->name;
}

static const char *add_indices(grammar *g, stk_shape shape, int below)
{
    Onnx__TensorProto *t = add_tensor(g, fuzz_chance(g->draw, 64) ? STK_I32 : STK_I64, shape);
    size_t bytes = t->data_type == type_of(STK_I32) ? 4 : 8;
    uint64_t seed = (uint64_t)fuzz_byte(g->draw);
    int shift = fuzz_chance(g->draw, 32) ? 1 : 0;
    for (uint64_t i = 0; i < t->raw_data.len / bytes; i++) {
        int64_t x = (int64_t)(stk_philox(seed, 2, i).v[0] % (uint32_t)(below < 1 ? 1 : below)) - shift;
        memcpy(t->raw_data.data + i * bytes, &x, bytes);
    }
    return t->name;
}

/* --- lists of whole numbers --- */

static int64_t draw_small(grammar *g, int from, int n)
{
    return fuzz_chance(g->draw, 3) ? fuzz_wild(g->draw) : from + fuzz_below(g->draw, n);
}

/* A list of about n; now and then longer or shorter. */
static int64_t *draw_list(grammar *g, int *n, int from, int n_choices)
{
    if (fuzz_chance(g->draw, 6)) *n += fuzz_below(g->draw, 5) - 2;
    if (*n < 0) *n = 0;
    int64_t *list = take(g, (size_t)(*n + 1) * sizeof(*list));
    for (int i = 0; i < *n; i++)
        list[i] = draw_small(g, from, n_choices);
    return list;
}

static int64_t *draw_axes(grammar *g, int rank, int *n)
{
    *n = rank ? 1 + fuzz_below(g->draw, rank) : fuzz_below(g->draw, 2);
    int64_t *list = draw_list(g, n, 0, 1);
    for (int i = 0; i < *n; i++)
        list[i] = rank ? (i + fuzz_below(g->draw, rank)) % rank - (fuzz_chance(g->draw, 40) ? rank : 0) : list[i];
    return list;
}

/* A shape of as many elements, by joining and splitting sides. */
static int64_t *draw_reshape(grammar *g, stk_shape shape, int *n)
{
    int64_t *list = take(g, 16 * sizeof(*list));
    *n = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (*n && fuzz_chance(g->draw, 64))
            list[*n - 1] *= shape.dim[i];
        else
            list[(*n)++] = shape.dim[i];
        if (fuzz_chance(g->draw, 20)) list[(*n)++ % 15] = 1;
        if (*n > 12) *n = 12;
    }
    if (*n && fuzz_chance(g->draw, 64)) list[fuzz_below(g->draw, *n)] = fuzz_chance(g->draw, 20) ? 0 : -1;
    if (*n && fuzz_chance(g->draw, 8)) list[fuzz_below(g->draw, *n)] = draw_small(g, -1, 6);
    return list;
}

/* --- inputs of a node --- */

static const made_value *pick(grammar *g, bool prefers_float)
{
    const made_value *v = &g->value[g->n_values - 1 - fuzz_below(g->draw, g->n_values)];
    for (int i = g->n_values - 1; prefers_float && !stk_dtype_is_float(v->dtype) && i >= 0; i--)
        if (stk_dtype_is_float(g->value[i].dtype)) v = &g->value[i];
    return v;
}

/* A shape that broadcasts with x's. */
static stk_shape partner(grammar *g, stk_shape x)
{
    int drop = x.rank && fuzz_chance(g->draw, 96) ? fuzz_below(g->draw, x.rank + 1) : 0;
    stk_shape shape = {.rank = x.rank - drop};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = fuzz_chance(g->draw, 64) ? 1 : x.dim[i + drop];
    return shape;
}

static const char *constant_like(grammar *g, const made_value *x, stk_shape shape)
{
    if (x->dtype == STK_F32 || x->dtype == STK_F64) return add_floats(g, shape, x->dtype);
    Onnx__TensorProto *t = add_tensor(g, x->dtype, shape);
    for (size_t i = 0; i < t->raw_data.len; i++)
        t->raw_data.data[i] = (uint8_t)(x->dtype == STK_BOOL || i % stk_dtype_bytes(x->dtype) == 0 ? i & 1 : 0);
    return t->name;
}

static const char *draw_partner(grammar *g, const made_value *x)
{
    const made_value *v = pick(g, true);
    if (v->dtype == x->dtype && fuzz_chance(g->draw, 128)) return v->name;
    return constant_like(g, x, partner(g, x->shape));
}

static int64_t side(stk_shape shape, int i)
{
    return i >= 0 && i < shape.rank ? shape.dim[i] : 1;
}

/* [O,C/groups,...], or for a transposed convolution [C,O/groups,...]. */
static const char *draw_weight(grammar *g, stk_shape x, bool is_transposed, int64_t groups)
{
    int64_t c = side(x, 1), o = 1 + fuzz_below(g->draw, 5);
    if (groups < 1 || groups > 64) groups = 1;
    stk_shape shape = {.rank = x.rank < 2 ? 2 : x.rank};
    shape.dim[0] = is_transposed ? c : o * groups;
    shape.dim[1] = is_transposed ? o : c / groups;
    for (int i = 2; i < shape.rank; i++)
        shape.dim[i] = 1 + fuzz_below(g->draw, 3);
    return add_floats(g, shape, STK_F32);
}

static const char *draw_product(grammar *g, stk_shape x)
{
    stk_shape shape = {.rank = x.rank < 2 || fuzz_chance(g->draw, 128) ? 2 : x.rank};
    for (int i = 0; i < shape.rank - 2; i++)
        shape.dim[i] = fuzz_chance(g->draw, 32) ? 1 : side(x, x.rank - shape.rank + i);
    shape.dim[shape.rank - 2] = side(x, x.rank - 1);
    shape.dim[shape.rank - 1] = 1 + fuzz_below(g->draw, 20);
    if (fuzz_chance(g->draw, 16)) shape = STK_SHAPE(side(x, x.rank - 1));
    return add_floats(g, shape, STK_F32);
}

static const char *draw_lists(grammar *g, char kind, stk_shape x)
{
    int n = x.rank;
    int64_t *list;
    switch (kind) {
    case 'A': list = draw_axes(g, x.rank, &n); break;
    case 'S': list = draw_reshape(g, x, &n); break;
    case 'E':
        list = draw_list(g, &n, 1, 1);
        for (int i = 0; i < n && i < x.rank; i++)
            list[i] = x.dim[i] == 1 || fuzz_chance(g->draw, 16) ? draw_small(g, 1, 4) : x.dim[i];
        break;
    case 'P':
        n = 2 * x.rank;
        list = draw_list(g, &n, 0, 3);
        break;
    case 'R': list = draw_list(g, &n, 1, 3); break;
    case 'L': list = draw_list(g, &n, -4, 12); break;
    case 'T': list = draw_list(g, &n, -2, 5); break;
    default:
        n = 2;
        list = draw_list(g, &n, 0, 4);
        break;
    }
    return add_ints(g, list, n, false);
}

static const char *draw_input(grammar *g, char kind, const made_value *x, int64_t groups)
{
    stk_shape shape = x->shape;
    if (fuzz_chance(g->draw, 3)) return fuzz_chance(g->draw, 128) ? "" : pick(g, false)->name;
    switch (kind) {
    case 'x': return pick(g, true)->name;
    case 'v': return pick(g, false)->name;
    case 'y': return draw_partner(g, x);
    case 'b': return constant_like(g, &(made_value){NULL, STK_BOOL, {0}}, partner(g, shape));
    case 'w': return draw_weight(g, shape, false, groups);
    case 't': return draw_weight(g, shape, true, groups);
    case 'c': return add_floats(g, STK_SHAPE(side(shape, 1)), x->dtype);
    case 'l': return add_floats(g, STK_SHAPE(side(shape, shape.rank - 1)), x->dtype);
    case 'm': return draw_product(g, shape);
    case 's': return add_floats(g, (stk_shape){0}, x->dtype);
    case 'k': return add_ints(g, (int64_t[]){draw_small(g, 0, 6)}, 1, fuzz_chance(g->draw, 128));
    case 'n': return add_indices(g, partner(g, draw_shape(g->draw)), 2);
    case 'e': return add_indices(g, shape, 2);
    case 'd': return add_indices(g, STK_SHAPE(2, 1 + fuzz_below(g->draw, 3)), 2);
    case 'V': return add_floats(g, STK_SHAPE(2), STK_F32);
    case 'g':
        for (int i = 1; i + 1 < shape.rank; i++)
            shape.dim[i] = shape.dim[i + 1];
        if (shape.rank) shape.rank--;
        return add_indices(g, shape, (int)side(x->shape, 1));
    default: return draw_lists(g, kind, shape);
    }
}

/* --- attributes --- */

static int64_t *draw_permutation(grammar *g, int rank)
{
    int64_t *list = take(g, (size_t)(rank + 1) * sizeof(*list));
    for (int i = 0; i < rank; i++)
        list[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int k = fuzz_below(g->draw, i + 1);
        int64_t kept = list[i];
        list[i] = list[k];
        list[k] = kept;
    }
    return list;
}

static void draw_word(grammar *g, Onnx__AttributeProto *a, const char *words)
{
    size_t n = strcspn(words, " ");
    for (int skip = fuzz_below(g->draw, 4); skip > 0 && words[n]; skip--) {
        words += n + 1;
        n = strcspn(words, " ");
    }
    a->has_s = 1;
    a->s = (ProtobufCBinaryData){n, (uint8_t *)(uintptr_t)words};
}

static void set_ints(Onnx__AttributeProto *a, int64_t *list, int n)
{
    a->ints = list;
    a->n_ints = (size_t)n;
}

static void set_float(grammar *g, Onnx__AttributeProto *a)
{
    static const float values[] = {1, 0.5f, 0.1f, 1e-5f, 2, 0, -1, 1e30f};
    a->has_f = 1;
    a->f = values[fuzz_below(g->draw, 8)];
}

/* NULL where it is left out. */
static Onnx__AttributeProto *draw_attribute(grammar *g, const char *name, size_t length, stk_shape x)
{
    const fuzz_onnx_attribute *kind = fuzz_onnx_attributes;
    while (kind->name && (strlen(kind->name) != length || strncmp(kind->name, name, length)))
        kind++;
    if (!kind->name) abort();
    int n = x.rank > 2 ? x.rank - 2 : 1, from = kind->from, n_choices = kind->n;
    if (strcmp(kind->name, "kernel_shape") && !fuzz_chance(g->draw, 128)) return NULL;
    Onnx__AttributeProto *a = take(g, sizeof(*a));
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)kind->name;
    switch (kind->kind) {
    case 'f': set_float(g, a); break;
    case 's': draw_word(g, a, kind->words); break;
    case 'K': set_ints(a, draw_list(g, &n, from, n_choices), n); break;
    case 'P':
        n *= 2;
        set_ints(a, draw_list(g, &n, from, n_choices), n);
        break;
    case 'A': set_ints(a, draw_axes(g, x.rank, &n), n); break;
    case 'p': set_ints(a, draw_permutation(g, x.rank), x.rank); break;
    case 'a': from = -x.rank, n_choices = 2 * x.rank + 1; /* fall through */
    default: a->has_i = 1; a->i = kind->kind == 't' ? 1 + fuzz_below(g->draw, 16) : draw_small(g, from, n_choices);
    }
    return a;
}

/* --- nodes --- */

static int64_t groups_of(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!strcmp(node->attribute[i]->name, "group")) return node->attribute[i]->i;
    return 1;
}

static Onnx__NodeProto *draw_node(grammar *g)
{
    const fuzz_onnx_form *form = &fuzz_onnx_forms[fuzz_below(g->draw, fuzz_n_onnx_forms)];
    Onnx__NodeProto *node = take(g, sizeof(*node));
    const made_value *x = pick(g, form->inputs[0] == 'x');
    bool maybe = false;
    onnx__node_proto__init(node);
    node->op_type = (char *)(uintptr_t)form->op;
    node->attribute = take(g, 16 * sizeof(*node->attribute));
    for (const char *p = form->attributes; *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");
        Onnx__AttributeProto *a = draw_attribute(g, p, length, x->shape);
        if (a) node->attribute[node->n_attribute++] = a;
        p += length;
    }
    node->input = take(g, MOST_IN * sizeof(*node->input));
    for (const char *p = form->inputs; *p; p++) {
        if (*p == '?') {
            maybe = true;
            continue;
        }
        bool is_first = !node->n_input && (*p == 'x' || *p == 'v');
        const char *name = is_first                              ? x->name
                           : maybe && !fuzz_chance(g->draw, 128) ? ""
                                                                 : draw_input(g, *p, x, groups_of(node));
        node->input[node->n_input++] = (char *)(uintptr_t)name;
        maybe = false;
    }
    while (node->n_input && !node->input[node->n_input - 1][0])
        node->n_input--;
    node->output = take(g, 4 * sizeof(*node->output));
    for (int i = 0; i < form->n_out; i++)
        if (!i || fuzz_chance(g->draw, 128)) node->output[node->n_output++] = new_name(g, "y");
    return node;
}

static stk_span pack(grammar *g)
{
    size_t n = onnx__model_proto__get_packed_size(&g->model);
    uint8_t *bytes = take(g, n + 1);
    onnx__model_proto__pack(&g->model, bytes);
    return (stk_span){bytes, n};
}

/* Takes what the last node makes as values, if the model can be read with it. */
static bool look_at_outputs(grammar *g, const Onnx__NodeProto *node)
{
    stk_span bytes = pack(g);
    stk_onnx *model;
    if (stk_onnx_parse(bytes.data, bytes.n, NULL, &model) != STK_OK) return false;
    for (size_t i = 0; i < node->n_output && g->n_values < MOST_MADE; i++) {
        stk_value y = stk_graph_find_output(stk_onnx_graph(model), node->output[i]);
        if (y.id >= 0) g->value[g->n_values++] = (made_value){node->output[i], stk_value_dtype(y), stk_value_shape(y)};
    }
    stk_onnx_free(model);
    return true;
}

static void add_node(grammar *g)
{
    size_t n_outputs = g->graph.n_output, n_initializers = g->graph.n_initializer;
    Onnx__NodeProto *node = draw_node(g);
    g->node[g->graph.n_node++] = node;
    for (size_t i = 0; i < node->n_output; i++) {
        Onnx__ValueInfoProto *info = take(g, sizeof(*info));
        onnx__value_info_proto__init(info);
        info->name = node->output[i];
        g->output[g->graph.n_output++] = info;
    }
    if (look_at_outputs(g, node) || fuzz_chance(g->draw, 16)) return;
    g->graph.n_node--;
    g->graph.n_output = n_outputs;
    g->graph.n_initializer = n_initializers;
}

stk_span fuzz_make_onnx(stk_arena *arena, fuzz_draw *draw)
{
    static const int opsets[] = {17, 13, 18, 21, 11, 9, 20, 7};
    grammar *g = stk_arena_alloc(arena, sizeof(*g));
    if (!g) abort();
    g->arena = arena;
    g->draw = draw;
    onnx__model_proto__init(&g->model);
    onnx__graph_proto__init(&g->graph);
    onnx__operator_set_id_proto__init(&g->opset);
    g->opset.has_version = 1;
    g->opset.version = opsets[fuzz_below(draw, 8)];
    g->opsets = &g->opset;
    g->model.opset_import = &g->opsets;
    g->model.n_opset_import = 1;
    g->model.graph = &g->graph;
    g->graph.input = g->input;
    g->graph.output = g->output;
    g->graph.initializer = g->initializer;
    g->graph.node = g->node;
    for (int n = 1 + fuzz_below(draw, 2); n > 0; n--)
        add_input(g);
    for (int n = 1 + fuzz_below(draw, 8); n > 0 && g->graph.n_node < MOST_NODES && g->graph.n_initializer < 50; n--)
        add_node(g);
    return pack(g);
}
