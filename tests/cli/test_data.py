#!/usr/bin/env python3
"""stoker data: each of its verbs on generated digits.

usage: test_data.py STOKER WORK_FOLDER
"""
import glob
import json
import os
import shutil
import struct

from program import accepted, begin, check, end, refused, run

CORRUPT = "digits-bad/test/3"


def show():
    accepted(["data", "show", "small.yaml", "--out", "sheet.png", "--rows", "2", "--columns", "5", "--epoch", "3"],
             "sheet.png: 10 samples of epoch 3")
    with open("sheet.png", "rb") as f:
        head = f.read(24)
    width, height = struct.unpack(">II", head[16:24])
    check(head[:8] == b"\x89PNG\r\n\x1a\n" and width > 5 * 84 and height > 2 * 84, f"a PNG of {width} x {height}")
    accepted(["data", "show", "small.yaml", "--split", "test", "--out", "test.png"], "32 samples of epoch 0")
    first = open("test.png", "rb").read()
    accepted(["data", "show", "small.yaml", "--split", "test", "--out", "test.png", "--threads", "5"])
    check(open("test.png", "rb").read() == first, "the same sheet for any number of threads")
    refused(["data", "show", "small.yaml"], 2, "--out FILE")
    refused(["data", "show", "small.yaml", "--out", "a.png", "--seconds", "3"], 2, "data show has no option '--seconds'")
    refused(["data", "show", "small.yaml", "--out", "small.yaml/a.png"], 1, "small.yaml': a file is in the way")
    accepted(["data", "show", "small.yaml", "--out", "made/here/a.png"])
    check(os.path.exists("made/here/a.png"), "the folder is made")
    refused(["data", "shwo", "small.yaml"], 2, "did you mean 'show'?")


def verify():
    accepted(["data", "verify", "small.yaml"], "all 200 records are whole")
    accepted(["data", "verify", "small.yaml"], "looked at data.train alone; --split takes another part")
    accepted(["data", "verify", "digits"], "all 240 records are whole")
    shutil.copytree("digits", "digits-bad")
    names = sorted(os.listdir(CORRUPT))[:2]
    for name in names:
        path = f"{CORRUPT}/{name}"
        os.truncate(path, os.path.getsize(path) - 3)
    done = refused(["data", "verify", "digits-bad"], 1, "2 of 240 records are corrupt")
    check(done.stdout.count("\n") == 2 and all(f"{CORRUPT}/{name}': truncated JPEG" in done.stdout for name in names),
          f"the list of corrupt files: {done.stdout!r}")
    done = run("data", "verify", "digits-bad", "--json", "--threads", "3")
    result = json.loads(done.stdout)
    check(done.returncode == 1 and result["records"] == 240 and result["n_corrupt"] == 2, f"--json: {result}")
    check([c["file"] for c in result["corrupt"]] == [f"{CORRUPT}/{name}" for name in names], f"--json: {result}")
    check(result["error"] == "2 of 240 records are corrupt", f"--json: {result}")
    shutil.copytree("digits", "digits-gone")
    for path in glob.glob("digits-gone/*/*/*"):
        os.truncate(path, 100)
    done = refused(["data", "verify", "digits-gone"], 1, "240 of 240 records are corrupt")
    check(done.stdout.count("\n") == 101 and done.stdout.endswith("... and 140 more; --json lists them\n"),
          f"a long list of corrupt files: {done.stdout[-200:]!r}")
    accepted(["pack", "digits/test", "--out", "packed", "--quiet"])
    shard = "packed/shard-00000.tar"
    data = bytearray(open(shard, "rb").read())
    at = data.find(b"\xff\xda") + 40
    data[at:at + 2] = b"\xff\xd9"
    open(shard, "wb").write(data)
    done = run("data", "verify", shard, "--json")
    corrupt = json.loads(done.stdout)["corrupt"]
    check(done.returncode == 1 and len(corrupt) == 1 and corrupt[0]["file"] == shard
          and 0 <= corrupt[0]["offset"] < at, f"a record of a shard: {corrupt}")
    refused(["data", "verify", "nowhere.yaml"], 1, "nowhere.yaml")
    both = "data.train.source={concatenate: [{source: {images: digits/train}}, {source: {images: digits/train}}]}"
    accepted(["data", "verify", "small.yaml", "--set", both], "all 400 records are whole")
    one_bad = both.replace("digits/train", f"digits-bad/{CORRUPT.split('/')[1]}", 1)
    done = refused(["data", "verify", "small.yaml", "--set", one_bad], 1, "2 of ")
    check(all(f"{CORRUPT}/{name}': truncated JPEG" in done.stdout for name in names), f"of one of two: {done.stdout}")
    check("looked at data.train alone" in done.stdout, f"and of which part: {done.stdout}")


