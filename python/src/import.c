/* Arrays of others, by the buffer protocol and by DLPack. */
#include <string.h>

#include "array.h"

static bool type_of_format(const char *format, Py_ssize_t item_bytes, stk_dtype *out)
{
    if (!format) format = "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (format[0] == 0 || format[1] != 0) return false;
    char c = *format;
    if (strchr("lq", c) || c == 'n') {
        *out = item_bytes == 8 ? STK_I64 : STK_I32;
        return item_bytes == 8 || item_bytes == 4;
    }
    for (int i = 0; i < STK_N_DTYPES; i++)
        if (core_elements[i].format && core_elements[i].format[0] == c &&
            (Py_ssize_t)stk_dtype_bytes((stk_dtype)i) == item_bytes) {
            *out = (stk_dtype)i;
            return true;
        }
    return false;
}

static bool fail_type(const char *what)
{
    PyErr_Format(
        PyExc_TypeError,
        "%s: elements are float32, float16, float64, int64, int32, int8, uint8 or bool, and by DLPack bfloat16", what);
    return false;
}

static bool begin_buffer(PyObject *object, const char *what, core_import *out)
{
    Py_buffer *view = &out->buffer;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return false;
    out->has_buffer = true;
    if (!type_of_format(view->format, view->itemsize, &out->dtype)) return fail_type(what);
    if (view->ndim > STK_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%s: %d sides, and %d is the most", what, view->ndim, STK_MAX_RANK);
        return false;
    }
    out->shape.rank = view->ndim;
    for (int i = 0; i < view->ndim; i++)
        out->shape.dim[i] = view->shape[i];
    out->data = view->buf;
    out->n_bytes = (size_t)view->len;
    return true;
}

static void end_import(PyObject *capsule)
{
    dl_managed *managed = PyCapsule_GetPointer(capsule, "stoker.used");
    if (managed && managed->deleter) managed->deleter(managed);
}

static bool begin_dlpack(PyObject *object, const char *what, core_import *out)
{
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    if (!capsule) return false;
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (!managed) {
        Py_DECREF(capsule);
        return false;
    }
    const dl_tensor *tensor = &managed->tensor;
    int64_t stride = 1;
    bool is_row_major = true;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->strides && tensor->shape[i] != 1 && tensor->strides[i] != stride) is_row_major = false;
        stride *= tensor->shape[i];
    }
    bool found = false;
    for (int i = 0; i < STK_N_DTYPES && !found; i++) {
        found = tensor->dtype.lanes == 1 && tensor->dtype.code == core_elements[i].code &&
                tensor->dtype.bits == 8 * stk_dtype_bytes((stk_dtype)i);
        if (found) out->dtype = (stk_dtype)i;
    }
    out->owner = capsule;
    if (!found) return fail_type(what);
    if (tensor->device.type != DL_CPU || !is_row_major || tensor->ndim > STK_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%s: arrays are row-major, on the CPU, and have at most %d sides", what,
                     STK_MAX_RANK);
        return false;
    }
    out->shape.rank = tensor->ndim;
    memcpy(out->shape.dim, tensor->shape, (size_t)tensor->ndim * sizeof(*tensor->shape));
    out->data = (const char *)tensor->data + tensor->byte_offset;
    out->n_bytes = (size_t)stride * stk_dtype_bytes(out->dtype);
    /* Ours now. */
    if (PyCapsule_SetName(capsule, "stoker.used") < 0 || PyCapsule_SetDestructor(capsule, end_import) < 0) return false;
    return true;
}

bool core_import_begin(PyObject *object, const char *what, core_import *out)
{
    memset(out, 0, sizeof(*out));
    bool is_well;
    if (PyObject_CheckBuffer(object)) {
        is_well = begin_buffer(object, what, out);
    } else if (PyObject_HasAttrString(object, "__dlpack__")) {
        is_well = begin_dlpack(object, what, out);
    } else {
        PyErr_Format(PyExc_TypeError, "%s: an array is wanted (NumPy, PyTorch, ...), not %R", what,
                     (PyObject *)Py_TYPE(object));
        is_well = false;
    }
    if (!is_well) core_import_end(out);
    return is_well;
}

void core_import_end(core_import *import)
{
    if (import->has_buffer) PyBuffer_Release(&import->buffer);
    import->has_buffer = false;
    Py_CLEAR(import->owner);
}
