"""Data sets and loaders from Python: what comes, whose memory it is, how it ends."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import weakref

import stoker
from stoker import Dataset, Loader, stages
from support import HAS_NUMPY, Folder, skip_without_numpy

if HAS_NUMPY:
    import numpy as np


def numbers(n, **more):
    return Dataset.arrays(x=stoker.Array(memoryview(bytes(4 * n)).cast("i")), **more)


def counted(n):
    """Samples 0 to n - 1, as int32."""
    return Dataset.arrays(x=stoker.Array(memoryview(b"".join(i.to_bytes(4, "little") for i in range(n))).cast("i")))


def samples(batches):
    return [x for batch in batches for x in batch["x"].tolist()]


class Order(unittest.TestCase):
    def test_calls_leave_their_data_set_as_it_was(self):
        ds = counted(10)
        a, b = ds.take(4), ds.skip(4)
        self.assertEqual((len(ds), len(a), len(b)), (10, 4, 6))
        self.assertEqual(samples(b.batch(10)), [4, 5, 6, 7, 8, 9])

    def test_orders_are_those_of_their_names(self):
        ds = counted(12)
        self.assertEqual(samples(ds.shard(3, 1).batch(8)), [1, 4, 7, 10])
        self.assertEqual(samples(ds.repeat(2).skip(10).batch(100)), [10, 11, *range(12)])
        shuffled = samples(ds.shuffle(seed=5).batch(4))
        self.assertEqual(sorted(shuffled), list(range(12)))
        self.assertNotEqual(shuffled, list(range(12)))
        self.assertEqual(samples(ds.shuffle(seed=5).batch(7)), shuffled)
        self.assertEqual(samples(ds.filter(field="x", keep=[3, 5]).batch(2)), [3, 5])
        self.assertEqual(samples(ds.filter(field="x", least=3, most=5).batch(9)), [3, 4, 5])
        self.assertEqual(samples(ds.filter(lambda s: s["x"].tolist() % 2).batch(9)), [1, 3, 5, 7, 9, 11])
        halves = ds.split(0.5, seed=1), ds.split(0.5, rest=True, seed=1)
        self.assertEqual(sorted(samples(halves[0].batch(12)) + samples(halves[1].batch(12))), list(range(12)))

    def test_several_are_one(self):
        a, b = counted(3), counted(2)
        self.assertEqual(samples(a.concatenate(b).batch(9)), [0, 1, 2, 0, 1])
        self.assertEqual(samples(Dataset.interleave([a, b]).batch(9)), [0, 0, 1, 1, 2])
        pair = next(iter(Dataset.zip(a, b.rename("x", "y")).batch(2)))
        self.assertEqual((pair["x"].tolist(), pair["y"].tolist()), ([0, 1], [0, 1]))
        self.assertEqual(len(Dataset.mix([a, b], [1, 2])), 5)
        self.assertEqual(samples(a.concatenate(a).batch(9)), [0, 1, 2, 0, 1, 2])  # the same one twice

    def test_wrong_calls_have_the_text_of_c(self):
        with self.assertRaisesRegex(stoker.InvalidError, "batch") as caught:
            Loader(counted(3))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, stoker.Error)
        with self.assertRaisesRegex(stoker.Error, "resiz"):
            len(counted(3).map("resiz", "x"))
        with self.assertRaises(FileNotFoundError):
            len(Dataset.images("/there/is/none"))
        with self.assertRaises(TypeError):
            counted(3).map(3)
        with self.assertRaises(TypeError):
            len(Dataset.arrays(x=3))
        with self.assertRaises(ValueError):
            len(Dataset.arrays(x=stoker.Array(bytes(3)), y=stoker.Array(bytes(4))))
        with self.assertRaises((TypeError, ValueError)):
            Loader(counted(3).batch(2), threads="many")
        with self.assertRaises(TypeError):
            stoker._core.Dataset()
        with self.assertRaises(TypeError):
            stoker._core.open(3)

    def test_elements_become_any_type(self):
        types = {"f32": "float32", "f64": "float64", "i64": "int64",
                 "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}
        for to, name in types.items():
            batch = next(iter(Loader(Dataset.arrays(x=stoker.Array(bytes((0, 1, 1)))).map(stages.cast(to), "x").batch(3))))
            self.assertEqual(batch["x"].dtype, name)
            self.assertEqual(batch["x"].tolist(), [0, 1, 1])
        with self.assertRaises(stoker.InvalidError):
            counted(3).map(stages.cast("i65"), "x").build()

    def test_padded_batches_tell_lengths(self):
        ds = counted(6).window(3, drop_remainder=False).skip(1)
        self.assertEqual(len(ds), 1)
        ds = counted(5).window(3, drop_remainder=False)
        batch = next(iter(ds.padded_batch(2, value=-1)))
        self.assertEqual(batch["x"].tolist(), [[0, 1, 2], [3, 4, -1]])
        self.assertEqual(batch["x.length"].tolist(), [3, 2])
        shapes = [b["x"].shape for b in ds.bucket([3], [8, 8])]
        self.assertEqual(sorted(shapes), [(1, 2), (1, 3)])


class Epochs(unittest.TestCase):
    def test_each_for_is_an_epoch(self):
        loader = Loader(counted(5).batch(2))
        self.assertEqual([samples(loader) for _ in range(3)], [list(range(5))] * 3)
        self.assertEqual(len(loader), 3)
        self.assertEqual(loader.epoch, 3)

    def test_one_that_is_left_early_is_over(self):
        loader = Loader(counted(6).shuffle(seed=1).batch(2))
        next(iter(loader))
        whole = samples(loader)
        self.assertEqual(sorted(whole), list(range(6)))
        self.assertEqual(loader.epoch, 2)

    def test_epochs_end(self):
        loader = Loader(counted(4).batch(2), epochs=2)
        self.assertEqual([samples(loader) for _ in range(4)], [[0, 1, 2, 3], [0, 1, 2, 3], [], []])
        self.assertEqual(samples(Loader(counted(4).batch(2), epochs=2).stream()), [0, 1, 2, 3] * 2)

    def test_state_is_two_integers(self):
        ds = counted(20).shuffle(seed=3).batch(3)
        loader = Loader(ds)
        reference = [samples(loader) for _ in range(3)]
        for epoch in range(3):
            for n in range(7):
                loader = Loader(ds, threads=1 + n % 3)
                loader.load_state_dict({"epoch": epoch, "batch": n})
                self.assertEqual(loader.state_dict(), {"epoch": epoch, "batch": n})
                self.assertEqual(samples(loader), reference[epoch][3 * n:])
                if epoch < 2:
                    self.assertEqual(samples(loader), reference[epoch + 1])
                self.assertEqual(loader.state_dict()["batch"], 0)

    def test_shards_share_an_epoch(self):
        ds = counted(24).shuffle(seed=3).batch(4)
        loaders = [Loader(ds, world_size=3, rank=i) for i in range(3)]
        for epoch in range(2):
            parts = [samples(loader) for loader in loaders]
            self.assertEqual([len(p) for p in parts], [8, 8, 8])
            self.assertEqual(sorted(sum(parts, [])), list(range(24)))

    def test_a_stream_has_no_end(self):
        stream = Loader(counted(4).batch(2)).stream()
        self.assertEqual([next(stream)["x"].tolist() for _ in range(5)], [[0, 1], [2, 3]] * 2 + [[0, 1]])


class Memory(unittest.TestCase):
    def test_what_is_kept_never_changes(self):
        loader = Loader(counted(64).batch(4), slots=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = [batch["x"] for _ in range(4) for batch in loader]
        loader.close()
        del loader
        gc.collect()
        self.assertEqual([x for a in kept for x in a.tolist()], list(range(64)) * 4)
        self.assertEqual(len({a.address for a in kept}), 64)

    def test_who_keeps_many_is_warned_once(self):
        loader = Loader(counted(64).batch(4), slots=3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kept = [list(loader) for _ in range(3)]
        self.assertEqual([w.category for w in caught], [RuntimeWarning])
        self.assertIn("in use at once", str(caught[0].message))
        self.assertEqual(loader.stats()["batches_in_use"], 48)
        del kept
        self.assertEqual(loader.stats()["batches_in_use"], 0)

    def test_a_warning_that_raises_loses_no_batch(self):
        loader, kept, n_raised, ends = Loader(counted(64).batch(4), slots=3, epochs=2), [], 0, 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while ends < 2:
                try:
                    batch = loader._core.next()
                except RuntimeWarning:
                    n_raised += 1
                else:
                    ends += batch is None
                    kept += [batch] if batch else []
        self.assertEqual((n_raised, samples(kept)), (1, list(range(64)) * 2))

    def test_memory_ends_in_an_error_and_not_in_waiting(self):
        ds = Dataset.source("synthetic", fields={"x": [1 << 18]}, samples=640, classes=2).batch(1)
        loader = Loader(ds, memory=16 << 20, threads=1)
        kept = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(stoker.NoMemoryError) as caught:
                for batch in loader:
                    kept.append(batch)
                    self.assertLess(len(kept), 100)
        self.assertIsInstance(caught.exception, MemoryError)
        n = len(kept)
        self.assertEqual(loader.state_dict(), {"epoch": 0, "batch": n})
        del kept, batch
        self.assertEqual(len([1 for batch in loader._epoch()]), 640 - n)  # none is lost

    def test_slots_come_back(self):
        loader = Loader(counted(4000).batch(4), slots=4)
        seen, peak = set(), None
        for i, batch in enumerate(loader.stream()):
            seen.add(batch["x"].address)
            if i == 100:
                peak = loader.stats()["memory_peak"]
            if i == 5000:
                break
        self.assertLessEqual(len(seen), 4 + 3)
        self.assertEqual(loader.stats()["memory_peak"], peak)

    def test_one_array_of_a_batch_holds_it(self):
        ds = counted(8).map(lambda x: x, "x")
        batches = list(Loader(Dataset.zip(counted(8), counted(8).rename("x", "y")).batch(4)))
        x = batches[0]["x"]
        view = memoryview(batches[1]["y"])[1:]
        del batches
        self.assertEqual(x.tolist(), [0, 1, 2, 3])
        self.assertEqual(view.tolist(), [5, 6, 7])

    @skip_without_numpy
    def test_numpy_has_the_same_memory(self):
        loader = Loader(counted(8).map(stages.cast("f32"), "x").batch(4))
        batch = next(iter(loader))
        for array in (np.asarray(batch["x"]), batch["x"].numpy(), np.from_dlpack(batch["x"])):
            self.assertEqual(array.__array_interface__["data"][0], batch["x"].address)
            self.assertEqual(array.dtype, np.float32)
            self.assertEqual(array.tolist(), [0, 1, 2, 3])
        array = np.from_dlpack(batch["x"])
        del batch
        for _ in range(3):
            for later in loader:
                pass
        self.assertEqual(array.tolist(), [0, 1, 2, 3])

    def test_capsules(self):
        array = next(iter(Loader(counted(4).batch(4))))["x"]
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        self.assertIn('"dltensor"', repr(array.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(array.__dlpack__(max_version=(1, 1), copy=True)))
        self.assertIn('"dltensor"', repr(array.__dlpack__(max_version=(0, 8), dl_device=(1, 0), stream=None)))
        for wrong in ({"stream": 1}, {"dl_device": (2, 0)}, {"max_version": 3}, {"dl_device": "cpu"}):
            with self.assertRaises((BufferError, TypeError)):
                array.__dlpack__(**wrong)
        again = stoker.Array(array)
        self.assertNotEqual(again.address, array.address)
        self.assertEqual(again.tolist(), array.tolist())

    def test_arrays_have_rows(self):
        array = stoker.Array(memoryview(bytes(range(12))).cast("B", (4, 3)))
        self.assertEqual(array[1].tolist(), [3, 4, 5])
        self.assertEqual(array[-1].tolist(), [9, 10, 11])
        self.assertEqual(array[1:3].tolist(), [[3, 4, 5], [6, 7, 8]])
        self.assertEqual((len(array), array.ndim, array.nbytes, array.shape, array.dtype), (4, 2, 12, (4, 3), "uint8"))
        for wrong in (4, -5, slice(None, None, 2)):
            with self.assertRaises(IndexError):
                array[wrong]
        with self.assertRaises(TypeError):
            stoker.Array("text")


def raise_(error):
    raise error


def fail_at(*failing):
    """A source's function, with a KeyError of its own at each of these samples."""

    def make(i):
        if i in failing:
            raise KeyError("sample %d" % i)
        return {"x": i}

    return make


