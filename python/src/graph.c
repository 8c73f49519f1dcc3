/* Graphs: values are whole numbers here, which python/stoker/graph.py makes objects with operators of. */
#include <string.h>

#include "graph.h"

static PyTypeObject *graph_type;

/* --- values --- */

static bool begin(const core_graph *self)
{
    if (self->handle) return true;
    core_raise_closed("graph of this value, whose step is compiled,");
    return false;
}

static stk_value value(const core_graph *self, int id)
{
    return (stk_value){self->handle, id};
}

/* Its number, or the graph's error as an exception. */
static PyObject *number(const core_graph *self, stk_value x)
{
    stk_status status = stk_graph_status(self->handle);
    return status == STK_OK ? PyLong_FromLong(x.id) : core_raise(status, NULL);
}

static PyObject *nothing(const core_graph *self)
{
    stk_status status = stk_graph_status(self->handle);
    if (status != STK_OK) return core_raise(status, NULL);
    Py_RETURN_NONE;
}

/* Whole numbers, as many as x has axes. */
static bool read_sides(const core_graph *self, PyObject *object, int id, int64_t out[STK_MAX_RANK])
{
    PyObject *tuple = PySequence_Tuple(object);
    Py_ssize_t n = tuple ? PyTuple_Size(tuple) : -1;
    int rank = stk_value_shape(value(self, id)).rank;
    if (tuple && n != rank) PyErr_Format(PyExc_ValueError, "%zd numbers for %d axes", n, rank);
    for (int i = 0; n == rank && i < rank && !PyErr_Occurred(); i++)
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    Py_XDECREF(tuple);
    return !PyErr_Occurred();
}

/* --- leaves and roots --- */

static PyObject *graph_input(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *name;
    PyObject *type, *sides;
    stk_dtype dtype;
    stk_shape shape;
    if (!PyArg_ParseTuple(args, "sOO:input", &name, &type, &sides) || !begin(self)) return NULL;
    if (!core_dtype(type, &dtype) || !core_shape(sides, &shape)) return NULL;
    return number(self, stk_graph_input(self->handle, name, dtype, shape));
}

static PyObject *graph_variable(PyObject *object, PyObject *args)
{
    static const char *const kinds[] = {"constant", "uniform", "normal", "identity"};
    core_graph *self = (core_graph *)object;
    const char *name, *kind;
    PyObject *type, *sides;
    stk_dtype dtype;
    stk_shape shape;
    stk_init init = {0};
    int trainable, i = 0;
    if (!PyArg_ParseTuple(args, "sOOsdp:variable", &name, &type, &sides, &kind, &init.a, &trainable) || !begin(self))
        return NULL;
    if (!core_dtype(type, &dtype) || !core_shape(sides, &shape)) return NULL;
    while (i < 4 && strcmp(kind, kinds[i]) != 0)
        i++;
    if (i == 4)
        return PyErr_Format(PyExc_ValueError, "a variable begins constant, uniform, normal or identity, not %s", kind);
    init.kind = (stk_init_kind)i;
    return number(self, stk_graph_variable(self->handle, name, dtype, shape, init, trainable));
}

static PyObject *graph_constant(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *type, *sides;
    double content;
    stk_dtype dtype;
    stk_shape shape;
    if (!PyArg_ParseTuple(args, "OOd:constant", &type, &sides, &content) || !begin(self)) return NULL;
    if (!core_dtype(type, &dtype) || !core_shape(sides, &shape)) return NULL;
    return number(self, stk_graph_constant(self->handle, dtype, shape, content));
}

static PyObject *graph_iota(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *type, *sides;
    int axis;
    stk_dtype dtype;
    stk_shape shape;
    if (!PyArg_ParseTuple(args, "OOi:iota", &type, &sides, &axis) || !begin(self)) return NULL;
    if (!core_dtype(type, &dtype) || !core_shape(sides, &shape)) return NULL;
    return number(self, stk_iota(self->handle, dtype, shape, axis));
}

