"""Models of one node with attributes drawn at random, and what ONNX Runtime makes of them, in the form of node tests for test_nodes.

    onnx_fuzz.py FOLDER N [SEED]

Each attribute is drawn from what ONNX allows; what the checker or ONNX Runtime refuses, or ONNX's reference evaluator computes
otherwise, is drawn again. `test_nodes` then says of each
model that its values are right, that it is refused (by name), or that they are wrong.
"""

import os
import random
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
TYPES = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64, np.int32: TensorProto.INT32, np.bool_: TensorProto.BOOL}
rng = random.Random()


def array(*shape, low=-2.0, high=2.0):
    return np.array([rng.uniform(low, high) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)


def ints(values):
    return np.array(values, np.int64)


def shape(least=1, most=4, size=5):
    return [rng.randint(1, size) for _ in range(rng.randint(least, most))]


def maybe(attributes, name, *values):
    """Puts one of the values, or leaves the attribute out."""
    if rng.random() < 0.6:
        attributes[name] = rng.choice(values)() if callable(values[0]) else rng.choice(values)


def axis_of(x):
    return rng.randint(-x.ndim, x.ndim - 1)


def some_axes(x):
    axes = rng.sample(range(x.ndim), rng.randint(1, x.ndim))
    return [a - x.ndim if rng.random() < 0.3 else a for a in axes]


# --- what is drawn for each op: (inputs, attributes) ---

def window(n, a, pool=False):
    kernel = [rng.randint(1, 3) for _ in range(n)]
    if pool or rng.random() < 0.5:
        a["kernel_shape"] = kernel
    maybe(a, "strides", lambda: [rng.randint(1, 3) for _ in range(n)])
    maybe(a, "dilations", lambda: [rng.randint(1, 2) for _ in range(n)])
    if rng.random() < 0.4:
        a["auto_pad"] = rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if a.get("auto_pad", "NOTSET") == "NOTSET":
        maybe(a, "pads", lambda: [rng.randint(0, k - 1) for k in kernel * 2])
    return kernel


def conv():
    n, a, g = rng.randint(1, 3), {}, rng.randint(1, 2)
    kernel = window(n, a)
    if g > 1:
        a["group"] = g
    x, w = array(2, 2 * g, *[rng.randint(4, 7) for _ in range(n)]), array(3 * g, 2, *kernel)
    return [x, w] + ([array(3 * g)] if rng.random() < 0.5 else []), a


def conv_transpose():
    n, a = rng.randint(1, 2), {}
    kernel = window(n, a)
    maybe(a, "output_padding", lambda: [rng.randint(0, 1) for _ in range(n)])
    return [array(1, 2, *[rng.randint(3, 5) for _ in range(n)]), array(2, 3, *kernel)], a


def pool(average):
    n, a = rng.randint(1, 3), {}
    window(n, a, True)
    if a.get("auto_pad", "").startswith("SAME"):
        a.pop("dilations", None)  # ONNX Runtime and the evaluator pad as if there were none, which ONNX's formula does not
    maybe(a, "ceil_mode", 0, 1)
    if average:
        maybe(a, "count_include_pad", 0, 1)
    return [array(1, 2, *[rng.randint(4, 8) for _ in range(n)])], a


def lp_pool():
    inputs, a = pool(False)
    a.pop("dilations", None)
    maybe(a, "p", 1, 2, 3)
    return inputs, a


def reduction():
    a, x = {}, array(*shape(1, 4))
    maybe(a, "keepdims", 0, 1)
    maybe(a, "noop_with_empty_axes", 0, 1)
    return [np.abs(x) + 0.1] + ([ints(some_axes(x))] if rng.random() < 0.7 else []), a


def with_axis(*names):
    def draw():
        a, x = {}, array(*shape(2, 4))
        maybe(a, "axis", lambda: axis_of(x))
        for name in names:
            maybe(a, name, 0, 1)
        return [x], a
    return draw


def resize():
    x, a = array(1, 2, rng.randint(2, 6), rng.randint(2, 6)), {"mode": rng.choice(["nearest", "linear", "cubic"])}
    maybe(a, "coordinate_transformation_mode", "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric",
          "tf_crop_and_resize")
    if a["mode"] == "nearest":
        maybe(a, "nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    else:
        maybe(a, "exclude_outside", 0, 1)
        maybe(a, "antialias", 0, 1)
    if a["mode"] == "cubic":
        maybe(a, "cubic_coeff_a", -0.5, -0.75)
    maybe(a, "extrapolation_value", 0.0, 1.5)
    roi = np.array([0, 0, rng.uniform(0, 0.4), rng.uniform(0, 0.4), 1, 1, rng.uniform(0.6, 1.2), 1], np.float32)
    if rng.random() < 0.5:
        return [x, roi, np.array([1, 1, rng.choice([0.5, 0.6, 1, 1.5, 2]), rng.choice([0.5, 1, 2, 2.5])], np.float32)], a
    return [x, roi, np.array([], np.float32), ints([1, 2, rng.randint(1, 9), rng.randint(1, 9)])], a


def pad():
    x, a = array(*[rng.randint(3, 5) for _ in range(rng.randint(1, 4))]), {}
    maybe(a, "mode", "constant", "reflect", "edge", "wrap")
    pads = [rng.randint(-1 if a.get("mode", "constant") == "constant" else 0, 2) for _ in range(2 * x.ndim)]
    return [x, ints(pads)] + ([np.array(1.5, np.float32)] if rng.random() < 0.5 else []), a


def slices():
    x = array(*shape(1, 4, 7))
    axes = some_axes(x)
    n = len(axes)
    return [x, ints([rng.randint(-8, 8) for _ in range(n)]), ints([rng.choice([-9, -2, 3, 5, 99]) for _ in range(n)]), ints(axes),
            ints([rng.choice([-3, -2, -1, 1, 2, 3]) for _ in range(n)])], {}


def gather():
    x, a = array(*shape(1, 3)), {}
    maybe(a, "axis", lambda: axis_of(x))
    n = x.shape[a.get("axis", 0)]
    return [x, ints([[rng.randint(-n, n - 1) for _ in range(2)] for _ in range(2)])], a


def gather_elements():
    x, a = array(*shape(1, 3)), {}
    maybe(a, "axis", lambda: axis_of(x))
    n = x.shape[a.get("axis", 0)]
    return [x, np.array([rng.randint(-n, n - 1) for _ in range(x.size)], np.int64).reshape(x.shape)], a


def scatter_elements():
    x, a = array(*shape(1, 3)), {}
    maybe(a, "axis", lambda: axis_of(x))
    maybe(a, "reduction", "none", "add", "mul", "max", "min")
    axis = a.get("axis", 0)
    order = np.argsort(array(*x.shape), axis=axis)  # each place once
    return [x, order.astype(np.int64), array(*x.shape)], a


def scatter_nd():
    x, a = array(4, 3, 2), {}
    maybe(a, "reduction", "none", "add", "mul", "max", "min")
    if rng.random() < 0.5:
        return [x, ints([[i] for i in rng.sample(range(4), 2)]), array(2, 3, 2)], a
    return [x, ints([[i, rng.randint(-3, 2)] for i in rng.sample(range(4), 3)]), array(3, 2)], a


def gather_nd():
    a = {}
    maybe(a, "batch_dims", 0, 1)
    x = array(2, 3, 4)
    if a.get("batch_dims"):
        return [x, ints([[[rng.randint(-3, 2)]], [[rng.randint(-3, 2)]]])], a
    return [x, ints([[rng.randint(-2, 1), rng.randint(-3, 2)] for _ in range(3)])], a


def top_k():
    x, a = np.round(array(*shape(1, 3, 6))), {}
    maybe(a, "axis", lambda: axis_of(x))
    maybe(a, "largest", 0, 1)
    return [x, ints([rng.randint(1, x.shape[a.get("axis", -1)])])], a


def einsum():
    sizes = {c: rng.randint(1, 4) for c in "abcd"}
    terms = ["".join(rng.sample("abcd", rng.randint(1, 3))) for _ in range(rng.randint(1, 3))]
    letters = sorted(set("".join(terms)))
    out = "".join(rng.sample(letters, rng.randint(0, len(letters))))
    arrow = rng.random() < 0.8
    return [array(*[sizes[c] for c in t]) for t in terms], {"equation": ",".join(terms) + ("->" + out if arrow else "")}


def recurrent(gates):
    def draw():
        a = {"direction": rng.choice(["forward", "reverse", "bidirectional"]), "hidden_size": 3}
        d = 2 if a["direction"] == "bidirectional" else 1
        if gates == 3:
            maybe(a, "linear_before_reset", 0, 1)
        inputs = [array(4, 2, 3), array(d, gates * 3, 3), array(d, gates * 3, 3)]
        if rng.random() < 0.7:
            inputs += [array(d, 2 * gates * 3), None, array(d, 2, 3)]
            if gates == 4:
                inputs.append(array(d, 2, 3))
                if rng.random() < 0.5:
                    inputs.append(array(d, 9))
        return inputs, a
    return draw


def gemm():
    a = {}
    for name in "alpha", "beta":
        maybe(a, name, 0.5, 2.0)
    for name in "transA", "transB":
        maybe(a, name, 0, 1)
    m, n, k = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 4)
    x = array(k, m) if a.get("transA") else array(m, k)
    y = array(n, k) if a.get("transB") else array(k, n)
    return [x, y] + ([array(*rng.choice([(m, n), (n,), (1, n), (m, 1), ()]))] if rng.random() < 0.7 else []), a


def scalar(**choices):
    def draw():
        a = {}
        for name, values in choices.items():
            maybe(a, name, *values)
        return [array(*shape(1, 3), low=-5, high=5)], a
    return draw


def layer_norm():
    x, a = array(*shape(2, 4)), {}
    maybe(a, "axis", lambda: axis_of(x))
    maybe(a, "epsilon", 1e-5, 1e-2)
    of = x.shape[a.get("axis", -1):]
    return [x, array(*of)] + ([array(*of)] if rng.random() < 0.6 else []), a


def arg():
    inputs, a = with_axis("keepdims", "select_last_index")()
    return [np.round(inputs[0])], a


def cumsum():
    x, a = array(*shape(1, 3)), {}
    maybe(a, "exclusive", 0, 1)
    maybe(a, "reverse", 0, 1)
    return [x, np.array(axis_of(x), np.int64)], a


def blocks(name, modes):
    def draw():
        a = {"blocksize": 2}
        if modes:
            maybe(a, "mode", "DCR", "CRD")
        return [array(1, 8, 4, 6)], a
    return draw


def grid_sample():
    a = {}
    maybe(a, "align_corners", 0, 1)
    maybe(a, "mode", "linear", "nearest", "cubic")
    maybe(a, "padding_mode", "zeros", "border", "reflection")
    return [array(1, 2, 4, 5), array(1, 3, 3, 2, low=-1.4, high=1.4)], a


def transpose():
    x, a = array(*shape(1, 4)), {}
    maybe(a, "perm", lambda: rng.sample(range(x.ndim), x.ndim))
    return [x], a


def trilu():
    return [array(*shape(2, 3))] + ([np.array(rng.randint(-3, 3), np.int64)] if rng.random() < 0.6 else []), rng.choice([{}, {"upper": 0}, {"upper": 1}])


def whole(low):
    def draw():
        s = shape(1, 2)
        x = np.array([rng.randint(-2**62, 2**62) for _ in range(int(np.prod(s)))], np.int64).reshape(s)
        y = np.array([rng.choice([1, -1, 3, -7, 10**9, 2**40 + 1]) for _ in range(int(np.prod(s)))], np.int64).reshape(s)
        return [x, y], {}
    return draw


def mod():
    a, s = {"fmod": 1}, shape(1, 2)
    return [array(*s, low=-9, high=9), array(*s, low=1, high=3)], a


OPS = {
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": lambda: pool(False), "AveragePool": lambda: pool(True), "LpPool": lp_pool,
    "Softmax": with_axis(), "LogSoftmax": with_axis(), "Hardmax": with_axis(), "Flatten": with_axis(), "ArgMax": arg, "ArgMin": arg,
    "Resize": resize, "Pad": pad, "Slice": slices, "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd,
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "TopK": top_k, "Einsum": einsum, "LSTM": recurrent(4), "GRU": recurrent(3),
    "RNN": recurrent(1), "Gemm": gemm, "LayerNormalization": layer_norm, "CumSum": cumsum, "GridSample": grid_sample, "Transpose": transpose,
    "Trilu": trilu, "Div": whole(1), "Mod": mod, "DepthToSpace": blocks("", True), "SpaceToDepth": blocks("", False),
    "LeakyRelu": scalar(alpha=[0.1, 0.5]), "Elu": scalar(alpha=[0.5, 2.0]), "Celu": scalar(alpha=[0.5, 2.0]),
    "Selu": scalar(alpha=[1.0, 2.0], gamma=[0.5, 2.0]), "HardSigmoid": scalar(alpha=[0.1, 0.5], beta=[0.1, 0.6]),
    "ThresholdedRelu": scalar(alpha=[0.5, 2.0]), "Shrink": scalar(bias=[0.1, 0.5], lambd=[0.3, 1.0]), "Gelu": scalar(approximate=["none", "tanh"]),
    "LpNormalization": with_axis(), "Softplus": scalar(), "Asinh": scalar(), "Sinh": scalar(), "Mish": scalar(),
}
for name in "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare":
    OPS["Reduce" + name] = reduction
OUTPUTS = {"TopK": 2, "LSTM": 3, "GRU": 2, "RNN": 2}


def draw(op):
    inputs, attributes = OPS[op]()
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(OUTPUTS.get(op, 1))]
    node = helper.make_node(op, names, outputs, name="the_node", **attributes)
    infos = [helper.make_tensor_value_info(n, TYPES[x.dtype.type], x.shape) for n, x in zip(names, inputs) if x is not None]
    graph = helper.make_graph([node], "fuzz", infos, [helper.make_empty_tensor_value_info(n) for n in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {n: x for n, x in zip(names, inputs) if x is not None}
    results = session.run(None, feed)
    check_peer(model, feed, results)
    if attributes.get("approximate") == "tanh":
        results = [gelu_by_tanh(feed["x0"])]
    return model, feed, results


def gelu_by_tanh(x):
    """In doubles: ONNX Runtime adds 1 to a tanh near -1, and has no digit left at -5, where the value is -2e-7."""
    x = x.astype(np.float64)
    return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))).astype(np.float32)


