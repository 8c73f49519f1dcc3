#!/usr/bin/env python3
"""Signals, closed descriptors, and output that nobody takes: what a run keeps, and what each verb says.

usage: test_signals.py STOKER WORK_FOLDER FAULTS_LIBRARY
"""
import glob
import json
import os
import resource
import signal
import subprocess
import sys
import time

from program import TIMEOUT, STOKER, accepted, begin, check, end, run

FAULTS = os.path.abspath(sys.argv[3])
LONG = ["train", "small.yaml", "--epochs", "100000"]
HOLD = "hold"


def wait_until(what, process):
    """Until it is true; false where the process ended before, or the time is up."""
    until = time.monotonic() + TIMEOUT
    while not what():
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def checkpoints(folder):
    return [name for name in glob.glob(f"{folder}/step-*[0-9]") if os.path.isdir(name)]


def start(folder, **options):
    """A long run that has saved a checkpoint, its standard error in FOLDER.err. While the file `hold` is there no file
    gets to its disk."""
    preload = f"{FAULTS}:{os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else FAULTS
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env = {**os.environ, "LD_PRELOAD": preload, "STK_HOLD_SYNC": os.path.abspath(HOLD), "ASAN_OPTIONS": asan}
    with open(f"{folder}.err", "w") as err, open(f"{folder}.out", "w") as out:
        process = subprocess.Popen([STOKER, *LONG, "--out", folder], stdout=out, stderr=err, env=env, **options)
    check(wait_until(lambda: checkpoints(folder), process), f"{folder}: no checkpoint: {read(folder + '.err')}")
    return process


def read(path):
    with open(path) as f:
        return f.read()


def told(folder, text, process):
    ok = wait_until(lambda: text in read(f"{folder}.err"), process)
    check(ok, f"{folder}: {text!r} is not in {read(folder + '.err')!r}")


def stop_twice(folder):
    """Asks twice while the disk does not answer. Two signals within a second are one: the third here is the second."""
    process = start(folder)
    open(HOLD, "w").close()
    process.send_signal(signal.SIGINT)
    told(folder, "stoker: finishing the step, then saving", process)
    process.send_signal(signal.SIGINT)  # quick
    time.sleep(1.1)
    check(process.poll() is None, f"{folder}: a quick second Ctrl-C ended the run: {process.returncode}")
    process.send_signal(signal.SIGINT)
    told(folder, f"once more gives that up and keeps '{folder}/step-", process)
    return process


def second_signal_keeps_saving():
    process = stop_twice("twice")
    os.remove(HOLD)
    check(process.wait(TIMEOUT) == 130, f"the second Ctrl-C: exit code {process.returncode}")
    last = read("twice.out").strip().splitlines()[-1]
    check(last.startswith("saved   twice/step-") and last.endswith("--resume"), f"it is saved and says how to go on: {last!r}")
    step = int(last.split(";")[0].split("-")[-1])
    accepted([*LONG, "--out", "twice", "--resume", "--steps", str(step + 1)], f"from step {step:,}")


def third_signal_gives_up():
    process = stop_twice("thrice")
    time.sleep(1.1)
    process.send_signal(signal.SIGINT)
    check(process.wait(TIMEOUT) == 130, f"the third Ctrl-C: exit code {process.returncode}")
    os.remove(HOLD)
    last = read("thrice.err").strip().splitlines()[-1]
    check(last.startswith("stoker: gave up saving; 'thrice/step-") and last.endswith("is kept"), f"it names what is kept: {last!r}")
    kept = last.split("'")[1]
    check(kept in checkpoints("thrice"), f"{kept} is not there: {checkpoints('thrice')}")
    step = max(int(name.split("-")[-1]) for name in checkpoints("thrice"))
    accepted([*LONG, "--out", "thrice", "--resume", "--steps", str(step + 1)], f"from step {step:,}")


def hangup_and_cpu_limit_save():
    for number in (signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1):
        folder = f"by-{number}"
        process = start(folder)
        process.send_signal(number)
        check(process.wait(TIMEOUT) == 128 + number, f"{folder}: exit code {process.returncode}")
        check("saved   " in read(f"{folder}.out"), f"{folder}: nothing was saved")


def inherited_ignoring_stays():
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = start("nohup", preexec_fn=ignore)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    size = os.path.getsize("nohup/metrics.jsonl")
    check(wait_until(lambda: os.path.getsize("nohup/metrics.jsonl") > size + 10000, process), "an ignored signal ended the run")
    process.send_signal(signal.SIGTERM)
    check(process.wait(TIMEOUT) == 128 + signal.SIGTERM, f"SIGTERM: exit code {process.returncode}")


# Of verbs that make files, too, where they are asked to print alone.
PRINTS = ["devices"], ["new", "--keys"], ["get", "--list"], ["pack", "--verify", "packed"]


# Under a limit as this, what a network so deep recomputes takes minutes to find out.
DEEP = """
data: {train: {source: {synthetic: {fields: {tokens: {shape: [256], below: 100}, targets: {shape: [256], below: 100}}}}}}
batch: 24
model: {gpt2: {vocabulary: 100, layers: 400, width: 64, heads: 4, length: 256}}
memory: 1200MiB
optimizer: {sgd: {lr: 0.1}}
epochs: 1
"""


