/* Loaders: a batch is a dict of arrays, which are the memory of its slot. That goes back when the last of its arrays,
 * and of what was made of them, is gone (stoker/data/keep.h).
 *
 * Waiting is cut into short waits, between which Python looks for signals and whether another thread has closed the
 * loader. Threads: any number may ask for batches, each of which one of them gets.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* N_KEPT: the batch in use, the one before it, which lives until its name means the next, and one more. */
enum { WAIT_MS = 50, N_KEPT = 3, MOST_FIELDS = 32 };

/* A loader that a worker's function dropped or closed: joining that worker is for another thread. */
typedef struct late {
    struct late *next;
    stk_loader *handle;
    core_dataset *dataset;
    unsigned generation;
} late;

static late *first_late; /* guarded by the GIL */

typedef struct loader {
    PyObject_HEAD core_dataset *dataset;
    stk_loader *handle;     /* guarded by lock; NULL: closed */
    pthread_mutex_t lock;   /* taken without the GIL */
    const stk_batch *batch; /* that found no memory to be kept; guarded by lock */
    atomic_bool is_closing;
    unsigned generation;
    late *late; /* for closing late, which cannot fail then; NULL once that happens */
    int n_slots;
    int64_t n_epoch_batches; /* -1: not known */
    bool has_warned;
    /* The place of the batch that comes next; changed with the GIL. */
    int64_t i_epoch, i_batch;
    bool ends_epoch; /* the next call says that an epoch has ended */
    PyObject *stash; /* that the next call gives; NULL: none */
    int64_t stash_epoch, stash_batch;
    PyObject *name[MOST_FIELDS]; /* of fields */
} loader;

static PyTypeObject *loader_type;

/* What one turn found, without the GIL. */
typedef struct turn {
    bool is_done; /* else it waited in vain */
    bool is_closed, has_batch;
    stk_status status;
    stk_kept *kept;
    int n_fields;
    stk_batch_array field[MOST_FIELDS];
    int64_t n_rows, i_epoch, i_batch, n_kept;
} turn;

static void describe(const stk_batch *batch, turn *out)
{
    out->n_rows = stk_batch_count(batch);
    out->i_epoch = stk_batch_epoch(batch);
    out->i_batch = stk_batch_index(batch);
    out->n_fields = 0;
    while (out->n_fields < MOST_FIELDS && stk_batch_field(batch, out->n_fields, &out->field[out->n_fields]) == STK_OK)
        out->n_fields++;
}