def check_peer(model, feed, results):
    """Where ONNX's own evaluator disagrees with ONNX Runtime, nothing is known to be right."""
    for got, want in zip(ReferenceEvaluator(model).run(None, feed), results):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


def main():
    folder, n = sys.argv[1], int(sys.argv[2])
    rng.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    onnxruntime.set_default_logger_severity(4)
    made, refused = 0, 0
    while made < n:
        op = sorted(OPS)[made % len(OPS)]
        try:
            model, feed, results = draw(op)
        except Exception:  # pylint: disable=broad-except  # The checker and ONNX Runtime have many of their own.
            refused += 1
            if refused > 50 * n:
                sys.exit(f"'{op}' cannot be drawn")
            continue
        data = f"{folder}/fuzz_{made:05d}_{op}/test_data_set_0"
        os.makedirs(data, exist_ok=True)
        with open(f"{folder}/fuzz_{made:05d}_{op}/model.onnx", "wb") as f:
            f.write(model.SerializeToString())
        for kind, values in ("input", feed.items()), ("output", zip([o.name for o in model.graph.output], results)):
            for i, (name, value) in enumerate(values):
                with open(f"{data}/{kind}_{i}.pb", "wb") as f:
                    f.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())
        made += 1
    print(f"{made} models of {len(OPS)} ops in {folder}; {refused} draws were refused, or the two disagree")


main()
