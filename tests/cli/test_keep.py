#!/usr/bin/env python3
"""Nothing of the user's is lost: earlier runs, files that lie where Stoker would write, and what verbs that only look leave
alone.

usage: test_keep.py STOKER WORK_FOLDER
"""
import glob
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time

import program
from program import STOKER, accepted, check, refused, run

TRAIN = ["train", "small.yaml"]


def put(path, content="mine"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        f.write(content)


def text(path):
    return open(path).read() if os.path.isfile(path) else None


def tree(*folders):
    """Names, kinds, times and content of all that lies below."""
    found = {}
    for folder in folders:
        for place, names, files in os.walk(folder):
            for name in names + files:
                path = os.path.join(place, name)
                info = os.lstat(path)
                content = hashlib.sha256(open(path, "rb").read()).hexdigest() if os.path.isfile(path) else None
                found[path] = (info.st_mode, info.st_ino, None if content is None else info.st_mtime_ns, content)
    return found


def earlier_runs():
    """Each start without --resume keeps the one before, however many there are."""
    for i in range(3):
        accepted([*TRAIN, "--steps", "2", "--out", "again"])
        put("again/notes.txt", f"run {i}")
    last = accepted([*TRAIN, "--steps", "2", "--out", "again"], "earlier run is kept in 'again.previous-3'")
    check("--resume" in last.stderr, "and says how to go on")
    kept = [text(f"again{end}/notes.txt") for end in ("", ".previous", ".previous-2", ".previous-3")]
    check(kept == [None, "run 0", "run 1", "run 2"], f"all earlier runs are there: {kept}")
    # What is called so need not be a run.
    shutil.rmtree("again.previous")
    put("again.previous", "a file")
    accepted([*TRAIN, "--steps", "2", "--out", "again"], "'again.previous-4'")
    check(text("again.previous") == "a file", "nor is it replaced")
    shutil.rmtree("again")
    accepted([*TRAIN, "--steps", "1", "--out", "again", "--resume"], "an earlier run is in 'again.previous-")


def only_old_is_left():
    """Killed between the two renames of saving a step again."""
    accepted([*TRAIN, "--steps", "5", "--out", "old"])
    shutil.copytree("old", "old-read")
    for folder in "old", "old-read":
        os.rename(f"{folder}/step-5", f"{folder}/.old")
    done = accepted(["eval", "old-read", "--json"])
    check(json.loads(done.stdout)["step"] == 5, "who only reads finds it")
    check(os.path.isdir("old-read/.old") and not os.path.exists("old-read/step-5"), "and renames nothing")
    accepted([*TRAIN, "--steps", "6", "--out", "old", "--resume"], "step 5")
    steps = [json.loads(line)["step"] for line in open("old/metrics.jsonl")]
    check(steps == [1, 2, 3, 4, 5, 6], f"goes on from it: {steps}")
    check(os.path.isdir("old/step-5") and os.path.isdir("old/step-6") and not os.path.exists("old/.old"), "in order again")
    shutil.rmtree("old-read")
    # Without --resume, too, it is work that is kept.
    shutil.rmtree("old/step-6")
    os.remove("old/result.json")
    os.rename("old/step-5", "old/.old")
    accepted([*TRAIN, "--steps", "1", "--out", "old"], "earlier run is kept in 'old.previous'")
    check(os.path.isdir("old.previous/step-5"), "with its checkpoint")


def two_at_once():
    """The second one says so and destroys nothing, whatever it was asked for."""
    first = subprocess.Popen([STOKER, "train", "small.yaml", "--out", "busy", "--set", "epochs=100000"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + program.TIMEOUT
    while not glob.glob("busy/step-*") and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    put("busy/notes.txt")
    for words in ([], ["--resume"], ["--set", "epochs=3"]):
        refused([*TRAIN, "--out", "busy", *words], 1, "'busy' is in use by another process")
    check(text("busy/notes.txt") == "mine" and not glob.glob("busy.previous*"), "nothing is moved")
    check(first.poll() is None, "the first one goes on")
    first.send_signal(signal.SIGINT)
    first.wait()
    check(glob.glob("busy/step-*"), "and saves at its end")
    lines = [json.loads(line) for line in open("busy/metrics.jsonl")]
    steps = [m["step"] for m in lines if m["kind"] == "step"]
    check(steps == sorted(set(steps)), "its record is whole")


def resuming_with_other_data():
    """Another number of samples would be another order, and no run that goes on bit for bit."""
    shutil.copytree("digits", "fewer")
    put("fewer.yaml", text("small.yaml").replace("digits/", "fewer/"))
    accepted(["train", "fewer.yaml", "--steps", "5", "--out", "fewer-run"])
    os.remove(sorted(glob.glob("fewer/train/4/*.jpg"))[0])
    refused(["train", "fewer.yaml", "--resume", "--out", "fewer-run"], 1, "the data have changed: 199 samples", "200")


def refused_runs_leave_folders_alone():
    os.makedirs("mine/empty")
    put("wrong.yaml", text("small.yaml").replace("lr: 0.003", "lr: 0.003, speed: 2"))
    for folder in "mine/empty", "new/er/run":
        refused(["train", "wrong.yaml", "--out", folder], 1, "speed", lines=None)
        refused([*TRAIN, "--memory", "64KiB", "--out", folder], 1, "raise the limit", lines=None)
    check(os.path.isdir("mine/empty") and not os.listdir("mine/empty"), "an empty folder of the user's stays")
    check(not os.path.exists("new"), "and none is made")
    put("mine/photos/cat.jpg")
    refused([*TRAIN, "--out", "mine/photos"], 1, "holds 'cat.jpg' but no run")
    check(os.listdir("mine/photos") == ["cat.jpg"], "nothing next to it")
    # A folder with a recipe of one's own is no run.
    shutil.copy("small.yaml", "mine/empty/recipe.yaml")
    before = tree("mine")
    refused(["train", "mine/empty/recipe.yaml", "--out", "mine/empty"], 1, "holds 'recipe.yaml' but no run")
    check(tree("mine") == before, "it is not replaced by the run's")


def downloads():
    """By --mirror from a folder, so that nothing is fetched."""
    os.makedirs("site")
    with tarfile.open("site/a.tgz", "w:gz") as out:
        member = tarfile.TarInfo("a/b.txt")
        member.size = 3
        out.addfile(member, io.BytesIO(b"abc"))
    address = ["get", "http://127.0.0.1:9/a.tgz", "--checksum", "none"]
    done = run(*address, "--mirror", "nowhere", "--out", "p/q/r")
    if "without lib" in done.stderr:
        print(f"SKIP: {done.stderr.strip()}")
        return
    check(done.returncode == 1 and not os.path.exists("p"), f"a failed get leaves no folder: {glob.glob('p*')}")
    refused(["get", "tinyshakespeare", "--mirror", "nowhere", "--out", "p/q"], 1, "nowhere")
    check(not os.path.exists("p"), "nor for files")
    os.makedirs("p/q")
    refused(["get", "tinyshakespeare", "--mirror", "nowhere", "--out", "p/q"], 1, "nowhere")
    check(os.path.isdir("p/q"), "one that was there stays")
    # OUT.download and OUT.tmp of somebody.
    put("pets.download/photo.jpg")
    put("pets.tmp/photo.jpg")
    refused([*address, "--mirror", "site", "--out", "pets"], 1, "'pets.download' is there and was not made by")
    check(text("pets.download/photo.jpg") == "mine" and not os.path.exists("pets"), "it stays as it is")
    os.rename("pets.download", "elsewhere")
    accepted([*address, "--mirror", "site", "--out", "pets"], "is in pets")
    check(text("pets.tmp/photo.jpg") == "mine" and text("pets/a/b.txt") == "abc", "nor is OUT.tmp touched")
    check(not os.path.exists("pets.download"), "our own goes when all is there")
    # One that another program began, and one that was put aside before.
    put("one/input.txt.part", "half of it")
    os.makedirs("shakespeare")
    put("shakespeare/input.txt", "To be")
    words = ["get", "tinyshakespeare", "--mirror", "shakespeare", "--out", "one"]
    refused(words, 1, "'one/input.txt.part' is there and no part that 'stoker get' fetched")
    check(text("one/input.txt.part") == "half of it", "it is not written to")
    os.rename("one/input.txt.part", "one/half")
    put("one/input.txt.wrong", "kept")
    refused(words, 1, "checksum", "it is kept as 'one/input.txt.wrong-2'")
    check(text("one/input.txt.wrong") == "kept" and text("one/input.txt.wrong-2") == "To be", "both are kept")


LOOKED_AT = """
name: looked-at
data:
  train:
    source: {images: look/digits/train}
    filter: {field: image, min_bytes: 10}
    shuffle: true
    stages: [{decode: {channels: 1}}, {resize: 16}, {normalize: mnist}]
    cache: {in: disk, path: look/rows.cache}
  test:
    source: {tar: look/many.tar}
    stages: [{decode: {channels: 1}}, {resize: 16}, {normalize: mnist}]
batch: 20
model: {cnn: {widths: [4, 8], classes: 10}}
optimizer: {adam: {lr: 0.003}}
epochs: 1
"""


def make_tar():
    files = sorted(glob.glob("digits/train/*/*.jpg"))
    with tarfile.open("look/many.tar", "w") as out:
        for i in range(1200):
            member = tarfile.TarInfo(f"{i:06d}.jpg")
            content = open(files[i % len(files)], "rb").read()
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
            label = tarfile.TarInfo(f"{i:06d}.cls")
            label.size = 1
            out.addfile(label, io.BytesIO(str(i % 10).encode()))


def verbs_that_look():
    """explain, show, lint, verify and plan write nothing but what they are asked for, before and after a run has left its
    indexes, scans and caches; nor do they remove or replace anything."""
    os.makedirs("look")
    os.makedirs("cache")
    os.environ["STOKER_CACHE"] = os.path.abspath("cache")
    make_tar()
    accepted(["get", "digits", "--train", "1200", "--test", "10", "--out", "look/digits"])
    put("look/r.yaml", LOOKED_AT)
    put("look/many.tar.tmp-1", "mine")
    verbs = [["data", "explain", "look/r.yaml"], ["data", "explain", "look/r.yaml", "--json"],
             ["data", "show", "look/r.yaml", "--out", "seen.png"], ["data", "lint", "look/r.yaml"],
             ["data", "verify", "look/r.yaml"], ["plan", "look/r.yaml"], ["data", "verify", "look/digits"]]

    def look(when, wrong=False):
        for words in verbs:
            before = tree("look", "cache")
            done = run(*words)
            check(done.returncode == (1 if wrong and words[1] in ("explain", "show") else 0),
                  f"{when} {words}: {done.returncode} {done.stderr}")
            after = tree("look", "cache")
            check(before == after, f"{when}: {' '.join(words)} changes {set(before.items()) ^ set(after.items())}")

    look("before a run")
    done = accepted(["train", "look/r.yaml", "--steps", "70", "--out", "seen"])
    check(os.path.exists("look/rows.cache") and os.path.exists("look/many.tar.stkidx") and os.listdir("cache"),
          f"a run keeps what it finds out: {os.listdir('look')} {os.listdir('cache')} {done.stderr}")
    look("after a run")
    # A slip in the recipe: the cache's path is somebody's file.
    put("look/rows.cache", "a thesis")
    put("look/many.tar.stkidx", "notes")
    for words in [["data", "explain", "look/r.yaml"], ["data", "bench", "look/r.yaml", "--seconds", "1"],
                  ["train", "look/r.yaml", "--steps", "1", "--out", "slip"]]:
        refused(words, 1, "rows.cache': something that is no cache is there; name another path", lines=None)
    look("with somebody's files", wrong=True)
    check(text("look/rows.cache") == "a thesis" and text("look/many.tar.stkidx") == "notes", "they are as they were")
    del os.environ["STOKER_CACHE"]


def all_samples_are_evaluated():
    """200 samples in batches of 30: training leaves 20 of them out of each epoch, evaluation none."""
    accepted([*TRAIN, "--steps", "3", "--set", "batch=30", "--out", "parts"])
    for part, n in ("train", 200), ("test", 40):
        seen = json.loads(accepted(["eval", "parts", "--part", part, "--json"]).stdout)["samples"]
        check(seen == n, f"eval --part {part} takes {seen} samples of {n}")
    # A batch that no step could have: larger than the data to learn from, smaller than what a step is divided into.
    accepted([*TRAIN, "--steps", "3", "--set", "data.train.take=20", "--set", "micro_batch=10", "--out", "few"])
    accuracy = set()
    for batch in "20", "40", "300", "7":
        done = accepted(["eval", "few", "--batch", batch, "--json"])
        said = json.loads(done.stdout or "{}")
        check(said.get("samples") == 40, f"eval --batch {batch}: {said} {done.stderr}")
        accuracy.add(said.get("accuracy"))
    check(len(accuracy) == 1, f"the same whatever the batch: {accuracy}")


def without_onnx(folder):
    text = run("export", folder, "--onnx", "--out", "probe.onnx").stderr
    if "without protobuf-c" in text:
        print(f"SKIP: {text.strip()}")
    return "without protobuf-c" in text


def exports_that_fail():
    """They make no folders: one that is not there may be a slip, and is named."""
    accepted([*TRAIN, "--steps", "2", "--out", "run"])
    os.makedirs("out/folder.safetensors")
    for kind in ("--safetensors",) if without_onnx("run") else ("--safetensors", "--onnx"):
        accepted(["export", "run", kind, "--out", f"out/c{kind}"])
        refused(["export", "run", kind, "--out", "gone/b/c"], 1, "there is no folder 'gone/b'")
        refused(["export", "run", kind, "--out", "small.yaml/c"], 1, "'small.yaml' is no folder")
        refused(["export", "run", kind, "--out", "out/folder.safetensors"], 1, "it is a folder")
        refused(["export", "nowhere", kind, "--out", "gone/b/c"], 1, "nowhere")
        refused(["export", "run", kind, "--out", "gone/b/c/"], 1, "gone/b/c/", lines=None)
    refused(["report", "run", "--out", "gone/b/c.html"], 1, "there is no folder 'gone/b'")
    check(not os.path.exists("gone"), "a failed export leaves no folders")
    check(not glob.glob("out/.stoker-tmp-*"), "nor files")


def outputs_of_another_kind():
    """A slip of the name: an output replaces only what is of its kind, such as that of the same command before."""
    accepted([*TRAIN, "--steps", "2", "--out", "kinds"])
    put("corpus.txt", "to be or not to be " * 50)
    cases = {
        "safetensors": ["export", "kinds", "--safetensors", "--out"],
        "onnx": ["export", "kinds", "--onnx", "--out"],
        "html": ["report", "kinds", "--out"],
        "png": ["data", "show", "small.yaml", "--out"],
        "json": ["tokenizer", "train", "corpus.txt", "--vocab", "270", "--out"],
        "bin": ["tokenize", "corpus.txt", "--tokenizer", "bytes", "--out"],
        "record": ["watch", "--record"],
        "watched": ["watch", "--html"],
    }
    if without_onnx("kinds"):
        del cases["onnx"]
    for name, words in cases.items():
        after = ["--", "true"] if words[0] == "watch" else []
        put(f"thesis.{name}", "name: a thesis\n" * 9)
        refused([*words, f"thesis.{name}", *after], 1, f"thesis.{name}' is there and is not", "not replaced",
                "name another file")
        check(text(f"thesis.{name}") == "name: a thesis\n" * 9, f"{name}: it stays as it is")
        like = {"json": '{\n  "name": "my-app"\n}\n', "html": "<!doctype html>\n<p>mine\n", "watched": "<html>\n<p>mine\n"}.get(name)
        if name in ("png", "onnx", "safetensors"):
            accepted([*words, f"like.{name}"])
            with open(f"like.{name}", "r+b") as f:  # As if another program had written it: only the mark is another.
                content = f.read()
                at = content.index(b"Stoker" if name == "png" else b"stoker")
                f.seek(at)
                f.write(b"butler")
            refused([*words, f"like.{name}"], 1, f"like.{name}' is there and is not", "not replaced")
            with open(f"like.{name}", "rb") as f:
                check(f.read() == content.replace(content[at:at + 6], b"butler", 1), f"{name}: another program's stays as it is")
        if like:  # Of the same format, but a person's.
            put(f"like.{name}", like)
            refused([*words, f"like.{name}", *after], 1, f"like.{name}' is there and is not", "not replaced")
            check(text(f"like.{name}") == like, f"{name}: a file of the same format stays as it is")
        for _ in range(2):
            accepted([*words, f"own.{name}", *after])
        put(f"empty.{name}", "")
        accepted([*words, f"empty.{name}", *after])


def exports_into_checkpoints():
    """A checkpoint's files belong together: an export that took the place of one would cost it all."""
    accepted([*TRAIN, "--steps", "2", "--out", "whole"])
    for name in "model.safetensors", "optimizer.safetensors":
        refused(["export", "whole", "--safetensors", "--out", f"whole/step-2/{name}"], 1, "would lie in a checkpoint")
    accepted(["eval", "whole"])


def parts_of_another_kind():
    """The same for what an output is cut into: nobody named those files. All are looked at before any is written."""
    accepted([*TRAIN, "--steps", "1", "--out", "wide", "--set", "model={mlp: {hidden: [512, 512]}}"])
    cases = {"--safetensors": ["m-00001-of-00004.safetensors", "m-00003-of-00004.safetensors", "m.safetensors.index.json"],
             "--onnx": ["m.onnx.data"]}
    if without_onnx("wide"):
        del cases["--onnx"]
    for kind, names in cases.items():
        words = ["export", "wide", kind, "--shard", "1", "--out", "pieces/m." + kind[2:]]
        for content in "{a thesis}\n" * 9, "w":
            for name in names:
                put(f"pieces/{name}", content)
                refused(words, 1, f"pieces/{name}' is there and is not", "not replaced")
                check(os.path.getsize(f"pieces/{name}") == len(content), f"{name} stays as it is")
                check(os.listdir("pieces") == [name], f"and nothing is written next to it: {os.listdir('parts')}")
                shutil.rmtree("pieces")
        for name in names:
            put(f"pieces/{name}", "")
        for _ in range(2):
            accepted(words)
        check(all(os.path.getsize(f"pieces/{name}") for name in names), "empty ones and our own are replaced")
        shutil.rmtree("pieces")
    # The file that shards take the place of is removed, if it is ours.
    words = ["export", "wide", "--safetensors", "--out", "pieces/m.safetensors"]
    os.makedirs("pieces")
    os.mkfifo("pieces/m.safetensors")
    refused([*words, "--shard", "1"], 1, "no regular file")
    check(os.listdir("pieces") == ["m.safetensors"], "a pipe stays")
    os.remove("pieces/m.safetensors")
    accepted(words)
    accepted([*words, "--shard", "1"], "4 files")
    check(not os.path.exists("pieces/m.safetensors"), "a single file would be read before the index")


def pictures_of_reports():
    """By a program that plays Chromium. One that is there stays where there is none, or it writes nothing."""
    accepted([*TRAIN, "--steps", "2", "--out", "drawn"])
    os.makedirs("bin")
    shell = shutil.which("sh")
    play = "for word; do case $word in --screenshot=*) printf '\\211PNG new' > \"${word#*=}\";; esac; done"
    for name, script in ("draws", play), ("fails", "exit 1"):
        put(f"bin/{name}/chromium", f"#!{shell}\n{script}\n")
        os.chmod(f"bin/{name}/chromium", 0o755)
    report = ["report", "drawn", "--out", "drawn.html", "--png", "drawn.png"]
    path = lambda name: dict(os.environ, PATH=os.path.abspath(f"bin/{name}"))
    refused(report, 1, "no Chromium", env=path("none"))
    check(not os.path.exists("drawn.png"), "nothing is left behind")
    accepted(report, env=path("draws"))
    drawn = open("drawn.png", "rb").read()
    check(drawn == b"\x89PNG new", f"a picture: {drawn!r}")
    refused(report, 1, "no Chromium", env=path("none"))
    refused(report, 1, "'chromium' wrote no 'drawn.png'", env=path("fails"))
    check(open("drawn.png", "rb").read() == drawn, "the one before stays")
    put("thesis.png2", "mine")
    refused([*report[:-1], "thesis.png2"], 1, "thesis.png2' is there and is not a PNG file", env=path("draws"))
    check(text("thesis.png2") == "mine" and not glob.glob(".stoker-tmp-*"), "nor is another kind replaced")
    os.mkfifo("pipe.png")
    refused([*report[:-1], "pipe.png"], 1, "pipe.png': it is there and is no regular file", env=path("draws"))


if __name__ == "__main__":
    program.begin()
    earlier_runs()
    resuming_with_other_data()
    only_old_is_left()
    two_at_once()
    refused_runs_leave_folders_alone()
    downloads()
    verbs_that_look()
    all_samples_are_evaluated()
    exports_that_fail()
    outputs_of_another_kind()
    exports_into_checkpoints()
    parts_of_another_kind()
    pictures_of_reports()
    program.end()
