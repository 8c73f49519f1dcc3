#!/usr/bin/env python3
"""stoker train --trace: the file's slices nest and do not overlap, name every kernel with its FLOPs, and add up to what
the step does; losses are those of a run without a trace; Holistic Trace Analysis, where there is one, reads the same.

usage: test_trace.py STOKER WORK_FOLDER
STOKER_TENSORBOARD: a Python that has HolisticTraceAnalysis; default: python3
"""
import json
import os
import subprocess
import sys
from collections import Counter

from program import accepted, begin, check, end, losses, refused

PYTHON = os.environ.get("STOKER_TENSORBOARD", "python3")
ANALYSE = """
import json, sys
from hta.trace_analysis import TraceAnalysis
a = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
idle = a.get_temporal_breakdown(visualize=False).iloc[0]
_, kernels = a.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
launches = a.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
print(json.dumps({"launches": len(launches), "compute": float(idle["compute_time(us)"]), "all": float(idle["kernel_time(us)"]),
                  "kernels": {r["name"]: float(r["sum (us)"]) for _, r in kernels.iterrows()}}))
"""


def tracks(events):
    out = {}
    for e in events:
        if e["ph"] == "X":
            out.setdefault((e["pid"], e["tid"]), []).append(e)
    return out


def check_nesting(events):
    """On one track a slice is within another or behind it; else viewers do not show it."""
    for track, slices in tracks(events).items():
        slices.sort(key=lambda e: (e["ts"], -e["dur"]))
        open_ends = []
        for e in slices:
            while open_ends and open_ends[-1] <= e["ts"] + 0.002:
                open_ends.pop()
            done = e["ts"] + e["dur"]
            if open_ends and done > open_ends[-1] + 0.002:
                check(False, f"slice {e['name']} at {e['ts']} overlaps on track {track}")
                return
            open_ends.append(done)


