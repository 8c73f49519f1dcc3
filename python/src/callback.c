/* Functions as stages, sources and filters. Those of Python are called by one worker at a time, since Python's lock has
 * to be held; what they are given is theirs to keep. A function's last exceptions stay in its data set, for whoever
 * sees an error. Those of machine code, which stoker.native has the address of, workers call side by side, without the
 * lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Of machine code: 0, or a number that tells what is wrong with the record. */
typedef int32_t (*native_stage)(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape,
                                uint64_t seed);
typedef int32_t (*native_sample)(int64_t i_sample, void *const *out);

typedef struct core_callback {
    struct core_callback *next;
    core_dataset *dataset; /* borrowed: it owns this */
    PyObject *function;
    uintptr_t address; /* of machine code, which `function` keeps there; 0: it is Python's */
    bool random;
    char stage[64];            /* its name */
    bool has_dtype, has_shape; /* of what a stage gives */
    stk_dtype dtype;
    stk_shape shape;
    int n_fields; /* of a source */
    stk_array_field *field;
    char (*name)[64];
    PyObject *iterator; /* of a generator's epoch */
} core_callback;

static _Thread_local int n_inside; /* functions of Python that this thread is in */

static PyGILState_STATE enter(void)
{
    n_inside++;
    return PyGILState_Ensure();
}

static void leave(PyGILState_STATE gil)
{
    PyGILState_Release(gil);
    n_inside--;
}

bool core_is_inside(void)
{
    return n_inside > 0;
}

static core_callback *add_callback(core_dataset *dataset, PyObject *function, unsigned long long address)
{
    core_callback *callback = calloc(1, sizeof(*callback));
    if (!callback) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(function);
    callback->function = function;
    callback->address = (uintptr_t)address;
    callback->dataset = dataset;
    callback->next = dataset->callbacks;
    dataset->callbacks = callback;
    return callback;
}

int core_callbacks_traverse(core_dataset *dataset, visitproc visit, void *arg)
{
    for (const core_callback *c = dataset->callbacks; c; c = c->next) {
        Py_VISIT(c->function);
        Py_VISIT(c->iterator);
    }
    for (int i = 0; i < N_FAILURES; i++)
        Py_VISIT(dataset->failure[i].error);
    return 0;
}

void core_callbacks_free(core_dataset *dataset)
{
    for (core_callback *c = dataset->callbacks, *next; c; c = next) {
        next = c->next;
        Py_XDECREF(c->iterator);
        Py_DECREF(c->function);
        free(c->field);
        free(c->name);
        free(c);
    }
    dataset->callbacks = NULL;
    for (int i = 0; i < N_FAILURES; i++)
        Py_CLEAR(dataset->failure[i].error);
}

PyObject *core_cause(core_dataset *dataset, stk_status status)
{
    if (status != STK_CORRUPT && status != STK_INVALID && status != STK_MISMATCH) return NULL;
    for (unsigned i = 1; i <= N_FAILURES; i++) {
        const core_failure *failure = &dataset->failure[(dataset->n_failures - i) % N_FAILURES];
        if (failure->error && strstr(stk_error_text(), failure->text)) {
            Py_INCREF(failure->error);
            return failure->error;
        }
    }
    PyObject *cause = NULL;
    for (Py_ssize_t i = 0; !cause && i < PyList_Size(dataset->refs); i++) {
        PyObject *part = PyList_GetItem(dataset->refs, i);
        if (Py_TYPE(part) == core_dataset_type) cause = core_cause((core_dataset *)part, status);
    }
    return cause;
}

static stk_status fail(core_callback *callback)
{
    core_dataset *dataset = callback->dataset;
    PyObject *error = NULL;
    (void)core_fail_python(STK_CORRUPT, &error);
    core_failure *failure = &dataset->failure[dataset->n_failures++ % N_FAILURES];
    PyObject *older = failure->error;
    failure->error = error;
    snprintf(failure->text, sizeof(failure->text), "%s", stk_error_text());
    Py_XDECREF(older);
    return STK_CORRUPT;
}

