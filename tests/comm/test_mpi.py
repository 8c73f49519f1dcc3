#!/usr/bin/env python3
"""Ranks that are processes of Open MPI and of MPICH: two communications one after the other, a failure while the first
rank still works, a store of keys, memory that cannot be shared, and an end over TCP.

usage: test_mpi.py MPI_RANK
"""
import os
import shutil
import subprocess
import sys

RANK, SECONDS = sys.argv[1], 60
LAUNCHERS = {"Open MPI": ["mpirun.openmpi", "--oversubscribe", "--mca", "btl", "self,tcp"], "MPICH": ["mpirun.mpich"]}
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
# A /dev/shm of each rank's own, and one in which there is no room.
OWN = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"']
FULL = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$0" "$@"']


def launch(launcher, *command, n=3, **env):
    try:
        done = subprocess.run([*launcher, "-n", str(n), *command], env={**ENVIRONMENT, **env}, capture_output=True,
                              text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as late:
        sys.exit(f"FAILED: {command} {env} did not end in {SECONDS} s: {late.stdout}")
    return done.returncode, done.stdout, done.stdout + done.stderr


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def test(name, launcher):
    for shared in ("on", "off"):
        code, out, text = launch(launcher, RANK, "twice", STOKER_MPI_SHARED=shared)
        check(code == 0 and out == "added 1\nadded 2\n", f"{name}, shared memory {shared}: {code} {text}")
        code, out, text = launch(launcher, RANK, "save", STOKER_MPI_SHARED=shared)
        check(code != 0 and "told: replica 2 failed: no more data\nsaved\nagain: an earlier run" in out,
              f"{name}, shared memory {shared}: the first rank finishes what it does: {code} {text}")
        code, out, text = launch(launcher, RANK, "keys", STOKER_MPI_SHARED=shared)
        check(code == 0 and "twice: the key 'rank 0, key 0' was put before\n" in out and "late: nobody has put the key 'never' within 50 ms; " in out,
              f"{name}, shared memory {shared}: a store of keys: {code} {text}")
        code, out, text = launch(launcher, RANK, "stuck", STOKER_MPI_SHARED=shared)
        check(code != 0 and "told: rank 2 failed: no chip\n" in out, f"{name}, shared memory {shared}: nobody waits for a key of a rank that failed: {code} {text}")


def without_memory(launcher):
    if subprocess.run([*OWN, "true"], capture_output=True).returncode != 0:
        print("SKIP folders of a process's own cannot be had here: /dev/shm that is full or not common")
        return
    for what, words in ((OWN, "cannot open memory that ranks share"), (FULL, "No space left on device")):
        code, out, text = launch(launcher, *what, RANK, "twice", n=2)
        check(code == 0 and "added 2" in out and out.count(words) == 2, f"{words}: {code} {text}")


def ends_over_tcp(launcher):
    """MPICH's MPI_Finalize over UCX hung in most of these, where ranks had asked MPI for something until then."""
    said = subprocess.run(["mpichversion"], capture_output=True, text=True).stdout if shutil.which("mpichversion") else ""
    if "ch4:ucx" not in said:
        print("SKIP this MPICH is not over UCX: the end over TCP")
        return
    for n in (2, 3, 2, 3, 2, 3):
        code, out, text = launch(launcher, RANK, "twice", n=n, STOKER_MPI_SHARED="off", UCX_TLS="tcp,self")
        check(code == 0 and out == "added 1\nadded 2\n", f"over TCP, {n} ranks: {code} {text}")


found = 0
for name, launcher in LAUNCHERS.items():
    if not shutil.which(launcher[0]):
        print(f"SKIP '{name}' is not installed: {launcher[0]}")
        continue
    found += 1
    test(name, launcher)
    if name == "Open MPI":
        without_memory(launcher)
    else:
        ends_over_tcp(launcher)
sys.exit(0 if found else 77)
