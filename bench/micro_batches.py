#!/usr/bin/env python3
"""The number of micro-batches that a memory limit leads to, next to every other that fits: GPT-2s of sizes drawn at random.

usage: micro_batches.py [--build build] [--threads 2] N SEED

Each of N cases is a network, a batch and a limit of 35 to 85 % of what the step takes without one. bench_step times the step with 1, 2,
4 ... parts (least of two runs); a line says which number was taken, and its time as a multiple of the fastest that fits. Cases that
nothing fits are told and left out.
"""
import argparse
import pathlib
import random
import re
import subprocess
import tempfile

RECIPE = """data: {{train: {{source: {{synthetic: {{fields: {{tokens: {{shape: [{length}], below: {words}}},
                                                    targets: {{shape: [{length}], below: {words}}}}}}}}}}}}}
batch: {batch}
model: {{gpt2: {{vocabulary: {words}, layers: {layers}, width: {width}, heads: 4, length: {length}}}}}
optimizer: {{adamw: {{lr: 1e-4}}}}
epochs: 1
precision: {precision}
"""
MIB = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}


def call(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)


def plan(args, recipe, *more):
    """MiB in all, and the number of parts; None where it is refused."""
    done = call(args.build / "stoker", "plan", recipe, *more)
    if done.returncode:
        return None
    found = [re.search(rf"^  {name} +([\d.]+) (\w+)", done.stdout, re.M) for name in ("peak", "program", "input pipeline")]
    parts = re.search(r"goes through in (\d+)", done.stdout)
    return sum(float(f[1]) * MIB[f[2]] for f in found if f), int(parts[1]) if parts else 1


def step_ms(args, recipe, limit, parts):
    """None where it does not fit."""
    times = []
    for _ in range(2):
        done = call(args.build / "bench/bench_step", "--steps", 8, "--threads", args.threads, "--set", limit, "--set",
                    f"accumulate={parts}", recipe)
        times += [float(t) for t in re.findall(r"The step takes ([\d.]+) ms", done.stdout)]
    return min(times, default=None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("n", type=int)
    parser.add_argument("seed", type=int)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        recipe = pathlib.Path(folder) / "drawn.yaml"
        for case in range(args.n):
            sizes = {"width": rng.choice([64, 128, 192, 256]), "layers": rng.choice([2, 4, 6]), "length": rng.choice([32, 64, 128]),
                     "batch": rng.choice([16, 32, 64]), "precision": rng.choice(["f32", "bf16"]), "words": rng.choice([500, 2000, 8000])}
            recipe.write_text(RECIPE.format(**sizes))
            share = rng.choice([0.85, 0.7, 0.55, 0.45, 0.35])
            limit = f"memory={int(plan(args, recipe)[0] * share)}MiB"
            taken = plan(args, recipe, "--set", limit)
            if not taken:
                print(f"{case}: {sizes} at {share:.0%}: refused", flush=True)
                continue
            times = {n: step_ms(args, recipe, limit, n) for n in sorted({1, 2, 4, 8, 16, 32, 64, taken[1]}) if n <= sizes["batch"]}
            fits = {n: t for n, t in times.items() if t}
            ratio = fits[taken[1]] / min(fits.values())
            print(f"{case}: {sizes} at {share:.0%}: {taken[1]} parts, {ratio:.2f}x of the fastest; ms by parts: {fits}", flush=True)


if __name__ == "__main__":
    main()