class Functions(unittest.TestCase):
    def test_a_source_of_ones_own(self):
        def make(i):
            return {"x": memoryview(bytes([i, i + 1])), "label": i % 3}

        ds = Dataset.function(make, 30)
        batch = next(iter(Loader(ds.shuffle(seed=1).batch(8))))
        for x, label in zip(batch["x"].tolist(), batch["label"].tolist()):
            self.assertEqual(x, [x[0], x[0] + 1])
            self.assertEqual(label, x[0] % 3)

    def test_an_exception_is_the_cause(self):
        def make(i):
            if i == 5:
                raise KeyError("five")
            return {"x": i}

        loader = Loader(Dataset.function(make, 10, {"x": ("int32", ())}).batch(2))
        got = []
        with self.assertRaisesRegex(stoker.CorruptError, "KeyError: 'five'") as caught:
            for batch in loader:
                got += batch["x"].tolist()
        self.assertEqual(got, [0, 1, 2, 3])
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        ds = Dataset.function(make, 10, {"x": ("int32", ())}).on_error("skip").batch(2)
        self.assertEqual(samples(Loader(ds, epochs=1)), [0, 1, 2, 3, 4, 6, 7, 8, 9])

    def test_a_filter_after_a_record_that_was_left_out(self):
        ds = Dataset.function(fail_at(5), 10, {"x": ("int32", ())}).on_error("skip")
        kept = ds.filter(lambda sample: True).batch(2)
        self.assertEqual(samples(Loader(kept, epochs=1)), [0, 1, 2, 3, 4, 6, 7, 8, 9])
        with self.assertRaisesRegex(LookupError, "seven"):
            ds.filter(lambda sample: raise_(LookupError("seven")) if sample["x"].tolist() == 7 else True).batch(2).build()
        with self.assertRaises(ZeroDivisionError):
            len(ds.filter(lambda sample: 1 / 0).batch(2))

    def test_a_cause_is_of_the_record_that_failed(self):
        fields = {"x": ("int32", ())}
        ds = Dataset.function(fail_at(3, 8), 10, fields).on_error("skip", 1).batch(2)
        with self.assertRaisesRegex(stoker.CorruptError, "sample 8") as caught:
            samples(Loader(ds, threads=1))
        self.assertEqual(caught.exception.__cause__.args, ("sample 8",))
        parts = counted(4).concatenate(Dataset.function(fail_at(5), 10, fields)).batch(2)
        with self.assertRaisesRegex(stoker.CorruptError, "sample 5") as caught:
            samples(Loader(parts))
        self.assertEqual(caught.exception.__cause__.args, ("sample 5",))

    def test_wrong_gifts(self):
        for wrong in (lambda i: {"y": 1}, lambda i: {"x": "text"}, lambda i: {"x": 1 << 40}, lambda i: None,
                      lambda i: {"x": memoryview(bytes(3))}):
            loader = Loader(Dataset.function(wrong, 4, {"x": ("int32", ())}).batch(2))
            with self.assertRaises(stoker.Error):
                next(iter(loader))

    def test_a_stage_of_ones_own(self):
        def lengthen(x):
            return memoryview(bytes(x.tolist()) * 2)

        ds = Dataset.arrays(x=stoker.Array(memoryview(bytes(range(12))).cast("B", (4, 3))))
        ds = ds.map(lengthen, "x", output=("uint8", (6,)))
        self.assertEqual(ds.field("x"), ("uint8", (6,)))
        self.assertEqual(next(iter(ds.batch(2)))["x"].tolist(), [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]])
        wrong = Dataset.arrays(x=stoker.Array(bytes(4))).map(lambda x: memoryview(bytes(7)), "x")
        with self.assertRaisesRegex(stoker.Error, "announced"):
            next(iter(wrong.batch(2)))

    def test_chance_is_a_number_by_sample_and_epoch(self):
        seeds = []

        def note(x, seed):
            seeds.append(seed)
            return x

        ds = counted(8).map(note, "x", random=True).batch(8)
        for threads in (1, 3):
            loader = Loader(ds, threads=threads, epochs=2, seed=7)
            next(iter(loader))
            next(iter(loader))
            loader.close()
        one, other = seeds[:16], seeds[16:]
        self.assertEqual(len(set(one)), 16)
        self.assertEqual(sorted(one), sorted(other))

    def test_a_generator(self):
        def epoch(i):
            for k in range(5):
                yield {"x": 10 * i + k}

        ds = Dataset.generator(epoch, {"x": ("int32", ())}, count=5).batch(2)
        loader = Loader(ds)
        self.assertEqual([samples(loader) for _ in range(2)], [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])
        unknown = Loader(Dataset.generator(epoch, {"x": ("int32", ())}).batch(2))
        self.assertEqual(samples(unknown), [0, 1, 2, 3, 4])
        with self.assertRaises(TypeError):
            len(unknown)

    def test_what_functions_are_given_is_theirs(self):
        kept = []

        def keep(x):
            kept.append(x)
            return x

        self.assertEqual(samples(counted(100).map(keep, "x").batch(5)), list(range(100)))
        gc.collect()
        self.assertEqual(sorted(x.tolist() for x in kept), list(range(100)))


