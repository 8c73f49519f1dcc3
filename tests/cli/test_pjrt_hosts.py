#!/usr/bin/env python3
"""Processes of mpirun on the device 'pjrt': they join by the plug-in's keys, and have the losses of one and the bits of replicas; a plug-in that does not join is
refused, and what one process cannot do is told by all.

usage: test_pjrt_hosts.py STOKER WORK_FOLDER PLUGIN

PLUGIN is tests/device/pjrt/hosts_plugin.c, around the plug-in of STOKER_PJRT_PATH; without that, or without mpirun, all of this is skipped.
"""
import os
import re
import shutil
import subprocess
import sys

from program import STOKER, TIMEOUT, accepted, begin, check, end, losses

PLUGIN, REAL = os.path.realpath(sys.argv[3]), os.environ.get("STOKER_PJRT_PATH")
LAUNCHERS = {"Open MPI": ["mpirun.openmpi", "--oversubscribe"], "MPICH": ["mpirun.mpich"]}
MODEL = ["--steps", "6", "--set", "model={mlp: {hidden: [16]}}", "--set", "precision=f32", "--set", "checkpoint={end: false}"]


def launch(launcher, plugin, *args, n=2, **env):
    """Exit code and all that was said. The processes have no chips but the plug-in's own."""
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "HOSTS_REAL": REAL, **env}
    done = subprocess.run([*launcher, "-n", str(n), STOKER, "train", "small.yaml", "--device", f"pjrt:{plugin}", *MODEL, *args],
                          env=env, capture_output=True, text=True, timeout=TIMEOUT)
    return done.returncode, done.stdout + done.stderr


def processes_are_as_one(name, launcher, shared):
    folder = f"two-{name}-{shared}".replace(" ", "-")
    code, said = launch(launcher, PLUGIN, "--out", folder, STOKER_MPI_SHARED=shared)
    check(code == 0 and "2 replicas, each with 10 images of a batch" in said, f"{name}, shared memory {shared}: {code} {said}")
    if code != 0:
        return
    off = [abs(a - b) for a, b in zip(losses("one"), losses(folder))]
    check(len(off) == 6 and max(off) < 2e-6, f"{name}, shared memory {shared}: losses are apart: {off}")
    check(losses(folder) == losses("threads"), f"{name}, shared memory {shared}: not the bits of two replicas in one process")
    print(f"{name}, shared memory {shared}: two processes and one are at most {max(off):.1e} apart in 6 steps")


def parts_of_the_state(launcher):
    code, said = launch(launcher, PLUGIN, "--out", "parts", "--set", "shard=optimizer")
    off = [abs(a - b) for a, b in zip(losses("one"), losses("parts"))] if code == 0 else []
    check(len(off) == 6 and max(off) < 2e-6, f"with the state in parts: {code} {off} {said}")


def alone_is_refused(launcher):
    """The real one takes no such options, and has as many chips as there are processes: yet each would train alone."""
    code, said = launch(launcher, PLUGIN, "--out", "no", HOSTS="apart")
    check(code != 0 and f"'{PLUGIN}' does not join hosts: it sees 1 chip, and 2 processes with 2 were launched; start one process" in said,
          f"a plug-in that joins nobody: {code} {said}")
    code, said = launch(launcher, REAL, "--out", "no")
    seen = re.search(r"does not join hosts: it sees (\d+) chips, and 2 processes with (\d+) were launched", said)
    check(code != 0 and seen and int(seen[1]) >= 2 and int(seen[2]) == 2 * int(seen[1]), f"the processor's own: {code} {said}")
    check(not os.path.exists("no"), "what is refused leaves nothing")


def failures_are_told(launcher):
    code, said = launch(launcher, PLUGIN, "--out", "no", HOSTS="missing")
    check(code != 0 and "opening: the plug-in '" in said and "nobody has put the key 'plug-in 0: never' within 300 ms; " in said, f"a key: {code} {said}")
    code, said = launch(launcher, PLUGIN, "--out", "no", HOSTS="fails")
    check(code != 0 and "node 1 has no chip" in said, f"process 1 fails, and the other does not wait: {code} {said}")
    check(not os.path.exists("no"), "what fails leaves nothing")


begin()
found = {name: launcher for name, launcher in LAUNCHERS.items() if shutil.which(launcher[0])}
if not REAL:
    print("SKIP: no PJRT plug-in: STOKER_PJRT_PATH is not set")
    sys.exit(77)
if not found:
    print("SKIP: no mpirun: neither Open MPI nor MPICH is installed")
    sys.exit(77)
accepted(["train", "small.yaml", "--device", "pjrt", "--out", "one", *MODEL])
accepted(["train", "small.yaml", "--device", "pjrt", "--out", "threads", "--replicas", "2", *MODEL])
for name, launcher in found.items():
    processes_are_as_one(name, launcher, "on")
first = next(iter(found.values()))
processes_are_as_one(*next(iter(found.items())), "off")
parts_of_the_state(first)
alone_is_refused(first)
failures_are_told(first)
end()
