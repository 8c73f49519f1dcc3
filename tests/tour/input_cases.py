"""Wrong paths, wrong keys, wrong values, and damaged files of each kind."""
import glob
import os
import random
import struct

from place import expect

CASES = []


def case(title, kept):
    """title: what was done; kept: what a user still has afterwards."""
    def add(function):
        CASES.append((title, kept, function))
        return function
    return add


def damage(path, at=0.5, n_bytes=64):
    with open(path, "r+b") as f:
        f.seek(int(os.path.getsize(path) * at))
        f.write(bytes(random.Random(1).randrange(256) for _ in range(n_bytes)))


def cut(path, share=0.5):
    os.truncate(path, int(os.path.getsize(path) * share))


def first_jpeg(place):
    return sorted(glob.glob(place.path("digits/train/3/*.jpg")))[0]


@case("a recipe that is not there", "nothing was begun")
def _(place):
    place.run("train", "recipe.yml").says(1, "recipe.yml", "no such file")


@case("a data folder that is not there", "no run folder")
def _(place):
    place.train("--set", "data.train.source.images=digits/trian").says(1, "digits/trian", "no such")
    expect(not os.path.exists(place.path("run")), "a run folder was made")


@case("a misspelt key: `optimzer`", "no run folder")
def _(place):
    place.write("r.yaml", open(place.path("r.yaml")).read().replace("optimizer", "optimzer"))
    place.train().says(1, r"r\.yaml:\d+:\d+", "did you mean 'optimizer'")
    expect(not os.path.exists(place.path("run")), "a run folder was made")


@case("a right key in the wrong place: `lr` next to `adam`", "no run folder")
def _(place):
    place.write("r.yaml", open(place.path("r.yaml")).read().replace("{adam: {lr: 0.003}}", "{adam: {}, lr: 0.003}"))
    place.train().says(1, r"r\.yaml:\d+:\d+", "lr")
    expect("did you mean 'lr'" not in place.text, "it suggests the word itself")


@case("a word where a number belongs: `batch: large`", "no run folder")
def _(place):
    place.train("--set", "batch=large").says(1, "batch", "number")


@case("a device that is not there", "no run folder, and no silent run on the processor")
def _(place):
    place.train("--device", "rocm").says(1, "rocm", "cpu")
    expect(not os.path.exists(place.path("run")), "a run folder was made")


@case("a rate that makes the loss NaN", "the checkpoints from before, and none with NaN in it")
def _(place):
    place.train("--set", "optimizer={sgd: {lr: 1e30}}", "--steps", "30")
    place.says(1, "(NaN|nan|not a number|not finite)", "(lr|rate|on_nan)")


@case("a JPEG that is cut short", "the data; the file is named")
def _(place):
    cut(first_jpeg(place))
    place.train("--steps", "20").says(1, "digits/train/3/", r"\.jpg", "on_error")


@case("the same with `on_error: skip`", "the run, which counts what it left out")
def _(place):
    cut(first_jpeg(place))
    place.train("--steps", "20", "--set", "data.train.on_error=skip").says(0, "skipped|left out")


@case("a text file that is called .jpg", "the data; the file is named")
def _(place):
    with open(first_jpeg(place), "w") as f:
        f.write("<html>404 not found</html>")
    place.train("--steps", "20").says(1, "digits/train/3/", "JPEG")


@case("an empty class folder", "the run, or a message that names the folder")
def _(place):
    os.mkdir(place.path("digits/train/never"))
    place.train("--steps", "2")
    expect(place.code in (0, 1) and "never" in place.text, f"the empty folder is not named: {place.line()}")


@case("a damaged PNG", "the data; the file is named")
def _(place):
    place.run("data", "show", "r.yaml", "--out", "sheet.png")
    os.rename(place.path("sheet.png"), place.path("digits/train/3/zz.png"))
    damage(place.path("digits/train/3/zz.png"))
    place.run("data", "verify", "r.yaml").says(1, r"zz\.png")


