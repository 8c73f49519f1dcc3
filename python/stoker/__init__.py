"""Stoker: input pipelines, training, memory plans and a doctor for deep networks. The work is done in C.

    >>> import stoker
    >>> ds = stoker.Dataset.arrays(x=stoker.Array(bytes(range(12))))
    >>> [batch["x"].tolist() for batch in stoker.Loader(ds.skip(2).batch(5))]
    [[2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]

What a network reads: `Dataset`, `stages` and `Loader`; with other frameworks `stoker.torch`, `stoker.tf` and `stoker.jax`, each of
which is imported when it is asked for. Networks: `train` of recipes; `Session` for steps of one's own. docs/python.md tells all of it.
"""

import importlib as _importlib

from . import _core
from ._core import (Array, BusyError, ClosedError, CorruptError, DeviceError, Error, ForkError, InternalError,
                    InvalidError, IoError, LostError, MismatchError, NoDeviceError, NoMemoryError, NoRowError,
                    NotFoundError, StoppedError, UnsupportedError)
from .compiled import native
from .dataset import Dataset, stages
from .loader import Loader

__version__ = _core.version()

# Imported when they are first asked for.
_LATER = {"train": "training", "Run": "training", "Model": "training", "load": "training", "weights": "training",
          "save_weights": "training", "import_weights": "training", "export": "training", "plan": "training",
          "Plan": "training", "from_torch": "conversion", "report": "reporting", "watch": "watching",
          "Session": "session", "Step": "session", "Value": "graph", "grad": "graph", "scope": "graph", "variable": "graph",
          "layers": "building", "networks": "building", "losses": "building", "optimizers": "building", "minimize": "building"}
_MODULES = ("graph", "torch", "tf", "jax")

__all__ = ["Array", "BusyError", "ClosedError", "CorruptError", "Dataset", "DeviceError", "Error", "ForkError", "InternalError",
           "InvalidError", "IoError", "Loader", "LostError", "MismatchError", "NoDeviceError", "NoMemoryError", "NoRowError",
           "NotFoundError", "StoppedError", "UnsupportedError", "native", "stages", *_LATER]


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _LATER:
        value = getattr(_importlib.import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError("module 'stoker' has no attribute '%s'" % name)


def load_ipython_extension(shell):
    """`%load_ext stoker`: the cell magic %%stoker_watch."""
    from .notebook import stoker_watch
    shell.register_magic_function(stoker_watch, "cell", "stoker_watch")


def __dir__():
    return sorted([*globals(), *_MODULES, *_LATER])
