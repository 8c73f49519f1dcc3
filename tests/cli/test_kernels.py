#!/usr/bin/env python3
"""Kernels that are chosen by timing: what a run keeps of it, that it goes on by the same ones, and who has none.

usage: test_kernels.py STOKER WORK_FOLDER
"""
import os
import shutil

import program
from program import accepted, check, losses, refused

TRAIN = ["train", "small.yaml"]


def text(folder):
    path = f"{folder}/kernels.txt"
    return open(path).read() if os.path.isfile(path) else None


def a_run_keeps_them():
    done = accepted([*TRAIN, "--steps", "12", "--out", "whole"])
    lines = text("whole").splitlines()
    check(lines[0].startswith("# kernels measured on ") and len(lines) > 3, f"kernels.txt says what was measured: {lines}")
    check("kernels measured: " in done.stdout, f"the plan says so: {done.stdout}")
    check(os.listdir("cache/kernels"), "the next run finds them")
    again = accepted([*TRAIN, "--steps", "2", "--out", "again"])
    check(text("again").splitlines()[0] == lines[0], "of the same processor")
    check(losses("again") == losses("whole")[:2], f"the same losses: {losses('again')} {losses('whole')}")
    check("kernels" in again.stdout, "and it says so")
    # What another network asked for is not this run's.
    accepted([*TRAIN, "--steps", "2", "--out", "wide", "--set", "model.cnn.widths=[12, 24]"])
    calls = [set(line.split("\t")[1] for line in text(f).splitlines()[1:]) for f in ("whole", "wide")]
    check(calls[0] and calls[1] and calls[0] != calls[1] and not any("f32[10,8]" in c for c in calls[1]), f"each has its own: {calls}")


def it_goes_on_by_them():
    """Every product by the way that the run's file says, whatever the cache has."""
    accepted([*TRAIN, "--steps", "6", "--out", "own"])
    before = text("own")
    changed = "".join(line if line[0] == "#" or "matmul" not in line else "own\t" + line.split("\t")[1]
                      for line in before.splitlines(keepends=True))
    open("own/kernels.txt", "w").write(changed)
    shutil.rmtree("cache")
    accepted([*TRAIN, "--steps", "8", "--out", "own", "--resume"])
    check(text("own") == changed, f"the run's choices stay: {text('own')}")
    # A cut run has the bits of one that was not.
    accepted([*TRAIN, "--steps", "12", "--out", "uncut"])
    accepted([*TRAIN, "--steps", "5", "--out", "cut"])
    shutil.rmtree("cache")
    accepted([*TRAIN, "--steps", "12", "--out", "cut", "--resume"])
    check(losses("cut") == losses("uncut"), f"the same losses: {losses('cut')} {losses('uncut')}")


def others_are_not_used():
    for content, why in (("# kernels measured on an abacus\n", "measured on an abacus"), ("nonsense\n", "line 1 is not")):
        accepted([*TRAIN, "--steps", "5", "--out", "foreign"])
        open("foreign/kernels.txt", "w").write(content)
        done = accepted([*TRAIN, "--steps", "7", "--out", "foreign", "--resume"], "losses may differ from its by rounding")
        check(why in done.stderr, f"and why: {done.stderr}")
        check(text("foreign") != content, "then it has its own")
        shutil.rmtree("foreign")


def who_has_none():
    done = accepted([*TRAIN, "--steps", "5", "--out", "fixed", "--deterministic"])
    check(text("fixed") is None and "kernels by rule" in done.stdout, f"deterministic: by rule: {done.stdout}")
    refused([*TRAIN, "--steps", "7", "--out", "fixed", "--resume"], 1, "deterministic", lines=None)
    accepted([*TRAIN, "--steps", "7", "--out", "fixed", "--resume", "--set", "deterministic=true"])
    accepted([*TRAIN, "--steps", "2", "--out", "two", "--replicas", "2"])
    check(text("two") is None, "replicas measure nothing")
    for how in "default", "tuned":
        os.environ["STOKER_KERNELS"] = how
        accepted([*TRAIN, "--steps", "2", "--out", how])
        check(text(how) is None, f"nor do runs by {how} kernels")
    # A run that has gone by measured ones is told.
    accepted([*TRAIN, "--steps", "13", "--out", "whole", "--resume"], "losses may differ from its by rounding", "here none are")
    os.environ["STOKER_KERNELS"] = "fastest"
    refused(["devices"], 2, "default, tuned or measured, not 'fastest'", lines=None)
    os.environ["STOKER_KERNELS"] = "measured"
    done = accepted(["devices"])
    check("kernels measured as a run begins" in done.stdout, f"devices says so: {done.stdout}")


program.begin()
os.environ["STOKER_KERNELS"] = "measured"
os.environ["STOKER_CACHE"] = os.path.abspath("cache")
a_run_keeps_them()
it_goes_on_by_them()
others_are_not_used()
who_has_none()
program.end()
