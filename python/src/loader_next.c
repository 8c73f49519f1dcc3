/* Batches of a loader, and ends of epochs. Waiting is cut into short waits, between which Python looks for signals and
 * whether another thread has closed the loader.
 *
 * Several threads may take batches at once, and come back with them in another order. Each end of an epoch is told
 * once: those that the loader's place has gone past are counted.
 */
#include <string.h>

#include "loader.h"

enum { WAIT_MS = 50 };

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

static void take_turn(core_loader *self, turn *out)
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

static PyObject *make_dict(core_loader *self, turn *t)
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

static void put_stash(core_loader *self, PyObject *batch, const turn *t)
{
    self->stash = batch;
    self->stash_epoch = t->i_epoch;
    self->stash_batch = t->i_batch;
}

static PyObject *take_stash(core_loader *self)
{
    PyObject *batch = self->stash;
    self->stash = NULL;
    go_beyond(self, self->stash_epoch, self->stash_batch);
    return batch;
}

/* The batch; or None where the epoch before it ends, and NULL for a warning that is an error: then it waits. */
static PyObject *give(core_loader *self, PyObject *batch, const turn *t)
{
    bool is_calm = warn_of_many(self, t->n_kept);
    bool is_of_later = t->i_epoch > self->i_epoch;
    if (!self->stash && (is_of_later || !is_calm)) {
        put_stash(self, batch, t);
        move_to(self, t->i_epoch, is_of_later ? 0 : self->i_batch);
        if (!is_calm) return NULL;
        self->n_ends--;
        Py_RETURN_NONE;
    }
    if (!is_calm) {
        Py_DECREF(batch);
        return NULL;
    }
    go_beyond(self, t->i_epoch, t->i_batch);
    return batch;
}

PyObject *core_loader_next(PyObject *object, PyObject *none)
{
    core_loader *self = (core_loader *)object;
    turn t;
    (void)none;
    if (!core_loader_is_usable(self)) return NULL;
    if (self->n_ends > 0) {
        self->n_ends--;
        Py_RETURN_NONE;
    }
    if (self->stash && !atomic_load(&self->is_closing)) return take_stash(self);
    for (;;) {
        Py_BEGIN_ALLOW_THREADS take_turn(self, &t);
        Py_END_ALLOW_THREADS if (t.is_done) break;
        if (PyErr_CheckSignals() < 0) return NULL;
    }
    if (t.is_closed) return core_raise_closed("loader");
    if (t.status != STK_OK) return core_raise(t.status, core_cause(self->dataset, t.status));
    if (!t.has_batch) Py_RETURN_NONE;
    PyObject *batch = make_dict(self, &t);
    return batch ? give(self, batch, &t) : NULL;
}

PyObject *core_loader_begin(PyObject *object, PyObject *none)
{
    (void)none;
    ((core_loader *)object)->n_ends = 0;
    Py_RETURN_NONE;
}
