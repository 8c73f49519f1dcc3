#!/usr/bin/env python3
"""Trainings on the device 'opencl' follow the processor's losses, go on where the other stopped, and say what is wrong.

usage: test_gpu.py STOKER WORK_FOLDER

Where no driver for OpenCL is here, all of this is skipped (Debian: pocl-opencl-icd).
"""
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time

import program
from program import STOKER, WORK, accepted, begin, check, end, losses, refused, run

# name: model, fields, what else, steps, how far a loss may be from the processor's in any of them (relative, or absolute
# below 1). In 20 to 30 steps the cpu and the reference device, and the cpu and PoCL, were at most 5e-7 apart; rounding grows from
# step to step, and how fast two ways to compute on the processor say: at rates where these stay near each other, so must others.
program.TIMEOUT = max(program.TIMEOUT, 400)  # the first run builds all of a network's kernels
IMAGE = "fields: {image: [16, 16, 3]}, classes: 10"
CASES = {
    "cifar-cnn": ("{cnn: {classes: 10, widths: [8, 16, 32]}}", IMAGE, "batch: 16\noptimizer: {sgd: {lr: 0.05, momentum: 0.9, nesterov: true}}", 100, 2e-3),
    "resnet18": ("{resnet18: {classes: 10, stem: cifar}}", IMAGE,
                 "batch: 8\noptimizer: {sgd: {lr: 0.001, momentum: 0.9}}", 100, 2e-3),
    "gpt2": ("{gpt2: {size: mini, layers: 2, heads: 2, width: 64, vocabulary: 101, positions: 32}}",
             "fields: {tokens: {shape: [32], below: 101}, targets: {shape: [32], below: 101}}",
             "batch: 4\noptimizer: {adamw: {lr: 3e-4, weight_decay: 0.1}}\nclip_norm: 1\nno_decay: [bias, norm]", 100, 2e-3),
    "bert": ("{bert: {classes: 2, size: mini, layers: 2, heads: 2, width: 64, vocabulary: 100, positions: 16, pad: 0, dropout: 0.1}}",
             "fields: {text: {shape: [16], below: 100}}, classes: 2",
             "batch: 4\noptimizer: {adamw: {lr: 3e-4}}\nclip_norm: 1", 100, 2e-3),
    "unet": ("{unet: {widths: [8, 16], classes: 4}}",
             "fields: {image: [16, 16, 3], mask: {shape: [16, 16], below: 4}}",
             "batch: 4\noptimizer: {adam: {lr: 0.003}}", 100, 2e-3),
    "lstm": ("{lstm: {classes: 2, vocabulary: 100, width: 16, units: 16, bidirectional: true, dropout: 0.5, pad: 0}}",
             "fields: {text: {shape: [8], below: 100}}, classes: 2",
             "batch: 8\noptimizer: {adam: {lr: 1e-3}}\nclip_norm: 1", 100, 2e-3),
}


def write(name, model, source, other):
    with open(f"{name}.yaml", "w") as f:
        f.write(f"name: {name}\ndata: {{train: {{source: {{synthetic: {{{source}}}}}}}}}\nmodel: {model}\n{other}\n"
                "epochs: 1\nprecision: f32\nlog: {every: 1 step}\ncheckpoint: {end: false}\n")


def follows(name, device="opencl", n_steps=None):
    model, source, other, steps, tolerance = CASES[name]
    steps, tolerance = (n_steps, 1e-5) if n_steps else (steps, tolerance)
    write(name, model, source, other)
    for at in ("cpu", device):
        accepted(["train", f"{name}.yaml", "--device", at, "--steps", str(steps), "--out", f"{name}-{at}"])
    a, b = losses(f"{name}-cpu"), losses(f"{name}-{device}")
    check(len(a) == len(b) == steps, f"{name}: {len(a)} and {len(b)} steps")
    off = [abs(x - y) / max(1, abs(x)) for x, y in zip(a, b)]
    worst = max(range(len(off)), key=off.__getitem__)
    print(f"{name}: {steps} steps, loss {a[0]:.4f} -> {a[-1]:.4f}, at most {off[worst]:.1e} apart, in step {worst + 1}")
    check(all(map(math.isfinite, b)) and off[worst] <= tolerance, f"{name}: {off[worst]:.1e} apart in step {worst + 1}")