class Ends(unittest.TestCase):
    def test_a_closed_loader(self):
        loader = Loader(counted(8).batch(2))
        batches = iter(loader)
        first = next(batches)
        loader.close()
        loader.close()
        with self.assertRaises(stoker.ClosedError) as caught:
            next(batches)
        self.assertIsInstance(caught.exception, ValueError)
        for call in (lambda: iter(loader), loader.stats, lambda: loader.load_state_dict({"epoch": 0, "batch": 0})):
            with self.assertRaises(stoker.ClosedError):
                call()
        self.assertEqual(first["x"].tolist(), [0, 1])

    def test_another_thread_closes_one_that_waits(self):
        gate = threading.Event()
        loader = Loader(Dataset.function(lambda i: {"x": gate.wait() and i}, 4, {"x": ("int64", ())}).batch(2))
        error = []

        def wait():
            try:
                next(iter(loader))
            except stoker.Error as e:
                error.append(e)

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.1)
        closer = threading.Thread(target=loader.close)
        closer.start()
        waiter.join(10)
        gate.set()
        closer.join(10)
        self.assertFalse(waiter.is_alive() or closer.is_alive())
        self.assertIsInstance(error[0], stoker.ClosedError)

    def test_threads_share_a_loader(self):
        loader, got = Loader(counted(3000).batch(3), epochs=1), []
        core = loader._core

        def take():
            while True:
                batch = core.next()
                if batch is None:
                    return
                got.extend(batch["x"].tolist())

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        core_end = time.time() + 60
        for thread in threads:
            thread.join(max(core_end - time.time(), 0))
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(sorted(got), list(range(3000)))

    def test_threads_are_told_once_that_an_epoch_ends(self):
        interval, deadline = sys.getswitchinterval(), time.time() + 30
        sys.setswitchinterval(1e-6)
        try:
            for length in (1, 3):
                core, ends, got = Loader(counted(2 * length).batch(2))._core, [], []

                def take():
                    while core.position < (300, 0) and time.time() < deadline:
                        batch = core.next()
                        (ends if batch is None else got).append(1)

                threads = [threading.Thread(target=take) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(60)
                self.assertFalse(any(thread.is_alive() for thread in threads))
                # What is not told yet comes before the next batch.
                while True:
                    epoch = core.position[0]
                    if core.next() is not None:
                        break
                    ends.append(1)
                self.assertEqual(len(ends), epoch)
                self.assertGreaterEqual(len(got), 300 * length)
        finally:
            sys.setswitchinterval(interval)

    def test_a_function_closes_its_own_loader(self):
        code = ("import gc, os, stoker, sys, threading, time\n"
                "def stage(x):\n"
                "    ready.wait()\n"
                "    if box:\n"
                "        loader = box.pop()\n"
                "        if sys.argv[1] == 'close': loader.close()\n"
                "        cycle = [loader]; cycle.append(cycle)\n"
                "        del loader, cycle\n"
                "        gc.collect()\n"
                "    return x\n"
                "box, ready = [], threading.Event()\n"
                "x = stoker.Array(memoryview(bytes(4000)).cast('i'))\n"
                "n = len(os.listdir('/proc/self/task'))\n"
                "box.append(stoker.Loader(stoker.Dataset.arrays(x=x).map(stage, 'x').batch(500), threads=2, slots=3))\n"
                "ready.set()\n"
                "while box: time.sleep(1e-3)\n"
                "if sys.argv[1] != 'exit':\n"
                "    while len(os.listdir('/proc/self/task')) > n: time.sleep(1e-3)\n"
                "print('well')\n")
        for how in ("close", "collect", "exit"):
            done = subprocess.run([sys.executable, "-c", code, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"well\n", b""), how)

    def test_cycles_through_a_function_are_collected(self):
        class Thing:
            pass

        def make(how):
            thing = Thing()
            ds = counted(4000).map(lambda x: (thing, x)[1], "x").batch(2)
            thing.held = ds.build() if how == "data set" else Loader(ds, threads=2)
            if how == "batch":
                thing.held = thing.held, next(iter(thing.held))
            return weakref.ref(thing)

        threads = len(os.listdir("/proc/self/task"))
        for how in ("data set", "loader", "batch"):
            gone = make(how)
            for _ in range(3):
                gc.collect()
            self.assertIsNone(gone(), how)
        self.assertEqual(len(os.listdir("/proc/self/task")), threads)

    @unittest.skipIf("san.so" in os.environ.get("LD_PRELOAD", ""), "a sanitizer keeps what was freed")
    def test_ten_thousand_batches_take_no_memory(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        seen, early, kept = 0, 0, None
        with Loader(counted(800).shuffle(seed=1).batch(8)) as loader:
            while seen < 10000:
                for batch in loader:
                    kept = [memoryview(batch["x"]), batch["x"][2:4], batch["x"].__dlpack__()]
                    seen += 1
                if seen == 2000:
                    gc.collect()
                    early = resident()
        self.assertEqual(kept[0].shape, (8,))
        self.assertLess(resident() - early, 1 << 20)

    @skip_without_numpy
    def test_numpy_has_no_bfloat16(self):
        batch = next(iter(Loader(counted(4).map(stages.cast("bf16"), "x").batch(4))))
        with self.assertRaisesRegex(TypeError, "bfloat16"):
            np.asarray(batch["x"])
        self.assertEqual(batch["x"].tolist(), [0, 1, 2, 3])
        numbers = next(iter(Loader(counted(4).batch(4))))["x"]
        self.assertEqual(numbers.__array__().ctypes.data, numbers.address)
        self.assertNotEqual(numbers.__array__(copy=True).ctypes.data, numbers.address)
        self.assertEqual(numbers.__array__("float32").dtype, np.float32)

    def test_it_imports_no_framework(self):
        code = "import sys, stoker\nprint([m for m in ('numpy', 'torch', 'jax', 'tensorflow', 'IPython', 'json') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_ctrl_c_ends_a_wait(self):
        code = ("import stoker, threading, time, os, signal\n"
                "ds = stoker.Dataset.function(lambda i: {'x': time.sleep(1e-3) or i}, 10**9, {'x': ('int64', ())})\n"
                "loader = stoker.Loader(ds.batch(100000))\n"
                "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n    next(iter(loader))\n"
                "except KeyboardInterrupt:\n    print('interrupted')\n")
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, b"interrupted\n"))

    def test_a_process_ends_with_loaders_open(self):
        code = ("import stoker, time\n"
                "ds = stoker.Dataset.function(lambda i: {'x': time.sleep(1e-4) or i}, 10**6, {'x': ('int64', ())})\n"
                "loader = stoker.Loader(ds.batch(10))\n"
                "batches = iter(loader)\nkept = next(batches)\nprint('well')\n")
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"well\n", b""))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_child_has_an_error_and_may_open_its_own(self):
        ds = counted(8).batch(2)
        loader = Loader(ds)
        batches = iter(loader)
        kept = next(batches)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads, from Python 3.12 on
            child = os.fork()
        if child == 0:
            code = 1
            try:
                next(batches)
            except stoker.ForkError as error:
                code = 2 if "forked" not in str(error) else 3
                if code == 3 and samples(Loader(ds)) == list(range(8)) and kept["x"].tolist() == [0, 1]:
                    code = 0
                loader.close()
                del loader, batches, kept
                gc.collect()
            finally:
                os._exit(code)
        deadline = time.time() + 30
        while time.time() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            self.fail("the child hangs")
        self.assertEqual(status, 0)
        self.assertEqual(next(batches)["x"].tolist(), [2, 3])


class Files(unittest.TestCase):
    def test_a_recipe(self):
        with Folder() as folder:
            recipe = {"name": "r", "batch": 4, "seed": 3,
                      "data": {"train": {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 10, "classes": 3}}}}}
            batch = next(iter(Loader(recipe)))
            self.assertEqual(batch["image"].shape, (4, 4, 4, 1))
            path = os.path.join(folder, "r.yaml")
            with open(path, "w") as file:
                file.write("name: r\nbatch: 4\ndata:\n  train:\n    source: {synthetic: {fields: {image: [4, 4, 1]}, "
                           "samples: 10, classes: 3}}\n")
            self.assertEqual(next(iter(Loader(path, set={"batch": 2})))["image"].shape, (2, 4, 4, 1))
            with self.assertRaises(stoker.Error):
                Loader(path, part="test")
            with self.assertRaisesRegex(stoker.Error, "bach"):
                Loader(path, set={"bach": 2})
            self.assertEqual(len(Dataset.recipe(path)), 2)


if __name__ == "__main__":
    unittest.main()