/* Copies what a function gave to its place, where it is what was announced. */
static stk_status put(core_callback *callback, PyObject *object, const char *what, stk_dtype dtype,
                      const stk_shape *shape, void *dst)
{
    core_import import;
    if (!core_import_begin(object, what, &import)) return fail(callback);
    bool fits = import.dtype == dtype && import.shape.rank == shape->rank;
    for (int i = 0; fits && i < shape->rank; i++)
        fits = import.shape.dim[i] == shape->dim[i];
    if (fits) {
        memcpy(dst, import.data, import.n_bytes);
        core_import_end(&import);
        return STK_OK;
    }
    PyObject *got = core_shape_tuple(&import.shape), *want = core_shape_tuple(shape);
    if (got && want)
        PyErr_Format(PyExc_ValueError, "%s gave %s %S, and %s %S was announced%s", what, core_dtype_name(import.dtype),
                     got, core_dtype_name(dtype), want,
                     callback->stage[0] && !callback->has_dtype && !callback->has_shape
                         ? ": what comes in, where 'output=(dtype, shape)' says nothing else"
                         : "");
    Py_XDECREF(got);
    Py_XDECREF(want);
    core_import_end(&import);
    (void)fail(callback);
    return STK_MISMATCH; /* of no record, but of all */
}

/* --- stages --- */

static stk_status find_shape(void *user, const stk_map_array *src, stk_dtype *dtype, stk_shape *shape)
{
    const core_callback *callback = user;
    (void)src;
    if (callback->has_dtype) *dtype = callback->dtype;
    if (callback->has_shape) *shape = callback->shape;
    return STK_OK;
}

static uint64_t draw_seed(stk_rng *rng)
{
    uint64_t high = stk_rng_u32(rng);
    return high << 32 | stk_rng_u32(rng);
}

static stk_status run_stage(void *user, const stk_map_call *call)
{
    core_callback *callback = user;
    PyGILState_STATE gil = enter();
    stk_status status;
    PyObject *result = NULL, *in = core_array_copy(call->src.data, call->src.dtype, &call->src.shape);
    if (in && callback->random) {
        unsigned long long seed = draw_seed(call->rng);
        result = PyObject_CallFunction(callback->function, "OK", in, seed);
    } else if (in) {
        result = PyObject_CallFunctionObjArgs(callback->function, in, NULL);
    }
    status =
        result ? put(callback, result, "the stage", call->dst.dtype, &call->dst.shape, call->dst.data) : fail(callback);
    Py_XDECREF(in);
    Py_XDECREF(result);
    leave(gil);
    return status;
}

static stk_status run_native(void *user, const stk_map_call *call)
{
    const core_callback *callback = user;
    native_stage stage = (native_stage)callback->address;
    uint64_t seed = callback->random ? draw_seed(call->rng) : 0;
    int32_t failed = stage(call->src.data, call->dst.data, call->src.shape.dim, call->dst.shape.dim, seed);
    return failed ? stk_fail(STK_CORRUPT, "stage '%s' returned %d", callback->stage, (int)failed) : STK_OK;
}

bool core_add_stage(core_dataset *dataset, const char *field, const char *name, PyObject *function,
                    unsigned long long address, PyObject *dtype, PyObject *shape, bool random)
{
    core_callback *callback = add_callback(dataset, function, address);
    if (!callback) return false;
    snprintf(callback->stage, sizeof(callback->stage), "%s", name);
    callback->random = random;
    callback->has_dtype = dtype != Py_None;
    callback->has_shape = shape != Py_None;
    if (callback->has_dtype && !core_dtype(dtype, &callback->dtype)) return false;
    if (callback->has_shape && !core_shape(shape, &callback->shape)) return false;
    stk_map_config config = {.name = name, .shape = find_shape, .user = callback, .random = random};
    config.run = address ? run_native : run_stage;
    stk_dataset *handle = dataset->handle;
    Py_BEGIN_ALLOW_THREADS stk_dataset_apply_to(handle, field, stk_map(&config));
    Py_END_ALLOW_THREADS return true;
}

/* --- sources --- */

