#!/usr/bin/env python3
"""Whether `stoker bench` is right: commands with a planted difference, which it must tell or not; intervals, which must hold the
long-run value as often as they say; and disturbances, which it must name. ./dev bench-truth runs it; it goes on where it stopped.

usage: bench_truth.py BUILD [--budget SECONDS] [--only differences|coverage|spoilers|beside|inside] [--again] [--table FILE]
STOKER_TORCH: a Python with PyTorch, whose training is timed alone and inside stoker bench (inside); STOKER_DATA: with mnist/.

Trials are drawn in one fixed order, so that those of an unfinished table are as good as any others. They are kept in
BUILD/bench-truth.jsonl, with what they were measured with: after a change of the program or the machine it begins anew.
"""
import argparse
import hashlib
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from machine import machine
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "watch"))
import meter  # noqa: E402: the path comes first

SHARES, KINDS = (0, 0.01, 0.02, 0.05, 0.1), ("work", "sleep")
N_EACH, N_BLOCKS, N_BLOCK, N_SPOILERS, N_BESIDE, N_NVBENCH, N_INSIDE = 25, 10, 20, 20, 20, 6, 20
SPOILERS = ("nothing", "neighbour", "quota", "clock", "cold", "gpu_slow")
COVERED = ("print", "scatter", "work")
RUN_MS, SHORT_MS = 40, 25  # of a run; of those whose difference is told, so that all of it takes half an hour


def all_trials():
    trials = [("difference", share, kind, i) for share in SHARES for kind in KINDS for i in range(N_EACH)]
    trials += [("coverage", kind, i) for kind in COVERED for i in range(N_BLOCKS)]
    trials += [("spoiler", name, i) for name in SPOILERS for i in range(N_SPOILERS)]
    trials += [("beside", "hyperfine", i) for i in range(N_BESIDE)]
    random.Random(1).shuffle(trials)
    # Long ones, behind the others.
    return trials + [("beside", "nvbench", i) for i in range(N_NVBENCH)] + [("inside", "torch", i) for i in range(N_INSIDE)]


class Bench:
    """Runs the program, and gives the result.json."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        self.planted = f"{self.build}/bench/bench_planted"
        ms = float(subprocess.run([self.planted, "400"], capture_output=True, text=True, check=True).stdout.split()[0])
        self.start_s = None
        self.rounds, self.short = max(1, round(400 * RUN_MS / ms)), max(1, round(400 * SHORT_MS / ms))

    def share_of(self, share, whole_s):
        """Of a run's whole time, what is planted as a share of its work: starting a process takes the rest."""
        if self.start_s is None:
            r = self.run("--runs", "30", "--most-runs", "30", "--count-marked", "--", self.planted, "0")
            self.start_s = r["cases"][0]["summary"]["median"]["value"]
        return share * (1 - self.start_s / whole_s)

    def run(self, *args, env=None):
        out = f"{self.folder}/result"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([f"{self.build}/stoker", "bench", "--quiet", "--json", "--out", out, *args], capture_output=True,
                              text=True, env={**os.environ, **(env or {})})
        if done.returncode:
            sys.exit(f"stoker bench {' '.join(args)}: {done.stderr}")
        return json.loads(done.stdout)


def try_difference(bench, share, kind, i):
    """Which of the two is the slower one changes, and so does the order of the pairs."""
    plain, planted = f"{bench.planted} {bench.short}", f"{bench.planted} {bench.short} {share} {kind}"
    first, second = (plain, planted) if i % 2 else (planted, plain)
    r = bench.run("--seconds", "8", "--most-runs", "70", "--seed", str(i), "--compare", first, "--with", second)
    c = r["comparisons"][0]
    share = bench.share_of(share, r["cases"][0 if i % 2 else 1]["summary"]["median"]["value"])
    return {"verdict": c["verdict"], "right": "worse" if i % 2 else "better", "low": c["change"]["low"], "high": c["change"]["high"],
            "pairs": c["pairs"], "disturbed": r["disturbed"], "true": share if i % 2 else 1 / (1 + share) - 1}


