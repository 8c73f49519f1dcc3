#!/usr/bin/env python3
"""Verdicts: recordings of real jobs are judged as they were, a few planted jobs live, and with each call of NVML failing
in turn the rest still works.

usage: test_verdicts.py BUILD_FOLDER WORK_FOLDER
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, f"{HERE}/generated")
import bench
import drawn
import fit
import generate
import meter
import quiet

BUILD, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def watch(*args, **env):
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", *args], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"watch {args}: {done.returncode} {done.stdout!r} {done.stderr!r}")


def recordings():
    """recordings/VERDICT.NAME.rec"""
    names = sorted(os.listdir(f"{HERE}/recordings"))
    check(len(names) >= 5, "there are recordings")
    for name in names:
        verdicts = [v["name"] for v in watch("--replay", f"{HERE}/recordings/{name}")["verdicts"]]
        check(verdicts and verdicts[0] == name.split(".")[0], f"{name}: {verdicts}")


def trust():
    """The confidence is what the fitted table says of the strength, as the program that fits it reads the table."""
    with open(f"{HERE}/../../src/watch/trust.c") as f:
        rows = re.findall(r"STK_WATCH_OF_(\w+)\] =\s*\{(.*?)\},\n", f.read(), re.S)
    tables = {kind.lower(): [tuple(float(x) for x in pair) for pair in re.findall(r"\{([\d.]+), ([\d.]+)\}", row)] for kind, row in rows}
    check(set(tables) == set(fit.KINDS) and all(t == sorted(t) for t in tables.values()), f"tables that rise: {tables}")
    n = 0
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        for v in watch("--replay", f"{HERE}/recordings/{name}")["verdicts"]:
            n += 1
            check(abs(v["confidence"] - fit.confidence(tables[v["kind"]], v["strength"])) < 0.02, f"{name}: {v}")
    check(n > 40, f"{n} verdicts")


def evidence():
    """Nothing that is not there, and cores are called so."""
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        report = watch("--replay", f"{HERE}/recordings/{name}")
        gpus = report["signals"].get("gpus_used", 0)
        for v in report["verdicts"]:
            check("brings 0 MB/s" not in str(v["evidence"]), f"{name}: what the network does not bring is no evidence: {v}")
            check(not re.search(f"the {'cores' if gpus else 'device'}('s?| is| are) idle", str(v["evidence"])), f"{name}, {gpus} GPUs: {v}")


def retold(name, *facts):
    """The path of a recording with these facts, in place of what it has of the same kinds."""
    kinds = tuple(fact.rsplit(" ", 1)[0].split()[0] for fact in facts)
    with open(f"{HERE}/recordings/{name}") as f:
        first, *lines = f.read().splitlines()
    lines = [line for line in lines if line.split()[:1] != ["I"] or line.split()[1] not in kinds]
    with open(f"{WORK}/retold.rec", "w") as f:
        f.write("\n".join([first, *(f"I {fact}" for fact in facts if " " in fact), *lines]) + "\n")
    return f"{WORK}/retold.rec"


def shares():
    """What verdicts cost is of one whole, the time judged, and so is what a run says of itself."""
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        costs = [v["share"] or 0 for v in watch("--replay", f"{HERE}/recordings/{name}")["verdicts"]]
        check(sum(costs) < 1 + 1e-6, f"{name}: the shares sum up to more than the whole: {costs}")
        text = subprocess.run([f"{BUILD}/stoker-watch", "--replay", f"{HERE}/recordings/{name}"], capture_output=True,
                              text=True).stdout
        told = re.findall(r"^  cost +(\d+) % (of the time judged)?", text, re.M)
        check(all(whole for _, whole in told) and sum(int(n) for n, _ in told) <= 101, f"{name}: {told}")
    for own in "0.0006 0.0006 0.0006 0.9982", "0.5 0.5 0.5 0.5", "0.1 0.1 0.1 0.6", "nan -1 1e300 1":
        text = subprocess.run([f"{BUILD}/stoker-watch", "--replay", retold("compute-bound-cpu.stoker.rec", f"own {own}")],
                              capture_output=True, text=True).stdout
        line = re.search(r"run says(.*?)of all\s+its\s+time", text, re.S)
        parts = re.findall(r"(\d+)\.(\d) %", line[1] if line else "")
        check(sum(10 * int(a) + int(b) for a, b in parts) == 1000, f"own {own}: {parts} do not sum up to 100 %: {text}")


# Each is one piece of advice, which a report gives once.
ADVICE = [r"num_workers|workers that prepare|instead of threads|num_parallel_calls", r"more cores", r"num_threads|OMP_NUM_THREADS|threads: N|threadpool",
          r"larger '?batch", r"py-spy|gdb", r"16.bit|bf16|bfloat16", r"less often", r"CUDA graph|lax.scan|steps_per_execution",
          r"shapes", r"large\w* (files|shards)|stoker pack: large", r"higher memory limit|more memory", r"shuffle buffer|fewer (DataLoader )?workers"]
# Nothing of these is for a run of Stoker.
OF_OTHERS = r"OMP_|py-spy|NCCL|DataLoader|torch|tf\.|num_parallel|os\.sched|WebDataset|warm-up"


def spans():
    """Of a job that downloads for two seconds first the steps are judged, and of one that takes a second to end."""
    late = watch("--replay", f"{HERE}/recordings/compute-bound-cpu.download.rec")
    check(4.6 < late["judged_from_s"] < 5.5, f"after the download: {late['judged_from_s']}")
    tidies = watch("--replay", f"{HERE}/recordings/compute-bound-cpu.tidies.rec")
    check(1 < tidies["length_s"] - tidies["judged_to_s"] < 2, f"before its end: {tidies['judged_to_s']} of {tidies['length_s']}")


def room_of(report):
    """How many times the cores that a job uses it may use."""
    s = report["signals"]
    return max(1, s["allowed_share"] * s["machine_cores"] / max(0.1, s["cores"])) if s.get("cores") else float("inf")


def gains():
    """What a remedy wins at best is within the range of what its cause may cost; of a cause that it takes away nearly all, so is it told.
    A hang has none; and parts of one account, of which each is a cause, are no two names of the same time."""
    n = n_parts = 0
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        report = watch("--replay", f"{HERE}/recordings/{name}")
        verdicts = report["verdicts"]
        if len(verdicts) > 1 and all(v["kind"] == "account" for v in verdicts):
            n_parts += 1
            check(all(abs(v["share"] - v["alone"]) < 0.01 for v in verdicts), f"{name}: {verdicts}")
        for v in verdicts:
            check(v["name"] != "hang" or v["gain"] == [1, 1], f"{name}: {v}")
            best = max((r["at_best"] for r in v["remedies"]), default=1)
            low, high = v["gain"]
            check(best <= high * 1.01, f"{name}, {v['name']}: {best} of {v['gain']}")
            if v["kind"] == "account" and best > 1 and high < 5:
                n += 1
                check(best >= low or best > 0.8 * high or best >= 0.99 * room_of(report), f"{name}, {v['name']}: {best} of {v['gain']}")
    check(n > 10 and n_parts > 0, f"{n} gains, {n_parts} accounts of several causes")


def compared():
    """Of a job that mostly sleeps cores tell nothing, and of two jobs nothing does."""
    def run(*names):
        paths = [f"{HERE}/recordings/{name}.rec" if name[0] != "-" else name for name in names]
        return subprocess.run([f"{BUILD}/stoker-watch", "--compare", *paths], capture_output=True, text=True).stdout
    asleep, cores = run("asleep.timer", "asleep.timer"), run("compute-bound-cpu.barrier", "compute-bound-cpu.barrier")
    check("needs few" in asleep and "commands differ" not in asleep, asleep)
    check("no difference shown" in cores and "needs few" not in cores, cores)
    check("the commands differ" in run("asleep.timer", "compute-bound-cpu.barrier"), "two jobs")
    for name in "python-gil.many", "input-one-thread.tensorflow":
        check("needs few" not in run(name, name), f"{name}: who waits for threads that work does not sleep")
    told = json.loads(run("asleep.timer", "asleep.timer", "--json"))
    check(told["reason"] == "a job that mostly sleeps needs few" and told["same_command"], f"in JSON, too: {told}")
    check(not json.loads(run("asleep.timer", "compute-bound-cpu.barrier", "--json"))["same_command"], "two jobs, in JSON")


def room():
    """What a job wins by more cores is bounded by the cores that there are."""
    n = 0
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        report = watch("--replay", f"{HERE}/recordings/{name}")
        most = room_of(report) * 1.01
        for v in report["verdicts"]:
            if v["name"] in ("oversubscription", "cpu-contention", "python-gil"):
                n += 1
                check(v["gain"][0] <= v["gain"][1] <= most, f"{name}, {v['name']}: {v['gain']}, {most}")
            for remedy in v["remedies"]:
                if re.search(r"num_workers|workers that prepare|more workers|num_parallel|processes instead", remedy["text"]):
                    n += 1
                    check(remedy["at_best"] <= most, f"{name}, {v['name']}: {remedy}, {most}")
    check(n > 12, f"{n} of them")


def stolen():
    """What a host takes away is said, on a line of its own."""
    with open(f"{HERE}/recordings/asleep.timer.rec") as f:
        lines = f.read().splitlines()
    machine = [i for i, line in enumerate(lines) if line.startswith("M 0")][1:]
    for i in machine:
        lines[i] += " 3:400"
    with open(f"{WORK}/stolen.rec", "w") as f:
        f.write("\n".join(lines) + "\n")
    lines = [re.sub(r" 3:-?\d+", "", line) if line.startswith("M ") else line for line in lines]  # a kernel that does not tell
    with open(f"{WORK}/untold.rec", "w") as f:
        f.write("\n".join(lines) + "\n")
    check("stolen" not in watch("--replay", f"{WORK}/untold.rec")["signals"], "steal that is not known")
    for path, is_told in (f"{HERE}/recordings/asleep.timer.rec", False), (f"{WORK}/stolen.rec", True):
        text = subprocess.run([f"{BUILD}/stoker-watch", "--replay", path], capture_output=True, text=True).stdout
        told = re.search(r"^  host +gives (\d+) % of this virtual machine's cores", text, re.M)
        check("stolen" in watch("--replay", path)["signals"], f"{path}: it is known")
        check(bool(told) == is_told and (not told or 30 <= int(told[1]) <= 50), f"{path}: {text}")


def iterators():
    """That a map of tf.data, in C++, is waited for, and no computing, is told by where the driving thread is."""
    name, times = "own-threads.tensorflow.rec", [i * 1.7 for i in range(1, 15)]
    inside = "iterator_get_next (tensorflow/python/ops/gen_dataset_ops.py:3081) < OwnedIterator._next_internal (tensorflow/python/data/ops/iterator_ops.py:776)"
    for where, wanted in ((inside, ["input-one-thread", "input-cpu"]), ("quick_execute (tensorflow/python/eager/execute.py:53)", ["own-threads"])):
        report = watch("--replay", retold(name, *(f"stack {t:.2f} {where}" for t in times)))
        check(report["verdicts"][0]["name"] in wanted, f"{where}: {report['verdicts']}")
        check(abs(sum(x for key, x in report["signals"].items() if key.startswith("by_")) - 1) < 0.01, f"{where}: {report['signals']}")


STOPPED = """
import os, select, signal, sys, time
poll, end = select.poll(), time.time() + 8.5
if os.fork() == 0:
    parent = os.getppid()
    for _ in range(16):
        time.sleep(0.5)
        os.kill(parent, signal.SIGSTOP)
        os.kill(parent, signal.SIGCONT)
    os._exit(0)
