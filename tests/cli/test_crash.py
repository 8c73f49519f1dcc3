#!/usr/bin/env python3
"""A plug-in that crashes: the program ends by its signal, and says whose code that was. What crashes without one says nothing of one.
A plug-in that says that another process has the TPU: that process is named.

usage: test_crash.py STOKER WORK_FOLDER PLUGIN
"""
import os
import signal
import subprocess
import sys

from program import STOKER, begin, check, end

PLUGIN = os.path.realpath(sys.argv[3])


def crash(where):
    environment = {**os.environ, "CRASH": where}
    return subprocess.run([STOKER, "train", "small.yaml", "--steps", "1", "--device", f"pjrt:{PLUGIN}"], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def a_plugin_that_crashes_is_named():
    for where, number, doing in (("load", signal.SIGSEGV, "loading"), ("segv", signal.SIGSEGV, "opening"), ("abort", signal.SIGABRT, "opening")):
        done = crash(where)
        check(done.returncode == -number, f"{where}: it ends by its signal: {done.returncode}, {done.stderr}")
        said = f"crashed ({number.name}) while it was {doing}; try another version of it"
        check(f"the PJRT plug-in '{PLUGIN}'" in done.stderr and said in done.stderr, f"{where}: it is named: {done.stderr}")
        check(("(PJRT 0.99)" in done.stderr) == (where != "load"), f"{where}: so is its version, once known: {done.stderr}")


def so_is_one_whose_own_thread_crashes():
    done = crash("thread")
    check(done.returncode == -signal.SIGSEGV and f"the PJRT plug-in '{PLUGIN}' (PJRT 0.99) crashed (SIGSEGV); try" in done.stderr,
          f"by the address of the fault: {done.returncode}, {done.stderr}")


def a_signal_from_outside_is_nobodys():
    program = subprocess.Popen([STOKER, "train", "small.yaml", "--epochs", "1000000", "--quiet", "--out", "long"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        program.wait(timeout=1)
        check(False, f"it trains: {program.stderr.read()}")
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGSEGV)
        _, told = program.communicate()
        check(program.returncode == -signal.SIGSEGV and "crashed" not in told, f"ended by its signal: {program.returncode}, {told}")


def a_tpu_that_another_process_has_is_told():
    with open("libtpu_lockfile", "w"):
        held = crash("busy")
    place = os.path.realpath("libtpu_lockfile")
    check(held.returncode == 1 and "already in use by process with pid 7" in held.stderr, f"libtpu's own words: {held.returncode}, {held.stderr}")
    check(f"process {os.getpid()} (" in held.stderr and f"has '{place}' open: wait for its end" in held.stderr, f"who holds it: {held.stderr}")
    left = crash("busy")
    check("no process that can be seen from here has a TPU open" in left.stderr and "rm /tmp/libtpu_lockfile" in left.stderr,
          f"nobody does: {left.stderr}")


begin()
a_plugin_that_crashes_is_named()
so_is_one_whose_own_thread_crashes()
a_signal_from_outside_is_nobodys()
a_tpu_that_another_process_has_is_told()
end()