def try_coverage(bench, kind, i):
    """print: figures that a command prints scatter by 5 % around 20. scatter: so do the times that it sleeps. work: nothing but the
    machine's own noise. Measurings right after each other, since the machine is another one after some minutes."""
    command = [bench.planted, str(bench.short)] if kind == "work" else [bench.planted, "200", "0.05", kind]
    pattern = ["--pattern", "([0-9.]+) ms", "--unit", "ms"] if kind == "print" else []
    block = []
    for k in range(N_BLOCK):
        r = bench.run("--seconds", "20", "--runs", "15", "--most-runs", "15", "--seed", str(N_BLOCK * i + k), *pattern, "--", *command)
        case = r["cases"][0]
        m = case["summary"]["median"]
        block.append({"low": m["low"], "high": m["high"], "figures": [x["figure"] for x in case["runs"] if x["counted"]],
                      "disturbed": r["disturbed"]})
    return block


class Entropy:
    """NVBench's criterion of that name (nvbench/detail/entropy_criterion.cxx): equal times are counted, and it ends when a line
    through the last 299 entropies rises by no more than 0.048 degrees a run and explains 36 % of their variance."""

    def __init__(self):
        self.counts, self.entropies = {}, []

    def add(self, x):
        self.counts[x] = self.counts.get(x, 0) + 1
        n = sum(self.counts.values())
        self.entropies.append(-sum(c / n * math.log2(c / n) for c in self.counts.values()))

    def ends(self):
        y = self.entropies[-299:]
        if len(y) < 2 or len(self.entropies) % 2:
            return False
        slope, _ = statistics.linear_regression(range(len(y)), y)
        share = statistics.correlation(range(len(y)), y) ** 2 if len(set(y)) > 1 else 1
        return math.degrees(math.atan(slope)) <= 0.048 and share >= 0.36


def nvbench(command):
    """Its loop: 10 runs and half a second at least, 15 s at most; clocks step by half a microsecond, as those of CUDA's events do.
    Its intervals (docs/nvbench_compare_robust.md, statistics.cuh): from the fastest to the third quartile around the median; where
    quartiles are missing, a standard deviation on both sides of the mean, which is the noise that it prints. Neither becomes
    narrower with more runs. A standard error, which does, is none of its figures."""
    times, entropy, begin = [], Entropy(), time.time()
    while time.time() - begin < 15:
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(round((time.perf_counter() - start) * 2e6) / 2e6)
        entropy.add(times[-1])
        if len(times) >= 10 and sum(times) >= 0.5 and entropy.ends():
            break
    mean, deviation = statistics.mean(times), statistics.stdev(times)
    quartile, middle = statistics.quantiles(times, n=4, method="inclusive")[2], statistics.median(times)
    return {"share": (quartile - min(times)) / middle, "deviation": 2 * deviation / mean,
            "error": 2 * 1.96 * deviation / len(times) ** 0.5 / mean, "runs": len(times), "s": time.time() - begin}


def try_inside(bench, _, i):
    """A training's own figure, run alone and inside stoker bench, one after the other in turns."""
    python, data = os.environ.get("STOKER_TORCH"), os.environ.get("STOKER_DATA", "data")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "peers", "train_torch.py")
    if not python or not os.path.exists(script) or not os.path.isdir(f"{data}/mnist"):
        return None
    command = [python, os.path.abspath(script), "mnist-mlp", "--loader", "direct", "--data", os.path.abspath(data), "--threads", "2"]

    def alone():
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1])["value"]

    def inside():
        r = bench.run("--runs", "1", "--most-runs", "1", "--warmup", "0", "--count-marked", "--seconds", "600", "--pattern",
                      '"value": ([0-9.]+)', "--unit", "s/epoch", "--", *command)
        return r["cases"][0]["summary"]["median"]["value"]

    if i % 2:
        first = inside()
        return {"alone": alone(), "inside": first}
    first = alone()
    return {"alone": first, "inside": inside()}


