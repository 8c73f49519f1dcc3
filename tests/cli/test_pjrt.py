#!/usr/bin/env python3
"""Trainings on the device 'pjrt' go on where the cpu stopped, are shared by replicas, find what was compiled before, and say what is
wrong; with names, networks follow the cpu's losses for 100 steps.

usage: test_pjrt.py STOKER WORK_FOLDER [NAME...]    NAME: one of test_gpu.py's networks, wide-and-deep, choices, or all

The plug-in is the one of STOKER_PJRT_PATH; without it all of this is skipped.
"""
import json
import os
import re
import shutil
import sys

import program
import test_gpu
from program import accepted, begin, check, end, losses, refused, run

CASES = {
    **test_gpu.CASES,
    "wide-and-deep": ("{wide_and_deep: {categories: {user: 200, item: 100}, numbers: x, width: 8, hidden: [32], outputs: 2}}",
                      "fields: {user: {shape: [], below: 200}, item: {shape: [], below: 100}, x: [4]}, classes: 2",
                      "batch: 64\noptimizer: {adam: {lr: 0.01}}", 100, 2e-3),
}


def says_what_is_wrong():
    here = os.environ["STOKER_PJRT_PATH"]
    refused(["train", "small.yaml", "--device", "pjrt:/no/such/plugin.so", "--out", "no"], 1, "cannot load the PJRT plug-in: /no/such/plugin.so")
    refused(["train", "small.yaml", "--device", "pjrt:small.yaml/x", "--out", "no"], 1, "small.yaml/x")
    refused(["train", "small.yaml", "--device", f"pjrt:{here}", "--replicas", "5", "--out", "no"], 1, "replicas want a device each, and", lines=None)
    with open("no-plugin.so", "w") as f:
        f.write("this is no library\n")
    refused(["train", "small.yaml", "--device", "pjrt:./no-plugin.so", "--out", "no"], 1, "./no-plugin.so")
    accepted(["train", "small.yaml", "--device", f"pjrt:{here}", "--out", "by-path", "--steps", "2"])
    env = {name: value for name, value in os.environ.items() if name != "STOKER_PJRT_PATH"}
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "no", env=env)
    check(done.returncode == 1 and "set STOKER_PJRT_PATH" in done.stderr, f"no plug-in is named: {done.stderr!r}")
    package = "environment/lib/python3.11/site-packages/some_pjrt_cpu"
    os.makedirs(package)
    os.symlink(here, f"{package}/pjrt_plugin.so")
    env["VIRTUAL_ENV"] = os.path.abspath("environment")
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "no", env=env)
    check(done.returncode == 1 and "say 'pjrt:some_pjrt_cpu', which" in done.stderr, f"what the environment has: {done.stderr!r}")
    done = run("train", "small.yaml", "--device", "pjrt:some-pjrt-cpu", "--out", "by-name", "--steps", "2", env=env)
    check(done.returncode == 0, f"the name by which pip knows it: {done.stderr!r}")


def leaves_its_modules():
    os.makedirs("modules")
    env = {**os.environ, "STOKER_PJRT_DUMP": os.path.abspath("modules")}
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "dumped", "--steps", "2", env=env)
    texts = [open(os.path.join("modules", name)).read() for name in sorted(os.listdir("modules"))]
    check(done.returncode == 0 and texts, f"modules are written: {done.stderr!r}")
    check(any("tf.aliasing_output" in text for text in texts), "parameters are donated")
    check(all(text.startswith("module @stoker ") for text in texts), "each is a module")


def exports_the_step():
    """The module of a chip that is not here, whose arguments are the run's parameters by name."""
    accepted(["export", "small.yaml", "--stablehlo", "--out", "step.mlir", "--set", "precision=f32"])
    text = open("step.mlir").read()
    names = set(re.findall(r'stoker.name = "([^"]*)"', text))
    check(text.startswith("module @stoker ") and {"conv2d.weight", "image", "label", "loss", "lr"} <= names, f"names: {names}")
    accepted(["export", "by-path", "--stablehlo"])
    check(os.path.exists("by-path/step.mlir"), "a run's step lies in its folder")
    refused(["export", "small.yaml", "--stablehlo"], 1, "needs a name")
    refused(["export", "nowhere.yaml", "--stablehlo"], 1, "cannot open 'nowhere.yaml'")
    refused(["export", "small.yaml", "--stablehlo", "--out", "small.yaml"], 1, "small.yaml")
    refused(["train", "small.yaml", "--device", "tpu:v5e:2x2", "--out", "no"], 1, "'tpu:v5e:2x2' is not here")
    refused(["plan", "small.yaml", "--device", "tpu:v9:2x2"], 1, "kinds: v4, v5e, v5p, v6e")
    env = {**os.environ, "TPU_LIBRARY_PATH": os.path.abspath("no-plugin.so")}
    done = run("plan", "small.yaml", "--device", "tpu:v5e:4x4", "--replicas", "16", "--batch", "64", "--memory", "150MiB", env=env)
    check("no-plugin.so" in done.stderr, f"each chip has its own memory, which fits, and the compiler is what is missing: {done.stderr!r}")


