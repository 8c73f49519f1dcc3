#!/usr/bin/env python3
"""Soft labels from a recipe: mixup and cutmix train, resume and are evaluated; labels as shares of classes give the
figures that class numbers give.

usage: test_mixup.py STOKER WORK_FOLDER
"""
import json

from program import RECIPE, accepted, begin, check, end, refused

MIXED = RECIPE.replace("    shuffle: true\n", "    shuffle: true\n    mixup: 0.4\n    cutmix: {alpha: 1}\n", 1)


def write(name, text):
    with open(name, "w") as f:
        f.write(text.replace("name: small", f"name: {name[:-5]}"))


def result(folder):
    with open(f"{folder}/result.json") as f:
        return json.load(f)


def losses(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [(m["step"], m["loss"]) for m in map(json.loads, f) if m["kind"] == "step"]


def shares_are_as_numbers():
    write("numbers.yaml", RECIPE)
    write("shares.yaml", RECIPE.replace("{normalize: mnist}]", "{normalize: mnist}, {one_hot: 10}]"))
    accepted(["train", "numbers.yaml", "--out", "numbers"])
    accepted(["train", "shares.yaml", "--out", "shares"])
    a, b = result("numbers"), result("shares")
    check(a["test_accuracy"] == b["test_accuracy"], f"accuracy {a['test_accuracy']} and {b['test_accuracy']}")
    check(abs(a["test_loss"] - b["test_loss"]) < 1e-4, f"loss {a['test_loss']} and {b['test_loss']}")


def mixed_runs():
    write("mixed.yaml", MIXED)
    accepted(["train", "mixed.yaml", "--out", "mixed"], "accuracy")
    check(losses("mixed") != losses("numbers"), "mixing changes the losses")
    for threads in "1", "3":
        accepted(["train", "mixed.yaml", "--out", f"mixed-{threads}", "--steps", "7", "--set", "threads=1"])
        accepted(["train", "mixed.yaml", "--out", f"mixed-{threads}", "--resume"])
        check(len(losses(f"mixed-{threads}")) == 20, "it resumes")
    check(losses("mixed-1") == losses("mixed-3"), "the same losses again")
    accepted(["eval", "mixed"], "accuracy", "top-5")
    done = accepted(["predict", "mixed", "digits/test/3/00003.jpg", "--json"])
    shares = json.loads(done.stdout.splitlines()[0])
    check("3" in json.dumps(shares), f"a prediction: {shares}")
    prediction()
    accepted(["data", "explain", "mixed.yaml"], "mixup (alpha 0.4) or cutmix (alpha 1) of each whole batch")


def prediction():
    """Classes, labels of which each is right or not, or numbers: as the loss says."""
    picture = "digits/test/3/00003.jpg"
    seen = {}
    for loss in ("cross_entropy", "bce", "mse"):
        accepted(["train", "shares.yaml", "--out", loss, "--set", f"loss={loss}"])
        seen[loss] = json.loads(accepted(["predict", loss, picture, "--json", "--top", "10"]).stdout)
    sums = {loss: sum(c["probability"] for c in seen[loss]["classes"]) for loss in ("cross_entropy", "bce")}
    check(abs(sums["cross_entropy"] - 1) < 1e-5, f"one class: {sums}")
    check(all(0 < c["probability"] < 1 for c in seen["bce"]["classes"]) and abs(sums["bce"] - 1) > 1e-3, f"labels: {sums}")
    check(len(seen["mse"]["numbers"]) == 10 and "classes" not in seen["mse"], f"numbers: {seen['mse']}")
    text = accepted(["predict", "mse", picture]).stdout
    check(text.count("\n") == 11 and "%" not in text, f"all of them, and no shares: {text}")


def refusals():
    refused(["train", "mixed.yaml", "--out", "x", "--set", "data.train.mixup=0"], 1, "above 0")
    write("test.yaml", RECIPE.replace("  test:\n", "  test:\n    mixup: 0.2\n"))
    refused(["train", "test.yaml", "--out", "x"], 1, "no key 'mixup' in 'test'")


begin()
shares_are_as_numbers()
mixed_runs()
refusals()
end()
