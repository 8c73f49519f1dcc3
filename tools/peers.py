#!/usr/bin/env python3
"""Times Stoker compared with the peers on the same machine in the same hour, in turn, and writes docs/benchmarks.md. Run by
./dev peers.

usage: peers.py PEERS VENVS DERIVED [--rounds N] [--cold N] [--seconds S] [--parameters] [WORKLOAD...]

PEERS is the folder with the peers' scripts (train_torch.py, e2e.py, ...), VENVS what its setup.sh made, DERIVED what its
prepare.py made. Training: mnist-mlp cifar-cnn-e2e cifar-resnet18 resnet50-224 bert-base gpt2-4x256, and in bf16
resnet18-bf16 resnet50-224-bf16 bert-base-bf16 gpt2-4x256-bf16. Input pipelines: photos photos-centre cifar-jpeg
tfrecord memory. Every variant is one process; rounds alternate over all variants, and the table gives each one's median.
Ratios are Stoker's speed over the peer's. A peer whose environment is missing is left out. A network of another size would
be another work: where a peer tells that it trains over 0.2 % more or fewer parameters than Stoker, nothing is written.
--parameters compares these numbers only.

What a start costs beyond a step is measured apart, N times (3) for each variant one right after the other: the first run of a
program reads its files from the disk, and in a virtual machine gets its memory from the host, which takes longer than the
start itself and depends on what ran before. The median counts.
"""
import argparse
import datetime
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from machine import machine

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

STEPS = ["--steps", "13"]
BF16 = STEPS + ["--set", "precision=bf16"]


def train_peers(workload, precision, with_tensorflow):
    """PyTorch's variants on one of train_torch.py's workloads, and TensorFlow's."""
    torch = f"train_torch.py {workload} --precision {precision}"
    peers = [("PyTorch compile, tcmalloc", "pt", True, torch + " --compile"),
             ("PyTorch eager, tcmalloc", "pt", True, torch),
             ("PyTorch eager", "pt", False, torch)]
    return peers + [("TensorFlow", "tf", False, f"train_tf.py {workload} --precision {precision}")] * with_tensorflow


