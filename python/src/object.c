/* What the types of this module have in common. */
#include <string.h>

#include "core.h"

void *core_object_new(PyTypeObject *type, size_t bytes)
{
    PyObject *self = PyObject_GC_New(PyObject, type);
    if (self) memset((char *)self + sizeof(PyObject), 0, bytes - sizeof(PyObject));
    return self;
}

void core_object_free(void *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject *core_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "functions of stoker._core make objects of this type");
    return NULL;
}

PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (!type) return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, (PyObject *)type) == 0) return type;
    Py_DECREF(type);
    Py_DECREF(type);
    return NULL;
}

bool core_read_texts(PyObject *list, const char **out, int *n, int most)
{
    Py_ssize_t size = PyList_Size(list);
    *n = 0;
    if (size < 0) return false;
    if (size > most) {
        PyErr_Format(PyExc_ValueError, "%zd texts, and %d are the most", size, most);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        /* Of bytes: the limited ABI lends no text of a str before 3.10. */
        out[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (!out[i]) return false;
    }
    *n = (int)size;
    return true;
}
