#!/usr/bin/env python3
"""Elastic training: a rank of three is killed before any checkpoint, then one of two is stopped once memory has a state;
both are named, and one goes on with the losses of an unbroken run until it is asked to end. Whenever the signals come,
all must be so. Where no restart is allowed, the state in memory is saved.

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


ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def train(folder):
    """Its events. Each life has another signal sent to its last rank, the third life's to the supervisor."""
    environment = {**ENVIRONMENT, "STOKER_ELASTIC_MEMORY": "memory"}
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


def give_up(folder, before_kill=lambda: None):
    """A rank is killed once memory has a state, and no restart is allowed: all events."""
    environment = {**ENVIRONMENT, "STOKER_ELASTIC_MEMORY": "memory"}
    process = subprocess.Popen([STOKER, "train", "elastic.yaml", "--elastic", "1", "--ranks", "2", "--restarts", "0", "--threads", "1",
                                "--json", "--out", folder], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1]["event"] == "stepping":
            wait_for_state()
            before_kill()
            os.kill(events[-1]["pids"][1], signal.SIGKILL)
    err = process.communicate(timeout=TIMEOUT)[1]
    check(process.returncode > 0 and "gave up" in err, f"it gives up: {process.returncode} {err}")
    return events


def gives_up():
    """What was in memory alone becomes a checkpoint, and the run goes on from it; or it is kept where it is."""
    events = give_up("given-up")
    saved = [e["step"] for e in events if e["event"] == "saved"]
    check(len(saved) == 1 and os.listdir("memory") == [] and glob.glob("given-up/step-*") == [f"given-up/step-{saved[0]}"],
          f"the state is saved: {events}, {os.listdir('memory')}, {os.listdir('given-up')}")
    options = ["--replicas", "2", "--threads", "2", "--steps", str(saved[0] + 3)]
    before = losses("given-up")[:saved[0]]
    accepted(["train", "elastic.yaml", *options, "--resume", "--out", "given-up"])
    accepted(["train", "elastic.yaml", *options, "--out", "not-given-up"])
    check(before == losses("not-given-up")[:saved[0]] and losses("given-up") == losses("not-given-up"),
          "it goes on with the losses of an unbroken run")

    def take_folder():
        os.rename("taken", "elsewhere")
        open("taken", "w").close()
    events = give_up("taken", take_folder)
    kept = glob.glob("memory/stoker-kept-*/step-*/manifest.json")
    check([e["event"] for e in events[-2:]] == ["not_saved", "gave_up"] and len(kept) >= 1 and "stoker-kept-" in events[-2]["text"],
          f"a state that cannot be saved is kept: {events}, {kept}")


def strict():
    """Four lose one, and two go on, since three do not divide four parts: with the bits of one that was never broken."""
    os.mkdir("memory-strict")
    process = subprocess.Popen([STOKER, "train", "strict.yaml", "--elastic", "1", "--ranks", "4", "--threads", "1", "--json", "--out", "strict"],
                               env={**ENVIRONMENT, "STOKER_ELASTIC_MEMORY": "memory-strict"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lives = []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "stepping":
            lives.append(event["ranks"])
            if len(lives) == 1:
                os.kill(event["pids"][3], signal.SIGKILL)
            else:
                process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=TIMEOUT)[1]
    got = losses("strict")
    check(lives == [4, 2] and len(got) > 1, f"two of four go on: {lives}, {got}, {err}")
    accepted(["train", "strict.yaml", "--threads", "1", "--steps", str(len(got)), "--out", "strict-whole"])
    check(got == losses("strict-whole"), f"strict: {got}, unbroken by one rank: {losses('strict-whole')}")


def main():
    if not shutil.which("mpirun"):
        print("SKIP: there is no mpirun (Debian: openmpi-bin)")
        sys.exit(77)
    begin()
    with open("elastic.yaml", "w") as f:
        f.write(RECIPE.replace("name: small", "name: elastic").replace("batch: 20", "batch: 12").replace("epochs: 2", "epochs: 5000")
                .replace("checkpoint: {every: 5 steps}", "checkpoint: {every: 1000000 steps}"))
    faults()
    with open("elastic.yaml") as f, open("strict.yaml", "w") as out:
        out.write(f.read() + "strict: 4\n")
    gives_up()
    strict()
    end()


if __name__ == "__main__":
    main()
