#!/usr/bin/env python3
"""stoker train --codegen: the same losses to the last digit, from the compiler and from the cache; without a compiler a
warning and the same losses again.

usage: test_codegen.py STOKER WORK_FOLDER
"""
import json
import os
import shutil
import sys

from program import accepted, begin, check, end, losses, refused

SYNTHETIC = """
name: {name}
data:
  train:
    source: {{synthetic: {{samples: 64, {about}}}}}
batch: 8
precision: f32
model: {model}
optimizer: {{adam: {{lr: 0.001}}}}
epochs: 1
log: {{every: 1 step}}
checkpoint: {{end: false}}
"""
WORDS = "tokens: {shape: [64], below: 100}"
# Large enough that groups of them are worth a compiler's time.
NETWORKS = {
    "bert": ("fields: {%s}, classes: 2" % WORDS,
             "{bert: {layers: 1, width: 64, heads: 2, hidden: 128, vocabulary: 100, classes: 2, length: 64}}"),
    "gpt2": ("fields: {%s, %s}" % (WORDS, WORDS.replace("tokens", "targets")),
             "{gpt2: {layers: 1, width: 64, heads: 2, vocabulary: 100, length: 64}}"),
    "resnet": ("fields: {image: [16, 16, 3]}, classes: 10", "{resnet18: {classes: 10, stem: cifar}}"),
}


def train(name, *options):
    shutil.rmtree("run", ignore_errors=True)
    r = accepted(["train", f"{name}.yaml", "--out", "run", "--steps", "2", *options])
    with open("run/result.json") as f:
        return losses("run"), json.load(f).get("codegen"), r.stdout + r.stderr


def network(name, about, model):
    with open(f"{name}.yaml", "w") as f:
        f.write(SYNTHETIC.format(name=name, about=about, model=model))
    plain, counts, _ = train(name)
    check(counts is None and len(plain) == 2, f"{name}: nothing is generated unasked")
    made, counts, text = train(name, "--codegen")
    check(made == plain, f"{name}: {made} is not {plain}")
    check(counts["compiled"] > 0 and counts["compile_s"] > 0 and "compiled in" in text, f"{name}: {counts}")
    kept, again, text = train(name, "--codegen")
    check(kept == plain, f"{name}, from the cache: {kept} is not {plain}")
    check(again["cached"] == counts["compiled"] and again["compiled"] == 0 and again["compile_s"] == 0
          and again["interpreted"] == counts["interpreted"] and "compiled before" in text, f"{name}: {again}")
    return plain


def without_a_compiler(name, plain):
    os.environ["CC"] = "/nowhere/cc"
    still, counts, text = train(name, "--codegen")
    check(still == plain and counts["compiled"] == counts["cached"] == 0 and counts["interpreted"] > 0, f"{counts}")
    check("cannot run the compiler '/nowhere/cc'" in text and "fused groups are interpreted" in text, text)
    del os.environ["CC"]


def other_devices(name):
    _, counts, text = train(name, "--codegen", "--device", "reference", "--set", "batch=2", "--steps", "1")
    check("'reference' has no code generator" in text and counts["compiled"] == 0, text)


begin()
os.environ["STOKER_CACHE"] = os.path.abspath("cache")
os.environ.pop("CC", None)
if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
    print("SKIP: there is no C compiler")
    sys.exit(77)
first = {name: network(name, *made_of) for name, made_of in NETWORKS.items()}
without_a_compiler("bert", first["bert"])
other_devices("bert")
plan = json.loads(accepted(["plan", "bert.yaml", "--json", "--set", "codegen=true"]).stdout)
check(plan["codegen"] and plan["n_groups"] > 0, "the plan says so")
refused(["train", "bert.yaml", "--set", "codegen=maybe"], 1, "codegen", "'maybe'", "true")
end()
