/* Arrays: the memory that they lie in, the type, and the buffer protocol. See array.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* --- blocks of memory --- */

struct core_block {
    _Atomic int64_t n_refs;
    stk_kept *kept;      /* NULL: the memory follows */
    unsigned generation; /* a kept batch's lock may be anyhow in a child of its process: there it stays */
};

enum { ALIGNMENT = 64 };

core_block *core_block_of_kept(stk_kept *kept)
{
    core_block *block = malloc(sizeof(*block));
    if (!block) {
        stk_kept_release(kept);
        PyErr_NoMemory();
        return NULL;
    }
    *block = (core_block){.kept = kept, .generation = core_generation()};
    atomic_init(&block->n_refs, 1);
    return block;
}

core_block *core_block_new(size_t bytes, void **data)
{
    void *p = NULL;
    if (bytes > SIZE_MAX - ALIGNMENT || posix_memalign(&p, ALIGNMENT, ALIGNMENT + bytes) != 0) {
        PyErr_NoMemory();
        return NULL;
    }
    core_block *block = p;
    *block = (core_block){.kept = NULL};
    atomic_init(&block->n_refs, 1);
    *data = (char *)p + ALIGNMENT;
    return block;
}

core_block *core_block_ref(core_block *block)
{
    atomic_fetch_add(&block->n_refs, 1);
    return block;
}

void core_block_unref(core_block *block)
{
    if (!block || atomic_fetch_sub(&block->n_refs, 1) != 1) return;
    if (block->kept && block->generation == core_generation()) stk_kept_release(block->kept);
    free(block);
}

/* --- the type --- */

PyTypeObject *core_array_type;

PyObject *core_array_new(core_block *block, void *data, stk_dtype dtype, const stk_shape *shape)
{
    core_array *self = PyObject_New(core_array, core_array_type);
    if (!self) return NULL;
    self->block = core_block_ref(block);
    self->data = data;
    self->dtype = dtype;
    self->shape = *shape;
    Py_ssize_t bytes = (Py_ssize_t)stk_dtype_bytes(dtype);
    for (int i = shape->rank - 1; i >= 0; i--) {
        self->side[i] = (Py_ssize_t)shape->dim[i];
        self->stride[i] = bytes;
        bytes *= self->side[i];
    }
    self->n_bytes = bytes;
    return (PyObject *)self;
}

PyObject *core_array_copy(const void *data, stk_dtype dtype, const stk_shape *shape)
{
    void *copy;
    size_t bytes = (size_t)core_count_elements(shape) * stk_dtype_bytes(dtype);
    core_block *block = core_block_new(bytes, &copy);
    if (!block) return NULL;
    if (data && bytes) memcpy(copy, data, bytes);
    PyObject *self = core_array_new(block, copy, dtype, shape);
    core_block_unref(block);
    return self;
}

void *core_array_data(PyObject *object)
{
    return ((core_array *)object)->data;
}

static void array_dealloc(PyObject *object)
{
    core_array *self = (core_array *)object;
    PyTypeObject *type = Py_TYPE(object);
    core_block_unref(self->block);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- the buffer protocol --- */

static int array_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    core_array *self = (core_array *)object;
    const char *format = core_elements[self->dtype].format;
    view->obj = NULL;
    bool is_flat = self->shape.rank <= 1;
    if (!format) {
        PyErr_Format(PyExc_BufferError, "buffers have no type for %s: take the array by DLPack",
                     core_dtype_name(self->dtype));
        return -1;
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && (flags & PyBUF_C_CONTIGUOUS) != PyBUF_C_CONTIGUOUS &&
        !is_flat) {
        PyErr_SetString(PyExc_BufferError, "the array is row-major");
        return -1;
    }
    *view = (Py_buffer){.buf = self->data,
                        .len = self->n_bytes,
                        .itemsize = (Py_ssize_t)stk_dtype_bytes(self->dtype),
                        .ndim = self->shape.rank};
    if (flags & PyBUF_FORMAT) view->format = (char *)format;
    if ((flags & PyBUF_ND) == PyBUF_ND)
        view->shape = self->side;
    else
        view->ndim = 1;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = self->stride;
    Py_INCREF(object);
    view->obj = object;
    return 0;
}

