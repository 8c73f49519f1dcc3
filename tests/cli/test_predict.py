#!/usr/bin/env python3
"""stoker predict: images of any size, folders, and files that are damaged among others.

usage: test_predict.py STOKER WORK_FOLDER
"""
import json
import os
import shutil
import struct
import zlib

from program import accepted, begin, check, end, refused, run


def write_png(path, width, height, grey):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(grey(x, y) for x in range(width)) for y in range(height))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def classes(folder, file):
    done = accepted(["predict", folder, file, "--json", "--top", "10"])
    return json.loads(done.stdout)["classes"], done.stderr


def train_some():
    """Two runs with the same weights; the stages of the second resize, which changes nothing in training."""
    with open("small.yaml") as f:
        recipe = f.read()
    with open("resizing.yaml", "w") as f:
        f.write(recipe.replace("{decode: {channels: 1}}", "{decode: {channels: 1}}, {resize: 28}"))
    for name in ("small", "resizing"):
        accepted(["train", f"{name}.yaml", "--out", name, "--steps", "10"])
    accepted(["get", "digits", "--out", "large", "--size", "64", "--train", "1", "--test", "10"])


def any_size():
    file = "digits/test/3/00003.jpg"
    one, said = classes("small", file)
    check(said == "" and one == classes("resizing", file)[0], f"an image of the right size is left as it is: {said}")
    file = "large/test/3/00003.jpg"
    ours, said = classes("small", file)
    check("warning" in said and f"'{file}' is 64 x 64 pixels" in said and "middle" in said, f"what is done is said: {said}")
    theirs, said = classes("resizing", file)
    check(said == "" and ours == theirs, "as the stage resize would have it, which is said by the recipe")
    # A wide picture whose middle is the square one.
    write_png("square.png", 40, 40, lambda x, y: x * y % 256)
    write_png("wide.png", 80, 40, lambda x, y: (x - 20) * y % 256 if 20 <= x < 60 else 0)
    wide = {c["class"]: c["probability"] for c in classes("small", "wide.png")[0]}
    square = {c["class"]: c["probability"] for c in classes("small", "square.png")[0]}
    check(all(abs(wide[c] - square[c]) < 0.05 for c in wide), f"its middle counts: {wide} {square}")
    done = accepted(["predict", "small", "wide.png", "square.png", "digits/test/3/00003.jpg"])
    check(done.stderr.count("warning") == 1, "once for all files")


def without_a_test():
    """Nobody has said what is done to images in a test: the stages of training are, and that is said."""
    with open("bare.yaml", "w") as f:
        f.write("data: {train: {source: {images: digits/train}, shuffle: true, stages: [{decode: {channels: 1}}, random_flip, {normalize: mnist}]}}\n"
                "batch: 20\nmodel: {cnn: {widths: [4]}}\n")
    accepted(["train", "bare.yaml", "--out", "bare", "--steps", "2"])
    done = accepted(["predict", "bare", "digits/test/3/00003.jpg", "digits/test/3/00013.jpg"])
    check(done.stderr.count("stages of training, 'random_flip' and other random ones") == 1, f"it is said once: {done.stderr}")


def from_arrays():
    """A network that learned from pixels in an array takes image files of any size, too."""
    with open("i.idx", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, 60, 28, 28) + bytes(i * 7 % 256 for i in range(60 * 784)))
    with open("l.idx", "wb") as f:
        f.write(struct.pack(">II", 0x801, 60) + bytes(i % 10 for i in range(60)))
    with open("arrays.yaml", "w") as f:
        f.write("data: {train: {source: {idx: {images: i.idx, labels: l.idx}}, shuffle: true, stages: [{normalize: mnist}]}}\n"
                "batch: 20\nmodel: {mlp: {hidden: [8], classes: 10}}\nepochs: 1\n")
    accepted(["train", "arrays.yaml", "--out", "arrays"])
    check(classes("arrays", "digits/test/3/00003.jpg")[1] == "", "of the right size")
    found, said = classes("arrays", "large/test/3/00003.jpg")
    check(len(found) == 10 and "64 x 64 pixels" in said, "of another")


