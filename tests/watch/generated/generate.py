#!/usr/bin/env python3
"""Jobs that are drawn by number, each with its first cause by construction, and what `stoker watch` says of them.
./dev doctor-generate runs it; it goes on where it stopped. Rules and thresholds see seeds 1 to 200 only; the table in
docs/doctor.md is of seeds from 2001 on, whose single results nobody looks at.

usage: generate.py BUILD [--seeds FIRST LAST] [--budget SECONDS] [--table FILE] [--print] [SEED...]

BUILD/doctor-generated/results.jsonl has a line for each job; its recordings lie next to it, and are judged again each time
that the table is asked for. Jobs: job.c, job.py; PyTorch is used where STOKER_TORCH names a Python that has it.
"""
import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bench

SECONDS = 9.0
CORES = len(os.sched_getaffinity(0))
TORCH = os.environ.get("STOKER_TORCH", "")

# (first cause, framework, mode, what surrounds it): "" is no cause, for jobs too short to be judged.
KINDS = [
    ("compute-bound-cpu", "c", "all"), ("compute-bound-cpu", "torch", "all"),
    ("one-core", "c", "one"), ("one-core", "python", "one"), ("one-core", "torch", "one"),
    ("asleep", "c", "timer"), ("asleep", "c", "sleeper"), ("asleep", "python", "sleep"), ("asleep", "python", "sleep workers"),
    ("asleep", "torch", "sleep"), ("asleep", "torch", "sleep workers"),
    ("waits-for-lock", "c", "flock"), ("waits-for-lock", "python", "flock"),
    ("input-network", "c", "network"), ("input-network", "python", "network"), ("input-network", "python", "http"),
    ("input-network", "python", "http workers"), ("input-network", "torch", "http"), ("input-network", "torch", "http workers"),
    ("input-outside", "c", "fifo"), ("input-outside", "python", "fifo"),
    ("input-one-thread", "c", "threads"), ("input-one-thread", "c", "stdin"), ("input-one-thread", "python", "thread"),
    ("input-one-thread", "python", "stdin"), ("input-one-thread", "python", "decode one"), ("input-one-thread", "torch", "decode one"),
    ("input-cpu", "python", "decode workers"), ("input-cpu", "torch", "decode workers"),
    ("input-storage", "c", "disk"), ("input-storage", "python", "disk"),
    ("checkpoint-stall", "c", "save"), ("checkpoint-stall", "python", "save"), ("checkpoint-stall", "torch", "save"),
    ("output-blocked", "c", "output"), ("output-blocked", "python", "output"),
    ("page-faults", "c", "faults"), ("page-faults", "python", "faults"),
    ("kernel-time", "c", "kernel"), ("kernel-time", "python", "kernel"),
    ("oversubscription", "c", "all crowd"), ("oversubscription", "torch", "all crowd"),
    ("cpu-contention", "c", "all others"), ("cpu-contention", "python", "one others"), ("cpu-contention", "torch", "all others"),
    ("cpu-quota", "c", "all quota"), ("cpu-quota", "torch", "all quota"), ("cpu-quota", "python", "one quota"),
    ("python-gil", "python", "gil"),
    ("process-storm", "python", "spawn"),
    ("memory-grows", "c", "grow"), ("memory-grows", "python", "grow"), ("memory-grows", "gpu", "grow"),
    ("recompiles", "c", "jit"), ("recompiles", "python", "jit"), ("recompiles", "python", "compile"),
    ("recompiles", "gpu", "jit"), ("recompiles", "gpu", "compile"),
    ("compute-bound", "gpu", "busy"),
    ("launch-bound", "gpu", "launch"),
    ("gpu-shared", "gpu", "busy tenant"),
    ("one-gpu-of-several", "gpu", "busy several"),
    ("straggler", "gpu", "ranks"),
    ("asleep", "gpu", "sleep"), ("asleep", "gpu torch", "sleep"), ("asleep", "gpu", "sleep workers"),
    ("waits-for-lock", "gpu", "flock"), ("input-outside", "gpu", "fifo"), ("output-blocked", "gpu", "output"),
    ("input-network", "gpu", "network"), ("input-network", "gpu", "http"), ("input-network", "gpu torch", "http workers"),
    ("input-one-thread", "gpu", "decode"), ("input-one-thread", "gpu torch", "decode"), ("input-one-thread", "gpu", "thread"),
    ("input-one-thread", "gpu", "stdin"), ("input-one-thread", "gpu torch", "decode one"),
    ("input-cpu", "gpu", "decode workers"), ("input-cpu", "gpu torch", "decode workers"),
    ("input-storage", "gpu", "disk"), ("checkpoint-stall", "gpu", "save"), ("checkpoint-stall", "gpu torch", "save"),
    ("process-storm", "gpu", "spawn"), ("python-gil", "gpu", "gil"),
    ("cpu-contention", "gpu", "decode others"), ("cpu-quota", "gpu", "decode quota"),
    ("", "c", "one short"), ("", "python", "sleep short"), ("", "torch", "all short"),
]


