#!/usr/bin/env python3
"""What watching costs the watched: a job on all cores does the same work in stretches of a tenth of a second, and `stoker watch`,
attached to it, is stopped (SIGSTOP) and let go on in turn. Neighbouring stretches make a pair; the median of their ratios
counts. Four jobs: with 16 threads that doze besides, with 1,500, and with 300 processes; and one whose threads are OpenMP's, which
are stopped to be asked where they are, most often in the first minute: it is watched anew before that is over. ./dev doctor-overhead runs it; it goes on
where it stopped, until the medians are known well enough.

usage: overhead.py BUILD [--budget SECONDS] [--within PERCENT] [--again] [--table FILE] [--beside PY-SPY]

The job's time on cores is compared, which other programs change little. What watching takes itself is added to it, as though
all of it came from the job. Pairs are kept in BUILD/doctor-overhead.jsonl. --beside: the first job is watched by py-spy in stretches
of its own, in the same run, and what both take is told.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
from machine import machine  # noqa: E402: the path comes first

# A line in: one stretch of N rounds; a line out: seconds on the clock, and on cores. Besides there are threads or processes that
# sleep and wake, as frameworks and their data workers have; all of them together wake 320 times a second, however many they are.
JOB = """
import os, sys, threading, time, zlib
n_cores, n_threads, n_processes = map(int, sys.argv[1:])
block, large = b"some text " * 20000, bytes(8 << 20)
def work(n):
    for _ in range(n):
        zlib.compress(block, 6)
        zlib.crc32(large)
own = os.getpid()
def doze(parent):
    while os.getppid() == parent:
        time.sleep((n_threads + n_processes) / 320)
for _ in range(n_processes):
    if os.fork() == 0:
        os.close(0)
        doze(own)
        os._exit(0)
for _ in range(n_threads):
    threading.Thread(target=doze, args=(os.getppid(),), daemon=True).start()
for line in sys.stdin:
    threads = [threading.Thread(target=work, args=(int(line),)) for _ in range(n_cores)]
    begin, cpu = time.perf_counter(), time.process_time()
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(time.perf_counter() - begin, time.process_time() - cpu, flush=True)
"""
# Short, so that what other programs do to the cores is the same in both of a pair. What the watcher would have read while it was
# stopped it reads when it goes on, up to twice as often as it would in the same time otherwise: what is found is rather too much.
STRETCH_S = 0.1
# Threads and processes that doze, by the name that a job has.
OPENMP = "threads of OpenMP, in the first minute"
CROWDS = {"16 threads": (16, 0), "1,500 threads": (1500, 0), "300 processes": (0, 300), OPENMP: (0, 0)}
ANEW_S = 50


class Job:
    def __init__(self, build, crowd):
        command = [sys.executable, "-c", JOB, str(os.cpu_count()), *map(str, CROWDS[crowd])]
        if crowd == OPENMP:
            command = [f"{build}/overhead-job"]
            subprocess.run(["cc", "-O2", "-fopenmp", f"{HERE}/overhead_job.c", "-o", command[0]], check=True)
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def run(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()[:2]]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def cpu_s(pid):
    """Of all of a process's threads, to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
            total += int(f.read().split()[0])
    return total * 1e-9


def measure_pair(job, watch, n, watched_first):
    out = {}
    for watched in (watched_first, not watched_first):
        watch.send_signal(signal.SIGCONT if watched else signal.SIGSTOP)
        before = cpu_s(watch.pid)
        wall, cpu = job.run(n)
        word = "watched" if watched else "alone"
        out[word], out[f"{word}_wall"] = cpu, wall
        if watched:
            out["watch"] = cpu_s(watch.pid) - before
    return out