def try_beside(bench, peer, i):
    """hyperfine or NVBench's method and stoker bench on the same command for the same time, one after the other in turns: how wide
    their intervals are, as shares of the figure."""
    if peer == "hyperfine" and not shutil.which("hyperfine"):
        return None
    path = f"{bench.folder}/hyperfine.json"

    def hyperfine():
        begin = time.time()
        subprocess.run(["hyperfine", "-N", "--warmup", "2", "--style", "none", "--export-json", path, f"{bench.planted} {bench.short}"],
                       capture_output=True, check=True)
        with open(path) as f:
            times = json.load(f)["results"][0]["times"]
        half = 1.96 * statistics.stdev(times) / len(times) ** 0.5
        return {"share": 2 * half / statistics.mean(times), "runs": len(times), "s": time.time() - begin}

    def own(seconds):
        begin = time.time()
        r = bench.run("--seconds", str(max(1, round(seconds))), "--precision", "0.01%", "--count-marked", "--seed", str(i), "--",
                      bench.planted, str(bench.short))
        s = r["cases"][0]["summary"]
        return {"share": (s["median"]["high"] - s["median"]["low"]) / s["median"]["value"], "runs": s["counted_runs"],
                "s": time.time() - begin}

    if peer == "nvbench":
        theirs = nvbench([bench.planted, str(bench.short)])
        return {"peer": theirs, "own": own(theirs["s"])}
    if i % 2:
        theirs = hyperfine()
        return {"peer": theirs, "own": own(theirs["s"])}
    ours = own(3)
    return {"own": ours, "peer": hyperfine()}


# --- spoilers ---

def with_neighbour(bench, _):
    """On every core, in the second half of the time."""
    script = "import time\ntime.sleep(0.8)\nend = time.time() + 1\nwhile time.time() < end: pass\n"
    others = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(os.cpu_count())]
    r = bench.run("--seconds", "6", "--runs", "30", "--most-runs", "40", "--", bench.planted, str(bench.rounds))
    for other in others:
        other.wait()
    return r


def with_quota(bench, _):
    """The command moves into a group of 30 % of a core; None: groups cannot be made here."""
    for group, files in (("/sys/fs/cgroup/cpu", [("cpu.cfs_period_us", "20000"), ("cpu.cfs_quota_us", "6000")]),
                         ("/sys/fs/cgroup", [("cpu.max", "6000 20000")])):
        folder = f"{group}/stoker-bench-truth-{os.getpid()}"
        try:
            os.mkdir(folder)
            for name, text in files:
                with open(f"{folder}/{name}", "w") as f:
                    f.write(text)
            break
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
    else:
        return None
    try:
        return bench.run("--seconds", "6", "--runs", "6", "--most-runs", "8", "--", "sh", "-c",
                         f"echo $$ > {folder}/cgroup.procs; exec {bench.planted} {bench.rounds}")
    finally:
        os.rmdir(folder)


def with_clock(bench, i):
    """cpufreq, played: it falls by a fifth in some runs."""
    over = f"{bench.folder}/over"
    folder = f"{over}/sys/devices/system/cpu/cpu0/cpufreq"
    os.makedirs(folder, exist_ok=True)
    script = f"[ $(($$ % 3)) = 0 ] && echo 2400000 > {folder}/scaling_cur_freq || echo 3000000 > {folder}/scaling_cur_freq; " \
             f"exec {bench.planted} {bench.rounds}"
    return bench.run("--seconds", "6", "--runs", "20", "--most-runs", "30", "--over", over, "--", "sh", "-c", script)


def with_cold_cache(bench, i):
    """A file that it reads is dropped from memory before every fourth run."""
    path = f"{bench.folder}/data"
    if not os.path.exists(path):
        with open(path, "wb") as f:
            f.write(os.urandom(8 << 20))
            os.fsync(f.fileno())
    script = ("import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nn = os.getpid() % 4\n"
              "n or os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\nwhile os.read(fd, 1 << 20): pass\n")
    return bench.run("--seconds", "8", "--runs", "20", "--most-runs", "30", "--", sys.executable, "-c", script, path)


def with_slow_gpu(bench, i):
    """The played NVML of the doctor's tests, whose GPU wants more power than its limit."""
    meter.make(f"{bench.folder}/meter")
    env = {"FAKE_NVML_METER": f"{bench.folder}/meter", "FAKE_NVML_LIMIT": "60"}
    return bench.run("--seconds", "6", "--runs", "6", "--most-runs", "8", "--nvml", f"{bench.build}/tests/libfake_nvml.so", "--",
                     bench.planted, str(bench.rounds), env=env)


def with_nothing(bench, i):
    return bench.run("--seconds", "6", "--runs", "20", "--most-runs", "20", "--seed", str(i), "--", bench.planted, str(bench.rounds))


