#!/usr/bin/env python3
"""Replicas: as threads of one process, and as processes of Open MPI and of MPICH, on one host and as if on several.

usage: test_ranks.py STOKER WORK_FOLDER
"""
import array
import bisect
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import time

from program import RECIPE, STOKER, TIMEOUT, accepted, begin, check, end, losses, refused, run

LAUNCHERS = {"Open MPI": (["mpirun.openmpi", "--oversubscribe"], "libmpi.so.40"),
             "MPICH": (["mpirun.mpich"], "libmpich.so.12")}


# Small ones of the three kinds: dropout, batch norm over all replicas, clipping, a tied head. Their data: arrays. Rates
# at which nothing diverges: rounding would grow a hundredfold in each step.
NETWORKS = {
    "resnet": ({"image": (16, 16, 3), "label": 10}, """
model: {resnet18: {classes: 10, stem: cifar}}
optimizer: {sgd: {lr: 0.001, momentum: 0.9}}
sync_batch_norm: true
"""),
    "bert": ({"tokens": (1000, 16), "label": 2}, """
model: {bert: {size: mini, layers: 2, vocabulary: 1000, positions: 16, dropout: 0.1, classes: 2, length: 16}}
optimizer: {adamw: {lr: 1e-4}}
clip_norm: 1
"""),
    "gpt": ({"tokens": (257, 16), "targets": (257, 16)}, """
model: {gpt2: {size: mini, layers: 2, heads: 2, width: 64, vocabulary: 257, positions: 16, length: 16}}
optimizer: {adamw: {lr: 1e-4}}
""")}