while time.time() < end:
    poll.poll(2500)
os.wait()
"""


def stopped():
    """A sleep that goes on behind a stop, as a debugger's, is another system call to the kernel, and sleeps for the same reason."""
    report = watch("--", sys.executable, "-c", STOPPED)
    check(report["verdicts"] and report["verdicts"][0]["name"] == "asleep" and report["signals"]["by_timer"] > 0.8, f"{report}")
    check(report["driver"]["name"].startswith("python"), f"{report['driver']}")
    check(not report["missing"] or all("GPU" in m for m in report["missing"]), f"{report['missing']}")


def remedies():
    frameworks = ["", "torch", "tensorflow", "keras", "jax", "stoker"]
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        for framework in frameworks:
            report = watch("--replay", retold(name, f"framework {framework}" if framework else "framework"))
            texts = [r["text"] for v in report["verdicts"] for r in v["remedies"]]
            check(len(set(texts)) == len(texts), f"{name}, {framework}: said twice: {texts}")
            for advice in ADVICE:
                same = [text for text in texts if re.search(advice, text)]
                check(len(same) <= 1, f"{name}, {framework}: the same advice twice: {same}")
            strange = [text for text in texts if framework == "stoker" and re.search(OF_OTHERS, text)]
            check(not strange, f"{name}: not for Stoker: {strange}")
    # A run computes in bf16 where that is fast, unless its recipe asks for f32.
    for facts, wanted in (["framework stoker"], False), (["framework stoker", "f32 yes"], True):
        report = watch("--replay", retold("compute-bound-cpu.stoker.rec", *facts))
        told = any("precision: auto" in r["text"] or "bf16" in r["text"] for v in report["verdicts"] for r in v["remedies"])
        check(told == wanted, f"{facts}: {report['verdicts']}")
    # Whoever has asked for stacks is not told to ask for them.
    for facts, wanted in ([], "stoker watch --stacks"), (["stack 3.00 wait (a.py:1)"], "'stacks' is where"):
        told = [r["text"] for r in watch("--replay", retold("asleep.timer.rec", *facts))["verdicts"][0]["remedies"]]
        check(len(told) == 1 and wanted in told[0], f"{facts}: {told}")


