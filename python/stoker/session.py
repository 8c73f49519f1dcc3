"""Networks and training steps of one's own: functions of values are compiled once, and then run on arrays.

    >>> import stoker
    >>> from stoker import layers, losses, optimizers
    >>> def train(x, y):
    ...     logits = layers.dense(layers.relu(layers.dense(x, 16)), 3)
    ...     loss = losses.cross_entropy(logits, y)
    ...     stoker.minimize(loss, optimizers.adam(lr=0.01))
    ...     return loss
    >>> session = stoker.Session(seed=1)
    >>> step = session.compile(train, x=(4, 2), y=((4,), "int32"), training=True)
    >>> x = stoker.Array(memoryview(bytes(32)).cast("f", (4, 2)))
    >>> y = stoker.Array(memoryview(bytes(16)).cast("i", (4,)))
    >>> first, last = [step(x, y) for _ in range(20)][::19]
    >>> first > last
    True

In such a function a value has Python's operators (`x @ w + b`), NumPy's names (`x.mean(axis=1)`, `x[:, 0]`) and gradients (`grad`).
"""

import os

from . import _core
from .graph import Value, _here


def _spec(given):
    """(shape, type of elements) of a shape, of both, or of an array."""
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return tuple(int(side) for side in given.shape), str(given.dtype)
    if isinstance(given, (tuple, list)):
        if len(given) == 2 and isinstance(given[0], (tuple, list)):
            return tuple(given[0]), given[1]
        return tuple(given), "float32"
    raise TypeError("an input is a shape, (shape, dtype), or an array, not %r" % (given,))


class Step:
    """A compiled function. Call it with arrays, by position or by name; it gives what the function gave, as arrays and numbers."""

    def __init__(self, core, names, outputs, constants=()):
        self._core, self._names, self._outputs, self._constants = core, names, outputs, list(constants)
        # Optimisers have outputs, too.
        self._numbers = [i for i, (name, _, _) in enumerate(core.outputs()) if name.startswith("output_")]

    def __call__(self, *arrays, **named):
        if len(arrays) > len(self._names):
            raise TypeError("%d arrays for the inputs %s" % (len(arrays), ", ".join(self._names) or "(none)"))
        given = dict(zip(self._names, arrays))
        for name, array in named.items():
            if name not in self._names or name in given:
                raise TypeError("the step's inputs are %s; '%s' is none, or given twice" % (", ".join(self._names), name))
            given[name] = array
        missing = [name for name in self._names if name not in given]
        if missing:
            raise TypeError("the step's inputs are %s; %s is missing" % (", ".join(self._names), ", ".join(missing)))
        values = self._core.run([given[name] for name in self._names] + self._constants, self._numbers)
        return _unflatten(self._outputs, iter(values))

    @property
    def inputs(self):
        """{name: (shape, dtype)}"""
        return {name: (shape, dtype) for name, dtype, shape in self._core.inputs()[:len(self._names)]}

    def set_lr(self, lr):
        """The learning rate of the runs from now on."""
        self._core.rate(lr)

    def __repr__(self):
        return "<stoker.Step of %s>" % ", ".join("%s %s %s" % (n, d, s) for n, (s, d) in self.inputs.items())


def _flatten(outputs, found):
    """The values in dicts, tuples and lists, in order."""
    if isinstance(outputs, Value):
        found.append(outputs)
    elif isinstance(outputs, dict):
        for value in outputs.values():
            _flatten(value, found)
    elif isinstance(outputs, (tuple, list)):
        for value in outputs:
            _flatten(value, found)
    elif outputs is not None:
        raise TypeError("the function gives values, or dicts, tuples and lists of them, not %s" % type(outputs).__name__)


def _unflatten(outputs, values):
    if outputs is None:
        return None
    if isinstance(outputs, dict):
        return {key: _unflatten(value, values) for key, value in outputs.items()}
    if isinstance(outputs, (tuple, list)):
        return type(outputs)(_unflatten(value, values) for value in outputs)
    return next(values)


def _shell(outputs):
    """The same form without the values, which hold the graph."""
    if isinstance(outputs, dict):
        return {key: _shell(value) for key, value in outputs.items()}
    if isinstance(outputs, (tuple, list)):
        return [_shell(value) for value in outputs] if isinstance(outputs, list) else tuple(_shell(v) for v in outputs)
    return None if outputs is None else True


class Session:
    """A device, and the variables of all steps that are compiled for it: what two steps call alike is one variable.

    device      "cpu", "cuda", "opencl", "tpu"; `stoker devices` lists what is here
    threads     0: as many as cores
    seed        of variables' first content, and of dropout

    After an error of a run, as of a label that is no class, the session goes on with its variables as they were before, but for batch
    norms' running statistics.
    """

    def __init__(self, device="cpu", *, threads=0, seed=0):
        self._core = _core.session(device, threads, seed)
        self._has_steps = False

    def compile(self, function, *, training=False, **inputs):
        """The function, called once with values, as a `Step`.

        inputs: by the function's names, a shape (float32), (shape, dtype), or an array like those to come. training: batch norm goes
        by the batch, and dropout drops.
        """
        graph = _core.graph()
        before, constants = dict(vars(_here)), []
        _here.graph, _here.scopes, _here.training, _here.constants = graph, [], training, constants
        try:
            values = {}
            for name, given in inputs.items():
                if name in ("lr", "step", "seed", "sample"):
                    raise ValueError("'%s' is an input that the session sets itself: call yours otherwise" % name)
                shape, dtype = _spec(given)
                if any(side is None or side == -1 for side in shape):
                    raise ValueError("input '%s': a step has one shape, and %s is open" % (name, shape))
                values[name] = Value(graph, graph.input(name, dtype, shape))
            outputs = function(**values)
            found = []
            _flatten(outputs, found)
            for i, value in enumerate(found):
                if value._core is not graph:
                    raise ValueError("output %d is a value of another step" % i)
                graph.output("output_%d" % i, value._id)
        finally:
            vars(_here).clear()
            vars(_here).update(before)
        step = self._core.compile(graph, training)
        self._has_steps = True
        return Step(step, list(inputs), _shell(outputs), constants)

    def weights(self):
        """The variables of the steps so far by name, as arrays; not what optimisers keep."""
        return dict(self._core.weights())

    def set_weights(self, weights):
        """Arrays by name, of the types and shapes that `weights` gives; others stay."""
        for name, array in weights.items():
            self._core.set_weight(name, array)

    def save(self, path):
        """All weights as a file in safetensors."""
        self._core.save(os.fspath(path))

    def load(self, path, leave=None):
        """Of the steps so far, from such a file, or one with PyTorch's names and layouts.

        leave: parts of names, comma-separated, that stay as they are.
        """
        if not self._has_steps:
            raise ValueError("weights are those of steps: compile one first")
        self._core.load(os.fspath(path), leave)

    def close(self):
        """Gives the memory back; steps cannot be run any more."""
        self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
