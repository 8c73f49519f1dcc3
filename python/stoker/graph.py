"""Values, in functions that `Session.compile` makes steps of: operators, functions, and what they begin with.

    >>> import stoker
    >>> from stoker.graph import grad, variable
    >>> def slope(x):
    ...     w = variable("w", (3,), begin=2.0)
    ...     return grad(((x * w) ** 2).sum(), x)
    >>> step = stoker.Session().compile(slope, x=(3,))
    >>> step(stoker.Array(memoryview(bytes(12)).cast("f", (3,)))).tolist()
    [0.0, 0.0, 0.0]
"""

import contextlib
import math
import threading

from . import _core

_here = threading.local()
_NO_CONTENT = "a value has no content while the step is built: give it as an output"


def _graph():
    graph = getattr(_here, "graph", None)
    if graph is None:
        raise RuntimeError("values are made in a function that Session.compile calls")
    return graph


class Value:
    """What an array will be when the step runs: its type and shape are known, its content is not."""

    __slots__ = ("_core", "_id", "_type")
    __array_ufunc__ = None  # NumPy's arrays leave operators to it

    def __init__(self, core, number):
        self._core, self._id, self._type = core, number, None

    def _make(self, number):
        return Value(self._core, number)

    def _look(self):
        if self._type is None:
            self._type = self._core.type_of(self._id)
        return self._type

    @property
    def dtype(self):
        """"float32" and so on."""
        return self._look()[0]

    @property
    def shape(self):
        """A tuple of its sides."""
        return self._look()[1]

    @property
    def ndim(self):
        """How many axes."""
        return len(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("a value without axes has no length")
        return self.shape[0]

    def __repr__(self):
        return "<stoker.Value %s %s>" % (self.dtype, self.shape)

    def __bool__(self):
        raise TypeError("a value has no content while the step is built: use stoker.graph.where, or compare numbers of Python")

    def __float__(self):
        raise TypeError(_NO_CONTENT)

    def __int__(self):
        raise TypeError(_NO_CONTENT)

    __iter__ = None
    __hash__ = object.__hash__

    def _axis(self, axis):
        if not isinstance(axis, int) or not -self.ndim <= axis < self.ndim:
            raise ValueError("axis %r of a value with %d axes" % (axis, self.ndim))
        return axis % self.ndim

    def _axes(self, axis):
        if axis is None:
            return list(range(self.ndim))
        return sorted({self._axis(a) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))})

    # --- element by element ---

    def _other(self, other):
        """Another value of this graph; a number, as this one's type."""
        if isinstance(other, Value):
            if other._core is not self._core:
                raise ValueError("values of two steps: each function makes its own")
            return other._id
        if getattr(other, "shape", None) == () and hasattr(other, "item"):
            other = other.item()  # NumPy's numbers
        if isinstance(other, bool) and self.dtype != "bool" or not isinstance(other, (int, float)):
            raise TypeError("a value, or a number, is wanted, not %s: an array is an input of the step, or a constant" % type(other).__name__)
        if isinstance(other, float) and not self.dtype.startswith(("float", "bfloat")):
            raise TypeError("%r and a value of %s: cast it by astype" % (other, self.dtype))
        return self._core.constant(self.dtype, (), other)

    def _binary(self, name, other, swapped=False):
        a, b = self._id, self._other(other)
        return self._make(self._core.binary(name, *((b, a) if swapped else (a, b))))

    def _unary(self, name):
        return self._make(self._core.unary(name, self._id))

    def __add__(self, other):
        return self._binary("add", other)

    def __sub__(self, other):
        return self._binary("sub", other)

    def __rsub__(self, other):
        return self._binary("sub", other, True)

    def __mul__(self, other):
        return self._binary("mul", other)

    def __truediv__(self, other):
        return self._binary("div", other)

    def __rtruediv__(self, other):
        return self._binary("div", other, True)

    def __pow__(self, other):
        if not isinstance(other, Value) and other in (2, 0.5):
            return self._unary("square" if other == 2 else "sqrt")
        return self._binary("pow", other)

    def __rpow__(self, other):
        return self._binary("pow", other, True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self._unary("neg")

    def __abs__(self):
        return self._unary("abs")

    def __lt__(self, other):
        return self._binary("less", other)

    def __le__(self, other):
        return self._binary("less_equal", other)

    def __gt__(self, other):
        return self._binary("greater", other)

    def __ge__(self, other):
        return self._binary("greater_equal", other)

    def __eq__(self, other):
        return self._binary("equal", other)

    def __ne__(self, other):
        return self._binary("not_equal", other)

    # --- of bool ---

    def _other_bool(self, other):
        if self.dtype != "bool" or isinstance(other, Value) and other.dtype != "bool":
            raise TypeError("~, & and | are for values of bool")
        return self._other(other)

    def __invert__(self):
        return self._make(self._core.binary("equal", self._id, self._other_bool(False)))

    def __and__(self, other):
        return self._make(self._core.select(self._id, self._other_bool(other), self._other_bool(False)))

    def __or__(self, other):
        return self._make(self._core.select(self._id, self._other_bool(True), self._other_bool(other)))

    # --- products ---

    def __matmul__(self, other):
        """[..., M, K] and [K, N], or as many matrices as there are."""
        if not isinstance(other, Value):
            raise TypeError("a product is of two values, not of one and %s" % type(other).__name__)
        return self._make(self._core.matmul(self._id, self._other(other), False, False))

    def astype(self, dtype):
        """As another type of elements."""
        return self._make(self._core.cast(self._id, dtype))

    # --- shapes ---

    def reshape(self, *shape):
        """The same elements; one side may be -1."""
        sides = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._make(self._core.reshape(self._id, tuple(None if side == -1 else side for side in sides)))

    def transpose(self, *axes):
        """The axes in another order; without any, reversed."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = order or range(self.ndim)[::-1]
        return self._make(self._core.transpose(self._id, tuple(self._axis(a) for a in order)))

    @property
    def T(self):
        """The axes reversed."""
        return self.transpose()

    def broadcast_to(self, shape):
        """As an array of that shape has it, by NumPy's rule."""
        return self._make(self._core.broadcast(self._id, tuple(shape)))

    def __getitem__(self, index):
        """Numbers, slices with steps above 0, None and `...`; a value of int32 picks rows of the first axis."""
        if isinstance(index, Value):
            return take(self, index, 0)
        index = index if isinstance(index, tuple) else (index,)
        n = sum(i is not None and i is not Ellipsis for i in index)
        if n > self.ndim or sum(i is Ellipsis for i in index) > 1:
            raise IndexError("%d indices of a value with %d axes" % (n, self.ndim))
        if not any(i is Ellipsis for i in index):
            index += (Ellipsis,)
        at = next(k for k, i in enumerate(index) if i is Ellipsis)
        index = index[:at] + (slice(None),) * (self.ndim - n) + index[at + 1:]
        start, stop, step, shape, axis = [], [], [], [], 0
        for i in index:
            if i is None:
                shape.append(1)
                continue
            side = self.shape[axis]
            axis += 1
            if isinstance(i, slice):
                a, b, s = i.indices(side)
                if s < 1:
                    raise IndexError("a step of %d: steps above 0 only" % s)
                shape.append(len(range(a, b, s)))
                b = max(a, b)
            else:
                if not isinstance(i, int) or not -side <= i < side:
                    raise IndexError("index %r of a side of %d" % (i, side))
                a, b, s = i % side, i % side + 1, 1
            start.append(a)
            stop.append(b)
            step.append(s)
        part = self._make(self._core.slice(self._id, start, stop, step)) if self.ndim else self
        return part if part.shape == tuple(shape) else part.reshape(tuple(shape))

    # --- over axes ---

    def _reduce(self, name, axis, keepdims):
        axes = self._axes(axis)
        result = self
        if axes:
            result = self._make(self._core.reduce(name, self._id, sum(1 << a for a in axes)))
        if keepdims:
            result = result.reshape(tuple(1 if a in axes else side for a, side in enumerate(self.shape)))
        return result

    def sum(self, axis=None, keepdims=False):
        """Over an axis, several, or all."""
        return self._reduce("sum", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        """Over an axis, several, or all."""
        return self._reduce("mean", axis, keepdims)

    def var(self, axis=None, keepdims=False):
        """The mean square of what is off the mean, as NumPy's."""
        return ((self - self.mean(axis, True)) ** 2).mean(axis, keepdims)

    def std(self, axis=None, keepdims=False):
        """The root of `var`."""
        return self.var(axis, keepdims) ** 0.5

    def max(self, axis=None, keepdims=False):
        """Over an axis, several, or all."""
        return self._reduce("max", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        """Over an axis, several, or all."""
        return self._reduce("min", axis, keepdims)

    def prod(self, axis=None, keepdims=False):
        """Over an axis, several, or all."""
        return self._reduce("prod", axis, keepdims)

    def argmax(self, axis=-1):
        """The index of the largest, int32; the first of several."""
        return self._make(self._core.argmax(self._id, self._axis(axis), False))

    def cumsum(self, axis=-1):
        """Sums of the elements up to each."""
        return self._make(self._core.cumsum(self._id, self._axis(axis), False, False))


# --- functions of values ---

def exp(x):
    """e to the x."""
    return x._unary("exp")


def log(x):
    """The natural logarithm."""
    return x._unary("log")


def sqrt(x):
    """The square root."""
    return x._unary("sqrt")


def tanh(x):
    """The hyperbolic tangent."""
    return x._unary("tanh")


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return x._unary("sigmoid")


def relu(x):
    """max(x, 0)."""
    return x._unary("relu")


def sign(x):
    """-1, 0 or 1."""
    return x._unary("sign")


def erf(x):
    """The error function."""
    return x._unary("erf")


def sin(x):
    """The sine."""
    return x._unary("sin")


def cos(x):
    """The cosine."""
    return x._unary("cos")


def floor(x):
    """The next whole number below."""
    return x._unary("floor")


def ceil(x):
    """The next whole number above."""
    return x._unary("ceil")


def log1p(x):
    """log(1 + x), exact near 0."""
    return x._unary("log1p")


def expm1(x):
    """exp(x) - 1, exact near 0."""
    return x._unary("expm1")


def softmax(x):
    """Over the last axis."""
    return x._unary("softmax")


def maximum(a, b):
    """The larger one, element by element."""
    return a._binary("max", b) if isinstance(a, Value) else b._binary("max", a)


def minimum(a, b):
    """The smaller one, element by element."""
    return a._binary("min", b) if isinstance(a, Value) else b._binary("min", a)


def where(condition, a, b):
    """a where the condition, a value of bool, holds; else b. One of them may be a number."""
    like = a if isinstance(a, Value) else b
    if not isinstance(like, Value):
        raise TypeError("a or b is a value")
    return like._make(like._core.select(like._other(condition), like._other(a), like._other(b)))


def concatenate(values, axis=0):
    """One behind the other."""
    values = list(values)
    return values[0]._make(values[0]._core.concat([values[0]._other(v) for v in values], values[0]._axis(axis)))


def stack(values, axis=0):
    """Along a new axis."""
    values = list(values)
    axis = axis % (values[0].ndim + 1)
    return concatenate([v[(slice(None),) * axis + (None,)] for v in values], axis)


def take(x, ids, axis=0):
    """numpy.take: ids int32, which take the axis' place. One that is out of range fails the run."""
    return x._make(x._core.gather(x._id, x._other(ids), x._axis(axis)))


def attention(q, k, v, mask=None, causal=False, scale=0.0, attn_mask=None):
    """softmax(q k' scale) v for each head: q [N,T,H,D], k and v [N,S,H,D]; scale 0: 1 / sqrt(D). mask: bool [N,S], False: absent.

    attn_mask: [T,S], or what broadcasts to [N,H,T,S]: bool, False: absent, or numbers that are added to the products, as in PyTorch.
    With it the T x S weights of each head are kept for the gradient, since it is made of products and a softmax; else they never are.
    A query that sees no key gives 0.
    """
    if attn_mask is None:
        return q._make(q._core.attention(q._id, q._other(k), q._other(v), -1 if mask is None else q._other(mask), causal, scale))
    weights = (q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1)) * (scale or q.shape[3] ** -0.5)
    seen = [] if mask is None else [mask[:, None, None]]
    if causal:
        seen.append(arange(q.shape[1])[:, None] >= arange(k.shape[1]))
    if isinstance(attn_mask, Value) and attn_mask.dtype == "bool":
        seen.append(attn_mask)
    else:
        weights = weights + attn_mask
    for keys in seen:
        weights = where(keys, weights, -1e30)
    weights = softmax(weights)
    for keys in seen:
        weights = where(keys, weights, 0.0)
    return (weights @ v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def pad(x, widths, value=0.0):
    """widths: (before, after) for each axis."""
    return x._make(x._core.pad(x._id, [w[0] for w in widths], [w[1] for w in widths], value))


def grad(y, x):
    """d(sum of y) / dx: a value like others. x: a value, or several.

    It may be differentiated again, but for convolutions, pooling, softmax, cross-entropy, norms, attention and recurrent layers.
    """
    if isinstance(x, (tuple, list)):
        return type(x)(grad(y, one) for one in x)
    return y._make(y._core.grad(y._id, y._other(x)))


# --- leaves ---

def variable(name, shape, begin=0.0, dtype="float32", trainable=True):
    """Kept between runs, and shared by all steps of the session that name it.

    Its name has those of the scopes around it in front. A function that needs it twice keeps the value: a name is given once.
    begin: a number; ("normal", deviation); ("uniform", a), within [-a, a); or "he": normal with sqrt(2 / all sides but the last).
    """
    kind, number = "constant", begin
    if begin == "he":
        kind, number = "normal", math.sqrt(2.0 / max(1, math.prod(tuple(shape)[:-1])))
    elif isinstance(begin, (tuple, list)):
        kind, number = begin
    graph = _graph()
    name = ".".join([*_here.scopes, name])
    return Value(graph, graph.variable(name, dtype, tuple(shape), kind, float(number), trainable))


def constant(content, shape=None, dtype=None):
    """A number, as often as the shape has room, float32 unless dtype says otherwise; or an array as it is, which the step keeps a copy of."""
    graph = _graph()
    if isinstance(content, (int, float)) or getattr(content, "shape", None) == ():
        return Value(graph, graph.constant(dtype or "float32", tuple(shape or ()), content))
    if shape is not None or dtype is not None:
        raise TypeError("an array has a shape and a type of its own: change them by reshape, broadcast_to and astype")
    array = _core.Array(content)
    # Bound in each run like the function's inputs, whose names have no dots.
    number = graph.input("constant.%d" % len(_here.constants), array.dtype, array.shape)
    _here.constants.append(array)
    return Value(graph, number)


def arange(n, dtype="int32"):
    """0, 1, ... n-1."""
    graph = _graph()
    return Value(graph, graph.iota(dtype, (n,), 0))


def _need_training(what):
    if not getattr(_here, "training", True):
        raise ValueError("%s is for steps that are compiled with training=True" % what)


def assign(variable, x):
    """At the end of each run the variable becomes x, in steps that are compiled with training=True; whoever reads it in the run sees the old content.

    As an output of the step itself, a variable is what it has become.
    """
    _need_training("assign")
    variable._core.update(variable._id, variable._other(x))


@contextlib.contextmanager
def scope(name):
    """Parameters that are made within have "name." in front of their names."""
    graph = _graph()
    graph.scope(name)
    _here.scopes.append(name)
    try:
        yield
    finally:
        _here.scopes.pop()
        # What was raised in between is what the caller is told.
        with contextlib.suppress(_core.Error):
            graph.scope(None)


@contextlib.contextmanager
def float32():
    """What is made within computes in float32, whatever the step's precision."""
    graph = _graph()
    graph.f32(True)
    try:
        yield
    finally:
        with contextlib.suppress(_core.Error):
            graph.f32(False)
