#!/usr/bin/env python3
"""The doctor's bench: planted faults as real processes, each several times with varied parameters, and what `stoker watch`
said. ./dev doctor-bench runs it; it goes on where it stopped.

usage: bench.py BUILD [--budget SECONDS] [--repeats N] [--table FILE] [--again CASE] [CASE...]

GPUs are played (fake_nvml.c), from what the jobs do. What a machine lacks (PyTorch, a control group that may be written,
FUSE, swap) is said, and its cases are left out. Recordings stay in BUILD/doctor-bench, and are judged again each time, so
that the table is always of the present rules.
"""
import argparse
import contextlib
import dataclasses
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import meter

TORCH = os.environ.get("STOKER_TORCH", "python3")
KERAS = os.environ.get("STOKER_KERAS", "python3")
GROUPS = "/sys/fs/cgroup"


class Missing(Exception):
    """The machine lacks what a case needs."""


class Failed(Exception):
    """The job did not do what it is for; the next call tries again."""


# --- what surrounds a job: each yields a prefix for its command, and may change its environment ---

def settings(limit, value, is_v2):
    """The controller, and what is to be written into its files for a limit of reading (device, bytes a second), of memory (bytes)
    or of cores (microseconds in each 100,000)."""
    if limit == "reading":
        return ("io", {"io.max": f"{value[0]} rbps={value[1]}"}) if is_v2 else \
            ("blkio", {"blkio.throttle.read_bps_device": f"{value[0]} {value[1]}"})
    if limit == "memory":
        return "memory", {"memory.max" if is_v2 else "memory.limit_in_bytes": value}
    # Many shares, so that nothing but the quota holds it back.
    return "cpu", {"cpu.weight": 10000, "cpu.max": f"{value} 100000"} if is_v2 else \
        {"cpu.shares": 100000, "cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": value}


def group(limit, value):
    """A control group with that limit, of version 1 where the machine has it, or else of version 2."""
    controller, files = settings(limit, value, False)
    base = f"{GROUPS}/{controller}"
    if not os.path.isdir(base):
        base, (controller, files) = GROUPS, settings(limit, value, True)
    path = f"{base}/stoker-bench-{os.getpid()}-{time.monotonic_ns()}"
    try:
        if base == GROUPS:
            with open(f"{base}/cgroup.subtree_control", "w") as f:
                f.write(f"+{controller}")
        os.mkdir(path)
        for name, text in files.items():
            with open(f"{path}/{name}", "w") as f:
                f.write(str(text))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(path)
        raise Missing(f"a control group that may be written ({error})")
    return path


@contextlib.contextmanager
def in_group(limit, value):
    path = group(limit, value)
    try:
        yield ["sh", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "sh"]
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.1)


@contextlib.contextmanager
def plain(env, x, work):
    yield []


@contextlib.contextmanager
def throttled_disk(env, x, work):
    data = f"{work}/../files"
    if not os.path.isdir(data):
        os.makedirs(data)
        for i in range(200):
            with open(f"{data}/{i:03}", "wb") as f:
                f.write(os.urandom(400000))
        os.sync()
    env["BENCH_FILES"] = data
    device = os.stat(data).st_dev
    with in_group("reading", (f"{os.major(device)}:{os.minor(device)}", int((3 + 3 * x) * 1e6))) as prefix:
        yield prefix