@case("an IDX file that is cut short", "the data; the file is named")
def _(place):
    place.write("x.idx", struct.pack(">IIII", 0x803, 200, 28, 28) + bytes(100 * 784))
    place.write("y.idx", struct.pack(">II", 0x801, 200) + bytes(200))
    place.train("--steps", "2", "--set", "data.train.source={idx: {images: x.idx, labels: y.idx}}",
                "--set", "data.train.stages=[{normalize: mnist}]").says(1, r"x\.idx", "(short|cut|end|bytes)")


@case("a NumPy file whose header lies about its size", "the data; the file is named")
def _(place):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 784), }"
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    place.write("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64))
    place.write("y.npy", open(place.path("x.npy"), "rb").read())
    place.train("--steps", "2", "--set", "data.train.source={npy: {image: x.npy, label: y.npy}}",
                "--set", "data.train.stages=[]").says(1, r"\.npy")


@case("a damaged record in a TFRecord shard", "the shard; file, record and byte are named")
def _(place):
    place.run("pack", "digits/train", "--out", "packed", "--format", "tfrecord").says(0)
    shard = sorted(glob.glob(place.path("packed/*.tfrecord*")))[0]
    damage(shard, 0.5, 8)
    place.train("--steps", "20", "--set", "data.train.source={images: packed}")
    place.says(1, os.path.basename(shard), "(record|byte)")


@case("a tar shard that is cut short", "the shard, which is named")
def _(place):
    place.run("pack", "digits/train", "--out", "packed").says(0)
    cut(sorted(glob.glob(place.path("packed/*.tar")))[0])
    place.train("--steps", "20", "--set", "data.train.source={images: packed}").says(1, r"\.tar")


@case("a CSV file with a word in a column of numbers", "the data; file and line are named")
def _(place):
    place.write("t.csv", "x,y\n" + "1.5,2\n" * 50 + "lots,3\n" + "2.5,1\n" * 50)
    place.write("c.yaml", "name: c\ndata:\n  train:\n    source: {csv: {files: t.csv, fields: {x: f32, label: {dtype: class, columns: y}}}}\n"
                "batch: 4\nmodel: {mlp: {hidden: [4]}}\noptimizer: sgd\nepochs: 1\n")
    place.run("data", "verify", "c.yaml").says(1, r"t\.csv', line 52")


@case("a tokenizer file that is no JSON", "the text; the file is named")
def _(place):
    place.write("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 0,')
    place.write("text.txt", "to be\n")
    place.run("tokenize", "text.txt", "--tokenizer", "tokenizer.json", "--out", "x.bin").says(1, r"tokenizer\.json")
    expect(not os.path.exists(place.path("x.bin")), "a file was left")


@case("weights in safetensors that are cut short", "nothing was made of them")
def _(place):
    place.train("--steps", "3").says(0)
    place.run("export", "run", "--safetensors", "--out", "w.safetensors").says(0)
    cut(place.path("w.safetensors"))
    place.run("import", "w.safetensors", "--recipe", "r.yaml", "--out", "imported")
    expect(place.code != 0 and "w.safetensors" in place.text, place.line())
    expect(not os.path.exists(place.path("imported")), "a run folder was made")


@case("an ONNX model that is cut short", "nothing was made of it")
def _(place):
    place.train("--steps", "3").says(0)
    place.run("export", "run", "--onnx", "--out", "m.onnx")
    if place.code != 0 and "built without" in place.text:
        return
    place.says(0)
    cut(place.path("m.onnx"))
    place.train("--steps", "2", "--set", "model={layers: [{onnx: {file: m.onnx}}]}", "--out", "run2")
    expect(place.code != 0 and "m.onnx" in place.text, place.line())


@case("`predict` with a photo that is no photo", "the other photos' answers")
def _(place):
    place.train("--steps", "3").says(0)
    place.write("cat.jpg", "no photo")
    good = sorted(glob.glob(place.path("digits/test/7/*.jpg")))[0]
    place.run("predict", "run", good, "cat.jpg")
    expect(place.code == 1 and "cat.jpg" in place.text and os.path.basename(good) in place.text, place.line())
