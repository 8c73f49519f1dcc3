"""Random calls of the package: whatever they are given, they give a result or an exception of a fitting class.

usage: fuzz_calls.py [CALLS] [SEED]

A crash, a hang of two minutes and a SystemError are failures; the seed and the number of calls repeat one. Prints how many calls
succeeded, and what exceptions the others raised.
"""

import collections
import faulthandler
import gc
import random
import sys
import tempfile
import warnings

import stoker
from stoker import Array, Dataset, Loader, _core, stages

# Nothing here may ask for more than a machine has time for: no data set is large and each function is quick.
NUMBERS = (-1, 0, 1, 2, 3, 7, 64, 255, 1 << 31, (1 << 63) - 1, 1 << 64, -(1 << 70), 0.5, -1.5, float("nan"), float("inf"), True)
SMALL = (0, 1, 2, 3, 5, 8)
TEXTS = ("", "x", "y", "image", "decode", "scale", "none", "disk", "skip", "float32", "f32", "\udc80", "a\0b", "x" * 300, "{", "{scale: 2}")
DTYPES = ("float32", "float64", "int64", "int32", "int8", "uint8", "bool", "float16", "bfloat16", "text", None)


class Odd:
    """An object that fails wherever it is asked."""

    def __len__(self):
        raise KeyError("odd")

    def __iter__(self):
        raise KeyError("odd")

    def __index__(self):
        raise KeyError("odd")

    def __dlpack__(self, **more):
        raise KeyError("odd")

    def __str__(self):
        raise KeyError("odd")