/* fields: [(name, dtype, shape), ...] */
static bool read_fields(core_callback *callback, PyObject *fields)
{
    Py_ssize_t n = PyList_Check(fields) ? PyList_Size(fields) : -1;
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "fields are a list of (name, dtype, shape)");
        return false;
    }
    callback->field = calloc((size_t)n, sizeof(*callback->field));
    callback->name = calloc((size_t)n, sizeof(*callback->name));
    if (!callback->field || !callback->name) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *name;
        Py_ssize_t n_name;
        PyObject *dtype, *shape;
        stk_array_field *field = &callback->field[i];
        if (!PyArg_ParseTuple(PyList_GetItem(fields, i), "s#OO", &name, &n_name, &dtype, &shape)) return false;
        if (n_name >= (Py_ssize_t)sizeof(*callback->name)) {
            PyErr_Format(PyExc_ValueError, "the name of field %zd is too long", i);
            return false;
        }
        memcpy(callback->name[i], name, (size_t)n_name + 1);
        field->name = callback->name[i];
        if (!core_dtype(dtype, &field->dtype) || !core_shape(shape, &field->sample)) return false;
    }
    callback->n_fields = (int)n;
    return true;
}

/* A sample: a dict by field, a sequence in their order, or what one field has. */
static PyObject *part_of(const core_callback *callback, PyObject *sample, int i)
{
    if (PyDict_Check(sample)) {
        PyObject *part = PyDict_GetItemString(sample, callback->field[i].name);
        if (!part) PyErr_Format(PyExc_KeyError, "a sample without '%s'", callback->field[i].name);
        Py_XINCREF(part);
        return part;
    }
    bool is_sequence = PyTuple_Check(sample) || PyList_Check(sample);
    if (is_sequence && PySequence_Size(sample) == callback->n_fields) return PySequence_GetItem(sample, i);
    if (!is_sequence && callback->n_fields == 1) {
        Py_INCREF(sample);
        return sample;
    }
    PyErr_Format(PyExc_TypeError, "a sample is a dict, or a tuple of %d", callback->n_fields);
    return NULL;
}

/* Numbers of Python are taken for arrays without sides. */
static bool put_number(const stk_array_field *field, PyObject *number, void *out)
{
    long long whole = 0;
    double real = 0;
    bool is_float = field->dtype == STK_F32 || field->dtype == STK_F64;
    if (is_float)
        real = PyFloat_AsDouble(number);
    else
        whole = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return false;
    long long least = field->dtype == STK_I32 ? INT32_MIN : field->dtype == STK_I8 ? INT8_MIN : 0;
    long long most = field->dtype == STK_I32  ? INT32_MAX
                     : field->dtype == STK_I8 ? INT8_MAX
                     : field->dtype == STK_U8 ? UINT8_MAX
                                              : 1;
    if (!is_float && field->dtype != STK_I64 && (whole < least || whole > most)) {
        PyErr_Format(PyExc_OverflowError, "'%s' is %lld, which is no %s", field->name, whole,
                     core_dtype_name(field->dtype));
        return false;
    }
    switch (field->dtype) {
    case STK_F32: *(float *)out = (float)real; return true;
    case STK_F64: *(double *)out = real; return true;
    case STK_I64: *(int64_t *)out = whole; return true;
    case STK_I32: *(int32_t *)out = (int32_t)whole; return true;
    case STK_I8: *(int8_t *)out = (int8_t)whole; return true;
    case STK_U8:
    case STK_BOOL: *(uint8_t *)out = (uint8_t)whole; return true;
    default: PyErr_Format(PyExc_TypeError, "'%s': an array is wanted", field->name); return false;
    }
}

