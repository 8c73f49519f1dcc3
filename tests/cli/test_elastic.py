#!/usr/bin/env python3
"""Elastic training: a rank of three is killed, another is stopped; both are named, and two go on with the losses of an
unbroken run.

usage: test_elastic.py STOKER WORK_FOLDER
"""
import json
import os
import shutil
import signal
import subprocess
import sys

from program import RECIPE, STOKER, TIMEOUT, begin, check, end, losses


def oversubscribe():
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    return ["--oversubscribe"] if "Open MPI" in version else []


def fault(number, memory, kind):
    """Rank 1 gets the signal at its first step. The events of the run's folder."""
    folder = f"run-{kind}"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "STOKER_ELASTIC_MEMORY": memory,
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    process = subprocess.Popen([STOKER, "train", "elastic.yaml", "--elastic", "2", "--ranks", "3", "--threads", "1",
                                "--json", "--out", folder], env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    is_done = False
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "stepping" and not is_done:
            is_done = True
            os.kill(event["pids"][1], number)
    err = process.communicate(timeout=TIMEOUT)[1]
    check(process.returncode == 0, f"{kind}: {process.returncode} {err}")
    with open(f"{folder}/events.jsonl") as f:
        events = [json.loads(line) for line in f]
    named = [e for e in events if e["event"] == kind]
    check(len(named) == 1 and named[0]["rank"] == 1, f"{kind}: {events}")
    check([e["ranks"] for e in events if e["event"] == "stepping"] == [3, 2], f"{kind}: {events}")
    check(events[-1]["event"] == "end" and events[-1]["code"] == 0, f"{kind}: {events}")
    # The same numbers of ranks without a fault: the first up to where the second began.
    step = [e for e in events if e["event"] == "stepping"][1]["resumed_step"]
    for n, more in ((3, ["--steps", str(step)]), (2, ["--resume"])):
        done = subprocess.run(["mpirun", "-n", str(n), *oversubscribe(), STOKER, "train", "elastic.yaml", "--threads", "1",
                               "--out", f"unbroken-{kind}", *more], env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT)
        check(done.returncode == 0, f"{kind}, unbroken: {done.stderr}")
    check(step > 0 and losses(folder) == losses(f"unbroken-{kind}"), f"{kind}: other losses than of an unbroken run")


def main():
    if not shutil.which("mpirun"):
        print("SKIP: there is no mpirun (Debian: openmpi-bin)")
        sys.exit(77)
    begin()
    with open("elastic.yaml", "w") as f:
        f.write(RECIPE.replace("name: small", "name: elastic").replace("batch: 20", "batch: 12").replace("epochs: 2", "epochs: 50"))
    fault(signal.SIGKILL, "off", "gone")
    fault(signal.SIGSTOP, "", "silent")
    end()


if __name__ == "__main__":
    main()