def choices(on="opencl"):
    """f16 with its loss scale; metrics, whose sums are f64 on the processor; optimisers that count in f64; micro-batches."""
    model, source, other, _, _ = CASES["cifar-cnn"]
    write("choices", model, source, other)
    rest = ["--set", "metrics=[accuracy, {top_k: {k: 3}}, f1]", "--set", "lookahead={}", "--set", "optimizer={lamb: {lr: 0.01}}"]
    for options, tolerance in ((["--precision", "f16"], 0.01), (["--set", "micro_batch=4"], 1e-5), (rest, 1e-5)):
        for device in ("cpu", on):
            accepted(["train", "choices.yaml", "--device", device, "--steps", "10", "--out", f"choices-{device}", *options])
        a, b = losses("choices-cpu"), losses(f"choices-{on}")
        off = max(abs(x - y) / max(1, abs(x)) for x, y in zip(a, b))
        check(len(a) == len(b) == 10 and off < tolerance, f"{options}: {off:.1e} apart")
        for device in ("cpu", on):
            shutil.rmtree(f"choices-{device}")


def goes_on(on="opencl"):
    """cpu -> that device -> cpu, which stays near a run on the cpu alone, and the device repeats itself bit by bit."""
    accepted(["train", "small.yaml", "--out", "alone", "--steps", "18"])
    for device, steps in (("cpu", 5), (on, 11), ("cpu", 18)):
        accepted(["train", "small.yaml", "--out", "changed", "--device", device, "--steps", str(steps), *(["--resume"] if steps > 5 else [])])
    a, b = losses("alone"), losses("changed")
    check(len(b) == 18 and a[:5] == b[:5], "the steps before the change are the same")
    check(max(abs(x - y) for x, y in zip(a, b)) < 1e-3, f"{a} and {b}")
    for out in ("once", "again"):
        accepted(["train", "small.yaml", "--out", out, "--device", on, "--steps", "8"])
    check(losses("once") == losses("again"), "two runs have the same bits")
    accepted(["train", "small.yaml", "--out", "parts", "--device", on, "--steps", "5"])
    accepted(["train", "small.yaml", "--out", "parts", "--device", on, "--steps", "8", "--resume"])
    check(losses("once") == losses("parts"), "a run that was resumed has the same bits")


def says_what_is_wrong():
    listed = json.loads(accepted(["devices", "--json"]).stdout)["devices"]
    gpu = any(d.get("gpu") for d in listed)
    if not gpu:
        refused(["train", "small.yaml", "--device", "gpu", "--out", "no"], 1, "no device 'gpu': cuda: ", "; opencl: ", "none of them is a GPU")
    refused(["train", "small.yaml", "--device", "opencl:7", "--out", "no"], 1, "opencl:7")
    refused(["train", "small.yaml", "--device", "opencl", "--memory", "64KiB", "--out", "no"], 1, "the limit is 65536 bytes", lines=None)
    check(not os.path.exists("no"), "no run folder is left")
    env = {**os.environ, "STOKER_OPENCL": "/no/such/library.so"}
    done = run("train", "small.yaml", "--device", "opencl", "--out", "no", env=env)
    check(done.returncode == 1 and "cannot load '/no/such/library.so'" in done.stderr and "apt install" in done.stderr,
          f"a missing library: {done.stderr!r}")


def stopped_while_kernels_are_built():
    """One line says that they are built; Ctrl-C then is answered at once, and a second one ends the program."""
    command = [STOKER, "train", "small.yaml", "--device", "opencl", "--out", "stopped"]
    for n_signals in 1, 2:
        env = {**os.environ, "POCL_CACHE_DIR": os.path.abspath(f"pocl-{n_signals}"), "STOKER_CACHE": os.path.abspath("cache")}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        said = ""
        while "kernels for this device are built" not in said:
            line = process.stdout.readline()
            if not line:
                break
            said += line
        check("kernels for this device are built" in said, f"it says that it builds: {said!r}")
        for i in range(n_signals):
            time.sleep(1.1 if i else 0.2)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=program.TIMEOUT)
        check(process.returncode == 130, f"exit code {process.returncode}")
        check(err.startswith("stoker: stopping before the first step"), f"Ctrl-C is answered: {err!r}")
        check("stopped before the first step; nothing was saved" in out + err, f"it says where it stopped: {out!r} {err!r}")
        check(not [name for name in os.listdir("stopped") if name.startswith("step-")], "nothing was saved")
    accepted(["train", "small.yaml", "--device", "opencl", "--out", "stopped", "--steps", "2"])


def reads_a_plan():
    text = accepted(["plan", "small.yaml", "--device", "opencl"]).stdout
    check("peak" in text, f"plan: {text}")


if __name__ == "__main__":
    begin()
    listed = json.loads(run("devices", "--json").stdout)["devices"]
    here = [d for d in listed if d["name"] == "opencl" and d["available"]]
    if not here:
        print("SKIP:", [d["detail"] for d in listed if d["name"] == "opencl"])
        sys.exit(77)
    print("on", here[0]["detail"])
    for name in CASES:
        follows(name)
    choices()
    goes_on()
    says_what_is_wrong()
    stopped_while_kernels_are_built()
    reads_a_plan()
    end()