static PyObject *graph_output(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *name;
    int x;
    if (!PyArg_ParseTuple(args, "si:output", &name, &x) || !begin(self)) return NULL;
    stk_graph_output(self->handle, name, value(self, x));
    return nothing(self);
}

static PyObject *graph_update(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int variable, x;
    if (!PyArg_ParseTuple(args, "ii:update", &variable, &x) || !begin(self)) return NULL;
    stk_graph_update(self->handle, value(self, variable), value(self, x));
    return nothing(self);
}

/* --- element by element --- */

static PyObject *graph_unary(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        stk_value (*apply)(stk_value);
    } ops[] = {
#define X(name) {#name, stk_##name},
        STK_UNARY_LIST(X)
#undef X
            {"softmax", stk_softmax}};
    core_graph *self = (core_graph *)object;
    const char *name;
    int x;
    if (!PyArg_ParseTuple(args, "si:unary", &name, &x) || !begin(self)) return NULL;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strcmp(ops[i].name, name)) return number(self, ops[i].apply(value(self, x)));
    return PyErr_Format(PyExc_ValueError, "there is no operation '%s' of one value", name);
}

static PyObject *graph_binary(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        stk_value (*apply)(stk_value, stk_value);
    } ops[] = {
#define X(name) {#name, stk_##name},
        STK_BINARY_LIST(X) STK_COMPARE_LIST(X)
#undef X
    };
    core_graph *self = (core_graph *)object;
    const char *name;
    int a, b;
    if (!PyArg_ParseTuple(args, "sii:binary", &name, &a, &b) || !begin(self)) return NULL;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strcmp(ops[i].name, name)) return number(self, ops[i].apply(value(self, a), value(self, b)));
    return PyErr_Format(PyExc_ValueError, "there is no operation '%s' of two values", name);
}

static PyObject *graph_select(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int condition, a, b;
    if (!PyArg_ParseTuple(args, "iii:select", &condition, &a, &b) || !begin(self)) return NULL;
    return number(self, stk_select(value(self, condition), value(self, a), value(self, b)));
}

static PyObject *graph_cast(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *type;
    stk_dtype dtype;
    int x;
    if (!PyArg_ParseTuple(args, "iO:cast", &x, &type) || !begin(self) || !core_dtype(type, &dtype)) return NULL;
    return number(self, stk_cast_to(value(self, x), dtype));
}

/* --- shapes --- */

static PyObject *graph_broadcast(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *sides;
    stk_shape shape;
    int x;
    if (!PyArg_ParseTuple(args, "iO:broadcast", &x, &sides) || !begin(self) || !core_shape(sides, &shape)) return NULL;
    return number(self, stk_broadcast(value(self, x), shape));
}

static PyObject *graph_reshape(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *sides;
    stk_shape shape;
    int x;
    if (!PyArg_ParseTuple(args, "iO:reshape", &x, &sides) || !begin(self) || !core_shape(sides, &shape)) return NULL;
    return number(self, stk_reshape(value(self, x), shape));
}

static PyObject *graph_transpose(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *sides;
    int64_t wide[STK_MAX_RANK] = {0};
    int32_t permutation[STK_MAX_RANK];
    int x;
    if (!PyArg_ParseTuple(args, "iO:transpose", &x, &sides) || !begin(self) || !read_sides(self, sides, x, wide))
        return NULL;
    for (int i = 0; i < STK_MAX_RANK; i++)
        permutation[i] = wide[i] < 0 || wide[i] > STK_MAX_RANK ? -1 : (int32_t)wide[i];
    return number(self, stk_transpose(value(self, x), permutation));
}

static PyObject *graph_slice(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *sides[3];
    int64_t start[STK_MAX_RANK], stop[STK_MAX_RANK], step[STK_MAX_RANK];
    int x;
    if (!PyArg_ParseTuple(args, "iOOO:slice", &x, &sides[0], &sides[1], &sides[2]) || !begin(self)) return NULL;
    if (!read_sides(self, sides[0], x, start) || !read_sides(self, sides[1], x, stop) ||
        !read_sides(self, sides[2], x, step))
        return NULL;
    return number(self, stk_slice(value(self, x), start, stop, step));
}

