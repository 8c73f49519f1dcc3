/* The extension module stoker._core: Stoker's C interface for Python. What is convenient is made of it in Python, in
 * python/stoker. It uses the limited ABI of CPython 3.9, and neither NumPy nor any other package.
 *
 * Whatever may wait or work runs without the interpreter's lock (GIL); whatever touches a Python object holds it.
 */
#ifndef STOKER_PY_CORE_H
#define STOKER_PY_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "stoker/stoker.h"

/* --- objects --- */

/* An object of a type of Python's cyclic collector, zeroed, not yet tracked; its dealloc ends with core_object_free. */
void *core_object_new(PyTypeObject *type, size_t bytes);
void core_object_free(void *self);
/* tp_new of types that Python code makes no objects of. */
PyObject *core_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords);
/* The type, also a name of the module; NULL: an exception. */
PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec);
/* The texts of a list of bytes, which own them; false: an exception. */
bool core_read_texts(PyObject *list, const char **out, int *n, int most);

/* --- errors --- */

/* Adds the classes of exceptions to the module. */
int core_add_errors(PyObject *module);
/* Raises status with this thread's text; cause (may be NULL, taken) becomes __cause__. Returns NULL. */
PyObject *core_raise(stk_status status, PyObject *cause);
/* Raises stoker.ClosedError or stoker.ForkError. Return NULL. */
PyObject *core_raise_closed(const char *what);
PyObject *core_raise_forked(const char *what);
/* How often this process or its parents have forked: what has threads belongs to one number. */
unsigned core_generation(void);
/* This thread's Python exception, which is then none, as text of this thread's error; returns status, and in *kept (if
 * not NULL and still empty) the exception. Needs the GIL. */
stk_status core_fail_python(stk_status status, PyObject **kept);

/* --- types of elements --- */

/* "float32", "f32", "numpy.float32": false and an exception where it is none. */
bool core_dtype(PyObject *text, stk_dtype *out);
const char *core_dtype_name(stk_dtype dtype); /* "float32" */
/* A shape out of a tuple of whole numbers; None is STK_ANY. */
bool core_shape(PyObject *tuple, stk_shape *out);
PyObject *core_shape_tuple(const stk_shape *shape);

/* --- arrays --- */

/* Memory that arrays lie in, counted: a batch that is kept, or memory of its own. Threads: any, with or without GIL. */
typedef struct core_block core_block;
/* Takes kept. NULL, and an exception, where there is no memory. */
core_block *core_block_of_kept(stk_kept *kept);
core_block *core_block_new(size_t bytes, void **data);
void core_block_unref(core_block *block);

extern PyTypeObject *core_array_type;
/* An array over data, which lies in block, to which it takes a reference of its own. */
PyObject *core_array_new(core_block *block, void *data, stk_dtype dtype, const stk_shape *shape);
/* An array with memory of its own and the same content; data NULL: undefined content. */
PyObject *core_array_copy(const void *data, stk_dtype dtype, const stk_shape *shape);
void *core_array_data(PyObject *array);
/* A capsule of DLPack, "dltensor", over data in block; channels_first: [N,H,W,C] as [N,C,H,W]. */
PyObject *core_lend(core_block *block, void *data, stk_dtype dtype, const stk_shape *shape, bool channels_first);

/* Somebody's array, by buffer protocol or DLPack, row-major; borrowed memory. */
typedef struct core_import {
    stk_dtype dtype;
    stk_shape shape;
    const void *data;
    size_t n_bytes;
    PyObject *owner; /* holds the memory */
    Py_buffer buffer;
    bool has_buffer;
} core_import;
/* False: an exception, which names `what`. Ends with core_import_end. */
bool core_import_begin(PyObject *object, const char *what, core_import *out);
void core_import_end(core_import *import);

int core_add_arrays(PyObject *module);

/* --- data sets and loaders --- */

/* An exception, and how the text of the error of C begins that it became. */
typedef struct core_failure {
    PyObject *error;
    char text[80];
} core_failure;

enum { N_FAILURES = 8 };

typedef struct core_dataset {
    PyObject_HEAD stk_dataset *handle;
    PyObject *refs;                   /* list: what the handle borrows */
    struct core_callback *callbacks;  /* list; freed with it */
    PyObject *error;                  /* a filter's exception, which C does not see; NULL: none */
    core_failure failure[N_FAILURES]; /* the last ones of its other functions */
    unsigned n_failures;
} core_dataset;

extern PyTypeObject *core_dataset_type;
int core_add_datasets(PyObject *module);
int core_add_loaders(PyObject *module);
int core_add_runs(PyObject *module);
int core_add_graphs(PyObject *module);

/* Methods of a data set; dataset_show.c. */
PyObject *core_dataset_explain(PyObject *object, PyObject *none);
PyObject *core_dataset_sheet(PyObject *object, PyObject *args);

/* Functions in a data set; callback.c. They leave their exceptions in the data set. address: of machine code, which
 * `function` keeps there; 0: it is Python's. */
bool core_add_stage(core_dataset *dataset, const char *field, const char *name, PyObject *function,
                    unsigned long long address, PyObject *dtype, PyObject *shape, bool random);
stk_dataset *core_function_source(core_dataset *dataset, int64_t n_samples, PyObject *fields, PyObject *function,
                                  unsigned long long address);
stk_dataset *core_generator_source(core_dataset *dataset, int64_t n_samples, PyObject *fields, PyObject *function);
void core_filter(core_dataset *dataset, PyObject *function);
int core_callbacks_traverse(core_dataset *dataset, visitproc visit, void *arg);
void core_callbacks_free(core_dataset *dataset);
/* A new reference to the exception that this thread's error of C came of, in the data set or a part of it; NULL: none.
 */
PyObject *core_cause(core_dataset *dataset, stk_status status);
/* Whether this thread is in such a function, and so may be a worker's. */
bool core_is_inside(void);

#endif