MAKE = {"nothing": with_nothing, "neighbour": with_neighbour, "quota": with_quota, "clock": with_clock, "cold": with_cold_cache,
        "gpu_slow": with_slow_gpu}


def try_spoiler(bench, name, i):
    r = MAKE[name](bench, i)
    return {"marks": r["cases"][0]["summary"]["marks"] if r else None}


# --- what came of it ---

def share_text(n, of):
    return f"{n} of {of}"


def differences(rows):
    """The interval is asked about where work was planted: a sleep takes longer than it is told."""
    lines = ["| Planted | Trials | Said rightly | No difference shown | Said wrongly | Of work: 95 % interval holds it | Pairs, median |",
             "|---:|---:|---:|---:|---:|---:|---:|"]
    for share in SHARES:
        of = [r["result"] for r in rows if r["trial"][:2] == ["difference", share]]
        of_work = [r["result"] for r in rows if r["trial"][:3] == ["difference", share, "work"]]
        if not of:
            continue
        right = sum(r["verdict"] == r["right"] for r in of) if share else 0
        none = sum(r["verdict"] == "no difference shown" for r in of)
        holds = sum(r["low"] is not None and r["low"] <= r["true"] <= r["high"] for r in of_work)
        pairs = sorted(r["pairs"] for r in of)[len(of) // 2]
        lines.append(f"| {100 * share:g} % | {len(of)} | {right if share else '-'} | {none} | {len(of) - right - none} | {share_text(holds, len(of_work))} | {pairs} |")
    return "\n".join(lines)


def coverage(rows):
    """What is the long run: of what is printed what is planted; else the median of the other measurings of the block."""
    lines = ["| Figure | Measurings of 15 runs | Their interval holds the long-run median | Of those not disturbed | 1.96 standard errors of the mean hold "
             "the long-run mean | Widths, median |", "|---|---:|---:|---:|---:|---:|"]
    about = {"print": "a number that is printed and scatters by 5 %; the long run is known",
             "scatter": f"time of sleeps of 20 ms that scatter by 5 %; the long run is the {N_BLOCK - 1} measurings next to it",
             "work": f"time of work of {SHORT_MS} ms; the same"}
    for kind in COVERED:
        held, by_error, widths, error_widths = [], 0, [], []
        for block in [r["result"] for r in rows if r["trial"][:2] == ["coverage", kind]]:
            for k, own in enumerate(block):
                others = [x for other in block[:k] + block[k + 1:] for x in other["figures"]]
                truth, mean = (20, 20) if kind == "print" else (statistics.median(others), statistics.mean(others))
                held.append((own["low"] <= truth <= own["high"], own["disturbed"]))
                error = 1.96 * statistics.stdev(own["figures"]) / len(own["figures"]) ** 0.5
                by_error += abs(statistics.mean(own["figures"]) - mean) <= error
                widths.append((own["high"] - own["low"]) / truth)
                error_widths.append(2 * error / mean)
        if held:
            calm = [h for h, disturbed in held if not disturbed]
            n = sum(h for h, _ in held)
            lines.append(f"| {about[kind]} | {len(held)} | {n} ({100 * n / len(held):.1f} %) | {sum(calm)} of {len(calm)} | "
                         f"{by_error} ({100 * by_error / len(held):.1f} %) | {100 * statistics.median(widths):.1f} %, "
                         f"{100 * statistics.median(error_widths):.1f} % |")
    return "\n".join(lines)


def spoilers(rows):
    lines = ["| Planted | Trials | Named | Marks of other kinds, in how many trials |", "|---|---:|---:|---|"]
    for name in SPOILERS:
        of = [r["result"]["marks"] for r in rows if r["trial"][:2] == ["spoiler", name]]
        seen = [m for m in of if m is not None]
        if not of:
            continue
        others = {}
        for marks in seen:
            for mark in marks:
                others[mark] = others.get(mark, 0) + (mark != name)
        named = "-" if name == "nothing" else sum(name in m for m in seen) if seen else "cannot be made here"
        text = ", ".join(f"{mark} {n}" for mark, n in sorted(others.items()) if n) or "none"
        lines.append(f"| {name} | {len(seen)} | {named} | {text} |")
    return "\n".join(lines)


# Of each peer, its figures and what they are.
PEERS = {"hyperfine": {"share": "hyperfine, 1.96 standard errors of its mean"},
         "nvbench": {"share": "NVBench's method (entropy; 15 s at most): from the fastest run to the third quartile",
                     "deviation": "the same runs, NVBench's noise: a standard deviation on both sides",
                     "error": "the same runs, 1.96 standard errors of the mean, of which NVBench says nothing"}}


def beside(rows):
    lines = []

    def add(text, of, key, figure):
        time_s, runs, share = (statistics.median(r[key][what] for r in of) for what in ("s", "runs", figure))
        lines.append(f"| {text} | {len(of)} | {time_s:.1f} s | {runs:.0f} | {100 * share:.2f} % |")

    for peer, figures in PEERS.items():
        of = [r["result"] for r in rows if r["trial"][:2] == ["beside", peer] and r["result"]]
        if not of:
            continue
        add(f"`stoker bench`, 95 % interval of the median, next to {peer}", of, "own", "share")
        for figure, text in figures.items():
            add(text, of, "peer", figure)
    if not lines:
        return ""
    return "\n".join(["", "| The same command, in turns | Trials | Time, median | Runs, median | Width, median |",
                      "|---|---:|---:|---:|---:|", *lines]) + "\n"


def inside_and_alone(rows):
    of = [r["result"] for r in rows if r["trial"][0] == "inside" and r["result"]]
    if not of:
        return ""
    alone, inside = (statistics.median(r[key] for r in of) for key in ("alone", "inside"))
    ratio = statistics.median(r["inside"] / r["alone"] for r in of)
    return (f"\n`python train_torch.py mnist-mlp`, which prints seconds an epoch, {len(of)} times alone and {len(of)} times inside "
            f"`stoker bench`, in turns: medians {alone:.3f} and {inside:.3f} s, median of the ratios {ratio:.3f}.\n")


def report(rows):
    return (f"`./dev bench-truth` on {machine()}; runs of {SHORT_MS} ms, with a disturbance of {RUN_MS} ms.\n\n{differences(rows)}\n\n{coverage(rows)}\n\n{spoilers(rows)}\n"
            f"{beside(rows)}{inside_and_alone(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--budget", type=float, default=240, help="begins no trial after N seconds")
    parser.add_argument("--only", choices=["differences", "coverage", "spoilers", "beside", "inside"])
    parser.add_argument("--again", action="store_true", help="forgets earlier trials")
    parser.add_argument("--table", help="a file with the lines <!-- truth --> and <!-- end truth --> to write between")
    args = parser.parse_args()
    begin, path, rows = time.time(), f"{args.build}/bench-truth.jsonl", []
    with open(f"{args.build}/stoker", "rb") as f:
        of = f"{hashlib.sha256(f.read()).hexdigest()[:16]} {machine()} {SHORT_MS} {RUN_MS}"
    if os.path.exists(path) and not args.again:
        with open(path) as f:
            rows = [json.loads(line) for line in f]
        if any(r.get("of") != of for r in rows):
            rows = []
    elif os.path.exists(path):
        os.remove(path)
    done = {json.dumps(r["trial"]) for r in rows}
    trials = [t for t in all_trials() if not args.only or args.only.startswith(t[0])]
    left = [t for t in trials if json.dumps(list(t)) not in done]
    work = {"difference": try_difference, "coverage": try_coverage, "spoiler": try_spoiler, "beside": try_beside, "inside": try_inside}
    with tempfile.TemporaryDirectory() as folder, open(path, "a" if rows else "w") as kept:
        bench = Bench(args.build, folder) if left and args.budget > 0 else None
        while left and time.time() - begin < args.budget:
            trial = left.pop(0)
            rows.append({"trial": list(trial), "of": of, "result": work[trial[0]](bench, *trial[1:])})
            kept.write(json.dumps(rows[-1]) + "\n")
            kept.flush()
    text = report(rows)
    print(text)
    if left:
        print(f"{len(left)} trials are left: run it again, and it goes on")
    if args.table:
        with open(args.table) as f:
            head, rest = f.read().split("<!-- truth -->\n")
        with open(args.table, "w") as f:
            f.write(f"{head}<!-- truth -->\n{text}<!-- end truth -->" + rest.split("<!-- end truth -->")[1])


if __name__ == "__main__":
    main()
