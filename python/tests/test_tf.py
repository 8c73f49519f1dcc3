"""TensorFlow, where it is here: the same memory, tf.data and Keras on top."""

import os
import unittest

import stoker
from stoker import Dataset, Loader, stages

try:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
except ImportError:
    raise unittest.SkipTest("there is no TensorFlow")

import numpy as np

from stoker.tf import dataset, iterator, tensors


def vectors(n):
    return np.arange(n * 3, dtype=np.float32).reshape(n, 3)


class Tensors(unittest.TestCase):
    def test_the_memory_is_the_slots(self):
        batch = next(iter(Loader(Dataset.arrays(x=vectors(8)).batch(4))))
        made = tensors(batch)["x"]
        self.assertTrue(np.array_equal(made.numpy(), vectors(4)))
        np.asarray(batch["x"])[0, 0] = 77
        self.assertEqual(float(made[0, 0]), 77)

    def test_every_type(self):
        for dtype in (tf.float32, tf.float64, tf.float16, tf.int64, tf.int32, tf.int8, tf.uint8, tf.bool):
            data = np.array([0, 1, 1, 0]).astype(dtype.as_numpy_dtype)
            got = next(iterator(Dataset.arrays(x=data).batch(4)))["x"]
            self.assertEqual(got.dtype, dtype)
            self.assertTrue(np.array_equal(got.numpy(), data))

    def test_one_that_is_kept_never_changes(self):
        loader = Loader(Dataset.arrays(x=vectors(64)).batch(4))
        kept = [batch["x"] for batch in iterator(loader)][0]
        for _ in range(5):
            for batch in loader:
                np.asarray(batch["x"])[:] = 0
        self.assertTrue(np.array_equal(kept.numpy(), vectors(4)))
        loader.close()
        self.assertTrue(np.array_equal(kept.numpy(), vectors(4)))


class Data(unittest.TestCase):
    def test_a_dataset_of_theirs(self):
        ds = Dataset.arrays(x=vectors(10), y=np.arange(10)).shuffle(seed=3)
        theirs = dataset(ds.batch(4))
        self.assertEqual(theirs.element_spec["x"], tf.TensorSpec((None, 3), tf.float32))
        for _ in range(2):  # each time it is iterated over, the next epoch
            seen = [int(y) for batch in theirs for y in batch["y"]]
            self.assertEqual(sorted(seen), list(range(10)))

    def test_keras_trains_on_it(self):
        x = np.random.default_rng(1).normal(size=(256, 4)).astype(np.float32)
        y = (x @ np.array([1, -2, 3, 0.5], np.float32)).reshape(-1, 1)
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        theirs = dataset(Dataset.arrays(x=x, y=y).shuffle().batch(32)).map(lambda batch: (batch["x"], batch["y"])).repeat()
        history = model.fit(theirs, epochs=6, steps_per_epoch=8, verbose=0)
        self.assertLess(history.history["loss"][-1], 0.05 * history.history["loss"][0])

    def test_a_recipe_with_pixels(self):
        recipe = {"name": "r", "batch": 4, "data": {"train": {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 8, "classes": 3}},
                                                              "stages": [{"scale": "1/255"}]}}}
        batch = next(iterator(recipe))
        self.assertEqual(batch["image"].shape, (4, 4, 4, 1))
        self.assertTrue(all(isinstance(value, tf.Tensor) for value in batch.values()))
        with self.assertRaises(TypeError):
            iterator(3)


if __name__ == "__main__":
    unittest.main()
