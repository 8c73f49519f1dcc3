#!/usr/bin/env python3
"""What it costs to take batches through Python: `stoker data bench`, and the same recipe into tensors of PyTorch, in turn.

usage: feed_torch.py [--build FOLDER] [--seconds S] [--rounds N] [--threads N] [RECIPE...]

RECIPE is a name in recipes/ (photos, bench-cifar-jpeg, bench-tfrecord, bench-memory); STOKER_DATA says where data are. With a Python
that has PyTorch. Prints medians: samples a second of both, their ratio, and the difference in microseconds a batch.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOP = """
import sys, time
import {module}
loader = {loader}
seconds, n, batches = float(sys.argv[1]), 0, 0
start = time.perf_counter()
while time.perf_counter() - start < seconds / 4:        # threads and slots settle
    for batch in loader:
        pass
start = time.perf_counter()
while True:
    for batch in loader:
        n += len(batch[{field}])
        batches += 1
        if batches % {every} == 0 and time.perf_counter() - start >= seconds:
            break
    else:
        continue
    break
print(n / (time.perf_counter() - start), batches)
"""


def bench(args, recipe):
    command = [os.path.join(args.build, "stoker"), "data", "bench", recipe, "--json", "--threads", str(args.threads), "--seconds",
               str(max(1, round(args.seconds)))]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["samples_per_s"]


def loop(args, recipe, way):
    ways = {"torch": ("stoker.torch", f"stoker.torch.DataLoader({recipe!r}, num_workers={args.threads})"),
            "arrays": ("stoker", f"stoker.Loader({recipe!r}, threads={args.threads})")}
    module, loader = ways[way]
    text = LOOP.format(module=module, loader=loader, field='"image"', every=8)
    environment = dict(os.environ, PYTHONPATH=os.path.join(args.build, "python"))
    done = subprocess.run([sys.executable, "-c", text, str(args.seconds)], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout.split()[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recipes", nargs="*", default=["photos", "bench-cifar-jpeg", "bench-tfrecord", "bench-memory"])
    p.add_argument("--build", default=os.path.join(HERE, "build"))
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    args = p.parse_args()
    print("| Recipe | `stoker data bench` | PyTorch's tensors | ratio | microseconds a batch more | `stoker.Loader` alone |\n" + "|---" * 6 + "|")
    for name in args.recipes:
        recipe = os.path.join(HERE, "recipes", name + ".yaml")
        with open(recipe) as file:
            batch = next(int(line.split(":")[1]) for line in file if line.startswith("batch:"))
        found = {"bench": [], "torch": [], "arrays": []}
        for _ in range(args.rounds):
            found["bench"].append(bench(args, recipe))
            for way in ("torch", "arrays"):
                found[way].append(loop(args, recipe, way))
        a, b, c = (statistics.median(found[way]) for way in ("bench", "torch", "arrays"))
        print(f"| {name} | {a:,.0f}/s | {b:,.0f}/s | {b / a:.3f} | {1e6 * batch * (1 / b - 1 / a):.1f} | {c:,.0f}/s |", flush=True)


if __name__ == "__main__":
    main()
