"""Jobs by number: what each does, what is wrong with it by construction, and how many cores it may want at once."""
import os
import random

SECONDS = 9.0
CORES = len(os.sched_getaffinity(0))

# (first cause, framework, mode and what surrounds it): "" is no cause, for jobs too short to be judged.
KINDS = [
    ("compute-bound-cpu", "c", "all"), ("compute-bound-cpu", "torch", "all"), ("compute-bound-cpu", "torch", "shared few"),
    ("one-core", "c", "one"), ("one-core", "python", "one"), ("one-core", "torch", "one"),
    ("asleep", "c", "timer"), ("asleep", "c", "sleeper"), ("asleep", "python", "sleep"), ("asleep", "python", "sleep workers"),
    ("asleep", "torch", "sleep"), ("asleep", "torch", "sleep workers"),
    ("waits-for-lock", "c", "flock"), ("waits-for-lock", "python", "flock"),
    ("input-network", "c", "network"), ("input-network", "python", "network"), ("input-network", "python", "http"),
    ("input-network", "python", "http workers"), ("input-network", "torch", "http"), ("input-network", "torch", "http workers"),
    ("input-outside", "c", "fifo"), ("input-outside", "python", "fifo"),
    ("input-one-thread", "c", "threads"), ("input-one-thread", "c", "stdin"), ("input-one-thread", "python", "thread"),
    ("input-one-thread", "python", "stdin"), ("input-one-thread", "python", "decode one"), ("input-one-thread", "torch", "decode one"),
    ("input-cpu", "python", "decode workers"), ("input-cpu", "torch", "decode workers"), ("input-cpu", "torch", "shared workers"),
    ("input-storage", "c", "disk"), ("input-storage", "python", "disk"),
    ("checkpoint-stall", "c", "save"), ("checkpoint-stall", "python", "save"), ("checkpoint-stall", "torch", "save"),
    ("output-blocked", "c", "output"), ("output-blocked", "python", "output"),
    ("page-faults", "c", "faults"), ("page-faults", "python", "faults"),
    ("kernel-time", "c", "kernel"), ("kernel-time", "python", "kernel"),
    ("oversubscription", "c", "all crowd"), ("oversubscription", "torch", "all crowd"),
    ("affinity", "c", "all bound"), ("affinity", "torch", "all bound"),
    ("cpu-contention", "c", "all others"), ("cpu-contention", "python", "one others"), ("cpu-contention", "torch", "all others"),
    ("cpu-quota", "c", "all quota"), ("cpu-quota", "torch", "all quota"), ("cpu-quota", "python", "one quota"),
    ("python-gil", "python", "gil"),
    ("process-storm", "python", "spawn"),
    ("memory-grows", "c", "grow"), ("memory-grows", "python", "grow"), ("memory-grows", "gpu", "grow"),
    ("recompiles", "c", "jit"), ("recompiles", "python", "jit"), ("recompiles", "python", "compile"),
    ("recompiles", "gpu", "jit"), ("recompiles", "gpu", "compile"),
    ("hang", "c", "stuck"), ("hang", "python", "stuck"), ("hang", "gpu", "stuck"),
    ("compute-bound", "gpu", "busy"),
    ("launch-bound", "gpu", "launch"),
    ("gpu-shared", "gpu", "busy tenant"),
    ("gpu-power-cap", "gpu", "busy cap"), ("gpu-heat", "gpu", "busy hot"),
    ("one-gpu-of-several", "gpu", "busy several"),
    ("straggler", "gpu", "ranks"), ("straggler", "torch", "gloo"),
    ("asleep", "gpu", "sleep"), ("asleep", "gpu torch", "sleep"), ("asleep", "gpu", "sleep workers"),
    ("waits-for-lock", "gpu", "flock"), ("input-outside", "gpu", "fifo"), ("output-blocked", "gpu", "output"),
    ("input-network", "gpu", "network"), ("input-network", "gpu", "http"), ("input-network", "gpu torch", "http workers"),
    ("input-one-thread", "gpu", "decode"), ("input-one-thread", "gpu torch", "decode"), ("input-one-thread", "gpu", "thread"),
    ("input-one-thread", "gpu", "stdin"), ("input-one-thread", "gpu torch", "decode one"),
    ("input-cpu", "gpu", "decode workers"), ("input-cpu", "gpu torch", "decode workers"),
    ("input-storage", "gpu", "disk"), ("checkpoint-stall", "gpu", "save"), ("checkpoint-stall", "gpu torch", "save"),
    ("process-storm", "gpu", "spawn"), ("python-gil", "gpu", "gil"),
    ("cpu-contention", "gpu", "decode others"), ("cpu-quota", "gpu", "decode quota"),
    ("", "c", "one short"), ("", "python", "sleep short"), ("", "torch", "all short"), ("", "gpu", "busy short"),
]
# Seeds from 3000 on: JAX and TensorFlow on cores, which compute on threads that the first one waits for. What a map of
# tf.data does in C++ cannot be told from that.
POOLS = [
    ("compute-bound-cpu", "jax", "all"), ("compute-bound-cpu", "tensorflow", "all"),
    ("own-threads", "jax", "one"), ("own-threads", "tensorflow", "one"), ("own-threads", "tensorflow", "map"),
    ("input-one-thread", "jax", "thread"), ("input-one-thread", "tensorflow", "thread"),
    ("input-cpu", "jax", "decode workers"), ("input-cpu", "tensorflow", "decode workers"),
    ("asleep", "jax", "sleep"), ("asleep", "tensorflow", "sleep"),
    ("input-network", "jax", "http"), ("input-network", "tensorflow", "http"),
    ("input-storage", "jax", "disk"), ("checkpoint-stall", "jax", "save"), ("checkpoint-stall", "tensorflow", "save"),
    ("recompiles", "jax", "retrace"), ("recompiles", "tensorflow", "retrace"), ("memory-grows", "jax", "grow"),
    ("cpu-quota", "jax", "all quota"), ("affinity", "jax", "all bound"), ("cpu-contention", "jax", "all others"),
]
TIDY_FROM = 2801  # from this seed on, and below 1000, half of the jobs in Python end as programs do, and not at once
HEALTHY = ["", "compute-bound", "compute-bound-cpu"]  # a verdict that names a fault is a false alarm
SLEEPING = {"asleep", "waits-for-lock", "input-network", "input-outside", "output-blocked"}
THEMSELVES = {"cpu-contention", "cpu-quota", "oversubscription", "affinity", "memory-grows"}  # the disturbance is the cause


