#!/usr/bin/env python3
"""Jobs that are drawn by number, each with its first cause by construction, and what `stoker watch` says of them.
./dev doctor-generate runs it; it goes on where it stopped. Rules, thresholds and confidence see seeds 1 to 999 only; the table in
docs/doctor.md is of seeds from 2001 on, whose single results nobody looks at.

usage: generate.py BUILD [--seeds FIRST LAST] [--budget SECONDS] [--tries N] [--ahead] [--neighbours N] [--table FILE] [--print] [--fit FILE] [SEED...]

BUILD/doctor-generated/runs.jsonl has a line for each run; recordings lie next to it, and are judged again each time that the table
is asked for. A run that was disturbed from outside (quiet.py) is discarded and repeated, N times at most in each call. --ahead:
the jobs come before other programs of the machine (needs root), of which more is borne, for a machine that is never quiet. --neighbours: next to each
job run N programs that want a core all the time; naming them is right where its threads wait for a core. --fit: makes the table of
confidence from the seeds (fit.py). Jobs: job.c, job.py; PyTorch, JAX and TensorFlow are used where STOKER_TORCH, STOKER_JAX and
STOKER_TENSORFLOW name Pythons that have them. Seeds from 3000 on are of the last two.
"""
import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bench
import quiet
import surroundings
from drawn import CORES, SLEEPING, cores_of, draw, is_light
from judged import is_recorded, judge, judged, judged_disturbed, table
from surroundings import around

__all__ = ["SLEEPING", "draw", "judge", "run"]  # for other tests
PYTHONS = {"c": "", "python": sys.executable,
           **{name: os.environ.get(f"STOKER_{name.upper()}", "") for name in ("torch", "jax", "tensorflow")}}
PATIENCE_S = 20


def command_of(job, path, folder):
    numbers = [str(job[k]) for k in ("seconds", "work_ms", "wait_ms", "jitter", "n")]
    if job["framework"] == "c":
        own = [f"{folder}/job"]
    else:
        own = [PYTHONS[job["framework"]], f"{HERE}/job.py", job["framework"]]
    command = [*own, job["mode"], *numbers, path]
    if job["mode"] == "stdin":
        quoted = " ".join(f"'{x}'" for x in [*own, "feeder", *numbers, path])
        return ["sh", "-c", f"{quoted} | " + " ".join(f"'{x}'" for x in command)]
    return command


def drain(pipe, rate):
    with contextlib.suppress(OSError, ValueError):
        while data := os.read(pipe.fileno(), 65536):
            time.sleep(len(data) / rate if rate else 0)


def environment(job, work):
    env = {**os.environ, "BENCH_WORK": work}
    if job["around"] in ("monitor", "cache"):
        env[f"GENERATED_{job['around'].upper()}"] = "1"
    if job.get("tidies"):
        env["GENERATED_TIDIES"] = "1"
    if job["gpu"]:
        env.update(FAKE_NVML_METER=f"{work}/meter", FAKE_NVML_GPUS=str(job["gpus"]), GENERATED_GPU=job["gpu"],
                   GENERATED_USE=str(job["use"]), GENERATED_START=str(job["start"]))
        if job["gpm"]:
            env["FAKE_NVML_GPM"] = "1"
        if job["how"] == "cap":
            env["FAKE_NVML_LIMIT"] = str(int(250 + 100 * job["x"]))
        if job["how"] == "hot":
            env["FAKE_NVML_COOLING"] = str(4 - job["x"])
    return env


def come_first(nice="-15"):
    """Gives this process's session more weight than others' have."""
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as f:
        f.write(nice)


def end(child, job):
    """Waits for the watched job; one that is stuck is told to stop."""
    if job["mode"] == "stuck":
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=job["seconds"] + 6 + (job["late_s"] if job["around"] in ("download", "load") else 0) + job.get("start", 0))
        child.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=60)
    with contextlib.suppress(OSError):  # workers whose job has ended, too
        os.killpg(child.pid, signal.SIGKILL)


def run(job, folder, build, ahead=False):
    """Records the job; returns what is missing for it, or None."""
    if job["framework"] != "c" and not PYTHONS[job["framework"]]:
        return f"{job['framework']} (STOKER_{job['framework'].upper()} names a Python that has it)"
    work = f"{folder}/work-{job['seed']}"
    subprocess.run(["rm", "-rf", work])
    os.makedirs(work)
    env, options = environment(job, work), ["--without", "libnvidia"]
    program = f"{folder}/stoker-watch" if os.path.exists(f"{folder}/stoker-watch") else f"{build}/stoker-watch"
    if job["gpu"]:
        bench.meter.make(f"{work}/meter")
        options = ["--nvml", f"{build}/tests/libfake_nvml.so"]
    try:
        first = come_first if ahead else None
        with around(job, work, first) as (prefix, path, rate, more):
            watch = [program, "--quiet", *options, "--record", f"{folder}/{job['seed']}.rec", "--"]
            with subprocess.Popen([*watch, *prefix, *command_of(job, path, folder)], env={**env, **more}, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, cwd=work, start_new_session=True,
                                  preexec_fn=first) as child:
                thread = threading.Thread(target=drain, args=(child.stdout, rate), daemon=True)
                thread.start()
                end(child, job)
                failed = child.returncode != 0 and job["mode"] != "stuck"
    except bench.Missing as missing:
        return str(missing)
    finally:
        subprocess.run(["rm", "-rf", work])
    return f"a job that works: it ended with exit code {child.returncode}" if failed else None


