"""Functions of machine code as stages and sources: workers call them side by side, without Python's lock."""


class native:
    """A compiled function for `Dataset.map` and `Dataset.function`, which otherwise call Python.

    function: what Numba's `cfunc` made, a function of a cffi or ctypes library, or an address. It must be this, in C:

        int32_t stage(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed);
        int32_t sample(int64_t i, void *const *out);

    A stage reads one sample's array and writes another; both are whole and in C's order, and each shape has as many sides
    as the field. seed is 0 but for `random=True`, and the only source of chance. The second makes sample i, with `out` of
    each field in their order. Both return 0, or a number that the error of a corrupt record then names. Threads call them
    at the same time; nobody looks whether they keep to their memory, or read the field's dtype. Python's exceptions, as
    Numba's code may raise, do not get out: return a number.

    >>> import ctypes
    >>> import stoker
    >>> kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)))
    >>> @kind
    ... def square(i, out):                                        # ctypes takes the lock; compiled code does not
    ...     out[0][0] = i * i
    ...     return 0
    >>> ds = stoker.Dataset.function(stoker.native(square), 4, {"y": ("int32", ())})
    >>> next(iter(stoker.Loader(ds.batch(4))))["y"].tolist()
    [0, 1, 4, 9]
    """

    def __init__(self, function):
        self.function = function
        self.address = _address(function)
        self.__name__ = str(getattr(function, "__name__", "native"))
        if not 0 < self.address < 1 << 64:
            raise ValueError("%r is at no address" % (function,))

    def __repr__(self):
        return "native(%s at %#x)" % (self.__name__, self.address)


def address_of(function, n_arguments=None):
    """0 where it is Python's. n_arguments: what it takes, where that can be seen."""
    if not isinstance(function, native):
        return 0
    takes = _count(function.function)
    if n_arguments is not None and takes not in (None, n_arguments):
        raise TypeError("%r takes %d arguments: a stage takes 5, and a function of a sample's number 2" % (function, takes))
    return function.address


def _count(function):
    """Of arguments; None: not known."""
    signature = getattr(function, "_sig", None)  # Numba's
    kinds = getattr(signature, "args", None) or getattr(function, "argtypes", None) or getattr(type(function), "_argtypes_", None)
    return len(kinds) if isinstance(kinds, (tuple, list)) and kinds else None


def _address(function):
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(getattr(function, "address", None), int):  # Numba's
        return function.address
    kind = type(function)
    if kind.__module__ == "_cffi_backend":
        import _cffi_backend
        return int(_cffi_backend.FFI().cast("uintptr_t", function))
    import ctypes
    if isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise TypeError("a function of Numba's cfunc, cffi or ctypes, or an address, not %r; a function of Python is passed as it is" % (function,))