def folders():
    done = accepted(["predict", "small", "digits/test"])
    lines = done.stdout.splitlines()
    files = [line.split("  ")[0] for line in lines]
    check(len(lines) == 40 and files == sorted(files) and files[0] == "digits/test/0/00000.jpg", f"a line each: {lines[:2]}")
    check(all(line.count("%") == 1 for line in lines), "the likeliest class")
    top = accepted(["predict", "small", "digits/test", "--top", "3"]).stdout.splitlines()
    check([line[:len(a)] for line, a in zip(top, lines)] == lines and all(line.count("%") == 3 for line in top), "--top")
    told = [json.loads(line) for line in accepted(["predict", "small", "digits/test", "--json"]).stdout.splitlines()]
    check([t["file"] for t in told] == files and all(len(t["classes"]) == 1 for t in told), "--json")
    os.makedirs("empty/sub")
    refused(["predict", "small", "empty"], 1, "'empty' holds no JPEG, PNG or WebP file")
    refused(["predict", "small", "nowhere"], 1, "nowhere")
    done = refused(["predict", "small", "digits/test/3", "empty", "digits/test/4"], 1, "'empty' holds no JPEG, PNG or WebP file")
    check(done.stdout.splitlines() == [line for line in lines if line.split("/")[2] in "34"], f"the others go on: {done.stdout}")
    done = run("predict", "small", "empty", "digits/test/3", "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    check(done.returncode == 1 and [t["file"] for t in told if "error" in t] == ["empty"] and len(told) == 5, f"in JSON: {told}")


def damaged():
    shutil.copytree("digits/test/3", "some")
    names = sorted(os.listdir("some"))
    with open(f"some/{names[1]}", "r+b") as f:
        f.truncate(40)
    done = run("predict", "small", "some")
    check(done.returncode == 1 and f"some/{names[1]}" in done.stderr and f"1 of {len(names)} files" in done.stderr, done.stderr)
    check([line.split("  ")[0] for line in done.stdout.splitlines()] == [f"some/{n}" for n in names if n != names[1]],
          "the others go on")
    told = [json.loads(line) for line in run("predict", "small", "some", "--json").stdout.splitlines()]
    check([("error" in t) for t in told] == [n == names[1] for n in names], f"a line each in JSON: {told}")
    done = run("predict", "small", f"some/{names[1]}", f"some/{names[0]}")
    check(done.returncode == 1 and f"some/{names[0]}" in done.stdout, "files by name, too")


TOKENS = "source: {tokens: {files: tokens.bin, dtype: u16, length: 8}}"
GPT = "data: {train: {%s}}\nbatch: 4\nmodel: {gpt2: {size: mini, layers: 1, heads: 1, width: 8, vocabulary: 257, positions: 8}}\n"
UNET = """
data:
  train:
    source: {pairs: {image: pairs/images, mask: pairs/masks}}
    stages: [{decode: {channels: 1}}, {with: {fields: mask, stages: [decode_mask]}}, {scale: 1/255}]
batch: 4
model: {unet: {widths: [2, 4], classes: 2}}
"""
TABLE = """
data: {train: {source: {csv: {files: table.csv, fields: {FIELD: {dtype: f32, columns: [a, b]}, label: {dtype: f32, columns: y}}}}}}
batch: 4
loss: mse
"""


def something_else():
    """What a run predicts is said where it is not what 'predict' says, before any file is looked for."""
    with open("tokens.bin", "wb") as f:
        f.write(struct.pack("<81H", *range(81)))
    with open("table.csv", "w") as f:
        f.write("a,b,y\n" + "1,2,3\n" * 8)
    for folder in "images", "masks":
        os.makedirs(f"pairs/{folder}")
        for i in range(8):
            write_png(f"pairs/{folder}/{i}.png", 28, 28, lambda x, y: x // 14)
    dense = "model: {layers: [{from: x}, {dense: 1}]}\n"
    recipes = {"gpt": (GPT % TOKENS, "what comes next in a text", "stoker generate gpt TEXT"),
               "unet": (UNET, "[28,28,2] numbers of each picture", "stoker eval unet"),
               "table": (TABLE.replace("FIELD", "image") + "model: {mlp: {hidden: [4], classes: 1}}\n", "f32[2] a sample", "stoker eval table"),
               "fields": (TABLE.replace("FIELD", "x") + dense, "learned from 'x'", "stoker export fields --onnx")}
    for name, (text, *parts) in recipes.items():
        with open(f"{name}.yaml", "w") as f:
            f.write(text)
        accepted(["train", f"{name}.yaml", "--out", name, "--steps", "1"])
        refused(["predict", name, "digits/test", "digits/test/3/00003.jpg"], 1, *parts)


begin()
train_some()
any_size()
without_a_test()
from_arrays()
folders()
damaged()
something_else()
end()