@contextlib.contextmanager
def slow_mount(env, x, work):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount") and not shutil.which("fusermount3"):
        raise Missing("FUSE")
    data, mount = f"{work}/small", f"{work}/mount"
    os.makedirs(data)
    os.makedirs(mount)
    for i in range(50):
        with open(f"{data}/{i:03}", "wb") as f:
            f.write(os.urandom(100000))
    server = subprocess.Popen(["/usr/bin/python3", f"{HERE}/fuse_slow.py", data, mount, str(0.02 + 0.03 * x)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for _ in range(100):
        if os.path.ismount(mount) or server.poll() is not None:
            break
        time.sleep(0.05)
    if not os.path.ismount(mount):
        raise Missing("FUSE: " + server.communicate(timeout=5)[0].decode()[-100:])
    env["BENCH_FILES"] = mount
    try:
        yield []
    finally:
        subprocess.run(["umount", "-l", mount])
        server.wait(timeout=10)


@contextlib.contextmanager
def little_memory(env, x, work):
    with open(f"{work}/mapped", "wb") as f:
        for _ in range(300):
            f.write(os.urandom(1 << 20))
        # What is in memory already belongs to no group that is short of it.
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with in_group("memory", int((50 + 20 * x) * 2 ** 20)) as prefix:
        yield prefix


@contextlib.contextmanager
def swap(env, x, work):
    path = f"{work}/swap"
    with open(path, "wb") as f:
        for _ in range(200):
            f.write(bytes(1 << 20))
    os.chmod(path, 0o600)
    if subprocess.run(["mkswap", path], capture_output=True).returncode or \
            subprocess.run(["swapon", path], capture_output=True).returncode:
        raise Missing("the right to swapon")
    try:
        with in_group("memory", 90 << 20) as prefix:
            yield prefix
    finally:
        subprocess.run(["swapoff", path])


@contextlib.contextmanager
def quota(env, x, work):
    with in_group("cores", int(50000 + 50000 * x)) as prefix:
        yield prefix


@contextlib.contextmanager
def one_core(env, x, work):
    yield ["taskset", "-c", "0" if x < 0.5 else str(os.cpu_count() - 1)]


@contextlib.contextmanager
def neighbours(env, x, work):
    n = os.cpu_count() * (2 + int(2 * x))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield []
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextlib.contextmanager
def tenant(env, x, work):
    other = subprocess.Popen([sys.executable, f"{HERE}/jobs.py", "shared_gpu", "60", "1"], env=env)
    try:
        yield []
    finally:
        other.kill()
        other.wait()


@contextlib.contextmanager
def hot(env, x, work):
    env["FAKE_NVML_COOLING"] = str(4 - x)
    yield []


@contextlib.contextmanager
def two_gpus(env, x, work):
    env["FAKE_NVML_GPUS"] = "2"
    yield []


@contextlib.contextmanager
def counters(env, x, work):
    env["FAKE_NVML_GPM"] = "1"
    yield []


@contextlib.contextmanager
def little_power(env, x, work):
    env["FAKE_NVML_LIMIT"] = str(int(250 + 100 * x))
    yield []


@contextlib.contextmanager
def slow_link(env, x, work):
    env["FAKE_NVML_LINK"] = "1" if x < 0.5 else "2"
    yield []


@contextlib.contextmanager
def cut_gpu(env, x, work):
    env["FAKE_NVML_MIG"] = "1"
    yield []


@contextlib.contextmanager
def killed_job(env, x, work):
    """A job that was killed, whose memory the played driver keeps."""
    env["FAKE_NVML_KEEP"] = "1"
    other = subprocess.Popen([sys.executable, f"{HERE}/jobs.py", "crashes", "60", str(x)], env=env)
    while not os.path.exists(f"{work}/stuck") and other.poll() is None:
        time.sleep(0.05)
    other.kill()
    other.wait()
    os.remove(f"{work}/stuck")
    yield []


@contextlib.contextmanager
def rank_service(env, x, work):
    env["FAKE_NVML_GPUS"] = "2"
    with socket.create_server(("127.0.0.1", 0)) as server:
        env["NCCL_RAS_PORT"] = str(server.getsockname()[1])
    yield []


@contextlib.contextmanager
def memory_limit(env, x, work):
    limit = int((150 + 100 * x) * 2 ** 20)
    env["BENCH_LIMIT"] = str(limit)
    with in_group("memory", limit) as prefix:
        yield prefix


@contextlib.contextmanager
def far_node(env, x, work):
    """Played: the machine has one memory node; files laid over /sys say that it has two, and the GPU hangs on the other."""
    nodes, gpu = f"{work}/over/sys/devices/system/node", f"{work}/over/sys/bus/pci/devices/0000:41:00.0"
    for path, text in [(f"{nodes}/node0/cpulist", f"0-{os.cpu_count() - 1}\n"), (f"{nodes}/node1/cpulist", "1000-1001\n"),
                       (f"{gpu}/numa_node", "1\n")]:
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as f:
            f.write(text)
    env["BENCH_OVER"] = f"{work}/over"
    yield []


@dataclasses.dataclass
class Case:
    name: str
    job: str
    expected: str
    around: object = plain
    python: str = sys.executable
    gpu: bool = True
    seconds: float = 7
    stuck: bool = False    # it hangs, after it has said so
    dies: bool = False     # it is killed
    light: bool = False    # needs few cores: may run alongside others
    played: str = ""       # what is not real besides the GPU


CASES = [
    Case("torch, no workers", "torch_no_workers", "input-one-thread", python=TORCH),
    Case("torch, PIL too slow", "torch_pil", "input-cpu", python=TORCH),
    Case("torch, healthy", "torch_healthy", "compute-bound", python=TORCH),
    Case("torch on the CPU next to a GPU", "torch_on_cpu", "not-on-gpu", python=TORCH),
    Case("torch, worker in a deadlock", "torch_locked", "hang", python=TORCH, stuck=True, seconds=6),
    Case("Keras, sequential map", "keras", "input-one-thread", python=KERAS),
    Case("Stoker itself", "stoker", "compute-bound-cpu", gpu=False, seconds=8),
    Case("one busy thread", "one_thread", "input-one-thread"),
    Case("GIL-bound threads", "gil", "python-gil"),
    Case("throttled disk", "files", "input-storage", throttled_disk, light=True, seconds=8),
    Case("slow FUSE mount", "files", "input-network-storage", slow_mount, light=True),
    Case("mapped file beyond the memory limit", "mapped", "memory-pressure", little_memory, seconds=12),
    Case("swap", "swapped", "memory-pressure", swap, seconds=12),
    Case("CPU quota", "workers", "cpu-quota", quota),
    Case("bound to one core", "workers", "affinity", one_core),
    Case("other programs on the cores", "workers", "cpu-contention", neighbours),
    Case("checkpoint stall", "checkpoints", "checkpoint-stall"),
    Case("compiles again and again", "recompiles", "recompiles", seconds=8),
    Case("healthy, compute-bound", "healthy", "compute-bound", light=True),
    Case("healthy, with GPM counters", "healthy", "compute-bound", counters, light=True),
    Case("batch too small", "small_batch", "small-batch"),
    Case("launch-bound", "launches", "launch-bound"),
    Case("memory taken, GPU idle", "idle_memory", "memory-idle", light=True),
    Case("collective that never ends", "hung", "hang", light=True, stuck=True, seconds=5),
    Case("another job on the GPU", "shared_gpu", "gpu-shared", tenant, light=True),
    Case("one of two GPUs", "one_of_two", "one-gpu-of-several", two_gpus, light=True),
    Case("one rank behind", "two_ranks", "straggler", two_gpus, light=True),
    Case("hot GPU", "healthy", "gpu-heat", hot, light=True, seconds=10, played="heat"),
    Case("power limit", "healthy", "gpu-power-cap", little_power, light=True, played="the limit"),
    Case("slow PCIe link", "copies", "pcie-link", slow_link, light=True, played="the link"),
    Case("two ranks that exchange much", "communication", "communication", two_gpus, light=True),
    Case("a rank that never comes", "lagging", "hang", rank_service, light=True, stuck=True, seconds=5, played="NCCL's service"),
    Case("memory of a killed job", "wants_memory", "zombie-memory", killed_job, light=True, played="the driver's fault"),
    Case("a GPU in parts", "healthy", "mig", cut_gpu, light=True, played="the parts"),
    Case("memory that only grows", "grows", "out-of-memory", memory_limit, light=True, dies=True),
    Case("far memory node", "healthy", "far-memory-node", far_node, light=True, played="memory nodes"),
]


# --- running ---

def stoker_job(build, work):
    """Stoker on generated digits."""
    data = f"{work}/../digits"
    stoker = f"{build}/stoker"
    if not os.path.isdir(data):
        subprocess.run([stoker, "get", "digits", "--out", data, "--train", "20000", "--test", "200"], check=True,
                       capture_output=True)
    with open(f"{work}/small.yaml", "w") as f:
        f.write(f"""name: small
data:
  train: {{source: {{images: {data}/train}}, shuffle: true, stages: [{{decode: {{channels: 1}}}}, {{normalize: mnist}}]}}
batch: 64
model: {{cnn: {{widths: [32, 64]}}}}
optimizer: {{sgd: {{lr: 0.01}}}}
epochs: 100
""")
    return [stoker, "train", f"{work}/small.yaml", "--out", f"{work}/run", "--quiet"]


def start(case, x, folder, build, stack):
    """Starts one watched job; returns a function that waits for it and gives the report."""
    work = f"{folder}/{case.job}-{time.monotonic_ns()}"
    os.makedirs(work)
    stack.callback(shutil.rmtree, work, True)
    if not shutil.which(case.python):
        raise Missing(case.python)
    package = {"torch": "torch", "keras": "keras"}.get(case.job.split("_")[0])
    if package and subprocess.run([case.python, "-c", f"import {package}"], capture_output=True).returncode:
        raise Missing(f"{package} (STOKER_{package.upper()}: a Python that has it)")
    env = {**os.environ, "BENCH_WORK": work, "FAKE_NVML_METER": f"{work}/meter",
           "BENCH_PHOTOS": os.environ.get("BENCH_PHOTOS", os.path.abspath(f"{HERE}/../../../shared/data/photos"))}
    meter.make(f"{work}/meter")
    if case.job.startswith("torch") and "pil" in case.job + "workers" and not glob.glob(env["BENCH_PHOTOS"] + "/*"):
        raise Missing("photographs in $BENCH_PHOTOS")
    prefix = stack.enter_context(case.around(env, x, work))
    job = [case.python, f"{HERE}/jobs.py", case.job, str(case.seconds), str(x)]
    stop_after = 0
    if case.job == "stoker":
        job, stop_after = stoker_job(build, work), case.seconds
    record = f"{work}/record"
    command = [f"{build}/stoker-watch", "--json", "--quiet", "--record", record]
    command += ["--nvml", f"{build}/tests/libfake_nvml.so"] if case.gpu else ["--without", "libnvidia"]
    command += ["--over", env["BENCH_OVER"]] if "BENCH_OVER" in env else []
    process = subprocess.Popen([*command, "--", *prefix, *job], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=env, process_group=0)
    began = time.time()

    def wait():
        try:
            if case.stuck:
                while not os.path.exists(f"{work}/stuck") and time.time() < began + 40:
                    time.sleep(0.1)
                time.sleep(case.seconds)
            elif stop_after:
                time.sleep(max(0, began + stop_after - time.time()))
            if case.stuck or stop_after:
                os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=45)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            if json.loads(out)["exit_code"] and not (case.stuck or case.dies or stop_after):
                raise Failed(f"the job failed: {err[-1000:]}")
        except json.JSONDecodeError:
            raise Failed(f"no report: {err[-1000:]}") from None
        with open(record) as f:
            return f.read()

    return wait


def are_cores_free():
    """Whether this program would get all cores now: what others take would be found by the doctor, too."""
    code = "import time\nt = time.perf_counter()\nwhile time.perf_counter() - t < 0.4: pass\n" \
           "w, c = time.perf_counter(), time.process_time()\nwhile time.perf_counter() - w < 1: pass\n" \
           "print((time.process_time() - c) / (time.perf_counter() - w))"
    spins = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(os.cpu_count())]
    return min(float(spin.communicate()[0]) for spin in spins) > 0.7


