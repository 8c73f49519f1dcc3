#!/usr/bin/env python3
"""Faults in elastic trainings, drawn by seed: what is named, how soon, and whether the losses are those of an unbroken run.

    ./dev faults --seeds 101 200     # goes on where it was ended; docs/faults.md gets the table of all that is done

usage: faults.py STOKER FOLDER [--seeds FIRST LAST] [--budget SECONDS] [--jobs N] [--table FILE]; disks that are full take root.
Each seed draws a fault, ranks, checkpoints and a moment. An unbroken run is one of replicas, in segments of as many as there
were ranks. FOLDER/results.jsonl has a line for each seed; what is there is not run again.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import statistics
import sys
import time

from machine import processor

RECIPE = """
name: faults
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
  test:
    source: {images: digits/test}
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 24
model: {cnn: {widths: [4, 8]}}
optimizer: {adam: {lr: 0.003}}
epochs: 100000
checkpoint: {every: EVERY steps}
log: {every: 1 step}
"""
# What is expected of a fault: the event that names it, whether the ranks start again.
KINDS = {"kill": ("gone", True), "kill two": ("gone", True), "stop": ("silent", True), "pause": (None, False),
         "stuck": ("stuck", True), "slow: stopped often": ("slow", False), "slow: no core": ("slow", False),
         "checkpoint damaged": ("gone", True), "memory full": ("gone", True), "disk full": (None, False),
         "launcher killed": (None, True), "supervisor killed": (None, False)}
NAMING = ("gone", "failed", "silent", "stuck", "together", "slow")
LIMIT_S = 120


def losses(folder):
    path = pathlib.Path(folder, "metrics.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []
    return [(m["step"], m["loss"]) for m in rows if m["kind"] == "step"]


def wait_until(is_so, limit_s=LIMIT_S):
    end = time.time() + limit_s
    while time.time() < end:
        if is_so():
            return True
        time.sleep(0.02)
    return False


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def small_disk(folder, bytes_):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={bytes_}", "faults", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def hold_thread(pid):
    """Stops the thread that trains, and no other one of that process, until the process that holds it ends."""
    code = ("import ctypes, sys, time\nc = ctypes.CDLL(None, use_errno=True)\np = int(sys.argv[1])\n"
            "if c.ptrace(0x4206, p, None, None) or c.ptrace(0x4207, p, None, None): sys.exit(1)\n"
            "print('held', flush=True)\ntime.sleep(600)\n")
    holder = subprocess.Popen([sys.executable, "-c", code, str(pid)], stdout=subprocess.PIPE, text=True)
    if holder.stdout.readline() != "held\n":
        raise RuntimeError("cannot hold a thread: ptrace")
    return holder


class Run:
    def __init__(self, stoker, work, seed):
        draw = random.Random(seed)
        self.stoker, self.seed, self.folder = stoker, seed, work / str(seed)
        self.kind = draw.choice(list(KINDS))
        self.n = draw.choice((2, 3, 4))
        self.every = draw.choice((5, 20, 100))
        self.memory = draw.random() < 0.5 and self.kind not in ("checkpoint damaged", "memory full")
        self.wait_s = draw.uniform(0, 2.5)
        if self.kind.startswith("slow"):
            self.n = 2
        if self.kind == "kill two":
            self.n = max(self.n, 3)
        self.victim = draw.randrange(self.n)
        self.second = (self.victim + 1 + draw.randrange(self.n - 1)) % self.n
        self.pause_s = draw.uniform(0.5, 1.8)
        self.events, self.fault_time, self.helpers = [], None, []

    def start(self, disks):
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "memory").mkdir(parents=True)
        if self.kind == "disk full":
            disks.enter_context(small_disk(self.folder / "run", "8m"))
        if self.kind == "memory full":
            disks.enter_context(small_disk(self.folder / "memory", "64k"))
        (self.folder / "run.yaml").write_text(RECIPE.replace("EVERY", str(self.every)).replace("digits/", f"{self.folder.parent}/digits/"))
        memory = str(self.folder / "memory") if self.memory or self.kind == "memory full" else "off"
        self.process = subprocess.Popen(
            [self.stoker, "train", "run.yaml", "--elastic", "1", "--ranks", str(self.n), "--threads", "1", "--stuck", "10",
             "--json", "--out", "run"], cwd=self.folder, text=True, stdout=open(self.folder / "events", "w"),
            stderr=open(self.folder / "errors", "w"),
            env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "STOKER_ELASTIC_MEMORY": memory})

    def look(self):
        text = (self.folder / "events").read_text()
        self.events = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        return self.events

    def stepping(self):
        return [e for e in self.look() if e["event"] == "stepping"]

    def named(self):
        return [e for e in self.look() if e["event"] in NAMING]

    # --- faults ---

    def signal(self, rank, number):
        os.kill(self.pids[rank], number)

    def stop_often(self):
        while not self.named() and time.time() - self.fault_time < 25 and alive(self.pids[self.victim]):
            self.signal(self.victim, signal.SIGSTOP)
            time.sleep(0.3)
            self.signal(self.victim, signal.SIGCONT)
            time.sleep(0.1)

    def take_core(self):
        for task in os.listdir(f"/proc/{self.pids[self.victim]}/task"):
            os.sched_setaffinity(int(task), {0})
        burn = "import os\nos.sched_setaffinity(0, {0})\nwhile True: pass"
        self.helpers += [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(6)]
        wait_until(self.named, 25)

    def damage(self):
        for path in sorted(glob.glob(str(self.folder / "run/step-*/*.safetensors")), key=os.path.getmtime)[-2:]:
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 2)
                f.write(b"damaged!")
        self.signal(self.victim, signal.SIGKILL)

    def fill_disk(self):
        with open(self.folder / "run/filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(bytes(65536)):
                pass
        wait_until(lambda: "no space left" in (self.folder / "errors").read_text().lower(), 20)

    def do_fault(self):
        self.pids = self.stepping()[0]["pids"]
        self.launcher = [e for e in self.events if e["event"] == "start"][0]["launcher"]
        if self.kind in ("checkpoint damaged", "disk full"):
            wait_until(lambda: glob.glob(str(self.folder / "run/step-*/manifest.json")), 30)
        time.sleep(self.wait_s)
        self.fault_time = time.time()
        if self.kind in ("kill", "memory full"):
            self.signal(self.victim, signal.SIGKILL)
        elif self.kind == "kill two":
            self.signal(self.victim, signal.SIGKILL)
            self.signal(self.second, signal.SIGKILL)
        elif self.kind == "stop":
            self.signal(self.victim, signal.SIGSTOP)
        elif self.kind == "pause":
            self.signal(self.victim, signal.SIGSTOP)
            time.sleep(self.pause_s)
            self.signal(self.victim, signal.SIGCONT)
            time.sleep(3)
        elif self.kind == "stuck":
            self.helpers.append(hold_thread(self.pids[self.victim]))
        elif self.kind == "slow: stopped often":
            self.stop_often()
        elif self.kind == "slow: no core":
            self.take_core()
        elif self.kind == "checkpoint damaged":
            self.damage()
        elif self.kind == "disk full":
            self.fill_disk()
        elif self.kind == "launcher killed":
            os.kill(self.launcher, signal.SIGKILL)
        else:
            self.process.kill()

    # --- what became of it ---

    def unbroken(self, segments):
        begun = 0
        for n, until in segments:
            if until > begun:
                subprocess.run([self.stoker, "train", "run.yaml", "--replicas", str(n), "--threads", str(n), "--steps", str(until),
                                "--resume", "--out", "unbroken"], cwd=self.folder, capture_output=True, timeout=LIMIT_S, check=True)
            begun = max(begun, until)
        return losses(self.folder / "unbroken")

    def resume(self, more):
        """The run goes on without a supervisor. The step behind which it did."""
        saved = [int(p.rpartition("-")[2]) for p in glob.glob(str(self.folder / "run/step-*")) if os.path.isdir(p)]
        begun = max(saved, default=0)
        done = subprocess.run([self.stoker, "train", "run.yaml", "--replicas", "1", "--threads", "1", "--steps", str(begun + more),
                               "--resume", "--out", "run"], cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            raise RuntimeError(f"it does not go on: {done.stderr}")
        return begun

    def finish(self):
        """Ends the run, and returns its segments."""
        wants_restart = KINDS[self.kind][1]
        if self.kind == "supervisor killed":
            wait_until(lambda: not any(map(alive, [*self.pids, self.launcher])), 30)
            self.ended_s = time.time() - self.fault_time
            begun = self.resume(20)
            return [(self.n, begun), (1, begun + 20)]
        if wants_restart and not wait_until(lambda: len(self.stepping()) > 1 or self.process.poll() is not None, 60):
            raise RuntimeError("no second life within a minute")
        for helper in self.helpers:
            helper.kill()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LIMIT_S)
        self.look()
        if self.kind == "disk full":
            (self.folder / "run/filler").unlink()
            begun = self.resume(20)
            return [(self.n, begun), (1, begun + 20)]
        lives = self.stepping()
        ends = [e["resumed_step"] for e in lives[1:]] + [max((step for step, _ in losses(self.folder / "run")), default=0)]
        return [(e["ranks"], end) for e, end in zip(lives, ends)]

    def judge(self, row):
        expected, restarts = KINDS[self.kind]
        named = self.named()
        row["named"] = [(e["event"], e.get("rank")) for e in named]
        victims = {self.victim, self.second} if self.kind == "kill two" else {self.victim}
        first = named[0] if named else None
        row["right"] = (first["event"] == expected and first["rank"] in victims if expected and first else not expected and not first)
        if self.kind == "disk full":
            row["right"] = "no space left" in (self.folder / "errors").read_text().lower()
        elif self.kind == "supervisor killed":
            row["right"], row["ended_s"] = self.ended_s < 15, round(self.ended_s, 2)
        lives = self.stepping()
        if first:
            row["detected_s"] = round(first["time"] - self.fault_time, 2)
        if restarts and len(lives) > 1:
            row["again_s"], row["from"] = round(lives[1]["time"] - self.fault_time, 2), lives[1]["from"]
        row["right"] = row["right"] and (len(lives) > 1) == restarts

    def run(self):
        row = {"seed": self.seed, "kind": self.kind, "ranks": self.n, "victim": self.victim, "every": self.every, "memory": self.memory}
        try:
            with contextlib.ExitStack() as disks:
                self.start(disks)
                if not wait_until(lambda: self.stepping() or self.process.poll() is not None) or not self.stepping():
                    raise RuntimeError("it does not come to a step")
                self.do_fault()
                segments = self.finish()
                self.judge(row)
                got, want = losses(self.folder / "run"), self.unbroken(segments)
                row["steps"], row["same"] = len(got), got == want
        except (RuntimeError, OSError, subprocess.SubprocessError, KeyError, IndexError) as e:
            row.update(right=False, same=False, error=f"{type(e).__name__}: {e}"[:500])
        finally:
            self.clean()
        if row.get("right") and row.get("same"):
            shutil.rmtree(self.folder, ignore_errors=True)
        return row

    def clean(self):
        for helper in self.helpers:
            helper.kill()
            helper.wait()
        process = getattr(self, "process", None)
        if process and process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
        for pid in getattr(self, "pids", []):
            if alive(pid) and "stoker" in pathlib.Path(f"/proc/{pid}/comm").read_text():
                os.kill(pid, signal.SIGKILL)


# --- all of them ---

def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def seconds(values):
    return f"{statistics.median(values):.1f} / {percentile(values, 0.9):.1f}" if values else ""


def table(rows):
    lines = ["| Fault | runs | named rightly | named after, s | steps again after, s | same losses |", "|---|---:|---:|---:|---:|---:|"]
    for kind in [*KINDS, "all"]:
        of = [r for r in rows if kind in (r["kind"], "all")]
        if not of:
            continue
        right, same = sum(bool(r["right"]) for r in of), sum(bool(r["same"]) for r in of)
        lines.append(f"| {kind} | {len(of)} | {right} | {seconds([r['detected_s'] for r in of if 'detected_s' in r])} | "
                     f"{seconds([r['again_s'] for r in of if 'again_s' in r])} | {same} |")
    return "\n".join(lines) + "\n"


def write_table(path, rows):
    """Between the marks of the page."""
    page, begin, end = pathlib.Path(path), "<!-- faults: begin -->\n", "<!-- faults: end -->"
    text = page.read_text()
    head, rest = text.split(begin)
    seeds = [r["seed"] for r in rows]
    said = f"{processor()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}; {len(rows)} seeds of {min(seeds)} to {max(seeds)}; median / 90 % of times.\n\n"
    wrong = [f"- seed {r['seed']}, {r['kind']}, victim {r['victim']} of {r['ranks']}: named {r.get('named')}, same losses {r['same']}"
             f"{', ' + r['error'] if 'error' in r else ''}\n" for r in rows if not (r["right"] and r["same"])]
    page.write_text(head + begin + said + table(rows) + ("\nNot as expected:\n\n" + "".join(wrong) if wrong else "") + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stoker")
    parser.add_argument("folder")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 20))
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table")
    args = parser.parse_args()
    work = pathlib.Path(args.folder).absolute()
    work.mkdir(parents=True, exist_ok=True)
    stoker, results, begun = os.path.abspath(args.stoker), work / "results.jsonl", time.time()
    if not (work / "digits").exists():
        subprocess.run([stoker, "get", "digits", "--out", work / "digits", "--train", "480", "--test", "40"], check=True,
                       stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {r["seed"] for r in rows}
    runs = [Run(stoker, work, seed) for seed in range(args.seeds[0], args.seeds[1] + 1) if seed not in done]
    if os.geteuid() != 0:
        print("SKIP: full disks are small ones that root mounts")
        runs = [r for r in runs if not r.kind.endswith("full")]

    def run_one(run):
        if time.time() - begun > args.budget:
            return
        row = run.run()
        rows.append(row)
        with open(results, "a") as f:
            f.write(json.dumps(row) + "\n")
        print(("ok     " if row["right"] and row["same"] else "WRONG  ") + json.dumps(row), flush=True)

    # What is slow must be so among ranks that have their cores: one at a time.
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run_one, [r for r in runs if not r.kind.startswith("slow")]))
    for run in runs:
        if run.kind.startswith("slow"):
            run_one(run)
    chosen = [r for r in rows if args.seeds[0] <= r["seed"] <= args.seeds[1]]
    print(table(chosen))
    if args.table and chosen:
        write_table(args.table, sorted(chosen, key=lambda r: r["seed"]))
    sys.exit(any(not (r["right"] and r["same"]) for r in chosen))


if __name__ == "__main__":
    main()
