"""The networks of all recipes as ONNX and back: with the weights that they begin with, but for one small step, written by `stoker export --onnx`, read by our
own importer and, where Python has it, by ONNX Runtime; logits must be equal.

usage: onnx_recipes.py BUILD_FOLDER WORK_FOLDER [--table] [RECIPE]...

A recipe's data need not be there: samples are drawn of the shapes that it has, by DATA. One that is missing there is a failure, and so is a
network that cannot be written. Run by ctest, and by ./dev onnx-models, which puts the rows of --table into docs/onnx-models.md. Ends with 77
where the build has no ONNX.
"""
import argparse
import array
import fnmatch
import glob
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys

try:
    import numpy
    import onnxruntime
except ImportError:
    onnxruntime = None

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recipes")
ROWS, BOUND = 2, 1e-5  # BOUND: of the largest logit
STEPS = {"cifar-mobilenet": 60}  # until its running statistics let the image through to the logits; others: 1


def images(*shape):
    return f"fields: {{image: {list(shape)}}}, classes: 10"


# What a recipe's samples are like, as a synthetic source; and what its data would have told, or what needs them. The first that fits.
DATA = [
    ("bench-*", None, {}),  # synthetic already
    ("cifar-airbench", images(32, 32, 3), {}),
    ("cifar-cnn", images(32, 32, 3), {"model.cnn.classes": 10}),
    ("cifar-mobilenet", images(64, 64, 3), {"model.mobilenet_v2.classes": 10, "batch": 8}),
    ("cifar-vgg16", images(32, 32, 3), {"model.vgg16.classes": 10}),
    ("cifar-vit", images(32, 32, 3), {"model.vit.classes": 10}),
    ("cifar-*", images(32, 32, 3), {"batch": 8}),  # batch norms of 1 x 1 pixels
    ("digits", images(28, 28, 1), {"model.cnn.classes": 10}),
    ("f16-*", images(28, 28, 1), {}),
    ("mnist-vit-b16", images(48, 48, 1), {}),
    ("mnist-*", images(28, 28, 1), {}),
    ("clicks-*", "fields: {user: {shape: [], below: 200}, item: {shape: [], below: 100}, x: [4], label: []}", {}),
    ("notes-*", "fields: {x: [8], label: [3]}", {}),
    ("prices-*", "fields: {x: [6], label: []}", {}),
    # The rows of a network for hidden tokens are the same with a class for each token.
    ("shakespeare-masked", "fields: {tokens: {shape: [16], below: 600}}, classes: 600", {"loss": "cross_entropy", "model.bert.classes": 600}),
    ("shakespeare-*", "fields: {tokens: {shape: [128], below: 257}, targets: {shape: [128], below: 257}}", {}),
    ("shapes-unet", "fields: {image: [48, 48, 3], mask: {shape: [48, 48], below: 4}}", {}),
    ("solids-cnn3d", "fields: {volume: [16, 16, 16, 1]}, classes: 4", {}),
    ("sst2-lstm", "fields: {tokens: {shape: [32], below: 6000}}, classes: 2", {"model.lstm.classes": 2}),
    ("sst2-gru", "fields: {tokens: {shape: [32], below: 6000}}, classes: 2", {"model.gru.classes": 2}),
    ("sst2-bert-mini", "fields: {tokens: {shape: [32], below: 6000}}, classes: 2", {"model.bert.classes": 2}),
    ("sst2-bert-base", "fields: {tokens: {shape: [32], below: 6000}}, classes: 2", {"model.bert.classes": 2}),
]

# For all of them: a network that is hardly trained, and its checkpoint.
OTHERS = {"batch": ROWS, "optimizer": "{sgd: {lr: 1e-5}}", "checkpoint.end": "true", "precision": "f32"}
TYPES = {"F32": "f", "I32": "i", "I64": "q", "U8": "B"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().split("\n")[-1])
    return done.stdout


# --- safetensors, without its package ---

def write_tensors(path, tensors):
    """tensors: name -> (type, shape, array)."""
    header, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        n = len(data) * data.itemsize
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data.tobytes() for _, _, data in tensors.values()))


def read_logits(path):
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack("<Q", data[:8])
    first, last = json.loads(data[8:8 + n])["logits"]["data_offsets"]
    return array.array("f", data[8 + n + first:8 + n + last])


# --- one recipe ---

