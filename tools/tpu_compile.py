#!/usr/bin/env python3
"""Compiles recipes' training steps for TPUs that are not here and writes docs/tpu-compiled.md; goes on where it stopped.

usage: tpu_compile.py STOKER FOLDER DOCS LIBTPU [NAME[:TOPOLOGY]...]    FOLDER: for rows that are done; those on the page are kept

Without names: every recipe on one chip of v5e and of v6e, and ResNet-50, BERT and GPT-2 on 4 and on 16 chips. A recipe whose data
are not here is left out, and said so. TPU_LIBRARY_PATH is libtpu's file.
"""
import json
import os
import re
import subprocess
import sys

STOKER, FOLDER, DOCS, LIBTPU = sys.argv[1:5]
SINGLE = ["v5e:1x1", "v6e:1x1"]
SHARED = {"v5e:2x2": 4, "v5e:4x4": 16, "v6e:2x2": 4, "v6e:4x4": 16}
MOST_S = 3600


def wanted():
    names = sys.argv[5:]
    recipes = sorted(name[:-5] for name in os.listdir("recipes") if name.endswith(".yaml"))
    if names:
        return [tuple(name.split(":", 1)) if ":" in name else (name, at) for name in names for at in (SINGLE if ":" not in name else [0])]
    shared = [(name, at) for name in ("bench-resnet50", "bench-bert", "bench-gpt2") for at in SHARED]
    return [(name, at) for name in recipes for at in SINGLE] + shared


def compile_one(name, at, path):
    n = SHARED.get(at, 1)
    command = [STOKER, "plan", f"recipes/{name}.yaml", "--device", f"tpu:{at}", "--json", "--replicas", str(n)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=MOST_S)
        too_few = re.search(r"a batch of (\d+) cannot be shared", done.stderr)
        if too_few:  # then each chip has a whole one
            command += ["--batch", str(n * int(too_few.group(1)))]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=MOST_S)
    except subprocess.TimeoutExpired:
        return print(f"{name} on {at}: not done after {MOST_S} s", flush=True)
    error = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
    if done.returncode and not (error and "compiling a program: the plug-in" in error[-1]):
        return print(f"without {name} on {at}: {error[-1:] or done.stderr[-300:]}", flush=True)
    row = json.loads(done.stdout) if not done.returncode else {"refused": error[-1][len("stoker: "):]}
    with open(path + ".new", "w") as f:
        json.dump({"name": name, "at": at, **row}, f)
    os.replace(path + ".new", path)
    print(f"{name} on {at}: {'compiled in %.0f s' % row['compile_s'] if 'compile_s' in row else row['refused'][:200]}", flush=True)


def print_row(r):
    if "refused" in r:
        return f"| {r['name']} | {r['at']} | refused: {r['refused'][:300]} |"
    mib = [r[k] / 2**20 for k in ("argument_bytes", "result_bytes", "scratch_bytes")]
    fills = 100 * r["product_flops"] / r["padded_flops"] if r["padded_flops"] else 100
    least = max(r["arithmetic_s"], r["traffic_s"])
    return (f"| {r['name']} | {r['at']} | {r['batch']} | {mib[0]:,.1f} | {mib[1]:,.1f} | {mib[2]:,.1f} | {r['flops'] / 1e9:,.2f} | "
            f"{r['bytes'] / 1e9:,.2f} | {1e3 * least:,.2f} | {fills:.0f} | {r['compile_s']:,.1f} |")


def rows_of_page():
    """By name and topology, as they stand there."""
    with open(DOCS) as f:
        lines = [line.rstrip("\n") for line in f if line.startswith("| ") and not line.startswith("| Recipe")]
    return {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in lines}


def write_page():
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "an unknown processor")
    rows = rows_of_page()
    for file in sorted(os.listdir(FOLDER)):
        if file.endswith(".json"):
            with open(os.path.join(FOLDER, file)) as f:
                row = json.load(f)
            rows[row["name"], row["at"]] = print_row(row)
    with open(DOCS + ".new", "w") as f:
        f.write(f"""# Training steps, compiled for TPUs

What XLA's compiler for TPUs ({LIBTPU}) makes of the training steps of recipes, on a machine without a TPU: none of them has
run on one. `./dev tpu-compile` writes this page from `stoker plan --device tpu:v5e:1x1` and the like. All figures are of one chip; with several
chips each is a replica and has its share of the batch, or where that is less than a sample a batch of its own. Samples are those of a chip's step. Arguments are parameters, the optimiser's
state and the batch; results those that take no argument's memory; scratch is what lies in between. GFLOP and GB (read and written) are the
compiler's own count for one step, and the least time follows from them and the maker's figures of the chip. Tiles: how full products make tiles of
8 by 128, by their shapes. All is in the recipe's precision, and in bf16 where it says none; `bench-*` say f32, which takes the compiler longest.
Recipes without a model are not here. Compiled on {cpu}, {os.cpu_count()} cores, which did other things, too.

| Recipe | Chips | Samples | Arguments, MiB | Results, MiB | Scratch, MiB | GFLOP | GB | At least, ms | Tiles, % | Compiled in, s |
|---|---|---|---|---|---|---|---|---|---|---|
""")
        f.write("\n".join(rows[key] for key in sorted(rows)) + "\n")
    os.replace(DOCS + ".new", DOCS)


os.makedirs(FOLDER, exist_ok=True)
for name, at in wanted():
    path = os.path.join(FOLDER, f"{name}-{at.replace(':', '-')}.json")
    if not os.path.exists(path) and (sys.argv[5:] or (name, at) not in rows_of_page()):
        compile_one(name, at, path)
        write_page()
write_page()
