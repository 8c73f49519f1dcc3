"""JAX, where it is here."""

import unittest

import stoker

try:
    import jax
except ImportError:
    raise unittest.SkipTest("there is no JAX")

from stoker.jax import arrays, iterator


class Arrays(unittest.TestCase):
    def test_the_memory_is_the_slots(self):
        ds = stoker.Dataset.arrays(x=stoker.Array(memoryview(bytes(range(256))).cast("B", (64, 4)))).batch(32)
        batch = next(iter(stoker.Loader(ds)))
        made = arrays(batch)["x"]
        self.assertEqual(made.unsafe_buffer_pointer(), batch["x"].address)
        self.assertEqual(made.tolist(), batch["x"].tolist())
        device = jax.devices()[0]
        sharding = jax.sharding.SingleDeviceSharding(device)
        got = [b["x"] for b in iterator(ds, sharding, epochs=1)]
        self.assertEqual([a.shape for a in got], [(32, 4), (32, 4)])
        self.assertEqual(got[1][0].tolist(), [128, 129, 130, 131])


if __name__ == "__main__":
    unittest.main()
