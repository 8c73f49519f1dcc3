#!/usr/bin/env python3
"""A training step that `stoker export --stablehlo` writes, run by JAX: from a checkpoint on, the same batch gives the same losses as
`stoker train` on the cpu. ./dev stablehlo-by-jax calls it.

usage: run_by_jax.py STOKER FOLDER
"""
import glob
import json
import os
import re
import struct
import subprocess
import sys

import jax
import numpy as np
from jaxlib import _jax

STOKER, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
N, SIDE, STEPS, LR = 64, 28, 8, 0.01
MODELS = {"mlp": "{mlp: {hidden: [64], classes: 10}}", "cnn": "{cnn: {widths: [4, 8], classes: 10}}"}
DTYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "ui8": np.uint8}
NAMES = {"F32": np.float32, "I64": np.int64, "I32": np.int32}


def write_recipe(name):
    random = np.random.default_rng(7)
    images, labels = random.integers(0, 256, (N, SIDE, SIDE), np.uint8), random.integers(0, 10, N, np.uint8)
    for path, magic, array in (("images", 0x803, images), ("labels", 0x801, labels)):
        with open(path, "wb") as f:
            f.write(struct.pack(">" + "i" * (1 + array.ndim), magic, *array.shape) + array.tobytes())
    with open(f"{name}.yaml", "w") as f:
        f.write(f"name: {name}\ndata: {{train: {{source: {{idx: {{images: images, labels: labels}}}}, stages: [{{scale: 1/255}}]}}}}\n"
                f"batch: {N}\nmodel: {MODELS[name]}\noptimizer: {{adam: {{lr: {LR}}}}}\nclip_norm: 1\nepochs: {STEPS}\nprecision: f32\n"
                "log: {every: 1 step}\ncheckpoint: {every: 1 step, keep: 100}\n")
    return {"image": images[..., None], "label": labels.astype(np.int32)}


def stoker(*args):
    done = subprocess.run([STOKER, *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"stoker {args}: {done.stderr}")


def read_safetensors(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], NAMES[t["dtype"]]).reshape(t["shape"])
            for name, t in head.items() if name != "__metadata__"}


def read_ends(text):
    """Arguments as (name, shape, dtype), and names of results."""
    head = text[text.index("@main("):text.index(") {\n")]
    arguments, results = head.split(") -> (")
    one = re.compile(r'tensor<((?:[0-9]+x)*)([a-z]+[0-9]+)>( \{[^}]*stoker.name = "([^"]*)"\})?')
    parse = lambda part: [(m[4], [int(d) for d in m[1].split("x") if d], DTYPES[m[2]]) for m in one.finditer(part)]
    return parse(arguments), [name for name, _, _ in parse(results)]


def follow(name):
    given = write_recipe(name)
    stoker("train", f"{name}.yaml", "--out", f"run-{name}", "--device", "cpu")
    stoker("export", f"{name}.yaml", "--stablehlo", "--out", f"{name}.mlir", "--set", "precision=f32")
    with open(f"run-{name}/metrics.jsonl") as f:
        want = [m["loss"] for m in map(json.loads, f) if m["kind"] == "step"]
    state = {}
    for path in glob.glob(f"run-{name}/step-2/*.safetensors"):
        state.update(read_safetensors(path))
    text = open(f"{name}.mlir").read()
    arguments, results = read_ends(text)
    device = jax.devices("cpu")[0]
    run = device.client.compile_and_load(text.encode(), _jax.DeviceList((device,)), _jax.CompileOptions())
    worst = 0
    for step in range(2, STEPS):
        given.update(step=np.int64(step), lr=np.float32(LR), seed=np.int64(0), sample=np.int64(0))
        values = [state[n] if n in state else given[n] for n, _, _ in arguments]
        for (n, shape, dtype), value in zip(arguments, values):
            if list(np.shape(value)) != shape or np.asarray(value).dtype != dtype:
                sys.exit(f"{name}: '{n}' is {np.shape(value)} and not {shape}")
        out = run.execute([jax.device_put(np.array(v), device) for v in values])
        state.update({n: np.asarray(y) for n, y in zip(results, out) if n})
        worst = max(worst, abs(float(state["loss"]) - want[step]) / want[0])
    print(f"{name}: {STEPS - 2} steps by JAX {jax.__version__}, loss {want[2]:.4f} to {float(state['loss']):.4f}, off by {worst:.1e} of the first at most")
    if not worst < 1e-3:
        sys.exit(f"{name}: JAX's losses are others")


os.environ.pop("STOKER_DATA", None)
jax.config.update("jax_enable_x64", True)
os.makedirs(FOLDER, exist_ok=True)
os.chdir(FOLDER)
for name in MODELS:
    follow(name)