def name_of(case, i):
    return "".join(c if c.isalnum() else "-" for c in case.name) + f"-{i}.rec"


def run_some(some, folder, build):
    """Runs a few side by side: (case, repeat, x). The names of those that the machine cannot run, and how many failed."""
    missing, n_failed = {}, 0
    with contextlib.ExitStack() as stack:
        waits = []
        for case, i, x in some:
            try:
                waits.append((case, i, start(case, x, folder, build, stack)))
            except Missing as error:
                missing[case.name] = str(error)
        for case, i, wait in waits:
            try:
                text = wait()
            except Failed as error:
                print(f"{case.name} {i}: {error}", flush=True)
                n_failed += 1
                continue
            with open(f"{folder}/{name_of(case, i)}.part", "w") as f:
                f.write(text)
            os.rename(f"{folder}/{name_of(case, i)}.part", f"{folder}/{name_of(case, i)}")
            print(f"{case.name} {i}: {verdicts(build, folder, case, i)[:3]} (expected {case.expected})", flush=True)
    return missing, n_failed


def verdicts(build, folder, case, i):
    done = subprocess.run([f"{build}/stoker-watch", "--json", "--replay", f"{folder}/{name_of(case, i)}"],
                          capture_output=True, text=True)
    return [v["name"] for v in json.loads(done.stdout)["verdicts"]] or ["none"]


