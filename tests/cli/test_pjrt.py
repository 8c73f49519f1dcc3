#!/usr/bin/env python3
"""Trainings on the device 'pjrt' go on where the cpu stopped, and say what is wrong; with names, networks of test_gpu.py follow
the cpu's losses for 100 steps.

usage: test_pjrt.py STOKER WORK_FOLDER [NAME...]    NAME: one of test_gpu.py's networks, choices, or all

The plug-in is the one of STOKER_PJRT_PATH; without it all of this is skipped.
"""
import json
import os
import sys

import program
import test_gpu
from program import accepted, begin, check, end, refused, run


def says_what_is_wrong():
    here = os.environ["STOKER_PJRT_PATH"]
    refused(["train", "small.yaml", "--device", "pjrt:/no/such/plugin.so", "--out", "no"], 1, "cannot load the PJRT plug-in: /no/such/plugin.so")
    refused(["train", "small.yaml", "--device", "pjrt:small.yaml/x", "--out", "no"], 1, "small.yaml/x")
    refused(["train", "small.yaml", "--device", f"pjrt:{here}", "--replicas", "2", "--out", "no"], 1, "replicas on 'pjrt' are not supported yet")
    with open("no-plugin.so", "w") as f:
        f.write("this is no library\n")
    refused(["train", "small.yaml", "--device", "pjrt:./no-plugin.so", "--out", "no"], 1, "./no-plugin.so")
    accepted(["train", "small.yaml", "--device", f"pjrt:{here}", "--out", "by-path", "--steps", "2"])
    env = {name: value for name, value in os.environ.items() if name != "STOKER_PJRT_PATH"}
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "no", env=env)
    check(done.returncode == 1 and "set STOKER_PJRT_PATH" in done.stderr, f"no plug-in is named: {done.stderr!r}")


def leaves_its_modules():
    os.makedirs("modules")
    env = {**os.environ, "STOKER_PJRT_DUMP": os.path.abspath("modules")}
    done = run("train", "small.yaml", "--device", "pjrt", "--out", "dumped", "--steps", "2", env=env)
    texts = [open(os.path.join("modules", name)).read() for name in sorted(os.listdir("modules"))]
    check(done.returncode == 0 and texts, f"modules are written: {done.stderr!r}")
    check(any("tf.aliasing_output" in text for text in texts), "parameters are donated")
    check(all(text.startswith("module @stoker {") for text in texts), "each is a module")


if __name__ == "__main__":
    begin()
    if not os.environ.get("STOKER_PJRT_PATH"):
        print("SKIP: no PJRT plug-in: STOKER_PJRT_PATH is not set")
        sys.exit(77)
    listed = json.loads(run("devices", "--json").stdout)["devices"]
    print("on", next(d["detail"] for d in listed if d["name"] == "pjrt"))
    names = sys.argv[3:]
    program.TIMEOUT = max(program.TIMEOUT, 300)
    for name in [*test_gpu.CASES, "choices"] if names == ["all"] else names:
        if name == "choices":
            test_gpu.choices("pjrt")
        else:
            test_gpu.follows(name, "pjrt")
    if not names:
        test_gpu.goes_on("pjrt")
        leaves_its_modules()
        says_what_is_wrong()
    end()
