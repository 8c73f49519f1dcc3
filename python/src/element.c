/* Types of elements by their names, and shapes. */
#include <string.h>

#include "array.h"

const core_element core_elements[STK_N_DTYPES] = {
    [STK_F32] = {"float32", "f", DL_FLOAT}, [STK_BF16] = {"bfloat16", NULL, DL_BFLOAT},
    [STK_F16] = {"float16", "e", DL_FLOAT}, [STK_F64] = {"float64", "d", DL_FLOAT},
    [STK_I64] = {"int64", "q", DL_INT},     [STK_I32] = {"int32", "i", DL_INT},
    [STK_I8] = {"int8", "b", DL_INT},       [STK_U8] = {"uint8", "B", DL_UINT},
    [STK_BOOL] = {"bool", "?", DL_BOOL},
};

const char *core_dtype_name(stk_dtype dtype)
{
    return core_elements[dtype].name;
}

/* "<class 'numpy.float32'>" and "torch.float32" end in the name. */
static bool is_name(const char *text, const char *name)
{
    size_t n = strlen(text), n_name = strlen(name);
    if (n > 2 && !strcmp(text + n - 2, "'>")) n -= 2;
    if (n < n_name || strncmp(text + n - n_name, name, n_name) != 0) return false;
    return n == n_name || text[n - n_name - 1] == '.' || text[n - n_name - 1] == '\'';
}

bool core_dtype(PyObject *object, stk_dtype *out)
{
    PyObject *text = PyObject_Str(object), *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    const char *p = bytes ? PyBytes_AsString(bytes) : NULL;
    bool found = false;
    for (int i = 0; p && i < STK_N_DTYPES && !found; i++) {
        found = is_name(p, core_elements[i].name) || !strcmp(p, stk_dtype_name((stk_dtype)i));
        if (found) *out = (stk_dtype)i;
    }
    if (p && !found)
        PyErr_Format(PyExc_TypeError,
                     "'%s' is no type of elements: float32, bfloat16, float16, float64, int64, int32, "
                     "int8, uint8 or bool",
                     p);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return found;
}

bool core_shape(PyObject *object, stk_shape *out)
{
    *out = (stk_shape){0};
    PyObject *tuple = PySequence_Tuple(object);
    Py_ssize_t n = tuple ? PyTuple_Size(tuple) : -1;
    if (n > STK_MAX_RANK) PyErr_Format(PyExc_ValueError, "a shape of %zd sides: %d at most", n, STK_MAX_RANK);
    for (Py_ssize_t i = 0; i < n && n <= STK_MAX_RANK; i++) {
        PyObject *side = PyTuple_GetItem(tuple, i);
        out->dim[i] = side == Py_None ? STK_ANY : PyLong_AsLongLong(side);
        if (PyErr_Occurred()) break;
        if (side != Py_None && out->dim[i] < 0) {
            PyErr_Format(PyExc_ValueError, "a side of %lld", (long long)out->dim[i]);
            break;
        }
    }
    out->rank = (int32_t)n;
    Py_XDECREF(tuple);
    return n >= 0 && !PyErr_Occurred();
}

PyObject *core_shape_tuple(const stk_shape *shape)
{
    PyObject *tuple = PyTuple_New(shape->rank);
    for (int i = 0; tuple && i < shape->rank; i++) {
        PyObject *side = shape->dim[i] == STK_ANY ? Py_None : PyLong_FromLongLong(shape->dim[i]);
        if (side == Py_None) Py_INCREF(side);
        if (!side || PyTuple_SetItem(tuple, i, side) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

int64_t core_count_elements(const stk_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}
