#!/usr/bin/env python3
"""Fine-tuning: first weights from a run, a new head, frozen parameters and statistics, groups with rates of their own.

usage: test_tuning.py STOKER WORK_FOLDER
"""
import json
import os
import struct

from program import RECIPE, accepted, begin, check, end, losses, refused


def tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        start = f.tell()
        out = {}
        for name, t in header.items():
            if name != "__metadata__":
                f.seek(start + t["data_offsets"][0])
                out[name] = f.read(t["data_offsets"][1] - t["data_offsets"][0])
    return out


def last(folder, name="model"):
    step = max(d for d in os.listdir(folder) if d.startswith("step-"))
    return tensors(f"{folder}/{step}/{name}.safetensors")


def write(name, more):
    with open(name, "w") as f:
        f.write(RECIPE + more)
    return name


def changed(a, b):
    return sorted(name for name in a if a[name] != b[name])


def tuning():
    accepted(["train", "small.yaml", "--out", "first"])
    first = last("first")
    frozen = "freeze: [conv2d, 'batch_norm.*']\n"
    done = accepted(["train", write("tune.yaml", "init: first\n" + frozen), "--out", "tuned"], "init: ", "tensors from")
    check("left as they were" not in done.stdout + done.stderr, "nothing was left")
    tuned, state = last("tuned"), last("tuned", "optimizer")
    stays = sorted(name for name in first if name.split(".")[0] in ("conv2d", "batch_norm"))
    check("batch_norm.running_mean" in stays and "conv2d.weight" in stays, f"the names are {sorted(first)}")
    check(changed(first, tuned) == sorted(set(first) - set(stays)), f"what changed is {changed(first, tuned)}")
    check(not any(name.startswith(("conv2d.", "batch_norm.")) for name in state), f"frozen ones have no state: {sorted(state)}")
    accepted(["train", write("on.yaml", "init: first\n"), "--out", "on", "--steps", "1"])
    check(losses("on")[0] < losses("first")[0], f"it begins with {losses('on')[0]}, not {losses('first')[0]}")
    # A new head, and the same run in two parts.
    done = accepted(["train", write("head.yaml", "init: {weights: first, leave: dense}\n" + frozen), "--out", "head"],
                    "left as they were: dense.")
    accepted(["train", "head.yaml", "--out", "parts", "--steps", "7"])
    accepted(["train", "head.yaml", "--out", "parts", "--resume"])
    check(losses("parts") == losses("head"), "resuming does not load the first weights again")
    # A rate of 0 is as good as frozen for a weight; a decay alone changes it.
    accepted(["train", write("rates.yaml", "groups: [{match: dense, lr: 0}, {match: '*', lr: 0.1}]\n"), "--out", "rates",
              "--steps", "1"])
    accepted(["train", "small.yaml", "--out", "plain", "--steps", "1"])
    check(losses("rates")[0] == losses("plain")[0], "groups change no first loss")
    a, b = last("rates"), last("plain")
    check("dense.weight" in changed(a, b) and "conv2d.weight" in changed(a, b), "rates differ")


def refusals():
    refused(["train", write("bad.yaml", "freeze: layer9\n")], 1, "no parameter matches 'layer9' (freeze)")
    refused(["train", write("bad.yaml", "groups: [{match: [dense, nothing.*], lr: 2}]\n")], 1, "'nothing.*' (groups)")
    refused(["train", write("bad.yaml", "freeze: ['*']\n")], 1, "nothing to train")
    refused(["train", write("bad.yaml", "init: nowhere\n")], 1, "nowhere")
    wide = RECIPE.replace("[4, 8]", "[4, 9]") + "init: first\n"
    with open("bad.yaml", "w") as f:
        f.write(wide)
    refused(["train", "bad.yaml"], 1, "bad.yaml:17:7: ", "tensor 'batch_norm_1.bias' is [8] in the file", "is [9]")


begin()
tuning()
refusals()
end()