# --- many of them ---

def next_jobs(todo):
    """The first, or some that mostly sleep and disturb nobody: together they want less than half of the cores."""
    if not is_light(todo[0]) or surroundings.NEIGHBOURS:
        return todo[:1]
    some, wanted = [], 0.0
    for job in todo:
        if is_light(job) and (not some or wanted + cores_of(job) < 0.5 * CORES):
            some.append(job)
            wanted += cores_of(job)
    return some


def run_some(some, folder, build, args):
    """Runs them side by side; returns a line for each."""
    before = 0.0 if args.ahead else quiet.settle(PATIENCE_S)
    begin, missing = quiet.Moment(), {}
    threads = [threading.Thread(target=lambda j=j: missing.update({j["seed"]: run(j, folder, build, args.ahead)})) for j in some]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    quiet.reap()
    seen, lines = {**quiet.since(begin), "before": before}, []
    for job in some:
        path = f"{folder}/{job['seed']}.rec"
        if missing.get(job["seed"]) or not os.path.exists(path):
            print(f"SKIP seed {job['seed']}: needs {missing.get(job['seed']) or 'a recording, and nothing was recorded'}", flush=True)
            continue
        waits = quiet.waiting(path)
        line = {"job": job, "disturbed": quiet.disturbances(job, seen, waits, 0.15 if args.ahead else quiet.MOST_FOREIGN, args.neighbours > 0), "waits": waits, **seen}
        if line["disturbed"]:
            os.replace(path, f"{folder}/disturbed-{job['seed']}.rec")
        else:
            with open(f"{folder}/{job['seed']}.json", "w") as f:
                json.dump(line, f)
        lines.append(line)
    return lines


def tell(line, folder, build):
    job = line["job"]
    said, confidence = ("DISTURBED", line["disturbed"]) if line["disturbed"] else judge(job["seed"], folder, folder)[:2]
    wrong = "" if line["disturbed"] or said == job["cause"] else "   WRONG"
    print(f"{job['seed']:5} {job['cause'] or 'none':18} {job['framework']:6} {job['gpu']:5} {job['mode']} {job['how']} "
          f"{job['around']}: {said or 'none'} {confidence}{wrong}", flush=True)


def run_all(seeds, folder, build, args):
    begin = time.time()
    todo = [draw(s) for s in seeds if args.seed or not is_recorded(s, folder)]
    tries = {}
    while todo and time.time() - begin < args.budget:
        some = next_jobs(todo)
        lines = run_some(some, folder, build, args)
        again = []
        for line in lines:
            seed = line["job"]["seed"]
            tries[seed] = tries.get(seed, 0) + 1
            if line["disturbed"] and tries[seed] < args.tries:
                again.append(line["job"])
            with open(f"{folder}/runs.jsonl", "a") as f:
                f.write(json.dumps(line) + "\n")
            if seed < 1000:
                tell(line, folder, build)
        todo = [j for j in todo if j not in some] + again  # later, when it may be quieter
    return len(todo)


def read_runs(folder):
    with contextlib.suppress(OSError), open(f"{folder}/runs.jsonl") as f:
        return [json.loads(line) for line in f]
    return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("seed", nargs="*", type=int)
    parser.add_argument("--seeds", nargs=2, type=int, default=[1, 200])
    parser.add_argument("--budget", type=float, default=3600)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--ahead", action="store_true")
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--table", help="a page whose table is replaced")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--fit", help="the file in which the table of confidence is")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    folder = f"{build}/doctor-generated" + (f"-beside-{args.neighbours}" if args.neighbours else "")
    surroundings.NEIGHBOURS = args.neighbours
    os.makedirs(folder, exist_ok=True)
    seeds = args.seed or list(range(args.seeds[0], args.seeds[1] + 1))
    n_left = 0
    if not args.print and not args.fit:
        subprocess.run(["cc", "-O2", "-pthread", f"{HERE}/job.c", "-o", f"{folder}/job"], check=True)
        shutil.copy(f"{build}/stoker-watch", f"{folder}/stoker-watch")  # a build meanwhile changes nothing
        lock = open(f"{folder}/lock", "w")  # kept open: a run that goes on writes its recording
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"'{folder}' is in use by another run of this program")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts this behind itself has jobs ignore Ctrl-C
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the next call goes on"))  # once what runs has ended
        quiet.adopt()
        if args.ahead:
            come_first()
        n_left = run_all(seeds, folder, build, args)
    if args.fit:
        import fit
        fit.main(judged(seeds, folder, build) + judged_disturbed(seeds, folder, build, read_runs(folder)), args.fit)
        return 0
    text = table(seeds, folder, build, read_runs(folder), args.neighbours)
    print(text + (f"{n_left} jobs are left\n" if n_left else ""))
    if args.table:
        with open(args.table) as f:
            head, rest = f.read().split("<!-- generated -->\n")
        with open(args.table, "w") as f:
            f.write(head + "<!-- generated -->\n" + text + "<!-- end generated -->" + rest.split("<!-- end generated -->")[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
