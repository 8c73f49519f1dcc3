"""What the tests of the program share: a work folder, running `stoker`, and checks that say what they saw."""
import json
import os
import shutil
import subprocess
import sys

STOKER, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FAULTS = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None

RECIPE = """
name: small
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
  test:
    source: {images: digits/test}
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 20
model: {cnn: {widths: [4, 8]}}
optimizer: {adam: {lr: 0.003}}
epochs: 2
checkpoint: {every: 5 steps}
log: {every: 1 step}
"""

n_failed = 0
TIMEOUT = float(os.environ.get("STOKER_TEST_TIMEOUT", 120))  # seconds, for machines that are busy


def begin():
    """An empty work folder with generated digits and small.yaml, which becomes the working folder."""
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    os.chdir(WORK)
    os.environ.pop("STOKER_DATA", None)
    with open("small.yaml", "w") as f:
        f.write(RECIPE)
    done = run("get", "digits", "--out", "digits", "--train", "200", "--test", "40")
    if done.returncode != 0:
        sys.exit(f"cannot make digits: {done.stderr}")


def killed(at, under, *args, **env):
    """Runs stoker until its call number `at` that changes a file whose path begins with `under`: tests/faults/kills.h.
    Returns the exit code; the library is the test's third argument."""
    preload = f"{FAULTS}:{os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else FAULTS
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": asan, "STK_KILL_UNDER": os.path.abspath(under),
           "STK_KILL_AT": str(at), **env}
    done = subprocess.run([STOKER, *args], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT)
    return done.returncode


def can_kill():
    return FAULTS is not None


def end():
    os.chdir(os.path.dirname(WORK))
    if n_failed:
        sys.exit(f"{n_failed} checks failed")
    shutil.rmtree(WORK)
    print("all checks passed")


def run(*args, **options):
    return subprocess.run([STOKER, *args], capture_output=True, text=True, timeout=TIMEOUT, **options)


def losses(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [m["loss"] for m in map(json.loads, f) if m["kind"] == "step"]


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def refused(args, code, *parts, lines=1, **options):
    """The command ends with that code and says all parts on standard error, in one line."""
    done = run(*args, **options)
    text = done.stderr.rstrip("\n")
    ok = (done.returncode == code and text.startswith("stoker: ") and all(part in text for part in parts)
          and (lines is None or text.count("\n") < lines))
    check(ok, f"stoker {' '.join(args)}: exit code {done.returncode}, not {code}, or a wrong message: {text!r}")
    return done


def accepted(args, *parts, **options):
    done = run(*args, **options)
    text = done.stdout + done.stderr
    check(done.returncode == 0 and all(part in text for part in parts),
          f"stoker {' '.join(args)}: exit code {done.returncode}: {text!r}")
    return done