def stopped_while_compiling():
    with open("deep.yaml", "w") as f:
        f.write(DEEP)
    process = subprocess.Popen([STOKER, "train", "deep.yaml", "--out", "deep"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    try:
        said, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    check(process.returncode == 143, f"SIGTERM while compiling: exit code {process.returncode}")
    check("stopping before the first step" in said and "nothing was saved" in said, f"it says so: {said!r}")


def closed_pipe():
    """`stoker train | head -1` trains on; `stoker new --keys | head -1` ends as `yes | head -1` does."""
    process = subprocess.Popen([STOKER, "train", "small.yaml", "--out", "pipe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read().decode()
    check(process.wait(TIMEOUT) == 0, f"train | head: exit code {process.returncode}: {err!r}")
    check("warning: not all that was to be printed" in err, f"train | head says so: {err!r}")
    check(os.path.exists("pipe/step-20") and os.path.exists("pipe/result.json"), "train | head trains to the end")
    check(subprocess.run([STOKER, "pack", "digits/test", "--out", "packed", "--quiet"]).returncode == 0, "a pack")
    gone, out = os.pipe()
    os.close(gone)
    done = subprocess.run([STOKER, "data", "show", "small.yaml", "--out", "sheet.png"], stdout=out, stderr=subprocess.PIPE,
                          timeout=TIMEOUT)
    check(done.returncode == 0 and b"warning: not all" in done.stderr and os.path.exists("sheet.png"),
          f"data show | head has made its file: {done.returncode} {done.stderr!r}")
    for args in PRINTS:
        done = subprocess.run([STOKER, *args], stdout=out, stderr=subprocess.PIPE, timeout=TIMEOUT)
        check(done.returncode == -signal.SIGPIPE and done.stderr == b"", f"{args} | head: {done.returncode} {done.stderr!r}")
    os.close(out)


def full_disk():
    with open("/dev/full", "w") as full:
        for args in (*PRINTS, ["--version"], ["--help"], ["train", "--help"], ["models"], ["plan", "small.yaml"]):
            done = subprocess.run([STOKER, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
            check(done.returncode == 1 and "cannot write to the output: No space" in done.stderr,
                  f"{args} > /dev/full: {done.returncode} {done.stderr!r}")
        done = subprocess.run([STOKER, "train", "small.yaml", "--out", "full"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=TIMEOUT)
        check(done.returncode == 0 and "warning: not all" in done.stderr and os.path.exists("full/result.json"),
              f"train > /dev/full: {done.returncode} {done.stderr!r}")


def closed_descriptors():
    """Files must not get the numbers of standard output and error, or prints would be in them."""
    def close():
        for fd in range(3):
            os.close(fd)

    args = ["train", "small.yaml", "--out", "closed"]
    code = subprocess.Popen([STOKER, *args], preexec_fn=close, close_fds=False).wait(TIMEOUT)
    check(code == 0, f"train without descriptors: exit code {code}")
    with open("closed/metrics.jsonl") as f:
        kinds = [json.loads(line)["kind"] for line in f]
    check(kinds.count("step") == 20 and kinds.count("epoch") == 2, f"metrics.jsonl is whole: {kinds}")
    for path in filter(os.path.isfile, glob.glob("closed/*")):
        check("images/s" not in read(path), f"prints are in {path}")
    code = subprocess.Popen([STOKER, "devices"], preexec_fn=close, close_fds=False).wait(TIMEOUT)
    check(code == 1, f"what is printed to a closed output is a failure: exit code {code}")


def processor_time():
    """The soft limit (ulimit -t) saves, the hard one kills."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (2, 30))

    process = start("limited", preexec_fn=limit)
    check(process.wait(TIMEOUT) == 128 + signal.SIGXCPU, f"ulimit -t: exit code {process.returncode}")
    check("saved   " in read("limited.out"), "ulimit -t: nothing was saved")


def other_verbs():
    """Ctrl-C leaves nothing half-made at the final name, and the exit code says what it was."""
    process = subprocess.Popen([STOKER, "get", "digits", "--train", "1000000", "--out", "half"], stdout=subprocess.PIPE,
                               text=True)
    check(wait_until(lambda: glob.glob(".stoker-tmp-*"), process), "get: it writes under a name of its own first")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=TIMEOUT)
    check(process.returncode == 130, f"get: Ctrl-C: exit code {process.returncode}")
    check(not os.path.exists("half"), "get: Ctrl-C left a folder that looks whole")
    check(not glob.glob(".stoker-tmp-*"), f"get: Ctrl-C removes what was made: {glob.glob('.stoker-tmp-*')}")
    check("nothing is kept of 'half'" in said and "same command" in said, f"get: and says so: {said!r}")
    process = subprocess.Popen([STOKER, "get", "prices", "--train", "10000000", "--out", "half"], stdout=subprocess.PIPE,
                               text=True)
    check(wait_until(lambda: glob.glob(".stoker-tmp-*"), process), "get: it writes under a name of its own first")
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=TIMEOUT)
    check(process.returncode == 143 and "nothing is kept of 'half'" in said, f"get prices: {process.returncode} {said!r}")
    check(not os.path.exists("half") and not glob.glob(".stoker-tmp-*"), "get prices: nothing is left")


def a_full_disk_names_what_was_asked_for():
    """Here of a limit of the size of files; what is written lies under a hidden name until it is whole."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    for name in "digits", "prices":
        done = subprocess.run([STOKER, "get", name, "--train", "50", "--test", "50", "--out", "parts/small"],
                              preexec_fn=limit, capture_output=True, text=True, timeout=TIMEOUT)
        check(done.returncode == 1 and "cannot write 'parts/small/" in done.stderr and ".stoker-tmp" not in done.stderr,
              f"get {name}: {done.returncode} {done.stderr!r}")
        check(not os.path.exists("parts"), f"get {name}: nothing is left")


begin()
for test in (second_signal_keeps_saving, third_signal_gives_up, hangup_and_cpu_limit_save, processor_time,
             inherited_ignoring_stays, stopped_while_compiling, closed_pipe, full_disk, closed_descriptors, other_verbs,
             a_full_disk_names_what_was_asked_for):
    test()
end()
