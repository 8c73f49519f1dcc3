from typing import Any

from ._core import (Array as Array, BusyError as BusyError, ClosedError as ClosedError, CorruptError as CorruptError,
                    DeviceError as DeviceError, Error as Error, ForkError as ForkError, InternalError as InternalError,
                    InvalidError as InvalidError, IoError as IoError, LostError as LostError, MismatchError as MismatchError,
                    NoDeviceError as NoDeviceError, NoMemoryError as NoMemoryError, NoRowError as NoRowError,
                    NotFoundError as NotFoundError, StoppedError as StoppedError, UnsupportedError as UnsupportedError)
from .building import (layers as layers, losses as losses, minimize as minimize, networks as networks, optimizers as optimizers)
from .compiled import native as native
from .conversion import from_torch as from_torch
from .dataset import Dataset as Dataset, stages as stages
from .graph import Value as Value, grad as grad, scope as scope, variable as variable
from .loader import Loader as Loader
from .reporting import report as report
from .session import Session as Session, Step as Step
from .training import (Model as Model, Plan as Plan, Run as Run, export as export, import_weights as import_weights, load as load,
                       plan as plan, save_weights as save_weights, train as train, weights as weights)
from .watching import watch as watch

__version__: str

def load_ipython_extension(shell: Any) -> None: ...
