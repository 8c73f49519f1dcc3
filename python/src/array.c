/* Arrays: memory with a type and a shape, handed on without copies by the buffer protocol and by DLPack. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "dlpack.h"

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

static core_block *ref_block(core_block *block)
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

/* --- types of elements --- */

typedef struct dtype_names {
    const char *name;   /* NumPy's */
    const char *format; /* of the struct module; NULL: there is none */
    uint8_t code;       /* DLPack's */
} dtype_names;

static const dtype_names names_of[STK_N_DTYPES] = {
    [STK_F32] = {"float32", "f", DL_FLOAT}, [STK_BF16] = {"bfloat16", NULL, DL_BFLOAT},
    [STK_F16] = {"float16", "e", DL_FLOAT}, [STK_F64] = {"float64", "d", DL_FLOAT},
    [STK_I64] = {"int64", "q", DL_INT},     [STK_I32] = {"int32", "i", DL_INT},
    [STK_I8] = {"int8", "b", DL_INT},       [STK_U8] = {"uint8", "B", DL_UINT},
    [STK_BOOL] = {"bool", "?", DL_BOOL},
};

const char *core_dtype_name(stk_dtype dtype)
{
    return names_of[dtype].name;
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
        found = is_name(p, names_of[i].name) || !strcmp(p, stk_dtype_name((stk_dtype)i));
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

/* Elements of a shape whose sides are all known. */
static int64_t count_elements(const stk_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

/* --- the type --- */

typedef struct array {
    PyObject_HEAD core_block *block;
    void *data;
    stk_dtype dtype;
    stk_shape shape;
    Py_ssize_t n_bytes;
    Py_ssize_t side[STK_MAX_RANK + 1], stride[STK_MAX_RANK + 1]; /* in bytes; for buffers */
} array;

PyTypeObject *core_array_type;

PyObject *core_array_new(core_block *block, void *data, stk_dtype dtype, const stk_shape *shape)
{
    array *self = PyObject_New(array, core_array_type);
    if (!self) return NULL;
    self->block = ref_block(block);
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
    size_t bytes = (size_t)count_elements(shape) * stk_dtype_bytes(dtype);
    core_block *block = core_block_new(bytes, &copy);
    if (!block) return NULL;
    if (data && bytes) memcpy(copy, data, bytes);
    PyObject *self = core_array_new(block, copy, dtype, shape);
    core_block_unref(block);
    return self;
}

void *core_array_data(PyObject *object)
{
    return ((array *)object)->data;
}

static void array_dealloc(PyObject *object)
{
    array *self = (array *)object;
    PyTypeObject *type = Py_TYPE(object);
    core_block_unref(self->block);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- the buffer protocol --- */

static int array_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    array *self = (array *)object;
    const char *format = names_of[self->dtype].format;
    view->obj = NULL;
    bool is_flat = self->shape.rank <= 1;
    if (!format) {
        PyErr_Format(PyExc_BufferError, "buffers have no type for %s: take the array by DLPack",
                     names_of[self->dtype].name);
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

/* --- DLPack --- */

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

static PyObject *lend(array *self, bool is_versioned, bool is_copied)
{
    loan *lent = calloc(1, sizeof(*lent));
    if (!lent) return PyErr_NoMemory();
    lent->block = ref_block(self->block);
    int64_t stride = 1;
    for (int i = self->shape.rank - 1; i >= 0; i--) {
        lent->side[i] = self->shape.dim[i];
        lent->stride[i] = stride;
        stride *= self->shape.dim[i];
    }
    dl_tensor tensor = {.data = self->data,
                        .device = {DL_CPU, 0},
                        .ndim = self->shape.rank,
                        .dtype = {names_of[self->dtype].code, (uint8_t)(8 * stk_dtype_bytes(self->dtype)), 1},
                        .shape = lent->side,
                        .strides = lent->stride};
    PyObject *capsule;
    if (is_versioned) {
        lent->as.versioned = (dl_versioned){.major = 1,
                                            .context = lent,
                                            .deleter = end_versioned,
                                            .flags = is_copied ? DL_FLAG_IS_COPIED : 0,
                                            .tensor = tensor};
        capsule = PyCapsule_New(&lent->as.versioned, "dltensor_versioned", drop_versioned);
    } else {
        lent->as.old = (dl_managed){.tensor = tensor, .context = lent, .deleter = end_old};
        capsule = PyCapsule_New(&lent->as.old, "dltensor", drop_old);
    }
    if (!capsule) {
        core_block_unref(lent->block);
        free(lent);
    }
    return capsule;
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

PyDoc_STRVAR(dlpack_doc, "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
                         "A capsule for from_dlpack, over the same memory; with copy=True over a copy.");
static PyObject *array_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
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
    if (!is_copied) return lend((array *)object, major >= 1, false);
    array *self = (array *)object, *other = (array *)core_array_copy(self->data, self->dtype, &self->shape);
    PyObject *capsule = other ? lend(other, major >= 1, true) : NULL;
    Py_XDECREF(other);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return Py_BuildValue("(ii)", DL_CPU, 0);
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

static PyObject *array_tolist(PyObject *self, PyObject *none)
{
    (void)none;
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *result = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    return result;
}

static PyObject *array_tobytes(PyObject *object, PyObject *none)
{
    array *self = (array *)object;
    (void)none;
    return PyBytes_FromStringAndSize(self->data, self->n_bytes);
}

static PyObject *array_copy(PyObject *object, PyObject *none)
{
    array *self = (array *)object;
    (void)none;
    return core_array_copy(self->data, self->dtype, &self->shape);
}

/* array[a:b] along the first side, as rows of the same memory; array[i] is such a row. */
static PyObject *array_item(PyObject *object, PyObject *key)
{
    array *self = (array *)object;
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
    array *self = (array *)object;
    if (self->shape.rank > 0) return self->side[0];
    PyErr_SetString(PyExc_TypeError, "the array has no sides");
    return -1;
}

static PyObject *array_repr(PyObject *object)
{
    array *self = (array *)object;
    PyObject *shape = core_shape_tuple(&self->shape);
    PyObject *text = shape ? PyUnicode_FromFormat("<stoker.Array %s %S>", names_of[self->dtype].name, shape) : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyObject *get_shape(PyObject *self, void *none)
{
    (void)none;
    return core_shape_tuple(&((array *)self)->shape);
}

static PyObject *get_dtype(PyObject *self, void *none)
{
    (void)none;
    return PyUnicode_FromString(names_of[((array *)self)->dtype].name);
}

static PyObject *get_nbytes(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromSsize_t(((array *)self)->n_bytes);
}

static PyObject *get_ndim(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromLong(((array *)self)->shape.rank);
}

static PyObject *get_address(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromVoidPtr(((array *)self)->data);
}

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, dlpack_doc},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
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

/* A copy of somebody's array; defined below. */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

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

static PyType_Spec array_spec = {"stoker.Array", sizeof(array), 0, Py_TPFLAGS_DEFAULT, array_slots};

int core_add_arrays(PyObject *module)
{
    core_array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    if (!core_array_type) return -1;
    Py_INCREF(core_array_type);
    return PyModule_AddObject(module, "Array", (PyObject *)core_array_type);
}

/* --- somebody's arrays --- */

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
        if (names_of[i].format && names_of[i].format[0] == c &&
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
        found = tensor->dtype.lanes == 1 && tensor->dtype.code == names_of[i].code &&
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