def draw(seed):
    """The job of that number."""
    r = random.Random(seed)
    by_cause = {}
    for kind in KINDS:
        if "torch" not in kind[1] or TORCH:
            by_cause.setdefault(kind[0], []).append(kind)
    cause = r.choice(sorted(by_cause))
    _, framework, what = r.choice(by_cause[cause])
    mode, _, how = what.partition(" ")
    gpu, framework = framework.startswith("gpu"), framework.replace("gpu torch", "torch").replace("gpu", "python")
    work, share = r.uniform(3, 40), r.uniform(0.6, 0.92)
    job = {"seed": seed, "cause": cause, "framework": framework, "mode": mode, "how": how, "work_ms": round(work, 1),
           "wait_ms": round(work * share / (1 - share), 1), "jitter": r.choice([0, 0.3, 0.9]),
           "seconds": r.uniform(1.5, 3) if how == "short" else SECONDS,
           "around": r.choice(["", "", "", "noise", "monitor", "cache"]), "n": 0, "gpu": ""}
    if gpu:
        job["gpu"] = r.choice(["sleep", "spin"])
        job.update(use=r.uniform(0.65, 0.95), start=r.choice([0, 0, 0, 3, 5]), gpm=r.choice([0, 1]), gpus=1)
    if how == "workers":
        job["n"] = CORES if mode == "decode" else r.choice([2, 3])
        job["wait_ms"] *= job["n"]
    elif how == "one":
        job["n"] = 1
    elif mode == "all":
        job["n"] = CORES * r.choice([4, 8, 16]) if how == "crowd" else CORES
        job["work_ms"] = max(10, job["work_ms"])
    elif mode in ("gil", "spawn"):
        job["n"] = r.choice([3, 4])
    elif mode == "save":
        job["n"] = r.choice([60, 100, 140])  # MiB
    elif mode == "grow":
        job["n"] = r.choice([20, 50, 120])  # MiB a second
    elif how == "several":
        job["gpus"] = r.choice([2, 4, 8])
        job["n"] = r.randint(1, job["gpus"] - 1)
    elif mode == "ranks":
        job["gpus"] = 2
    if cause in ("cpu-contention", "cpu-quota", "oversubscription", "memory-grows"):
        job["around"] = ""  # it is the disturbance itself
    if gpu and how in ("others", "quota"):
        job["n"] = CORES
        job["wait_ms"] *= CORES
    return job


# --- what stands around a job ---

def serve(job, plain):
    """A server on this machine, not of the job, that answers late. Returns its port."""
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    r = random.Random(job["seed"])

    def late():
        time.sleep(job["wait_ms"] / 1000 * (1 + job["jitter"] * r.uniform(-1, 1)))

    def talk(connection):
        with contextlib.suppress(OSError), connection:
            while plain:
                late()
                connection.sendall(bytes(4096))
            connection.recv(65536)
            late()
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4096\r\n\r\n" + bytes(4096))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return server


