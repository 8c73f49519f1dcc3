#!/usr/bin/env python3
"""Threads of OpenMP that spin while they wait for work are no sign of work, by real ones of the compiler's own library.

usage: test_spin.py BUILD_FOLDER JOB
"""
import json
import os
import subprocess
import sys

BUILD, JOB = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# What others have set for OpenMP comes before that.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def watch(how):
    # Bound to a core each, so that the first thread's cores are not all that the job may use.
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", "--", JOB, how, "8"], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**PLAIN, "OMP_WAIT_POLICY": "active", "OMP_PROC_BIND": "true"})
    check(done.returncode == 0, f"the job ends as it would have: {done}")
    return json.loads(done.stdout)


if os.cpu_count() < 2:
    print("skipped: one core")
    sys.exit(77)
alone = watch("serial")
if any("ptrace" in m for m in alone["missing"]):
    print("skipped: ptrace is refused here")
    sys.exit(77)
shared = watch("parallel")
x, y = alone["signals"], shared["signals"]
check(x.get("spins", 0) > 0.5 * (x["cores"] - x["top"]) > 0.1, f"one waits: {x.get('spins')} of {x['cores']} cores, {x['top']}")
check(y.get("spins", 0) < 0.3 * (y["cores"] - y["top"]), f"both work: {y.get('spins')} of {y['cores']} cores")
names = [r["verdicts"][0]["name"] if r["verdicts"] else None for r in (alone, shared)]
others = max(x["contention"], y["contention"])
# A virtual machine's neighbours take time that no process has.
if others < 0.05 and os.cpu_count() == 2 and min(x["cores"], y["cores"]) > 1.8:
    check(names == ["one-core", "compute-bound-cpu"], f"{names}")
print(f"{n_failed} failed" if n_failed else f"all passed: {names}, others on {others:.2f} of the cores")
sys.exit(n_failed > 0)
