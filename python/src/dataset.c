/* Data sets: the type, what is done to one, and what it tells of itself. See dataset.h. */

#include "dataset.h"

PyTypeObject *core_dataset_type;

core_dataset *core_dataset_new(void)
{
    core_dataset *self = core_object_new(core_dataset_type, sizeof(*self));
    if (!self) return NULL;
    self->refs = PyList_New(0);
    if (!self->refs) {
        Py_DECREF(self);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)self);
    return self;
}

/* Cycles through a function of Python are ended by Python's own objects; this only shows them. */
static int dataset_traverse(PyObject *object, visitproc visit, void *arg)
{
    core_dataset *self = (core_dataset *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->refs);
    Py_VISIT(self->error);
    return core_callbacks_traverse(self, visit, arg);
}

static void dataset_dealloc(PyObject *object)
{
    core_dataset *self = (core_dataset *)object;
    stk_dataset *handle = self->handle;
    PyObject_GC_UnTrack(object);
    Py_BEGIN_ALLOW_THREADS stk_dataset_free(handle);
    Py_END_ALLOW_THREADS core_callbacks_free(self);
    Py_XDECREF(self->refs);
    Py_XDECREF(self->error);
    core_object_free(self);
}

PyObject *core_dataset_check(core_dataset *self)
{
    if (PyErr_Occurred()) return NULL;
    stk_status status = stk_dataset_status(self->handle);
    PyObject *cause = self->error;
    if (cause) { /* what C says of a filter that failed follows from it */
        Py_INCREF(cause);
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause);
        Py_DECREF(cause);
        return NULL;
    }
    if (status != STK_OK) return core_raise(status, core_cause(self, status));
    Py_RETURN_NONE;
}

PyObject *core_dataset_finish(core_dataset *self, stk_dataset *handle)
{
    self->handle = handle;
    PyObject *none = core_dataset_check(self);
    if (!none) {
        Py_DECREF(self);
        return NULL;
    }
    Py_DECREF(none);
    return (PyObject *)self;
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
    Py_END_ALLOW_THREADS return core_dataset_check(self)

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
    if (!core_read_texts(fields, field, &n, MOST)) return NULL;
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
    unsigned long long address;
    int random;
    SELF(void) handle;
    if (!PyArg_ParseTuple(args, "zsOKOOp:map", &field, &name, &function, &address, &dtype, &shape, &random))
        return NULL;
    if (!core_add_stage(self, field, name, function, address, dtype, shape, random)) return NULL;
    return core_dataset_check(self);
}

static PyObject *do_filter(PyObject *object, PyObject *args)
{
    PyObject *function;
    SELF(void) handle;
    if (!PyArg_ParseTuple(args, "O:filter", &function)) return NULL;
    core_filter(self, function);
    return core_dataset_check(self);
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
    if (!core_read_texts(fields, field, &n, MOST)) return NULL;
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
                                        {"explain", core_dataset_explain, METH_NOARGS, NULL},
                                        {"sheet", core_dataset_sheet, METH_VARARGS, NULL},
                                        {NULL, NULL, 0, NULL}};

static PyGetSetDef dataset_getset[] = {
    {"count", get_count, NULL, NULL, NULL},           {"n_batches", get_n_batches, NULL, NULL, NULL},
    {"batch_size", get_batch_size, NULL, NULL, NULL}, {"note", get_note, NULL, NULL, NULL},
    {"classes", get_classes, NULL, NULL, NULL},       {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot dataset_slots[] = {{Py_tp_dealloc, dataset_dealloc}, {Py_tp_traverse, dataset_traverse},
                                      {Py_tp_new, core_refuse_new},     {Py_tp_methods, dataset_methods},
                                      {Py_tp_getset, dataset_getset},   {0, NULL}};
static PyType_Spec dataset_spec = {"stoker._core.Dataset", sizeof(core_dataset), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, dataset_slots};

int core_add_datasets(PyObject *module)
{
    core_dataset_type = core_add_type(module, "Dataset", &dataset_spec);
    if (!core_dataset_type) return -1;
    return PyModule_AddFunctions(module, core_source_functions);
}