static PyObject *graph_pad(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    PyObject *sides[2];
    int64_t low[STK_MAX_RANK], high[STK_MAX_RANK];
    double content;
    int x;
    if (!PyArg_ParseTuple(args, "iOOd:pad", &x, &sides[0], &sides[1], &content) || !begin(self)) return NULL;
    if (!read_sides(self, sides[0], x, low) || !read_sides(self, sides[1], x, high)) return NULL;
    return number(self, stk_pad(value(self, x), low, high, content));
}

static PyObject *graph_concat(PyObject *object, PyObject *args)
{
    enum { MOST = 64 };
    core_graph *self = (core_graph *)object;
    PyObject *ids;
    stk_value x[MOST];
    int axis;
    if (!PyArg_ParseTuple(args, "O!i:concat", &PyList_Type, &ids, &axis) || !begin(self)) return NULL;
    Py_ssize_t n = PyList_Size(ids);
    if (n < 1 || n > MOST) return PyErr_Format(PyExc_ValueError, "%zd values to join, not 1 to %d", n, MOST);
    for (Py_ssize_t i = 0; i < n; i++) {
        long id = PyLong_AsLong(PyList_GetItem(ids, i));
        if (PyErr_Occurred()) return NULL;
        x[i] = value(self, id < 0 || id > INT32_MAX ? -1 : (int)id);
    }
    return number(self, stk_concat(x, (int)n, axis));
}

static PyObject *graph_reduce(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        stk_value (*apply)(stk_value, uint32_t);
    } ops[] = {{"sum", stk_reduce_sum},
               {"mean", stk_reduce_mean},
               {"max", stk_reduce_max},
               {"min", stk_reduce_min},
               {"prod", stk_reduce_prod}};
    core_graph *self = (core_graph *)object;
    const char *name;
    unsigned axes;
    int x;
    if (!PyArg_ParseTuple(args, "siI:reduce", &name, &x, &axes) || !begin(self)) return NULL;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strcmp(ops[i].name, name)) return number(self, ops[i].apply(value(self, x), axes));
    return PyErr_Format(PyExc_ValueError, "there is no reduction '%s'", name);
}

static PyObject *graph_cumsum(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int x, axis, exclusive, reverse;
    if (!PyArg_ParseTuple(args, "iipp:cumsum", &x, &axis, &exclusive, &reverse) || !begin(self)) return NULL;
    return number(self, stk_cumsum(value(self, x), axis, exclusive, reverse));
}

static PyObject *graph_argmax(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int x, axis, last;
    if (!PyArg_ParseTuple(args, "iip:argmax", &x, &axis, &last) || !begin(self)) return NULL;
    return number(self, stk_argmax(value(self, x), axis, last));
}

/* --- library operations --- */

static PyObject *graph_matmul(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int a, b, transpose_a, transpose_b;
    if (!PyArg_ParseTuple(args, "iipp:matmul", &a, &b, &transpose_a, &transpose_b) || !begin(self)) return NULL;
    return number(self, stk_matmul(value(self, a), value(self, b), transpose_a, transpose_b));
}

static PyObject *graph_gather(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int x, ids, axis;
    if (!PyArg_ParseTuple(args, "iii:gather", &x, &ids, &axis) || !begin(self)) return NULL;
    return number(self, stk_gather(value(self, x), value(self, ids), axis));
}

static PyObject *graph_attention(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    stk_attention options = {0};
    int q, k, v, mask, causal;
    if (!PyArg_ParseTuple(args, "iiiipd:attention", &q, &k, &v, &mask, &causal, &options.scale) || !begin(self))
        return NULL;
    options.causal = causal;
    return number(self, stk_attention_raw(value(self, q), value(self, k), value(self, v), value(self, mask),
                                          value(self, -1), value(self, -1), options));
}