def table(build, folder, repeats):
    """Markdown: a line for each case, and the counts."""
    lines = ["| Case | Expected | First verdict | Right |", "|---|---|---|---:|"]
    n = right = alarms = n_healthy = n_real = 0
    for case in CASES:
        said = [verdicts(build, folder, case, i) for i in range(repeats) if os.path.exists(f"{folder}/{name_of(case, i)}")]
        if not said:
            continue
        firsts = [s[0] for s in said]
        counts = ", ".join(f"`{v}` {firsts.count(v)}" for v in sorted(set(firsts), key=firsts.count, reverse=True))
        good = firsts.count(case.expected)
        lines.append(f"| {case.name}{' (played: ' + case.played + ')' if case.played else ''} | `{case.expected}` | {counts} "
                     f"| {good} of {len(said)} |")
        n, right, n_real = n + len(said), right + good, n_real + (not case.played)
        if case.expected.startswith("compute-bound"):
            n_healthy += len(said)
            alarms += len(said) - good
    share = 100 * right / n if n else 0
    lines += ["", f"{right} of {n} first verdicts are right ({share:.1f} %), over {n_real} cases on real processes; "
                  f"{alarms} false alarms on {n_healthy} healthy runs."]
    return "\n".join(lines) + "\n", share, alarms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--budget", type=float, default=1e9, help="starts nothing after N seconds")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--again", action="append", default=[], help="forgets the recordings of a case")
    parser.add_argument("--table", help="a file with the lines <!-- bench --> and <!-- end --> to write between")
    parser.add_argument("--light", action="store_true", help="only jobs that need few cores")
    parser.add_argument("--only-table", action="store_true")
    parser.add_argument("case", nargs="*")
    args = parser.parse_intermixed_args()
    build, begin = os.path.abspath(args.build), time.time()
    # A shell that starts this behind itself has Ctrl-C ignored, and so would the jobs that are stopped by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = f"{build}/doctor-bench"
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        if any(word in case.name for word in args.again):
            for i in range(args.repeats):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"{folder}/{name_of(case, i)}")
    todo = [(case, i, i / max(1, args.repeats - 1)) for i in range(args.repeats) for case in CASES
            if not os.path.exists(f"{folder}/{name_of(case, i)}") and (not args.case or any(w in case.name for w in args.case))]
    missing, n_failed = {}, 0
    while todo and not args.only_table and time.time() - begin < args.budget:
        light = [t for t in todo if t[0].light][:3]
        heavy = [t for t in todo if not t[0].light and not args.light][:1]
        some = heavy if heavy and are_cores_free() else light
        if not some:
            print("other programs take the cores", flush=True)
            break
        lacking, failed = run_some(some, folder, build)
        missing.update(lacking)
        n_failed += failed
        todo = [t for t in todo if t not in some and t[0].name not in missing]
    for name, why in missing.items():
        print(f"SKIP {name}: needs {why}")
    text, share, alarms = table(build, folder, args.repeats)
    print(text + (f"{len(todo)} runs are left\n" if todo else ""))
    if args.table:
        with open(args.table) as f:
            page = f.read()
        head, rest = page.split("<!-- bench -->\n")
        with open(args.table, "w") as f:
            f.write(head + "<!-- bench -->\n" + text + "<!-- end -->" + rest.split("<!-- end -->")[1])
    if n_failed:
        print(f"{n_failed} runs failed, and are not in the table")
        return 1
    return 0 if todo or args.case or (share >= 95 and alarms == 0) else 1


if __name__ == "__main__":
    sys.exit(main())
