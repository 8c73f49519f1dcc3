/* Loaders: opening, and what they tell of themselves. See loader.h. */
#include <stdlib.h>
#include <string.h>

#include "loader.h"

static PyTypeObject *loader_type;

bool core_loader_is_usable(core_loader *self)
{
    if (self->generation == core_generation()) return true;
    core_raise_forked("loader");
    return false;
}

/* --- opening and closing --- */

static PyObject *loader_close(PyObject *object, PyObject *none)
{
    core_loader *self = (core_loader *)object;
    (void)none;
    core_loader_close(self);
    core_loader_drop_stash(self);
    Py_RETURN_NONE;
}

/* Cycles go through functions of Python that threads call: these end before Python takes such functions apart. */
static void loader_finalize(PyObject *object)
{
    PyObject *error_type, *error, *trace;
    PyErr_Fetch(&error_type, &error, &trace);
    core_loader_close((core_loader *)object);
    PyErr_Restore(error_type, error, trace);
}

static int loader_traverse(PyObject *object, visitproc visit, void *arg)
{
    core_loader *self = (core_loader *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dataset);
    return 0;
}

static void loader_dealloc(PyObject *object)
{
    core_loader *self = (core_loader *)object;
    PyObject_GC_UnTrack(object);
    loader_finalize(object);
    bool is_ours = self->generation == core_generation();
    if (is_ours) pthread_mutex_destroy(&self->lock);
    core_loader_drop_stash(self);
    free(self->stash);
    for (int f = 0; f < MOST_FIELDS; f++)
        Py_XDECREF(self->name[f]);
    if (is_ours) Py_XDECREF(self->dataset); /* else threads' memory of the other process still points to it */
    free(self->late);
    core_object_free(self);
}

PyDoc_STRVAR(open_doc, "open(dataset, *, threads, slots, memory, seed, epoch, batch, epochs, shards, shard, tuning, "
                       "low_priority)\n--\n\nA loader.");
static PyObject *core_open(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dataset", "threads", "slots", "memory", "seed",         "epoch", "batch",
                            "epochs",  "shards",  "shard", "tuning", "low_priority", NULL};
    core_dataset *dataset;
    stk_loader_config config = stk_loader_config_default();
    unsigned long long memory = 0, seed = 0;
    long long i_epoch = 0, i_batch = 0, n_epochs = 0, n_shards = 0, i_shard = 0;
    int tunes = 1, low_priority = 0;
    stk_status status;
    stk_loader *handle;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$iiKKLLLLLpp:open", names, core_dataset_type, &dataset,
                                     &config.n_threads, &config.n_slots, &memory, &seed, &i_epoch, &i_batch, &n_epochs,
                                     &n_shards, &i_shard, &tunes, &low_priority))
        return NULL;
    if (!dataset->handle) {
        PyErr_SetString(PyExc_ValueError, "this data set is a part of another one");
        return NULL;
    }
    config.memory_limit_bytes = (size_t)memory;
    config.seed = seed;
    config.i_epoch = i_epoch;
    config.i_batch = i_batch;
    config.n_epochs = n_epochs;
    config.n_shards = n_shards;
    config.i_shard = i_shard;
    config.no_tuning = !tunes;
    config.low_priority = low_priority;
    config.n_kept = N_KEPT;
    if (!core_loader_may_open()) return NULL;
    core_loader *self = core_object_new(loader_type, sizeof(*self));
    if (!self) return NULL;
    self->generation = core_generation();
    pthread_mutex_init(&self->lock, NULL);
    Py_INCREF(dataset);
    self->dataset = dataset;
    self->stash = malloc(sizeof(*self->stash));
    if (!self->stash || !core_loader_prepare_close(self)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    stk_dataset *of = dataset->handle;
    Py_BEGIN_ALLOW_THREADS status = stk_loader_open(of, &config, &handle);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        core_raise(status, core_cause(dataset, status));
        Py_DECREF(self);
        return NULL;
    }
    core_loader_opened(self, handle);
    PyObject_GC_Track((PyObject *)self);
    if (!core_loader_may_open()) { /* the program has come to its end meanwhile */
        Py_DECREF(self);
        return NULL;
    }
    stk_loader_stats stats;
    stk_loader_get_stats(handle, &stats);
    self->n_slots = stats.n_slots;
    self->i_epoch = i_epoch;
    self->i_batch = i_batch;
    self->n_epoch_batches = n_shards > 1 ? -1 : stk_dataset_n_batches(of);
    return (PyObject *)self;
}

/* --- what it does --- */