def explain():
    done = accepted(["data", "explain", "small.yaml", "--threads", "3"], "200 records", "10 classes",
                    "decode + normalize -> f32[?,?,1], as one pass over rows", "indexable", "exact resume at any batch: yes")
    facts = json.loads(accepted(["data", "explain", "small.yaml", "--threads", "3", "--json"]).stdout)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk("digits/train") for f in files)
    check(facts["samples"] == 200 and facts["batches"] == 10 and facts["threads"] == 3 and facts["class"] == "indexable",
          f"--json: {facts}")
    check(abs(facts["bytes_per_epoch"] / (size + 4 * 200) - 1) < 0.2, f"bytes of an epoch: {facts}, {size}")
    check(facts["fields"][0]["row_bytes"] == 28 * 28 * 4 and facts["slot_bytes"] >= 20 * (28 * 28 * 4 + 4), f"{facts}")
    check([s["pass"] for s in facts["stages"]] == [1, 1], f"{facts['stages']}")
    with_window = ["--set", "data.train.shuffle=null", "--set", "data.train.take=70"]
    facts = json.loads(accepted(["data", "explain", "small.yaml", "--json", *with_window]).stdout)
    check(facts["order"] == ["the first 70 of 200 samples"] and facts["dropped"] == 10, f"{facts}")


LINT = """
data:
  train:
    source: {files: {paths: digits/train}}
    take: 190
    on_error: skip
    stages:
      - decode: {channels: 1}
      - normalize: mnist
      - resize: {size: 8, antialias: false}
  test:
    source: {images: digits/test}
    take: 20
    stages: [{decode: {channels: 1}}, random_flip]
batch: 64
model: {cnn: {widths: [4]}}
"""


def lint():
    accepted(["data", "lint", "small.yaml"], "small.yaml: no known mistake")
    with open("bad.yaml", "w") as f:
        f.write(LINT)
    done = run("data", "lint", "bad.yaml", "--json")
    findings = {(f["part"], f["rule"]): f for f in json.loads(done.stdout)["findings"]}
    wanted = {("train", "no-shuffle"): 4, ("train", "dropped"): 4, ("train", "no-label"): 4, ("train", "resize-floats"): 10,
              ("train", "no-antialias"): 10, ("test", "take-sorted"): 13, ("test", "random-eval"): 14}
    check(done.returncode == 1 and findings.keys() == wanted.keys(), f"findings: {done.stdout} {done.stderr}")
    for key, line in wanted.items():
        check(key in findings and findings[key]["line"] in (line, line - 1), f"{key} in line {line}: {findings.get(key)}")
    text = run("data", "lint", "bad.yaml", "--split", "test").stdout
    check(text.startswith("bad.yaml:13:") and text.count("remedy: ") == 2, f"the text: {text!r}")
    one = {"dropped": ["batch=120"],
           "small-window": ["data.train.shuffle={window: 20}"],
           "file-shards": ["data.train.shard={count: 11, index: 0, policy: file}", "batch=9"],
           "many-skipped": ["data.train.source.images=digits-bad/test", "data.train.on_error=skip"]}
    for rule, sets in one.items():
        done = run("data", "lint", "small.yaml", "--split", "train", "--json", *[x for s in sets for x in ("--set", s)])
        rules = [f["rule"] for f in json.loads(done.stdout or "{}").get("findings", [])]
        check(rules == [rule] and done.returncode == 1, f"{rule}: {rules} {done.stderr}")
    blurs = "data.test.stages=[{decode: {channels: 1}}, {gaussian_blur: {kernel: 3}}]"
    done = run("data", "lint", "bad.yaml", "--split", "test", "--set", blurs)
    check("'gaussian_blur' makes evaluation random" in done.stdout, f"a random stage by another name: {done.stdout}")
    refused(["data", "lint", "bad.yaml", "--set", "data.train.take=900"], 1, "cannot take 900")
    learned()


TOKENS = """
data:
  train:
    source: {tokens: {files: tokens.bin, dtype: u16, length: 8, stride: 4}}
    shuffle: true
batch: 4
model: {gpt2: {size: mini, layers: 1, heads: 1, width: 8, vocabulary: 257, positions: 8}}
"""
PAIRS = """
data:
  train:
    source: {pairs: {image: pairs/images, mask: pairs/masks}}
    shuffle: true
    stages: [{decode: {channels: 1}}, {with: {fields: mask, stages: [decode_mask]}}, {scale: 1/255}]
batch: 4
model: {unet: {widths: [2, 4], classes: 4}}
"""