def what_does_not_fit_is_refused():
    with open("large.yaml", "w") as f:
        f.write("data: {train: {source: {synthetic: {fields: {image: [32, 32, 3]}, classes: 10}}}}\nbatch: 128\noptimizer: adam\nepochs: 1\n"
                "model: {layers: [{conv2d: {filters: 64, kernel: 3}}, relu, {conv2d: {filters: 64, kernel: 3}}, relu, flatten, {dense: 10}]}\n")
    for _ in range(2):  # compiled, and found compiled
        refused(["train", "large.yaml", "--device", "pjrt", "--memory", "150MiB", "--steps", "1", "--out", "no"], 1,
                "MiB as XLA compiled it", lines=None)
    compiled = json.loads(accepted(["plan", "large.yaml", "--device", "pjrt", "--json"]).stdout)["compiled"]
    weights = 4 * (64 * 9 * (3 + 64) + 2 * 64 + 65536 * 10 + 10)
    taken = compiled["argument_bytes"] - 3 * weights - compiled["fed_bytes"]
    check(compiled["n_chips"] == 1 and 0 <= taken < 1000 and compiled["scratch_bytes"] > 128 * 32 * 32 * 64 * 4, f"the plan has XLA's account: {compiled}")
    refused(["plan", "large.yaml", "--device", "pjrt", "--memory", "150MiB"], 1, "MiB as XLA compiled it")
    refused(["train", "large.yaml", "--set", "strict=2", "--threads", "1", "--device", "pjrt", "--out", "no"], 1, "'strict' is for the processor")


def micro_batches_are_a_loop():
    """Their part of the step is in the module once, however many there are; steps that are traced op by op have the same sums."""
    texts = {}
    for n in (1, 2, 16):
        accepted(["export", "small.yaml", "--stablehlo", "--out", f"step-{n}.mlir", "--set", "batch=32", "--set", f"accumulate={n}"])
        texts[n] = open(f"step-{n}.mlir").read()
    loops = {n: text.count("stablehlo.while") for n, text in texts.items()}
    sizes = {n: len(text) for n, text in texts.items()}
    check(loops == {1: 0, 2: 1, 16: 1}, f"loops: {loops}")
    check(abs(sizes[16] - sizes[2]) < 0.02 * sizes[2] and sizes[2] < 1.5 * sizes[1], f"sizes of modules: {sizes}")
    print("modules in 1, 2 and 16 parts have", sizes, "bytes")
    train = ["train", "small.yaml", "--device", "pjrt", "--steps", "6", "--set", "accumulate=3"]
    accepted([*train, "--out", "in-parts"])
    accepted([*train, "--out", "traced", "--trace", "3-4"])
    off = max(abs(x - y) for x, y in zip(losses("in-parts"), losses("traced")))
    check(len(losses("traced")) == 6 and off < 2e-3, f"with two steps traced: {off} apart")


def count_loops(folder):
    texts = [open(os.path.join(folder, name)).read() for name in os.listdir(folder)]
    return sum(text.count("stablehlo.while") for text in texts)


