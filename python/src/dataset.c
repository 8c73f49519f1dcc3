/* Data sets as they are in C: built step by step, and then read. stoker.Dataset, which never changes, makes one of
 * these when it is needed. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

PyTypeObject *core_dataset_type;

enum { MOST = 64 }; /* fields, data sets of one, boundaries */

static core_dataset *new_dataset(void)
{
    core_dataset *self = PyObject_New(core_dataset, core_dataset_type);
    if (!self) return NULL;
    self->handle = NULL;
    self->callbacks = NULL;
    self->error = NULL;
    self->has_filter_failed = false;
    self->refs = PyList_New(0);
    if (!self->refs) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

static void dataset_dealloc(PyObject *object)
{
    core_dataset *self = (core_dataset *)object;
    PyTypeObject *type = Py_TYPE(object);
    stk_dataset *handle = self->handle;
    Py_BEGIN_ALLOW_THREADS stk_dataset_free(handle);
    Py_END_ALLOW_THREADS core_callbacks_free(self);
    Py_XDECREF(self->refs);
    Py_XDECREF(self->error);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Raises the first error of the calls so far. */
static PyObject *check(core_dataset *self)
{
    if (PyErr_Occurred()) return NULL;
    stk_status status = stk_dataset_status(self->handle);
    PyObject *cause = self->error;
    if (status == STK_OK && self->has_filter_failed) {
        Py_INCREF(cause);
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause);
        Py_DECREF(cause);
        return NULL;
    }
    Py_XINCREF(cause);
    if (status != STK_OK) return core_raise(status, cause);
    Py_RETURN_NONE;
}

/* Takes handle; raises its error. */
static PyObject *finish(core_dataset *self, stk_dataset *handle)
{
    self->handle = handle;
    PyObject *none = check(self);
    if (!none) {
        Py_DECREF(self);
        return NULL;
    }
    Py_DECREF(none);
    return (PyObject *)self;
}

/* --- sources --- */

PyDoc_STRVAR(parse_doc, "parse(text)\n--\n\nA source as a recipe says it, as JSON or YAML.");
static PyObject *core_parse(PyObject *module, PyObject *args)
{
    const char *text;
    stk_dataset *handle;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:parse", &text)) return NULL;
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    Py_BEGIN_ALLOW_THREADS handle = stk_dataset_parse(text);
    Py_END_ALLOW_THREADS return finish(self, handle);
}

typedef struct held_import {
    core_import import;
} held_import;

static void end_held(PyObject *capsule)
{
    held_import *held = PyCapsule_GetPointer(capsule, "stoker.import");
    if (!held) return;
    core_import_end(&held->import);
    free(held);
}

/* The object's memory stays as long as the data set. */
static const core_import *hold(core_dataset *self, PyObject *object, const char *what)
{
    held_import *held = calloc(1, sizeof(*held));
    if (!held) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!core_import_begin(object, what, &held->import)) {
        free(held);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(held, "stoker.import", end_held);
    if (!capsule) {
        core_import_end(&held->import);
        free(held);
        return NULL;
    }
    int failed = PyList_Append(self->refs, capsule);
    Py_DECREF(capsule);
    return failed ? NULL : &held->import;
}

PyDoc_STRVAR(arrays_doc, "arrays(fields)\n--\n\nfields: [(name, array), ...]; a sample is a row of each.");
static PyObject *core_arrays(PyObject *module, PyObject *args)
{
    PyObject *list;
    stk_array_field field[MOST];
    (void)module;
    if (!PyArg_ParseTuple(args, "O!:arrays", &PyList_Type, &list)) return NULL;
    Py_ssize_t n = PyList_Size(list);
    int64_t n_samples = 0;
    if (n < 1 || n > MOST) {
        PyErr_Format(PyExc_ValueError, "%zd arrays, not 1 to %d", n, MOST);
        return NULL;
    }
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *name;
        PyObject *array;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO", &name, &array)) goto failed;
        if (PyList_Append(self->refs, PyList_GetItem(list, i)) < 0) goto failed; /* the name's text */
        const core_import *import = hold(self, array, name);
        if (!import) goto failed;
        if (import->shape.rank == 0 || (i > 0 && import->shape.dim[0] != n_samples)) {
            PyErr_Format(PyExc_ValueError, "'%s' has not as many rows as the other arrays, or no rows at all", name);
            goto failed;
        }
        n_samples = import->shape.dim[0];
        field[i] = (stk_array_field){name, import->dtype, stk_shape_make(import->shape.dim + 1, import->shape.rank - 1),
                                     import->data};
    }
    return finish(self, stk_dataset_arrays(n_samples, field, (int)n));
failed:
    Py_DECREF(self);
    return NULL;
}