def write_array(path, what, n):
    """A .npy of n samples: numbers of a shape, class numbers, or (below, how many) tokens."""
    draw = random.Random(path)
    shape = what if isinstance(what, tuple) and len(what) == 3 else what[1:] if isinstance(what, tuple) else ()
    count = n * math.prod(shape)
    if shape == what:
        kind, data = "<f4", array.array("f", (draw.random() for _ in range(count)))
    else:
        kind, data = "<i4", array.array("i", (draw.randrange(what[0] if shape else what) for _ in range(count)))
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {(n, *shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data.tobytes())


def environment(**more):
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            # MPI's libraries leave memory behind; that of ranks which are threads is looked at.
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0", **more}


def start(launcher, n, *args, **env):
    return subprocess.Popen([*launcher, "-n", str(n), STOKER, "train", *args], env=environment(**env), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def launch(launcher, n, *args, **env):
    process = start(launcher, n, *args, **env)
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out + err


def same(a, b, tolerance=1e-4):
    return len(a) == len(b) and all(abs(x - y) <= tolerance * abs(x) for x, y in zip(a, b))


def result(folder):
    with open(f"{folder}/result.json") as f:
        return json.load(f)


def threads():
    accepted(["train", "small.yaml", "--out", "one", "--threads", "2"])
    for n in (2, 4):
        accepted(["train", "synced.yaml", "--out", f"threads-{n}", "--replicas", str(n), "--threads", "2"],
                 f"{n} replicas, each with {20 // n} images of a batch")
        check(same(losses("one"), losses(f"threads-{n}")), f"{n} replicas: {losses('one')} {losses(f'threads-{n}')}")
        for figure in ("test_loss", "test_accuracy"):
            a, b = result("one")[figure], result(f"threads-{n}")[figure]
            check(abs(a - b) <= 1e-3 * abs(a), f"{n} replicas: {figure} {a} and {b}")
    # In two parts, with other numbers of replicas.
    accepted(["train", "synced.yaml", "--out", "parts", "--replicas", "2", "--steps", "7"])
    accepted(["train", "synced.yaml", "--out", "parts", "--replicas", "4", "--resume"])
    check(same(losses("one"), losses("parts")), "a run goes on with other numbers of replicas")
    accepted(["train", "deep.yaml", "--out", "deep", "--replicas", "2", "--threads", "2", "--steps", "12", "--set", "overlap=false"])
    # With the optimiser's state in parts: the same bits, whole checkpoints, and other ways to go on.
    accepted(["train", "wide.yaml", "--out", "wide", "--replicas", "2", "--threads", "2"])
    accepted(["train", "wide.yaml", "--out", "divided", "--replicas", "2", "--threads", "2", "--set", "shard=optimizer"])
    check(losses("wide") == losses("divided"), f"state in parts: {losses('wide')} {losses('divided')}")
    last = sorted(d for d in os.listdir("wide") if d.startswith("step-"))[-1]
    for name in ("model", "optimizer"):
        with open(f"wide/{last}/{name}.safetensors", "rb") as a, open(f"divided/{last}/{name}.safetensors", "rb") as b:
            check(a.read() == b.read(), f"{name}.safetensors is that of replicas that have all of it")
    accepted(["train", "wide.yaml", "--out", "again", "--replicas", "4", "--set", "shard=optimizer", "--steps", "7"])
    accepted(["train", "wide.yaml", "--out", "again", "--steps", "12", "--resume"])
    accepted(["train", "wide.yaml", "--out", "again", "--replicas", "2", "--set", "shard=optimizer", "--resume"])
    check(same(losses("wide"), losses("again")), f"goes on from parts: {losses('again')}")
    refused(["train", "small.yaml", "--out", "no", "--replicas", "3"], 1, "a batch of 20 cannot be shared by 3 replicas")
    check(not os.path.exists("no"), "what is refused leaves nothing")


def write_network(name):
    """Its data and its recipe."""
    data, rest = NETWORKS[name]
    for field, what in data.items():
        write_array(f"{name}-{field}.npy", what, 40)
    fields = ", ".join(f"{field}: {name}-{field}.npy" for field in data)
    with open(f"{name}.yaml", "w") as f:
        f.write(f"name: {name}\ndata: {{train: {{source: {{npy: {{{fields}}}}}}}}}\nbatch: 8\nepochs: 1\nprecision: f32\n"
                f"log: {{every: 1 step}}\ncheckpoint: {{end: false}}{rest}")


def networks():
    """1, 2 and 4 replicas give one device's losses at the same batch."""
    for name in NETWORKS:
        write_network(name)
        for n in (1, 2, 4):
            accepted(["train", f"{name}.yaml", "--out", f"{name}-{n}", "--replicas", str(n), "--threads", "2", "--steps", "4"])
            check(len(losses(f"{name}-{n}")) == 4 and same(losses(f"{name}-1"), losses(f"{name}-{n}"), 1e-3),
                  f"{name}: {losses(f'{name}-1')} and with {n} replicas {losses(f'{name}-{n}')}")
    # The plan of one of two: half of the batch, and what they add up is all that is trained.
    done = run("plan", "bert.yaml", "--replicas", "2", "--json")
    check(done.returncode == 0, f"plan: {done.stderr}")
    plan, narrow = json.loads(done.stdout), json.loads(run("plan", "bert.yaml", "--replicas", "2", "--set", "sum_precision=bf16", "--json").stdout)
    check(plan["n_replicas"] == 2 and plan["batch"] == 4 and plan["n_sums"] > 2, f"plan: {plan}")
    weights = 4 * plan["n_trainable"]
    check(weights <= plan["sum_bytes"] < weights + 1000, f"plan: {weights} bytes of weights, {plan['sum_bytes']} of sums")
    check(weights // 2 <= narrow["sum_bytes"] < weights // 2 + 1000, f"plan in bf16: {weights}, {narrow['sum_bytes']}")


def traced(name, launcher, folder, **env):
    """The first gradients are added up while the backward pass goes on, by a thread of its own."""
    code, text = launch(launcher, 2, "deep.yaml", "--out", folder, "--threads", "1", "--steps", "12", "--trace", "2-11", **env)
    check(code == 0 and losses("deep") == losses(folder), f"{name}, sums meanwhile: {text}")
    with open(f"{folder}/trace.json") as f:
        events = json.load(f)["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    sums = [e["ts"] for e in events if e["name"] == "all_reduce" and "stk-sums" in threads.get(e["tid"], "")]
    products = sorted(e["ts"] for e in events if e["name"].startswith("matmul"))
    # A step's products after which each sum began; 0: after the last.
    of_step = len(products) // 10
    after = [bisect.bisect(products, t) % of_step for t in sums]
    check(len(products) % 10 == 0 and any(after), f"{name}: sums at {after} of {of_step} products, {threads}")


def processes(name, launcher):
    traced(name, launcher, f"{name}-deep".replace(" ", "-"))
    traced(name, launcher, f"{name}-deep-hosts".replace(" ", "-"), STOKER_MPI_SHARED="off")
    for n in (2, 4):
        folder = f"{name}-{n}".replace(" ", "-")
        code, text = launch(launcher, n, "synced.yaml", "--out", folder, "--threads", "1")
        check(code == 0, f"{name}, {n} ranks: {text}")
        check(losses(folder) == losses(f"threads-{n}"), f"{name}: processes give the bits of threads")
        if n == 2:
            code, text = launch(launcher, n, "wide.yaml", "--out", folder + "-divided", "--threads", "1", "--set", "shard=optimizer")
            check(code == 0 and losses(folder + "-divided") == losses("wide"), f"{name}, state in parts: {text}")
        check(text.count("saved  ") == 1 and text.count("2/2") >= 1, f"one of them tells: {text}")
    for order in ("on", "off"):
        code, text = launch(launcher, 4, "synced.yaml", "--out", "hosts", "--threads", "1", STOKER_MPI_SHARED="off", STOKER_MPI_ORDER=order)
        check(code == 0 and same(losses("one"), losses("hosts")), f"{name}, as if on several hosts: {text}")
        check(order == "off" or losses("hosts") == losses("threads-4"), f"{name}: hosts give the bits of threads")
    # What is wrong is told once, and leaves nothing.
    code, text = launch(launcher, 3, "synced.yaml", "--out", "no")
    check(code not in (0, -15) and text.count("cannot be shared by 3 replicas") == 1, f"{name}: {code} {text}")
    done = subprocess.run([*launcher, "-n", "1", STOKER, "train", "synced.yaml", "--out", "no", ":", "-n", "1", STOKER, "train",
                           "synced.yaml", "--seed", "7", "--out", "no"], env=environment(), capture_output=True, text=True,
                          timeout=TIMEOUT)
    check(done.returncode != 0 and "rank 1" in done.stderr and "another recipe" in done.stderr, f"{name}: {done.stderr}")
    code, text = launch(launcher, 2, "synced.yaml", "--set", "batsh=3", "--out", "no")
    check(code != 0 and text.count("stoker: ") == 1 and "did you mean 'batch'" in text, f"{name}: {text}")
    code, text = launch(launcher, 2, "synced.yaml", "--replicas", "2", "--out", "no")
    check(code != 0 and text.count("a process is one") == 1, f"{name}: {text}")
    check(not os.path.exists("no"), "what is refused leaves nothing")


def ranks_of(process):
    """Numbers of the processes that train below a launcher."""
    out = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in out.splitlines()[1:]]
    below, grown = {process.pid}, True
    while grown:
        more = {int(pid) for pid, parent, _ in rows if int(parent) in below} - below
        below |= more
        grown = bool(more)
    return sorted(int(pid) for pid, _, args in rows if int(pid) in below and args.startswith(STOKER))


def wait_for_steps(folder, n):
    for _ in range(int(TIMEOUT * 10)):
        if os.path.exists(f"{folder}/metrics.jsonl") and len(losses(folder)) >= n:
            return
        time.sleep(0.1)
    check(False, f"'{folder}' never came to step {n}")


def faults(name, launcher):
    """A process is killed: the others say so at once, and the run goes on from its last checkpoint."""
    folder = f"killed-{name}".replace(" ", "-")
    process = start(launcher, 2, "long.yaml", "--out", folder, "--threads", "1")
    wait_for_steps(folder, 12)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    begun = time.time()
    out, err = process.communicate(timeout=TIMEOUT)
    check(process.returncode != 0, f"{name}: a run whose rank was killed fails")
    check(time.time() - begun < 60, f"{name}: it took {time.time() - begun:.1f} s")
    # The launcher may end the others before they can say a word; that they know is tests/comm/test_shared.c's.
    if not re.search(r"rank \d+ \(process \d+\) is gone", out + err):
        print(f"{name}: the launcher ended the others first")
    check(any(d.startswith("step-") for d in os.listdir(folder)), f"{name}: checkpoints are there")
    code, text = launch(launcher, 2, "long.yaml", "--out", folder, "--resume", "--steps", "20", "--threads", "1")
    check(code == 0 and len(losses(folder)) >= 20, f"{name}: {text}")


def lost_between_steps(name, launcher):
    """A rank that fails in an evaluation leaves the first one with a whole state, which is saved."""
    folder = f"evaluated-{name}".replace(" ", "-")
    code, text = launch(launcher, 2, "broken.yaml", "--out", folder, "--threads", "1")
    check(code != 0 and "rank 1" in text or "replica 1" in text, f"{name}: {text}")
    check(os.path.exists(f"{folder}/step-10/manifest.json"), f"{name}: {os.listdir(folder)} {text}")


def misfits():
    """As srun starts two processes without an MPI, or with one that the library does not speak; ./dev slurm has the real one."""
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
    done = run("train", "small.yaml", "--out", "no", env=environment(**step))
    check(done.returncode == 1 and "'srun --mpi=pmix'" in done.stderr, f"no MPI: {done.returncode} {done.stderr}")
    done = run("train", "small.yaml", "--out", "no", env=environment(**{**step, "SLURM_PROCID": "1"}))
    check(done.returncode == 1 and not done.stderr, f"the second one is quiet: {done.returncode} {done.stderr}")
    if shutil.which("mpirun.mpich"):
        done = run("train", "small.yaml", "--out", "no", env=environment(**step, PMIX_RANK="0", STOKER_MPI="libmpich.so.12"))
        check(done.returncode == 1 and "each is alone for MPICH" in done.stderr, f"misfit: {done.returncode} {done.stderr}")
    check(not os.path.exists("no"), "what is refused leaves nothing")


def hosts(name, launcher):
    """--hosts: the command that is run, and the real one, which needs no ssh for this host."""
    os.makedirs("path", exist_ok=True)
    with open("path/mpirun", "w") as f:
        f.write(f'#!/bin/sh\n[ "$1" = --version ] || {{ printf "%s\\n" "$@" >words; echo "$HWLOC_COMPONENTS" >hwloc; }}\nexec {launcher[0]} "$@"\n')
    os.chmod("path/mpirun", 0o755)
    folder, path = f"hosts-{name}".replace(" ", "-"), f"{os.path.abspath('path')}:{os.environ['PATH']}"
    done = run("train", "synced.yaml", "--hosts", "localhost:2", "--threads", "1", "--out", folder, "--steps", "12",
               env=environment(PATH=path, STOKER_MPI_SHARED="on"))
    check(done.returncode == 0 and losses(folder) == losses("threads-2")[:12], f"{name}, --hosts: {done.stdout} {done.stderr}")
    with open("words") as f:
        words = f.read().split("\n")[:-1]
    option = ["--host", "localhost:2", "--bind-to", "none"] if name == "Open MPI" else ["-hosts", "localhost:2"]
    check(words[:2 + len(option)] == ["-n", "2", *option], f"{name}: {words}")
    check(words[-9:] == [STOKER, "train", "synced.yaml", "--threads", "1", "--out", folder, "--steps", "12"], f"{name}: {words}")
    with open("hwloc") as f:
        check(f.read() == "-opencl\n", f"{name}: its launcher would load OpenCL, and lose signals that it is to pass on")
    check(name != "Open MPI" or "-x STOKER_MPI_SHARED" in " ".join(words), f"{name}: {words}")


def no_hosts():
    for text in ("", "a,", "-oProxyCommand=x", "a b"):  # tests/elastic/test_launch.c has more
        refused(["train", "small.yaml", f"--hosts={text}", "--out", "no"], 2, "option '--hosts' must be names")
    refused(["train", "small.yaml", "--hosts", "a,b"], 1, "'mpirun' is not there", env=environment(PATH="/nowhere"))


def main():
    begin()
    recipes = {"small": RECIPE, "synced": RECIPE + "sync_batch_norm: true\n",
               "deep": RECIPE.replace("{cnn: {widths: [4, 8]}}", "{mlp: {hidden: [512, 512, 512, 512, 512]}}"),
               "wide": RECIPE.replace("{cnn: {widths: [4, 8]}}", "{mlp: {hidden: [64]}}"),
               "broken": RECIPE.replace("every: 5 steps", "every: 1000 steps").replace(
                   "  test:\n    source: {images: digits/test}", "  valid:\n    source: {images: broken/test}"),
               "long": RECIPE.replace("epochs: 2", "epochs: 100000")}
    for name, text in recipes.items():
        with open(f"{name}.yaml", "w") as f:
            f.write(text + "precision: f32\n")
    # One file of the second rank's share is none.
    shutil.copytree("digits/test", "broken/test")
    files = sorted(os.path.join(at, f) for at, _, names in os.walk("broken/test") for f in names)
    with open(files[21], "wb") as f:
        f.write(b"no image")
    threads()
    networks()
    misfits()
    no_hosts()
    found = 0
    for name, (launcher, library) in LAUNCHERS.items():
        if not shutil.which(launcher[0]):
            print(f"SKIP '{name}' is not installed: {launcher[0]}")
            continue
        found += 1
        processes(name, launcher)
        hosts(name, launcher)
        faults(name, launcher)
        lost_between_steps(name, launcher)
    end()


if __name__ == "__main__":
    main()
