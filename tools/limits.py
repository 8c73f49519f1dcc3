#!/usr/bin/env python3
"""How near training steps are to what the processor and its memory can do: one table by processor, docs/step-limits.md. Run by
./dev limits; it goes on where it stopped.

usage: limits.py BUILD [--rounds N] [--budget SECONDS] [--again] [--table FILE]

Each round runs every network in both precisions by a process of its own (bench_step --limits), which measures between the steps what
all threads can do at once. What was measured stays in BUILD/limits.jsonl; rows of other processors stay in the table as they are.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

from machine import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Recipe, its name in the table, and how many steps: small ones take a moment, and each process some seconds to start.
NETWORKS = [("mnist-mlp", "MNIST MLP", 300), ("cifar-cnn", "CIFAR CNN", 30), ("bench-resnet50", "ResNet-50", 3),
            ("bench-bert", "BERT-base", 3), ("bench-gpt2", "GPT-2 124M", 3)]
PRECISIONS = ["f32", "bf16"]
HEAD = ("| processor | network | precision | of the limit | range | by a large product | step, ms | limit: products, ms | all else, ms | "
        "GFLOP/s, vectors | tiles | large product | GB/s | date | rounds |\n|---|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|")


def measure(build, recipe, precision, steps):
    done = subprocess.run([f"{build}/bench/bench_step", "--limits", "--steps", str(steps), "--set", f"precision={precision}",
                           f"recipes/{recipe}.yaml"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(f"limits: without {recipe} in {precision}: {done.stderr.strip()}", flush=True)
        return None
    return json.loads(done.stdout) if done.stdout.strip() else None


def rows_of(measured):
    for recipe, name, _ in NETWORKS:
        for precision in PRECISIONS:
            of = [m for m in measured if m["recipe"] == recipe and m["precision"] == precision]
            if not of:
                continue
            middle = {key: statistics.median(m["found"][key] for m in of) for key in of[0]["found"]}
            shares = [100 * m["found"]["share"] for m in of]
            tiles, product = (f"{middle[key]:,.0f}" if middle[key] else "" for key in ("tiles", "product"))
            by_product = f"{100 * middle['by_product']:.0f} %" if middle["product"] else ""
            yield (f"| {machine()} | {name} | {precision} | {100 * middle['share']:.0f} % | {min(shares):.0f} to {max(shares):.0f} % | {by_product} | "
                   f"{middle['step_ms']:,.1f} | {middle['products_ms']:,.1f} | {middle['others_ms']:,.1f} | {middle['vectors']:,.0f} | {tiles} | {product} | "
                   f"{middle['memory']:.1f} | {max(m['date'] for m in of)} | {len(of)} |")


def write(path, measured):
    """Own rows are replaced where there are new ones, and other processors' kept."""
    with open(path) as f:
        head, rest = f.read().split("<!-- limits -->\n")
    old, tail = rest.split("<!-- end limits -->")
    rows = list(rows_of(measured))
    new = {tuple(row.split(" | ")[:3]) for row in rows}
    kept = [line for line in old.splitlines()[2:] if tuple(line.split(" | ")[:3]) not in new]
    with open(path, "w") as f:
        f.write(f"{head}<!-- limits -->\n{HEAD}\n" + "".join(f"{row}\n" for row in rows + kept) + f"<!-- end limits -->{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=3600, help="begins no measurement after N seconds")
    parser.add_argument("--again", action="store_true", help="forgets what was measured")
    parser.add_argument("--table", help="a file with the lines <!-- limits --> and <!-- end limits --> to write between")
    args = parser.parse_args()
    build, begin = os.path.abspath(args.build), time.time()
    path, measured = f"{build}/limits.jsonl", []
    if os.path.exists(path) and not args.again:
        with open(path) as f:
            measured = [m for m in map(json.loads, f) if m["machine"] == machine() and "by_product" in m["found"]]  # else an older kind
    have = {(m["recipe"], m["precision"], m["round"]) for m in measured}
    todo = [(recipe, precision, steps, k) for k in range(args.rounds) for recipe, _, steps in NETWORKS for precision in PRECISIONS
            if (recipe, precision, k) not in have]
    with open(path, "w" if args.again else "a") as kept:
        for i, (recipe, precision, steps, k) in enumerate(todo):
            if time.time() - begin > args.budget:
                print(f"limits: {len(todo) - i} measurements are left: run it again, and it goes on")
                break
            found = measure(build, recipe, precision, steps)
            if not found:
                continue
            measured.append({"machine": machine(), "recipe": recipe, "precision": precision, "round": k,
                             "date": str(datetime.date.today()), "found": found})
            kept.write(json.dumps(measured[-1]) + "\n")
            kept.flush()
            print(f"limits: round {k + 1}, {recipe} in {precision}: {100 * found['share']:.0f} %", flush=True)
    if not measured:
        sys.exit("limits: nothing was measured")
    print("\n".join([HEAD, *rows_of(measured)]))
    if args.table:
        write(args.table, measured)


if __name__ == "__main__":
    main()