PyDoc_STRVAR(function_doc, "function(n_samples, fields, function)\n--\n\nfunction(i) makes sample i; fields: [(name, "
                           "dtype, shape), ...]");
static PyObject *core_function(PyObject *module, PyObject *args)
{
    long long n;
    PyObject *fields, *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "LOO:function", &n, &fields, &function)) return NULL;
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    stk_dataset *handle = core_function_source(self, n, fields, function);
    if (handle) return finish(self, handle);
    Py_DECREF(self);
    return NULL;
}

PyDoc_STRVAR(generator_doc, "generator(n_samples, fields, function)\n--\n\nfunction(epoch) gives what an epoch is "
                            "iterated over; n_samples 0: not known.");
static PyObject *core_generator(PyObject *module, PyObject *args)
{
    long long n;
    PyObject *fields, *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "LOO:generator", &n, &fields, &function)) return NULL;
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    stk_dataset *handle = core_generator_source(self, n, fields, function);
    if (handle) return finish(self, handle);
    Py_DECREF(self);
    return NULL;
}

/* The texts of a list, which own them. */
static bool read_texts(PyObject *list, const char **out, int *n, int most)
{
    Py_ssize_t size = PyList_Size(list);
    *n = 0;
    if (size < 0) return false;
    if (size > most) {
        PyErr_Format(PyExc_ValueError, "%zd texts, and %d are the most", size, most);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        /* Of bytes: the limited ABI lends no text of a str before 3.10. */
        out[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (!out[i]) return false;
    }
    *n = (int)size;
    return true;
}

PyDoc_STRVAR(recipe_doc,
             "recipe(path, sets, part)\n--\n\n(data set, {'threads', 'seed', 'memory'}) of a recipe's part; "
             "sets: list of bytes.");
static PyObject *core_recipe(PyObject *module, PyObject *args)
{
    const char *path, *part, *set[256];
    PyObject *sets;
    int n_set;
    stk_status status;
    stk_dataset *handle;
    stk_loader_config config;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!s:recipe", &path, &PyList_Type, &sets, &part)) return NULL;
    if (!read_texts(sets, set, &n_set, 256)) return NULL;
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_recipe_dataset(path, set, n_set, part, &handle, &config);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        core_raise(status, NULL);
        Py_DECREF(self);
        return NULL;
    }
    if (!finish(self, handle)) return NULL;
    return Py_BuildValue("(N{s:i,s:K,s:n})", self, "threads", config.n_threads, "seed", (unsigned long long)config.seed,
                         "memory", (Py_ssize_t)config.memory_limit_bytes);
}

/* --- several as one --- */

/* Their handles, which the result takes; what they borrow goes along. */
static int take_all(core_dataset *self, PyObject *list, stk_dataset **out)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 1 || n > MOST) {
        PyErr_Format(PyExc_ValueError, "%zd data sets, not 1 to %d", n, MOST);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (Py_TYPE(item) != core_dataset_type || !((core_dataset *)item)->handle) {
            PyErr_SetString(PyExc_TypeError, "data sets are wanted");
            return -1;
        }
        for (Py_ssize_t k = 0; k < i; k++)
            if (PyList_GetItem(list, k) == item) {
                PyErr_SetString(PyExc_ValueError, "a data set stands there twice");
                return -1;
            }
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        core_dataset *item = (core_dataset *)PyList_GetItem(list, i);
        if (PyList_Append(self->refs, (PyObject *)item) < 0) return -1;
        out[i] = item->handle;
        item->handle = NULL;
    }
    return (int)n;
}

