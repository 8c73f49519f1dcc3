/* Python's buffer protocol for the limited interface of CPython 3.9, whose headers leave it out until 3.11. The layout
 * is that of PEP 3118, which 3.11 has made part of the stable ABI as it was; 3.9 and 3.10 export the same functions and
 * have the same slots.
 */
#ifndef STOKER_PY_BUFFER_H
#define STOKER_PY_BUFFER_H

#include <Python.h>

#if !defined(Py_LIMITED_API) || Py_LIMITED_API + 0 >= 0x030b0000
#error "Python.h has these itself"
#endif

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

#define Py_bf_getbuffer     1
#define Py_bf_releasebuffer 2

#define PyBUF_WRITABLE     0x0001
#define PyBUF_FORMAT       0x0004
#define PyBUF_ND           0x0008
#define PyBUF_STRIDES      (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define PyBUF_F_CONTIGUOUS (0x0040 | PyBUF_STRIDES)

PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *o);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *o, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);

#endif
