"""Steps of one's own: values with operators, layers and losses by name, gradients, optimisers, weights."""

import importlib.util
import os
import subprocess
import sys
import unittest

import stoker
from stoker import graph, layers, losses, networks, optimizers
from stoker.graph import arange, assign, constant, grad, scope, variable
from support import HAS_NUMPY, Folder, skip_without_numpy

if HAS_NUMPY:
    import numpy


def floats(values, shape=None):
    """An array of float32 out of numbers."""
    import array
    flat = memoryview(array.array("f", values)).cast("B")
    return stoker.Array(flat.cast("f", shape or (len(values),)))


def run(function, *arrays, training=False, **more):
    """The function, compiled for these arrays and run once."""
    names = function.__code__.co_varnames[:function.__code__.co_argcount]
    with stoker.Session(threads=1, seed=1) as session:
        return session.compile(function, training=training, **dict(zip(names, arrays)))(*arrays)


@skip_without_numpy
class Values(unittest.TestCase):
    def setUp(self):
        draw = numpy.random.default_rng(1)
        self.a = draw.uniform(0.5, 2, (2, 3, 4)).astype("float32")
        self.b = draw.uniform(0.5, 2, (3, 1)).astype("float32")

    def same(self, function, *arrays, tolerance=1e-5):
        """The same function of NumPy's arrays and of values."""
        wanted = numpy.asarray(function(*arrays))
        names = ("a", "b", "c")[:len(arrays)]
        with stoker.Session(threads=1) as session:
            step = session.compile(lambda **values: function(*values.values()), **dict(zip(names, arrays)))
            got = numpy.asarray(step(*arrays))
        self.assertEqual(got.shape, wanted.shape)
        numpy.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)

    def test_operators_are_numpys(self):
        for f in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a ** b, lambda a, b: -a + abs(b),
                  lambda a, b: 2 + a * 3 - 1, lambda a, b: 2 - a, lambda a, b: 1 / b, lambda a, b: 2.0 ** b, lambda a, b: a ** 2, lambda a, b: a ** 0.5,
                  lambda a, b: b * 2.5 / 3):
            self.same(f, self.a, self.b)

    def test_comparisons_give_bool(self):
        def f(a, b):
            return graph.where(a > b, a, 0.0), a == a, a != a, a <= b, a >= 1.0, a < 1
        got = run(f, self.a, self.b)
        a, b = self.a, self.b
        for x, y in zip(got, (numpy.where(a > b, a, 0), a == a, a != a, a <= b, a >= 1, a < 1)):
            numpy.testing.assert_array_equal(numpy.asarray(x), y)

    def test_bool_has_its_operators_and_scalars_are_numbers(self):
        a = self.a

        def f(a):
            m, n = a > 1, a < 1.5
            return m & n, m | n, ~m, (a * numpy.float32(2)).var(axis=1), a.std(), (m & True).astype("int32").sum()
        m, n = a > 1, a < 1.5
        got = run(f, a)
        for x, y in zip(got[:3], (m & n, m | n, ~m)):
            numpy.testing.assert_array_equal(numpy.asarray(x), y)
        numpy.testing.assert_allclose(numpy.asarray(got[3]), (2 * a).var(axis=1), rtol=1e-5)
        self.assertAlmostEqual(got[4], float(a.std()), places=5)
        self.assertEqual((type(got[5]), got[5]), (int, int(m.sum())))
        self.assertIs(run(lambda a: a.max() > 1, a), True)

    def test_products(self):
        self.same(lambda a, b: a @ b, self.a, numpy.ones((4, 5), "float32"))
        self.same(lambda a, b: a @ b.transpose(0, 2, 1), self.a, self.a)
        self.same(lambda a: a.T, self.a)
        self.same(lambda a, b: a.reshape(6, -1) @ b.T, self.a, numpy.ones((5, 4), "float32"))

    def test_indices(self):
        for f in (lambda a: a[0], lambda a: a[-1, 1], lambda a: a[1, 2, 3], lambda a: a[:, 1:], lambda a: a[..., ::2], lambda a: a[:, None, -2],
                  lambda a: a[0, ..., 1:3], lambda a: a[None], lambda a: a[:, -2:-1], lambda a: a[..., None]):
            self.same(f, self.a)
        for wrong in (lambda a: a[2], lambda a: a[0, 0, 0, 0], lambda a: a[::-1], lambda a: a["x"], lambda a: a[1.0]):
            with self.assertRaises(IndexError):
                run(wrong, self.a)

    def test_over_axes(self):
        for name in ("sum", "mean", "max", "min", "prod"):
            for axis, keep in ((None, False), (0, False), (-1, True), ((0, 2), False), (None, True)):
                self.same(lambda a, name=name, axis=axis, keep=keep: getattr(a, name)(axis=axis, keepdims=keep), self.a)
        self.same(lambda a: a.argmax(axis=1), self.a)
        self.same(lambda a: a.cumsum(axis=2), self.a)

    def test_functions(self):
        for name in ("exp", "log", "sqrt", "tanh", "sign", "sin", "cos", "floor", "ceil", "log1p", "expm1"):
            got = run(lambda a, name=name: getattr(graph, name)(a), self.a)
            numpy.testing.assert_allclose(numpy.asarray(got), getattr(numpy, name)(self.a), rtol=2e-6, atol=2e-6)

        def f(a, b):
            return (graph.maximum(a, 1.0), graph.minimum(1.5, a), graph.concatenate([a, a], -1), graph.stack([a, a], 1),
                    graph.pad(a, ((0, 0), (1, 2), (0, 1)), 7.0), graph.take(a, arange(3)[1:], axis=1), b.broadcast_to((2, 3, 4)),
                    graph.softmax(a), graph.sigmoid(a), graph.relu(a - 1), graph.erf(a - a), a.astype("float64"), constant(3, (2,)))
        a = self.a
        e = numpy.exp(a)
        wanted = (numpy.maximum(a, 1), numpy.minimum(1.5, a), numpy.concatenate([a, a], -1), numpy.stack([a, a], 1),
                  numpy.pad(a, ((0, 0), (1, 2), (0, 1)), constant_values=7), a[:, 1:], numpy.broadcast_to(self.b, (2, 3, 4)),
                  e / e.sum(-1, keepdims=True), 1 / (1 + numpy.exp(-a)), numpy.maximum(a - 1, 0), numpy.zeros_like(a), a, numpy.full(2, 3.0))
        for i, (x, y) in enumerate(zip(run(f, self.a, self.b), wanted)):
            numpy.testing.assert_allclose(numpy.asarray(x), y, rtol=1e-5, atol=1e-6, err_msg=str(i))

    def test_attention(self):
        q = numpy.random.default_rng(2).normal(size=(1, 3, 2, 4)).astype("float32")
        got = numpy.asarray(run(lambda q: graph.attention(q, q, q, causal=True), q))
        for head in range(2):
            x = q[0, :, head]
            weight = numpy.exp(x @ x.T / 2) * numpy.tri(3)
            numpy.testing.assert_allclose(got[0, :, head], weight / weight.sum(1, keepdims=True) @ x, rtol=1e-5)

    def test_attention_by_masks_of_its_own(self):
        rng = numpy.random.default_rng(3)
        q, (k, v) = rng.normal(size=(2, 3, 2, 4)).astype("float32"), rng.normal(size=(2, 2, 5, 2, 4)).astype("float32")
        keys, seen = numpy.array([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], bool), rng.random((3, 5)) < 0.6
        seen[1] = False
        bias = rng.normal(size=(2, 1, 3, 5)).astype("float32")

        def wanted(added, kept):
            weight = numpy.exp(numpy.einsum("nthd,nshd->nhts", q, k) / 2 + added) * kept
            return numpy.einsum("nhts,nshd->nthd", weight / numpy.maximum(weight.sum(-1, keepdims=True), 1e-30), v)

        def f(q, k, v, keys, bias):
            by_array, ours = constant(seen), graph.attention(q, k, v, causal=True, attn_mask=constant(bias_of_causal))
            return (graph.attention(q, k, v, attn_mask=by_array), graph.attention(q, k, v, attn_mask=bias), ours,
                    graph.attention(q, k, v, keys, causal=True, attn_mask=by_array),
                    grad((graph.attention(q, k, v, causal=True) ** 2).sum(), q), grad((ours ** 2).sum(), q))

        bias_of_causal = numpy.zeros((3, 5), "float32")
        got = [numpy.asarray(x) for x in run(f, q, k, v, keys, bias)]
        early = numpy.tri(3, 5)
        for x, y in zip(got, (wanted(0, seen), wanted(bias, 1), wanted(0, early), wanted(0, seen * early * keys[:, None, None]))):
            numpy.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
        self.assertTrue((got[0][:, 1] == 0).all())
        numpy.testing.assert_allclose(got[4], got[5], rtol=1e-4, atol=1e-5)

    def test_constants_are_arrays_too(self):
        table = numpy.arange(6, dtype="int32").reshape(2, 3)
        weights, other = numpy.linspace(0, 1, 4, dtype="float32"), numpy.ones(4, "float32")

        def f(a):
            unused = constant(table)
            return (a * constant(weights)).sum(-1), constant(table) * 2, grad((a * constant(weights)).sum(), a), constant(numpy.float32(2)), unused.shape[0] * a

        with stoker.Session(threads=1) as session:
            step = session.compile(f, a=self.a)
            wanted = ((self.a * weights).sum(-1), table * 2, numpy.broadcast_to(weights.copy(), self.a.shape), 2.0, 2 * self.a)
            weights[:] = 7  # the step has a copy
            for _ in range(2):
                for x, y in zip(step(self.a), wanted):
                    numpy.testing.assert_allclose(numpy.asarray(x), y, rtol=1e-5)
            self.assertEqual((list(step.inputs), session.weights()), (["a"], {}))
            again = session.compile(lambda a: a * constant(other), a=self.a)  # each step has its own
            numpy.testing.assert_array_equal(numpy.asarray(again(self.a)), self.a)
        with self.assertRaisesRegex(TypeError, "a shape and a type of its own"):
            run(lambda a: a * constant(other, dtype="float64"), self.a)
        with self.assertRaisesRegex(TypeError, "an input of the step, or a constant"):
            run(lambda a: a * other, self.a)
        with self.assertRaisesRegex(RuntimeError, "a function that Session.compile calls"):
            constant(other)

    def test_gradients_are_differences(self):
        def f(a, b):
            return (graph.tanh(a @ b) ** 2 * a.sum(axis=-1, keepdims=True)).sum()

        a, b = self.a.astype("float64"), numpy.linspace(-1, 1, 8).reshape(4, 2)
        with stoker.Session(threads=1) as session:
            value = session.compile(f, a=a, b=b)
            slopes = session.compile(lambda a, b: grad(f(a, b), (a, b)), a=a, b=b)(a, b)
            for of, slope in zip((a, b), slopes):
                slope = numpy.asarray(slope)
                for i in range(of.size):
                    ends = []
                    for change in (1e-6, -1e-6):
                        kept = of.flat[i]
                        of.flat[i] += change
                        ends.append(value(a, b))
                        of.flat[i] = kept
                    self.assertAlmostEqual((ends[0] - ends[1]) / 2e-6, slope.flat[i], delta=1e-5 * max(1, abs(slope.flat[i])))

    def test_gradients_of_gradients(self):
        got = run(lambda a: grad(grad((a ** 2 * a).sum(), a).sum(), a), self.a)
        numpy.testing.assert_allclose(numpy.asarray(got), 6 * self.a, rtol=1e-5)

    def test_an_array_is_no_part_of_a_step(self):
        for wrong in (lambda a: a + self.b, lambda a: self.b + a, lambda a: a @ self.b):
            with self.assertRaises(TypeError):
                run(wrong, self.a)


