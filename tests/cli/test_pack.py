#!/usr/bin/env python3
"""stoker pack: Python's tarfile reads the shards, a run on the pack has the losses of a run on the folder, damage is told.

usage: test_pack.py STOKER WORK_FOLDER
"""
import json
import os
import shutil
import tarfile

from program import accepted, begin, check, end, refused, run


def packing():
    done = accepted(["pack", "digits/train", "--out", "packed", "--json"])
    result = json.loads(done.stdout)
    check(result["records"] == 200 and result["shards"] == 1 and result["resumed"] == 0, f"--json: {result}")
    with tarfile.open("packed/shard-00000.tar") as shard:
        names = shard.getnames()
        check(len(names) == 400 and names[0].endswith(".cls") and names[1].endswith(".jpg"), f"members: {names[:4]}")
        first = sorted(os.listdir("digits/train/0"))[0]
        with open(f"digits/train/0/{first}", "rb") as f:
            check(shard.extractfile(names[1]).read() == f.read(), "the image's bytes are untouched")
        check(shard.extractfile(names[0]).read() == b"0", "the label is the class number")
    accepted(["pack", "--verify", "packed"], "packed is whole: 1 shard, ")


def training():
    def losses(folder):
        with open(f"{folder}/metrics.jsonl") as f:
            return [m["loss"] for m in map(json.loads, f) if m["kind"] == "step"]
    accepted(["train", "small.yaml", "--out", "folder", "--steps", "12"])
    accepted(["train", "small.yaml", "--out", "pack", "--steps", "12", "--set", "data.train.source.images=packed"])
    check(losses("folder") == losses("pack"), "a pack takes the folder's place")


def messages():
    refused(["pack", "digits/train", "--out", "packed"], 1, "'packed' holds a pack already")
    refused(["pack", "nowhere", "--out", "other"], 1, "'nowhere'")
    refused(["pack", "digits/train"], 2, "--out DIR")
    refused(["pack", "--verify", "digits"], 1, "'digits' is no pack", "stoker-pack.json")
    shutil.copytree("packed", "bad")
    with open("bad/shard-00000.tar", "r+b") as f:
        f.seek(30000)
        f.write(b"???")
    refused(["pack", "--verify", "bad"], 1, "bad/shard-00000.tar", "CRC-32", lines=2)


def sources():
    """From a recipe's source, from what STOKER_DATA holds, from tar shards; to TFRecord and to smaller images."""
    accepted(["pack", "small.yaml", "--out", "of-recipe", "--split", "test", "--format", "tfrecord"],
             "packed 40 images into 1 shard")
    accepted(["data", "verify", "of-recipe"], "all 40 records are whole")
    accepted(["pack", "small.yaml", "--out", "of-set", "--set", "data.train.source.images=digits/test"],
             "packed 40 images")
    accepted(["pack", "packed/shard-00000.tar", "--out", "of-tar", "--shorter", "14", "--quality", "80"],
             "packed 200 images")
    accepted(["pack", "train", "--out", "of-variable"], "packed 200 images",
             env={**os.environ, "STOKER_DATA": f"{os.getcwd()}/digits"})
    refused(["pack", "digits/train", "--out", "other", "--format", "zip"], 2, "'--format'")
    refused(["pack", "digits/train", "--out", "other", "--quality", "101"], 2, "--quality")
    refused(["pack", "digits/train", "--out", "other", "--split", "test"], 2, "for recipes")
    refused(["pack", "small.yaml", "--out", "other", "--split", "valid"], 1, "no part 'valid'")


def webp():
    """WebP files are images like others: found in folders, verified, packed as they are, made JPEG where they change."""
    corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus", "webp")
    for name in "lossy", "lossless", "lossy_alpha", "animation", "cut":
        folder = "webp-bad" if name in ("animation", "cut") else "webp"
        os.makedirs(f"{folder}/a", exist_ok=True)
        shutil.copy(os.path.join(corpus, f"{name}.webp"), f"{folder}/a/{name}.webp")
    done = run("data", "verify", "webp")
    if "no libwebp" in done.stdout + done.stderr:
        check("libwebp-dev" in done.stdout + done.stderr, "a build without libwebp says what it lacks")
        print("SKIP: this build has no libwebp")
        return
    check(done.returncode == 0 and "all 3 records are whole" in done.stdout, f"verify of WebP: {done.stdout}{done.stderr}")
    done = run("data", "verify", "webp-bad")
    text = done.stdout + done.stderr
    check(done.returncode == 1 and "animation.webp" in text and "an animated WebP" in text and "cut.webp" in text
          and "truncated WebP" in text, f"verify of damaged WebP: {text}")
    accepted(["pack", "webp", "--out", "webp-pack"], "packed 3 images")
    with tarfile.open("webp-pack/shard-00000.tar") as shard:
        names = [name for name in shard.getnames() if not name.endswith(".cls")]
        check(len(names) == 3 and all(name.endswith(".webp") for name in names), f"members: {names}")
    with open("webp.yaml", "w") as f:
        f.write("data: {train: {source: {images: webp}, stages: [decode, {resize: {size: 8}}]}}\nbatch: 3\n")
    sheets = []
    for source in "webp", "webp-pack":
        accepted(["data", "show", "webp.yaml", "--out", f"{source}.png", "--set", f"data.train.source.images={source}"])
        with open(f"{source}.png", "rb") as f:
            sheets.append(f.read())
    check(sheets[0] == sheets[1], "a pack of WebP has the folder's pixels")
    accepted(["pack", "webp", "--out", "webp-small", "--shorter", "8"], "packed 3 images")
    with tarfile.open("webp-small/shard-00000.tar") as shard:
        check(all(name.endswith((".cls", ".jpg")) for name in shard.getnames()), "smaller ones are JPEGs")


begin()
packing()
webp()
training()
sources()
messages()
end()
