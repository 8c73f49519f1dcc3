#!/usr/bin/env python3
"""Wrong usage and wrong recipes: one clear line each; exit code 2 for usage, 1 for the rest.

usage: test_messages.py STOKER WORK_FOLDER
"""
import json
import os
import re
import resource
import shutil

from program import accepted, begin, check, end, refused, run


def usage():
    check(run("--version").stdout.startswith("stoker "), "--version")
    check("train" in accepted(["--help"]).stdout, "--help names the verbs")
    for verb in ["train", "eval", "predict", "devices", "new", "get"]:
        accepted([verb, "--help"], f"usage: stoker {verb}")
    check(run().returncode == 2, "no verb is wrong usage")
    refused(["trian"], 2, "no verb 'trian' (did you mean 'train'?)")
    refused(["train"], 2, "needs a recipe")
    refused(["train", "a.yaml", "b.yaml"], 2, "takes one recipe")
    refused(["train", "small.yaml", "--resum"], 2, "no option '--resum' (did you mean '--resume'?)")
    refused(["train", "small.yaml", "--steps"], 2, "'--steps' needs a value")
    refused(["train", "small.yaml", "--steps", "many"], 2, "whole number", "'many'")
    refused(["train", "small.yaml", "--quiet=1"], 2, "takes no value")
    refused(["train", "small.yaml", "--set", "batch"], 2, "KEY=VALUE")
    refused(["eval"], 2, "takes one run folder")
    refused(["eval", "x", "--part", "nothing"], 2, "test, valid or train")
    refused(["predict", "x"], 2, "at least one file")
    refused(["devices", "x"], 2, "takes no name")
    refused(["new"], 2, "takes one name")
    refused(["new", "no spaces"], 2, "is no name for a recipe")
    refused(["get"], 2, "takes one name")
    refused(["get", "digit"], 2, "did you mean 'digits'?")
    refused(["get", "digits", "--train", "-5"], 2, "'--train'")


def recipes():
    train = ["train", "small.yaml"]
    refused(["train", "nowhere.yaml"], 1, "'nowhere.yaml'", "no such file")
    with open("first.yaml", "w") as f:
        f.write("name: first\n")
    for slip in "first", "frist.yaml":
        refused(["train", slip], 1, f"'{slip}'", "no such file", "did you mean 'first.yaml'?")
    for name, bad, good in (("STOKER_ISA", "avx3", "baseline"), ("STOKER_TIMEOUT", "1 s", "30"),
                            ("STOKER_CACHE_LIMIT", "5GB", "5GiB")):
        refused(["devices"], 2, name, f"not '{bad}'", env={**os.environ, name: bad})
        accepted(["devices"], env={**os.environ, name: good})
    refused([*train, "--set", "optimzer.sgd.lr=0.2"], 1,
            "--set optimzer.sgd.lr: no key 'optimzer' (did you mean 'optimizer'?)")
    refused([*train, "--batch", "none"], 1, "--set batch: 'batch' must be a whole number")
    refused([*train, "--precision", "f8"], 1, "'precision' must be")
    for verb in "train", "plan":
        refused([verb, "small.yaml", "--precision", "tf32"], 1, "precision tf32", "no products in TF32", "cuBLASLt")
    refused([*train, "--set", "model=resnet19"], 1, "did you mean 'resnet18'?")
    refused([*train, "--set", "model={cnn: {classes: 9}}"], 1, "the data has 10 classes, the model's output only 9")
    refused([*train, "--set", "data.train.source.images=elsewhere"], 1, "no such data: 'elsewhere'", "STOKER_DATA")
    for name in ("shapes", "cifar10", "digits"):  # made by one table, fetched by another, and made apart from both
        refused([*train, "--set", f"data.train.source.images={name}/learn"], 1, f"get it with: stoker get {name}")
    refused([*train, "--set", "data.train.stages=[decode]"], 1, "small.yaml:5:5", "add the stage")
    refused([*train, "--set", "loss=mse"], 1, "one_hot")
    refused([*train, "--set", "data.train.remainder=keep"], 1, "cannot keep the remainder")
    refused([*train, "--batch", "1000"], 1, "200 samples")
    for text, place in [("name: [\n", "bad.yaml:2:1"), ("a: 1\n", "bad.yaml:1:1: no key 'a'"),
                        ("name: x\nname: y\n", "bad.yaml:2:1: key 'name' is given twice"), ("", "bad.yaml: empty"),
                        ("\xff\xfe", "bad.yaml")]:
        with open("bad.yaml", "w", encoding="latin-1") as f:
            f.write(text)
        refused(["train", "bad.yaml"], 1, place)


