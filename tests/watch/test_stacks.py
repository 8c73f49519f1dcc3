#!/usr/bin/env python3
"""stoker watch --stacks: by a played py-spy, which says what it is told, and by gdb where there is one.

usage: test_stacks.py BUILD_FOLDER WORK_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

BUILD, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BUSY = "import time; t = time.time()\nwhile time.time() - t < 9: sum(range(1000))"
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def watch(*args, path=""):
    return subprocess.run([f"{BUILD}/stoker-watch", *args], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": path or f"{WORK}/bin:{os.environ['PATH']}"})


def play(script):
    with open(f"{WORK}/bin/py-spy", "w") as f:
        f.write(f"#!/bin/sh\n{script}\n")
    os.chmod(f"{WORK}/bin/py-spy", 0o755)


def python_job():
    # It takes long enough to be seen among the processes.
    play('echo "$@" >> ' + f"{WORK}/asked" + "\nsleep 1.2\nprintf 'Process 1\\nThread %d (active): \"MainThread\"\\n    <script>\\033[2J (x.py:7)\\n    run (x.py:9)\\n' $4")
    told = json.loads(watch("--json", "--stacks", "--record", f"{WORK}/x.rec", "--html", f"{WORK}/x.html", "--", sys.executable, "-c", BUSY).stdout)
    stacks = told["stacks"]
    check(stacks["n"] >= 2 and stacks["most"][0]["n"] == stacks["n"], f"{stacks} {told['missing']}")
    check("<script>" in stacks["most"][0]["lines"] and "run (x.py:9)" in stacks["most"][0]["lines"], f"{stacks}")
    with open(f"{WORK}/asked") as f:
        check("dump --nonblocking --pid" in f.read(), "the job is not stopped")
    with open(f"{WORK}/x.html") as f:
        page = f.read()
    check("<script" not in page and "&lt;script&gt;" in page and "\x1b" not in page, "the page's text is a text")
    again = watch("--replay", f"{WORK}/x.rec").stdout
    check("stacks" in again and "run (x.py:9)" in again and "\x1b" not in again, f"a replay says the same: {again!r}")
    # The tool is no part of the job.
    with open(f"{WORK}/x.rec") as f:
        names = [line.split()[3] for line in f if line.startswith("I process ")]
    check(not [n for n in names if n in ("sh", "py-spy")], f"processes of the job: {names}")


def what_is_missing():
    play("echo 'Error: Permission denied <x>' >&2; exit 1")
    missing = json.loads(watch("--json", "--stacks", "--", sys.executable, "-c", BUSY.replace("9:", "3:")).stdout)["missing"]
    check(any("stacks (py-spy: Error: Permission denied <x>)" in m for m in missing), f"{missing}")
    os.makedirs(f"{WORK}/empty", exist_ok=True)
    missing = json.loads(watch("--json", "--stacks", "--", sys.executable, "-c", BUSY.replace("9:", "3:"), path=f"{WORK}/empty").stdout)["missing"]
    check(any("stacks (they need py-spy on PATH" in m for m in missing), f"{missing}")
    play("exec sleep 60")
    done = watch("--json", "--stacks", "--", sys.executable, "-c", BUSY.replace("9:", "2:"))
    check(done.returncode == 0 and json.loads(done.stdout)["stacks"]["n"] == 0, "a tool that hangs holds nothing up")
    play("exit 0")
    os.unlink(f"{WORK}/asked")
    play(f"touch {WORK}/asked")
    watch("--", sys.executable, "-c", BUSY.replace("9:", "1:"))
    check(not os.path.exists(f"{WORK}/asked"), "nobody is asked without the option")


def by_gdb():
    if not shutil.which("gdb"):
        return
    told = json.loads(watch("--json", "--stacks", "--", "sh", "-c", "exec sleep 8").stdout)
    lines = " ".join(s["lines"] for s in told["stacks"]["most"])
    refused = any("stacks (gdb" in m for m in told["missing"])
    check(refused or "nanosleep" in lines, f"{told['stacks']} {told['missing']}")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(f"{WORK}/bin")
for test in python_job, what_is_missing, by_gdb:
    test()
print(f"{n_failed} failed" if n_failed else "all passed")
sys.exit(n_failed > 0)