def draw(seed):
    """The job of that number, the same on each machine but for the number of cores; a quarter have nothing wrong."""
    r = random.Random(seed)
    by_cause = {}
    for kind in KINDS if seed < 3000 else POOLS:
        by_cause.setdefault(kind[0], []).append(kind)
    cause = r.choice([c for c in HEALTHY if c in by_cause] if r.random() < 0.25 else sorted(set(by_cause) - set(HEALTHY)))
    _, framework, what = r.choice(by_cause[cause])
    mode, _, how = what.partition(" ")
    gpu, framework = framework.startswith("gpu"), framework.replace("gpu torch", "torch").replace("gpu", "python")
    work, share = r.uniform(3, 40), r.uniform(0.6, 0.92)
    job = {"seed": seed, "cause": cause, "framework": framework, "mode": mode, "how": how, "work_ms": round(work, 1),
           "wait_ms": round(work * share / (1 - share), 1), "jitter": r.choice([0, 0.3, 0.9]),
           "seconds": r.uniform(1.5, 3) if how == "short" else SECONDS,
           "around": r.choice(["", "", "", "noise", "monitor", "cache", "download", "load"]), "n": 0, "gpu": "",
           "late_s": round(r.uniform(1.5, 5), 1), "x": round(r.random(), 3)}
    if gpu:
        job["gpu"] = r.choice(["sleep", "spin"])
        job.update(use=round(r.uniform(0.65, 0.95), 3), start=r.choice([0, 0, 0, 3, 5]), gpm=r.choice([0, 1]), gpus=1)
    add_numbers(job, r)
    if how == "short":
        job["around"] = ""
        if gpu:  # most of it is its start
            job["start"] = r.choice([3, 6, 9])
    if cause in THEMSELVES:
        job["around"] = ""
    if not 1000 <= seed < TIDY_FROM:
        job["tidies"] = framework != "c" and random.Random(f"tidies {seed}").random() < 0.5
    return job


def add_numbers(job, r):
    """What the mode's one number is: workers, threads, MiB."""
    mode, how = job["mode"], job["how"]
    if how == "workers":
        job["n"] = CORES if mode in ("decode", "shared") else r.choice([2, 3])
        job["wait_ms"] *= job["n"]
    elif how == "few":
        job["n"] = 2
        job["work_ms"] = max(10, job["work_ms"])
        job["wait_ms"] = round(job["work_ms"] * CORES * r.uniform(0.05, 0.2), 1)
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
    elif mode == "gloo":
        job["n"] = r.choice([0, 1])  # the slow one
    elif how == "hot":
        job["seconds"] = 12.0
    if job["gpu"] and how in ("others", "quota"):
        job["n"] = CORES
        job["wait_ms"] *= CORES


def is_crowded(job):
    """Whether more threads than cores are part of what was planted, so that waiting for a core says nothing of others."""
    return job["how"] in ("crowd", "others", "quota", "bound") or job["mode"] == "shared"


def n_wanting(job):
    """How many threads may want a core at the same time, by construction."""
    n = {"all": job["n"], "decode": job["n"] + 1, "gil": job["n"] + 1}.get(job["mode"], 1)
    if job["mode"] in ("threads", "thread", "stdin", "compile", "ranks", "gloo", "spawn", "map", "retrace"):
        n = 2
    return n + (job["gpu"] == "spin") + (job["around"] == "noise")


def cores_of(job):
    """How many cores it keeps busy, about, for those that mostly sleep."""
    return 0.2 + job["work_ms"] / (job["work_ms"] + job["wait_ms"]) * (0.2 if job["gpu"] else 1)


def is_light(job):
    """Whether it may run while others do."""
    sleeps = job["cause"] in SLEEPING or job["cause"] in ("compute-bound", "gpu-shared", "one-gpu-of-several", "gpu-heat", "gpu-power-cap")
    return sleeps and job["gpu"] != "spin" and job["framework"] in ("c", "python") and job["around"] in ("", "monitor", "download")