class Training(unittest.TestCase):
    def test_a_line_is_found(self):
        def train(x, y):
            w, b = variable("w", (2, 1), "he"), variable("b", (1,))
            loss = ((x @ w + b - y) ** 2).mean()
            stoker.minimize(loss, optimizers.sgd(lr=0.3))
            return {"loss": loss, "more": (w, [b, loss])}

        xs = [(i % 5 - 2, i % 3 - 1) for i in range(30)]
        x, y = floats([v for p in xs for v in p], (30, 2)), floats([3 * a - 2 * b + 1 for a, b in xs], (30, 1))
        with stoker.Session(threads=1, seed=2) as session:
            step = session.compile(train, training=True, x=x, y=(30, 1))
            first = step(x=x, y=y)
            self.assertIsInstance(first["loss"], float)
            for _ in range(100):
                last = step(x, y)
            self.assertLess(last["loss"], 1e-6)
            w, (b, loss) = last["more"]
            self.assertEqual(loss, last["loss"])
            for got, wanted in zip([v for row in w.tolist() for v in row] + b.tolist(), (3, -2, 1)):
                self.assertAlmostEqual(got, wanted, places=3)
            self.assertEqual({n: a.shape for n, a in session.weights().items()}, {"w": (2, 1), "b": (1,)})
            self.assertEqual(repr(step), "<stoker.Step of x float32 (30, 2), y float32 (30, 1)>")

    def test_optimisers_take_turns(self):
        def make(only):
            def train(x):
                with scope("a"):
                    a = layers.dense(x, 1) + variable("w", (1,))
                with scope("b"):
                    b = layers.dense(x, 1)
                stoker.minimize(((a + b - 1) ** 2).mean(), optimizers.adam(lr=0.1), clip_norm=1.0, only=only)
            return train
        x = floats([1, 2, 3, 4], (2, 2))
        with stoker.Session(threads=1, seed=1) as session:
            first, second = (session.compile(make(only), training=True, x=(2, 2)) for only in ("a", "b"))
            before = {n: w.tolist() for n, w in session.weights().items()}
            self.assertIsNone(first(x))
            middle = {n: w.tolist() for n, w in session.weights().items()}
            self.assertEqual(sorted(before), ["a.dense.bias", "a.dense.weight", "a.w", "b.dense.bias", "b.dense.weight"])
            self.assertEqual({n for n in before if before[n] != middle[n]}, {"a.dense.bias", "a.dense.weight", "a.w"})
            second.set_lr(0.0)
            second(x)
            self.assertEqual({n: w.tolist() for n, w in session.weights().items()}, middle)

    def test_weights_go_out_and_in(self):
        def predict(x):
            return layers.dense(layers.batch_norm(layers.dense(x, 4)), 2)

        x = floats([1, 2, 3, 4, 5, 6], (2, 3))
        with Folder() as folder, stoker.Session(threads=1, seed=1) as one, stoker.Session(threads=1, seed=2) as other:
            path = os.path.join(folder, "w.safetensors")
            a, b = (s.compile(predict, x=(2, 3)) for s in (one, other))
            wanted = a(x).tolist()
            self.assertNotEqual(b(x).tolist(), wanted)
            one.save(path)
            other.load(path)
            self.assertEqual(b(x).tolist(), wanted)
            self.assertEqual(sorted(stoker.weights(path)), sorted(one.weights()))
            other.set_weights({"dense.bias": floats([0, 0, 0, 9])})
            self.assertNotEqual(b(x).tolist(), wanted)
            with self.assertRaisesRegex(stoker.NotFoundError, "dense.bias"):
                other.set_weights({"dens.bias": floats([0])})
            # As many bytes, and yet not the same.
            for wrong in (floats([0]), floats([0] * 12, (3, 4)), stoker.Array(memoryview(bytes(48)).cast("i", (4, 3)))):
                with self.assertRaisesRegex(ValueError, "weight 'dense.weight' is float32 .4, 3., and is given"):
                    other.set_weights({"dense.weight": wrong})
            self.assertEqual(other.weights()["dense.weight"].tolist(), one.weights()["dense.weight"].tolist())

    def test_a_variable_may_be_assigned(self):
        def number():
            return variable("n", (), trainable=False)

        def count():
            n = number()
            assign(n, n + 1)
            return n, n * 2

        def see():
            n = number()
            return n, n * 2
        with stoker.Session(threads=1) as session:
            step, look = session.compile(count, training=True), session.compile(see)
            self.assertEqual([step() for _ in range(3)], [(1, 0), (2, 2), (3, 4)])
            self.assertEqual([look(), look(), step()], [(3, 6), (3, 6), (4, 6)])

    def test_losses_are_means(self):
        logits, labels = floats([1, 2, 3, 3, 2, 1], (2, 3)), stoker.Array(memoryview(b"\1\0\0\0\xff\xff\xff\xff").cast("i", (2,)))
        each = run(lambda x: losses.mse(x, x * 0.0, reduction="none"), logits)
        self.assertEqual([round(v, 5) for v in each.tolist()], [round(14 / 3, 5)] * 2)
        self.assertAlmostEqual(run(lambda x: losses.mse(x, x * 0.0), logits), 14 / 3, places=5)
        # The label -1 does not count, and so is no half of the mean.
        got = run(lambda x, y: losses.cross_entropy(x, y, ignore=-1), logits, labels)
        self.assertAlmostEqual(got, 1.4076059, places=5)

    def test_whole_networks(self):
        with stoker.Session(threads=1) as session:
            step = session.compile(lambda x: networks.resnet18(x, classes=10, stem="cifar"), x=(1, 32, 32, 3))
            self.assertEqual(step(floats([0.0] * 3072, (1, 32, 32, 3))).shape, (1, 10))
            n = sum(w.nbytes // 4 for name, w in session.weights().items() if "running" not in name)
            self.assertEqual(n, 11173962)

    def test_the_same_seed_is_the_same_network(self):
        x = floats([1, 2], (1, 2))
        got = []
        for seed in (1, 1, 2):
            with stoker.Session(threads=1, seed=seed) as session:
                got.append(session.compile(lambda x: layers.dense(x, 3), x=(1, 2))(x).tolist())
        self.assertEqual(got[0], got[1])
        self.assertNotEqual(got[0], got[2])

    @unittest.skipUnless(importlib.util.find_spec("torch") and HAS_NUMPY, "there is no torch")
    def test_it_follows_pytorch(self):
        import torch
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)
        x, y = torch.randn(32, 6), torch.randint(0, 4, (32,), dtype=torch.int32)

        def train(x, y):
            logits = layers.dense(layers.batch_norm(layers.relu(layers.dense(x, 16))), 4)
            loss = losses.cross_entropy(logits, y, smoothing=0.1)
            stoker.minimize(loss, optimizers.adamw(lr=0.01, weight_decay=0.1), clip_norm=0.5)
            return loss
        with stoker.Session(threads=1) as session:
            step = session.compile(train, training=True, x=x, y=y)
            ours = sorted(session.weights())
            state = {("dense", "dense_1", "batch_norm")[(0, 3, 2).index(int(n.split(".")[0]))] + "." + n.split(".")[1]: w.detach().numpy()
                     for n, w in net.state_dict().items() if "num" not in n}
            self.assertEqual(sorted(state), ours)
            session.set_weights(state)
            for i in range(20):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(x), y.long(), label_smoothing=0.1)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
                self.assertAlmostEqual(step(x, y), loss.item(), places=4, msg=str(i))