# workload: (unit, smaller is better, recipe, recipe's options, peers: name, venv, tcmalloc, script and arguments)
# Without a venv it is Stoker again, on what `stoker index` or `stoker pack` made of the data.
WORKLOADS = {
    "mnist-mlp": ("s/epoch", True, "mnist-mlp", ["--set", "precision=f32"], [
        ("PyTorch eager, direct", "pt", False, "train_torch.py mnist-mlp --loader direct"),
        ("PyTorch eager, direct, tcmalloc", "pt", True, "train_torch.py mnist-mlp --loader direct"),
        ("PyTorch eager, DataLoader", "pt", False, "train_torch.py mnist-mlp --loader dataloader"),
        ("JAX jit", "pt", False, "train_jax.py mnist-mlp"),
        ("Keras fit", "tf", False, "train_tf.py mnist-mlp")]),
    "cifar-cnn-e2e": ("images/s", False, "cifar-cnn",
                      ["--epochs", "1", "--set", "checkpoint.every=100 epochs", "--set", "precision=f32"], [
        ("TensorFlow, tf.data", "tf", False, "e2e.py cifar-cnn-e2e --peer tf"),
        ("PyTorch, decode_jpeg, tcmalloc", "pt", True, "e2e.py cifar-cnn-e2e --peer torch-tensor"),
        ("PyTorch, PIL", "pt", False, "e2e.py cifar-cnn-e2e --peer torch")]),
    "cifar-resnet18": ("images/s", False, "cifar-resnet18", ["--steps", "16", "--set", "precision=f32"], [
        ("PyTorch compile, tcmalloc", "pt", True, "train_torch.py cifar-resnet18 --compile"),
        ("PyTorch eager, tcmalloc", "pt", True, "train_torch.py cifar-resnet18"),
        ("PyTorch eager", "pt", False, "train_torch.py cifar-resnet18"),
        ("TensorFlow", "tf", False, "train_tf.py cifar-resnet18")]),
    "resnet50-224": ("images/s", False, "bench-resnet50", STEPS, train_peers("resnet50-224", "f32", True)),
    "resnet50-224-bf16": ("images/s", False, "bench-resnet50", BF16, train_peers("resnet50-224", "bf16", True)),
    "resnet18-bf16": ("images/s", False, "bench-resnet18", BF16, train_peers("cifar-resnet18", "bf16", True)),
    "bert-base": ("sequences/s", False, "bench-bert", STEPS, train_peers("bert-base", "f32", False)),
    "bert-base-bf16": ("sequences/s", False, "bench-bert", BF16, train_peers("bert-base", "bf16", False)),
    "gpt2-4x256": ("tokens/s", False, "bench-gpt2", STEPS, train_peers("gpt2-4x256", "f32", False)),
    "gpt2-4x256-bf16": ("tokens/s", False, "bench-gpt2", BF16, train_peers("gpt2-4x256", "bf16", False)),
    "photos": ("images/s", False, "photos", [], [
        ("Stoker, indexed", None, False, "index photos"),
        ("Stoker, packed", None, False, "pack photos"),
        ("DALI", "dali", False, "data_dali.py photos"),
        ("FFCV, raw pixels", "ffcv", False, "data_ffcv.py photos --raw"),
        ("FFCV, JPEG", "ffcv", False, "data_ffcv.py photos"),
        ("tf.data", "tf", False, "data_tf.py photos --parallel 2"),
        ("PyTorch, decode_jpeg", "pt", False, "data_torch.py photos --decoder tensor"),
        ("PyTorch, PIL", "pt", False, "data_torch.py photos"),
        ("Grain", "pt", False, "data_grain.py photos --workers 0"),
        ("WebDataset", "pt", False, "data_webdataset.py photos")]),
    "photos-centre": ("images/s", False, "photos-centre", [], [
        ("DALI", "dali", False, "data_dali.py photos-centre"),
        ("FFCV, JPEG", "ffcv", False, "data_ffcv.py photos-centre"),
        ("tf.data", "tf", False, "data_tf.py photos-centre --parallel 2"),
        ("PyTorch, decode_jpeg", "pt", False, "data_torch.py photos-centre --decoder tensor"),
        ("Grain", "pt", False, "data_grain.py photos-centre --workers 0")]),
    "cifar-jpeg": ("images/s", False, "bench-cifar-jpeg", [], [
        ("Stoker, packed", None, False, "pack cifar10/train"),
        ("DALI", "dali", False, "data_dali.py cifar-jpeg"),
        ("tf.data", "tf", False, "data_tf.py cifar-jpeg"),
        ("PyTorch, decode_jpeg", "pt", False, "data_torch.py cifar-jpeg --decoder tensor"),
        ("Grain", "pt", False, "data_grain.py cifar-jpeg")]),
    "tfrecord": ("records/s", False, "bench-tfrecord", [], [
        ("tf.data, vectorised", "tf", False, "data_tf.py tfrecord --vectorised"),
        ("DALI", "dali", False, "data_dali.py tfrecord")]),
    "memory": ("images/s", False, "bench-memory", [], [
        ("tf.data, vectorised", "tf", False, "data_tf.py memory --vectorised"),
        ("PyTorch, TensorDataset", "pt", False, "data_torch.py memory --workers 0")]),
}
TRAINING = ["mnist-mlp", "cifar-cnn-e2e", "cifar-resnet18"] + [w for w in WORKLOADS if w.startswith(("resnet", "bert", "gpt2"))]


def tcmalloc():
    found = glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")
    return found[0] if found else None


# FFCV compiles for some 16 s in its first epoch, which a script that is given little time takes for the whole result.
def run_peer(args, venv, use_tcmalloc, command):
    python = os.path.join(args.venvs, venv, "bin", "python")
    if not os.path.exists(python) or (use_tcmalloc and not tcmalloc()):
        return None
    script, *rest = command.split()
    env = dict(os.environ)
    seconds = args.seconds if venv != "ffcv" else max(args.seconds, 30)
    if use_tcmalloc:
        env["LD_PRELOAD"] = tcmalloc()
    done = subprocess.run([python, os.path.join(args.peers, script), *rest, "--data", args.data, "--derived", args.derived,
                           "--seconds", str(seconds), "--threads", "2"], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines[-1] if lines else None


# Keras' ResNet-50 has biases in its convolutions, 0.1 % of its parameters, which the batch norms behind them undo.
MOST_APART = 0.002


def check_parameters(workload, name, line, ours):
    """Ends where the peer trains another number of parameters; the number, or None where it does not say."""
    told = re.search(r"(\d+) params", line.get("notes", ""))
    theirs = int(told.group(1)) if told else ours
    if theirs != ours:
        apart = f"{workload}: {name} trains {theirs:,} parameters, Stoker {ours:,}"
        if abs(theirs - ours) > MOST_APART * ours:
            sys.exit(f"{apart}: that is other work")
        print(apart, flush=True)
    return told and theirs


def count_parameters(recipe, options):
    """What Stoker trains, by its plan."""
    sets = [word for i, word in enumerate(options) if "--set" in options[max(i - 1, 0):i + 1]]
    command = [os.path.join(HERE, "build", "stoker"), "plan", os.path.join(HERE, "recipes", recipe + ".yaml"), "--json", *sets]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)["n_trainable"]