def replicas_are_as_one():
    """Four devices of the processor's, with the same global batch; sums are in the module as often as planned. So in micro-batches, also
    where batch norms sum up over replicas in each."""
    options = ["--steps", "12", "--set", "model={mlp: {hidden: [64]}}", "--set", "precision=f32"]
    env = {**os.environ, "XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"}
    seen = {}
    four = ["--replicas", "4"]
    for name, more in {"one": [], "four": four, "shared": [*four, "--set", "shard=optimizer"], "four-in-parts": [*four, "--set", "accumulate=3"]}.items():
        os.makedirs(f"modules-{name}")
        dump = {**env, "STOKER_PJRT_DUMP": os.path.abspath(f"modules-{name}")}
        done = run("train", "small.yaml", "--device", "pjrt", "--out", name, *options, *more, env=dump)
        check(done.returncode == 0, f"{name}: {done.stderr!r}")
        seen[name] = losses(name)
    off = {name: max(abs(x - y) for x, y in zip(seen["one"], seen[name])) for name in seen if name != "one"}
    check(all(len(x) == 12 for x in seen.values()) and max(off.values()) < 2e-5, f"replicas are apart: {off}")
    print("replicas and one device are at most", off, "apart")
    check(count_loops("modules-four-in-parts") > 0 and count_loops("modules-four") == 0, "micro-batches are a loop, and one batch is none")
    synced = ["--replicas", "2", "--steps", "6", "--set", "accumulate=2", "--set", "sync_batch_norm=true", "--set", "precision=f32", "--set", "optimizer={sgd: {lr: 0.05}}"]
    os.makedirs("modules-synced")
    for device in ("cpu", "pjrt"):
        dump = {**env, "STOKER_PJRT_DUMP": os.path.abspath("modules-synced")}
        done = run("train", "small.yaml", "--device", device, "--out", f"synced-{device}", *synced, env=dump)
        check(done.returncode == 0, f"sums in micro-batches, on {device}: {done.stderr!r}")
    off = max(abs(x - y) for x, y in zip(losses("synced-cpu"), losses("synced-pjrt")))
    check(len(losses("synced-pjrt")) == 6 and off < 2e-3, f"batch norm over replicas, in micro-batches: {off} apart")
    check(count_loops("modules-synced") == 0, "on a processor no convolution is in a loop")
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "traced-four", "--replicas", "4", "--trace", "3-4", *options, env=env)
    check(done.returncode == 0 and os.path.exists("traced-four/trace.json") and losses("traced-four") == losses("four"), f"a trace of replicas: {done.stderr!r}")
    plan = json.loads(accepted(["plan", "small.yaml", "--device", "pjrt", "--replicas", "4", "--json", *options[2:]], env=env).stdout)
    texts = [open(os.path.join("modules-four", name)).read() for name in os.listdir("modules-four")]
    counts = [text.count("stablehlo.all_reduce") for text in texts]
    check(max(counts) == plan["n_sums"] and plan["n_sums"] > 0, f"sums in modules: {counts}, planned: {plan['n_sums']}")


def keeps_what_was_compiled():
    """The second run loads the step; one that was damaged is compiled again, with a word."""
    env = {**os.environ, "STOKER_CACHE": os.path.abspath("cache"), "XLA_FLAGS": ""}
    train = ["train", "small.yaml", "--device", "pjrt", "--steps", "4", "--quiet"]
    check(run(*train, "--out", "first", env=env).returncode == 0, "the first run")
    files = sorted(os.listdir("cache/pjrt"))
    times = [os.stat(os.path.join("cache/pjrt", name)).st_mtime_ns for name in files]
    check(len(files) > 0, "something is kept")
    done = run(*train, "--out", "second", env=env)
    check(done.returncode == 0 and done.stderr == "" and losses("first") == losses("second"), f"the second run: {done.stderr!r}")
    again = [os.stat(os.path.join("cache/pjrt", name)).st_mtime_ns for name in files]
    check(sorted(os.listdir("cache/pjrt")) == files and times == again, "nothing was compiled again")
    for name in files:
        with open(os.path.join("cache/pjrt", name), "r+b") as f:
            f.seek(-9, os.SEEK_END)
            f.write(b"damage!")
    done = run(*train, "--out", "third", env=env)
    check(done.returncode == 0 and "damaged: it was compiled again" in done.stderr and losses("third") == losses("first"),
          f"the third run: {done.stderr!r}")
    done = run(*train, "--out", "fourth", env=env)
    check(done.returncode == 0 and done.stderr == "", f"the fourth run: {done.stderr!r}")
    open("no-folder", "w").close()
    done = run(*train, "--out", "fifth", env={**env, "STOKER_CACHE": os.path.abspath("no-folder")})
    check(done.returncode == 0 and "could not be kept" in done.stderr, f"the fifth run: {done.stderr!r}")


if __name__ == "__main__":
    begin()
    if not os.environ.get("STOKER_PJRT_PATH"):
        print("SKIP: no PJRT plug-in: STOKER_PJRT_PATH is not set")
        sys.exit(77)
    listed = json.loads(run("devices", "--json").stdout)["devices"]
    print("on", next(d["detail"] for d in listed if d["name"] == "pjrt"))
    names = sys.argv[3:]
    program.TIMEOUT = max(program.TIMEOUT, 300)
    test_gpu.CASES = CASES
    for name in [*CASES, "choices"] if names == ["all"] else names:
        if name == "choices":
            test_gpu.choices("pjrt")
        else:
            test_gpu.follows(name, "pjrt")
    if not names:
        test_gpu.follows("wide-and-deep", "pjrt")
        test_gpu.follows("lstm", "pjrt")
        test_gpu.follows("cifar-cnn", "pjrt")
        test_gpu.goes_on("pjrt")
        leaves_its_modules()
        says_what_is_wrong()
        exports_the_step()
        what_does_not_fit_is_refused()
        micro_batches_are_a_loop()
        replicas_are_as_one()
        keeps_what_was_compiled()
        shutil.rmtree("cache", ignore_errors=True)
    end()