def hold(path, job):
    """Has the lock of a file for most of the time."""
    code = ("import fcntl, sys, time, random\nf = open(sys.argv[1], 'w')\nwhile True:\n    fcntl.flock(f, 2)\n"
            "    time.sleep(float(sys.argv[2]) * (1 + float(sys.argv[3]) * random.uniform(-1, 1)))\n    fcntl.flock(f, 8)\n    time.sleep(0.001)")
    return [sys.executable, "-c", code, path, str(job["wait_ms"] / 1000), str(job["jitter"])]


def feed(path, job):
    code = ("import sys, time, random\nf = open(sys.argv[1], 'wb', buffering=0)\nwhile True:\n"
            "    time.sleep(float(sys.argv[2]) * (1 + float(sys.argv[3]) * random.uniform(-1, 1)))\n    f.write(bytes(4096))")
    return [sys.executable, "-c", code, path, str(job["wait_ms"] / 1000), str(job["jitter"])]


SPIN = "import time\nwhile True:\n    t = time.perf_counter()\n    while time.perf_counter() < t + {}: pass\n    time.sleep({})"


@contextlib.contextmanager
def around(job, work):
    """Yields what stands before the command, its path, and how its output is read (bytes a second; 0: at once)."""
    others, prefix, path, server, rate = [], [], f"{work}/path", None, 0
    with contextlib.ExitStack() as stack:
        if job["mode"] in ("network", "http"):
            server = serve(job, job["mode"] == "network")
            path = str(server.getsockname()[1])
        elif job["mode"] == "fifo":
            os.mkfifo(path)
            others.append(feed(path, job))
        elif job["mode"] == "flock":
            open(path, "w").close()
            others.append(hold(path, job))
        elif job["mode"] == "disk":
            prefix = stack.enter_context(bench.throttled_disk({}, 0.3, work))
            path = f"{work}/../files"
        elif job["mode"] == "save":
            device = os.stat(work).st_dev
            prefix = stack.enter_context(in_write_group(device, job["n"] << 20))
        elif job["mode"] == "output":
            rate = (65536 if job["framework"] == "c" else 16 * 4096) / (job["wait_ms"] / 1000)
        if job["how"] == "quota":
            prefix = stack.enter_context(bench.in_group("cores", int(100000 * (0.4 if job["mode"] == "one" else 0.3 * CORES))))
        if job["how"] == "tenant":
            others.append([sys.executable, f"{os.path.dirname(HERE)}/jobs.py", "shared_gpu", "60", "1"])
        if job["how"] == "others":
            others += [[sys.executable, "-c", "while True: pass"]] * (CORES * 2)
        if job["around"] == "noise":
            others.append([sys.executable, "-c", SPIN.format(0.01, 0.09)])
        running = [subprocess.Popen(other, env={**os.environ, "FAKE_NVML_METER": f"{work}/meter"}) for other in others]
        try:
            yield prefix, path, rate
        finally:
            for other in running:
                other.kill()
                other.wait()
            if server:
                server.close()


@contextlib.contextmanager
def in_write_group(device, bytes_each):
    """A disk that takes about a second and a half for a file of that size."""
    number = f"{os.major(device)}:{os.minor(device)}"
    base = f"{bench.GROUPS}/blkio"
    if not os.path.isdir(base):
        yield []
        return
    path = f"{base}/stoker-generated-{os.getpid()}-{time.monotonic_ns()}"
    try:
        os.mkdir(path)
        with open(f"{path}/blkio.throttle.write_bps_device", "w") as f:
            f.write(f"{number} {int(bytes_each / 1.5)}")
    except OSError as error:
        raise bench.Missing(f"a control group that may be written ({error})") from error
    try:
        yield ["sh", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "sh"]
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.1)