def compare_parameters(args):
    for workload in args.workloads or [w for w in TRAINING if WORKLOADS[w][2].startswith("bench-")]:
        _, _, recipe, options, peers = WORKLOADS[workload]
        ours = count_parameters(recipe, options)
        for name, venv, use_tcmalloc, command in peers:
            if name.endswith("compile, tcmalloc"):
                continue  # the same network as the eager one, after a minute
            line = run_peer(args, venv, use_tcmalloc, command)
            theirs = check_parameters(workload, name, line, ours) if line else None
            print(f"{workload}: {name} {f'{theirs:,}' if theirs else 'does not say'}, Stoker {ours:,}", flush=True)


def ingested(args, data, how):
    """The recipe's options for what `stoker index` or `stoker pack` makes of a folder of the data; made once."""
    verb, folder = how.split()
    out = os.path.join(HERE, "runs", "peers", how.replace(" ", "-").replace("/", "-"))
    stoker = os.path.join(HERE, "build", "stoker")
    if not os.path.exists(out):
        source = os.path.join(data, folder)
        if verb == "index":
            shutil.copytree(source, out + ".partial")
            subprocess.run([stoker, "index", out + ".partial", "--every", "8", "--quiet"], check=True)
            os.rename(out + ".partial", out)
        else:
            subprocess.run([stoker, "pack", source, "--out", out, "--every", "8", "--quiet"], check=True)
    key = "images" if folder.startswith("cifar") else "files"
    return ["--set", f"data.train.source.{key}={out}", "--set", "data.train.index=auto"]


def run_stoker_data(args, recipe, how):
    """The same figures as the peers give, from `stoker data bench`."""
    derived = recipe in ("bench-cifar-jpeg", "bench-tfrecord")
    data = args.derived if derived else args.data
    command = [os.path.join(HERE, "build", "stoker"), "data", "bench", os.path.join(HERE, "recipes", recipe + ".yaml"),
               "--json", "--threads", "2", "--seconds", str(max(1, round(args.seconds)))]
    command += ingested(args, data, how) if how else []
    env = dict(os.environ, STOKER_DATA=data)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
    line = json.loads(done.stdout)
    return {"value": line["samples_per_s"], "startup_s": line["first_batch_s"],
            "peak_rss_mib": line["peak_rss_bytes"] / 2**20}


