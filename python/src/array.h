/* Arrays: memory with a type and a shape, handed on without copies by the buffer protocol and by DLPack. array.c has
 * the type and the memory, dlpack.c lends, import.c takes arrays of others, element.c knows types of elements.
 */
#ifndef STOKER_PY_ARRAY_H
#define STOKER_PY_ARRAY_H

#include "core.h"
#include "dlpack.h"

typedef struct core_element {
    const char *name;   /* NumPy's */
    const char *format; /* of the struct module; NULL: there is none */
    uint8_t code;       /* DLPack's */
} core_element;

extern const core_element core_elements[STK_N_DTYPES];

/* Elements of a shape whose sides are all known. */
int64_t core_count_elements(const stk_shape *shape);

typedef struct core_array {
    PyObject_HEAD core_block *block;
    void *data;
    stk_dtype dtype;
    stk_shape shape;
    Py_ssize_t n_bytes;
    Py_ssize_t side[STK_MAX_RANK + 1], stride[STK_MAX_RANK + 1]; /* in bytes; for buffers */
} core_array;

/* One reference more; returns block. */
core_block *core_block_ref(core_block *block);

/* Methods of arrays. */
extern const char core_dlpack_doc[];
PyObject *core_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *core_array_dlpack_device(PyObject *self, PyObject *none);

#endif