def names():
    """What a recipe says of parameters by name: the line that says what no parameter is called."""
    accepted(["train", "small.yaml", "--out", "named"])
    with open("small.yaml") as f:
        lines = f.read().rstrip("\n")
    line = lines.count("\n") + 2
    for text, column, words in [
            ("freeze: nowhere", 9, "no parameter matches 'nowhere' (freeze)"),
            ("freeze: ''", 9, "'freeze' must be"),
            ("freeze: [conv2d, nowhere]", 18, "no parameter matches 'nowhere' (freeze)"),
            ("groups: [{match: nowhere, lr: 0.1}]", 18, "no parameter matches 'nowhere' (groups)"),
            ("init: {weights: named, leave: [nowhere]}", 32, "no parameter has 'nowhere' in its name"),
            ("init: {weights: small.yaml}", 17, "small.yaml'"),
            ("whiten: {layer: nowhere}", 9, "no convolution 'nowhere'"),
            ("expect: [test_f1 >= 0.9]\nseed: 5", 9, "no 'f1' is measured")]:
        with open("bad.yaml", "w") as f:
            f.write(f"{lines}\n{text}\n")
        # The folder has a run of another recipe, which is not the news.
        for folder in "named", "unnamed":
            refused(["train", "bad.yaml", "--set", "name=small", "--out", folder], 1, f"bad.yaml:{line}:{column}: ", words)
        check(not os.path.exists("unnamed"), "nothing is left behind")
    refused(["train", "small.yaml", "--out", "named", "--set", "freeze=nowhere"], 1, "--set freeze: no parameter matches")
    refused(["train", "small.yaml", "--out", "named", "--set", "freeze=conv2d"], 1, "a run with another recipe")


def data():
    train = ["train", "small.yaml", "--out", "bad-data"]
    shutil.copytree("digits/train", "empty-class")
    os.makedirs("empty-class/99")
    refused([*train, "--set", "data.train.source.images=empty-class", "--set", "data.test=null"], 1, "99")
    os.makedirs("no-class")
    refused([*train, "--set", "data.train.source.images=no-class"], 1, "no-class")
    shutil.copytree("digits/train", "mixed")
    check(run("get", "digits", "--out", "large", "--train", "10", "--test", "0", "--size", "40").returncode == 0,
          "large digits")
    name = os.listdir("large/train/3")[0]
    shutil.copy(f"large/train/3/{name}", "mixed/3/odd.jpg")
    refused([*train, "--set", "data.train.source.images=mixed"], 1, "odd.jpg")
    shutil.copytree("digits/train", "torn")
    path = "torn/5/" + sorted(os.listdir("torn/5"))[0]
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) // 2)
    refused([*train, "--set", "data.train.source.images=torn"], 1, path, lines=2)
    shutil.rmtree("bad-data", ignore_errors=True)
    accepted([*train, "--set", "data.train.source.images=torn", "--set", "data.train.on_error=skip"], "skipped", path)
    shutil.rmtree("bad-data")
    both = [f"data.{split}.{key}" for split in ("train", "test") for key in ("source.images=torn", "on_error=skip")]
    done = run(*train, *[word for key in both for word in ("--set", key)])
    text = done.stdout + done.stderr
    check(done.returncode == 0 and text.count(path) == 1, f"a file that both parts skip is listed once: {text}")
    shutil.rmtree("bad-data")
    refused([*train, "--set", "data.test.source.images=torn"], 1, path, "data.test.on_error: skip leaves it out", lines=None)
    accepted(["eval", "bad-data", "--set", "data.test.on_error=skip"], "on 199 samples")
    refused(["eval", "bad-data", "--set", "data"], 2, "needs KEY=VALUE", lines=None)