def accounts():
    """Parts of an account are of one whole, and too short a time gives no verdict."""
    n = 0
    for name in sorted(os.listdir(f"{HERE}/recordings")):
        report = watch("--replay", f"{HERE}/recordings/{name}")
        signals = report["signals"]
        for role, parts in report["roles"].items():
            sum_of = sum(x for key, x in parts.items() if key != "threads")
            check(abs(sum_of - 1) < 0.01 and min(parts.values()) >= 0, f"{name}, {role}: {parts}")
        parts = [x for key, x in signals.items() if key.startswith("by_")]
        if signals["account"] == 1:
            n += 1
            check(abs(sum(parts) - 1) < 0.01 and min(parts) >= 0, f"{name}: {parts}")
        else:
            check(not parts, f"{name}: an account of what was not looked at")
    check(n >= 5, f"{n} recordings have an account")
    # Of two workers of a DataLoader; of threads more than cores; and of ranks, where the one that drives waits for others.
    roles = {name: watch("--replay", f"{HERE}/recordings/{name}.rec")["roles"]
             for name in ("input-cpu.torch", "oversubscription.barrier", "python-gil.gpu", "straggler.gloo", "input-network.http")}
    check(roles["input-cpu.torch"]["workers"]["user"] > 0.3, f"workers: {roles['input-cpu.torch']}")
    check(roles["oversubscription.barrier"]["helpers"]["threads"] == 15, f"helpers: {roles['oversubscription.barrier']}")
    check(roles["python-gil.gpu"]["driver"]["lock"] > 0.8, f"a lock: {roles['python-gil.gpu']}")
    check(roles["input-network.http"]["driver"]["network"] > 0.6, f"a network: {roles['input-network.http']}")
    check(roles["straggler.gloo"]["feeders"]["threads"] > 2, f"other ranks: {roles['straggler.gloo']}")
    text = subprocess.run([f"{BUILD}/stoker-watch", "--replay", f"{HERE}/recordings/asleep.timer.rec"], capture_output=True, text=True).stdout
    check("could be 2.8 to more than 10 times as fast" in text, f"a number that rests on what little is left: {text}")
    with open(f"{HERE}/recordings/asleep.timer.rec") as f:
        lines = f.read().splitlines()
    ends = [i for i, line in enumerate(lines) if line.startswith("T ")]
    with open(f"{WORK}/half.rec", "w") as f:
        f.write("\n".join(lines[:ends[len(ends) // 2] + 1]) + "\n")
    text = subprocess.run([f"{BUILD}/stoker-watch", "--replay", f"{WORK}/half.rec"], capture_output=True, text=True).stdout
    check("too short to say" in text and not watch("--replay", f"{WORK}/half.rec")["verdicts"], f"half of it: {text}")


def live_accounts():
    """Jobs that sleep in five ways, side by side: what for is told apart."""
    folder = f"{WORK}/generated"
    os.makedirs(folder)
    jobs = {}
    for seed in range(1, 1000):
        job = generate.draw(seed)
        light = job["framework"] == "python" and not job["gpu"] and job["how"] == "" and job["around"] in ("", "monitor")
        if light and job["cause"] in generate.SLEEPING:
            lightest = min(jobs.get(job["cause"], job), job, key=drawn.cores_of)
            jobs[job["cause"]] = lightest
    check(len(jobs) == len(generate.SLEEPING), f"there is one of each: {jobs}")
    left = list(jobs.values())
    for _ in range(2):  # once more where something else took the machine
        with concurrent.futures.ThreadPoolExecutor(len(left)) as pool:
            list(pool.map(lambda job: generate.run(job, folder, BUILD), left))
        said = {job["seed"]: generate.judge(job["seed"], folder, BUILD) for job in left}
        left = [job for job in left if said[job["seed"]][0] != job["cause"]]
        if not left:
            break
    for job in left:
        # Where its threads waited for cores that others had, that is right, too.
        others = said[job["seed"]][0] == "cpu-contention" and quiet.waiting(f"{folder}/{job['seed']}.rec") > 0.1
        check(others, f"{job}: {said[job['seed']]}")


WRITER = """
import os, subprocess, sys, threading, time
def save(path, n):
    end, data = time.time() + 6, bytes(4 << 20)
    with open(path, "wb") as f:
        while time.time() < end:
            f.seek(0)
            f.write(data)
            os.fsync(f.fileno())
            time.sleep(n)
if len(sys.argv) > 2:
    save(sys.argv[1], 0.2)
    sys.exit()
child = subprocess.Popen([sys.executable, __file__, sys.argv[1] + ".child", "child"])
feeder = subprocess.Popen([sys.executable, "-c", "import time; end = time.time() + 6\\nwhile time.time() < end: sum(range(99999)); time.sleep(0.005)"])
end = time.time() + 6
while time.time() < end:
    sum(range(99999))
child.wait()
feeder.wait()
"""


def live_roles():
    """A process that computes, one that it started and that works, and one that writes: each has the role that it plays."""
    with open(f"{WORK}/writer.py", "w") as f:
        f.write(WRITER)
    roles = watch("--interval", "50", "--", sys.executable, f"{WORK}/writer.py", f"{WORK}/written")["roles"]
    check(roles["driver"]["user"] + roles["driver"]["ready"] > 0.7, f"it computes: {roles}")
    check(roles.get("workers", {}).get("threads", 0) >= 0.9, f"one works for it: {roles}")
    check(roles.get("writers", {}).get("threads", 0) > 0.3 and roles["writers"]["user"] < 0.5, f"one writes: {roles}")


def becomes():
    """A child that has become another program is called by that one's name."""
    watch("--record", f"{WORK}/becomes.rec", "--", "sh", "-c", "sh -c 'sleep 0.7; exec sleep 3' & wait")
    with open(f"{WORK}/becomes.rec") as f:
        names = dict(line.split()[2:4] for line in f if line.startswith("I process "))
    check(sorted(names.values()).count("sh") == 1 and "sleep" in names.values(), f"the last name of each: {names}")


def live():
    """Jobs that mostly sleep, so that a busy machine changes nothing."""
    names = ["healthy, compute-bound", "memory taken, GPU idle", "collective that never ends"]
    left = [case for case in bench.CASES if case.name in names]
    said = {}
    for case in left:
        case.seconds = 7
    for i in range(2):  # once more where something else took the machine
        bench.run_some([(case, i, 0.5) for case in left], WORK, BUILD)
        said = {case.name: bench.verdicts(BUILD, WORK, case, i) for case in left}
        left = [case for case in left if said[case.name][0] != case.expected]
    for case in left:
        check(False, f"{case.name}: {said[case.name]}, not {case.expected}")
    report = watch("--replay", f"{WORK}/{bench.name_of(next(c for c in bench.CASES if c.name == names[0]), 0)}")
    watts = report["gpu_joules"] / report["length_s"]
    check(0.3 * 700 < watts < 1.05 * 700 * report["signals"]["power"], f"energy: {watts} W, {report['signals']['power']}")


def failing_calls():
    with open(f"{HERE}/fake_nvml.c") as f:
        symbols = sorted(set(re.findall(r"\bnvml[A-Z]\w+_?v?\d?", f.read())) - {"nvmlShutdown", "nvmlErrorString", "nvmlGpmSampleFree"})
    symbols = [s for s in symbols if not re.search("NvLink|MigDevice|Topology", s)]  # stoker devices alone makes these: cli/top
    check(len(symbols) > 20, f"the played library has {len(symbols)} calls")
    meter.make(f"{WORK}/meter")

    def wrong(symbol, seconds):
        """What is wrong with the report on a command of N seconds; None: nothing."""
        report = watch("--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so", "--", "sleep", seconds,
                       FAKE_NVML_METER=f"{WORK}/meter", FAKE_NVML_FAIL=symbol, FAKE_NVML_GPM="1")
        silent = symbol in ("nvmlDeviceGetMigMode", "nvmlDeviceGetEccMode", "nvmlDeviceGetPersistenceMode")  # not to have them is no fault
        missing = [m for m in report["missing"] if "(NVML: Not Supported; this GPU, or its mode" in m or "GPM" in m]
        if report["exit_code"] != 0 or not (missing or silent):
            return f"{symbol} fails: {report['missing']}"
        if symbol not in ("nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "all") \
                and report["signals"].get("gpus") != 1:
            return f"{symbol} fails, and the GPU is gone"
        return None

    def run(symbol):  # longer where a busy machine left no time to ask
        return wrong(symbol, "0.4") and wrong(symbol, "3")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for what in pool.map(run, [*symbols, "all"]):
            check(what is None, what)


def odd_gpus():
    """More GPUs than a machine commonly has, one that has fallen off the bus, some that are not used, and a container in which
    the driver tells the host's numbers of processes."""
    def watch_job(code, *options, **env):
        meter.make(f"{WORK}/odd")
        return watch("--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so", *options, "--", sys.executable, "-c",
                     f"import sys, time; sys.path.insert(0, {HERE!r}); from meter import Gpu\n" + code,
                     FAKE_NVML_METER=f"{WORK}/odd", **env)

    def play(gpus, seconds=6.5):
        return (f"all = [Gpu(i, 30000) for i in {gpus}]\nend = time.time() + {seconds}\n"
                "while time.time() < end:\n    [g.begin(0.9) for g in all]\n    time.sleep(0.06)\n    [g.end() for g in all]\n")

    def first(report):
        return [v["name"] for v in report["verdicts"]][:1]

    report = watch_job("Gpu(19)\ntime.sleep(1)", FAKE_NVML_GPUS="20")
    check(report["signals"]["gpus"] == 20, f"20 GPUs: {report['signals']['gpus']}")
    report = watch_job("Gpu(2)\ntime.sleep(1)", FAKE_NVML_GPUS="3", FAKE_NVML_LOST="1")
    check(report["signals"]["gpus"] == 2 and [g[:2] for g in report["gpus"]] == ["0:", "2:"], f"one is lost: {report['gpus']}")
    check(any("the GPU of GPU 1" in m and "bus" in m for m in report["missing"]), f"which is told: {report['missing']}")
    drawn = {"FAKE_NVML_GPUS": "2", "FAKE_NVML_DRAWN": "30000"}
    seen = watch_job(play([0], 1.5), **drawn)["signals"]  # a desktop's memory is nobody's loss, and its GPU may compute
    check(seen["gpus_idle"] == 0.5 and seen["unowned_memory"] < 0.1, f"a desktop: {seen}")
    for used, all_gpus, gain in ([0, 1, 2], 4, 4 / 3), ([0, 1], 8, 4):
        report = watch_job(play(used), FAKE_NVML_GPUS=str(all_gpus))
        most = max((r["at_best"] for v in report["verdicts"] for r in v["remedies"]), default=0)
        check(first(report) == ["one-gpu-of-several"] and 1.2 < most < gain + 0.01, f"{used} of {all_gpus}: {first(report)}, {most}")
    # Listed again when its memory moves, and not only once a second.
    late = watch_job("time.sleep(0.3)\n" + play([0], 0.5), FAKE_NVML_HOST="3000000")["signals"]
    check(late["gpu_used"] != 1 and late["unowned_memory"] < 0.1, f"host's numbers, taken late: {late}")
    # The job's number is not known before it runs: it is attached to.
    meter.make(f"{WORK}/odd")
    env = {**os.environ, "FAKE_NVML_METER": f"{WORK}/odd", "FAKE_NVML_HOST": "3000000"}
    code = f"import sys, time; sys.path.insert(0, {HERE!r}); from meter import Gpu\nf = open('/dev/null')\nprint(f.fileno(), flush=True)\n" + play([0], 40)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) as job:
        fd = int(job.stdout.readline())
        os.makedirs(f"{WORK}/over/proc/{job.pid}/fd")
        os.symlink("/dev/nvidia0", f"{WORK}/over/proc/{job.pid}/fd/{fd}")
        # Of the longer one there is enough to judge where other tests take the cores, too.
        for over, seconds in ([], "3"), (["--over", f"{WORK}/over"], "12"):
            report = watch("--pid", str(job.pid), "--seconds", seconds, "--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so",
                           *over, **{k: v for k, v in env.items() if k.startswith("FAKE")})
            check((report["signals"].get("gpu_used") == 1) == bool(over), f"host's numbers, {over}: {report['signals']}")
        check(first(report) == ["compute-bound"], f"host's numbers: {report['verdicts']}")
        job.kill()


def blocking_calls():
    """A driver that hangs, at once or later, stops neither the job nor the watching of it, and is named."""
    def wrong(symbol, seconds):
        begin = time.monotonic()
        report = watch("--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so", "--record", f"{WORK}/{symbol}.rec",
                       "--", "sleep", str(seconds), FAKE_NVML_METER=f"{WORK}/meter", FAKE_NVML_BLOCK=symbol)
        s = time.monotonic() - begin
        with open(f"{WORK}/{symbol}.rec") as f:
            n = sum(line.startswith("T ") for line in f)
        if report["exit_code"] != 0 or s > seconds + 12:
            return f"{symbol} blocks: exit code {report['exit_code']} after {s:.1f} s"
        if not any("no answer" in m for m in report["missing"]):
            return f"{symbol} blocks: {report['missing']}"
        return None if n >= 3 else f"{symbol} blocks: {n} samples"

    def run(symbol):
        return wrong(symbol, 3) and wrong(symbol, 8)

    symbols = ["nvmlInit_v2", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPcieThroughput"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for what in pool.map(run, symbols):
            check(what is None, what)


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
recordings()
trust()
evidence()
shares()
accounts()
spans()
gains()
iterators()
compared()
room()
stolen()
stopped()
remedies()
live_accounts()
live_roles()
becomes()
live()
failing_calls()
odd_gpus()
blocking_calls()
if n_failed:
    sys.exit(f"{n_failed} checks failed")
shutil.rmtree(WORK)
print("all checks passed")