def make_run(name, stoker, folder):
    """A run of one step."""
    found = next((row for row in DATA if fnmatch.fnmatch(name, row[0])), None)
    if found is None:
        raise RuntimeError("no row in DATA says what its samples are like: tools/onnx_recipes.py")
    settings = {**OTHERS, **found[2]}
    if found[1]:
        source = f"source: {{synthetic: {{{found[1]}, samples: 16}}}}"
        settings["data"] = f"{{train: {{{source}}}, test: {{{source}}}}}"
    sets = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    run(stoker, "train", f"{RECIPES}/{name}.yaml", "--out", folder, "--steps", str(STEPS.get(name, 1)), "--epochs", "100", "--quiet", *sets)


def inputs_of(text):
    """Samples for "image u8 [N,28,28,1], x f32 [N,4]"; numbers are below the smallest vocabulary."""
    rng, made = random.Random(1), {}
    for part in text.replace("], ", "];").split(";"):
        name, kind, shape = part.split(" ")
        dims = [ROWS if d == "N" else int(d) for d in shape.strip("[]").split(",")]
        n = math.prod(dims)
        if kind == "f32":
            made[name] = "F32", dims, array.array("f", [rng.gauss(0, 1) for _ in range(n)])
        else:
            made[name] = kind.upper(), dims, array.array(TYPES[kind.upper()], [rng.randrange(1, 90) for _ in range(n)])
    return made


def by_runtime(model, tensors):
    """ONNX Runtime's logits, or None."""
    if not onnxruntime:
        return None
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = {name: numpy.frombuffer(data, data.typecode).reshape(shape) for name, (_, shape, data) in tensors.items()}
    return array.array("f", session.run(["logits"], feed)[0].tobytes())


def difference(a, b):
    return max(abs(x - y) if math.isfinite(x) else math.inf for x, y in zip(a, b)) / max(map(abs, b))


def compare(name, build, work):
    """Largest logit, and how much ONNX Runtime and our importer differ."""
    folder = f"{work}/{name}"
    stoker = f"{build}/stoker"
    make_run(name, stoker, folder)
    said = run(stoker, "export", folder, "--onnx").split("\n")
    tensors = inputs_of(next(line for line in said if line.startswith("inputs "))[len("inputs "):].strip())
    write_tensors(f"{folder}/in.safetensors", tensors)
    run(f"{build}/bench/bench_logits", folder, f"{folder}/in.safetensors", f"{folder}/out.safetensors")
    run(f"{build}/bench/bench_onnx", f"{folder}/model.onnx", f"{folder}/in.safetensors", f"{folder}/again.safetensors")
    ours, again = read_logits(f"{folder}/out.safetensors"), read_logits(f"{folder}/again.safetensors")
    theirs = by_runtime(f"{folder}/model.onnx", tensors)
    if len(again) != len(ours):
        raise RuntimeError(f"{len(again)} logits come back of {len(ours)}")
    half = len(ours) // 2
    if difference(ours[:half], ours[half:]) < 0.001:
        raise RuntimeError("its logits do not depend on its input, and show nothing")
    return max(map(abs, ours)), theirs and difference(theirs, ours), difference(again, ours)


def has_model(name):
    with open(f"{RECIPES}/{name}.yaml") as f:
        return any(line.startswith("model:") for line in f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--table", action="store_true", help="rows of Markdown alone")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = sorted(os.path.basename(path)[:-len(".yaml")] for path in glob.glob(f"{RECIPES}/*.yaml"))
    if not onnxruntime and not args.table:
        print("SKIP: Python has no onnxruntime, so that only our own importer reads what is written")
    failed = 0
    for name in args.names or filter(has_model, names):
        shutil.rmtree(f"{args.work}/{name}", ignore_errors=True)
        try:
            largest, runtime, again = compare(name, args.build, args.work)
        except RuntimeError as e:
            if "without protobuf-c" in str(e):
                print("SKIP: this build writes no ONNX")
                sys.exit(77)
            failed += 1
            print(f"| {name} | | | {e} |" if args.table else f"FAILED: {name}: {e}", flush=True)
            continue
        bad = not max(runtime or 0, again) <= BOUND
        failed += bad
        told = "not installed" if runtime is None else f"{runtime:.1e}"
        if args.table:
            print(f"| {name} | {largest:.3g} | {told} | {again:.1e} |", flush=True)
        else:
            print(f"{'FAILED: ' if bad else ''}{name}: largest logit {largest:.3g}, ONNX Runtime differs by {told}, read again {again:.1e}", flush=True)
        shutil.rmtree(f"{args.work}/{name}")  # some are 500 MB
    if failed:
        sys.exit(f"{failed} networks do not come back")


if __name__ == "__main__":
    main()
