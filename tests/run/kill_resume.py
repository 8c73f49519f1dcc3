#!/usr/bin/env python3
"""Kills `stoker train` with SIGKILL at random moments and resumes it each time: the losses must equal those of a run that
was never killed, digit by digit, and every checkpoint must be readable.

usage: kill_resume.py STOKER WORK_FOLDER [KILLS]
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

RECIPE = """
name: kill-resume
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {random_crop: {size: 28, pad: 2}}, {normalize: mnist}]
  test:
    source: {images: digits/test}
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 32
model: {cnn: {widths: [4, 8], classes: 10}}
optimizer: {adam: {lr: 0.002}}
schedule: {cosine: {warmup: 1}}
epochs: 4
seed: 3
checkpoint: {every: 7 steps}
log: {every: 1 steps}
"""


def losses(folder):
    """Step -> loss as written; a step must never be logged with two different losses."""
    found = {}
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        for line in f:
            record = json.loads(line)
            if "step" in record and "epoch_end" not in record and record.get("kind", "step") == "step":
                step, loss = record["step"], record["loss"]
                if found.get(step, loss) != loss:
                    sys.exit(f"step {step} is logged twice with different losses")
                found[step] = loss
    return found


def main():
    stoker, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "r.yaml"), "w") as f:
        f.write(RECIPE)
    subprocess.run([stoker, "get", "digits", "--out", "digits", "--train", "2000", "--test", "200"], cwd=work,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    train = [stoker, "train", "r.yaml", "--quiet", "--out"]
    start = time.monotonic()
    subprocess.run(train + ["whole"], cwd=work, check=True)
    whole_s = time.monotonic() - start
    want = losses(os.path.join(work, "whole"))

    rng, done = random.Random(1), 0
    while done < kills:
        run = subprocess.Popen(train + ["killed", "--resume"], cwd=work, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        time.sleep(rng.uniform(0.0, 0.5 * whole_s))
        run.send_signal(signal.SIGKILL)
        text = run.communicate()[0].decode()
        check_readable(text, done)
        if run.returncode == 0:  # it finished first: go on with a fresh run
            compare(want, losses(os.path.join(work, "killed")))
            shutil.rmtree(os.path.join(work, "killed"))
            continue
        if run.returncode != -signal.SIGKILL:
            sys.exit(f"resuming failed after {done} kills with exit code {run.returncode}: {text}")
        done += 1
    last = subprocess.run(train + ["killed", "--resume"], cwd=work, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    check_readable(last.stdout.decode(), done)
    compare(want, losses(os.path.join(work, "killed")))
    with open(os.path.join(work, "whole", "result.json")) as a, open(os.path.join(work, "killed", "result.json")) as b:
        a, b = json.load(a), json.load(b)
    if (a["test_loss"], a["test_accuracy"]) != (b["test_loss"], b["test_accuracy"]):
        sys.exit(f"test results differ: {a['test_loss']} and {b['test_loss']}")
    shutil.rmtree(work)
    print(f"{done} kills, {len(want)} steps: every loss is the same")


def check_readable(text, n_kills):
    """A checkpoint that cannot be read is passed over with a warning, and the losses are the same in spite of it."""
    if "passed over" in text:
        sys.exit(f"a checkpoint is not readable after {n_kills} kills: {text}")


def compare(want, have):
    for step in want:
        if want[step] != have.get(step):
            sys.exit(f"step {step}: loss {want[step]} without kills, {have.get(step)} with")


main()
