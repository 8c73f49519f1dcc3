#!/usr/bin/env python3
"""Writes keras_golden.h: five steps of Keras' optimisers, for the `like_keras` variants.

    python3 make_keras.py > keras_golden.h        (Keras 3 on TensorFlow 2; the version is written into the file)
"""
import sys

import keras
import numpy as np

rng = np.random.default_rng(21)
arrays, cases = [], []
N_STEPS, N = 5, 13


def array(x, ctype="float"):
    name = f"keras_{len(arrays)}"
    form = "%.9g" if ctype == "float" else "%d"
    words = [form % v for v in x.flatten()]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    arrays.append(f"static const {ctype} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return name


def tensor(x, dtype="STK_F32"):
    shape = "DIMS(" + ", ".join(map(str, x.shape)) + ")" if x.shape else "{0}"
    return f"{{{dtype}, {shape}, {array(x, 'int64_t' if dtype == 'STK_I64' else 'float')}}}"


def record(name, op, attrs, optimizer, lr, slots, with_step):
    """slots: names of the optimiser's variables, in the order of the op's outputs."""
    param = keras.Variable(rng.uniform(-1, 1, N).astype(np.float32), name="param")
    optimizer.build([param])
    find = lambda slot: next(v for v in optimizer.variables if v.path.endswith(slot)).numpy()
    read = lambda: [param.numpy().copy()] + [find(slot).copy() for slot in slots]
    first, grads, history = read(), [], []
    for _ in range(N_STEPS):
        grads.append(rng.uniform(-1, 1, N).astype(np.float32))
        optimizer.apply([keras.ops.convert_to_tensor(grads[-1])], [param])
        history.append(read())
    inputs = [tensor(x) for x in first] + [tensor(np.stack(grads)), tensor(np.array(lr, np.float32))]
    if with_step:
        inputs.append(tensor(np.array(0), "STK_I64"))
    outputs = [tensor(np.stack(x)) for x in zip(*history)]
    pad = ",\n         "
    cases.append(f'    {{"{name}",\n     STK_OP_{op},\n     {{{attrs}}},\n     {len(inputs)},\n     {len(outputs)},\n'
                 f"     {N_STEPS},\n     {len(first)},\n     {{{pad.join(inputs)}}},\n     {{{pad.join(outputs)}}}}},")


for decay in (0, 0.5):
    for nesterov in (False, True):
        record("Keras SGD" + (", nesterov" if nesterov else "") + (", decay" if decay else ""), "sgd_update",
               f".sgd = {{0.9, {decay}, {int(nesterov)}, 1}}",
               keras.optimizers.SGD(0.1, momentum=0.9, nesterov=nesterov, weight_decay=decay or None), 0.1,
               ["param_momentum"], False)
record("Keras Adam", "adam_update", ".adam = {0.9, 0.999, 1e-7, 0, 0, 1}",
       keras.optimizers.Adam(0.01, 0.9, 0.999, 1e-7), 0.01, ["param_momentum", "param_velocity"], True)
record("Keras Adam, large eps", "adam_update", ".adam = {0.8, 0.95, 0.1, 0, 0, 1}",
       keras.optimizers.Adam(0.1, 0.8, 0.95, 0.1), 0.1, ["param_momentum", "param_velocity"], True)
record("Keras Adam, decay", "adam_update", ".adam = {0.9, 0.999, 1e-7, 0.5, 1, 1}",
       keras.optimizers.Adam(0.1, 0.9, 0.999, 1e-7, weight_decay=0.5), 0.1, ["param_momentum", "param_velocity"], True)
record("Keras AdamW", "adam_update", ".adam = {0.9, 0.999, 1e-7, 1, 1, 1}",
       keras.optimizers.AdamW(0.01, 1.0, 0.9, 0.999, 1e-7), 0.01, ["param_momentum", "param_velocity"], True)

sys.stdout.write(f"""/* Made by tests/golden/make_keras.py with Keras {keras.__version__}; do not edit. */
/* clang-format off */
""" + "\n".join(arrays) + "\n\nstatic const golden_case keras_cases[] = {\n" + "\n".join(cases) + "\n};\n")
