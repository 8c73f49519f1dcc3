/* Batches of a loader, and ends of epochs. Waiting is cut into short waits, between which Python looks for signals and
 * whether another thread has closed the loader.
 *
 * Several threads may take batches at once, and come back with them in another order. Each end of an epoch is told
 * once: those that the loader's place has gone past are counted.
 */
#include <string.h>

#include "loader.h"

enum { WAIT_MS = 50 };

static void describe(core_loader *self, const stk_batch *batch, core_turn *out)
{
    out->n_rows = stk_batch_count(batch);
    out->i_epoch = stk_batch_epoch(batch);
    out->i_batch = stk_batch_index(batch);
    int most = self->n_fields ? self->n_fields : MOST_FIELDS; /* all batches have equally many */
    out->n_fields = 0;
    while (out->n_fields < most && stk_batch_field(batch, out->n_fields, &out->field[out->n_fields]) == STK_OK)
        out->n_fields++;
    self->n_fields = out->n_fields;
}

static void take_turn(core_loader *self, core_turn *out)
{
    memset(out, 0, offsetof(core_turn, field));
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
            describe(self, batch, out);
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

static bool warn_of_many(core_loader *self, int64_t n_kept)
{
    if (self->has_warned || n_kept <= self->n_slots + N_KEPT) return true;
    self->has_warned = true;
    return PyErr_WarnFormat(
               PyExc_RuntimeWarning, 1,
               "%lld batches of a loader with %d slots are in use at once, and each takes more memory: drop "
               "them, or keep copies of what is needed of them",
               (long long)n_kept, self->n_slots) >= 0;
}

/* How a batch is given: by default as a dict of Array by field. */
typedef struct batch_form {
    PyObject *function; /* makes something of each field's capsule; NULL: an Array */
    int channels_first; /* images of [N,H,W,C], of 1 or 3 channels, as [N,C,H,W] over the same memory */
    PyObject *fields;   /* a tuple of names: a sequence of these; NULL: a dict of all */
    int is_list;
} batch_form;

static PyObject *make_field(const batch_form *form, core_block *block, const stk_batch_array *field)
{
    if (!form->function) return core_array_new(block, field->data, field->dtype, &field->shape);
    const stk_shape *shape = &field->shape;
    int64_t n_channels = shape->rank == 4 ? shape->dim[3] : 0;
    bool is_moved = form->channels_first && (n_channels == 1 || n_channels == 3) && strcmp(field->name, "mask") != 0;
    PyObject *capsule = core_lend(block, field->data, field->dtype, shape, is_moved);
    PyObject *made = capsule ? PyObject_CallFunctionObjArgs(form->function, capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    return made;
}

static int find_field(core_loader *self, const core_turn *t, PyObject *name)
{
    for (int f = 0; f < t->n_fields; f++)
        if (name == self->name[f]) return f;
    for (int f = 0; f < t->n_fields; f++) {
        int is_it = PyObject_RichCompareBool(name, self->name[f], Py_EQ);
        if (is_it < 0) return -1;
        if (is_it) return f;
    }
    PyErr_Format(PyExc_KeyError, "a batch has no field %R", name);
    return -1;
}

static PyObject *make_sequence(core_loader *self, const batch_form *form, core_block *block, core_turn *t)
{
    Py_ssize_t n = PyTuple_Size(form->fields);
    PyObject *sequence = form->is_list ? PyList_New(n) : PyTuple_New(n);
    for (Py_ssize_t i = 0; sequence && i < n; i++) {
        int f = find_field(self, t, PyTuple_GetItem(form->fields, i));
        PyObject *made = f >= 0 ? make_field(form, block, &t->field[f]) : NULL;
        if (!made)
            Py_CLEAR(sequence);
        else if (form->is_list)
            PyList_SetItem(sequence, i, made);
        else
            PyTuple_SetItem(sequence, i, made);
    }
    return sequence;
}

static PyObject *make_dict(core_loader *self, const batch_form *form, core_block *block, core_turn *t)
{
    PyObject *dict = PyDict_New();
    for (int f = 0; dict && f < t->n_fields; f++) {
        PyObject *made = make_field(form, block, &t->field[f]);
        if (!made || PyDict_SetItem(dict, self->name[f], made) < 0) Py_CLEAR(dict);
        Py_XDECREF(made);
    }
    return dict;
}

/* Takes what the turn has kept. */
static PyObject *make_batch(core_loader *self, const batch_form *form, core_turn *t)
{
    core_block *block = core_block_of_kept(t->kept);
    if (!block) return NULL;
    PyObject *batch = NULL;
    bool has_names = true;
    for (int f = 0; has_names && f < t->n_fields; f++) {
        stk_shape *shape = &t->field[f].shape;
        if (shape->rank > 0 && shape->dim[0] > t->n_rows) shape->dim[0] = t->n_rows;
        if (!self->name[f]) self->name[f] = PyUnicode_InternFromString(t->field[f].name);
        has_names = self->name[f] != NULL;
    }
    if (has_names) batch = form->fields ? make_sequence(self, form, block, t) : make_dict(self, form, block, t);
    core_block_unref(block);
    return batch;
}

/* --- the place --- */

/* What comes next is in this place now, unless another thread has got further. */
static void move_to(core_loader *self, int64_t i_epoch, int64_t i_batch)
{
    if (i_epoch < self->i_epoch || (i_epoch == self->i_epoch && i_batch < self->i_batch)) return;
    self->n_ends += i_epoch - self->i_epoch;
    self->i_epoch = i_epoch;
    self->i_batch = i_batch;
}

static void go_beyond(core_loader *self, int64_t i_epoch, int64_t i_batch)
{
    if (i_batch + 1 == self->n_epoch_batches)
        move_to(self, i_epoch + 1, 0);
    else
        move_to(self, i_epoch, i_batch + 1);
}

/* --- next --- */

static void copy_turn(core_turn *dst, const core_turn *src)
{
    memcpy(dst, src, offsetof(core_turn, field) + (size_t)src->n_fields * sizeof(*src->field));
}

static PyObject *take_stash(core_loader *self, const batch_form *form)
{
    core_turn t; /* another thread may stash a batch while this one is made */
    copy_turn(&t, self->stash);
    self->has_stash = false;
    go_beyond(self, t.i_epoch, t.i_batch);
    return make_batch(self, form, &t);
}

/* The batch; or None where the epoch before it ends, and NULL for a warning that is an error: then it waits. */
static PyObject *give(core_loader *self, const batch_form *form, core_turn *t)
{
    bool is_calm = warn_of_many(self, t->n_kept);
    bool is_of_later = t->i_epoch > self->i_epoch;
    if (!self->has_stash && (is_of_later || !is_calm)) {
        copy_turn(self->stash, t);
        self->has_stash = true;
        move_to(self, t->i_epoch, is_of_later ? 0 : self->i_batch);
        if (!is_calm) return NULL;
        self->n_ends--;
        Py_RETURN_NONE;
    }
    if (!is_calm) {
        stk_kept_release(t->kept);
        return NULL;
    }
    go_beyond(self, t->i_epoch, t->i_batch);
    return make_batch(self, form, t);
}

static PyObject *next(core_loader *self, const batch_form *form)
{
    core_turn t;
    if (!core_loader_is_usable(self)) return NULL;
    if (self->n_ends > 0) {
        self->n_ends--;
        Py_RETURN_NONE;
    }
    if (self->has_stash && !atomic_load(&self->is_closing)) return take_stash(self, form);
    for (;;) {
        Py_BEGIN_ALLOW_THREADS take_turn(self, &t);
        Py_END_ALLOW_THREADS if (t.is_done) break;
        if (PyErr_CheckSignals() < 0) return NULL;
    }
    if (t.is_closed) return core_raise_closed("loader");
    if (t.status != STK_OK) return core_raise(t.status, core_cause(self->dataset, t.status));
    if (!t.has_batch) Py_RETURN_NONE;
    return give(self, form, &t);
}

PyObject *core_loader_next(PyObject *self, PyObject *none)
{
    (void)none;
    return next((core_loader *)self, &(batch_form){0});
}

PyObject *core_loader_next_as(PyObject *self, PyObject *how)
{
    batch_form form;
    if (!PyTuple_Check(how) || !PyArg_ParseTuple(how, "OpOp;(function, channels_first, fields, is_list) is wanted",
                                                 &form.function, &form.channels_first, &form.fields, &form.is_list)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a tuple is wanted");
        return NULL;
    }
    if (form.function == Py_None) form.function = NULL;
    if (form.fields == Py_None) form.fields = NULL;
    if (form.fields && !PyTuple_Check(form.fields)) {
        PyErr_SetString(PyExc_TypeError, "fields are a tuple of names");
        return NULL;
    }
    return next((core_loader *)self, &form);
}

void core_loader_drop_stash(core_loader *self)
{
    /* A parent's batch stays, with its locks. */
    if (self->has_stash && self->generation == core_generation()) stk_kept_release(self->stash->kept);
    self->has_stash = false;
}

PyObject *core_loader_begin(PyObject *object, PyObject *none)
{
    (void)none;
    ((core_loader *)object)->n_ends = 0;
    Py_RETURN_NONE;
}
