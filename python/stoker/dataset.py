"""Data sets: a source, an order of samples, stages. See docs/order.md for what the calls mean, and docs/sources.md for sources."""

import os

from . import _core
from ._names import Names
from .compiled import address_of

_ON_ERROR = {"stop": 0, "skip": 1, "replace": 2}
_CACHES = {"none": 0, "memory": 1, "disk": 2, "auto": 3}
_POLICIES = {"off": -1, "auto": 0, "file": 1, "data": 2}
# Of the default of a limit that is none.
_MOST = float("inf")


def _plain(value):
    """What JSON writes: paths as texts, tuples and NumPy's numbers as they are."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "item"):
        return value.item()
    raise TypeError("%r cannot stand in a recipe" % (value,))


def _text(value):
    """A part of a recipe as text; a text is taken for the name that stands alone."""
    import json  # takes as long to import as all of Stoker
    return json.dumps(_plain(value))


class _Stages(Names):
    """Stages by their names in recipes, with their keys as arguments: docs/recipe.md has all of them.

    >>> from stoker import stages
    >>> stages.decode()
    'decode'
    >>> stages.random_crop(size=32, pad=4)
    {'random_crop': {'size': 32, 'pad': 4}}
    >>> stages.normalize("imagenet")
    {'normalize': 'imagenet'}
    """

    def _function(self, name):
        def stage(*value, **keys):
            if len(value) > 1 or (value and keys):
                raise TypeError("stage '%s' takes one value, or keys by their names" % name)
            if value:
                return {name: value[0]}
            return {name: keys} if keys else name
        return stage


stages = _Stages("stage")


class Dataset:
    """A data set. It never changes: each call gives another one, and nothing is opened before it is needed.

    >>> import stoker
    >>> numbers = stoker.Dataset.arrays(x=stoker.Array(bytes(range(10))))
    >>> evens = numbers.shard(2, 0)
    >>> len(numbers), len(evens)
    (10, 5)

    Methods that have a namesake in tf.data mean the same. Errors come when it is built, by `build`, `len` or a loader.
    """

    __slots__ = ("_source", "_parent", "_call", "_built", "__weakref__")

    def __init__(self, source, parent=None, call=None):
        self._source = source  # makes a _core.Dataset; None where there is a parent
        self._parent = parent
        self._call = call  # what is done to the parent's
        self._built = None

    # --- sources ---

    @classmethod
    def source(cls, kind=None, /, **keys):
        """A source by its name in recipes: `Dataset.source("tar", files="shards/*.tar")`, or a recipe's `{...}` as it is.

        Every source of docs/sources.md that reads files, and `synthetic`:

        >>> import stoker
        >>> len(stoker.Dataset.source("synthetic", fields={"image": [8, 8, 3]}, samples=100, classes=10))
        100
        """
        if isinstance(kind, dict):
            text = _text(kind)
        else:
            text = _text({kind: keys})
        return cls(lambda: _core.parse(text))

    @classmethod
    def images(cls, folder):
        """A folder with one sub-folder for each class. Fields: "image" (a JPEG, PNG or WebP file), "label" int32 []."""
        text = _text({"images": os.fspath(folder)})
        return cls(lambda: _core.parse(text))

    @classmethod
    def files(cls, paths, **keys):
        """JPEG, PNG and WebP files: paths, folders and patterns, one or a list. `by="folder"` or `labels=FILE` for labels."""
        paths = [os.fspath(p) for p in paths] if isinstance(paths, (list, tuple)) else os.fspath(paths)
        text = _text({"files": {"paths": paths, **keys}})
        return cls(lambda: _core.parse(text))

    @classmethod
    def tfrecord(cls, files, features):
        """Shards of tf.train.Example: `features={"image": {"dtype": "u8", "shape": [28, 28, 1]}, "label": {"dtype": "i64"}}`."""
        text = _text({"tfrecord": {"files": files, "parse_example": features}})
        return cls(lambda: _core.parse(text))

    @classmethod
    def tar(cls, files, **keys):
        """Tar shards in WebDataset's naming: one path or pattern, or a list."""
        text = _text({"tar": {"files": files, **keys}})
        return cls(lambda: _core.parse(text))

    @classmethod
    def arrays(cls, arrays=None, /, **fields):
        """Arrays in memory, by field: a sample is a row of each. tf.data's from_tensor_slices.

        Takes NumPy, PyTorch and any other arrays with a buffer or DLPack, row-major, and borrows their memory.

        >>> import stoker
        >>> x = stoker.Array(memoryview(bytes(range(12))).cast("B", (4, 3)))
        >>> batch = next(iter(stoker.Loader(stoker.Dataset.arrays(x=x).batch(2))))
        >>> batch["x"]
        <stoker.Array uint8 (2, 3)>
        """
        fields = {**(arrays or {}), **fields}
        items = list(fields.items())
        if not items:
            raise TypeError("arrays by field are wanted: Dataset.arrays(image=x, label=y)")
        return cls(lambda: _core.arrays(items))

    from_tensor_slices = arrays

    @classmethod
    def function(cls, function, count, fields=None):
        """`function(i)` makes sample i, 0 <= i < count: a dict of arrays and numbers, or a tuple in the order of the fields.

        fields: {"x": ("float32", (3,)), ...}; where they are not given, sample 0 tells. Called by one thread at a time, but
        for compiled functions: `stoker.native`.

        >>> import stoker
        >>> squares = stoker.Dataset.function(lambda i: {"y": i * i}, 5, {"y": ("int64", ())})
        >>> next(iter(stoker.Loader(squares.batch(5))))["y"].tolist()
        [0, 1, 4, 9, 16]
        """
        address = address_of(function, 2)
        if fields is None and address:
            raise TypeError("'fields' say what a compiled function makes")
        fields = _fields(fields) if fields is not None else _fields_of(function(0))
        return cls(lambda: _core.function(count, fields, function, address))

    @classmethod
    def generator(cls, function, fields, count=0):
        """`function(epoch)` gives an iterable of samples, as `function` makes them. count: of an epoch; 0: not known.

        One sample comes after the other, so it cannot be shuffled or filtered: docs/custom.md. Without count a loader reads
        one epoch.

        >>> import stoker
        >>> ds = stoker.Dataset.generator(lambda epoch: ({"x": i} for i in range(3)), {"x": ("int32", ())})
        >>> [b["x"].tolist() for b in stoker.Loader(ds.batch(2))]
        [[0, 1], [2]]
        """
        fields = _fields(fields)
        return cls(lambda: _core.generator(count, fields, function))

    @classmethod
    def recipe(cls, recipe, part="train", set=None):
        """The batched data set of a recipe's part. A `Loader` takes the recipe itself, with its threads, seed and memory."""
        from .recipe import recipe_file, sets

        def build():
            with recipe_file(recipe) as path:
                return _core.recipe(path, sets(set), part)[0]

        return cls(build)

    # --- several as one ---

    @classmethod
    def _combine(cls, kind, datasets, weights=(), cycle=1, block=1, stop=False, seed=0):
        parts = list(datasets)
        return cls(lambda: _core.combine(kind, [d._make() for d in parts], list(weights), cycle, block, stop, seed))

    def concatenate(self, *others):
        """One data set after the other."""
        return self._combine("concatenate", (self, *others))

    @classmethod
    def zip(cls, *datasets):
        """Sample i is sample i of each, with the fields of all."""
        return cls._combine("zip", datasets)

    @classmethod
    def interleave(cls, datasets, cycle_length=None, block_length=1):
        """`block_length` samples of each of `cycle_length` data sets in turn."""
        datasets = list(datasets)
        return cls._combine("interleave", datasets, cycle=cycle_length or len(datasets), block=block_length)

    @classmethod
    def mix(cls, datasets, weights=None, stop_on_empty_dataset=False, seed=0):
        """Each sample drawn from one of them by weight: tf.data's sample_from_datasets."""
        datasets = list(datasets)
        weights = list(weights) if weights is not None else [1.0] * len(datasets)
        if len(weights) != len(datasets):
            raise ValueError("%d weights for %d data sets" % (len(weights), len(datasets)))
        return cls._combine("mix", datasets, weights, stop=stop_on_empty_dataset, seed=seed)

    sample_from_datasets = mix

    # --- order ---

    def _then(self, call):
        return type(self)(None, self, call)

    def shuffle(self, buffer_size=None, seed=0, reshuffle_each_iteration=True):
        """A new order for each epoch, of everything. buffer_size: as tf.data's, for records that lie together on slow disks."""
        return self._then(lambda d: d.shuffle(seed, buffer_size or 0, not reshuffle_each_iteration))

    def take(self, count):
        """The first samples."""
        return self._then(lambda d: d.take(count))

    def skip(self, count):
        """All but the first samples."""
        return self._then(lambda d: d.skip(count))

    def repeat(self, count):
        """Passes as one epoch. Loaders go on for ever without it."""
        return self._then(lambda d: d.repeat(count))

    def shard(self, num_shards, index, policy="data"):
        """Every num_shards-th sample from number index on. policy: "data", "file", "auto" or "off", docs/order.md."""
        number = _choice("policy", policy, _POLICIES)
        return self._then(lambda d: d.shard(number, num_shards, index))

    def split(self, share, rest=False, seed=0):
        """Each record with chance `share`; rest: the others, of the same seed. Comes before other orders."""
        return self._then(lambda d: d.split(share, rest, seed))

    def filter(self, function=None, *, field=None, keep=None, drop=None, least=None, most=None, min_bytes=None,
               max_bytes=None, min_length=None, max_length=None):
        """Keeps the records for which a function of a dict of fields is true, or those that obey rules.

        The function sees what the source gives, before any stage; all records are asked once, when it is built. Rules are
        faster: `filter(keep=[0, 1])` for labels, `filter(field="image", min_bytes=2000)`.

        >>> import stoker
        >>> ds = stoker.Dataset.arrays(label=stoker.Array(bytes([0, 1, 2, 1])))
        >>> len(ds.filter(drop=1)), len(ds.filter(lambda sample: sample["label"].tolist() == 1))
        (2, 2)
        """
        if function is not None:
            return self._then(lambda d: d.filter(function))
        if keep is not None and drop is not None:
            raise TypeError("either 'keep' or 'drop'")
        values = keep if keep is not None else drop
        if isinstance(values, int):
            values = [values]
        values = None if values is None else [int(v) for v in values]
        limits = [-1 if v is None else v for v in (min_bytes, max_bytes, min_length, max_length)]
        low, high = -_MOST if least is None else least, _MOST if most is None else most
        return self._then(lambda d: d.filter_by(field, values, drop is not None, low, high, *limits))

    def window(self, size, shift=None, stride=1, drop_remainder=True):
        """`size` samples, one after the other, as one with a side more."""
        return self._then(lambda d: d.window(size, shift or 0, stride, drop_remainder))

    def unbatch(self):
        """The rows of each sample as samples."""
        return self._then(lambda d: d.unbatch())

    def pack(self, length, fields=(), cut=False, value=0.0):
        """Several short sequences in one row of `length`, with "segment" and "position"."""
        names = [os.fsencode(f) for f in fields]
        return self._then(lambda d: d.pack(length, names, cut, value))

    # --- batches, last of all ---

    def batch(self, batch_size, drop_remainder=False):
        """Batches. A short last batch has as many rows as there are samples."""
        return self._then(lambda d: d.batch(batch_size, drop_remainder))

    def padded_batch(self, batch_size, drop_remainder=False, *, field=None, length=0, max_length=0, value=0.0):
        """Batches of samples of different lengths, padded to the longest or to `length`; true lengths come as "NAME.length"."""
        return self._then(lambda d: d.padded_batch(batch_size, drop_remainder, (field, length, max_length, value)))

    def bucket_by_sequence_length(self, bucket_boundaries=(), bucket_batch_sizes=(), *, tokens=0, field=None,
                                  pad_to_bucket_boundary=False, drop_remainder=False, max_length=0, value=0.0):
        """Padded batches of samples of like length; `tokens`: as many samples as make so many elements, instead of boundaries."""
        boundaries, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        padding = (None, 0, max_length, value)
        return self._then(lambda d: d.bucket_batch(field, boundaries, sizes, tokens, pad_to_bucket_boundary,
                                                   drop_remainder, padding))

    bucket = bucket_by_sequence_length

    # --- work ---

    def map(self, stage, field=None, *, output=None, random=False, name=None, images=None):
        """Adds a stage, or a list of them, to a field ("image", or what `field` says).

        By its name in recipes, which is fast: `map("decode")`, `map(stages.resize(shorter=256))`. With a list of fields the
        same draws are applied to all, the first `images` of them (1) being images and the others masks.

        Or a function of one sample's array, which gives an array: it is called under Python's lock, one at a time; compiled
        functions (`stoker.native`) side by side, without it.
        output: (dtype, shape) of what it gives, where that is not like its input. random: it is called with a number
        besides, its only source of chance: `lambda x, seed: ...`.

        >>> import stoker
        >>> ds = stoker.Dataset.arrays(x=stoker.Array(bytes([1, 2, 3])))
        >>> double = ds.map(lambda x: memoryview(bytes([2 * x.tobytes()[0]])).cast("B", ()), "x")
        >>> next(iter(stoker.Loader(double.batch(3))))["x"].tolist()
        [2, 4, 6]
        """
        if isinstance(stage, (list, tuple)):
            dataset = self
            for one in stage:
                dataset = dataset.map(one, field, output=output, random=random, name=name, images=images)
            return dataset
        if isinstance(field, (list, tuple)):
            if address_of(stage) or callable(stage):
                raise TypeError("a function works on one field: of several, stages by their names in recipes are applied together")
            names, text = [os.fsencode(f) for f in field], _text(stage)
            n_images = 1 if images is None else images
            return self._then(lambda d: d.apply_together(names, n_images, text))
        if isinstance(stage, (str, dict)):
            if output is not None or random:
                raise TypeError("'output' and 'random' are for functions")
            text = _text(stage)
            return self._then(lambda d: d.apply(field, text))
        address = address_of(stage, 5)
        if not callable(stage) and not address:
            raise TypeError("a stage by its name in recipes, or a function, not %r" % (stage,))
        dtype, shape = _kind(output, "'output'") if output is not None else (None, None)
        called = (name or getattr(stage, "__name__", "function"))[:60]
        return self._then(lambda d: d.map(field, called, stage, address, dtype, shape, random))

    def rename(self, field, name):
        """Gives a field another name."""
        return self._then(lambda d: d.rename(field, name))

    def cache(self, kind="memory", path=None):
        """Keeps what does not change from epoch to epoch: "memory", "disk" or "auto"."""
        number = _choice("kind", kind, _CACHES)
        return self._then(lambda d: d.cache(number, None if path is None else os.fspath(path)))

    def on_error(self, what, most=0):
        """What becomes of corrupt records: "stop", "skip" or "replace". most: 0 is 1 %, at least 100; -1 any number."""
        number = _choice("what", what, _ON_ERROR)
        return self._then(lambda d: d.on_error(number, most))

    # --- what it is ---

    def explain(self):
        """What it is made of, what it promises and what it needs, of a batched data set; notebooks draw it. Reads some records.

        >>> import stoker
        >>> ds = stoker.Dataset.arrays(x=stoker.Array(bytes(100))).shuffle(seed=1).map({"scale": "1/255"}, "x").batch(32)
        >>> about = ds.explain()
        >>> about["batches"], about["order"], [stage["name"] for stage in about["stages"]]
        (4, ['shuffle of all 100 samples, another for each epoch'], ['scale'])
        """
        from .showing import Explanation
        return Explanation(self._core().explain())

    def sheet(self, rows=4, columns=8, field=None):
        """A picture of the first samples of an epoch with their labels, as the network will see them; notebooks show it.

        field: of the images ("image").
        """
        import tempfile

        from .showing import Sheet
        with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
            path = os.path.join(folder, "sheet.png")
            told = self._core().sheet(path, rows, columns, field)
            with open(path, "rb") as file:
                return Sheet(file.read(), *told)

    def _make(self):
        """A data set in C of its own."""
        calls, node = [], self
        while node._parent is not None:
            calls.append(node._call)
            node = node._parent
        built = node._source()
        for call in reversed(calls):
            call(built)
        return built

    def build(self):
        """Opens the source and makes the data set, once; raises what is wrong with it. Returns itself."""
        if self._built is None:
            self._built = self._make()
        return self

    def _core(self):
        return self.build()._built

    def __len__(self):
        """Batches in an epoch where there are batches, else samples."""
        built = self._core()
        n = built.n_batches if built.batch_size or built.n_batches else built.count
        if n < 0:
            raise TypeError("the source does not say how many samples it has")
        return n

    @property
    def n_samples(self):
        """Samples in an epoch; -1: not known."""
        return self._core().count

    @property
    def batch_size(self):
        """Samples in a batch; 0: there are no batches."""
        return self._core().batch_size

    @property
    def classes(self):
        """Names of the classes of an image folder, by number."""
        return self._core().classes

    @property
    def note(self):
        """What opening found that does no harm."""
        return self._core().note

    def field(self, name, probe=True):
        """(dtype, shape) of one sample's field after all stages; sides that vary are None, or the first record's with probe.

        >>> import stoker
        >>> stoker.Dataset.arrays(x=stoker.Array(bytes(4))).map(stoker.stages.cast("f32"), "x").field("x")
        ('float32', ())
        """
        return self._core().field(name, probe)

    def __iter__(self):
        """One epoch of a loader of its own."""
        from .loader import Loader
        with Loader(self, epochs=1) as loader:
            yield from loader


def _choice(what, value, choices):
    try:
        return choices[value]
    except (KeyError, TypeError):
        raise ValueError("'%s' is %s, not %r" % (what, ", ".join(map(repr, choices)), value)) from None


def _kind(value, what):
    """(dtype, shape) as a user gave it."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], (tuple, list)):
        return value[0], tuple(value[1])
    raise TypeError('%s is (dtype, shape), as ("float32", (3,)), not %r' % (what, value))


def _fields(fields):
    return [(name, *_kind(kind, "field '%s'" % name)) for name, kind in dict(fields).items()]


def _fields_of(sample):
    """Fields as a sample has them; a tuple's are "0", "1", ..."""
    if not isinstance(sample, dict):
        sample = {str(i): part for i, part in enumerate(sample if isinstance(sample, (tuple, list)) else [sample])}
    fields = []
    for name, part in sample.items():
        if isinstance(part, (bool, int)):
            fields.append((name, "int64", ()))
        elif isinstance(part, float):
            fields.append((name, "float32", ()))
        else:
            array = _core.Array(part)
            fields.append((name, array.dtype, array.shape))
    return fields