def command_of(job, path, folder):
    numbers = [str(job[k]) for k in ("seconds", "work_ms", "wait_ms", "jitter", "n")]
    if job["framework"] == "c":
        own = [f"{folder}/job"]
    else:
        own = [TORCH if job["framework"] == "torch" else sys.executable, f"{HERE}/job.py", job["framework"]]
    command = [*own, job["mode"], *numbers, path]
    if job["mode"] == "stdin":
        quoted = " ".join(f"'{x}'" for x in [*own, "feeder", *numbers, path])
        return ["sh", "-c", f"{quoted} | " + " ".join(f"'{x}'" for x in command)]
    return command


def drain(pipe, rate):
    with contextlib.suppress(OSError, ValueError):
        while data := os.read(pipe.fileno(), 65536):
            time.sleep(len(data) / rate if rate else 0)


def run(job, folder, build):
    """Records the job; returns what is missing for it, or None."""
    work = f"{folder}/work-{job['seed']}"
    subprocess.run(["rm", "-rf", work])
    os.makedirs(work)
    env = {**os.environ, "BENCH_WORK": work}
    if job["around"] in ("monitor", "cache"):
        env[f"GENERATED_{job['around'].upper()}"] = "1"
    options = ["--without", "libnvidia"]
    if job["gpu"]:
        bench.meter.make(f"{work}/meter")
        options = ["--nvml", f"{build}/tests/libfake_nvml.so"]
        env.update(FAKE_NVML_METER=f"{work}/meter", FAKE_NVML_GPUS=str(job["gpus"]), GENERATED_GPU=job["gpu"],
                   GENERATED_USE=str(job["use"]), GENERATED_START=str(job["start"]))
        if job["gpm"]:
            env["FAKE_NVML_GPM"] = "1"
    try:
        with around(job, work) as (prefix, path, rate):
            watch = [f"{build}/stoker-watch", "--quiet", *options, "--record", f"{folder}/{job['seed']}.rec", "--"]
            with subprocess.Popen([*watch, *prefix, *command_of(job, path, folder)], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, cwd=work, start_new_session=True) as child:
                thread = threading.Thread(target=drain, args=(child.stdout, rate), daemon=True)
                thread.start()
                try:
                    child.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    pass
                with contextlib.suppress(OSError):  # workers whose job has ended, too
                    os.killpg(child.pid, signal.SIGKILL)
    except bench.Missing as missing:
        return str(missing)
    finally:
        subprocess.run(["rm", "-rf", work])
    return None