static void take_turn(loader *self, turn *out)
{
    memset(out, 0, offsetof(turn, field));
    out->is_done = true;
    pthread_mutex_lock(&self->lock);
    if (!self->handle || atomic_load(&self->is_closing)) {
        out->is_closed = true;
    } else if (!self->batch && !stk_loader_wait(self->handle, WAIT_MS)) {
        out->is_done = false;
    } else {
        const stk_batch *batch = self->batch ? self->batch : stk_loader_next(self->handle);
        out->has_batch = batch != NULL;
        if (batch) {
            describe(batch, out);
            out->status = stk_batch_keep(batch, &out->kept);
            out->n_kept = stk_loader_n_kept(self->handle);
            self->batch = out->status == STK_OK ? NULL : batch;
        } else {
            out->status = stk_loader_status(self->handle);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

/* --- batches --- */

static bool warn_of_many(loader *self, int64_t n_kept)
{
    if (self->has_warned || n_kept <= self->n_slots + N_KEPT) return true;
    self->has_warned = true;
    return PyErr_WarnFormat(
               PyExc_RuntimeWarning, 1,
               "%lld batches of a loader with %d slots are in use at once, and each takes more memory: drop "
               "them, or keep copies of what is needed of them",
               (long long)n_kept, self->n_slots) >= 0;
}

static PyObject *make_dict(loader *self, turn *t)
{
    core_block *block = core_block_of_kept(t->kept);
    PyObject *dict = block ? PyDict_New() : NULL;
    for (int f = 0; dict && f < t->n_fields; f++) {
        stk_batch_array *field = &t->field[f];
        if (field->shape.rank > 0 && field->shape.dim[0] > t->n_rows) field->shape.dim[0] = t->n_rows;
        if (!self->name[f]) self->name[f] = PyUnicode_InternFromString(field->name);
        PyObject *array = core_array_new(block, field->data, field->dtype, &field->shape);
        if (!array || !self->name[f] || PyDict_SetItem(dict, self->name[f], array) < 0) Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    core_block_unref(block);
    return dict;
}

/* The batch's place; what follows is next, unless another thread has got further. */
static void go_on(loader *self, int64_t i_epoch, int64_t i_batch)
{
    if (i_epoch < self->i_epoch || (i_epoch == self->i_epoch && i_batch < self->i_batch)) return;
    self->i_epoch = i_epoch;
    self->i_batch = i_batch + 1;
    if (self->i_batch == self->n_epoch_batches) {
        self->i_epoch++;
        self->i_batch = 0;
        self->ends_epoch = true;
    }
}

static bool is_usable(loader *self)
{
    if (self->generation != core_generation()) {
        core_raise_forked("loader");
        return false;
    }
    return true;
}

static void put_stash(loader *self, PyObject *batch, const turn *t)
{
    self->stash = batch;
    self->stash_epoch = t->i_epoch;
    self->stash_batch = t->i_batch;
}

static PyObject *take_stash(loader *self)
{
    PyObject *batch = self->stash;
    self->stash = NULL;
    go_on(self, self->stash_epoch, self->stash_batch);
    return batch;
}

static PyObject *loader_next(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    turn t;
    (void)none;
    if (!is_usable(self)) return NULL;
    if (self->ends_epoch) {
        self->ends_epoch = false;
        Py_RETURN_NONE;
    }
    if (self->stash && !atomic_load(&self->is_closing)) return take_stash(self);
    for (;;) {
        Py_BEGIN_ALLOW_THREADS take_turn(self, &t);
        Py_END_ALLOW_THREADS if (t.is_done) break;
        if (PyErr_CheckSignals() < 0) return NULL;
    }
    if (t.is_closed) return core_raise_closed("loader");
    if (t.status != STK_OK) {
        PyObject *cause = self->dataset->error;
        Py_XINCREF(cause);
        return core_raise(t.status, cause);
    }
    if (!t.has_batch) Py_RETURN_NONE;
    PyObject *batch = make_dict(self, &t);
    if (!batch) return NULL;
    bool is_calm = warn_of_many(self, t.n_kept);
    bool ends_epoch = t.i_epoch > self->i_epoch && self->i_batch > 0;
    if (!self->stash && (ends_epoch || !is_calm)) {
        put_stash(self, batch, &t);
        if (ends_epoch) {
            self->i_epoch = t.i_epoch;
            self->i_batch = 0;
            self->ends_epoch = !is_calm;
        }
        if (!is_calm) return NULL;
        Py_RETURN_NONE;
    }
    if (!is_calm) {
        Py_DECREF(batch);
        return NULL;
    }
    if (ends_epoch) self->ends_epoch = true;
    go_on(self, t.i_epoch, t.i_batch);
    return batch;
}

/* The next call gives a batch, also where nobody was told that an epoch had ended. */
static PyObject *loader_begin(PyObject *object, PyObject *none)
{
    (void)none;
    ((loader *)object)->ends_epoch = false;
    Py_RETURN_NONE;
}

/* --- opening and closing --- */

/* Closes what was left for later. Where the main thread does not come to that, the next one that closes a loader does.
 */
static int close_late(void *none)
{
    (void)none;
    while (first_late && !core_is_inside()) {
        late *one = first_late;
        first_late = one->next;
        if (one->generation == core_generation()) {
            stk_loader *handle = one->handle;
            Py_BEGIN_ALLOW_THREADS stk_loader_close(handle);
            Py_END_ALLOW_THREADS Py_DECREF(one->dataset);
        }
        free(one);
    }
    return 0;
}

static void leave_for_later(loader *self, stk_loader *handle)
{
    late *one = self->late;
    self->late = NULL;
    Py_INCREF(self->dataset);
    *one = (late){first_late, handle, self->dataset, self->generation};
    first_late = one;
    (void)Py_AddPendingCall(close_late, NULL);
}

static void close_handle(loader *self)
{
    bool is_inside = core_is_inside();
    stk_loader *handle;
    atomic_store(&self->is_closing, true);
    if (self->generation != core_generation()) return; /* its threads are not in this process: what it has stays */
    Py_BEGIN_ALLOW_THREADS /* Closing waits for functions that are under way; who waits for a batch does not have to. */
        pthread_mutex_lock(&self->lock);
    handle = self->handle;
    self->handle = NULL;
    self->batch = NULL;
    pthread_mutex_unlock(&self->lock);
    if (!is_inside) stk_loader_close(handle);
    Py_END_ALLOW_THREADS;
    if (!is_inside)
        close_late(NULL);
    else if (handle)
        leave_for_later(self, handle);
}

static PyObject *core_close_late(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    close_late(NULL);
    Py_RETURN_NONE;
}

static PyObject *loader_close(PyObject *object, PyObject *none)
{
    loader *self = (loader *)object;
    (void)none;
    close_handle(self);
    Py_CLEAR(self->stash);
    Py_RETURN_NONE;
}

static void loader_dealloc(PyObject *object)
{
    loader *self = (loader *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *error_type, *error, *trace;
    PyErr_Fetch(&error_type, &error, &trace);
    close_handle(self);
    bool is_ours = self->generation == core_generation();
    if (is_ours) pthread_mutex_destroy(&self->lock);
    Py_CLEAR(self->stash);
    for (int f = 0; f < MOST_FIELDS; f++)
        Py_XDECREF(self->name[f]);
    if (is_ours) Py_XDECREF(self->dataset); /* else threads' memory of the other process still points to it */
    free(self->late);
    PyErr_Restore(error_type, error, trace);
    PyObject_Free(self);
    Py_DECREF(type);
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
    loader *self = PyObject_New(loader, loader_type);
    if (!self) return NULL;
    memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
    self->generation = core_generation();
    pthread_mutex_init(&self->lock, NULL);
    Py_INCREF(dataset);
    self->dataset = dataset;
    self->late = calloc(1, sizeof(*self->late));
    if (!self->late) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    stk_dataset *of = dataset->handle;
    Py_BEGIN_ALLOW_THREADS status = stk_loader_open(of, &config, &handle);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        PyObject *cause = dataset->error;
        Py_XINCREF(cause);
        core_raise(status, cause);
        Py_DECREF(self);
        return NULL;
    }
    stk_loader_stats stats;
    stk_loader_get_stats(handle, &stats);
    self->handle = handle;
    self->n_slots = stats.n_slots;
    self->i_epoch = i_epoch;
    self->i_batch = i_batch;
    self->n_epoch_batches = n_shards > 1 ? -1 : stk_dataset_n_batches(of);
    return (PyObject *)self;
}

/* --- what it does --- */

/* Calls with the loader's lock; what they read are numbers and texts of the loader. */
static bool enter(loader *self)
{
    if (!is_usable(self)) return false;
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
    loader *self = (loader *)object;
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
    loader *self = (loader *)object;
    (void)none;
    return Py_BuildValue("(LL)", (long long)self->i_epoch, (long long)self->i_batch);
}

static PyObject *get_closed(PyObject *object, void *none)
{
    (void)none;
    return PyBool_FromLong(atomic_load(&((loader *)object)->is_closing));
}

static PyMethodDef loader_methods[] = {
    {"next", loader_next, METH_NOARGS, "next()\n--\n\nThe next batch; None: an epoch has ended."},
    {"begin", loader_begin, METH_NOARGS, "begin()\n--\n\nAn epoch begins: next() does not tell of the end of another."},
    {"close", loader_close, METH_NOARGS, "close()\n--\n\nStops the threads. Batches stay."},
    {"stats", loader_stats, METH_NOARGS, "stats()\n--\n\nWhat it has done so far."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef loader_getset[] = {
    {"position", get_position, NULL, "(epoch, batch) of the batch that comes next.", NULL},
    {"closed", get_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "it is made by stoker._core.open");
    return NULL;
}

static PyType_Slot loader_slots[] = {{Py_tp_dealloc, loader_dealloc},
                                     {Py_tp_new, refuse_new},
                                     {Py_tp_methods, loader_methods},
                                     {Py_tp_getset, loader_getset},
                                     {0, NULL}};
static PyType_Spec loader_spec = {"stoker._core.Loader", sizeof(loader), 0, Py_TPFLAGS_DEFAULT, loader_slots};

static PyMethodDef functions[] = {
    {"open", (PyCFunction)(void (*)(void))core_open, METH_VARARGS | METH_KEYWORDS, open_doc},
    {"close_late", core_close_late, METH_NOARGS,
     "close_late()\n--\n\nCloses loaders that their own threads let go of."},
    {NULL, NULL, 0, NULL}};

int core_add_loaders(PyObject *module)
{
    loader_type = (PyTypeObject *)PyType_FromSpec(&loader_spec);
    if (!loader_type) return -1;
    return PyModule_AddFunctions(module, functions);
}
