#!/usr/bin/env python3
"""A run's event files: what the real TensorBoard reads of them, over HTTP and with its EventAccumulator, is what
metrics.jsonl says; also after a kill and a resume. Without TensorBoard only the files are looked at.

usage: test_tensorboard.py STOKER WORK_FOLDER [FAULTS_LIBRARY]
STOKER_TENSORBOARD: a Python that has the package tensorboard; default: python3
"""
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from program import STOKER, accepted, begin, can_kill, check, end, killed, refused

TRAIN = ["train", "small.yaml"]
PYTHON = os.environ.get("STOKER_TENSORBOARD", "python3")

# Prints all that the accumulator has of a folder as JSON.
ACCUMULATE = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
a = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0, "scalars": 0, "images": 0})
a.Reload()
tags = a.Tags()
out = {"tensors": {}, "graph": []}
for tag in tags["tensors"]:
    plugin = a.SummaryMetadata(tag).plugin_data.plugin_name
    values = [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in a.Tensors(tag)]
    if plugin == "images":
        values = [(s, [v[0].decode(), v[1].decode()] + [x[:8].hex() for x in v[2:]]) for s, v in values]
    elif plugin == "text":
        values = [(s, v.item().decode()) for s, v in values]
    else:
        values = [(s, v.tolist()) for s, v in values]
    out["tensors"][tag] = {"plugin": plugin, "values": values}
if tags["graph"]:
    out["graph"] = [[n.name, n.op, list(n.input)] for n in a.Graph().node]