/* Calls with the loader's lock; what they read are numbers and texts of the loader. */
static bool enter(core_loader *self)
{
    if (!core_loader_is_usable(self)) return false;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    Py_END_ALLOW_THREADS if (self->handle) return true;
    pthread_mutex_unlock(&self->lock);
    core_raise_closed("loader");
    return false;
}

static PyObject *list_texts(stk_loader *handle, bool skipped)
{
    PyObject *list = PyList_New(0);
    const char *text;
    for (int i = 0; list && (text = skipped ? stk_loader_skipped(handle, i) : stk_loader_tuning(handle, i)); i++) {
        PyObject *item = PyUnicode_DecodeFSDefault(text);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *list_stages(stk_loader *handle)
{
    stk_stage_stats stage[64];
    int n = stk_loader_get_stages(handle, stage, 64);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *item = Py_BuildValue("{s:s,s:s,s:d}", "field", stage[i].field, "name", stage[i].name, "ns_per_sample",
                                       stage[i].ns_per_sample);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *loader_stats(PyObject *object, PyObject *none)
{
    core_loader *self = (core_loader *)object;
    stk_loader_stats s;
    (void)none;
    if (!enter(self)) return NULL;
    stk_loader_get_stats(self->handle, &s);
    PyObject *result = Py_BuildValue(
        "{s:L,s:L,s:d,s:d,s:L,s:n,s:n,s:n,s:n,s:i,s:i,s:i,s:i,s:d,s:L,s:N,s:N,s:N}", "batches", (long long)s.n_batches,
        "samples", (long long)s.n_samples, "wait_s", (double)s.wait_ns / 1e9, "work_s", (double)s.work_ns / 1e9,
        "n_skipped", (long long)s.n_skipped, "slot_bytes", (Py_ssize_t)s.slot_bytes, "memory_limit",
        (Py_ssize_t)s.memory.limit_bytes, "memory_used", (Py_ssize_t)s.memory.used_bytes, "memory_peak",
        (Py_ssize_t)s.memory.peak_bytes, "threads", s.n_threads, "slots", s.n_slots, "active_threads",
        s.n_active_threads, "used_slots", s.n_used_slots, "ready_mean", s.ready_mean, "batches_in_use",
        (long long)stk_loader_n_kept(self->handle), "stages", list_stages(self->handle), "tuning",
        list_texts(self->handle, false), "skipped", list_texts(self->handle, true));
    pthread_mutex_unlock(&self->lock);
    return result;
}

static PyObject *get_position(PyObject *object, void *none)
{
    core_loader *self = (core_loader *)object;
    (void)none;
    return Py_BuildValue("(LL)", (long long)self->i_epoch, (long long)self->i_batch);
}

static PyObject *get_closed(PyObject *object, void *none)
{
    (void)none;
    return PyBool_FromLong(atomic_load(&((core_loader *)object)->is_closing));
}

static PyMethodDef loader_methods[] = {
    {"next", core_loader_next, METH_NOARGS, "next()\n--\n\nThe next batch; None: an epoch has ended."},
    {"next_as", core_loader_next_as, METH_O,
     "next_as((function, channels_first, fields, is_list))\n--\n\nLike next(), of what function makes of each field's "
     "capsule; with "
     "fields, a tuple of names, as a tuple or list of these."},
    {"begin", core_loader_begin, METH_NOARGS,
     "begin()\n--\n\nAn epoch begins: next() does not tell of the end of another."},
    {"close", loader_close, METH_NOARGS, "close()\n--\n\nStops the threads. Batches stay."},
    {"stats", loader_stats, METH_NOARGS, "stats()\n--\n\nWhat it has done so far."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef loader_getset[] = {
    {"position", get_position, NULL, "(epoch, batch) of the batch that comes next.", NULL},
    {"closed", get_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot loader_slots[] = {{Py_tp_dealloc, loader_dealloc},
                                     {Py_tp_finalize, loader_finalize},
                                     {Py_tp_traverse, loader_traverse},
                                     {Py_tp_new, core_refuse_new},
                                     {Py_tp_methods, loader_methods},
                                     {Py_tp_getset, loader_getset},
                                     {0, NULL}};
static PyType_Spec loader_spec = {"stoker._core.Loader", sizeof(core_loader), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, loader_slots};

static PyMethodDef functions[] = {
    {"open", (PyCFunction)(void (*)(void))core_open, METH_VARARGS | METH_KEYWORDS, open_doc},
    {"close_all", core_loader_close_all, METH_NOARGS,
     "close_all()\n--\n\nCloses all loaders, at the end of the program; none opens from then on."},
    {NULL, NULL, 0, NULL}};

int core_add_loaders(PyObject *module)
{
    loader_type = core_add_type(module, "Loader", &loader_spec);
    if (!loader_type) return -1;
    return PyModule_AddFunctions(module, functions);
}
