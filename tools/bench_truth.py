#!/usr/bin/env python3
"""Whether `stoker bench` is right: commands with a planted difference, which it must tell or not; intervals, which must hold the
long-run value as often as they say; and disturbances, which it must name. ./dev bench-truth runs it; it goes on where it stopped.

usage: bench_truth.py BUILD [--budget SECONDS] [--only differences|coverage|spoilers|beside] [--again] [--table FILE]

Trials are drawn in one fixed order, so that those of an unfinished table are as good as any others. They are kept in
BUILD/bench-truth.jsonl, with what they were measured with: after a change of the program or the machine it begins anew.
"""
import argparse
import hashlib
import json
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
N_EACH, N_COVERAGE, N_SPOILERS, N_BESIDE = 25, 200, 20, 20
SPOILERS = ("nothing", "neighbour", "quota", "clock", "cold", "gpu_slow")
COVERED = ("scatter", "work")
RUN_MS, SHORT_MS = 40, 25  # of a run; of those whose difference is told, so that all of it takes half an hour


def all_trials():
    trials = [("difference", share, kind, i) for share in SHARES for kind in KINDS for i in range(N_EACH)]
    trials += [("coverage", kind, i) for kind in COVERED for i in range(N_COVERAGE)]
    trials += [("spoiler", name, i) for name in SPOILERS for i in range(N_SPOILERS)]
    trials += [("beside", "hyperfine", i) for i in range(N_BESIDE)]
    random.Random(1).shuffle(trials)
    return trials


class Bench:
    """Runs the program, and gives the result.json."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        self.planted = f"{self.build}/bench/bench_planted"
        ms = float(subprocess.run([self.planted, "400"], capture_output=True, text=True, check=True).stdout.split()[0])
        self.rounds, self.short = max(1, round(400 * RUN_MS / ms)), max(1, round(400 * SHORT_MS / ms))

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
    return {"verdict": c["verdict"], "right": "worse" if i % 2 else "better", "low": c["change"]["low"], "high": c["change"]["high"],
            "pairs": c["pairs"], "disturbed": r["disturbed"], "true": share if i % 2 else 1 / (1 + share) - 1}


def try_coverage(bench, kind, i):
    """scatter: what is planted is a known scatter of 5 %, of sleeps of 20 ms. work: nothing but the machine's own noise."""
    command = [bench.planted, "200", "0.05", "scatter"] if kind == "scatter" else [bench.planted, str(bench.short)]
    r = bench.run("--seconds", "20", "--runs", "15", "--most-runs", "15", "--seed", str(i), "--", *command)
    case = r["cases"][0]
    m, scale = case["summary"]["median"], 1 if kind == "scatter" else bench.short
    # By round, as these differ between calls of this script.
    return {"low": m["low"] / scale, "high": m["high"] / scale,
            "figures": [x["figure"] / scale for x in case["runs"] if x["counted"]], "disturbed": r["disturbed"]}


def try_beside(bench, _, i):
    """hyperfine and stoker bench on the same command for the same time, one after the other in turns: how wide 95 % are, as shares."""
    if not shutil.which("hyperfine"):
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

    if i % 2:
        theirs = hyperfine()
        return {"hyperfine": theirs, "own": own(theirs["s"])}
    ours = own(3)
    return {"own": ours, "hyperfine": hyperfine()}


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
    lines = ["| Planted | Trials | Said rightly | No difference shown | Said wrongly | 95 % interval holds it | Pairs, median |",
             "|---:|---:|---:|---:|---:|---:|---:|"]
    for share in SHARES:
        of = [r["result"] for r in rows if r["trial"][0] == "difference" and r["trial"][1] == share]
        if not of:
            continue
        right = sum(r["verdict"] == r["right"] for r in of) if share else 0
        none = sum(r["verdict"] == "no difference shown" for r in of)
        holds = sum(r["low"] is not None and r["low"] <= r["true"] <= r["high"] for r in of)
        pairs = sorted(r["pairs"] for r in of)[len(of) // 2]
        lines.append(f"| {100 * share:g} % | {len(of)} | {right if share else '-'} | {none} | {len(of) - right - none} | {holds} | {pairs} |")
    return "\n".join(lines)


def coverage(rows):
    lines = ["| Runs | Measurings of 15 runs | Their interval holds the median of all runs | Of those not disturbed |",
             "|---|---:|---:|---:|"]
    about = {"scatter": "sleeps of 20 ms that scatter by 5 %", "work": f"work of {SHORT_MS} ms, whose speed the machine changes from minute to minute"}
    for kind in COVERED:
        of = [r["result"] for r in rows if r["trial"][:2] == ["coverage", kind]]
        if not of:
            continue
        pool = sorted(x for r in of for x in r["figures"])
        truth = (pool[(len(pool) - 1) // 2] + pool[len(pool) // 2]) / 2
        held = [r["low"] <= truth <= r["high"] for r in of]
        calm = [h for h, r in zip(held, of) if not r["disturbed"]]
        lines.append(f"| {about[kind]} | {len(of)} | {sum(held)} ({100 * sum(held) / len(of):.1f} %) | {sum(calm)} of {len(calm)} |")
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


def beside(rows):
    of = [r["result"] for r in rows if r["trial"][0] == "beside" and r["result"]]
    if not of:
        return ""
    lines = ["", "| The same command, in turns | Trials | Time, median | Runs, median | Width of the 95 % interval, median |",
             "|---|---:|---:|---:|---:|"]
    for name, text in ("own", "`stoker bench`, of the median"), ("hyperfine", "hyperfine, 1.96 standard errors of its mean"):
        time_s, runs, share = (statistics.median(r[name][key] for r in of) for key in ("s", "runs", "share"))
        lines.append(f"| {text} | {len(of)} | {time_s:.1f} s | {runs:.0f} | {100 * share:.2f} % |")
    return "\n".join(lines) + "\n"


def report(rows):
    return (f"`./dev bench-truth` on {machine()}; runs of {SHORT_MS} ms, with a disturbance of {RUN_MS} ms.\n\n{differences(rows)}\n\n{coverage(rows)}\n\n{spoilers(rows)}\n{beside(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--budget", type=float, default=240, help="begins no trial after N seconds")
    parser.add_argument("--only", choices=["differences", "coverage", "spoilers", "beside"])
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
    work = {"difference": try_difference, "coverage": try_coverage, "spoiler": try_spoiler, "beside": try_beside}
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
