/* Data sets as they are in C: built step by step, and then read. stoker.Dataset, which never changes, makes one of
 * these when it is needed. dataset_sources.c has what they are made of, dataset.c the type and what is done to one,
 * callback.c functions of Python in it.
 */
#ifndef STOKER_PY_DATASET_H
#define STOKER_PY_DATASET_H

#include "core.h"

enum { MOST = 64 }; /* fields, data sets of one, boundaries */

/* Without a handle. */
core_dataset *core_dataset_new(void);
/* None; or the first error of the calls so far, raised. */
PyObject *core_dataset_check(core_dataset *self);
/* self with its handle, which it takes; or its error, raised, and neither is there any more. */
PyObject *core_dataset_finish(core_dataset *self, stk_dataset *handle);

extern PyMethodDef core_source_functions[];

#endif
