#!/usr/bin/env python3
"""Kills `stoker train` with SIGKILL in the middle of some call that writes its folder, and resumes it each time: the losses
must equal those of a run that was never killed, digit by digit, and every checkpoint must be readable. Which call it is is
counted by a library that is loaded first; without it (sanitizers of threads) moments are random.

usage: kill_resume.py STOKER WORK_FOLDER [KILLS [FAULTS_LIBRARY]]
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


class Killer:
    """Starts commands that are killed while they write below a folder."""

    def __init__(self, work, faults):
        self.work, self.faults, self.rng = work, faults, random.Random(1)

    def env(self, **more):
        preload = f"{self.faults}:{os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else self.faults
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": asan, **more}

    def measure(self, command, folder):
        """Runs it to its end; what it takes is what kills are spread over."""
        count, start = os.path.join(self.work, "count"), time.monotonic()
        more = {"STK_KILL_UNDER": folder, "STK_KILL_COUNT": count}
        subprocess.run(command, cwd=self.work, check=True, env=self.env(**more) if self.faults else None)
        self.most_s = 0.5 * (time.monotonic() - start)
        if self.faults:
            with open(count) as f:
                self.most = int(f.read()) // 2
            if self.most < 50:
                sys.exit(f"only {self.most} calls that write '{folder}' were counted")

    def run(self, command, folder):
        """(exit code, text)"""
        more = {}
        if self.faults:
            more = self.env(STK_KILL_UNDER=folder, STK_KILL_AT=str(self.rng.randint(1, self.most)))
        run = subprocess.Popen(command, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=more or None)
        if not self.faults:
            time.sleep(self.rng.uniform(0.0, self.most_s))
            run.send_signal(signal.SIGKILL)
        text = run.communicate()[0].decode()
        return run.returncode, text


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
    killer = Killer(work, os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None)
    killer.measure(train + ["whole"], "whole")
    want = losses(os.path.join(work, "whole"))

    done = 0
    while done < kills:
        code, text = killer.run(train + ["killed", "--resume"], "killed")
        check_readable(text, done)
        if code == 0:  # it finished first: go on with a fresh run
            compare(want, losses(os.path.join(work, "killed")))
            shutil.rmtree(os.path.join(work, "killed"))
            continue
        if code != -signal.SIGKILL:
            sys.exit(f"resuming failed after {done} kills with exit code {code}: {text}")
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
