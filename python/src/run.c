/* Runs: training, evaluation and prediction of recipes, weights in and out. What happens is told to a function of
 * Python, on the thread that trains; there signals are looked for, so that Ctrl-C stops the run after its step, saved.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum { MOST_SETS = 256, MOST_TOP = 1024 };

typedef struct run {
    PyObject_HEAD stk_run *handle; /* NULL: closed */
    PyObject *on_event;            /* NULL: none */
    PyObject *error;               /* of on_event, or KeyboardInterrupt */
    bool is_busy;                  /* a call is under way, without the GIL */
} run;

static PyTypeObject *run_type;

/* --- numbers as dicts --- */

static PyObject *number(double value)
{
    if (isnan(value)) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

static PyObject *metrics_dict(const stk_metrics *m)
{
    if (m->n_samples == 0) Py_RETURN_NONE;
    PyObject *dict = Py_BuildValue("{s:N,s:L}", "loss", number(m->loss), "samples", (long long)m->n_samples);
    struct {
        const char *name;
        double value;
        bool is_there;
    } more[] = {{"accuracy", m->accuracy, m->accuracy >= 0},
                {"top5", m->top5, m->top5 >= 0},
                {"perplexity", m->perplexity, m->perplexity > 0}};
    for (int i = 0; dict && i < 3; i++) {
        PyObject *value = more[i].is_there ? PyFloat_FromDouble(more[i].value) : NULL;
        if (value && PyDict_SetItemString(dict, more[i].name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    for (int i = 0; dict && i < m->n_values; i++) {
        PyObject *value = PyFloat_FromDouble(m->value[i].value);
        if (!value || PyDict_SetItemString(dict, m->value[i].name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *text_or_none(const char *text)
{
    if (!text) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(text);
}

static const char *const kind_names[] = {"plan",  "built",  "step",   "eval",    "epoch",
                                         "saved", "traced", "served", "warning", "end"};

static PyObject *event_dict(const stk_train_event *e)
{
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:N,s:d,s:N,s:N,s:d,s:d,s:d,s:d,s:d,s:N,s:L,s:n}", "kind",
                         kind_names[e->kind], "step", (long long)e->step, "n_steps", (long long)e->n_steps, "epoch",
                         (long long)e->epoch, "n_epochs", (long long)e->n_epochs, "i_batch", (long long)e->i_batch,
                         "n_batches", (long long)e->n_batches, "loss", number(e->loss), "lr", e->lr, "train",
                         metrics_dict(&e->train), "valid", metrics_dict(&e->valid), "step_s", e->step_s, "wait_s",
                         e->wait_s, "samples_per_s", e->samples_per_s, "input_wait_share", e->input_wait_share,
                         "left_s", e->left_s, "text", text_or_none(e->text), "n_parameters", (long long)e->n_parameters,
                         "peak_planned_bytes", (Py_ssize_t)e->peak_planned_bytes);
}

/* --- events --- */

static void tell(run *self, const stk_train_event *event)
{
    PyObject *dict = self->on_event && !self->error ? event_dict(event) : NULL;
    PyObject *result = dict ? PyObject_CallFunctionObjArgs(self->on_event, dict, NULL) : NULL;
    Py_XDECREF(dict);
    Py_XDECREF(result);
    if (!PyErr_Occurred()) (void)PyErr_CheckSignals();
    if (!PyErr_Occurred()) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    if (!self->error) {
        self->error = value;
        value = NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (self->handle) stk_run_stop(self->handle);
}

static void on_event(void *user, const stk_train_event *event)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    tell(user, event);
    PyGILState_Release(gil);
}

/* Raises what a function raised meanwhile, or the status. True: there was none. */
static bool settle(run *self, stk_status status)
{
    PyObject *error = self->error;
    self->error = NULL;
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
        return false;
    }
    if (status != STK_OK) core_raise(status, NULL);
    return status == STK_OK;
}

/* --- opening --- */

PyDoc_STRVAR(open_doc,
             "run_open(path, sets, out, resume, max_steps, on_event, is_folder, checkpoint, without_data)\n--\n\n"
             "A recipe's run, or with is_folder that of a run's folder.");
static PyObject *core_run_open(PyObject *module, PyObject *args)
{
    const char *path, *set[MOST_SETS], *out, *checkpoint;
    PyObject *sets, *function;
    int resume, is_folder, without_data;
    long long max_steps;
    stk_run_options options = {.set = set};
    stk_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!zpLOpzp:run_open", &path, &PyList_Type, &sets, &out, &resume, &max_steps, &function,
                          &is_folder, &checkpoint, &without_data))
        return NULL;
    if (!core_read_texts(sets, set, &options.n_set, MOST_SETS)) return NULL;
    run *self = core_object_new(run_type, sizeof(*self));
    if (!self) return NULL;
    if (function != Py_None) {
        Py_INCREF(function);
        self->on_event = function;
    }
    options.out = out;
    options.resume = resume;
    options.max_steps = max_steps;
    options.checkpoint = checkpoint;
    options.without_data = without_data;
    options.on_event = on_event;
    options.user = self;
    stk_run *handle = NULL;
    Py_BEGIN_ALLOW_THREADS status =
        is_folder ? stk_run_load(path, &options, &handle) : stk_run_open(path, &options, &handle);
    Py_END_ALLOW_THREADS self->handle = handle;
    PyObject_GC_Track((PyObject *)self);
    if (settle(self, status)) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static bool begin(run *self)
{
    if (!self->handle) {
        core_raise_closed("run");
        return false;
    }
    if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "another call of this run is under way");
        return false;
    }
    self->is_busy = true;
    return true;
}

static PyObject *run_close(PyObject *object, PyObject *none)
{
    run *self = (run *)object;
    (void)none;
    if (!self->handle) Py_RETURN_NONE;
    if (!begin(self)) return NULL;
    stk_run *handle = self->handle;
    self->handle = NULL;
    Py_BEGIN_ALLOW_THREADS stk_run_close(handle);
    Py_END_ALLOW_THREADS self->is_busy = false;
    Py_RETURN_NONE;
}

static int run_traverse(PyObject *object, visitproc visit, void *arg)
{
    run *self = (run *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->on_event);
    Py_VISIT(self->error);
    return 0;
}

static void run_dealloc(PyObject *object)
{
    run *self = (run *)object;
    stk_run *handle = self->handle;
    PyObject_GC_UnTrack(object);
    Py_BEGIN_ALLOW_THREADS stk_run_close(handle);
    Py_END_ALLOW_THREADS Py_XDECREF(self->on_event);
    Py_XDECREF(self->error);
    core_object_free(self);
}

/* --- training and evaluation --- */

static PyObject *result_dict(const stk_run_result *r)
{
    const stk_train_result *t = &r->train;
    PyObject *expected = PyList_New(0);
    for (int i = 0; expected && i < r->n_expected; i++) {
        const stk_expected *e = &r->expected[i];
        PyObject *item = Py_BuildValue("{s:s,s:d,s:O}", "text", e->text, "value", e->value, "is_met",
                                       e->is_met ? Py_True : Py_False);
        if (!item || PyList_Append(expected, item) < 0) Py_CLEAR(expected);
        Py_XDECREF(item);
    }
    return Py_BuildValue(
        "{s:L,s:L,s:N,s:N,s:N,s:d,s:d,s:d,s:d,s:n,s:n,s:s,s:L,s:O,s:O,s:N,s:{s:d,s:d,s:d,s:d,s:d,s:d}}", "steps",
        (long long)t->n_steps, "epochs", (long long)t->n_epochs, "train", metrics_dict(&t->train), "valid",
        metrics_dict(&t->valid), "test", metrics_dict(&r->test), "wall_s", t->wall_s, "step_ms_median",
        t->step_ms_median, "samples_per_s", t->samples_per_s, "input_wait_share", t->input_wait_share,
        "peak_planned_bytes", (Py_ssize_t)t->peak_planned_bytes, "peak_rss_bytes", (Py_ssize_t)t->peak_rss_bytes,
        "precision", t->precision ? t->precision : "", "n_skipped", (long long)t->n_skipped, "is_finished",
        r->is_finished ? Py_True : Py_False, "early_stopped", t->early_stopped ? Py_True : Py_False, "expected",
        expected, "time", "input", t->time.input, "host", t->time.host, "launch", t->time.launch, "communication",
        t->time.communication, "compute", t->time.compute, "idle", t->time.idle);
}

static PyObject *run_train(PyObject *object, PyObject *none)
{
    run *self = (run *)object;
    stk_run_result result;
    stk_status status;
    (void)none;
    if (!begin(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_run_train(self->handle, &result);
    Py_END_ALLOW_THREADS self->is_busy = false;
    return settle(self, status) ? result_dict(&result) : NULL;
}

static PyObject *run_evaluate(PyObject *object, PyObject *args)
{
    run *self = (run *)object;
    const char *part;
    stk_metrics metrics;
    stk_status status;
    if (!PyArg_ParseTuple(args, "s:evaluate", &part) || !begin(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_run_evaluate(self->handle, part, &metrics);
    Py_END_ALLOW_THREADS self->is_busy = false;
    return settle(self, status) ? metrics_dict(&metrics) : NULL;
}

static PyObject *run_stop(PyObject *object, PyObject *none)
{
    run *self = (run *)object;
    (void)none;
    if (self->handle) stk_run_stop(self->handle);
    Py_RETURN_NONE;
}

/* --- prediction --- */

static PyObject *run_predict_file(PyObject *object, PyObject *args)
{
    run *self = (run *)object;
    const char *file;
    int n_top, n = 0;
    stk_status status;
    if (!PyArg_ParseTuple(args, "si:predict_file", &file, &n_top)) return NULL;
    if (n_top < 1 || n_top > MOST_TOP) {
        PyErr_Format(PyExc_ValueError, "the likeliest %d, not 1 to %d", n_top, MOST_TOP);
        return NULL;
    }
    stk_prediction *room = calloc((size_t)n_top, sizeof(*room));
    if (!room) return PyErr_NoMemory();
    if (!begin(self)) {
        free(room);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status = stk_run_predict(self->handle, file, room, n_top, &n);
    Py_END_ALLOW_THREADS self->is_busy = false;
    PyObject *list = settle(self, status) ? PyList_New(0) : NULL;
    for (int i = 0; list && i < n; i++) {
        PyObject *name = room[i].class_name ? PyUnicode_DecodeFSDefault(room[i].class_name)
                                            : PyLong_FromLongLong(room[i].class_number);
        PyObject *item = name ? Py_BuildValue("(Nd)", name, room[i].probability) : NULL;
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    free(room);
    return list;
}

/* Samples [N, ...] or one [...] as the network takes them -> outputs [N, n] or [n]. */
static PyObject *run_predict_array(PyObject *object, PyObject *args)
{
    run *self = (run *)object;
    PyObject *given, *result = NULL;
    core_import import;
    stk_dtype dtype;
    stk_shape want;
    int64_t n_out = 0;
    if (!PyArg_ParseTuple(args, "O:predict_array", &given)) return NULL;
    if (!core_import_begin(given, "samples", &import)) return NULL;
    if (!begin(self)) goto done;
    stk_status status = stk_run_input(self->handle, &dtype, &want, &n_out);
    int n_more = import.shape.rank - want.rank;
    bool fits = status == STK_OK && (n_more == 0 || n_more == 1) && import.dtype == dtype;
    for (int i = 0; fits && i < want.rank; i++)
        fits = import.shape.dim[i + n_more] == want.dim[i];
    if (status == STK_OK && !fits) {
        PyObject *shape = core_shape_tuple(&want), *got = core_shape_tuple(&import.shape);
        PyErr_Format(PyExc_ValueError, "the network takes %s %S a sample, or a batch of them, not %s %S",
                     core_dtype_name(dtype), shape, core_dtype_name(import.dtype), got);
        Py_XDECREF(shape);
        Py_XDECREF(got);
        self->is_busy = false;
        goto done;
    }
    int64_t n = n_more ? import.shape.dim[0] : 1;
    size_t bytes = n > 0 ? import.n_bytes / (size_t)n : 0;
    stk_shape shape = n_more ? STK_SHAPE(n, n_out) : STK_SHAPE(n_out);
    if (status == STK_OK) result = core_array_copy(NULL, STK_F32, &shape);
    float *out = result ? core_array_data(result) : NULL;
    Py_BEGIN_ALLOW_THREADS for (int64_t i = 0; i < n && out && status == STK_OK; i++) status =
        stk_run_predict_sample(self->handle, (const char *)import.data + (size_t)i * bytes, out + i * n_out, n_out);
    Py_END_ALLOW_THREADS self->is_busy = false;
    if (!PyErr_Occurred() && !settle(self, status)) Py_CLEAR(result);
done:
    core_import_end(&import);
    return result;
}

static PyObject *get_saved(PyObject *object, void *none)
{
    run *self = (run *)object;
    (void)none;
    return text_or_none(self->handle && !self->is_busy ? stk_run_saved(self->handle) : NULL);
}

static PyObject *get_step(PyObject *object, void *none)
{
    run *self = (run *)object;
    (void)none;
    return PyLong_FromLongLong(self->handle && !self->is_busy ? stk_run_step(self->handle) : 0);
}

static PyMethodDef run_methods[] = {{"train", run_train, METH_NOARGS, NULL},
                                    {"evaluate", run_evaluate, METH_VARARGS, NULL},
                                    {"stop", run_stop, METH_NOARGS, NULL},
                                    {"close", run_close, METH_NOARGS, NULL},
                                    {"predict_file", run_predict_file, METH_VARARGS, NULL},
                                    {"predict_array", run_predict_array, METH_VARARGS, NULL},
                                    {NULL, NULL, 0, NULL}};

static PyGetSetDef run_getset[] = {
    {"saved", get_saved, NULL, NULL, NULL}, {"step", get_step, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot run_slots[] = {{Py_tp_dealloc, run_dealloc}, {Py_tp_traverse, run_traverse},
                                  {Py_tp_new, core_refuse_new}, {Py_tp_methods, run_methods},
                                  {Py_tp_getset, run_getset},   {0, NULL}};
static PyType_Spec run_spec = {"stoker._core.Run", sizeof(run), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, run_slots};

/* --- weights and reports --- */

static PyObject *read_tensors(stk_safetensors_file *file)
{
    PyObject *dict = PyDict_New();
    for (int64_t i = 0; dict && i < stk_safetensors_count(file); i++) {
        stk_safetensor tensor = stk_safetensors_at(file, i);
        stk_dtype dtype = tensor.dtype == STK_N_DTYPES ? STK_F32 : tensor.dtype;
        PyObject *array = core_array_copy(NULL, dtype, &tensor.shape);
        stk_status status = STK_OK;
        if (array) {
            void *dst = core_array_data(array);
            Py_BEGIN_ALLOW_THREADS status = stk_safetensors_read(&tensor, dtype, NULL, dst);
            Py_END_ALLOW_THREADS
        }
        if (status != STK_OK) core_raise(status, NULL);
        if (!array || status != STK_OK || PyDict_SetItemString(dict, tensor.name, array) < 0) Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    return dict;
}

static PyObject *core_load_tensors(PyObject *module, PyObject *args)
{
    const char *path;
    stk_safetensors_file *file;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:load_tensors", &path)) return NULL;
    stk_status status = stk_safetensors_open(path, &file);
    if (status != STK_OK) return core_raise(status, NULL);
    PyObject *dict = read_tensors(file);
    stk_safetensors_close(file);
    return dict;
}

static PyObject *core_save_tensors(PyObject *module, PyObject *args)
{
    const char *path;
    PyObject *list, *result = NULL; /* [(name, array), ...] */
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!:save_tensors", &path, &PyList_Type, &list)) return NULL;
    size_t n = (size_t)PyList_Size(list), n_open = 0;
    core_import *import = calloc(n + 1, sizeof(*import));
    stk_safetensors_entry_out *entry = calloc(n + 1, sizeof(*entry));
    if (!import || !entry) {
        PyErr_NoMemory();
        goto done;
    }
    for (; n_open < n; n_open++) {
        PyObject *array;
        const char *name;
        core_import *one = &import[n_open];
        if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)n_open), "sO", &name, &array)) goto done;
        if (!core_import_begin(array, name, one)) goto done;
        entry[n_open] = (stk_safetensors_entry_out){
            .name = name, .dtype = one->dtype, .shape = one->shape, .data = one->data, .stored = one->dtype};
    }
    stk_status status;
    Py_BEGIN_ALLOW_THREADS status = stk_safetensors_write(path, entry, (int64_t)n, NULL, NULL);
    Py_END_ALLOW_THREADS if (status == STK_OK)
    {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    else
    {
        core_raise(status, NULL);
    }
done:
    while (n_open > 0)
        core_import_end(&import[--n_open]);
    free(import);
    free(entry);
    return result;
}

static PyObject *core_export(PyObject *module, PyObject *args)
{
    const char *folder, *out, *format;
    stk_export_report report;
    stk_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "szs:export", &folder, &out, &format)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = !strcmp(format, "onnx")
                                        ? stk_run_export_onnx(folder, out, NULL, NULL, &report)
                                        : stk_run_export_safetensors(folder, out, NULL, NULL, &report);
    Py_END_ALLOW_THREADS return status == STK_OK ? PyUnicode_DecodeFSDefault(report.path) : core_raise(status, NULL);
}

static PyObject *core_import_run(PyObject *module, PyObject *args)
{
    const char *recipe, *file, *out, *set[MOST_SETS];
    PyObject *sets;
    stk_import_report report;
    stk_import_options options = {NULL};
    stk_run_options run_options = {.set = set};
    stk_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "zsO!zzz:import_run", &recipe, &file, &PyList_Type, &sets, &out, &options.leave,
                          &options.as))
        return NULL;
    if (!core_read_texts(sets, set, &run_options.n_set, MOST_SETS)) return NULL;
    run_options.out = out;
    Py_BEGIN_ALLOW_THREADS status = stk_run_import(recipe, file, &run_options, &options, &report);
    Py_END_ALLOW_THREADS return status == STK_OK ? PyUnicode_DecodeFSDefault(report.folder) : core_raise(status, NULL);
}

static PyObject *core_report(PyObject *module, PyObject *args)
{
    PyObject *folders;
    const char *path, *folder[MOST_SETS];
    int n;
    stk_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s:report", &PyList_Type, &folders, &path) ||
        !core_read_texts(folders, folder, &n, MOST_SETS))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = stk_report_write(folder, n, path);
    Py_END_ALLOW_THREADS if (status != STK_OK) return core_raise(status, NULL);
    Py_RETURN_NONE;
}

static PyObject *core_reference(PyObject *module, PyObject *unused)
{
    char *text = NULL;
    (void)module, (void)unused;
    stk_status status = stk_recipe_reference(&text);
    if (status != STK_OK) return core_raise(status, NULL);
    PyObject *out = PyUnicode_FromString(text);
    free(text);
    return out;
}

static PyMethodDef functions[] = {{"run_open", core_run_open, METH_VARARGS, open_doc},
                                  {"reference", core_reference, METH_NOARGS, NULL},
                                  {"load_tensors", core_load_tensors, METH_VARARGS, NULL},
                                  {"save_tensors", core_save_tensors, METH_VARARGS, NULL},
                                  {"export", core_export, METH_VARARGS, NULL},
                                  {"import_run", core_import_run, METH_VARARGS, NULL},
                                  {"report", core_report, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int core_add_runs(PyObject *module)
{

    run_type = core_add_type(module, "Run", &run_spec);
    if (!run_type) return -1;
    return PyModule_AddFunctions(module, functions);
}
