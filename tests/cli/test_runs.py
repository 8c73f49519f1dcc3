#!/usr/bin/env python3
"""Run folders: what is in them, resuming, whose they are, interrupts, damaged checkpoints, eval and predict.

usage: test_runs.py STOKER WORK_FOLDER
"""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from program import TIMEOUT, STOKER, accepted, begin, check, end, refused, run

TRAIN = ["train", "small.yaml"]


def metrics(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [json.loads(line) for line in f]


def losses(folder):
    return [(m["step"], m["loss"]) for m in metrics(folder) if m["kind"] == "step"]


def result(folder):
    with open(f"{folder}/result.json") as f:
        return json.load(f)


def whole_run():
    done = accepted([*TRAIN, "--out", "whole"], "data ", "model ", "plan ", "epoch ", "accuracy", "peak memory")
    check("\r" not in done.stdout, "a pipe gets plain lines")
    check([s for s, _ in losses("whole")] == list(range(1, 21)), "a line for each step")
    epochs = [m for m in metrics("whole") if m["kind"] == "epoch"]
    check([(m["epoch"], m["step"]) for m in epochs] == [(1, 10), (2, 20)], "a line for each epoch")
    keys = {"test_accuracy", "test_loss", "epochs", "wall_s", "samples_per_s", "input_wait_share", "peak_planned_bytes",
            "peak_rss_bytes", "first_step_s", "device", "precision"}
    check(keys <= set(result("whole")), f"result.json lacks {keys - set(result('whole'))}")
    check(result("whole")["peak_planned_bytes"] == result("whole")["peak_used_bytes"] > 0, "the plan's peak is used")
    check(result("whole")["epochs"] == 2 and 0 <= result("whole")["test_accuracy"] <= 1, "the result's numbers")
    steps = sorted(name for name in os.listdir("whole") if name.startswith("step-"))
    check(steps == ["step-15", "step-20"], f"the last two checkpoints stay: {steps}")
    accepted([*TRAIN, "--out", "whole", "--resume"], "is finished")
    lines = accepted([*TRAIN, "--out", "json", "--json", "--epochs", "1"]).stdout.splitlines()
    events = [json.loads(line)["event"] for line in lines]
    check(events[:2] == ["data", "plan"] and events[-1] == "end" and "epoch" in events, f"JSON events: {events}")
    check(accepted([*TRAIN, "--out", "quiet", "--quiet", "--steps", "1"]).stdout == "", "--quiet says nothing")
    check("conv2d" in accepted([*TRAIN, "--out", "dump", "--steps", "1", "--dump-graph=all"]).stdout, "--dump-graph")
    done = run(*TRAIN, "--out", "dump", "--steps", "1", "--resume", "--dump-graph=all")
    check("--- after fuse" in done.stdout, "--dump-graph of a run that goes on")
    plan = accepted([*TRAIN, "--out", "places", "--steps", "1", "--dump-graph=plan"]).stdout
    check("alive at once" in plan and "alive from node" in plan and "in variable 'conv2d.weight'" in plan, "the plan, too")


def resuming():
    accepted([*TRAIN, "--out", "parts", "--steps", "7"])
    check(result("parts")["test_accuracy"] is None, "a run that is not finished is not tested")
    accepted([*TRAIN, "--out", "parts", "--steps", "12", "--resume"], "from step 7")
    accepted([*TRAIN, "--out", "parts", "--resume", "--memory", "1GiB"], "from step 12", "(8 steps, 20 in all, 2 epochs;")
    check(losses("parts") == losses("whole"), "a run in parts has the losses of a whole one")
    check(result("parts")["test_loss"] == result("whole")["test_loss"], "and its test loss")
    accepted([*TRAIN, "--out", "again", "--resume", "--steps", "3"])
    refused([*TRAIN, "--out", "parts", "--resume", "--set", "optimizer.adam.lr=0.1", "--batch", "10"], 1,
            "the recipe has changed", "batch (20 -> 10)", "optimizer.adam.lr (0.003 -> 0.1); take that back, or")
    refused([*TRAIN, "--out", "parts", "--batch", "10"], 1, "another recipe", "batch (20 -> 10)", "--out")
    refused([*TRAIN, "--out", "parts", "--set", "name=other"], 1, "belongs to another run, 'small'")
    accepted([*TRAIN, "--out", "parts", "--resume", "--epochs", "3"], "from step 20")
    check(result("parts")["epochs"] == 3, "more epochs go on")
    cosine = [*TRAIN, "--out", "cosine", "--set", "schedule=cosine", "--epochs"]
    check("the schedule was" not in accepted([*cosine, "1"]).stderr, "nothing is said of a new run")
    done = accepted([*cosine, "2", "--resume"])
    check("the schedule was for a run of 1, and is for one of 2 epochs now: the rate, which had come to " in done.stderr
          and "% of its full value, goes on at 50 %" in done.stderr, f"a schedule that begins again says so: {done.stderr}")
    slow = accepted([*TRAIN, "--out", "slow", "--set", "schedule={constant: {warmup: 8}}", "--epochs", "2"]).stderr
    check("'warmup' of 8 epochs is longer than the run of 2: the rate grows to 25 %" in slow, f"so does a warm-up: {slow}")
    os.remove("parts/result.json")
    table = accepted([*TRAIN, "--out", "parts", "--resume", "--epochs", "3"], "test loss", "time").stdout
    check("in the median step" not in table and "first step" not in table, f"only the test was left, so no speed: {table}")
    for steps in (10, 13):  # at the end of the first epoch, and behind it
        accepted([*TRAIN, "--out", "fewer", "--steps", str(steps), "--resume"], "the run is not finished")
        accepted([*TRAIN, "--out", "fewer", "--resume", "--epochs", "1"], "test loss")
        check(result("fewer")["finished"] and result("fewer")["tested_step"] == steps,
              f"{steps} steps of a longer run, taken for one epoch, are tested")
        accepted([*TRAIN, "--out", "fewer", "--resume", "--epochs", "1"], "nothing left to do")
    accepted([*TRAIN, "--out", "again"], "earlier run is kept in 'again.previous' (--resume would have gone on with it)")
    check(os.path.isdir("again.previous/step-3"), "an earlier run is kept")
    accepted([*TRAIN, "--out", "none", "--resume", "--steps", "2"], "nothing to resume in 'none': starts over")
    for wrong in (["--memory", "10KiB"], ["--device", "cuda"], ["--dump-graph=nope"]):
        refused([*TRAIN, "--out", "again", *wrong], 1, lines=None)
        check(os.path.isdir("again/step-20") and os.path.isdir("again.previous/step-3"), f"{wrong} is refused: all stays")
    shutil.rmtree("again")
    accepted([*TRAIN, "--out", "again", "--resume", "--steps", "1"], "an earlier run is in 'again.previous'")


def finished_before():
    accepted([*TRAIN, "--out", "over", "--quiet"])
    accepted([*TRAIN, "--out", "over"], "the earlier run is kept in 'over.previous'; it is finished")
    accepted([*TRAIN, "--out", "over", "--epochs", "3"], "'over.previous-2' (--resume would have gone on with it)")


def trace_of_no_step():
    for more in ([], ["--steps", "4"]):
        done = accepted([*TRAIN, "--out", "short", "--trace", "500", *more])
        says = f"no trace: step 500 was to be traced, and the run has {4 if more else 20} steps"
        check(done.stderr.count(says) == 1, f"--trace of a step that is not there: {done.stderr!r}")
    check("no trace" not in accepted([*TRAIN, "--out", "traced", "--trace", "20"], "trace ").stderr, "the last step is")


def gone():
    for name, away in (("moved", "moved"), ("emptied", "emptied/step-*")):
        args = [STOKER, *TRAIN, "--out", name, "--epochs", "100000", "--set", "checkpoint.every=1000000 steps"]
        first = run(*args[1:], "--steps", "5")
        check(first.returncode == 0, first.stderr)
        child = subprocess.Popen([*args, "--resume", "--set", "checkpoint.end=false"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        while len(losses(name)) < 30 and child.poll() is None:
            time.sleep(0.01)
        for place in glob.glob(away):
            os.rename(place, f"{name}.away")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT)
        check(child.returncode == 1 and " is gone" in err and "was removed or renamed" in err,
              f"{name}: what was saved is gone: {child.returncode} {err!r}")
        check(f"{name}/step-5" not in out, f"{name}: nothing that is gone is named: {out!r}")


def expected_once():
    done = run(*TRAIN, "--out", "expects", "--set", "expect=test_accuracy >= 1.1")
    both = done.stdout + done.stderr
    check(done.returncode == 1 and both.count("test_accuracy >= 1.1") == 1, f"a miss is said once: {both!r}")


def in_use():
    first = subprocess.Popen([STOKER, *TRAIN, "--out", "used", "--epochs", "100000", "--quiet"])
    while not os.path.exists("used/metrics.jsonl") and first.poll() is None:
        time.sleep(0.01)
    refused([*TRAIN, "--out", "used", "--resume"], 1, "in use by another process")
    first.send_signal(signal.SIGTERM)
    check(first.wait(timeout=60) == 128 + signal.SIGTERM, "SIGTERM saves and exits")


def interrupt():
    args = [*TRAIN, "--out", "cut", "--epochs", "100000", "--set", "data.train.shuffle=true"]
    run_ = subprocess.Popen([STOKER, *args], stdout=subprocess.PIPE, text=True)
    # Any checkpoint: each is soon deleted for later ones.
    while not any(os.path.isdir(f) for f in glob.glob("cut/step-*[0-9]")) and run_.poll() is None:
        time.sleep(0.01)
    run_.send_signal(signal.SIGINT)
    text = run_.communicate(timeout=60)[0]
    check(run_.returncode == 130, f"Ctrl-C: exit code {run_.returncode}")
    last = text.strip().splitlines()[-1]
    check(last.startswith("saved   cut/step-") and last.endswith(" ".join(["stoker", *args, "--resume"])),
          f"Ctrl-C says how to go on: {last!r}")
    step = int(last.split(";")[0].split("-")[-1])
    accepted([*args, "--resume", "--steps", str(step + 3)], f"from step {step:,}")


def damage():
    shutil.copytree("whole", "damaged")
    with open("damaged/step-20/model.safetensors", "r+b") as f:
        f.seek(300)
        byte = f.read(1)
        f.seek(300)
        f.write(bytes([byte[0] ^ 4]))
    done = accepted([*TRAIN, "--out", "damaged", "--resume"], "step-20/model.safetensors", "from step 15")
    check("warning" in done.stderr, "a damaged checkpoint is a warning")
    check(losses("damaged") == losses("whole"), "the one before it gives the same losses")
    for step in (15, 20):
        os.truncate(f"damaged/step-{step}/state.json", 50)
    refused([*TRAIN, "--out", "damaged", "--resume"], 1, "no checkpoint is whole", "state.json", lines=None)
    refused(["eval", "damaged"], 1, "no checkpoint in 'damaged' is whole", "step-20/state.json", lines=None)


def validation():
    accepted([*TRAIN, "--out", "valid", "--set", "valid=20%", "--set", "early_stopping=1", "--epochs", "30"],
             "valid loss", "accuracy")
    epochs = [m for m in metrics("valid") if m["kind"] == "epoch"]
    best = min(epochs, key=lambda m: m["valid_loss"])
    check(result("valid")["tested_step"] == best["step"], "the best checkpoint is tested")
    check(json.loads(accepted(["eval", "valid", "--json"]).stdout)["step"] == best["step"], "eval takes the best")
    check(abs(json.loads(accepted(["eval", "valid", "--part", "valid", "--json"]).stdout)["loss"] -
              best["valid_loss"]) < 1e-6, "eval gives the validation loss again")


def stopping():
    """By accuracy, and by more than min_delta: no run gets better by 2, so that the second bad epoch ends it."""
    accepted([*TRAIN, "--out", "delta", "--set", "valid=20%", "--set", "early_stopping={patience: 2, min_delta: 2}",
              "--epochs", "30", "--set", "optimizer.adam.lr=1e-5"], "stopped early")
    check(len([m for m in metrics("delta") if m["kind"] == "epoch"]) == 3, "two epochs without 2 less loss end a run")
    accuracy = ["--set", "valid=20%", "--set", "early_stopping={patience: 3, metric: accuracy}", "--set",
                "checkpoint.best=accuracy", "--epochs", "12"]
    accepted([*TRAIN, "--out", "by-accuracy", *accuracy])
    epochs = [m for m in metrics("by-accuracy") if m["kind"] == "epoch"]
    best = max(epochs, key=lambda m: m["valid_accuracy"])  # the first of equal ones
    check(result("by-accuracy")["tested_step"] == best["step"], "the most accurate checkpoint is tested")
    accepted([*TRAIN, "--out", "in-parts", *accuracy, "--steps", "20"])
    accepted([*TRAIN, "--out", "in-parts", *accuracy, "--resume"])
    check(metrics("in-parts")[-1]["step"] == metrics("by-accuracy")[-1]["step"], "a run in parts stops where the whole one does")
    accepted([*TRAIN, "--out", "no-best", "--set", "valid=20%", "--set", "checkpoint.best=none", "--epochs", "2"])
    check(not os.path.exists("no-best/best"), "none keeps no best")
    refused([*TRAIN, "--out", "mse", "--set", "valid=20%", "--set", "checkpoint.best=precision"], 1, "no 'precision' is measured",
            "loss, accuracy, top5", lines=None)


def by_any_metric():
    """The best checkpoint and stopping by a metric that the recipe asks for, in one go and in parts."""
    by = ["--set", "valid=20%", "--set", "metrics=[f1, {top_k: 2}]", "--set", "checkpoint.best=f1", "--set",
          "early_stopping={patience: 3, metric: top2}", "--epochs", "8"]
    accepted([*TRAIN, "--out", "by-f1", *by])
    epochs = [m for m in metrics("by-f1") if m["kind"] == "epoch"]
    best = max(epochs, key=lambda m: m["valid_f1"])
    check(result("by-f1")["tested_step"] == best["step"], "the checkpoint of the best F1 is tested")
    gains = [max(m["valid_top2"] for m in epochs[:i + 1]) for i in range(len(epochs))]
    check(len(epochs) == 8 or len(set(gains[-4:])) == 1, "stops after three epochs without more top-2")
    accepted([*TRAIN, "--out", "f1-parts", *by, "--steps", "25"])
    accepted([*TRAIN, "--out", "f1-parts", *by, "--resume"])
    check(result("f1-parts")["tested_step"] == best["step"] and losses("f1-parts") == losses("by-f1"),
          "a run in parts chooses the same")
    last, chosen = (json.loads(accepted(["eval", "by-f1", "--json", "--checkpoint", which]).stdout)
                    for which in ("last", "best"))
    check(chosen["step"] == best["step"] and last["step"] == epochs[-1]["step"], "eval takes the one that is asked for")
    check(json.loads(accepted(["eval", "by-f1", "--json", "--checkpoint", str(last["step"])]).stdout) == last,
          "and one by its step")
    check(abs(chosen["f1"] - result("by-f1")["test_f1"]) < 1e-9 and chosen["top5"] >= chosen["top2"] > 0, "all metrics are shown")
    accepted(["export", "by-f1", "--safetensors", "--checkpoint", "last"], f"of step {last['step']}")
    refused(["eval", "by-f1", "--checkpoint", "7"], 1, "no checkpoint '7' in 'by-f1'", str(last["step"]))
    refused(["predict", "no-best", "--checkpoint", "best", "digits/test/3/00003.jpg"], 1, "no best checkpoint")


def expecting():
    """What a recipe expects is checked before the run where it can be, and at its end."""
    accepted([*TRAIN, "--out", "reached", "--set", "expect=test_loss <= 9"], "test_loss <= 9: reached")
    check(result("reached")["expected"][0]["met"] is True, "result.json has it")
    done = run(*TRAIN, "--out", "short", "--set", "expect=[test_accuracy >= 0.1, test_top5>=1.5]")
    check(done.returncode == 1 and "falls short" in done.stderr and "'test_top5>=1.5'" in done.stderr
          and "test_accuracy" not in done.stderr, f"what falls short is named: {done.stderr}")
    check([e["met"] for e in result("short")["expected"]] == [True, False], "and stands in result.json")
    again = run(*TRAIN, "--out", "short", "--resume", "--set", "expect=[test_accuracy >= 0.1, test_top5>=1.5]")
    check(again.returncode == 1 and "falls short" in again.stderr and "nothing left to do" in again.stdout,
          f"a finished run still falls short: {again.stderr}")
    both = subprocess.run(again.args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT).stdout
    check(0 <= both.find("nothing left to do") < both.find("falls short"), f"first what it is, then what it lacks: {both}")
    accepted([*TRAIN, "--out", "short", "--resume", "--set", "expect=test_accuracy >= 0.05"])
    check([(e["what"], e["met"]) for e in result("short")["expected"]] == [("test_accuracy >= 0.05", True)],
          "what is expected later is judged and written")
    check(result("short")["test_accuracy"] >= 0.05, "and the rest stays")
    refused([*TRAIN, "--out", "bad", "--set", "expect=accuracy > 0.9"], 1, "'accuracy > 0.9' is nothing to expect", lines=None)
    refused([*TRAIN, "--out", "bad", "--set", "expect=test_iou >= 0.9"], 1, "no 'iou' is measured", "metrics", lines=None)


def expecting_of_a_part():
    """What a recipe expects is expected of its epochs; of fewer, and of some steps, it says nothing."""
    with open("small.yaml") as f, open("hopeful.yaml", "w") as out:
        out.write(f.read() + "expect: test_accuracy >= 1.1\n")
    hopeful = ["train", "hopeful.yaml", "--out", "hopeful"]
    accepted([*hopeful, "--epochs", "1"], "not judged: the recipe's 2 epochs")
    check(result("hopeful")["finished"] and "expected" not in result("hopeful"), "one epoch of two is not judged")
    accepted([*hopeful, "--epochs", "1", "--resume"], "nothing left to do")
    with open("hopeful/recipe.yaml") as f:
        check("expect:" not in f.read(), "the recipe as run expects nothing of one epoch")
    accepted([*hopeful, "--resume", "--steps", "15"], "the run is not finished")
    refused([*hopeful, "--resume"], 1, "falls short", "'test_accuracy >= 1.1'")
    check(result("hopeful")["expected"][0]["met"] is False, "all of its epochs are judged")
    hopeful[-1] = "asked"
    refused([*hopeful, "--epochs", "1", "--set", "expect=test_accuracy >= 1.2"], 1, "'test_accuracy >= 1.2'")
    hopeful[-1] = "longer"
    refused([*hopeful, "--epochs", "3"], 1, "falls short")
    with open("small.yaml") as f, open("hopeful.yaml", "w") as out:
        out.write(f.read() + "expect: test_iou >= 0.9\n")
    refused([*hopeful, "--epochs", "1"], 1, "no 'iou' is measured", lines=None)


def mean_of_weights():
    """ema: exact in parts, and what is saved under a parameter's name is the mean."""
    ema = ["--set", "ema=0.9", "--set", "valid=20%"]
    accepted([*TRAIN, "--out", "ema", *ema])
    accepted([*TRAIN, "--out", "ema-parts", *ema, "--steps", "6"])
    accepted([*TRAIN, "--out", "ema-parts", *ema, "--resume"])
    check(losses("ema") == losses("ema-parts"), "a run in parts has the losses of a whole one")
    last = sorted(name for name in os.listdir("ema") if name.startswith("step-"))[-1]
    for name in ("model", "optimizer"):
        with open(f"ema/{last}/{name}.safetensors", "rb") as a, open(f"ema-parts/{last}/{name}.safetensors", "rb") as b:
            content = a.read()
            check(content == b.read(), f"{name}.safetensors is the same in parts")
            check((b".raw" in content) == (name == "optimizer"), "the weights that are trained are optimiser state")
    best = min((m for m in metrics("ema") if m["kind"] == "epoch"), key=lambda m: m["valid_loss"])
    tested = json.loads(accepted(["eval", "ema", "--part", "valid", "--json"]).stdout)
    check(abs(tested["loss"] - best["valid_loss"]) < 1e-6, "eval takes the mean, as validation does")


def not_finite():
    """A loss that is not finite says which step and which parameter; skipping ends, too."""
    wild = ["--set", "optimizer={sgd: {lr: 1e38}}", "--epochs", "30"]
    refused([*TRAIN, "--out", "nan", *wild], 1, "the loss is ", "at step ", "no longer finite, nearest the loss 'dense",
            "on_nan: skip")
    refused([*TRAIN, "--out", "nan-skip", *wild, "--set", "on_nan=skip"], 1, "of the last 20 steps", lines=None)


def idx_files():
    """All parts from IDX files, which are opened at once; the first wrong one is named."""
    def write(name, *sides):
        n = 1
        for side in sides:
            n *= side
        with open(name, "wb") as f:
            f.write(bytes([0, 0, 8, len(sides)]) + struct.pack(f">{len(sides)}I", *sides) + bytes(i % 10 for i in range(n)))

    parts = {}
    for part, n in [("train", 40), ("valid", 20), ("test", 30)]:
        write(f"{part}-images", n, 8, 8)
        write(f"{part}-labels", n)
        parts[part] = (f"{{source: {{idx: {{images: {part}-images, labels: {part}-labels}}}}, "
                       "stages: [{scale: 1/255}]}")
    with open("idx.yaml", "w") as f:
        f.write(f"name: idx\ndata: {{train: {parts['train']}, test: {parts['test']}}}\nvalid: {parts['valid']}\n"
                "batch: 10\nmodel: {mlp: {hidden: [8], classes: 10}}\noptimizer: adam\nepochs: 1\n")
    lines = accepted(["train", "idx.yaml", "--json"]).stdout.splitlines()
    data = json.loads(lines[0]) if lines else {}
    check((data.get("train"), data.get("valid"), data.get("test")) == (40, 20, 30), f"sizes of the parts: {data}")
    check(data.get("bytes") == 90 * 64, f"bytes of the parts: {data}")
    data = json.loads(accepted([*TRAIN, "--out", "folders", "--json", "--steps", "1"]).stdout.splitlines()[0])
    check(data["bytes"] == 0, f"the size of image folders is not known: {data}")
    os.truncate("test-images", 500)
    refused(["train", "idx.yaml", "--out", "idx-cut"], 1, "test-images': the file has 484 bytes of data")
    os.remove("valid-labels")
    refused(["train", "idx.yaml", "--out", "idx-cut"], 1, "valid-labels")
    os.truncate("train-images", 500)
    refused(["train", "idx.yaml", "--out", "idx-cut"], 1, "valid-labels")  # Files are looked for before they are read.
    write("valid-labels", 10)
    refused(["train", "idx.yaml", "--out", "idx-cut"], 1, "train-images': the file has 484 bytes of data")


def using():
    tested = json.loads(accepted(["eval", "whole", "--json"]).stdout)
    check(abs(tested["loss"] - result("whole")["test_loss"]) < 1e-6, "eval gives the result again")
    refused(["eval", "whole", "--part", "valid"], 1, "no valid data")
    file = "digits/test/3/" + sorted(os.listdir("digits/test/3"))[0]
    accepted(["predict", "whole", file], file, "%")
    classes = json.loads(accepted(["predict", "whole", file, "--json", "--top", "10"]).stdout)["classes"]
    check(len(classes) == 10 and abs(sum(c["probability"] for c in classes) - 1) < 1e-4, "probabilities add up to 1")
    check(sorted(c["name"] for c in classes) == [str(i) for i in range(10)], "classes have names")
    done = run("predict", "whole", "small.yaml", file)
    check(done.returncode == 1 and "small.yaml" in done.stderr and file in done.stdout, "one bad file of two")


begin()
whole_run()
resuming()
finished_before()
trace_of_no_step()
gone()
expected_once()
in_use()
interrupt()
damage()
validation()
stopping()
by_any_metric()
expecting()
expecting_of_a_part()
mean_of_weights()
not_finite()
idx_files()
using()
end()