/* --- methods --- */

static PyObject *array_numpy(PyObject *self, PyObject *none)
{
    (void)none;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *result = numpy ? PyObject_CallMethod(numpy, "asarray", "O", self) : NULL;
    Py_XDECREF(numpy);
    return result;
}

/* Of a number in 16 bits: bfloat16 is the upper half of 32, float16 has 5 bits of exponent. */
static float value_of(uint16_t x, stk_dtype dtype)
{
    uint32_t bits = (uint32_t)x << 16;
    int exponent = x >> 10 & 31, mantissa = x & 1023;
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (dtype == STK_BF16) return value;
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else
        value = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
    return x >> 15 ? -value : value;
}

/* A copy in 32 bits of an array of 16. */
static PyObject *widened(const core_array *self)
{
    PyObject *wide = core_array_copy(NULL, STK_F32, &self->shape);
    float *out = wide ? core_array_data(wide) : NULL;
    const uint16_t *in = self->data;
    for (int64_t i = 0; wide && i < core_count_elements(&self->shape); i++)
        out[i] = value_of(in[i], self->dtype);
    return wide;
}

/* Python's views know no bfloat16, and old ones no float16. */
static PyObject *array_tolist(PyObject *object, PyObject *none)
{
    core_array *self = (core_array *)object;
    bool is_half = self->dtype == STK_F16 || self->dtype == STK_BF16;
    (void)none;
    PyObject *wide = is_half ? widened(self) : NULL, *result = NULL;
    PyObject *view = is_half && !wide ? NULL : PyMemoryView_FromObject(wide ? wide : object);
    if (view) result = PyObject_CallMethod(view, "tolist", NULL);
    Py_XDECREF(view);
    Py_XDECREF(wide);
    return result;
}

static PyObject *array_tobytes(PyObject *object, PyObject *none)
{
    core_array *self = (core_array *)object;
    (void)none;
    return PyBytes_FromStringAndSize(self->data, self->n_bytes);
}

static PyObject *array_copy(PyObject *object, PyObject *none)
{
    core_array *self = (core_array *)object;
    (void)none;
    return core_array_copy(self->data, self->dtype, &self->shape);
}

/* array[a:b] along the first side, as rows of the same memory; array[i] is such a row. */
static PyObject *array_item(PyObject *object, PyObject *key)
{
    core_array *self = (core_array *)object;
    if (self->shape.rank == 0) {
        PyErr_SetString(PyExc_IndexError, "the array has no sides");
        return NULL;
    }
    Py_ssize_t n = self->side[0], from, to, step = 1;
    stk_shape shape = self->shape;
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &from, &to, &step) < 0) return NULL;
        Py_ssize_t count = PySlice_AdjustIndices(n, &from, &to, step);
        if (step != 1) {
            PyErr_SetString(PyExc_IndexError, "slices have a step of 1: take the array by numpy() for others");
            return NULL;
        }
        shape.dim[0] = count;
    } else {
        from = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (from == -1 && PyErr_Occurred()) return NULL;
        if (from < 0) from += n;
        if (from < 0 || from >= n) {
            PyErr_Format(PyExc_IndexError, "row %zd of %zd", from, n);
            return NULL;
        }
        shape.rank--;
        for (int i = 0; i < shape.rank; i++)
            shape.dim[i] = self->shape.dim[i + 1];
        shape.dim[shape.rank] = 0;
    }
    return core_array_new(self->block, (char *)self->data + from * self->stride[0], self->dtype, &shape);
}

static Py_ssize_t array_length(PyObject *object)
{
    core_array *self = (core_array *)object;
    if (self->shape.rank > 0) return self->side[0];
    PyErr_SetString(PyExc_TypeError, "the array has no sides");
    return -1;
}

