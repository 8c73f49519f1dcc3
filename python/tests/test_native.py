"""Compiled functions as stages and sources."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

import stoker
from stoker import Dataset

SOURCE = r"""
#include <stdint.h>
#include <string.h>
#include <unistd.h>

int32_t turn(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed)
{
    const uint8_t *from = in;
    if (seed || out_shape[0] != in_shape[0]) return 1;
    for (int64_t i = 0; i < in_shape[0]; i++)
        ((uint8_t *)out)[i] = (uint8_t)(255 - from[i]);
    return 0;
}

int32_t total(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed)
{
    float sum = 0;
    for (int64_t i = 0; i < in_shape[0]; i++)
        sum += ((const uint8_t *)in)[i];
    memcpy(out, &sum, sizeof(sum));
    return out_shape && !seed ? 0 : 1;
}

int32_t draw(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed)
{
    memcpy(out, &seed, sizeof(seed));
    return in && in_shape && out_shape ? 0 : 1;
}

int32_t refuse_7(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed)
{
    memcpy(out, in, (size_t)in_shape[0]);
    return out_shape && !seed && ((const uint8_t *)in)[0] == 7 ? 42 : 0;
}

/* Returns once two are in it; 1 where none joins for 5 s. */
static int n_in;
int32_t meet(const void *in, void *out, const int64_t *in_shape, const int64_t *out_shape, uint64_t seed)
{
    memcpy(out, in, (size_t)in_shape[0]);
    if (!out_shape || seed) return 1;
    __atomic_add_fetch(&n_in, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 5000; i++) {
        if (__atomic_load_n(&n_in, __ATOMIC_SEQ_CST) >= 2) return 0;
        usleep(1000);
    }
    return 1;
}

int32_t squares(int64_t i, void *const *out)
{
    float root = (float)i;
    int64_t square = i * i;
    memcpy(out[0], &root, sizeof(root));
    memcpy(out[1], &square, sizeof(square));
    return i == 1000 ? 3 : 0;
}
"""
FIELDS = {"x": ("float32", ()), "y": ("int64", ())}


def rows(n, width=3):
    return Dataset.arrays(x=stoker.Array(memoryview(bytes(range(n * width))).cast("B", (n, width))))


def read(ds, threads=1, field="x"):
    with stoker.Loader(ds, threads=threads) as loader:
        return [row for batch in loader for row in batch[field].tolist()]


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler (Debian: gcc)")
class Native(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stoker-native-")
        cls.path = os.path.join(cls.folder, "own.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", cls.path], input=SOURCE, text=True, check=True)
        cls.lib = ctypes.CDLL(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_stage(self):
        turned = rows(4).map(stoker.native(self.lib.turn), "x")
        self.assertEqual(read(turned.batch(3)), [[255 - (3 * i + j) for j in range(3)] for i in range(4)])

    def test_other_output(self):
        sums = rows(4).map(stoker.native(self.lib.total), "x", output=("float32", ()))
        self.assertEqual(read(sums.batch(4)), [3.0, 12.0, 21.0, 30.0])

    def test_chance_does_not_depend_on_threads(self):
        ds = rows(20).map(stoker.native(self.lib.draw), "x", output=("int64", ()), random=True).batch(4)
        one, three = read(ds), read(ds, 3)
        self.assertEqual(one, three)
        self.assertEqual(len(set(one)), 20)

    def test_threads_are_in_it_at_once(self):
        ds = rows(8).map(stoker.native(self.lib.meet), "x").batch(1)
        self.assertEqual(len(read(ds, 2)), 8)

    def test_a_record_that_it_refuses(self):
        ds = rows(10, 1).map(stoker.native(self.lib.refuse_7), "x", name="refuse_7").batch(2)
        with self.assertRaisesRegex(stoker.CorruptError, "sample 7: stage 'refuse_7' returned 42"):
            read(ds)
        left = rows(10, 1).map(stoker.native(self.lib.refuse_7), "x").on_error("skip").batch(2)
        self.assertEqual(read(left), [[i] for i in range(10) if i != 7])

    def test_source(self):
        ds = Dataset.function(stoker.native(self.lib.squares), 100, FIELDS)
        self.assertEqual(read(ds.batch(10), 2, "y"), [i * i for i in range(100)])
        self.assertEqual(read(ds.batch(10), 2, "x"), [float(i) for i in range(100)])
        shuffled = read(ds.shuffle(seed=3).batch(10), 2, "y")
        self.assertEqual(sorted(shuffled), [i * i for i in range(100)])
        with self.assertRaisesRegex(stoker.CorruptError, "returned 3"):
            read(Dataset.function(stoker.native(self.lib.squares), 1001, FIELDS).batch(7))

    def test_an_address(self):
        address = ctypes.cast(self.lib.turn, ctypes.c_void_p).value
        self.assertEqual(stoker.native(address).address, stoker.native(self.lib.turn).address)
        self.assertEqual(read(rows(1).map(stoker.native(address), "x").batch(1)), [[255, 254, 253]])

    def test_a_function_of_the_other_kind(self):
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)
        with self.assertRaisesRegex(TypeError, "takes 2 arguments: a stage takes 5"):
            rows(2).map(stoker.native(kind(lambda i, out: 0)), "x")
        self.lib.draw.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_uint64]
        try:
            with self.assertRaisesRegex(TypeError, "takes 5 arguments"):
                Dataset.function(stoker.native(self.lib.draw), 10, FIELDS)
        finally:
            self.lib.draw.argtypes = None

    def test_cffi(self):
        try:
            import cffi
        except ImportError:
            self.skipTest("there is no cffi (Debian: python3-cffi)")
        ffi = cffi.FFI()
        ffi.cdef("int32_t turn(const void *, void *, const int64_t *, const int64_t *, uint64_t);")
        lib = ffi.dlopen(self.path)
        self.assertEqual(stoker.native(lib.turn).address, stoker.native(self.lib.turn).address)
        self.assertEqual(read(rows(2).map(stoker.native(lib.turn), "x").batch(2)), [[255, 254, 253], [252, 251, 250]])

    def test_numba(self):
        try:
            import numba
        except ImportError:
            self.skipTest("there is no numba (pip install numba)")
        from numba import types
        kind = types.int32(types.CPointer(types.uint8), types.CPointer(types.uint8), types.CPointer(types.int64),
                           types.CPointer(types.int64), types.uint64)

        @numba.cfunc(kind, nopython=True)
        def turn(source, out, source_shape, out_shape, seed):
            pixels = numba.carray(source, (source_shape[0],))
            turned = numba.carray(out, (out_shape[0],))
            for i in range(len(pixels)):
                turned[i] = 255 - pixels[i]
            return 0

        self.assertEqual(read(rows(2).map(stoker.native(turn), "x").batch(2)), [[255, 254, 253], [252, 251, 250]])


class Wrong(unittest.TestCase):
    def test_what_is_no_compiled_function(self):
        for wrong in (lambda x: x, "turn", None, True, 1.5):
            with self.assertRaises(TypeError):
                stoker.native(wrong)
        for wrong in (0, -1, 1 << 64):
            with self.assertRaises(ValueError):
                stoker.native(wrong)
        with self.assertRaisesRegex(TypeError, "'fields'"):
            Dataset.function(stoker.native(4096), 10)


if __name__ == "__main__":
    unittest.main()