print(json.dumps(out))
"""


def metrics(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [json.loads(line) for line in f]


def accumulate(folder):
    done = subprocess.run([PYTHON, "-c", ACCUMULATE, f"{folder}/events"], capture_output=True, text=True)
    check(done.returncode == 0, f"EventAccumulator reads {folder}: {done.stderr[-500:]}")
    return json.loads(done.stdout) if done.returncode == 0 else {"tensors": {}, "graph": []}


def is_near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def compare(folder, seen):
    """Each scalar is the number of metrics.jsonl, once for each step."""
    pairs = {"train/loss": ("step", "loss"), "train/accuracy": ("step", "accuracy"),
             "optimizer/learning_rate": ("step", "lr"), "speed/samples_per_s": ("step", "samples_per_s"),
             "epoch/loss": ("epoch", "train_loss")}
    if folder == "whole":
        pairs["optimizer/grad_norm"] = ("step", "grad_norm")
    else:
        check("optimizer/grad_norm" not in seen["tensors"], "no norm that nobody asked for")
    for tag, (kind, key) in pairs.items():
        want = [(m["step"], m[key]) for m in metrics(folder) if m["kind"] == kind]
        got = seen["tensors"].get(tag, {"plugin": None, "values": []})
        check(got["plugin"] == "scalars", f"{folder}: {tag} is for the scalars: {got['plugin']}")
        values = got["values"]
        near = len(values) == len(want) and all(
            s == t and (is_near(x, y) or key in ("samples_per_s", "accuracy") and abs(x - y) < 1e-4 * y)
            for (s, x), (t, y) in zip(values, want))
        check(near, f"{folder}: {tag} is {values[:30]}, not {want[:30]}")
    for tag in ("speed/input_wait_share", "speed/device_busy_share"):
        check(all(0 <= x <= 1 for _, x in seen["tensors"][tag]["values"]), f"{folder}: {tag} is a share")
    check(all(x > 1e6 for _, x in seen["tensors"]["memory/resident_bytes"]["values"]), "memory is counted")


def look_at_files():
    """What holds without TensorBoard: names, switches, and that records are whole (their CRCs: test_event_file)."""
    accepted([*TRAIN, "--out", "whole", "--set", "tensorboard={histograms: epoch, gradients: epoch}", "--set",
              "log.grad_norm=true"])
    files = os.listdir("whole/events")
    check(len(files) == 1 and files[0].startswith("events.out.tfevents."), f"one event file: {files}")
    with open(f"whole/events/{files[0]}", "rb") as f:
        data = f.read()
    check(b"brain.Event:2" in data and b"train/loss" in data and b"name: small" in data, "the events are there")
    accepted([*TRAIN, "--out", "off", "--steps", "3", "--set", "tensorboard=false"])
    check(not os.path.exists("off/events"), "tensorboard: false writes nothing")
    accepted([*TRAIN, "--out", "parts", "--steps", "7"])
    if can_kill():
        # In the middle of a step's line, behind the first checkpoint of this part.
        code = killed(12, "parts/metrics.jsonl", *TRAIN, "--out", "parts", "--resume", "--epochs", "4", "--quiet")
        check(code == -signal.SIGKILL, f"killed in the middle: {code}")
    else:
        print("SKIP: kills, for want of the library that counts calls")
    accepted([*TRAIN, "--out", "parts", "--resume", "--epochs", "4"])
    check(len(os.listdir("parts/events")) == 2 + can_kill(), "each part of a run has its file")
    os.mkdir("full")
    refused([*TRAIN, "--set", "tensorboard.histogram=epoch"], 1, "did you mean 'histograms'?")


def look_at_values():
    seen = accumulate("whole")
    compare("whole", seen)
    tensors = seen["tensors"]
    check("batch: 20" in tensors["recipe"]["values"][0][1], "the recipe is there")
    images = tensors["inputs"]["values"][0][1]
    check(images[:2] == ["28", "28"] and images[2:] == ["89504e470d0a1a0a"] * 4, f"four pictures: {images}")
    histograms = {t: v for t, v in tensors.items() if v["plugin"] == "histograms"}
    check([s for s, _ in histograms["weights/conv2d/weight"]["values"]] == [10, 20], f"histograms: {list(histograms)}")
    check(not any("adam" in t or t.endswith("/m") for t in histograms), "of parameters only")
    rows = histograms["weights/conv2d/weight"]["values"][-1][1]
    check(len(rows) == 30 and sum(r[2] for r in rows) == 4 * 3 * 3, "each weight counts once")
    rows = histograms["gradients/conv2d/weight"]["values"]
    check([s for s, _ in rows] == [10, 20] and sum(r[2] for r in rows[-1][1]) == 4 * 3 * 3, "each gradient counts once")
    check(sorted(t[10:] for t in histograms if t.startswith("gradients/")) ==
          sorted(t[8:] for t in histograms if t.startswith("weights/") and "running" not in t),
          f"gradients of all parameters: {list(histograms)}")
    names = {n for n, _, _ in seen["graph"]}
    check(any(op == "conv2d" for _, op, _ in seen["graph"]) and "conv2d/weight" in names, f"the graph: {names}")
    check(all(i in names for _, _, inputs in seen["graph"] for i in inputs), "its inputs are its nodes")
    compare("parts", accumulate("parts"))
    tear("parts")
    compare("parts", accumulate("parts"))


def tear(folder):
    """A torn last record, as a kill in the middle of a write may leave it, changes nothing."""
    last = max(os.listdir(f"{folder}/events"))
    with open(f"{folder}/events/{last}", "ab") as f:
        f.write(b"\x40\0\0\0\0\0\0\0\x12\x34")


def ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/{path}", timeout=20) as answer:
        return answer.read()


def serve():
    """The program itself, asked as its page does."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([PYTHON, "-m", "tensorboard.main", "--logdir", "whole", "--port", str(port), "--bind_all",
                               "--load_fast=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        tags = {}
        for _ in range(300):
            try:
                tags = json.loads(ask(port, "plugin/scalars/tags"))
            except OSError:
                pass
            if tags.get("events"):
                break
            time.sleep(0.2)
        check("train/loss" in tags.get("events", {}), f"TensorBoard lists the scalars: {tags}")
        points = json.loads(ask(port, "plugin/scalars/scalars?run=events&tag=train%2Floss"))
        want = [(m["step"], m["loss"]) for m in metrics("whole") if m["kind"] == "step"]
        check(len(points) == len(want) and all(p[1] == s and is_near(p[2], x) for p, (s, x) in zip(points, want)),
              f"TensorBoard shows the losses: {points}")
        histogram = json.loads(ask(port, "plugin/histograms/histograms?run=events&tag=weights%2Fconv2d%2Fweight"))
        check([h[1] for h in histogram] == [10, 20] and len(histogram[0][2]) == 30, "TensorBoard shows histograms")
        images = json.loads(ask(port, "plugin/images/images?run=events&tag=inputs&sample=0"))
        check(ask(port, f"plugin/images/{'individualImage'}?{images[0]['query']}")[:4] == b"\x89PNG", "and images")
        check(b"conv2d" in ask(port, "plugin/graphs/graph?run=events&large_attrs_key=_too_large_attrs&limit_attr_size=1024"),
              "and the graph")
        check("recipe" in json.loads(ask(port, "plugin/text/tags"))["events"], "and the recipe")
    finally:
        server.terminate()
        server.wait()


begin()
look_at_files()
have = subprocess.run([PYTHON, "-c", "import tensorboard"], capture_output=True).returncode == 0
if have:
    look_at_values()
    serve()
end()
if not have:
    print("SKIP: no TensorBoard to read the files with: set STOKER_TENSORBOARD to a Python that has it")
    sys.exit(77)