def judge(seed, folder, build):
    """The first verdict and its confidence, and the whole report."""
    done = subprocess.run([f"{build}/stoker-watch", "--json", "--replay", f"{folder}/{seed}.rec"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    first = (report["verdicts"] or [{"name": "", "confidence": 0}])[0]
    return first["name"], first["confidence"], report


# --- the table ---

# What is waited for comes after the step's work, or is made meanwhile.
IN_TURN = {"timer", "sleep", "http", "kernel", "faults"}
MEANWHILE = {"sleeper", "network", "fifo", "output", "threads", "thread", "stdin"}


def gain_of(job):
    """How many times as fast the job were without its cause; None: not known by construction."""
    if job["how"] or job["mode"] not in IN_TURN | MEANWHILE:
        return None
    return (job["mode"] in IN_TURN) + job["wait_ms"] / job["work_ms"]


def table(seeds, folder, build):
    results, by_cause, wrong, n_gains, n_within = [], {}, {}, 0, 0
    for seed in seeds:
        if not os.path.exists(f"{folder}/{seed}.rec"):
            continue
        job = draw(seed)
        said, confidence, report = judge(seed, folder, build)
        if said == job["cause"] and gain_of(job):
            n_gains += 1
            n_within += report["verdicts"][0]["gain"][0] <= gain_of(job) <= report["verdicts"][0]["gain"][1]
        results.append((said == job["cause"], confidence, job["cause"], said))
        n = by_cause.setdefault(job["cause"], [0, 0])
        n[0] += said == job["cause"]
        n[1] += 1
        if said != job["cause"]:
            wrong[job["cause"], said] = wrong.get((job["cause"], said), 0) + 1
    text = "| First cause | Right | Said instead |\n|---|---:|---|\n"
    for cause in sorted(by_cause):
        instead = ", ".join(f"`{said or 'none'}` {n}" for (c, said), n in sorted(wrong.items()) if c == cause)
        text += f"| {f'`{cause}`' if cause else 'too short to say'} | {by_cause[cause][0]} of {by_cause[cause][1]} | {instead} |\n"
    n_right, n = sum(r[0] for r in results), len(results)
    if n == 0:
        return "no job has run\n"
    text += f"\n{n_right} of {n} first verdicts are right ({100 * n_right / n:.1f} %). Confidence and how often it was right:\n\n"
    text += "| Confidence | Jobs | Mean confidence | Right |\n|---|---:|---:|---:|\n"
    error = 0
    spoken = [r for r in results if r[3]]
    for low, high in [(0, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)]:
        some = [r for r in spoken if low <= r[1] < high]
        if some:
            mean, right = sum(r[1] for r in some) / len(some), sum(r[0] for r in some) / len(some)
            error += abs(mean - right) * len(some) / len(spoken)
            text += f"| {low:.1f} to {min(high, 1):.1f} | {len(some)} | {mean:.2f} | {right:.2f} |\n"
    return text + (f"\nThe expected calibration error is {error:.3f}. Of the {n_gains} right verdicts whose gain is known by construction, the "
                   f"range has it in {n_within}.\n")


SLEEPING = {"asleep", "waits-for-lock", "input-network", "input-outside", "output-blocked"}
LIGHT = SLEEPING | {"compute-bound", "gpu-shared", "one-gpu-of-several", "straggler"}


def is_light(job):
    return job["cause"] in LIGHT and job["gpu"] != "spin"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("seed", nargs="*", type=int)
    parser.add_argument("--seeds", nargs=2, type=int, default=[1, 200])
    parser.add_argument("--budget", type=float, default=270)
    parser.add_argument("--table", help="a page whose table is replaced")
    parser.add_argument("--print", action="store_true")
    args = parser.parse_args()
    build, begin = os.path.abspath(args.build), time.time()
    folder = f"{build}/doctor-generated"
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["cc", "-O2", "-pthread", f"{HERE}/job.c", "-o", f"{folder}/job"], check=True)
    seeds = args.seed or list(range(args.seeds[0], args.seeds[1] + 1))
    todo = [draw(s) for s in seeds if args.seed or not os.path.exists(f"{folder}/{s}.rec")]
    missing = {}
    while todo and not args.print and time.time() - begin < args.budget:
        # Those that mostly sleep disturb nobody, and run side by side; the others alone.
        some = [j for j in todo if is_light(j)][:6] if is_light(todo[0]) else [todo[0]]
        threads = [threading.Thread(target=lambda j=j: missing.update({j["seed"]: run(j, folder, build)})) for j in some]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        todo = [j for j in todo if j not in some]
        for job in some:
            if missing.get(job["seed"]):
                print(f"SKIP seed {job['seed']}: needs {missing[job['seed']]}", flush=True)
                continue
            if not os.path.exists(f"{folder}/{job['seed']}.rec"):
                print(f"SKIP seed {job['seed']}: nothing was recorded", flush=True)
                continue
            said, confidence, _ = judge(job["seed"], folder, build)
            with open(f"{folder}/results.jsonl", "a") as f:
                f.write(json.dumps({**job, "said": said, "confidence": confidence}) + "\n")
            if job["seed"] < 1000:
                print(f"{job['seed']:5} {job['cause'] or 'none':18} {job['framework']:6} {job['gpu']:5} {job['mode']} {job['how']} "
                      f"{job['around']}: {said or 'none'} {confidence}", flush=True)
    text = table(seeds, folder, build)
    print(text + (f"{len(todo)} jobs are left\n" if todo else ""))
    if args.table:
        with open(args.table) as f:
            head, rest = f.read().split("<!-- generated -->\n")
        with open(args.table, "w") as f:
            f.write(head + "<!-- generated -->\n" + text + "<!-- end generated -->" + rest.split("<!-- end generated -->")[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
