/* Closing loaders. Their threads call functions of Python, and such a function may close its own loader, or let the
 * last reference to it go: then another thread closes it. None outlives the interpreter, whose lock it would wait for.
 */
#include <stdlib.h>
#include <time.h>

#include "loader.h"

/* A loader that a worker's function dropped or closed: joining that worker is for another thread. */
typedef struct core_late {
    struct core_late *next;
    stk_loader *handle;
    core_dataset *dataset;
    unsigned generation;
} core_late;

/* Guarded by the GIL. */
static core_late *first_late;
static core_loader *first_open;
static int64_t n_open; /* handles whose threads may run, of the process that counted_generation says */
static unsigned counted_generation;
static bool is_ending;

enum { LOOK_AGAIN_NS = 1000000 };

/* A child has none of its parent's threads. */
static int64_t *count_of(unsigned generation)
{
    if (counted_generation != core_generation()) {
        counted_generation = core_generation();
        n_open = 0;
    }
    static int64_t nobody;
    return generation == counted_generation ? &n_open : &nobody;
}

bool core_loader_may_open(void)
{
    if (is_ending) core_raise_closed("interpreter");
    return !is_ending;
}

bool core_loader_prepare_close(core_loader *self)
{
    self->late = calloc(1, sizeof(*self->late));
    return self->late != NULL;
}

void core_loader_opened(core_loader *self, stk_loader *handle)
{
    self->handle = handle;
    self->link = &first_open;
    self->next = first_open;
    if (first_open) first_open->link = &self->next;
    first_open = self;
    ++*count_of(self->generation);
}

static void take_off_list(core_loader *self)
{
    if (!self->link) return;
    *self->link = self->next;
    if (self->next) self->next->link = self->link;
    self->link = NULL;
}

/* Where the main thread does not come to this, the next one that closes a loader does. */
static int close_late(void *none)
{
    (void)none;
    while (first_late && !core_is_inside()) {
        core_late *one = first_late;
        first_late = one->next;
        if (one->generation == core_generation()) {
            stk_loader *handle = one->handle;
            Py_BEGIN_ALLOW_THREADS stk_loader_close(handle);
            Py_END_ALLOW_THREADS-- *count_of(one->generation);
            Py_DECREF(one->dataset);
        }
        free(one);
    }
    return 0;
}

static void leave_for_later(core_loader *self, stk_loader *handle)
{
    core_late *one = self->late;
    self->late = NULL;
    Py_INCREF(self->dataset);
    *one = (core_late){first_late, handle, self->dataset, self->generation};
    first_late = one;
    (void)Py_AddPendingCall(close_late, NULL);
}

void core_loader_close(core_loader *self)
{
    bool is_inside = core_is_inside();
    stk_loader *handle;
    atomic_store(&self->is_closing, true);
    take_off_list(self);
    if (self->generation != core_generation()) return; /* its threads are not in this process: what it has stays */
    Py_BEGIN_ALLOW_THREADS /* Closing waits for functions that are under way; who waits for a batch does not have to. */
        pthread_mutex_lock(&self->lock);
    handle = self->handle;
    self->handle = NULL;
    self->batch = NULL;
    pthread_mutex_unlock(&self->lock);
    if (!is_inside) stk_loader_close(handle);
    Py_END_ALLOW_THREADS;
    if (is_inside && handle) {
        leave_for_later(self, handle);
    } else if (!is_inside) {
        if (handle) --*count_of(self->generation);
        close_late(NULL);
    }
}

PyObject *core_loader_close_all(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    is_ending = true;
    while (first_open) {
        core_loader *loader = first_open;
        Py_INCREF(loader);
        core_loader_close(loader);
        Py_DECREF(loader);
    }
    /* Others may be closing at this moment: a function that has let its own loader go, or another thread. */
    for (;;) {
        close_late(NULL);
        if (*count_of(core_generation()) == 0) Py_RETURN_NONE;
        Py_BEGIN_ALLOW_THREADS nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
        Py_END_ALLOW_THREADS
    }
}