def run_stoker(args, workload, recipe, options):
    """The same figures as the peers give: value, startup_s, peak_rss_mib."""
    out = os.path.join(HERE, "runs", "peers", workload)
    shutil.rmtree(out, ignore_errors=True)
    command = [os.path.join(HERE, "build", "stoker"), "train", os.path.join(HERE, "recipes", recipe + ".yaml"), "--out",
               out, "--quiet", "--threads", "2", *options]
    env = dict(os.environ, STOKER_DATA=args.derived if "cifar" in workload else args.data)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
    with open(os.path.join(out, "result.json")) as f:
        result = json.load(f)
    epochs = []
    with open(os.path.join(out, "metrics.jsonl")) as f:
        for line in f:
            record = json.loads(line)
            if "epoch_s" in record:
                epochs.append(record["epoch_s"])
    if workload == "mnist-mlp":
        value = statistics.median(epochs[1:])
    elif workload == "cifar-cnn-e2e":
        value = 50000 / epochs[0]  # whole epochs, waiting and first step included
    else:
        value = result["tokens_per_s" if WORKLOADS[workload][0] == "tokens/s" else "samples_per_s"]
    return {"value": value, "startup_s": result["first_step_s"], "peak_rss_mib": result["peak_rss_bytes"] / 2**20,
            "step_s": result["step_ms_median"] / 1e3 if "step_ms_median" in result else None,
            "input_wait_share": result["input_wait_share"], "accuracy": result["test_accuracy"]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("peers")
    p.add_argument("venvs")
    p.add_argument("derived")
    p.add_argument("workloads", nargs="*")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--cold", type=int, default=3)
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--parameters", action="store_true")
    args = p.parse_intermixed_args()  # options may stand before the workloads
    args.data = os.path.join(os.path.abspath(args.peers), "..", "data")
    args.derived = os.path.abspath(args.derived)
    if args.parameters:
        args.seconds = 1
        return compare_parameters(args)
    state_path = os.path.join(HERE, "runs", "peers.json")
    os.makedirs(os.path.dirname(state_path), exist_ok=True)
    tables = {}
    if os.path.exists(state_path):
        with open(state_path) as f:
            tables = json.load(f)
    for workload in args.workloads or WORKLOADS:
        unit, smaller, recipe, options, peers = WORKLOADS[workload]
        variants = [("Stoker", None, False, "")] + peers
        found = {}
        n_parameters = count_parameters(recipe, options) if recipe.startswith("bench-") and workload in TRAINING else 0

        def run(variant):
            name, venv, use_tcmalloc, command = next(v for v in variants if v[0] == variant)
            print(f"[{time.strftime('%T')}] {workload}: {name}", file=sys.stderr)
            if venv is not None:
                return run_peer(args, venv, use_tcmalloc, command)
            if workload in TRAINING:
                return run_stoker(args, workload, recipe, options)
            return run_stoker_data(args, recipe, command)

        for i in range(args.rounds):
            for name, *_ in variants:
                line = run(name)
                if line and n_parameters:
                    check_parameters(workload, name, line, n_parameters)
                if line:
                    found.setdefault(name, []).append(line)
        cold = {}
        if args.cold and recipe.startswith("bench-") and workload in TRAINING:
            seconds, args.seconds = args.seconds, 1
            cold = measure_cold(args, run, found)
            args.seconds = seconds
        rows = []
        ours = statistics.median(line["value"] for line in found["Stoker"])
        for name, lines in found.items():
            value = statistics.median(line["value"] for line in lines)
            ratio = value / ours if smaller else ours / value
            rows.append([name, value, min(x["value"] for x in lines), max(x["value"] for x in lines), ratio,
                         min(x["startup_s"] for x in lines), max(x["peak_rss_mib"] for x in lines),
                         lines[-1].get("input_wait_share"), cold.get(name)])
        tables[workload] = {"unit": unit, "date": datetime.date.today().isoformat(), "rows": rows, "rounds": args.rounds,
                            "machine": machine()}
        with open(state_path, "w") as f:
            json.dump(tables, f, indent=1)
        write(tables)


def beyond_a_step(line):
    return line["startup_s"] - line["step_s"]


def measure_cold(args, run, found):
    """What a start costs beyond a step, by variant; run(variant) gives a line with startup_s and value."""
    cold = {}
    ours = statistics.median(line["value"] for line in found["Stoker"])
    step_s = statistics.median(line["step_s"] for line in found["Stoker"])
    for name in found:
        lines = [line for line in [run(name) for _ in range(args.cold)] if line]
        for line in lines:
            line.setdefault("step_s", step_s * ours / line["value"])  # the same work a step
        if lines:
            cold[name] = statistics.median(beyond_a_step(line) for line in lines)
    return cold


COLUMNS = ["range", "Stoker is faster by", "cold start s", "beyond a step s", "peak MiB", "input wait", "processor", "date", "rounds"]


def rows_of(table):
    """As the file has them, the processor last but two."""
    for name, value, low, high, ratio, start, rss, wait, *cold in table["rows"]:
        digits = 3 if value < 10 else 1 if value < 100 else 0
        speed = "" if name.startswith("Stoker") else f"{ratio:.2f}x"
        beyond = f"{cold[0]:.2f}" if cold and cold[0] is not None else ""
        cells = [name, f"{value:,.{digits}f}", f"{low:,.{digits}f}-{high:,.{digits}f}", speed, f"{start:.2f}", beyond,
                 f"{rss:,.0f}", "" if wait is None else f"{100 * wait:.2f} %", table["machine"], table["date"], str(table["rounds"])]
        yield f"| {' | '.join(cells)} |"


def kept_tables(path):
    """What the file has of each workload: its unit, and its rows."""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        parts = f.read().split("\n## ")[1:]
    tables = {}
    for part in parts:
        lines = [line for line in part.split("\n") if line.startswith("|")]
        tables[part.split("\n", 1)[0].strip()] = (lines[0].split("|")[2].strip(), lines[2:])
    return tables


def write(tables):
    """One table for each workload; what was measured on another processor stays."""
    path = os.path.join(HERE, "docs", "benchmarks.md")
    kept = kept_tables(path)
    for workload, table in tables.items():
        others = [row for row in kept.get(workload, (None, []))[1] if row.split("|")[-4].strip() != table["machine"]]
        kept[workload] = (table["unit"], [*rows_of(table), *others])
    text = ("# Compared with the peers\n\n"
            "Written by `./dev peers`: both sides in turn on the same machine, two threads each, one process a run, f32 unless named bf16.\n"
            "Medians of the rounds; the ratio is Stoker's speed over the peer's, measured on the same processor on the same day.\n"
            "Cold start is from the start of the process to the end of the first step, or to the first batch; the shortest of the\n"
            "rounds. Beyond a step: the same less a later step, from runs of each variant one right after the other, the median.\n")
    for workload in (w for w in WORKLOADS if w in kept):
        unit, rows = kept[workload]
        text += "\n".join(["", f"## {workload}", "", f"| | {unit} | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|", *rows, ""])
    with open(path, "w") as f:
        f.write(text)
    print(text)


if __name__ == "__main__":
    main()
