/* Sessions: a device, the variables, and steps that are compiled graphs. Work is done without Python's lock, one call
 * at a time for each session.
 */
#include <string.h>

#include "graph.h"

typedef struct session {
    PyObject_HEAD stk_session *handle; /* NULL: closed */
    unsigned generation;
    bool is_busy; /* a call is under way, without the GIL */
} session;

typedef struct step {
    PyObject_HEAD stk_session_step *handle; /* the session's */
    PyObject *session;
} step;

static PyTypeObject *session_type, *step_type;

static bool begin(session *self)
{
    if (!self->handle)
        core_raise_closed("session");
    else if (self->generation != core_generation())
        core_raise_forked("session");
    else if (self->is_busy)
        PyErr_SetString(PyExc_RuntimeError, "another call of this session is under way");
    else
        return self->is_busy = true;
    return false;
}

static void close_handle(session *self)
{
    stk_session *handle = self->handle;
    self->handle = NULL;
    /* A child that was forked has none of its threads. */
    if (!handle || self->generation != core_generation()) return;
    Py_BEGIN_ALLOW_THREADS stk_session_free(handle);
    Py_END_ALLOW_THREADS
}

/* An exception has told of it: the session goes on. */
static PyObject *fail_call(session *self, stk_status status)
{
    (void)core_raise(status, NULL);
    stk_session_forget(self->handle);
    return NULL;
}

static PyObject *done(session *self, stk_status status)
{
    self->is_busy = false;
    if (status != STK_OK) return fail_call(self, status);
    Py_RETURN_NONE;
}

/* --- sessions --- */

static PyObject *core_session_new(PyObject *module, PyObject *args)
{
    const char *device;
    int n_threads;
    unsigned long long seed;
    stk_session *handle;
    (void)module;
    if (!PyArg_ParseTuple(args, "siK:session", &device, &n_threads, &seed)) return NULL;
    if (n_threads < 0) return PyErr_Format(PyExc_ValueError, "%d threads", n_threads);
    session *self = core_object_new(session_type, sizeof(*self));
    if (!self) return NULL;
    self->generation = core_generation();
    PyObject_GC_Track((PyObject *)self);
    Py_BEGIN_ALLOW_THREADS handle = stk_session_new(device, n_threads, seed);
    Py_END_ALLOW_THREADS self->handle = handle;
    stk_status status = stk_session_status(handle);
    if (status == STK_OK) return (PyObject *)self;
    core_raise(status, NULL);
    Py_DECREF(self);
    return NULL;
}

static PyObject *session_compile(PyObject *object, PyObject *args)
{
    session *self = (session *)object;
    PyObject *graph;
    int training;
    if (!PyArg_ParseTuple(args, "Op:compile", &graph, &training) || !begin(self)) return NULL;
    stk_graph *taken = core_graph_take(graph);
    step *made = taken ? core_object_new(step_type, sizeof(*made)) : NULL;
    if (!made) {
        stk_graph_free(taken);
        self->is_busy = false;
        return NULL;
    }
    stk_session_step *handle;
    Py_INCREF(self);
    made->session = (PyObject *)self;
    PyObject_GC_Track((PyObject *)made);
    Py_BEGIN_ALLOW_THREADS handle = stk_session_compile(self->handle, taken, training);
    Py_END_ALLOW_THREADS self->is_busy = false;
    made->handle = handle;
    if (handle) return (PyObject *)made;
    (void)fail_call(self, stk_session_status(self->handle));
    Py_DECREF(made);
    return NULL;
}

static PyObject *session_weights(PyObject *object, PyObject *none)
{
    session *self = (session *)object;
    stk_weight_info info;
    stk_status status;
    (void)none;
    if (!begin(self)) return NULL;
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && (status = stk_session_weight(self->handle, i, &info)) != STK_NO_ROW; i++) {
        PyObject *array = status == STK_OK ? core_array_copy(NULL, info.dtype, &info.shape) : NULL;
        if (array) status = stk_session_get_weight(self->handle, info.name, core_array_data(array), info.n_bytes);
        PyObject *item = array && status == STK_OK ? Py_BuildValue("(sO)", info.name, array) : NULL;
        if (status != STK_OK) (void)fail_call(self, status);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(array);
        Py_XDECREF(item);
    }
    self->is_busy = false;
    return list;
}

static bool is_same(const core_import *import, stk_dtype dtype, const stk_shape *shape)
{
    bool is_same = import->dtype == dtype && import->shape.rank == shape->rank;
    for (int i = 0; is_same && i < shape->rank; i++)
        is_same = import->shape.dim[i] == shape->dim[i];
    return is_same;
}

/* Raises what was wanted, and what was given. */
static void refuse(const char *text, const char *name, const core_import *import, stk_dtype dtype,
                   const stk_shape *shape)
{
    PyObject *want = core_shape_tuple(shape), *got = core_shape_tuple(&import->shape);
    PyErr_Format(PyExc_ValueError, text, name, core_dtype_name(dtype), want, core_dtype_name(import->dtype), got);
    Py_XDECREF(want);
    Py_XDECREF(got);
}

