#!/usr/bin/env python3
"""Elastic training: a rank of three is killed before any checkpoint, then one of two is stopped once memory has a state;
both are named, and one goes on with the losses of an unbroken run until it is asked to end. Whenever the signals come,
all must be so.

usage: test_elastic.py STOKER WORK_FOLDER
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from program import RECIPE, STOKER, TIMEOUT, accepted, begin, check, end, losses


def wait_for_state():
    begun = time.time()
    while not glob.glob("memory/*/step-*/manifest.json") and time.time() - begun < TIMEOUT:
        time.sleep(0.02)


def train(folder):
    """Its events. Each life has another signal sent to its last rank, the third life's to the supervisor."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "STOKER_ELASTIC_MEMORY": "memory",
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    os.mkdir("memory")
    process = subprocess.Popen([STOKER, "train", "elastic.yaml", "--elastic", "1", "--ranks", "3", "--threads", "1",
                                "--json", "--out", folder], env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    n_lives = 0
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] != "stepping":
            continue
        n_lives += 1
        if n_lives == 1:
            os.kill(event["pids"][2], signal.SIGKILL)
        elif n_lives == 2:
            wait_for_state()
            os.kill(event["pids"][1], signal.SIGSTOP)
        else:
            process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=TIMEOUT)[1]
    check(process.returncode == 128 + signal.SIGTERM, f"it ends as it was asked: {process.returncode} {err}")
    check(not os.listdir("memory"), f"states are left: {os.listdir('memory')}")
    with open(f"{folder}/events.jsonl") as f:
        return [json.loads(line) for line in f]


def faults():
    events = train("broken")
    named = [(e["event"], e["rank"]) for e in events if e["event"] in ("gone", "silent", "stuck", "together", "failed")]
    check(named == [("gone", 2), ("silent", 1)], f"what is named: {events}")
    lives = [e for e in events if e["event"] == "stepping"]
    # The first rank keeps the state that it has where it misses another before it has changed any of it.
    check([e["ranks"] for e in lives] == [3, 2, 1] and [e["from"] for e in lives] in (
        ["start", "start", "memory"], ["start", "memory", "memory"]), f"lives: {lives}")
    check(events[-1]["event"] == "end", f"it ends: {events}")
    # The same numbers of ranks without a fault, each up to where the next began.
    got, begun = losses("broken"), 0
    for e, until in zip(lives, [e["resumed_step"] for e in lives[1:]] + [len(got)]):
        if until > begun:
            accepted(["train", "elastic.yaml", "--replicas", str(e["ranks"]), "--threads", str(e["ranks"]), "--resume",
                      "--steps", str(until), "--out", "unbroken"])
        begun = until
    check(got == losses("unbroken"), f"losses {got}, unbroken {losses('unbroken')}")


def main():
    if not shutil.which("mpirun"):
        print("SKIP: there is no mpirun (Debian: openmpi-bin)")
        sys.exit(77)
    begin()
    with open("elastic.yaml", "w") as f:
        f.write(RECIPE.replace("name: small", "name: elastic").replace("batch: 20", "batch: 12").replace("epochs: 2", "epochs: 5000")
                .replace("checkpoint: {every: 5 steps}", "checkpoint: {every: 1000000 steps}"))
    faults()
    end()


if __name__ == "__main__":
    main()
