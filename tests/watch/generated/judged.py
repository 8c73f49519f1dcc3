"""What the doctor says of recorded jobs, and the tables of it."""
import concurrent.futures
import json
import os
import subprocess
import sys

import quiet
from drawn import HEALTHY, draw

BINS = [(0, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)]  # of confidence

# What is waited for comes after the step's work, or is made meanwhile.
IN_TURN = {"timer", "sleep", "http", "kernel", "faults"}
MEANWHILE = {"sleeper", "network", "fifo", "output", "threads", "thread", "stdin"}


def judge(name, folder, build):
    """The first verdict of a recording and its confidence, and the whole report. name: a seed, or "disturbed-SEED"."""
    done = subprocess.run([f"{build}/stoker-watch", "--json", "--replay", f"{folder}/{name}.rec"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"'{folder}/{name}.rec' could not be judged: {done.returncode} {done.stderr}")
    report = json.loads(done.stdout)
    first = (report["verdicts"] or [{"name": "", "confidence": 0}])[0]
    return first["name"], first["confidence"], report


def gain_of(job):
    """How many times as fast the job were without its cause; None: not known by construction."""
    if job["how"] or job["mode"] not in IN_TURN | MEANWHILE:
        return None
    return (job["mode"] in IN_TURN) + job["wait_ms"] / job["work_ms"]


def judged(seeds, folder, build, neighbours=0):
    """Of each seed that has a sound recording of the job that is drawn now: the job, what is said, with which confidence, the report.
    With neighbours contention becomes the first cause where it is said and the job's threads waited for a core a fifth of the time."""
    found = [s for s in seeds if is_recorded(s, folder)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda s: judge(s, folder, build), found))
    jobs = [draw(s) for s in found]
    for i, job in enumerate(jobs):
        if neighbours and said[i][0] == "cpu-contention" and quiet.waiting(f"{folder}/{job['seed']}.rec") >= 0.2:
            jobs[i] = {**job, "cause": "cpu-contention"}
    return [(job, *what) for job, what in zip(jobs, said)]


def judged_disturbed(seeds, folder, build, runs):
    """Likewise of runs that other programs disturbed, where there is no other one: naming these is right, too. Their causes become
    what was said, where that is right."""
    last = {r["job"]["seed"]: r for r in runs}
    out = []
    for seed in seeds:
        run = last.get(seed)
        if run and run["disturbed"] and run["job"] == draw(seed) and not is_recorded(seed, folder) and \
                os.path.exists(f"{folder}/disturbed-{seed}.rec"):
            said, confidence, report = judge(f"disturbed-{seed}", folder, build)
            named = said == "cpu-contention" and set(run["disturbed"]) & {"other programs on the cores", "stolen cores"}
            out.append(({**draw(seed), "cause": said} if named else draw(seed), said, confidence, report))
    return out


def is_recorded(seed, folder):
    try:
        with open(f"{folder}/{seed}.json") as f:
            return json.load(f)["job"] == draw(seed) and os.path.exists(f"{folder}/{seed}.rec")
    except (OSError, ValueError):
        return False


def name(cause):
    return f"`{cause}`" if cause else "nothing"


def calibration_error(pairs):
    """Expected calibration error of (confidence, is right), by BINS."""
    error = 0
    for low, high in BINS:
        some = [p for p in pairs if low <= p[0] < high]
        if some:
            error += abs(sum(c for c, _ in some) - sum(right for _, right in some)) / len(pairs)
    return error


def add_causes(results):
    text = "| First cause | Right | Said instead |\n|---|---:|---|\n"
    for cause in sorted({r[0]["cause"] for r in results}):
        said = [r[1] for r in results if r[0]["cause"] == cause]
        wrong = sorted(set(said) - {cause})
        instead = ", ".join(f"{name(w)} {said.count(w)}" for w in wrong)
        text += f"| {name(cause) if cause else 'too short to say'} | {said.count(cause)} of {len(said)} | {instead} |\n"
    return text


def add_confusion(results):
    """All planted causes by all that was said where something was said wrongly; dots are zeros."""
    wrong = [(r[0]["cause"], r[1]) for r in results if r[0]["cause"] != r[1]]
    if not wrong:
        return "\nNothing was confused.\n"
    rows, columns = sorted({c for c, _ in wrong}), sorted({s for pair in wrong for s in pair})
    text = "\nThe confusion matrix, without rows that are right throughout (planted down, said across):\n\n"
    text += "| | " + " | ".join(name(c) for c in columns) + " |\n|---|" + "---:|" * len(columns) + "\n"
    pairs = [(r[0]["cause"], r[1]) for r in results]
    for row in rows:
        text += f"| {name(row)} | " + " | ".join(str(pairs.count((row, c)) or ".") for c in columns) + " |\n"
    return text


def add_confidence(results):
    pairs = [(r[2], r[1] == r[0]["cause"]) for r in results if r[1]]
    if not pairs:
        return ""
    text = "| Confidence | Jobs | Mean confidence | Right |\n|---|---:|---:|---:|\n"
    for low, high in BINS:
        some = [p for p in pairs if low <= p[0] < high]
        if some:
            text += (f"| {low:.1f} to {min(high, 1):.1f} | {len(some)} | {sum(c for c, _ in some) / len(some):.2f} | "
                     f"{sum(right for _, right in some) / len(some):.2f} |\n")
    return text + f"\nThe expected calibration error is {calibration_error(pairs):.3f}."


def table(seeds, folder, build, runs, neighbours=0):
    """runs: lines of all runs, disturbed ones included."""
    results = judged(seeds, folder, build, neighbours)
    if not results:
        return "no job has run\n"
    n_right, n = sum(r[1] == r[0]["cause"] for r in results), len(results)
    healthy = [r for r in results if r[0]["cause"] in HEALTHY]
    alarms = [r for r in healthy if r[1] and r[1] not in HEALTHY]
    silent = [r for r in results if r[0]["cause"] not in HEALTHY and not r[1]]
    gains = [(gain_of(r[0]), r[2 + 1]["verdicts"][0]["gain"]) for r in results if r[1] and r[1] == r[0]["cause"] and gain_of(r[0])]
    n_within = sum(low <= gain <= high for gain, (low, high) in gains)
    text = add_causes(results)
    text += (f"\n{n_right} of {n} first verdicts are right ({100 * n_right / n:.1f} %). {len(alarms)} of {len(healthy)} jobs with nothing wrong "
             f"have a false alarm ({100 * len(alarms) / max(1, len(healthy)):.1f} %); nothing is said of {len(silent)} of {n - len(healthy)} others.\n")
    text += add_confusion(results) + "\nConfidence and how often it was right:\n\n" + add_confidence(results)
    text += f" Of the {len(gains)} right verdicts whose gain is known by construction, the range has it in {n_within}.\n"
    return text + add_runs(seeds, folder, runs)


def add_runs(seeds, folder, runs):
    wanted = set(seeds)
    some = [r for r in runs if r["job"]["seed"] in wanted and r["job"] == draw(r["job"]["seed"])]
    disturbed = [r for r in some if r["disturbed"]]
    by_reason = {}
    for r in disturbed:
        for reason in r["disturbed"]:
            by_reason[reason] = by_reason.get(reason, 0) + 1
    why = f" ({', '.join(f'{reason} {n}' for reason, n in sorted(by_reason.items()))})" if by_reason else ""
    left = [s for s in seeds if not is_recorded(s, folder)]
    return (f"\n{len(disturbed)} of {len(some)} runs were disturbed from outside and discarded{why}; {len(left)} of {len(seeds)} "
            "seeds have no undisturbed run and are not in the table.\n")