static PyObject *graph_grad(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int y, x;
    if (!PyArg_ParseTuple(args, "ii:grad", &y, &x) || !begin(self)) return NULL;
    return number(self, stk_grad(value(self, y), value(self, x)));
}

/* --- by recipes' text --- */

static PyObject *graph_layers(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *text;
    int x;
    if (!PyArg_ParseTuple(args, "is:layers", &x, &text) || !begin(self)) return NULL;
    return number(self, stk_layers_parse(value(self, x), text));
}

static PyObject *graph_network(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *text;
    long long n_classes;
    int x;
    if (!PyArg_ParseTuple(args, "iLs:network", &x, &n_classes, &text) || !begin(self)) return NULL;
    return number(self, stk_network_parse(value(self, x), n_classes, text));
}

/* The loss of each sample, and what each counts for, or -1. */
static PyObject *graph_loss(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *text;
    stk_value weight;
    int output, target;
    if (!PyArg_ParseTuple(args, "iis:loss", &output, &target, &text) || !begin(self)) return NULL;
    stk_value loss = stk_loss_parse(value(self, output), value(self, target), text, &weight);
    stk_status status = stk_graph_status(self->handle);
    return status == STK_OK ? Py_BuildValue("(ii)", (int)loss.id, (int)weight.id) : core_raise(status, NULL);
}

static PyObject *graph_minimize(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *text, *only;
    double clip_norm;
    stk_optimizer optimizer;
    int loss;
    if (!PyArg_ParseTuple(args, "isdz:minimize", &loss, &text, &clip_norm, &only) || !begin(self)) return NULL;
    stk_status status = stk_optimizer_parse(text, &optimizer);
    if (status != STK_OK) return core_raise(status, NULL);
    stk_minimize(value(self, loss), optimizer, clip_norm, only);
    return nothing(self);
}

/* --- the graph --- */

static PyObject *graph_scope(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    const char *name;
    if (!PyArg_ParseTuple(args, "z:scope", &name) || !begin(self)) return NULL;
    if (name)
        stk_scope_push(self->handle, name);
    else
        stk_scope_pop(self->handle);
    return nothing(self);
}

static PyObject *graph_f32(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int begins;
    if (!PyArg_ParseTuple(args, "p:f32", &begins) || !begin(self)) return NULL;
    if (begins)
        stk_f32_push(self->handle);
    else
        stk_f32_pop(self->handle);
    return nothing(self);
}

static PyObject *graph_type_of(PyObject *object, PyObject *args)
{
    core_graph *self = (core_graph *)object;
    int x;
    if (!PyArg_ParseTuple(args, "i:type_of", &x) || !begin(self)) return NULL;
    stk_shape shape = stk_value_shape(value(self, x));
    return Py_BuildValue("(sN)", core_dtype_name(stk_value_dtype(value(self, x))), core_shape_tuple(&shape));
}

static PyObject *graph_print(PyObject *object, PyObject *none)
{
    core_graph *self = (core_graph *)object;
    (void)none;
    if (!begin(self)) return NULL;
    char *text = stk_graph_print(self->handle);
    if (!text) return PyErr_NoMemory();
    PyObject *result = PyUnicode_FromString(text);
    free(text);
    return result;
}

static PyObject *core_graph_new(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    core_graph *self = core_object_new(graph_type, sizeof(*self));
    if (!self) return NULL;
    self->handle = stk_graph_new();
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

static int graph_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static void graph_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    stk_graph_free(((core_graph *)object)->handle);
    core_object_free(object);
}

