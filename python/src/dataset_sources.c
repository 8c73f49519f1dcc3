/* What data sets are made of: sources as recipes say them, arrays, functions of Python, and other data sets. */
#include <stdlib.h>
#include <string.h>

#include "dataset.h"

PyDoc_STRVAR(parse_doc, "parse(text)\n--\n\nA source as a recipe says it, as JSON or YAML.");
static PyObject *core_parse(PyObject *module, PyObject *args)
{
    const char *text;
    stk_dataset *handle;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:parse", &text)) return NULL;
    core_dataset *self = core_dataset_new();
    if (!self) return NULL;
    Py_BEGIN_ALLOW_THREADS handle = stk_dataset_parse(text);
    Py_END_ALLOW_THREADS return core_dataset_finish(self, handle);
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
    core_dataset *self = core_dataset_new();
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
    return core_dataset_finish(self, stk_dataset_arrays(n_samples, field, (int)n));
failed:
    Py_DECREF(self);
    return NULL;
}

PyDoc_STRVAR(function_doc, "function(n_samples, fields, function, address)\n--\n\nfunction(i) makes sample i; fields: "
                           "[(name, dtype, shape), ...]; address: of machine code, 0: it is Python's");
static PyObject *core_function(PyObject *module, PyObject *args)
{
    long long n;
    unsigned long long address;
    PyObject *fields, *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "LOOK:function", &n, &fields, &function, &address)) return NULL;
    core_dataset *self = core_dataset_new();
    if (!self) return NULL;
    stk_dataset *handle = core_function_source(self, n, fields, function, address);
    if (handle) return core_dataset_finish(self, handle);
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
    core_dataset *self = core_dataset_new();
    if (!self) return NULL;
    stk_dataset *handle = core_generator_source(self, n, fields, function);
    if (handle) return core_dataset_finish(self, handle);
    Py_DECREF(self);
    return NULL;
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
    if (!core_read_texts(sets, set, &n_set, 256)) return NULL;
    core_dataset *self = core_dataset_new();
    if (!self) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_recipe_dataset(path, set, n_set, part, &handle, &config);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        core_raise(status, NULL);
        Py_DECREF(self);
        return NULL;
    }
    if (!core_dataset_finish(self, handle)) return NULL;
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
    core_dataset *self = core_dataset_new();
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
    Py_END_ALLOW_THREADS return core_dataset_finish(self, handle);
failed:
    Py_DECREF(self);
    return NULL;
}

PyMethodDef core_source_functions[] = {{"parse", core_parse, METH_VARARGS, parse_doc},
                                       {"arrays", core_arrays, METH_VARARGS, arrays_doc},
                                       {"function", core_function, METH_VARARGS, function_doc},
                                       {"generator", core_generator, METH_VARARGS, generator_doc},
                                       {"recipe", core_recipe, METH_VARARGS, recipe_doc},
                                       {"combine", core_combine, METH_VARARGS, combine_doc},
                                       {NULL, NULL, 0, NULL}};
