#!/usr/bin/env python3
"""Generated data sets, and the shortest of the recipes that learn from them to a stated figure.

usage: test_synthetic.py STOKER WORK_FOLDER
"""
import hashlib
import json
import os
import pathlib
import shutil

from program import STOKER, WORK, accepted, check, end, refused, run

RECIPES = pathlib.Path(__file__).resolve().parent.parent.parent / "recipes"
SETS = {"shapes": 801, "solids": 5, "clicks": 3, "notes": 3, "prices": 3}  # files


def digest(folder):
    total = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and path.name != "README.txt":
            total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


def sets():
    listed = accepted(["get", "--list"]).stdout
    for name in SETS:
        check(f"\n{name}: " in listed, f"'{name}' is listed")
        for folder, options in (("a", []), ("b", []), ("other", ["--seed", "7"])):
            accepted(["get", name, "--out", f"{folder}/{name}", "--train", "40", "--test", "10", *options], name)
        check(digest(f"a/{name}") == digest(f"b/{name}"), f"'{name}' is the same again")
        check(digest(f"a/{name}") != digest(f"other/{name}"), f"'{name}' is another with another seed")
        check("40 samples to learn from, 10 to test" in open(f"a/{name}/README.txt").read(), "the note says how many")
    refused(["get", "clicks", "--out", "a/clicks"], 1, "'a/clicks' already exists")
    refused(["get", "clicks", "--out", "c", "--train", "0"], 2, "--train")
    refused(["get", "clicks", "--size", "3"], 2, "'clicks' takes --out, --train, --test and --seed only", lines=None)
    refused(["get", "click"], 2, "did you mean 'clicks'", lines=None)
    check(not os.path.exists("c") and not [name for name in os.listdir(".") if name.startswith(".stoker-tmp-")], "nothing is left behind")


def learns(recipe, name, *options):
    """The whole recipe, whose `expect` must hold: else the exit code is 1."""
    accepted(["get", name])
    accepted(["train", str(RECIPES / f"{recipe}.yaml"), "--out", recipe, *options], "reached")
    return json.load(open(f"{recipe}/result.json"))


def recipes():
    prices = learns("prices-regression", "prices")
    check(prices["test_accuracy"] is None and 0 < prices["test_mae"] < prices["test_rmse"], "a regression has errors only")
    shown = json.loads(accepted(["eval", "prices-regression", "--json"]).stdout)
    check(abs(shown["r2"] - prices["test_r2"]) < 1e-9, "eval shows the same")
    clicks = learns("clicks-wide-and-deep", "clicks")
    check(clicks["test_loss"] > 0.4260 - 0.005, "not better than the chances that the clicks are drawn from")
    notes = learns("notes-labels", "notes")
    check(notes["test_f1"] > 0.8 and notes["test_auc"] > 0.9, "several labels a row have their metrics")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
os.chdir(WORK)
os.environ.pop("STOKER_DATA", None)
sets()
recipes()
end()
