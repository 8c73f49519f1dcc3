"""Loaders: batches of a data set as dicts of arrays, made ahead by threads in C."""

import atexit
import functools

from . import _core
from .dataset import Dataset

# Threads that call functions of Python must not outlive it.
atexit.register(_core.close_all)


class Loader:
    """Batches of a data set or of a recipe, as dicts of arrays by field.

    >>> import stoker
    >>> loader = stoker.Loader(stoker.Dataset.arrays(x=stoker.Array(bytes(range(6)))).batch(4))
    >>> for epoch in range(2):
    ...     for batch in loader:
    ...         print(batch["x"].tolist())
    [0, 1, 2, 3]
    [4, 5]
    [0, 1, 2, 3]
    [4, 5]

    Each `for` is an epoch, and while one ends threads already work on the next. Arrays are the memory that the threads wrote
    to, handed on by DLPack and the buffer protocol; it is used again when the last array, tensor or view of it is gone. One
    that is kept never changes; who keeps more than the loader has slots, and three more, is warned once, since then each takes more memory,
    up to the limit and NoMemoryError.

    dataset     a batched Dataset; or a recipe: a path or a dict, of which `part` and `set` ({"batch": 64}) may be given
    threads     worker threads; 0: as many as cores
    slots       batches made ahead; 0: 4 to 16, by their size
    memory      of all buffers, in bytes; 0: a quarter of what is free
    seed        of random stages
    epochs      the loader ends after so many; 0: never
    world_size, rank    of several loaders that share each epoch this is number `rank`
    low_priority        threads yield to those that compute
    """

    def __init__(self, dataset, *, part="train", set=None, threads=None, slots=0, memory=None, seed=None, epochs=0,
                 world_size=0, rank=0, tuning=True, low_priority=False):
        config = {"threads": 0, "seed": 0, "memory": 0}
        if isinstance(dataset, Dataset):
            self._dataset = dataset._core()
        else:
            from .recipe import recipe_file, sets
            with recipe_file(dataset) as path:
                self._dataset, config = _core.recipe(path, sets(set), part)
        for key, value in (("threads", threads), ("seed", seed), ("memory", memory)):
            if value is not None:
                config[key] = value
        self._config = dict(config, slots=slots, shards=world_size, shard=rank, tuning=tuning, low_priority=low_priority)
        self._epochs = epochs
        self._core = None
        self._at = (0, 0)
        self._is_resumed = False
        self._is_closed = False
        self._reopen(0, 0)

    def _reopen(self, epoch, batch):
        if self._core is not None:
            self._core.close()
        epochs = self._epochs
        if self._dataset.count < 0:
            epochs = 1  # of a generator that does not say how much it has
        self._core = None
        self._at = (epoch, batch)
        left = max(epochs - epoch, 0) if epochs and self._dataset.count >= 0 else epochs
        if epochs and left == 0:
            return
        self._core = _core.open(self._dataset, epoch=epoch, batch=batch, epochs=left, **self._config)

    def _position(self):
        return self._core.position if self._core is not None else self._at

    def __iter__(self):
        return self._begin(None)

    def _begin(self, how):
        """An epoch's batches, as next_as makes them of `how`; None: as dicts of arrays."""
        if self._is_closed:
            raise _core.ClosedError("the loader is closed")
        epoch, batch = self._position()
        if self._dataset.count < 0 and epoch + batch > 0:
            self._reopen(0, 0)
        elif batch and not self._is_resumed:
            self._reopen(epoch + 1, 0)  # the rest of an epoch that was left early
        self._is_resumed = False
        if self._core is not None:
            self._core.begin()
        return self._epoch(how)

    def _epoch(self, how=None):
        core = self._core
        take = None if core is None else core.next if how is None else functools.partial(core.next_as, how)
        while core is not None:
            batch = take()
            if batch is None or core is not self._core:
                return
            yield batch
            del batch  # what the caller keeps is the caller's

    def stream(self):
        """Batches of this epoch and all that follow, without an end where `epochs` is 0."""
        while True:
            position = self._position()
            for batch in self._epoch():
                yield batch
                del batch
            if self._position() == position or self._core is None or (self._epochs and self._position()[0] >= self._epochs):
                return

    def __len__(self):
        """Batches in an epoch, of all loaders that share it."""
        n = self._dataset.n_batches
        if n < 0:
            raise TypeError("the source does not say how many samples it has")
        return n

    @property
    def classes(self):
        """Names of the classes of an image folder, by number."""
        return self._dataset.classes

    @property
    def epoch(self):
        """The epoch of the batch that comes next, from 0."""
        return self._position()[0]

    def state_dict(self):
        """Where it stands: two integers, {"epoch": 3, "batch": 17}, of the batch that comes next.

        >>> import stoker
        >>> loader = stoker.Loader(stoker.Dataset.arrays(x=stoker.Array(bytes(range(6)))).shuffle().batch(2))
        >>> first = [next(iter(loader))["x"].tolist()]
        >>> state = loader.state_dict()
        >>> state
        {'epoch': 0, 'batch': 1}
        >>> again = stoker.Loader(stoker.Dataset.arrays(x=stoker.Array(bytes(range(6)))).shuffle().batch(2))
        >>> again.load_state_dict(state)
        >>> sorted(sum(first + [b["x"].tolist() for b in again], []))
        [0, 1, 2, 3, 4, 5]
        """
        epoch, batch = self._position()
        return {"epoch": epoch, "batch": batch}

    def load_state_dict(self, state):
        """Goes on there: the next `for` has the rest of that epoch. With the same seed batches are the same, whatever the threads."""
        if self._is_closed:
            raise _core.ClosedError("the loader is closed")
        epoch, batch = int(state["epoch"]), int(state["batch"])
        if epoch < 0 or batch < 0:
            raise ValueError("epoch %d, batch %d" % (epoch, batch))
        self._reopen(epoch, batch)
        self._is_resumed = True

    def stats(self):
        """What it has done since it was opened: waits, memory, threads, stages with the time of each, records left out."""
        if self._core is None:
            raise _core.ClosedError("the loader is closed")
        return self._core.stats()

    def close(self):
        """Stops the threads. Batches that are in use stay as they are."""
        self._is_closed = True
        if self._core is not None:
            self._at = self._core.position
            self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __repr__(self):
        epoch, batch = self._position()
        return "<stoker.Loader at epoch %d, batch %d%s>" % (epoch, batch, ", closed" if self._is_closed else "")