static stk_status put_sample(core_callback *callback, PyObject *sample, void *const *out)
{
    for (int i = 0; i < callback->n_fields; i++) {
        const stk_array_field *field = &callback->field[i];
        stk_status status = STK_OK;
        PyObject *part = part_of(callback, sample, i);
        if (!part) return fail(callback);
        bool is_number = field->sample.rank == 0 && (PyLong_Check(part) || PyFloat_Check(part));
        if (!is_number)
            status = put(callback, part, field->name, field->dtype, &field->sample, out[i]);
        else if (!put_number(field, part, out[i]))
            status = fail(callback);
        Py_DECREF(part);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    core_callback *callback = user;
    PyGILState_STATE gil = enter();
    PyObject *sample = PyObject_CallFunction(callback->function, "L", (long long)i_sample);
    stk_status status = sample ? put_sample(callback, sample, out) : fail(callback);
    Py_XDECREF(sample);
    leave(gil);
    return status;
}

static stk_status make_natively(void *user, int64_t i_sample, void *const *out)
{
    const core_callback *callback = user;
    int32_t failed = ((native_sample)callback->address)(i_sample, out);
    return failed ? stk_fail(STK_CORRUPT, "the function returned %d", (int)failed) : STK_OK;
}

stk_dataset *core_function_source(core_dataset *dataset, int64_t n_samples, PyObject *fields, PyObject *function,
                                  unsigned long long address)
{
    core_callback *callback = add_callback(dataset, function, address);
    if (!callback || !read_fields(callback, fields)) return NULL;
    stk_sample_fn make = address ? make_natively : make_sample;
    return stk_dataset_function(n_samples, callback->field, callback->n_fields, make, callback);
}

static stk_status begin_epoch(void *user, int64_t i_epoch)
{
    core_callback *callback = user;
    stk_status status = STK_OK;
    PyGILState_STATE gil = enter();
    Py_CLEAR(callback->iterator);
    PyObject *iterable = PyObject_CallFunction(callback->function, "L", (long long)i_epoch);
    callback->iterator = iterable ? PyObject_GetIter(iterable) : NULL;
    if (!callback->iterator) {
        (void)fail(callback);
        status = STK_INVALID;
    }
    Py_XDECREF(iterable);
    leave(gil);
    return status;
}

static stk_status next_sample(void *user, void *const *out, bool *ended)
{
    core_callback *callback = user;
    stk_status status = STK_OK;
    PyGILState_STATE gil = enter();
    PyObject *sample = PyIter_Next(callback->iterator);
    if (sample)
        status = put_sample(callback, sample, out);
    else if (PyErr_Occurred()) {
        (void)fail(callback);
        status = STK_INVALID; /* an iterator that has failed gives no more */
    } else
        *ended = true;
    Py_XDECREF(sample);
    leave(gil);
    return status;
}

stk_dataset *core_generator_source(core_dataset *dataset, int64_t n_samples, PyObject *fields, PyObject *function)
{
    core_callback *callback = add_callback(dataset, function, 0);
    if (!callback || !read_fields(callback, fields)) return NULL;
    stk_sample_generator generator = {
        .n_samples = n_samples, .begin = begin_epoch, .next = next_sample, .user = callback};
    return stk_dataset_generator(callback->field, callback->n_fields, &generator);
}

/* --- filters --- */

static bool keeps(void *user, const stk_record_field *fields, int n_fields)
{
    core_callback *callback = user;
    int is_kept = 0;
    PyGILState_STATE gil = enter();
    PyObject *sample = callback->dataset->error ? NULL : PyDict_New();
    for (int i = 0; sample && i < n_fields; i++) {
        stk_shape bytes = STK_SHAPE((int64_t)fields[i].n_bytes);
        const stk_shape *shape = fields[i].encoded ? &bytes : &fields[i].shape;
        PyObject *array = core_array_copy(fields[i].data, fields[i].encoded ? STK_U8 : fields[i].dtype, shape);
        if (!array || PyDict_SetItemString(sample, fields[i].name, array) < 0) Py_CLEAR(sample);
        Py_XDECREF(array);
    }
    PyObject *answer = sample ? PyObject_CallFunctionObjArgs(callback->function, sample, NULL) : NULL;
    if (answer) is_kept = PyObject_IsTrue(answer);
    if (PyErr_Occurred()) (void)core_fail_python(STK_CORRUPT, &callback->dataset->error);
    Py_XDECREF(answer);
    Py_XDECREF(sample);
    leave(gil);
    return is_kept > 0;
}

void core_filter(core_dataset *dataset, PyObject *function)
{
    core_callback *callback = add_callback(dataset, function, 0);
    if (!callback) return;
    stk_dataset *handle = dataset->handle;
    Py_BEGIN_ALLOW_THREADS stk_dataset_filter(handle, keeps, callback);
    Py_END_ALLOW_THREADS
}