PyDoc_STRVAR(combine_doc, "combine(kind, datasets, weights, cycle, block, stop_at_empty, seed)\n--\n\nTakes the data "
                          "sets: 'concatenate', 'zip', 'interleave' or 'mix'.");
static PyObject *core_combine(PyObject *module, PyObject *args)
{
    const char *kind;
    PyObject *list, *weights;
    long long cycle, block;
    int stop;
    unsigned long long seed;
    double weight[MOST];
    stk_dataset *part[MOST], *handle = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!OLLpK:combine", &kind, &PyList_Type, &list, &weights, &cycle, &block, &stop, &seed))
        return NULL;
    core_dataset *self = new_dataset();
    if (!self) return NULL;
    int n = 0;
    bool is_mix = !strcmp(kind, "mix");
    for (Py_ssize_t i = 0; is_mix && i < PyList_Size(list) && i < MOST; i++) {
        PyObject *item = PySequence_GetItem(weights, i);
        weight[i] = item ? PyFloat_AsDouble(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred()) goto failed;
    }
    if ((n = take_all(self, list, part)) < 0) goto failed;
    Py_BEGIN_ALLOW_THREADS if (is_mix) handle = stk_dataset_mix(part, weight, n, stop, seed);
    else if (!strcmp(kind, "zip")) handle = stk_dataset_zip(part, n);
    else if (!strcmp(kind, "interleave")) handle = stk_dataset_interleave(part, n, cycle, block);
    else handle = stk_dataset_concatenate(part, n);
    Py_END_ALLOW_THREADS return finish(self, handle);
failed:
    Py_DECREF(self);
    return NULL;
}

/* --- what is done to it --- */

#define SELF                                                                                                           \
    core_dataset *self = (core_dataset *)object;                                                                       \
    stk_dataset *handle = self->handle;                                                                                \
    if (!handle) {                                                                                                     \
        PyErr_SetString(PyExc_ValueError, "this data set is a part of another one");                                   \
        return NULL;                                                                                                   \
    }

#define DO(call)                                                                                                       \
    Py_BEGIN_ALLOW_THREADS call;                                                                                       \
    Py_END_ALLOW_THREADS return check(self)

static PyObject *do_shuffle(PyObject *object, PyObject *args)
{
    unsigned long long seed;
    long long window;
    int once;
    SELF if (!PyArg_ParseTuple(args, "KLp:shuffle", &seed, &window, &once)) return NULL;
    DO(stk_dataset_shuffle_with(handle, (stk_shuffle){.seed = seed, .window = window, .once = once}));
}

static PyObject *do_take(PyObject *object, PyObject *args)
{
    long long n;
    SELF if (!PyArg_ParseTuple(args, "L:take", &n)) return NULL;
    DO(stk_dataset_take(handle, n));
}

static PyObject *do_skip(PyObject *object, PyObject *args)
{
    long long n;
    SELF if (!PyArg_ParseTuple(args, "L:skip", &n)) return NULL;
    DO(stk_dataset_skip(handle, n));
}

static PyObject *do_repeat(PyObject *object, PyObject *args)
{
    long long n;
    SELF if (!PyArg_ParseTuple(args, "L:repeat", &n)) return NULL;
    DO(stk_dataset_repeat(handle, n));
}

static PyObject *do_shard(PyObject *object, PyObject *args)
{
    long long n, i;
    int policy;
    SELF if (!PyArg_ParseTuple(args, "iLL:shard", &policy, &n, &i)) return NULL;
    DO(stk_dataset_shard_by(handle, (stk_shard_policy)policy, n, i));
}

static PyObject *do_split(PyObject *object, PyObject *args)
{
    double share;
    int rest;
    unsigned long long seed;
    SELF if (!PyArg_ParseTuple(args, "dpK:split", &share, &rest, &seed)) return NULL;
    DO(stk_dataset_split(handle, share, rest, seed));
}

static PyObject *do_batch(PyObject *object, PyObject *args)
{
    long long n;
    int drop;
    SELF if (!PyArg_ParseTuple(args, "Lp:batch", &n, &drop)) return NULL;
    DO(stk_dataset_batch(handle, n, drop));
}