stk_graph *core_graph_take(PyObject *object)
{
    core_graph *self = (core_graph *)object;
    if (!PyObject_TypeCheck(object, graph_type)) {
        PyErr_SetString(PyExc_TypeError, "a graph is wanted");
        return NULL;
    }
    if (!begin(self)) return NULL;
    stk_status status = stk_graph_status(self->handle);
    if (status != STK_OK) {
        core_raise(status, NULL);
        return NULL;
    }
    stk_graph *handle = self->handle;
    self->handle = NULL;
    return handle;
}

static PyMethodDef methods[] = {
    {"input", graph_input, METH_VARARGS, "input(name, dtype, shape)"},
    {"variable", graph_variable, METH_VARARGS, "variable(name, dtype, shape, begins, number, trainable)"},
    {"constant", graph_constant, METH_VARARGS, "constant(dtype, shape, content)"},
    {"iota", graph_iota, METH_VARARGS, "iota(dtype, shape, axis)"},
    {"output", graph_output, METH_VARARGS, "output(name, x)"},
    {"update", graph_update, METH_VARARGS, "update(variable, x)"},
    {"unary", graph_unary, METH_VARARGS, "unary(name, x)"},
    {"binary", graph_binary, METH_VARARGS, "binary(name, a, b)"},
    {"select", graph_select, METH_VARARGS, "select(condition, a, b)"},
    {"cast", graph_cast, METH_VARARGS, "cast(x, dtype)"},
    {"broadcast", graph_broadcast, METH_VARARGS, "broadcast(x, shape)"},
    {"reshape", graph_reshape, METH_VARARGS, "reshape(x, shape)"},
    {"transpose", graph_transpose, METH_VARARGS, "transpose(x, permutation)"},
    {"slice", graph_slice, METH_VARARGS, "slice(x, start, stop, step)"},
    {"pad", graph_pad, METH_VARARGS, "pad(x, low, high, content)"},
    {"concat", graph_concat, METH_VARARGS, "concat(values, axis)"},
    {"reduce", graph_reduce, METH_VARARGS, "reduce(name, x, axes); bit i of axes is axis i"},
    {"cumsum", graph_cumsum, METH_VARARGS, "cumsum(x, axis, exclusive, reverse)"},
    {"argmax", graph_argmax, METH_VARARGS, "argmax(x, axis, last)"},
    {"matmul", graph_matmul, METH_VARARGS, "matmul(a, b, transpose_a, transpose_b)"},
    {"gather", graph_gather, METH_VARARGS, "gather(x, ids, axis)"},
    {"attention", graph_attention, METH_VARARGS, "attention(q, k, v, mask, causal, scale)"},
    {"grad", graph_grad, METH_VARARGS, "grad(y, x)"},
    {"layers", graph_layers, METH_VARARGS, "layers(x, text)"},
    {"network", graph_network, METH_VARARGS, "network(x, n_classes, text)"},
    {"loss", graph_loss, METH_VARARGS, "loss(output, target, text): the loss and its weight, or -1"},
    {"minimize", graph_minimize, METH_VARARGS, "minimize(loss, optimizer, clip_norm, only)"},
    {"scope", graph_scope, METH_VARARGS, "scope(name); None ends the last one"},
    {"f32", graph_f32, METH_VARARGS, "f32(begins)"},
    {"type_of", graph_type_of, METH_VARARGS, "type_of(x): the type of elements, and the shape"},
    {"print", graph_print, METH_NOARGS, "print(): the graph as text"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_doc, "A graph that is built, until a session takes it."},
                              {Py_tp_new, core_refuse_new},
                              {Py_tp_dealloc, graph_dealloc},
                              {Py_tp_traverse, graph_traverse},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {"stoker._core.Graph", sizeof(core_graph), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

static PyMethodDef functions[] = {{"graph", core_graph_new, METH_NOARGS, "graph()\n--\n\nAn empty graph."},
                                  {NULL, NULL, 0, NULL}};

int core_add_graphs(PyObject *module)
{
    graph_type = core_add_type(module, "Graph", &spec);
    return graph_type && PyModule_AddFunctions(module, functions) == 0 && core_add_sessions(module) == 0 ? 0 : -1;
}
