#!/usr/bin/env python3
"""stoker import and export: a round trip through PyTorch's layout with the same bits, shards, 16 bits, and messages.
Where Python has the package safetensors, it reads what we write, and we read what it writes.

usage: test_exchange.py STOKER WORK_FOLDER
"""
import json
import os
import struct

from program import accepted, begin, check, end, refused, run

try:
    import numpy
    import safetensors.numpy as package
except ImportError:
    package = None
try:
    import onnxruntime as runtime
    from PIL import Image
except ImportError:
    runtime = None


def read(path):
    """Names -> (dtype, shape, bytes), and the metadata."""
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, t in header.items():
        begin_at, end_at = t["data_offsets"]
        tensors[name] = (t["dtype"], t["shape"], data[8 + n + begin_at:8 + n + end_at])
    return tensors, metadata


def predictions(folder):
    done = accepted(["predict", folder, "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0], "--json"])
    return json.loads(done.stdout)["classes"]


def round_trip():
    accepted(["train", "small.yaml", "--out", "first", "--epochs", "1"])
    accepted(["export", "first", "--safetensors"], "wrote ", "first/model.safetensors", "of step 10")
    theirs, metadata = read("first/model.safetensors")
    check(metadata["format"] == "pt" and metadata["step"] == "10", f"metadata: {metadata}")
    check(theirs["conv2d.weight"][1] == [4, 1, 3, 3] and theirs["conv2d_1.weight"][1] == [8, 4, 3, 3], "OIHW")
    accepted(["import", "first/model.safetensors", "--recipe", "small.yaml", "--out", "second"], "loaded ", "pytorch")
    accepted(["export", "second", "--safetensors"])
    again, _ = read("second/model.safetensors")
    check(again.keys() == theirs.keys(), "the same tensors")
    check(all(again[k] == theirs[k] for k in theirs if "num_batches" not in k), "the same bits after a round trip")
    check(predictions("first") == predictions("second"), "the same predictions")
    accepted(["import", "first/step-10/model.safetensors", "--recipe", "small.yaml", "--out", "third"])
    check(predictions("first") == predictions("third"), "a checkpoint's file has our own layout, and is known by it")
    accepted(["train", "small.yaml", "--out", "second", "--resume", "--steps", "3"])
    mean = ["--set", "ema.decay=0.9"]
    accepted(["import", "first/model.safetensors", "--recipe", "small.yaml", "--out", "mean", *mean])
    check(predictions("first") == predictions("mean"), "a running mean begins as the file says")
    accepted(["train", "small.yaml", "--out", "mean", "--resume", "--steps", "3", *mean])


def other_types():
    accepted(["export", "first", "--safetensors", "--dtype", "bf16", "--out", "bf16.safetensors"])
    half, _ = read("bf16.safetensors")
    whole, _ = read("first/model.safetensors")
    name = "conv2d_1.weight"
    check(half[name][0] == "BF16" and 2 * len(half[name][2]) == len(whole[name][2]), "bf16 in the file")
    accepted(["import", "bf16.safetensors", "--recipe", "small.yaml", "--out", "from-bf16"])
    accepted(["export", "first", "--safetensors", "--shard", "1", "--out", "one.safetensors"])
    check(os.path.exists("one.safetensors"), "what fits stays one file")
    accepted(["train", "small.yaml", "--out", "wide", "--steps", "1", "--set", "model={mlp: {hidden: [512, 512]}}"])
    accepted(["export", "wide", "--safetensors", "--shard", "1"], "wrote   wide/model.safetensors.index.json", "4 files")
    check(os.path.exists("wide/model.safetensors.index.json"), "the index is there")


def odd_weights():
    """Numbers that are none, and names that nothing has."""
    accepted(["export", "first", "--safetensors", "--out", "odd.safetensors"])
    tensors, _ = read("odd.safetensors")
    name = next(n for n in tensors if n.startswith("dense") and n.endswith("bias"))
    with open("odd.safetensors", "rb") as f:
        data = f.read()
    at = data.rindex(tensors[name][2])
    with open("odd.safetensors", "wb") as f:
        f.write(data[:at] + struct.pack("<f", float("nan")) + data[at + 4:])
    accepted(["import", "odd.safetensors", "--recipe", "small.yaml", "--out", "odd"])
    file = "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0]
    refused(["predict", "odd", file], 1, "output 0 is nan: its weights are damaged")
    done = accepted(["import", "one.safetensors", "--recipe", "small.yaml", "--out", "odd"])
    check("the earlier run is kept in 'odd.previous'" in done.stderr, f"what was there is not lost: {done.stderr}")
    leave = "no parameter has 'nothing' in its name"
    refused(["import", "one.safetensors", "--recipe", "small.yaml", "--out", "x", "--leave", "dense,nothing"], 1, leave)
    refused(["train", "small.yaml", "--out", "y", "--set", "init={weights: one.safetensors, leave: nothing}"], 1, leave)


def onnx_model():
    done = run("export", "first", "--onnx")
    if "without protobuf-c" in done.stderr:
        print("SKIP: this build writes no ONNX models")
        return
    check(done.returncode == 0 and os.path.getsize("first/model.onnx") > 1000, f"export --onnx: {done.stderr}")
    check("\ninputs  image u8 [N,28,28,1]\noutputs logits f32 [N,10]\n" in done.stdout, f"what feeds it: {done.stdout}")
    data = open("first/model.onnx", "rb").read()
    check(b"stoker.stages" in data and b"{normalize: {name: mnist}}" in data and b"pixels.factor" in data, "its preprocessing")
    refused(["export", "first", "--onnx", "--dtype", "bf16"], 1, "written in f32")
    if not runtime:
        print("SKIP: Python has no onnxruntime, so that only our own importer reads exports (onnx/test_export)")
        return
    file = "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0]
    pixels = numpy.array(Image.open(file).convert("L"))[None, :, :, None]
    logits = runtime.InferenceSession("first/model.onnx").run(None, {"image": pixels})[0][0].astype("float64")
    share = numpy.exp(logits - logits.max()) / numpy.exp(logits - logits.max()).sum()
    ours = {c["class"]: c["probability"] for c in json.loads(
        accepted(["predict", "first", file, "--json", "--top", "10"]).stdout)["classes"]}
    check(all(abs(share[c] - p) < 1e-4 for c, p in ours.items()), f"ONNX Runtime: {share}, predict: {ours}")


def messages():
    refused(["import", "first/model.safetensors", "--recipe", "small.yaml", "--as", "resnet50"], 2, "twice", lines=None)
    refused(["import", "first/step-10/model.safetensors"], 1, "does not say which network", "recipe")
    refused(["import", "first/model.safetensors", "--as", "resnet51"], 1, "'resnet51'", "resnet50, ")
    refused(["import", "first/model.safetensors", "--as", "resnet50", "--out", "x"], 1, "no last layer")
    refused(["export", "first"], 2, "--safetensors", lines=None)
    refused(["export", "first", "--onnx", "first.onnx"], 2, "there are 2; --out FILE says where to write", lines=None)
    refused(["export", "nowhere", "--safetensors"], 1, "no run folder 'nowhere'")
    refused(["export", "first", "--safetensors", "--dtype", "f8"], 2, "'f8'", lines=None)
    refused(["export", "first", "--safetensors", "--names", "hf-resnet"], 1, "'hf-resnet'", "none for tensor")
    with open("a.pt", "wb") as f:
        f.write(b"PK\3\4 anything")
    refused(["import", "a.pt", "--recipe", "small.yaml", "--out", "x"], 1, "pickle", "weights_only=True", lines=None)
    wide = ["--set", "model.cnn.widths=[4, 9]"]
    refused(["import", "first/model.safetensors", "--recipe", "small.yaml", "--out", "x", *wide], 1, "in the file, and the model's",
            "[9]")
    check(not os.path.exists("x"), "nothing is written before all fits")
    accepted(["import", "first/model.safetensors", "--recipe", "small.yaml", "--out", "x", *wide, "--leave",
              "conv2d_1,batch_norm_1,dense"], "as asked")


def with_the_package():
    if not package:
        print("SKIP: Python has no package safetensors, so that only our own reader was asked")
        return
    theirs = package.load_file("first/model.safetensors")
    ours, _ = read("first/model.safetensors")
    check(all(theirs[k].tobytes() == ours[k][2] and list(theirs[k].shape) == ours[k][1] for k in ours), "the package")
    package.save_file({"module." + k: numpy.ascontiguousarray(v) for k, v in theirs.items()}, "theirs.safetensors")
    accepted(["import", "theirs.safetensors", "--recipe", "small.yaml", "--out", "fourth"])
    check(predictions("first") == predictions("fourth"), "a file that the package wrote")


def without_data():
    """What a run was trained on may be gone: the run, and its export alone, still tell all that prediction needs."""
    file = "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0]
    before = predictions("first")
    os.makedirs("elsewhere")
    os.rename(file, "elsewhere/one.jpg")
    os.rename("digits", "gone")

    def predict(folder):
        return json.loads(accepted(["predict", folder, "elsewhere/one.jpg", "--json"]).stdout)["classes"]
    check(predict("first") == before, "the same predictions without the data")
    accepted(["export", "first", "--safetensors", "--out", "alone.safetensors"])
    check(read("alone.safetensors")[0] == read("first/model.safetensors")[0], "the same export")
    check(run("export", "first", "--onnx", "--out", "alone.onnx").returncode == 0 or not os.path.exists("first/model.onnx"),
          "an ONNX model, too")
    accepted(["import", "alone.safetensors", "--out", "alone"], "try: stoker predict alone FILE")
    check(predict("alone") == before, "the export alone has classes and stages")
    refused(["eval", "first"], 1, "no such data", "digits/train")
    refused(["eval", "alone"], 1, "alone/recipe.yaml:", "made of weights alone and knows no data", "--recipe")
    with open("first/data.json", "r+") as f:
        text = f.read()
        for bad in "{}", text[:-9], text.replace('"i32"', '"i31"'), text.replace("[]", "[0]"), text.replace("image", 9 * "image"):
            f.seek(0)
            f.truncate()
            f.write(bad)
            f.flush()
            refused(["predict", "first", "elsewhere/one.jpg"], 1, "first/data.json' is damaged")
    os.remove("first/data.json")
    refused(["predict", "first", "elsewhere/one.jpg"], 1, "no such data")
    os.rename("gone", "digits")
    os.rename("elsewhere/one.jpg", file)
    check(predictions("first") == before, "without data.json the data are opened")


def by_name():
    """Weights of a known network need no recipe."""
    with open("known.yaml", "w") as f:
        f.write("""
data: {train: {source: {synthetic: {fields: {image: [224, 224, 3]}, classes: 7, samples: 2}}}}
batch: 1
model: {mobilenet_v2: {classes: 7}}
optimizer: sgd
""")
    accepted(["train", "known.yaml", "--out", "known", "--steps", "1"])
    accepted(["export", "known", "--safetensors"])
    accepted(["import", "known/model.safetensors", "--as", "mobilenet_v2", "--out", "named"], "stoker predict named FILE")
    refused(["import", "known/model.safetensors", "--as", "resnet19", "--out", "other"], 1,
            "none of the networks that need no recipe: resnet18, resnet34, resnet50, resnet101, vgg16, mobilenet_v2, "
            "vit-tiny, vit-small, vit-base")
    refused(["import", "known/model.safetensors", "--as", "vit-small", "--out", "other"], 1, "class_token")
    file = "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0]
    done = accepted(["predict", "named", file, "--json", "--top", "9"])
    refused(["eval", "named"], 1, "made of weights alone and knows no data")
    found = json.loads(done.stdout)["classes"]
    check(len(found) == 7 and abs(sum(c["probability"] for c in found) - 1) < 1e-5, f"7 classes: {found}")


begin()
round_trip()
other_types()
odd_weights()
onnx_model()
messages()
with_the_package()
without_data()
by_name()
end()
