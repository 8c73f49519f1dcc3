#!/usr/bin/env python3
"""Trains a recipe in several precisions with several seeds and writes how they differ. Each finished run is kept, so
that the program may be stopped and started again: it goes on where it was.

    ./dev precision                                   # cifar-cnn, f32 and bf16, 5 seeds: hours
    ./dev precision --epochs 2 --seeds 3 --minutes 10 # what fits
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Student's t for 95 % and 1 to 9 degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def run(args, precision, seed, deadline):
    """The result of one run, from disk where it is there; None where time is up."""
    recipe = ROOT / "recipes" / f"{args.recipe}.yaml"
    name = f"{args.recipe}-{args.epochs or 'all'}"
    out = ROOT / "runs" / "precision" / f"{name}-{precision}-{seed}"
    result = out / "result.json"
    if result.exists() and json.loads(result.read_text())["finished"]:
        return json.loads(result.read_text())
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "build/stoker"), "train", str(recipe), "--precision", precision, "--seed", str(seed),
               "--out", str(out), "--resume", "--quiet"]
    if args.epochs:
        command += ["--epochs", str(args.epochs)]
    print(f"{precision}, seed {seed}", flush=True)
    # Interrupted, the run saves itself; the next start resumes it.
    child = subprocess.Popen(command)
    try:
        status = child.wait(timeout=left)
    except subprocess.TimeoutExpired:
        child.terminate()
        child.wait()
        return None
    if status != 0:
        sys.exit(f"precision: '{' '.join(command)}' failed with status {status}")
    return json.loads(result.read_text())


def interval(values):
    """Mean and half the width of its 95 % interval."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, math.inf
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, T95[min(n - 1, len(T95)) - 1] * spread / math.sqrt(n)


def table(args, results):
    """Markdown: a row a precision, and the difference from the first one, seed by seed."""
    epochs = f"{args.epochs} epochs" if args.epochs else "all epochs"
    lines = [f"`{args.recipe}`, {epochs}, seeds 0 to {args.seeds - 1}: test accuracy in percent", "",
             "| precision | runs | accuracy | difference, 95 % interval | peak planned | samples/s |",
             "|---|---|---|---|---|---|"]
    first = results[args.precisions[0]]
    for precision in args.precisions:
        runs = results[precision]
        if not runs:
            lines.append(f"| {precision} | 0 | | | | |")
            continue
        accuracy = [100 * r["test_accuracy"] for r in runs.values()]
        both = [seed for seed in runs if seed in first]
        difference = ""
        if runs is not first and both:
            mean, half = interval([100 * (runs[s]["test_accuracy"] - first[s]["test_accuracy"]) for s in both])
            width = f" ± {half:.2f} ({len(both)} pairs)" if len(both) > 1 else " (one pair: no interval)"
            difference = f"{mean:+.2f}{width}"
        speed = sorted(r["samples_per_s"] for r in runs.values())[len(runs) // 2]
        peak = max(r["peak_planned_bytes"] for r in runs.values()) / 2**20
        lines.append(f"| {precision} | {len(runs)} | {sum(accuracy) / len(accuracy):.2f} | {difference} | "
                     f"{peak:.0f} MiB | {speed:.0f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="cifar-cnn")
    parser.add_argument("--precisions", default="f32,bf16", type=lambda text: text.split(","))
    parser.add_argument("--seeds", default=5, type=int, help="how many")
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    parser.add_argument("--minutes", default=math.inf, type=float, help="stop after N; start again to go on")
    args = parser.parse_args()
    deadline = time.monotonic() + 60 * args.minutes
    results = {precision: {} for precision in args.precisions}
    # Seed by seed, so that a table of pairs is there early.
    for seed in range(args.seeds):
        for precision in args.precisions:
            result = run(args, precision, seed, deadline)
            if result:
                results[precision][seed] = result
    text = table(args, results)
    (ROOT / "runs" / "precision").mkdir(parents=True, exist_ok=True)
    (ROOT / "runs" / "precision" / f"{args.recipe}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