def skipped_files_are_counted_once():
    """Not by visits: epochs and evaluations repeat them. And a part cut from train has train's policy."""
    shutil.copytree("digits/train", "many-torn")
    torn = [os.path.join("many-torn", c, sorted(os.listdir(f"many-torn/{c}"))[0]) for c in sorted(os.listdir("many-torn"))]
    for path in torn:
        os.truncate(path, os.path.getsize(path) // 2)
    train = ["train", "small.yaml", "--set", "data.train.source.images=many-torn", "--out", "counted", "--set",
             "data.valid.share=50%", "--set", "epochs=4", "--set", "checkpoint.every=1 epoch"]
    done = accepted([*train, "--set", "data.train.on_error=skip"], f"skipped {len(torn)} records")
    check(all(done.stdout.count(path) == 1 for path in torn), f"each is listed once: {done.stdout}")
    with open("counted/result.json") as f:
        check(json.load(f)["skipped_records"] == len(torn), "result.json counts each once")
    shutil.rmtree("counted")
    once = ["train", "small.yaml", "--set", "data.train.source.images=many-torn", "--out", "counted", "--set",
             "data.test=null", "--set", "data.train.on_error=skip", "--epochs", "1"]
    accepted([*once, "--steps", "9"])
    accepted([*once, "--resume"], f"skipped {len(torn)} records", *torn)
    with open("counted/result.json") as f:
        check(json.load(f)["skipped_records"] == len(torn), "those from before a resumption count, too")
    shutil.rmtree("counted")
    refused([*train, "--set", "data.train.on_error=skip", "--set", "data.valid.on_error=fail"], 1, "many-torn", lines=None)


def evaluation_skips():
    """Each readable sample counts once, in the training data as well, and what was skipped is said."""
    shutil.copytree("digits/train", "three-torn")
    torn = [os.path.join("three-torn", c, sorted(os.listdir(f"three-torn/{c}"))[1]) for c in ("2", "5", "7")]
    for path in torn:
        os.truncate(path, os.path.getsize(path) // 2)
    train = ["train", "small.yaml", "--set", "data.train.source.images=three-torn", "--epochs", "1", "--set"]
    accepted([*train, "data.train.on_error=skip", "--out", "skips"], "skipped 3 records")
    for part, policy, n in ((["--part", "train"], [], 197), ([], ["data.test.source.images=three-torn", "data.test.on_error=skip"], 197),
                            (["--part", "train"], ["data.train.on_error=replace"], 200),
                            (["--part", "train"], ["data.train.mixup=0.2"], 200)):
        call = ["eval", "skips", *part, *[word for key in policy for word in ("--set", key)]]
        told = json.loads(accepted([*call, "--json"]).stdout)
        check((told["samples"], told["skipped"]) == (n, 3), f"{call}: {n} samples, and 3 skipped: {told}")
        done = accepted(call)
        check(f" on {n} samples\nskipped 3 records\n" in done.stdout, f"{call} says it at the end: {done.stdout}")
        check(all(done.stderr.count(f"        skipped '{os.path.abspath(path)}'") == 1 for path in torn) and
              done.stderr.count("\n") == 3, f"{call} lists them: {done.stderr}")
    check(json.loads(accepted(["eval", "skips", "--json"]).stdout)["skipped"] == 0, "none of the test's")
    check("skipped" not in accepted(["eval", "skips"]).stdout, "nothing is said of none")
    accepted(["eval", "skips", "--part", "train", "--set", f"data.train.source.images={one_torn()}"], "skipped 1 record\n")
    refused(["eval", "skips", "--part", "train", "--set", "data.train.on_error=fail"], 1, "three-torn",
            "data.train.on_error: skip leaves it out", lines=None)


def one_torn():
    shutil.copytree("digits/train", "one-torn")
    path = os.path.join("one-torn/4", os.listdir("one-torn/4")[0])
    os.truncate(path, os.path.getsize(path) // 2)
    return "one-torn"


def nothing_is_readable():
    """The error says so, whether it is found when sizes are measured or when all has been tried."""
    shutil.copytree("digits/test", "all-torn")
    shutil.copytree("digits/train", "many-all-torn")
    for name in "all-torn", "many-all-torn":
        for folder, _, files in os.walk(name):
            for file in files:
                os.truncate(os.path.join(folder, file), 40)
    known = "stages=[{decode: {channels: 1}}, {resize: 28}, {normalize: mnist}]"
    accepted(["train", "small.yaml", "--epochs", "1", "--out", "whole"])
    test = ["eval", "whole", "--set", "data.test.on_error=skip", "--set", "data.test.source.images=all-torn"]
    none = ("none of the 40 records could be read, the last one '", "all-torn/")
    refused(test, 1, *none, lines=1)
    refused([*test, "--set", f"data.test.{known}"], 1, *none, lines=41)
    for policy in "skip", "replace":
        refused(["train", "small.yaml", "--out", "none", "--set", "data.train.source.images=all-torn", "--set",
                 f"data.train.on_error={policy}"], 1, *none, lines=None)
    refused([*test, "--set", "data.test.source.images=many-all-torn"], 1,
            "none of 100 records that were tried, of 200, could be read, the last one '", lines=1)


def machine():
    train = ["train", "small.yaml"]
    refused([*train, "--device", "rocm", "--out", "no-device"], 1, "no device 'rocm'", "cpu, reference")
    refused([*train, "--device", "cpu:8", "--out", "no-device"], 1, "no device 'cpu:8'", "numbers from 0 to 7")
    refused([*train, "--device", "rocm", "--set", "data.train.source.images=nowhere", "--out", "no-device"], 1, "no device 'rocm'")
    accepted([*train, "--device", "cpu:1", "--set", "epochs=1", "--out", "on-second"], "cpu:1 (")
    check(not os.path.exists("no-device"), "a refused device leaves no run folder")
    refused([*train, "--memory", "10KiB", "--out", "no-memory"], 1, "limit", lines=None)
    refused([*train, "--out", "/proc/nowhere"], 1, "/proc/nowhere")
    refused([*train, "--out", "small.yaml"], 1, "small.yaml")
    refused([*train, "--out", "digits"], 1, "holds 'test' but no run")
    missing = ["--set", "data.train.source.images=nowhere", "--dump-graph"]
    refused([*train, *missing, "fused"], 1, "no pass 'fused' (did you mean 'fuse'?); there are unpack_pixels, place,")
    refused(["plan", "small.yaml", *missing, "nothing"], 1, "no pass 'nothing'; there are unpack_pixels, place,")
    f32 = ["--precision", "f32", "--dump-graph=autocast"]
    refused(["plan", "small.yaml", *f32], 1, "no graph after the pass 'autocast', which is left out: all is computed in f32")
    refused([*train, *f32, "--out", "no-pass"], 1, "stoker: there is no graph after the pass 'autocast'", lines=None)
    check(not os.path.exists("no-pass"), "a refused graph leaves no run folder")
    for verb in (train, ["plan", "small.yaml"]):
        refused([*verb, "--json", "--dump-graph=fuse"], 2, "'--dump-graph' does not go with '--json'")
    accepted(["devices"], "cpu", "memory", "cpu:0, which is cpu, to cpu:7")
    accepted(["devices", "--json"], '"numa_nodes"', '"numbers": 8')
    accepted(["new", "fresh"], "wrote fresh.yaml")
    refused(["new", "fresh"], 1, "there already")
    refused(["new", "nowhere/fresh"], 1, "nowhere/fresh.yaml")
    refused(["get", "digits", "--out", "digits"], 1, "digits")
    accepted(["get", "--list"], "digits")
    refused(["eval", "nowhere"], 1, "no run folder 'nowhere'")
    refused(["eval", "digits"], 1, "holds no run")


def slips():
    """What is nearly right is answered with what would be."""
    train = ["train", "small.yaml", "--out", "slip"]
    refused([*train, "--set", "data.train.source.images=digits/tarin"], 1, "no such data", "did you mean 'digits/train'?")
    refused([*train, "--set", "data.train.source.images=digts/train"], 1, "no such data", "did you mean 'digits/train'?")
    refused(["index", "digts/train"], 1, "no folder 'digts/train' (did you mean 'digits/train'?)")
    refused([*train, "--set", "data.test.stages=[{decode: {channels: 3}}]"], 1, "field 'image' of train is f32[28,28,1]",
            "'decode' has the channels")
    os.makedirs("runs/kept")
    for verb in ("eval", "generate", "report"):
        prompt = ["hello"] if verb == "generate" else []
        refused([verb, "runs/ketp", *prompt], 1, "no run folder 'runs/ketp' (did you mean 'runs/kept'?)")
    refused(["eval", "elsewhere/ketp"], 1, "no run folder 'elsewhere/ketp'", lines=1)
    refused(["plan", "small.yaml", "--memory", "100"], 1, "100 B", "(sizes have units, as in 100MiB)", lines=None)
    with open("table.csv", "w") as f:
        f.write("age,kind\n1,a\n2,b\n")
    table = "data.train.source={csv: {files: table.csv, fields: {image: {dtype: f32, columns: age}, label: class}}}"
    refused([*train, "--set", table], 1, "no column 'label'; there are 'age', 'kind' (a field of another name")
    refused(["tokenize", "small.yaml"], 2, "tokenize needs --out FILE")
    refused(["tokenize", "small.yaml", "--out", "x.bin"], 2, "tokenize needs --tokenizer PATH", "or 'bytes'")
    refused(["tokenizer", "train", "small.yaml", "--vocabulary", "9"], 2, "did you mean '--vocab'?")
    accepted(["tokenize", "small.yaml", "--out", "x.bin", "--tokenizer", "bytes"], "the model's vocabulary: 257")


def words_are_not_offered_for_themselves():
    """A key in the wrong place is told its place; what is far off is not offered."""
    for key, words in [("lr", "no key 'lr'; 'lr' belongs to 'optimizer.sgd'"),
                       ("data.train.batch", "no key 'batch' in 'train'; 'batch' belongs to the recipe's top level"),
                       ("data.train.source.shuffle", "no source 'shuffle'; 'shuffle' belongs to 'data.train'"),
                       ("xyz", "no key 'xyz'; there are: name, data")]:
        done = refused(["train", "small.yaml", "--set", f"{key}=1"], 1, words)
        check("did you mean" not in done.stderr, f"nothing else is offered for {key}: {done.stderr}")
    os.symlink("nowhere", "dangling")
    for args in (["train", "small.yaml", "--set", "data.train.source.images=dangling"], ["eval", "dangling"],
                 ["train", "--help=1"], ["report", "small.yaml"]):
        text = run(*args).stderr
        words = re.findall(r"'([^']*)'[^']*did you mean '([^']*)'", text)
        check(text and all(a != b for a, b in words), f"stoker {' '.join(args)} offers what was typed: {text}")


def best_is_offered_where_it_is():
    accepted(["train", "small.yaml", "--out", "unvalidated", "--quiet"])
    done = refused(["eval", "unvalidated", "--checkpoint", "7"], 1, "there are last, and the steps ")
    check("best" not in done.stderr, f"nothing was validated, so there is no best: {done.stderr}")
    refused(["eval", "unvalidated", "--checkpoint", "best"], 1, "nothing was validated")
    accepted(["train", "small.yaml", "--out", "validated", "--quiet", "--set", "valid=20%"])
    refused(["eval", "validated", "--checkpoint", "7"], 1, "there are best, last, and the steps ")


def small_files(most_bytes):
    """As on a full disk: no file may grow further."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))


def full_disk():
    refused(["train", "small.yaml", "--out", "fuller"], 1, "fuller/recipe.yaml': file too large",
            preexec_fn=small_files(100))
    done = run("train", "small.yaml", "--out", "full", preexec_fn=small_files(4096))
    check(done.returncode == 1 and ".safetensors': file too large" in done.stderr, f"a full disk: {done.stderr!r}")
    lines = done.stderr.splitlines()
    tried = [line.split("step ")[1].split()[0] for line in lines if "was not saved" in line]
    check(tried == ["5", "20"], f"saves that fail are told once, and at the end: {tried}")
    check("(4 saves before it failed, too); there is no checkpoint" in lines[-1], f"they are counted: {lines[-1]}")
    check("  accuracy " in done.stdout and "  test loss " in done.stdout, f"what it came to is told: {done.stdout!r}")
    check(all("warning" in line for line in lines[:-1]) and "warning" not in lines[-1],
          f"a save that fails warns, and fails the run at its end: {lines}")
    names = [name for name in os.listdir("full") if name.startswith("step-") or name == ".saving"]
    check(not names, f"a full disk leaves no part of a checkpoint: {names}")


begin()
usage()
recipes()
names()
data()
skipped_files_are_counted_once()
evaluation_skips()
nothing_is_readable()
machine()
slips()
words_are_not_offered_for_themselves()
best_is_offered_where_it_is()
full_disk()
end()
