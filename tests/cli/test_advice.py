#!/usr/bin/env python3
"""What is advised: each recipe key that a remedy names is there, and the doctor agrees with what a run says of itself.

usage: test_advice.py STOKER WORK_FOLDER
"""
import glob
import json
import os
import re

from program import begin, check, end, run

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src")
# Words in single quotes before a colon that are no keys: what a value may be.
ADVICE = ["watch/rules.c", "report/advice.c", "run/notice.c", "train/nan_guard.c", "recipe/lint.c", "recipe/lint_stages.c"]


def texts_of(path):
    """The C string literals of a file, those next to each other as one."""
    with open(path) as f:
        code = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    joined = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", code)
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)


def known_keys():
    """Full names, as 'log.every', and last parts alone, as 'every'."""
    full, section = set(), ""
    for line in run("new", "--keys").stdout.splitlines():
        if line.startswith("#"):
            words = line.strip("# `").split()
            section = words[0] if words and re.fullmatch(r"[a-z0-9_.]+", words[0]) else ""
        row = re.match(r"\| `([a-z0-9_]+)` \|", line)
        if row:
            full.add(f"{section}.{row.group(1)}" if section else row.group(1))
    return full


def remedies_name_keys_that_exist():
    keys = known_keys()
    check(len(keys) > 200 and "clip_norm" in keys and "log.every" in keys, f"the keys: {sorted(keys)[:30]}")
    last = {key.split(".")[-1] for key in keys}
    n = 0
    for name in ADVICE:
        for text in texts_of(f"{SOURCES}/{name}"):
            if name == "watch/rules.c" and re.match(r"[^']*\b(torch|tf|jax|docker)\b", text):
                continue
            # 'key: value', 'a.b' and 'key', and what a {...} holds.
            for quoted in re.findall(r"(?<![a-z])'([^'%]*)'", text):
                for key in re.findall(r"(?:^|[{, ])([a-z_]+(?:\.[a-z_]+)*)(?=:)", quoted):
                    n += 1
                    check(key in keys or "." not in key and key in last, f"src/{name} names '{key}', which no recipe has: {text}")
                if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", quoted):
                    n += 1
                    check(quoted in keys, f"src/{name} names '{quoted}', which no recipe has: {text}")
    for text in re.findall(r'\{"stoker",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', open(f"{SOURCES}/watch/rules.c").read()):
        for key in re.findall(r"\b[a-z_]+(?:\.[a-z_]+)+\b", text):
            check(key in keys, f"the doctor's remedy for stoker names '{key}', which no recipe has: {text}")
    check(n > 10, f"the texts were read: {n} keys")


def stoker_runs_get_their_own_words():
    """Where anybody's remedy names what a run of Stoker does not have, Stoker's own of that topic is in its place."""
    with open(f"{SOURCES}/watch/rules.c") as f:
        rules = re.split(r"\{\.name = ", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S))[1:]
    n = 0
    for rule in rules:
        found = re.findall(r'\{(NULL|"[^"]*"),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*[\d.]+(?:,\s*"([^"]*)")?(?:,\s*"[^"]*")?\}', rule)
        check(found, f"the remedies were read: {rule[:60]}")
        own = {topic for of, _, topic in found if of == '"stoker"'}
        for of, text, topic in found:
            if of == "NULL" and re.search(r"OMP_|py-spy|NCCL_|DataLoader|os\.sched|WebDataset|CUDA graph", text):
                n += 1
                check(topic and topic in own, f"a stoker run is told: {text}")
    check(n >= 4, f"{n} such remedies were found")


def doctor_agrees_with_the_run():
    """A run that computes, and one that waits for its data."""
    wide, slow = "model={cnn: {widths: [64, 128]}}", "data.train.stages=[{decode: {channels: 1}}, {resize: 400}, " \
                 "{gaussian_blur: 9}, {resize: 28}, {normalize: mnist}]"
    fewer = 4 if re.search(r"build-[at]san", run.__globals__["STOKER"]) else 1  # sanitizers take several times as long for each
    for name, sets, steps in ("wide", [wide, "precision=f32"], 600), ("slow", [slow, "threads=1", "model={cnn: {widths: [4]}}"], 800):
        options = [word for one in [*sets, "epochs=1000"] for word in ("--set", one)]
        done = run("watch", "--json", "--quiet", "--record", f"{name}.rec", "--", os.path.abspath(run.__globals__["STOKER"]), "train", "small.yaml",
                   "--out", name, "--steps", str(steps // fewer), *options)
        watch = json.loads(done.stdout)
        with open(f"{name}/result.json") as f:
            own = json.load(f)["time"]
        with open(f"{name}.rec") as f:
            check(("I f32 " in f.read()) == (name == "wide"), f"{name}: whether its recipe asks for f32")
        said = watch.get("own") or {}
        for share in "input", "compute":
            check(abs(said.get(share, -1) - own[share]) < 0.02, f"{name}: {share} is {own[share]}, the doctor has {said}")
        check(abs(watch["signals"]["idle"] - (1 - own["compute"])) < 0.02, f"{name}: idle {watch['signals']['idle']}, {own}")
        fed = [v["name"] for v in watch["verdicts"] if v["name"].startswith("input") or v["name"] == "checkpoint-stall"]
        check(not fed or 1 - own["compute"] > 0.08, f"{name}: {fed}, though the run says {own}")


begin()
remedies_name_keys_that_exist()
stoker_runs_get_their_own_words()
doctor_agrees_with_the_run()
end()