/* One of another type or shape may have as many bytes. A name that is none is for the setting itself to refuse. */
static bool may_be_set(session *self, const char *name, const core_import *import)
{
    stk_weight_info info;
    for (int64_t i = 0; stk_session_weight(self->handle, i, &info) == STK_OK; i++) {
        if (strcmp(info.name, name) != 0 || is_same(import, info.dtype, &info.shape)) continue;
        refuse("weight '%s' is %s %S, and is given %s %S", name, import, info.dtype, &info.shape);
        self->is_busy = false;
        return false;
    }
    return true;
}

static PyObject *session_set_weight(PyObject *object, PyObject *args)
{
    session *self = (session *)object;
    const char *name;
    PyObject *given;
    core_import import;
    if (!PyArg_ParseTuple(args, "sO:set_weight", &name, &given) || !core_import_begin(given, name, &import))
        return NULL;
    PyObject *result = NULL;
    if (begin(self) && may_be_set(self, name, &import))
        result = done(self, stk_session_set_weight(self->handle, name, import.data, import.n_bytes));
    core_import_end(&import);
    return result;
}

static PyObject *session_save(PyObject *object, PyObject *args)
{
    session *self = (session *)object;
    const char *path;
    stk_status status;
    if (!PyArg_ParseTuple(args, "s:save", &path) || !begin(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_session_save_weights(self->handle, path);
    Py_END_ALLOW_THREADS return done(self, status);
}

static PyObject *session_load(PyObject *object, PyObject *args)
{
    session *self = (session *)object;
    const char *path, *leave;
    stk_status status;
    if (!PyArg_ParseTuple(args, "sz:load", &path, &leave) || !begin(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_session_load_weights(self->handle, path, leave);
    Py_END_ALLOW_THREADS return done(self, status);
}

static PyObject *session_close(PyObject *object, PyObject *none)
{
    session *self = (session *)object;
    (void)none;
    if (!self->handle) Py_RETURN_NONE;
    if (self->generation == core_generation() && !begin(self)) return NULL;
    close_handle(self);
    self->is_busy = false;
    Py_RETURN_NONE;
}

static int session_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static void session_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    close_handle((session *)object);
    core_object_free(object);
}

/* --- steps --- */

static session *session_of(const step *self)
{
    return (session *)self->session;
}

static PyObject *describe(const stk_session_value *v)
{
    return Py_BuildValue("(ssN)", v->name, core_dtype_name(v->dtype), core_shape_tuple(&v->shape));
}

typedef stk_status value_fn(const stk_session_step *step, int i, stk_session_value *out);

static PyObject *list_values(step *self, value_fn *at)
{
    if (!begin(session_of(self))) return NULL;
    PyObject *list = PyList_New(0);
    stk_session_value v;
    for (int i = 0; list && at(self->handle, i, &v) == STK_OK; i++) {
        PyObject *item = describe(&v);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    session_of(self)->is_busy = false;
    return list;
}

static PyObject *step_inputs(PyObject *object, PyObject *none)
{
    (void)none;
    return list_values((step *)object, stk_session_step_input);
}

static PyObject *step_outputs(PyObject *object, PyObject *none)
{
    (void)none;
    return list_values((step *)object, stk_session_step_output);
}

static bool fits(const core_import *import, const stk_session_value *v)
{
    if (is_same(import, v->dtype, &v->shape)) return true;
    refuse("input '%s': the step was compiled for %s %S, and is given %s %S", v->name, import, v->dtype, &v->shape);
    return false;
}

/* As a new array, or a number where it has no axes. */
static PyObject *copy_output(const step *self, long i)
{
    stk_session_value v;
    if (PyErr_Occurred()) return NULL;
    stk_status status = stk_session_step_output(self->handle, i < 0 || i > INT32_MAX ? -1 : (int)i, &v);
    if (status != STK_OK) return core_raise(status, NULL);
    const void *data = stk_session_output(self->handle, v.name);
    if (!data) return PyErr_Format(PyExc_RuntimeError, "the step left no output '%s'", v.name);
    if (v.shape.rank == 0 && v.dtype == STK_F32) return PyFloat_FromDouble((double)*(const float *)data);
    if (v.shape.rank == 0 && v.dtype == STK_F64) return PyFloat_FromDouble(*(const double *)data);
    if (v.shape.rank == 0 && v.dtype == STK_I32) return PyLong_FromLong(*(const int32_t *)data);
    if (v.shape.rank == 0 && v.dtype == STK_I64) return PyLong_FromLongLong(*(const int64_t *)data);
    if (v.shape.rank == 0 && v.dtype == STK_BOOL) return PyBool_FromLong(*(const unsigned char *)data);
    return core_array_copy(data, v.dtype, &v.shape);
}

/* Runs on the arrays; the session is busy. False: an exception. */
static bool run(step *self, core_import *import, int n)
{
    stk_session_value v;
    stk_status status = STK_OK;
    bool is_well = true;
    for (int i = 0; i < n && is_well; i++) {
        status = stk_session_step_input(self->handle, i, &v);
        is_well = status == STK_OK && fits(&import[i], &v);
        if (is_well) stk_session_input(self->handle, v.name, import[i].data);
    }
    if (is_well) {
        Py_BEGIN_ALLOW_THREADS status = stk_session_run(self->handle);
        Py_END_ALLOW_THREADS
    }
    if (status != STK_OK) (void)fail_call(session_of(self), status);
    /* The arrays are the caller's again. */
    for (int i = 0; i < n && stk_session_step_input(self->handle, i, &v) == STK_OK; i++)
        stk_session_input(self->handle, v.name, NULL);
    return is_well && status == STK_OK;
}

static PyObject *step_run(PyObject *object, PyObject *args)
{
    enum { MOST = 256 };
    step *self = (step *)object;
    PyObject *given, *numbers, *list = NULL;
    if (!PyArg_ParseTuple(args, "O!O!:run", &PyList_Type, &given, &PyList_Type, &numbers)) return NULL;
    Py_ssize_t n = PyList_Size(given), n_open = 0;
    if (n > MOST) return PyErr_Format(PyExc_ValueError, "%zd arrays, and %d are the most", n, MOST);
    core_import *import = calloc((size_t)n + 1, sizeof(*import));
    if (!import) return PyErr_NoMemory();
    if (begin(session_of(self))) {
        stk_session_value v = {.name = "input"};
        while (n_open < n) {
            (void)stk_session_step_input(self->handle, (int)n_open, &v);
            if (!core_import_begin(PyList_GetItem(given, n_open), v.name, &import[n_open])) break;
            n_open++;
        }
        if (n_open == n && run(self, import, (int)n)) list = PyList_New(0);
        for (Py_ssize_t i = 0; list && i < PyList_Size(numbers); i++) {
            PyObject *array = copy_output(self, PyLong_AsLong(PyList_GetItem(numbers, i)));
            if (!array || PyList_Append(list, array) < 0) Py_CLEAR(list);
            Py_XDECREF(array);
        }
        session_of(self)->is_busy = false;
    }
    for (Py_ssize_t i = 0; i < n_open; i++)
        core_import_end(&import[i]);
    free(import);
    return list;
}

static PyObject *step_rate(PyObject *object, PyObject *args)
{
    step *self = (step *)object;
    double rate;
    if (!PyArg_ParseTuple(args, "d:rate", &rate) || !begin(session_of(self))) return NULL;
    stk_session_rate(self->handle, rate);
    return done(session_of(self), STK_OK);
}

static int step_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((step *)object)->session);
    return 0;
}

static void step_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((step *)object)->session);
    core_object_free(object);
}