def look(folder, first, last):
    with open(f"{folder}/trace.json") as f:
        trace = json.load(f)
    check(trace["schemaVersion"] == 1 and trace["lostEvents"] == 0 and trace["baseTimeNanoseconds"] > 1e18, "the header")
    events = trace["traceEvents"]
    check_nesting(events)
    of = {}
    for e in events:
        of.setdefault(e.get("cat"), []).append(e)
    steps = [int(e["name"].split("#")[1]) for e in of["user_annotation"]]
    check(steps == list(range(first, last + 1)), f"the steps are there: {steps}")
    n = last - first + 1
    kernels = of["kernel"]
    names = Counter(e["name"] for e in kernels)
    check(len(kernels) % n == 0 and names["conv2d"] == 2 * n and names["adam_update"] >= n, f"every kernel: {names}")
    launches = {e["args"]["correlation"] for e in of["cuda_runtime"]}
    check(launches == {e["args"]["correlation"] for e in kernels} and len(launches) == len(kernels), "launches match")
    check(all(e["args"]["stream"] == 7 and e["args"]["FLOPs"] >= 0 and e["args"]["bytes"] >= 0 for e in kernels),
          "kernels have their arithmetic")
    conv = [e["args"] for e in kernels if e["name"] == "conv2d"][0]
    check(conv["FLOPs"] == 2 * 20 * 28 * 28 * 4 * 9 and conv["layer"] == "conv2d" and conv["shape"] in ("f32[20,28,28,4]", "bf16[20,28,28,4]"),
          f"what a convolution is: {conv}")
    flops = sum(e["args"]["FLOPs"] for e in kernels) / n
    plan = json.loads(accepted(["plan", "small.yaml", "--json"]).stdout)
    want = plan["plan"]["flops"] if "plan" in plan else plan["flops"]
    check(abs(flops - want) < 1e-6 * want, f"a step's FLOPs are {flops}, planned {want}")
    data = Counter(e["name"] for e in of["data"])
    check({"read", "decode", "rows"} <= set(data), f"data workers by stage: {data}")
    counters = {e["name"] for e in events if e["ph"] == "C"}
    check({"batches ready", "arena"} <= counters, f"counters: {counters}")
    arena = [e["args"]["bytes alive"] for e in events if e["ph"] == "C" and e["name"] == "arena"]
    check(0 < max(arena) <= json.load(open(f"{folder}/result.json"))["peak_planned_bytes"], "the arena stays within its plan")
    check("checkpoint" in of, "a checkpoint is in it")
    in_steps = [(e["dur"], sum(k["dur"] for k in kernels if e["ts"] <= k["ts"] < e["ts"] + e["dur"]))
                for e in of["cpu_op"] if e["name"] == "training step"]
    check(all(in_kernels <= in_step for in_step, in_kernels in in_steps), f"kernels take {in_steps} us of steps")
    # The middle one: the system may put a thread aside for longer than all of them take.
    shares = sorted(in_kernels / in_step for in_step, in_kernels in in_steps)
    check(shares[len(shares) // 2] > 0.3, f"shares of steps that kernels take: {shares}")
    return kernels


def analyse(folder, kernels):
    done = subprocess.run([PYTHON, "-c", ANALYSE, f"{folder}/trace.json"], capture_output=True, text=True)
    check(done.returncode == 0, f"Holistic Trace Analysis reads it: {done.stderr[-600:]}")
    if done.returncode:
        return
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    check(seen["launches"] >= 0.8 * len(kernels), f"its statistics of launches: {seen['launches']} of {len(kernels)}")
    check(abs(seen["compute"] / seen["all"] - 1) < 0.05 or seen["compute"] > 0, f"compute: {seen}")
    # It leaves out the last step, which it cannot know to be whole, and rounds each slice to microseconds.
    n_a_step = len(kernels) // 11
    ours = Counter()
    for e in sorted(kernels, key=lambda e: e["ts"])[:-n_a_step]:
        ours[e["name"]] += e["dur"]
    for name in ("conv2d", "conv2d_grad_weight", "batch_norm"):
        check(abs(seen["kernels"][name] - ours[name]) < 0.02 * ours[name] + 20,
              f"{name}: {seen['kernels'][name]} us, {ours[name]} in the file")


LAYERS = """
model:
  layers:
    - {conv2d: {filters: 8, bias: false}}
    - batch_norm
    - relu
    - {residual: [{conv2d: {filters: 8, bias: false}}, batch_norm, relu, {conv2d: {filters: 8, bias: false}}, batch_norm]}
    - relu
    - {conv2d: {filters: 16}}
    - relu
    - {max_pool: 2}
    - global_pool
    - {dense: 10}
"""


def kernels_stand_under_their_layer():
    """Forward and backward, in 32 and 16 bits, fused or not, with micro-batches and clipping: a convolution's kernels
    are the convolution's, each of its three as often as there are convolutions."""
    with open("small.yaml") as f:
        lines = [line for line in f if not line.startswith("model:")]
    with open("layers.yaml", "w") as f:
        f.write("".join(lines) + LAYERS + "clip_norm: 1\n")
    families = {"conv2d": "conv2d", "batch_norm": "batch_norm", "matmul": "dense", "max_pool2d": "conv2d"}
    for i, options in enumerate(([], ["--set", "accumulate=2"], ["--set", "optimizer={sgd: {lr: 0.1}}"])):
        for precision in "f32", "bf16":
            folder = f"layers-{i}-{precision}"
            accepted(["train", "layers.yaml", "--precision", precision, "--trace", "2", "--steps", "3", "--out", folder,
                      "--quiet", *options])
            with open(f"{folder}/trace.json") as f:
                kernels = [(e["name"], e["args"]["layer"]) for e in json.load(f)["traceEvents"] if e.get("cat") == "kernel"]
            for name, layer in kernels:
                base = max((f for f in families if name.startswith(f)), key=len, default=None)
                ok = not base or name.startswith("max_pool") or layer.split(".")[-1].startswith(families[base])
                check(ok, f"'{name}' stands under '{layer}' ({folder})")
                check(not layer.endswith((".weight", ".bias")), f"'{layer}' of '{name}' is a layer ({folder})")
            for name in "conv2d", "conv2d_grad_weight":
                layers = sorted({layer for other, layer in kernels if other == name})
                check(len(layers) == 4, f"each of four convolutions has its '{name}': {layers} ({folder})")


begin()
kernels_stand_under_their_layer()
# Workers read ahead: the run is long enough for them to have something to do in the steps that are traced.
accepted(["train", "small.yaml", "--out", "plain", "--epochs", "8"])
accepted(["train", "small.yaml", "--out", "traced", "--epochs", "8", "--trace", "4-14"], "trace   traced/trace.json")
check(losses("plain") == losses("traced"), "a trace changes no loss")
kernels = look("traced", 4, 14)
accepted(["train", "small.yaml", "--out", "one", "--epochs", "1", "--trace=10"])
check(sum(e.get("cat") == "user_annotation" for e in json.load(open("one/trace.json"))["traceEvents"]) == 1, "one step")
def check_replicas():
    """The trace is the first replica's: each of its steps has its kernels once, and the path of the report adds up."""
    accepted(["train", "small.yaml", "--out", "replicas", "--steps", "8", "--replicas", "2", "--trace", "3-8"], "trace   replicas/trace.json")
    with open("replicas/trace.json") as f:
        events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    kernels = Counter(e["name"] for e in events if e["cat"] == "kernel")
    check(kernels["conv2d"] == 2 * 6 and kernels["rank_await"] + kernels["rank_sum"] >= 6, f"kernels of one replica: {kernels}")
    accepted(["report", "replicas"])
    with open("replicas/report.html", encoding="utf-8") as f:
        text = f.read().split("<h2>Critical path of a step</h2>")[1].split("</section>")[0]
    check("the median of 6 traced" in text, f"the path: {text[:300]}")


check_replicas()
accepted(["train", "small.yaml", "--out", "short", "--steps", "5", "--trace", "4-50"])
check(os.path.exists("short/trace.json"), "a run that ends early writes what there is")
for bad in ("0-3", "7-3", "x", "3-", "1-5000"):
    refused(["train", "small.yaml", "--trace", bad], 2, "'--trace' must be steps like 10-20")
have = subprocess.run([PYTHON, "-c", "import hta"], capture_output=True).returncode == 0
if have:
    analyse("traced", kernels)
end()
if not have:
    print("SKIP: no Holistic Trace Analysis: set STOKER_TENSORBOARD to a Python that has it")
    sys.exit(77)