/* (field or None, length, max_length, value) */
static bool read_padding(PyObject *args, stk_padding *out)
{
    long long length, max_length;
    if (!PyArg_ParseTuple(args, "zLLd", &out->field, &length, &max_length, &out->value)) return false;
    out->length = length;
    out->max_length = max_length;
    return true;
}

static PyObject *do_padded_batch(PyObject *object, PyObject *args)
{
    long long n;
    int drop;
    PyObject *padding;
    stk_padding pad;
    SELF if (!PyArg_ParseTuple(args, "LpO:padded_batch", &n, &drop, &padding) ||
             !read_padding(padding, &pad)) return NULL;
    DO(stk_dataset_padded_batch(handle, n, drop, &pad, 1));
}

static bool read_numbers(PyObject *list, int64_t *out, int *n)
{
    Py_ssize_t size = PyList_Check(list) ? PyList_Size(list) : -1;
    if (size < 0 || size > MOST) {
        PyErr_Format(PyExc_ValueError, "a list of at most %d numbers is wanted", MOST);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        out[i] = PyLong_AsLongLong(PyList_GetItem(list, i));
        if (PyErr_Occurred()) return false;
    }
    *n = (int)size;
    return true;
}

static PyObject *do_bucket_batch(PyObject *object, PyObject *args)
{
    PyObject *boundaries, *sizes, *padding;
    long long tokens;
    int to_boundary, drop, n_boundaries, n_sizes;
    const char *field;
    int64_t boundary[MOST], size[MOST];
    stk_padding pad;
    SELF if (!PyArg_ParseTuple(args, "zOOLppO:bucket_batch", &field, &boundaries, &sizes, &tokens, &to_boundary, &drop,
                               &padding)) return NULL;
    if (!read_padding(padding, &pad) || !read_numbers(boundaries, boundary, &n_boundaries) ||
        !read_numbers(sizes, size, &n_sizes))
        return NULL;
    if (tokens == 0 && n_sizes != n_boundaries + 1) {
        PyErr_Format(PyExc_ValueError, "%d boundaries make %d buckets, and there are %d batch sizes", n_boundaries,
                     n_boundaries + 1, n_sizes);
        return NULL;
    }
    stk_buckets buckets = {.field = field,
                           .boundaries = tokens ? NULL : boundary,
                           .batch_sizes = tokens ? NULL : size,
                           .n_boundaries = tokens ? 0 : n_boundaries,
                           .tokens = tokens,
                           .pad_to_boundary = to_boundary,
                           .drop_remainder = drop};
    DO(stk_dataset_bucket_batch(handle, &buckets, &pad, 1));
}

static PyObject *do_apply(PyObject *object, PyObject *args)
{
    const char *field, *text;
    SELF if (!PyArg_ParseTuple(args, "zs:apply", &field, &text)) return NULL;
    DO(stk_dataset_apply_to(handle, field, stk_stage_parse(text)));
}

static PyObject *do_apply_together(PyObject *object, PyObject *args)
{
    PyObject *fields;
    int n_images, n;
    const char *text, *field[MOST];
    SELF if (!PyArg_ParseTuple(args, "O!is:apply_together", &PyList_Type, &fields, &n_images, &text)) return NULL;
    if (!read_texts(fields, field, &n, MOST)) return NULL;
    if (n_images < 0 || n_images > n) {
        PyErr_Format(PyExc_ValueError, "%d of %d fields are images", n_images, n);
        return NULL;
    }
    DO(stk_dataset_apply_together(handle, field, n_images, n - n_images, stk_stage_parse(text)));
}

static PyObject *do_map(PyObject *object, PyObject *args)
{
    const char *field, *name;
    PyObject *function, *dtype, *shape;
    int random;
    SELF(void) handle;
    if (!PyArg_ParseTuple(args, "zsOOOp:map", &field, &name, &function, &dtype, &shape, &random)) return NULL;
    if (!core_add_stage(self, field, name, function, dtype, shape, random)) return NULL;
    return check(self);
}