/* --- the module --- */

static PyMethodDef session_methods[] = {
    {"compile", session_compile, METH_VARARGS, "compile(graph, training): a step; takes the graph"},
    {"weights", session_weights, METH_NOARGS, "weights(): [(name, array), ...]"},
    {"set_weight", session_set_weight, METH_VARARGS, "set_weight(name, array)"},
    {"save", session_save, METH_VARARGS, "save(path)"},
    {"load", session_load, METH_VARARGS, "load(path, leave)"},
    {"close", session_close, METH_NOARGS, "close()"},
    {NULL, NULL, 0, NULL}};
static PyMethodDef step_methods[] = {
    {"inputs", step_inputs, METH_NOARGS, "inputs(): [(name, dtype, shape), ...]"},
    {"outputs", step_outputs, METH_NOARGS, "outputs(): [(name, dtype, shape), ...]"},
    {"run", step_run, METH_VARARGS, "run(arrays, numbers): the outputs of these numbers"},
    {"rate", step_rate, METH_VARARGS, "rate(lr)"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot session_slots[] = {{Py_tp_doc, "A device, the variables, and compiled steps."},
                                      {Py_tp_new, core_refuse_new},
                                      {Py_tp_dealloc, session_dealloc},
                                      {Py_tp_traverse, session_traverse},
                                      {Py_tp_methods, session_methods},
                                      {0, NULL}};
static PyType_Slot step_slots[] = {{Py_tp_doc, "A compiled graph."}, {Py_tp_new, core_refuse_new},
                                   {Py_tp_dealloc, step_dealloc},    {Py_tp_traverse, step_traverse},
                                   {Py_tp_methods, step_methods},    {0, NULL}};
static PyType_Spec session_spec = {"stoker._core.Session", sizeof(session), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                   session_slots};
static PyType_Spec step_spec = {"stoker._core.Step", sizeof(step), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                step_slots};

static PyMethodDef functions[] = {
    {"session", core_session_new, METH_VARARGS, "session(device, n_threads, seed)\n--\n\nA session."},
    {NULL, NULL, 0, NULL}};

int core_add_sessions(PyObject *module)
{
    session_type = core_add_type(module, "Session", &session_spec);
    step_type = session_type ? core_add_type(module, "Step", &step_spec) : NULL;
    return step_type ? PyModule_AddFunctions(module, functions) : -1;
}
