#!/usr/bin/env python3
"""Measuring: the bench recipes run on random samples, and result.json has what a step takes.

usage: test_measuring.py STOKER WORK_FOLDER
"""
import json
import os

from program import accepted, begin, check, end, refused

RECIPES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "recipes")
STEPS = ["--steps", "5", "--quiet"]


def bench(name, *options):
    accepted(["train", f"{RECIPES}/{name}.yaml", "--out", name, *STEPS, *options])
    with open(f"{name}/result.json") as f:
        return json.load(f)


def check_result(name, result, batch):
    check(result["steps"] == 5 and result["step_ms_median"] > 0, f"{name}: steps are timed")
    rate = 1e3 * batch / result["step_ms_median"]
    check(abs(result["samples_per_s"] - rate) < 1e-6 * rate, f"{name}: samples_per_s goes by step_ms_median")
    least = 0.9 * 5 * batch / result["wall_s"]
    check(result["samples_per_s_overall"] > least, f"{name}: all samples over the time of training: {result}")
    check(not [f for f in os.listdir(name) if f.startswith("step-")], f"{name}: nothing is saved")


def images():
    result = bench("bench-resnet18", "--set", "batch=4")
    check_result("bench-resnet18", result, 4)
    check("tokens_per_s" not in result, "images have no tokens")
    result = bench("bench-resnet50", "--set", "batch=2", "--set", "data.train.source.synthetic.fields.image=[32,32,3]")
    check_result("bench-resnet50", result, 2)


def texts():
    """The recipes of transformers, with small networks."""
    length = ["--set", "data.train.source.synthetic.fields.tokens={shape: [16], below: 100}"]
    result = bench("bench-bert", "--set", "batch=3", *length, "--set", "model.bert={size: tiny, classes: 2, length: 16}")
    check_result("bench-bert", result, 3)
    check(abs(result["tokens_per_s"] - 16 * result["samples_per_s"]) < 1e-6 * result["tokens_per_s"], "16 tokens a sample")
    small = "model.gpt2={size: mini, length: 16, layers: 2, width: 48, heads: 4, vocabulary: 100, positions: 16}"
    length += ["--set", "data.train.source.synthetic.fields.targets={shape: [16], below: 100}"]
    result = bench("bench-gpt2", "--set", "batch=3", *length, "--set", small, "--set", "log=1 step")
    check_result("bench-gpt2", result, 3)
    last = [json.loads(line) for line in open("bench-gpt2/metrics.jsonl")][-1]
    check(last["accuracy"] is None and 1 < last["perplexity"] < 200, "a language model has a perplexity")
    bad = ["train", f"{RECIPES}/bench-bert.yaml", "--out", "bad", "--set"]
    refused([*bad, "model.bert.length=64"], 1, "the model's length is 64, the data has 128 tokens a sample")
    refused([*bad, "model={gpt2: {}}"], 1, "targets")
    refused([*bad, "model={bert: {heads: 5, classes: 2}}"], 1, "does not divide into 5 heads")
    refused([*bad, "model={bert: {positions: 100, classes: 2}}"], 1, "longer than the 100")
    refused([*bad, "model={cnn: {}}"], 1, "image")


def losses(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [line["loss"] for line in map(json.loads, f) if line["kind"] == "step"]


def the_same_batch():
    """Resuming gives the batch of the first step again, as the whole run had it."""
    common = ["train", f"{RECIPES}/bench-resnet18.yaml", "--batch", "2", "--set", "log=1 step", "--set", "checkpoint.end=true"]
    accepted([*common, "--out", "whole", "--steps", "4"])
    accepted([*common, "--out", "parts", "--steps", "2"])
    accepted([*common, "--out", "parts", "--steps", "4", "--resume"], "from step 2")
    check(len(losses("whole")) == 4 and losses("whole") == losses("parts"), "a run in parts is the whole one")


def mistakes():
    synthetic = ["train", f"{RECIPES}/bench-resnet18.yaml", "--out", "bad", "--set"]
    refused([*synthetic, "data.train.source.synthetic.classes=0"], 1, "classes")
    refused([*synthetic, "data.train.source.synthetic.fields.image={shape: [32, 32, 3], dtype: f32, below: 3}"], 1,
            "whole numbers")
    refused([*synthetic, "model.resnet18.classes=9"], 1, "label 9 of row")


begin()
images()
texts()
the_same_batch()
mistakes()
end()