static PyObject *array_repr(PyObject *object)
{
    core_array *self = (core_array *)object;
    PyObject *shape = core_shape_tuple(&self->shape);
    PyObject *text = shape ? PyUnicode_FromFormat("<stoker.Array %s %S>", core_dtype_name(self->dtype), shape) : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyObject *get_shape(PyObject *self, void *none)
{
    (void)none;
    return core_shape_tuple(&((core_array *)self)->shape);
}

static PyObject *get_dtype(PyObject *self, void *none)
{
    (void)none;
    return PyUnicode_FromString(core_elements[((core_array *)self)->dtype].name);
}

static PyObject *get_nbytes(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromSsize_t(((core_array *)self)->n_bytes);
}

static PyObject *get_ndim(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromLong(((core_array *)self)->shape.rank);
}

static PyObject *get_address(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromVoidPtr(((core_array *)self)->data);
}

/* NumPy asks for it where the buffer protocol has failed, and others that know NumPy's arrays. */
static PyObject *array_as_numpy(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:__array__", names, &dtype, &copy)) return NULL;
    if (((core_array *)object)->dtype == STK_BF16) {
        PyErr_SetString(PyExc_TypeError, "NumPy has no bfloat16: torch.from_dlpack takes it, and the stage {cast: f32} "
                                         "makes float32 of it");
        return NULL;
    }
    PyObject *numpy = PyImport_ImportModule("numpy"), *view = numpy ? PyMemoryView_FromObject(object) : NULL;
    const char *call = copy == Py_True ? "array" : "asarray";
    PyObject *result = view ? PyObject_CallMethod(numpy, call, "OO", view, dtype) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(numpy);
    return result;
}

static PyMethodDef array_methods[] = {
    {"__array__", (PyCFunction)(void (*)(void))array_as_numpy, METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)\n--\n\nA NumPy array over the same memory, or a copy. NumPy has no bfloat16."},
    {"__dlpack__", (PyCFunction)(void (*)(void))core_array_dlpack, METH_VARARGS | METH_KEYWORDS, core_dlpack_doc},
    {"__dlpack_device__", core_array_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
    {"numpy", array_numpy, METH_NOARGS, "numpy()\n--\n\nA NumPy array over the same memory."},
    {"tolist", array_tolist, METH_NOARGS, "tolist()\n--\n\nThe elements as lists of lists."},
    {"tobytes", array_tobytes, METH_NOARGS, "tobytes()\n--\n\nA copy of the bytes, row-major."},
    {"copy", array_copy, METH_NOARGS, "copy()\n--\n\nAn array with memory of its own, to be kept for long."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef array_getset[] = {
    {"shape", get_shape, NULL, "Sides, slowest first, as a tuple.", NULL},
    {"dtype", get_dtype, NULL, "Type of the elements, by NumPy's name: 'float32'.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"ndim", get_ndim, NULL, "Number of sides.", NULL},
    {"address", get_address, NULL, "Where the first element lies.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* A copy of somebody's array. */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"array", NULL};
    PyObject *object;
    core_import import;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Array", names, &object)) return NULL;
    if (!core_import_begin(object, "array", &import)) return NULL;
    PyObject *self = core_array_copy(import.data, import.dtype, &import.shape);
    core_import_end(&import);
    return self;
}

static PyType_Slot array_slots[] = {
    {Py_tp_new, array_new},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_getset},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_item},
    {Py_bf_getbuffer, array_getbuffer},
    {Py_tp_doc, "Array(array)\n--\n\n"
                "An array in memory of Stoker's, row-major, on the CPU. NumPy, PyTorch, JAX and TensorFlow take it "
                "without a copy: numpy.asarray(a), torch.from_dlpack(a), jax.dlpack.from_dlpack(a). Array(a) copies an "
                "array of any of these."},
    {0, NULL}};

static PyType_Spec array_spec = {"stoker.Array", sizeof(core_array), 0, Py_TPFLAGS_DEFAULT, array_slots};

int core_add_arrays(PyObject *module)
{
    core_array_type = core_add_type(module, "Array", &array_spec);
    return core_array_type ? 0 : -1;
}
