"""Random calls, right and wrong ones: each gives a value or an exception. STOKER_CALLS: how many, 10,000 for a long run."""

import os
import random
import unittest
import warnings

import stoker
from stoker import Dataset, Loader, stages

WORDS = [0, 1, -1, 3, 1 << 40, -(1 << 70), 0.5, float("nan"), None, "", "x", "decode", b"x", [], {}, (1, 2), [1], object(),
         {"resize": 3}, "\0", True, stages.cast("f32")]


def numbers(n, width=1):
    shape = (n,) if width == 1 else (n, width)
    return Dataset.arrays(x=stoker.Array(memoryview(bytes(i % 251 for i in range(n * width))).cast("B", shape)))


class Random(unittest.TestCase):
    def test_calls(self):
        draw = random.Random(int(os.environ.get("STOKER_CALLS_SEED", 1)))
        names = [n for n in dir(Dataset) if not n.startswith("_") and n not in ("recipe", "generator", "from_tensor_slices")]
        datasets, loaders, arrays, made = [numbers(40)], [], [], 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(int(os.environ.get("STOKER_CALLS", 400))):
                try:
                    self.call(draw, names, datasets, loaders, arrays)
                    made += 1
                except (stoker.Error, TypeError, ValueError, OverflowError, AttributeError, LookupError, BufferError,
                        UnicodeError, StopIteration, MemoryError, OSError):
                    pass
        self.assertGreater(made, 0)
        for loader in loaders:
            loader.close()

    def call(self, draw, names, datasets, loaders, arrays):
        kind = draw.randrange(10)
        if kind < 3:
            dataset = draw.choice(datasets)
            name = draw.choice(names)
            method = getattr(dataset, name)
            if callable(method):
                method = method(*[draw.choice(WORDS + datasets) for _ in range(draw.randrange(4))])
            if isinstance(method, Dataset):
                len(method)
                datasets[draw.randrange(1, len(datasets) + 1):] = [method]
        elif kind == 3:
            datasets[:] = [numbers(draw.randrange(1, 60), draw.choice([1, 3]))]
        elif kind == 4:
            batched = draw.choice(datasets).batch(draw.choice([1, 2, 7]), draw.random() < 0.5)
            loaders[draw.randrange(0, 4):] = [Loader(batched, threads=draw.randrange(1, 3), slots=draw.choice([0, 2, 5]),
                                                     epochs=draw.choice([0, 1, 2]))]
        elif kind < 8 and loaders:
            loader = draw.choice(loaders)
            what = draw.randrange(8)
            if what == 0:
                loader.close()
            elif what == 1:
                loader.load_state_dict({"epoch": draw.choice(WORDS), "batch": draw.choice(WORDS)})
            elif what == 2:
                loader.stats(), loader.state_dict(), len(loader), repr(loader)
            else:
                for batch in loader:
                    if draw.random() < 0.3:
                        arrays[draw.randrange(0, 30):] = [batch["x"]]
                    if draw.random() < 0.3:
                        break
        elif arrays:
            array = draw.choice(arrays)
            array.tolist(), array.tobytes(), repr(array), memoryview(array)
            array.__dlpack__(max_version=draw.choice([(1, 0), None, 3, (0, 1)]), copy=draw.choice([None, True, False]))
            arrays.append(array[draw.choice([0, -1, slice(1, 3), "x", 1 << 70])])
        stoker.Array(draw.choice(WORDS)) if draw.random() < 0.1 else None


if __name__ == "__main__":
    unittest.main()