static PyObject *do_filter(PyObject *object, PyObject *args)
{
    PyObject *function;
    SELF(void) handle;
    if (!PyArg_ParseTuple(args, "O:filter", &function)) return NULL;
    core_filter(self, function);
    return check(self);
}

static PyObject *do_filter_by(PyObject *object, PyObject *args)
{
    PyObject *values;
    int64_t value[MOST];
    int n = 0, drop;
    long long least_bytes, most_bytes, least_length, most_length;
    const char *field;
    double least, most;
    stk_filter_rule rule = stk_filter_rule_default();
    SELF if (!PyArg_ParseTuple(args, "zOpddLLLL:filter_by", &field, &values, &drop, &least, &most, &least_bytes,
                               &most_bytes, &least_length, &most_length)) return NULL;
    if (values != Py_None && !read_numbers(values, value, &n)) return NULL;
    rule.field = field;
    rule.values = values != Py_None ? value : NULL;
    rule.n_values = n;
    rule.drop = drop;
    rule.least = least;
    rule.most = most;
    if (least_bytes >= 0) rule.least_bytes = least_bytes;
    if (most_bytes >= 0) rule.most_bytes = most_bytes;
    if (least_length >= 0) rule.least_length = least_length;
    if (most_length >= 0) rule.most_length = most_length;
    DO(stk_dataset_filter_by(handle, &rule));
}

static PyObject *do_pack(PyObject *object, PyObject *args)
{
    long long length;
    PyObject *fields;
    int cut, n;
    double value;
    const char *field[MOST];
    SELF if (!PyArg_ParseTuple(args, "LO!pd:pack", &length, &PyList_Type, &fields, &cut, &value)) return NULL;
    if (!read_texts(fields, field, &n, MOST)) return NULL;
    stk_packing packing = {.length = length, .fields = n ? field : NULL, .n_fields = n, .cut = cut, .value = value};
    DO(stk_dataset_pack_sequences(handle, &packing));
}

static PyObject *do_window(PyObject *object, PyObject *args)
{
    long long size, shift, stride;
    int drop;
    SELF if (!PyArg_ParseTuple(args, "LLLp:window", &size, &shift, &stride, &drop)) return NULL;
    DO(stk_dataset_window(handle,
                          (stk_windows){.size = size, .shift = shift, .stride = stride, .drop_remainder = drop}));
}

static PyObject *do_unbatch(PyObject *object, PyObject *none)
{
    SELF(void) none;
    DO(stk_dataset_unbatch(handle));
}

static PyObject *do_rename(PyObject *object, PyObject *args)
{
    const char *from, *to;
    SELF if (!PyArg_ParseTuple(args, "ss:rename", &from, &to)) return NULL;
    DO(stk_dataset_rename(handle, from, to));
}

static PyObject *do_cache(PyObject *object, PyObject *args)
{
    int kind;
    const char *path;
    SELF if (!PyArg_ParseTuple(args, "iz:cache", &kind, &path)) return NULL;
    DO(stk_dataset_cache(handle, (stk_cache_kind)kind, path));
}

static PyObject *do_on_error(PyObject *object, PyObject *args)
{
    int what;
    long long most;
    SELF if (!PyArg_ParseTuple(args, "iL:on_error", &what, &most)) return NULL;
    DO(stk_dataset_on_error_with(handle, (stk_error_policy){(stk_on_error)what, most}));
}

/* --- what it is --- */

static PyObject *get_count(PyObject *object, void *none)
{
    SELF(void) none;
    return PyLong_FromLongLong(stk_dataset_count(handle));
}

static PyObject *get_n_batches(PyObject *object, void *none)
{
    SELF(void) none;
    return PyLong_FromLongLong(stk_dataset_n_batches(handle));
}

static PyObject *get_batch_size(PyObject *object, void *none)
{
    SELF(void) none;
    return PyLong_FromLongLong(stk_dataset_batch_size(handle));
}

static PyObject *get_note(PyObject *object, void *none)
{
    SELF(void) none;
    return PyUnicode_FromString(stk_dataset_note(handle));
}