def compare(job, watch, py_spy, n, seconds):
    """Stretches in turn: alone, watched by one, and by the other. What each took of a core, and of the job's time on cores."""
    spy = subprocess.Popen([py_spy, "record", "--nonblocking", "--rate", "10", "--duration", "100000", "--format", "raw",
                            "--output", os.devnull, "--pid", str(job.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    others, takes, longer = {"stoker watch": watch, "py-spy": spy}, {}, {}
    try:
        time.sleep(2)
        end = time.time() + seconds
        while time.time() < end:
            times = {}
            for name in [None, *others] if len(takes.get("py-spy", [])) % 2 else [*others, None]:
                for other, process in others.items():
                    process.send_signal(signal.SIGCONT if other == name else signal.SIGSTOP)
                before = cpu_s(others[name].pid) if name else 0
                wall, times[name] = job.run(n)
                if name:
                    takes.setdefault(name, []).append((cpu_s(others[name].pid) - before) / wall)
            for name in others:
                longer.setdefault(name, []).append(times[name] / times[None] - 1)
    finally:
        spy.send_signal(signal.SIGCONT)
        spy.kill()
        spy.wait()
        watch.send_signal(signal.SIGCONT)
    own = {name: 100 * sum(values) / len(values) for name, values in takes.items()}
    version = subprocess.run([py_spy, "--version"], capture_output=True, text=True).stdout.split()[-1]
    return (f"In one run next to py-spy {version} (`record --nonblocking`, ten times a second), on {machine()}: watching takes "
            f"{own['stoker watch']:.2f} % of one core\nand py-spy {own['py-spy']:.2f} %, which is {own['py-spy'] / own['stoker watch']:.1f} "
            f"times as much; the job takes {100 * median(longer['stoker watch']):+.2f} % and {100 * median(longer['py-spy']):+.2f} % of time\n"
            f"on cores ({len(longer['py-spy'])} stretches of each).")


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def interval(values):
    """Of the median, 95 %, by drawing again."""
    draw = random.Random(1)
    middles = sorted(median(draw.choices(values, k=len(values))) for _ in range(1000))
    return middles[25], middles[974]


def costs(pairs):
    """Per cent of the job's time: what the job's own work takes longer, and the same with the watcher's time; and that of one core.
    The watcher's is a mean: of many threads it reads seldom and then long, so that most stretches have none of it."""
    longer = [100 * (p["watched"] / p["alone"] - 1) for p in pairs]
    own = 100 * sum(p["watch"] for p in pairs) / sum(p["watched_wall"] for p in pairs)
    return longer, [a + own / os.cpu_count() for a in longer], own


def table(pairs):
    """Of the jobs that have pairs."""
    lines = [f"On all cores of {machine()}:", "",
             "| The job has | Its time on cores while it is watched | Watching takes of one core | Together, of the job's speed | "
             "95 % interval | Pairs |", "|---|---:|---:|---:|---:|---:|"]
    for crowd, of in pairs.items():
        if not of:
            continue
        longer, whole, own = costs(of)
        low, high = interval(whole)
        lines.append(f"| {crowd} | {median(longer):+.2f} % | {own:.2f} % | {median(whole):+.2f} % | {low:+.2f} to {high:+.2f} % | {len(of)} |")
    return "\n".join(lines)


def is_known(pairs, within):
    """Asked of every 20th only, as it takes as long as a pair."""
    if len(pairs) < 20 or len(pairs) % 20:
        return False
    low, high = interval(costs(pairs)[1])
    return high - low <= 2 * within


class Watched:
    """A job, and stoker watch attached to it."""

    def __init__(self, build, crowd):
        self.build, self.crowd = build, crowd

    def __enter__(self):
        self.job = Job(self.build, self.crowd)
        self.job.run(10)
        self.watch = subprocess.Popen([f"{self.build}/stoker-watch", "--quiet", "--pid", str(self.job.pid)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        time.sleep(2)  # the first looks take longest
        self.rounds = max(1, int(50 * STRETCH_S / self.job.run(50)[1] * os.cpu_count()))
        return self

    def __exit__(self, *_):
        self.watch.send_signal(signal.SIGCONT)
        self.watch.terminate()
        self.watch.wait()
        self.job.end()


def measure_some(build, crowd, of, may_go_on, kept):
    """Pairs of one job and its watcher."""
    with Watched(build, crowd) as w:
        end = time.time() + (ANEW_S if crowd == OPENMP else float("inf"))
        while time.time() < end and may_go_on():
            of.append({"machine": machine(), "crowd": crowd, **measure_pair(w.job, w.watch, w.rounds, len(of) % 2 == 0)})
            kept.write(json.dumps(of[-1]) + "\n")
            kept.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--budget", type=float, default=300, help="begins no pair of a job after N seconds")
    parser.add_argument("--within", type=float, default=0.25, help="ends where the median is known that well, in per cent")
    parser.add_argument("--again", action="store_true", help="forgets earlier pairs")
    parser.add_argument("--beside", help="py-spy, which watches the same job in turn")
    parser.add_argument("--table", help="a file with the lines <!-- overhead --> and <!-- end overhead --> to write between")
    args = parser.parse_args()
    if args.beside:
        with Watched(args.build, "16 threads") as w:
            print(compare(w.job, w.watch, args.beside, w.rounds, args.budget))
        return
    path, pairs = f"{args.build}/doctor-overhead.jsonl", {crowd: [] for crowd in CROWDS}
    if os.path.exists(path) and not args.again:
        with open(path) as f:
            for row in map(json.loads, f):
                if row.get("machine") == machine():
                    pairs[row["crowd"]].append(row)
    with open(path, "w" if args.again else "a") as kept:
        for crowd, of in pairs.items():
            if is_known(of, args.within):
                continue
            begin = time.time()
            while time.time() - begin < args.budget and not is_known(of, args.within):
                measure_some(args.build, crowd, of, lambda: time.time() - begin < args.budget and not is_known(of, args.within), kept)
    if not any(pairs.values()):
        sys.exit("no pair was measured: give it a --budget of a few seconds more")
    text = table(pairs)
    print(text)
    for crowd, of in pairs.items():
        if not is_known(of, args.within):
            print(f"with {crowd} not within {args.within} % yet: run it again, and it goes on")
    if args.table:
        with open(args.table) as f:
            head, rest = f.read().split("<!-- overhead -->\n")
        with open(args.table, "w") as f:
            f.write(f"{head}<!-- overhead -->\n{text}\n<!-- end overhead -->" + rest.split("<!-- end overhead -->")[1])


if __name__ == "__main__":
    main()
