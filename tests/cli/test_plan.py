#!/usr/bin/env python3
"""stoker plan: its figures add up, are those that training then plans, and fit where they must.

usage: test_plan.py STOKER WORK_FOLDER
"""
import json
import os
import re

from program import accepted, begin, check, end, refused, run

RECIPES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "recipes")
SMALL = ["--set", "batch=8", "--set", "data.train.source.synthetic.fields.image=[96,96,3]"]
MODEL = [f"{RECIPES}/bench-resnet50.yaml", *SMALL]


def plan(*options):
    return json.loads(accepted(["plan", *MODEL, "--json", *options]).stdout)


def figures():
    p = plan()
    check(p["n_trainable"] == 25557032 and p["trainable_bytes"] == 4 * 25557032, "parameters are counted")
    check(p["optimizer_bytes"] == p["trainable_bytes"], "a momentum for each parameter")
    parts = ["gradient", "activation", "backward", "workspace", "unused"]
    check(sum(p[f"{part}_bytes"] for part in parts) == p["arena_bytes"], "the arena's parts add up")
    variables = p["trainable_bytes"] + p["frozen_bytes"] + p["optimizer_bytes"]
    check(p["peak_bytes"] == p["arena_bytes"] + variables, "the peak is arena and variables")
    check(p["lower_bound_bytes"] <= p["arena_bytes"] <= 1.03 * p["lower_bound_bytes"], "the plan is near its bound")
    check(sum(layer["bytes"] for layer in p["layers"]) == p["activation_bytes"], "layers add up")
    # 3x3 convolutions multiply 16 times where their arithmetic counts 36.
    check(p["expected_s"] >= p["limit_s"] * 16 / 36 > 0, "no step is faster than its arithmetic")
    events = accepted(["train", *MODEL, "--steps", "1", "--out", "run", "--json"]).stdout.splitlines()
    planned = [e for e in map(json.loads, events) if "peak_planned_bytes" in e]
    check(planned and planned[0]["peak_planned_bytes"] == p["peak_bytes"], "training plans the same")
    check(p["checkpoint_copy_bytes"] == 0, "no step follows the only save, so nothing is copied")
    check(plan("--set", "epochs=2")["checkpoint_copy_bytes"] == variables, "saving while steps go on copies the variables")
    return p


def rows():
    shown = accepted(["plan", *MODEL, "--set", "optimizer={sgd: {lr: 0.1}}"]).stdout
    check("optimiser state" not in shown and not re.search(r" 0 B\b", shown), f"nothing has no row: {shown}")


def shares():
    shown = accepted(["train", "small.yaml", "--out", "shares"]).stdout
    host = re.search(r"host ([\d.]+) %( \((?:high: )?less than 3 % is usual\))?,", shown)
    check(host and (host[2] is not None) == (float(host[1]) >= 3), f"what is usual is said: {shown}")
    check("(moderate)" not in shown, "in words")


def limits(p):
    variables = p["peak_bytes"] - p["arena_bytes"]
    limit = variables + p["arena_bytes"] * 65 // 100 + p["program_bytes"]
    less = plan("--memory", f"{limit}")
    check(less["peak_bytes"] <= limit and less["n_micro"] == 1, "the limit is met whole, for batch norm")
    check(less["n_recomputed"] > 0, "by recomputing activations")
    roomless = plan("--memory", f"{limit}", "--set", "epochs=2")
    check(roomless["checkpoint_copy_bytes"] == 0, "there is no room to copy what is saved")
    check(1 < less["slowdown"] < 1.35, "and what it costs")
    r = run("plan", *MODEL, "--memory", f"{variables + 1000}")
    check(r.returncode == 1 and "The largest buffers:" in r.stderr and "micro_batch" in r.stderr, "or the plan is refused")
    parts = plan("--set", "micro_batch=2")
    check(parts["n_micro"] == 4 and parts["activation_bytes"] < p["activation_bytes"], "micro-batches when told")
    check(parts["gradient_bytes"] >= p["trainable_bytes"], "whose gradients stay")


def fixed_scale():
    """Batch norm with `scale: false` has a scale that is not trained."""
    counts = []
    for scale in ("true", "false"):
        layers = f"[{{conv2d: {{filters: 8, bias: false}}}}, {{batch_norm: {{scale: {scale}}}}}, global_pool, {{dense: 1000}}]"
        p = plan("--set", f"model={{layers: {layers}}}")
        counts.append((p["n_trainable"], p["frozen_bytes"]))
    check(counts[0] == (3 * 3 * 3 * 8 + 2 * 8 + 9 * 1000, 4 * 2 * 8), f"scale and shift are trained: {counts[0]}")
    check(counts[1] == (counts[0][0] - 8, counts[0][1] + 4 * 8), f"or the shift alone: {counts[1]}")


def messages():
    refused(["plan", *MODEL, "--set", "whiten={layer: nowhere}"], 1, "'whiten': there is no convolution 'nowhere'")


def texts():
    text = accepted(["plan", *MODEL]).stdout
    check("activations by layer" in text and "batch 16" in text, "layers and other batches in the text")
    units = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
    sizes = re.findall(r"^  \D+ ([0-9.]+) ([KMG]?i?B)\b", text.split("\nstep ")[0], re.MULTILINE)
    sizes = [float(number) * units[unit] for number, unit in sizes]
    check(len(sizes) >= 9 and abs(sum(sizes[:8]) / sizes[8] - 1) < 0.01, f"the lines above the peak add up to it: {text}")


def graphs():
    text = accepted(["plan", *MODEL, "--dump-graph=all"]).stdout
    check(all(f"--- after {p}\n" in text for p in ("simplify", "fuse", "plan")), "the graph after each pass")
    check(text.count("--- after fuse\n") == 1, "of the plan asked for, and of no other batch")


begin()
limits(figures())
fixed_scale()
messages()
texts()
graphs()
rows()
shares()
end()