static PyObject *get_classes(PyObject *object, void *none)
{
    const char *const *names;
    SELF(void) none;
    int64_t n = stk_dataset_classes(handle, &names);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(names[i]);
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *do_field(PyObject *object, PyObject *args)
{
    const char *field;
    int probe;
    stk_dtype dtype;
    stk_shape shape;
    stk_status status;
    SELF if (!PyArg_ParseTuple(args, "sp:field", &field, &probe)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_dataset_field(handle, field, probe, &dtype, &shape);
    Py_END_ALLOW_THREADS if (status != STK_OK) return core_raise(status, NULL);
    return Py_BuildValue("(sN)", core_dtype_name(dtype), core_shape_tuple(&shape));
}

static PyMethodDef dataset_methods[] = {{"shuffle", do_shuffle, METH_VARARGS, NULL},
                                        {"take", do_take, METH_VARARGS, NULL},
                                        {"skip", do_skip, METH_VARARGS, NULL},
                                        {"repeat", do_repeat, METH_VARARGS, NULL},
                                        {"shard", do_shard, METH_VARARGS, NULL},
                                        {"split", do_split, METH_VARARGS, NULL},
                                        {"batch", do_batch, METH_VARARGS, NULL},
                                        {"padded_batch", do_padded_batch, METH_VARARGS, NULL},
                                        {"bucket_batch", do_bucket_batch, METH_VARARGS, NULL},
                                        {"apply", do_apply, METH_VARARGS, NULL},
                                        {"apply_together", do_apply_together, METH_VARARGS, NULL},
                                        {"map", do_map, METH_VARARGS, NULL},
                                        {"filter", do_filter, METH_VARARGS, NULL},
                                        {"filter_by", do_filter_by, METH_VARARGS, NULL},
                                        {"pack", do_pack, METH_VARARGS, NULL},
                                        {"window", do_window, METH_VARARGS, NULL},
                                        {"unbatch", do_unbatch, METH_NOARGS, NULL},
                                        {"rename", do_rename, METH_VARARGS, NULL},
                                        {"cache", do_cache, METH_VARARGS, NULL},
                                        {"on_error", do_on_error, METH_VARARGS, NULL},
                                        {"field", do_field, METH_VARARGS, NULL},
                                        {NULL, NULL, 0, NULL}};

static PyGetSetDef dataset_getset[] = {
    {"count", get_count, NULL, NULL, NULL},           {"n_batches", get_n_batches, NULL, NULL, NULL},
    {"batch_size", get_batch_size, NULL, NULL, NULL}, {"note", get_note, NULL, NULL, NULL},
    {"classes", get_classes, NULL, NULL, NULL},       {NULL, NULL, NULL, NULL, NULL}};

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "it is made by the functions of stoker._core");
    return NULL;
}

static PyType_Slot dataset_slots[] = {{Py_tp_dealloc, dataset_dealloc},
                                      {Py_tp_new, refuse_new},
                                      {Py_tp_methods, dataset_methods},
                                      {Py_tp_getset, dataset_getset},
                                      {0, NULL}};
static PyType_Spec dataset_spec = {"stoker._core.Dataset", sizeof(core_dataset), 0, Py_TPFLAGS_DEFAULT, dataset_slots};

static PyMethodDef functions[] = {{"parse", core_parse, METH_VARARGS, parse_doc},
                                  {"arrays", core_arrays, METH_VARARGS, arrays_doc},
                                  {"function", core_function, METH_VARARGS, function_doc},
                                  {"generator", core_generator, METH_VARARGS, generator_doc},
                                  {"recipe", core_recipe, METH_VARARGS, recipe_doc},
                                  {"combine", core_combine, METH_VARARGS, combine_doc},
                                  {NULL, NULL, 0, NULL}};

int core_add_datasets(PyObject *module)
{
    core_dataset_type = (PyTypeObject *)PyType_FromSpec(&dataset_spec);
    if (!core_dataset_type) return -1;
    Py_INCREF(core_dataset_type);
    if (PyModule_AddObject(module, "Dataset", (PyObject *)core_dataset_type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
