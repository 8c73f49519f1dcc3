#!/usr/bin/env python3
"""A network from an ONNX file as a layer: PyTorch's weights are what training begins with, and the rest is one's own.

usage: test_onnx.py STOKER WORK_FOLDER
"""
import json
import os
import re
import shutil
import struct
import sys

from program import accepted, begin, check, end, losses, refused, run

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "onnx", "residual-new.onnx")
RECIPE = """
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 3}}, {resize: 16}, {scale: 1/255}]
batch: 20
model:
  layers:
    - block: {scope: body, layers: [{onnx: {file: residual.onnx, output: relu_2}}]}
    - {conv2d: 16}
    - relu
    - global_pool
    - {dense: 10}
optimizer: {adam: {lr: 0.01}}
epochs: 4
log: {every: 1 step}
"""


def tensors(path):
    """Of a safetensors file: name -> (shape, bytes)."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(n)), f.read()
    return {name: (t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items() if name != "__metadata__"}


def trained(name, *options):
    accepted(["train", "net.yaml", "--out", name, *options])
    accepted(["export", name, "--safetensors", "--out", f"{name}.safetensors"])
    return tensors(f"{name}.safetensors")


def weights():
    numbers = b""
    for end_of_name in ("", ".data"):  # small tensors are in the model itself
        with open(MODEL + end_of_name, "rb") as f:
            numbers += f.read()
    frozen = trained("frozen", "--set", "freeze=[body]")
    part = {name: t for name, t in frozen.items() if name.startswith("body.")}
    check(sorted(part) == [f"body.net.{layer}.weight{bias}" for layer in ("block.conv1", "block.conv2", "stem.0")
                           for bias in ("", "_bias")], f"the part's weights: {sorted(part)}")
    check(all(data in numbers for _, data in part.values()), "what is frozen is PyTorch's to the bit")
    check(part["body.net.stem.0.weight"][0] == [4, 3, 7, 7], "in its layout")
    seen = losses("frozen")
    check(sum(seen[-5:]) < 0.97 * sum(seen[:5]), f"the rest learns: {seen[:5]} to {seen[-5:]}")
    free = trained("free")
    check(all(free[name][1] not in numbers for name in part), "what is not frozen is trained")


def use():
    """A run finds its model from elsewhere, and leaves as ONNX again."""
    os.mkdir("elsewhere")
    picture = os.path.abspath(os.path.join("digits/test/3", sorted(os.listdir("digits/test/3"))[0]))
    here = json.loads(accepted(["predict", "free", picture, "--json"]).stdout)
    there = json.loads(accepted(["predict", "../free", picture, "--json"], cwd="elsewhere").stdout)
    check(here == there, f"the same answers: {here} and {there}")
    accepted(["export", "free", "--onnx", "--out", "free.onnx"])
    check(os.path.getsize("free.onnx") > 1000, "the whole network as ONNX")


def own():
    """What was exported comes back as a layer: with its channels last, behind the scaling of pixels or with it."""
    with open("own.yaml", "w") as f:
        f.write(RECIPE[:RECIPE.index("    - block:")] + "    - onnx: {file: free.onnx}\n" + RECIPE[RECIPE.index("optimizer"):])
    still = ["--set", "optimizer.adam.lr=1e-30", "--steps", "1"]
    done = refused(["train", "own.yaml", "--out", "bad", *still], 1, "own.yaml:10:7: ", "reads u8, and what comes is f32",
                   "with the stage {cast: f32}", "; or behind its Mul, Add, by input: '", "just as it does: ")
    cast, scaled = re.findall("by input: '([^']+)'", done.stderr)
    accepted(["train", "own.yaml", "--out", "own", *still, "--set", f"model.layers.0.onnx.input={scaled}"])
    accepted(["train", "own.yaml", "--out", "own-cast", *still, "--set", f"model.layers.0.onnx.input={cast}", "--set",
              "data.train.stages=[{decode: {channels: 3}}, {resize: 16}, {cast: f32}]"])
    check(not any("pixels" in name for name in tensors("own-cast/step-1/optimizer.safetensors")), "a scaling inside is not trained")
    folder = "digits/test/7"
    for name in sorted(os.listdir(folder))[:4]:
        a, *others = (json.loads(accepted(["predict", run, f"{folder}/{name}", "--json"]).stdout)["classes"]
                      for run in ("free", "own", "own-cast"))
        for b in others:
            check([c["class"] for c in a] == [c["class"] for c in b] and
                  all(abs(x["probability"] - y["probability"]) < 1e-5 for x, y in zip(a, b)), f"the same answers: {a} and {b}")
    refused(["train", "own.yaml", "--out", "bad", "--set", "model.layers.0.onnx.input=v999"], 1, "no node makes a value 'v999'")


def messages():
    place = "net.yaml:10:37: "
    train = ["train", "net.yaml", "--out", "bad", "--set"]
    layer = "model.layers.0.block.layers.0.onnx"
    refused([*train, f"{layer}.file=nowhere.onnx"], 1, "no such data: 'nowhere.onnx'")
    refused([*train, f"{layer}.output=relu_9"], 1, place, "residual.onnx': no node makes a value 'relu_9'")
    refused([*train, "data.train.stages.1.resize=24"], 1, place,
            "the model reads [?,3,16,16], and what comes is [?,24,24,3], which fits neither as it is nor with its channels first")
    shutil.copyfile("net.yaml", "text.onnx")
    with open(MODEL, "rb") as f:
        model = f.read()
    with open("newer.onnx", "wb") as f:
        f.write(model[:-1] + bytes([99]))  # the last byte is the opset
    refused([*train, f"{layer}.file=newer.onnx"], 1, place, "its opset is 99, and the newest that is known here is 28")
    refused(["import", "residual.onnx"], 1, "a recipe takes it as a layer")
    refused([*train, f"{layer}.file=text.onnx"], 1, place, "text.onnx': no ONNX model")


begin()
for end_of_name in ("", ".data"):
    shutil.copyfile(MODEL + end_of_name, ("residual.onnx" if not end_of_name else "residual-new.onnx.data"))
with open("net.yaml", "w") as f:
    f.write(RECIPE)
if "without protobuf-c" in run("train", "net.yaml", "--steps", "1", "--out", "try").stderr:
    print("SKIP: this build reads no ONNX")
    sys.exit(77)
weights()
use()
own()
messages()
end()
