/* Arrays lent by DLPack, in capsules of either form. */
#include <stdlib.h>

#include "array.h"

/* What a capsule holds, in either form; the sides come with it. */
typedef struct loan {
    union {
        dl_managed old;
        dl_versioned versioned;
    } as;
    core_block *block;
    int64_t side[STK_MAX_RANK], stride[STK_MAX_RANK];
} loan;

static void end_old(dl_managed *managed)
{
    loan *lent = managed->context;
    core_block_unref(lent->block);
    free(lent);
}

static void end_versioned(dl_versioned *managed)
{
    loan *lent = managed->context;
    core_block_unref(lent->block);
    free(lent);
}

/* A capsule that nobody took. */
static void drop_old(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

static void drop_versioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    managed->deleter(managed);
}

/* The sides of an array as they lie in memory; is_moved: [N,H,W,C] as [N,C,H,W]. */
static loan *new_loan(core_block *block, const stk_shape *shape, bool is_moved)
{
    static const int moved[] = {0, 2, 3, 1}; /* where each side goes */
    loan *lent = malloc(sizeof(*lent));
    if (!lent) {
        PyErr_NoMemory();
        return NULL;
    }
    lent->block = core_block_ref(block);
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int at = is_moved ? moved[i] : i;
        lent->side[at] = shape->dim[i];
        lent->stride[at] = stride;
        stride *= shape->dim[i];
    }
    return lent;
}

static dl_tensor tensor_of(loan *lent, void *data, stk_dtype dtype, int rank)
{
    return (dl_tensor){.data = data,
                       .device = {DL_CPU, 0},
                       .ndim = rank,
                       .dtype = {core_elements[dtype].code, (uint8_t)(8 * stk_dtype_bytes(dtype)), 1},
                       .shape = lent->side,
                       .strides = lent->stride};
}

static PyObject *or_free(PyObject *capsule, loan *lent)
{
    if (capsule) return capsule;
    core_block_unref(lent->block);
    free(lent);
    return NULL;
}

PyObject *core_lend(core_block *block, void *data, stk_dtype dtype, const stk_shape *shape, bool channels_first)
{
    loan *lent = new_loan(block, shape, channels_first);
    if (!lent) return NULL;
    lent->as.old =
        (dl_managed){.tensor = tensor_of(lent, data, dtype, shape->rank), .context = lent, .deleter = end_old};
    return or_free(PyCapsule_New(&lent->as.old, "dltensor", drop_old), lent);
}

static PyObject *lend_versioned(core_array *self, bool is_copied)
{
    loan *lent = new_loan(self->block, &self->shape, false);
    if (!lent) return NULL;
    lent->as.versioned = (dl_versioned){.major = 1,
                                        .context = lent,
                                        .deleter = end_versioned,
                                        .flags = is_copied ? DL_FLAG_IS_COPIED : 0,
                                        .tensor = tensor_of(lent, self->data, self->dtype, self->shape.rank)};
    return or_free(PyCapsule_New(&lent->as.versioned, "dltensor_versioned", drop_versioned), lent);
}

static PyObject *lend(core_array *self, bool is_versioned, bool is_copied)
{
    if (is_versioned) return lend_versioned(self, is_copied);
    return core_lend(self->block, self->data, self->dtype, &self->shape, false);
}

/* Where somebody asks for a device, it is the CPU. */
static bool check_device(PyObject *device)
{
    long type, id;
    if (!device || device == Py_None) return true;
    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ll;dl_device is (type, number)", &type, &id)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "dl_device is (type, number)");
        return false;
    }
    if (type == DL_CPU) return true;
    PyErr_SetString(PyExc_BufferError, "the array is on the CPU, and is not copied to other devices");
    return false;
}

const char core_dlpack_doc[] = "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
                               "A capsule for from_dlpack, over the same memory; with copy=True over a copy.";
PyObject *core_array_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy))
        return NULL;
    if (stream && stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "the array is on the CPU, which has no streams");
        return NULL;
    }
    if (!check_device(device)) return NULL;
    long major = 0, minor = 0;
    if (version && version != Py_None &&
        (!PyTuple_Check(version) || !PyArg_ParseTuple(version, "ll;max_version is (major, minor)", &major, &minor))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "max_version is (major, minor)");
        return NULL;
    }
    int is_copied = copy && copy != Py_None ? PyObject_IsTrue(copy) : 0;
    if (is_copied < 0) return NULL;
    if (!is_copied) return lend((core_array *)object, major >= 1, false);
    core_array *self = (core_array *)object,
               *other = (core_array *)core_array_copy(self->data, self->dtype, &self->shape);
    PyObject *capsule = other ? lend(other, major >= 1, true) : NULL;
    Py_XDECREF(other);
    return capsule;
}

PyObject *core_array_dlpack_device(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}