class TheirNames(unittest.TestCase):
    """Completion and help(): what the library knows, with its keys."""

    def test_all_are_listed(self):
        for names, some, kind in ((layers, ("dense", "relu", "batch_norm"), "layer"), (networks, ("resnet18", "bert"), "model"),
                                  (losses, ("cross_entropy",), "loss"), (optimizers, ("sgd", "adamw"), "optimizer"),
                                  (stoker.stages, ("decode", "resize"), "stage")):
            listed = [name for name in dir(names) if not name.startswith("_")]
            self.assertLessEqual(set(some), set(listed), kind)
            self.assertTrue(all(name.isidentifier() and getattr(names, name).__doc__ for name in listed), kind)
            self.assertNotIn("with", listed)
            self.assertNotIn("from", listed)

    def test_help_has_the_keys(self):
        self.assertIn("| `units` | a whole number", layers.dense.__doc__)
        self.assertEqual(layers.relu.__doc__, "max(x, 0).")
        self.assertIsNone(layers.denze.__doc__)
        self.assertIn("momentum", optimizers.sgd.__doc__)


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.session = stoker.Session(threads=1)
        self.addCleanup(self.session.close)

    def refuse(self, kind, text, function, **inputs):
        with self.assertRaisesRegex(kind, text):
            self.session.compile(function, **(inputs or {"x": (2, 3)}))

    def test_in_building(self):
        kept = []
        self.session.compile(lambda x: kept.append(x) or x, x=(2, 3))
        self.refuse(ValueError, "two steps", lambda x: x + kept[0])
        self.refuse(ValueError, "another step", lambda x: kept[0])
        self.refuse(stoker.ClosedError, "is compiled", lambda x: -kept[0])
        self.refuse(TypeError, "no content", lambda x: 1 if x > 0 else 2)
        self.refuse(TypeError, "iterable", lambda x: list(x))
        self.refuse(TypeError, "not str", lambda x: "x")
        self.refuse(TypeError, "cast it", lambda x: x + 0.5, x=((2,), "int32"))
        self.refuse(TypeError, "type of elements", lambda x: x, x=((2,), "float31"))
        self.refuse(TypeError, "comes first", lambda x: layers.dense(4))
        self.refuse(TypeError, "one setting alone, or keys", lambda x: layers.dense(x, 4, bias=True))
        self.refuse(ValueError, "'mean' or 'none'", lambda x: losses.mse(x, x, reduction="max"))
        self.refuse(ValueError, "sets itself", lambda lr: lr, lr=(1,))
        self.refuse(stoker.InvalidError, "dens", lambda x: layers.dens(x, 4))
        self.refuse(stoker.InvalidError, "layer:1:", lambda x: layers.dense(x, unit=4))
        self.refuse(stoker.InvalidError, "3.*4|4.*3", lambda x: x @ variable("w", (4, 5)))
        self.refuse(TypeError, "as an output", lambda x: float(x.mean()))
        self.refuse(TypeError, "values of bool", lambda x: x & x)
        self.refuse(ValueError, "training=True", lambda x: stoker.minimize(layers.dense(x, 1).sum()))
        self.refuse(ValueError, "training=True", lambda x: assign(variable("n", ()), 1.0))
        self.refuse(ValueError, "is open", lambda x: x, x=(None, 3))
        with self.assertRaisesRegex(stoker.InvalidError, "lr"):
            self.session.compile(lambda x: stoker.minimize(layers.dense(x, 1).sum(), optimizers.sgd(lr=-1)), training=True, x=(2, 3))
        with self.assertRaisesRegex(ValueError, "compile one first"):
            stoker.Session(threads=1).load("w.safetensors")
        self.refuse(ZeroDivisionError, "", lambda x: 1 // 0)
        with self.assertRaisesRegex(RuntimeError, "Session.compile"):
            variable("w", (1,))
        # None of these has harmed the session.
        self.assertEqual(self.session.compile(lambda x: x + 1, x=(1,))(floats([1])).tolist(), [2])

    def test_in_running(self):
        step = self.session.compile(lambda x, y: x + y, x=(2,), y=(2,))
        a = floats([1, 2])
        for arrays, named in (((), {}), ((a,), {}), ((a, a, a), {}), ((a,), {"x": a}), ((a, a), {"z": a}), ((a, 3), {})):
            with self.assertRaises(TypeError):
                step(*arrays, **named)
        with self.assertRaisesRegex(ValueError, "'y': the step was compiled for float32 .2,., and is given float32 .3,."):
            step(a, floats([1, 2, 3]))
        with self.assertRaisesRegex(ValueError, "given int32"):
            step(a, stoker.Array(memoryview(bytes(8)).cast("i", (2,))))
        self.assertEqual(step(a, y=a).tolist(), [2, 4])
        self.session.close()
        self.session.close()
        with self.assertRaises(stoker.ClosedError):
            step(a, a)
        with self.assertRaises(stoker.ClosedError):
            self.session.weights()

    def test_labels_that_are_none(self):
        step = self.session.compile(lambda x, y: losses.cross_entropy(x, y), x=(1, 3), y=((1,), "int32"))
        with self.assertRaisesRegex(stoker.CorruptError, "7"):
            step(floats([1, 2, 3], (1, 3)), stoker.Array(memoryview(b"\7\0\0\0").cast("i", (1,))))

    def test_an_error_of_a_run_loses_nothing(self):
        def train(x, y):
            loss = losses.cross_entropy(layers.dense(layers.batch_norm(layers.dense(x, 4)), 3), y)
            stoker.minimize(loss, optimizers.adam(lr=0.01))
            return loss
        def weights(session):
            return {name: list(memoryview(w).cast("B")) for name, w in session.weights().items() if "running" not in name}
        x, good = floats([1, 2, 3, 4, 5, 6, 7, 9], (4, 2)), stoker.Array(memoryview(bytes(16)).cast("i", (4,)))
        bad = stoker.Array(memoryview(bytes(12) + b"\7\0\0\0").cast("i", (4,)))
        with Folder() as folder:
            losses_of = {}
            for name, labels in ("with errors", [good, bad, bad, good]), ("without", [good, good]):
                with stoker.Session(threads=1, seed=1) as session:
                    step = session.compile(train, x=(4, 2), y=((4,), "int32"), training=True)
                    for y in labels:
                        if y is bad:
                            before = weights(session)
                            with self.assertRaises(stoker.CorruptError):
                                step(x, y)
                            session.save(f"{folder}/{name}.safetensors")
                            self.assertEqual(before, weights(session))
                            with self.assertRaises(stoker.Error):
                                session.compile(lambda x: x.reshape((5,)), x=(4,))
                        else:
                            losses_of.setdefault(name, []).append(step(x, y))
            self.assertEqual(losses_of["with errors"], losses_of["without"])

    def test_devices_that_are_not_here(self):
        with self.assertRaisesRegex(stoker.Error, "no device|not"):
            stoker.Session("abacus")

    def test_a_child_gets_an_error(self):
        program = """
import os, stoker
session = stoker.Session(threads=2)
step = session.compile(lambda x: x + 1, x=(1,))
if os.fork() == 0:
    try:
        step(stoker.Array(memoryview(bytes(4)).cast("f", (1,))))
    except stoker.ForkError:
        session.close()
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.stdout, "7\n")


if __name__ == "__main__":
    unittest.main()