def learned():
    """What a model learns need not be labels: the next token, hidden ones, a mask, the image itself."""
    with open("tokens.bin", "wb") as f:
        f.write(struct.pack("<1001H", *(i % 256 for i in range(1001))))
    for folder in "images", "masks":
        shutil.copytree("digits/train/3", f"pairs/{folder}")
    for name, text in ("tokens.yaml", TOKENS), ("pairs.yaml", PAIRS):
        with open(name, "w") as f:
            f.write(text)
    with open("text.txt", "w") as f:
        f.write("the cat sat on the mat and the dog sat on the cat\n" * 40)
    accepted(["tokenizer", "train", "text.txt", "--wordpiece", "--vocab", "60", "--out", "pieces.json"])
    masked = ["data.train.masked={tokenizer: pieces.json}", "model={bert: {size: mini, vocabulary: 60}}", "loss=masked_lm"]
    no_labels = ["data.train.source={files: {paths: digits/train}}", "data.test.source={files: {paths: digits/test}}"]
    for recipe, sets in (("tokens.yaml", []), ("tokens.yaml", masked), ("pairs.yaml", []),
                         ("small.yaml", ["model={autoencoder: {widths: [4], code: 4}}", "loss=mse", *no_labels])):
        accepted(["data", "lint", recipe, *[x for s in sets for x in ("--set", s)]], "no known mistake")
    for sets, field in (no_labels, "label"), (["loss={cross_entropy: {target: kind}}"], "kind"):
        done = run("data", "lint", "small.yaml", "--split", "train", "--json", *[x for s in sets for x in ("--set", s)])
        found = json.loads(done.stdout or "{}").get("findings", [])
        check([f["rule"] for f in found] == ["no-label"] and f"no field '{field}'" in found[0]["reason"],
              f"nothing to learn: {found} {done.stderr}")


def windows():
    """Windows that overlap are no data of their own: the file has 2,002 bytes, whatever they come to."""
    accepted(["data", "explain", "tokens.yaml"], "249 records in 1 file, 1.96 KiB; windows of 18 B each, 4.38 KiB in all",
             ", about 4.36 KiB read")
    facts = json.loads(accepted(["data", "explain", "tokens.yaml", "--json"]).stdout)
    check(facts["file_bytes"] == 2002 and facts["window_bytes"] == 18
          and facts["bytes_per_epoch"] == 18 * (facts["samples"] - facts["dropped"]), f"windows of tokens: {facts}")


def index():
    def hashes(*args):
        accepted(["train", "small.yaml", "--steps", "6", "--out", "run", "--set", "seed=3", *args])
        with open("run/metrics.jsonl") as f:
            losses = [m["loss"] for m in map(json.loads, f) if m["kind"] == "step"]
        shutil.rmtree("run")
        return losses
    plain = hashes()
    done = accepted(["index", "digits/train", "--json", "--threads", "3"])
    result = json.loads(done.stdout)
    check(result["index"] == "digits/train/.stoker-index" and result["files"] == 200 and result["kept"] == 0
          and result["without"] == 0 and result["bytes"] == os.path.getsize(result["index"]), f"--json: {result}")
    accepted(["index", "digits/train"], "200 were in it already")
    dense = json.loads(accepted(["index", "digits/train", "--json", "--every", "1"]).stdout)
    check(dense["kept"] == 0 and dense["bytes"] > result["bytes"], f"--every: {dense}")
    again = json.loads(accepted(["index", "digits/train", "--json", "--every", "1"]).stdout)
    check(again["kept"] == 200 and again["bytes"] == dense["bytes"], f"--every again: {again}")
    for how in "auto", "none", "digits/train/.stoker-index":
        check(hashes("--set", f"data.train.index={how}") == plain, f"index: {how}: the same losses")
    refused(["data", "bench", "small.yaml", "--set", "data.train.index=sheet.png"], 1, "sheet.png", "not an index")
    refused(["data", "bench", "small.yaml", "--set", "data.train.index=nowhere"], 1, "nowhere")
    with open("digits/train/.stoker-index", "r+b") as f:
        f.seek(100)
        f.write(b"???")
    check("not used" in accepted(["data", "explain", "small.yaml"]).stderr, "a damaged index is told")
    check(hashes() == plain, "a damaged index is not used")
    refused(["index", "nowhere"], 1, "'nowhere'")
    refused(["index"], 2, "one folder")


begin()
show()
verify()
explain()
lint()
windows()
index()
end()
