/* Loaders: a batch is a dict of arrays, which are the memory of its slot. That goes back when the last of its arrays,
 * and of what was made of them, is gone (stoker/data/keep.h). loader.c opens them and tells of them, loader_next.c
 * hands out batches, loader_close.c closes.
 *
 * Threads: any number may ask for batches, each of which one of them gets.
 */
#ifndef STOKER_PY_LOADER_H
#define STOKER_PY_LOADER_H

#include <pthread.h>

#include "core.h"

/* N_KEPT: the batch in use, the one before it, which lives until its name means the next, and one more. */
enum { N_KEPT = 3, MOST_FIELDS = 32 };

/* What one turn of taking a batch found, without the GIL. */
typedef struct core_turn {
    bool is_done; /* else it waited in vain */
    bool is_closed, has_batch;
    stk_status status;
    stk_kept *kept;
    int n_fields;
    int64_t n_rows, i_epoch, i_batch, n_kept;
    stk_batch_array field[MOST_FIELDS];
} core_turn;

typedef struct core_loader {
    PyObject_HEAD core_dataset *dataset;
    stk_loader *handle;     /* guarded by lock; NULL: closed */
    pthread_mutex_t lock;   /* taken without the GIL */
    const stk_batch *batch; /* that found no memory to be kept; guarded by lock */
    atomic_bool is_closing;
    unsigned generation;
    struct core_late *late;           /* for closing late, which cannot fail then; NULL once that happens */
    struct core_loader *next, **link; /* of all that are open; guarded by the GIL. link NULL: not one of them */
    int n_fields;                     /* of a batch; 0: not known yet. Guarded by lock */
    int n_slots;
    int64_t n_epoch_batches; /* -1: not known */
    bool has_warned;
    /* The place of the batch that comes next; changed with the GIL. */
    int64_t i_epoch, i_batch;
    int64_t n_ends;   /* epochs that have ended, which nobody has been told yet */
    core_turn *stash; /* what the next call gives, where has_stash says so */
    bool has_stash;
    PyObject *name[MOST_FIELDS]; /* of fields */
} core_loader;

/* False, and an exception: it is another process's. */
bool core_loader_is_usable(core_loader *self);

/* next(): a batch; None where an epoch has ended. */
PyObject *core_loader_next(PyObject *self, PyObject *none);
/* next_as((function, channels_first, fields, is_list)): the same, made of DLPack's capsules by function. */
PyObject *core_loader_next_as(PyObject *self, PyObject *how);
void core_loader_drop_stash(core_loader *self);
/* begin(): the next call gives a batch, also where nobody was told that an epoch had ended. */
PyObject *core_loader_begin(PyObject *self, PyObject *none);

/* What close needs later on; false: there is no memory. */
bool core_loader_prepare_close(core_loader *self);
/* Takes the handle, which is now open. */
void core_loader_opened(core_loader *self, stk_loader *handle);
/* Stops the threads, now or soon; nothing where that has been done. */
void core_loader_close(core_loader *self);
/* close_all(): of this process; ends when no thread of any is left, and from then on none opens. */
PyObject *core_loader_close_all(PyObject *module, PyObject *none);
/* False, and an exception: close_all has been called. */
bool core_loader_may_open(void);

#endif
