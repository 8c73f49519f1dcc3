#!/usr/bin/env python3
"""Ranks of a plain mpirun that hang: one that is stopped is named as a warning, and again once the others have waited long
enough, by the second rank where it is the first; one that is stopped again and again is named as slow. All at once.

usage: test_lookout.py STOKER WORK_FOLDER
"""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from program import RECIPE, STOKER, TIMEOUT, begin, check, end, losses, refused
from test_ranks import environment, ranks_of

WAIT_S = 6


class Job:
    """A training of two ranks, with the lines that it says."""

    def __init__(self, name, launcher):
        self.name, self.lines, self.all_said = name, [], threading.Event()
        self.process = subprocess.Popen([*launcher, "-n", "2", STOKER, "train", "long.yaml", "--threads", "1", "--out", name],
                                        env=environment(STOKER_RANKS_WAIT=str(WAIT_S)), text=True, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append((time.time(), line))

    def find(self, *parts):
        return [t for t, line in self.lines if all(part in line for part in parts)]

    def wait_for_line(self, *parts):
        begun = time.time()
        while not self.find(*parts) and time.time() - begun < TIMEOUT:
            time.sleep(0.05)
        check(self.find(*parts), f"{self.name}: no line with {parts}: {''.join(line for _, line in self.lines)}")

    def wait_for_step(self):
        begun = time.time()
        while time.time() - begun < TIMEOUT:
            if os.path.exists(f"{self.name}/metrics.jsonl") and len(losses(self.name)) > 10 and len(ranks_of(self.process)) == 2:
                return ranks_of(self.process)
            time.sleep(0.05)
        check(False, f"{self.name}: no steps")
        return ranks_of(self.process)

    def close(self):
        """All of it ends; a rank that is stopped goes on for that."""
        for pid in ranks_of(self.process):
            os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=TIMEOUT)
        self.reader.join()


def stop(job, rank):
    pid = job.wait_for_step()[rank]
    os.kill(pid, signal.SIGSTOP)
    job.wait_for_line("warning", f"rank {rank} on", f"process {pid}", "is stopped, and silent for", "all_reduce number")
    job.wait_for_line(f"rank {rank} (process {pid}) did not come", f"waited {WAIT_S * 1000} ms", f"; rank {rank} on", "is stopped")
    warned, ended = job.find("is stopped")
    check(warned < ended, f"{job.name}: {job.lines}")
    check(not job.find("is slow"), f"{job.name}: {job.lines}")


def slow_down(job):
    pid = job.wait_for_step()[1]
    begun = time.time()
    while not job.find("rank 1 on", "is slow") and time.time() - begun < TIMEOUT:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.36)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.04)
    check(job.find("warning", "rank 1 on", f"process {pid}", "is slow"), f"{job.name}: {job.lines}")


def main():
    launcher = ["mpirun.openmpi", "--oversubscribe"]
    if not shutil.which(launcher[0]):
        print("SKIP: there is no mpirun.openmpi (Debian: openmpi-bin)")
        sys.exit(77)
    begin()
    with open("long.yaml", "w") as f:
        f.write(RECIPE.replace("epochs: 2", "epochs: 100000").replace("every: 5 steps", "every: 1000000 steps"))
    jobs = [Job(name, launcher) for name in ("second", "first", "slow")]
    workers = [threading.Thread(target=stop, args=(jobs[0], 1)), threading.Thread(target=stop, args=(jobs[1], 0)),
               threading.Thread(target=slow_down, args=(jobs[2],))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for job in jobs:
        job.close()
    done = subprocess.run([*launcher, "-n", "2", STOKER, "train", "long.yaml", "--out", "no"], capture_output=True, text=True,
                          env=environment(STOKER_RANKS_WAIT="soon"), timeout=TIMEOUT)
    check(done.returncode != 0 and "STOKER_RANKS_WAIT must be seconds" in done.stderr, f"no seconds: {done.stderr}")
    # What is wrong with a recipe is said once, and no launcher is asked.
    refused(["train", "none.yaml", "--elastic", "2"], 1, "none.yaml")
    refused(["train", "long.yaml", "--elastic", "2", "--set", "batsh=3"], 1, "did you mean 'batch'")
    refused(["train", "none.yaml", "--hosts", "localhost:2"], 1, "none.yaml")
    refused(["train", "long.yaml", "--elastic", "1", "--ranks", "5", "--hosts", "a:2,b:2"], 2, "has room for 4 ranks, not for 5")
    end()


if __name__ == "__main__":
    main()
