/* Statuses as exceptions: each a class of its own below stoker.Error, and below what Python calls such an error. */
#include "core.h"

#include <pthread.h>
#include <stdio.h>

typedef struct error_class {
    const char *name;
    PyObject **base; /* of Python */
    const char *doc;
} error_class;

static PyObject *error_type, *closed_type, *fork_type;
static PyObject *type_of[STK_INTERNAL + 1];
static unsigned generation;

static void count_fork(void)
{
    generation++;
}

unsigned core_generation(void)
{
    return generation;
}

static PyObject *add_class(PyObject *module, const char *name, const char *doc, PyObject *base)
{
    char whole[64];
    PyObject *bases = base ? PyTuple_Pack(2, error_type, base) : NULL;
    if (base && !bases) return NULL;
    snprintf(whole, sizeof(whole), "stoker.%s", name);
    PyObject *type = PyErr_NewExceptionWithDoc(whole, doc, bases, NULL);
    Py_XDECREF(bases);
    if (!type) return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return type;
}

int core_add_errors(PyObject *module)
{
    const error_class classes[STK_INTERNAL + 1] = {
        [STK_INVALID] = {"InvalidError", &PyExc_ValueError, "A wrong argument, or calls that do not go together."},
        [STK_NOT_FOUND] = {"NotFoundError", &PyExc_FileNotFoundError, "A file, a name or a key that is not there."},
        [STK_IO] = {"IoError", &PyExc_OSError, "Reading or writing failed."},
        [STK_CORRUPT] = {"CorruptError", &PyExc_ValueError, "Data that are damaged; the text names the record."},
        [STK_NO_MEMORY] = {"NoMemoryError", &PyExc_MemoryError, "It does not fit into memory, or into the limit."},
        [STK_UNSUPPORTED] = {"UnsupportedError", &PyExc_NotImplementedError, "What Stoker does not do."},
        [STK_NO_DEVICE] = {"NoDeviceError", &PyExc_RuntimeError, "A device that is not here."},
        [STK_DEVICE] = {"DeviceError", &PyExc_RuntimeError, "A device failed."},
        [STK_BUSY] = {"BusyError", &PyExc_RuntimeError, "Somebody else uses it, or another file is in the place."},
        [STK_MISMATCH] = {"MismatchError", &PyExc_ValueError, "Two things that do not fit together."},
        [STK_INTERRUPTED] = {"StoppedError", &PyExc_RuntimeError, "It was stopped."},
        [STK_NO_ROW] = {"NoRowError", &PyExc_LookupError, "A table has no such row."},
        [STK_LOST] = {"LostError", &PyExc_RuntimeError, "Another replica failed."},
        [STK_INTERNAL] = {"InternalError", &PyExc_RuntimeError, "A mistake of Stoker's own."},
    };
    error_type = add_class(module, "Error", "What all exceptions of Stoker are.", NULL);
    if (!error_type) return -1;
    for (int i = 1; i <= STK_INTERNAL; i++)
        if (!(type_of[i] = add_class(module, classes[i].name, classes[i].doc, *classes[i].base))) return -1;
    closed_type = add_class(module, "ClosedError", "It was closed before.", PyExc_ValueError);
    fork_type = add_class(module, "ForkError", "It belongs to the process that forked this one.", PyExc_RuntimeError);
    if (!closed_type || !fork_type) return -1;
    if (pthread_atfork(NULL, NULL, count_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static PyObject *raise_with(PyObject *type, const char *text, PyObject *cause)
{
    PyObject *error = PyObject_CallFunction(type, "s", text);
    if (error && cause) {
        PyException_SetCause(error, cause);
        cause = NULL;
    }
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(cause);
    return NULL;
}

PyObject *core_raise(stk_status status, PyObject *cause)
{
    bool is_known = status > STK_OK && status <= STK_INTERNAL;
    const char *text = stk_error_text();
    return raise_with(is_known ? type_of[status] : error_type, text[0] ? text : stk_status_text(status), cause);
}

PyObject *core_raise_closed(const char *what)
{
    PyErr_Format(closed_type, "the %s is closed", what);
    return NULL;
}

PyObject *core_raise_forked(const char *what)
{
    PyErr_Format(fork_type,
                 "the %s was made before this process was forked, and its threads have stayed in the other one: make a "
                 "%s of its own in each process",
                 what, what);
    return NULL;
}

stk_status core_fail_python(stk_status status, PyObject **kept)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *name_bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
    PyObject *text_bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    PyErr_Clear();
    stk_fail(status, "%s: %s", name_bytes ? PyBytes_AsString(name_bytes) : "error",
             text_bytes ? PyBytes_AsString(text_bytes) : "");
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(name_bytes);
    Py_XDECREF(text_bytes);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (kept && !*kept)
        *kept = value;
    else
        Py_XDECREF(value);
    return status;
}