class Fuzz:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.datasets, self.loaders, self.arrays = [], [], [Array(bytes(range(12)))]

    def pick(self, choices):
        return choices[self.draw.randrange(len(choices))]

    def shape(self):
        return tuple(self.pick(SMALL) for _ in range(self.draw.randrange(4)))

    def buffer(self):
        n = self.pick((0, 1, 2, 6, 12))
        view = memoryview(bytes(8 * n)).cast(self.pick("bBhHiIlLqQfd?"))
        return self.pick((view, view[::2], bytes(n), bytearray(n), self.pick(self.arrays)))

    def function(self):
        def fail(*a):
            raise KeyError(a)

        return self.pick((lambda *a: a[0], lambda *a: None, lambda *a: {"x": a[0]}, lambda *a: a, fail, lambda *a: memoryview(b"abc"),
                          lambda *a: [{"x": 1}] * 3, lambda *a: gc.collect(), lambda: 0))

    def anything(self):
        kind = self.draw.randrange(9)
        if kind == 0:
            return self.pick(NUMBERS)
        if kind == 1:
            return self.pick(TEXTS)
        if kind == 2:
            return self.pick((None, Odd(), object(), b"", b"x", [], {}, (), stoker, int))
        if kind == 3:
            return [self.anything() for _ in range(self.draw.randrange(3))]
        if kind == 4:
            return {self.pick(TEXTS): self.anything() for _ in range(self.draw.randrange(3))}
        if kind == 5:
            return self.buffer()
        if kind == 6:
            return self.function()
        if kind == 7:
            return (self.pick(TEXTS), self.pick(DTYPES), self.shape())
        return self.pick(self.datasets + self.loaders + self.arrays)

    def some(self, most=3):
        return [self.anything() for _ in range(self.draw.randrange(most + 1))]

    # --- what is called ---

    def make_dataset(self):
        n = self.pick(SMALL)
        made = self.pick((
            lambda: Dataset.arrays(x=memoryview(bytes(4 * n)).cast("i"), y=memoryview(bytes(n))),
            lambda: Dataset.function(self.function(), n, {"x": (self.pick(DTYPES), self.shape())}),
            lambda: Dataset.generator(self.function(), {"x": ("int32", self.shape())}, self.pick((0, n))),
            lambda: Dataset.source("synthetic", fields={"image": [4, 4, 3]}, samples=max(n, 1), classes=2),
            lambda: Dataset.arrays({self.pick(TEXTS): self.buffer()}),
            lambda: Dataset.source(self.anything()),
            lambda: self.pick((Dataset.concatenate, Dataset.zip))(*[self.pick(self.datasets) for _ in range(2)]),
            lambda: self.pick((Dataset.mix, Dataset.interleave))([self.pick(self.datasets) for _ in range(2)], *self.some(1)),
            lambda: self.pick((Dataset.images, Dataset.files, Dataset.tar))(self.pick((self.anything(), "/nowhere", ["/nowhere/*"]))),
        ))()
        self.datasets.append(made)

    def change_dataset(self):
        ds = self.pick(self.datasets)
        small, number = self.pick(SMALL), self.pick(NUMBERS)
        made = self.pick((
            lambda: ds.batch(small), lambda: ds.batch(number, self.anything()), lambda: ds.shuffle(number), lambda: ds.shuffle(seed=small),
            lambda: ds.take(number), lambda: ds.skip(small), lambda: ds.repeat(small), lambda: ds.shard(small, number),
            lambda: ds.split(number), lambda: ds.filter(self.function()), lambda: ds.filter(field=self.pick(TEXTS), keep=self.anything()),
            lambda: ds.filter(least=number, most=small), lambda: ds.window(small, number), lambda: ds.unbatch(), lambda: ds.pack(small, self.some(2)),
            lambda: ds.padded_batch(small, value=number), lambda: ds.bucket([small], [small, small]), lambda: ds.bucket(self.anything(), self.anything()),
            lambda: ds.map(self.function(), "x"), lambda: ds.map(self.function(), "x", output=(self.pick(DTYPES), self.shape()), random=True),
            lambda: ds.map(stages.cast("f32"), "x"), lambda: ds.map(self.anything(), self.anything()), lambda: ds.map({"scale": number}),
            lambda: ds.rename(self.pick(TEXTS), self.pick(TEXTS)), lambda: ds.cache("memory"), lambda: ds.cache(self.anything()),
            lambda: ds.on_error("skip", number), lambda: ds.on_error(self.anything()),
        ))()
        self.datasets.append(made)

    def ask_dataset(self):
        ds = self.pick(self.datasets)
        self.pick((lambda: ds.build(), lambda: len(ds), lambda: ds.n_samples, lambda: ds.batch_size, lambda: ds.classes, lambda: ds.note,
                   lambda: ds.field("x"), lambda: ds.field(self.anything(), self.anything())))()

    def make_loader(self):
        ds = self.pick(self.datasets)
        ds = self.pick((ds, ds.batch(2), ds.batch(3, True), self.anything()))
        more = self.pick(({}, {"threads": 1}, {"threads": 2, "slots": 2}, {"memory": self.pick(NUMBERS)}, {"epochs": self.pick(SMALL)},
                          {"world_size": self.pick(SMALL), "rank": self.pick(SMALL)}, {"seed": self.pick(NUMBERS)},
                          {self.pick(("slots", "epochs", "rank", "tuning")): self.anything()}))
        self.loaders.append(Loader(ds, **more))

    def use_loader(self):
        loader = self.pick(self.loaders)
        core = loader._core

        def take():
            for i, batch in enumerate(loader):
                self.arrays += list(batch.values())
                if i == 3:
                    return

        self.pick((take, take, take, loader.state_dict, lambda: loader.load_state_dict({"epoch": self.pick(SMALL), "batch": self.pick(SMALL)}),
                   lambda: loader.load_state_dict(self.anything()), loader.stats, loader.close, lambda: len(loader), lambda: core.begin(),
                   lambda: core.next(), lambda: core.next_as(self.anything()),
                   lambda: core.next_as((self.function(), self.anything(), self.pick((None, ("x",), ("y", "x"), (3,))), self.anything()))))()

    def use_array(self):
        a = self.pick(self.arrays)
        self.pick((lambda: self.arrays.append(Array(self.buffer())), lambda: Array(self.anything()), lambda: self.arrays.append(a[self.anything()]),
                   lambda: self.arrays.append(a[self.pick(SMALL)]), lambda: a[self.pick(SMALL):self.pick(SMALL)], lambda: a.tolist(),
                   lambda: a.tobytes(), lambda: a.copy(), lambda: memoryview(a)[0], lambda: a.__dlpack__(), lambda: Array(a), lambda: repr(a),
                   lambda: a.__dlpack__(max_version=self.anything(), copy=self.anything(), stream=self.anything(), dl_device=self.anything())))()

    def call_core(self):
        name = self.pick(("parse", "arrays", "function", "generator", "recipe", "combine", "open", "load_tensors", "report", "import_run", "run_open",
                          "export", "Array", "Dataset", "Loader", "session", "graph", "Graph", "Session"))
        arguments = self.some(7)
        if name == "function":
            arguments = [*arguments[:3], 0]  # else an address is called
        getattr(_core, name)(*arguments)

    def call_graph(self):
        """Values of any number, some of them there, in any operation, and a step of what came of it."""
        graph = _core.graph()
        session = _core.session("cpu", 1, 1)
        ids = [graph.input("x", "float32", (2, 3)), graph.variable("w", "float32", (3, 2), "normal", 1.0, True)]
        for _ in range(self.draw.randrange(6)):
            a, b = (self.pick((*ids, *ids, -1, 99, self.pick(NUMBERS))) for _ in range(2))
            try:
                made = self.pick((
                    lambda: graph.unary(self.pick(("relu", "exp", "softmax", "x")), a), lambda: graph.binary(self.pick(("add", "less", "x")), a, b),
                    lambda: graph.matmul(a, b, False, True), lambda: graph.reduce("sum", a, self.pick(NUMBERS)), lambda: graph.reshape(a, self.shape()),
                    lambda: graph.transpose(a, self.shape()), lambda: graph.slice(a, (0, 0), (1, 2), (1, self.pick(SMALL))), lambda: graph.concat([a, b], 0),
                    lambda: graph.pad(a, (0, self.pick(NUMBERS)), (0, 0), 0.0), lambda: graph.broadcast(a, self.shape()), lambda: graph.select(a, b, b),
                    lambda: graph.cast(a, self.pick(DTYPES)), lambda: graph.gather(a, b, self.pick(SMALL)), lambda: graph.grad(a, b),
                    lambda: graph.layers(a, self.pick(("{dense: 2}", "relu", "[", "{conv2d: 3}"))), lambda: graph.loss(a, b, "mse")[0],
                    lambda: graph.network(a, 3, "{mlp: {hidden: [4]}}"), lambda: graph.minimize(a, "sgd", 0.0, None), lambda: graph.type_of(a) and a,
                    lambda: graph.attention(a, b, b, -1, True, 0.0), lambda: graph.argmax(a, 0, False), lambda: graph.cumsum(a, 1, False, True),
                    lambda: getattr(graph, self.pick([n for n in dir(graph) if not n.startswith("_")]))(*self.some(4)),
                ))()
            except TypeError:
                continue
            if isinstance(made, int):
                ids.append(made)
        graph.output("y", self.pick(ids))
        step = session.compile(graph, self.anything())
        for arrays in ([self.buffer() for _ in step.inputs()], [memoryview(bytes(24)).cast("f", (2, 3))]):
            try:
                self.arrays += [a for a in step.run(arrays, [0, self.pick(SMALL)]) if isinstance(a, Array)]
            except ValueError:
                continue

    def drop(self):
        for kept, most in ((self.datasets, 30), (self.loaders, 4), (self.arrays, 30)):
            while len(kept) > most:
                del kept[self.draw.randrange(len(kept))]

    def call(self):
        what = [self.make_dataset, self.use_array, self.call_core, self.call_graph]
        if self.datasets:
            what += [self.change_dataset] * 3 + [self.ask_dataset] * 2 + [self.make_loader] * 2
        if self.loaders:
            what += [self.use_loader] * 4
        self.pick(what)()


def run(n_calls, seed):
    """What came of each call, counted by name."""
    found = collections.Counter()
    fuzz = Fuzz(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(n_calls):
            faulthandler.dump_traceback_later(120, exit=True)
            try:
                fuzz.call()
                found["well"] += 1
            except SystemError:
                print("call %d of seed %d" % (i, seed))
                raise
            except Exception as error:
                found[type(error).__name__] += 1
            fuzz.drop()
    faulthandler.cancel_dump_traceback_later()
    for loader in fuzz.loaders:
        loader.close()
    del fuzz
    gc.collect()
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="stoker-fuzz-") as folder:
        import os
        os.chdir(folder)
        found = run(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
        os.chdir("/")
    print(", ".join("%s %d" % item for item in found.most_common()))
