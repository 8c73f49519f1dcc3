#!/usr/bin/env python3
"""What it costs to take batches through Python, in turns: `stoker data bench`, the same recipe into tensors of PyTorch, PyTorch's own
DataLoader, and DALI's iterator.

usage: feed_torch.py [--build FOLDER] [--seconds S] [--rounds N] [--threads N] [RECIPE...]

RECIPE is a name in recipes/ (photos, bench-cifar-jpeg, bench-tfrecord, bench-memory); STOKER_DATA says where data are. With a Python
that has PyTorch. Prints medians of the rounds: samples a second, and microseconds of the consuming thread's processor time a batch,
which threads that work next to it change least.
  bench     `stoker data bench`, which is C
  arrays    stoker.Loader
  by hand   stoker.Loader, and a tensor of each of its arrays
  loader    stoker.torch.DataLoader
  PyTorch   torch.utils.data.DataLoader with `--threads` workers, of samples that are in memory as tensors, made by stoker.Loader beforehand;
            where they fit
  DALI      its iterator for PyTorch on the same work (dali_torch.py), where it is installed: photos and bench-cifar-jpeg
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

import dali_torch

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_BYTES = 1 << 30


def bench(args, recipe):
    command = [os.path.join(args.build, "stoker"), "data", "bench", recipe, "--json", "--threads", str(args.threads), "--seconds",
               str(max(1, round(args.seconds)))]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["samples_per_s"], None


def loop(args, recipe, way):
    command = [sys.executable, os.path.abspath(__file__), "--loop", way, "--seconds", str(args.seconds), "--threads", str(args.threads), recipe]
    environment = dict(os.environ, PYTHONPATH=os.path.join(args.build, "python"))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def by_hand(loader):
    import stoker.torch
    for batch in loader:
        yield stoker.torch.tensors(batch)
        del batch


def theirs(recipe, threads):
    """PyTorch's, of the same samples; None: they are too many."""
    import torch

    import stoker.torch
    batches, n_bytes = [], 0
    for batch in stoker.torch.DataLoader(recipe):
        batches.append({name: value.clone() for name, value in batch.items()})
        n_bytes += sum(value.nbytes for value in batch.values())
        if n_bytes > MOST_BYTES:
            return None
    whole = torch.utils.data.TensorDataset(*(torch.cat([batch[name] for batch in batches]) for name in batches[0]))
    return torch.utils.data.DataLoader(whole, len(next(iter(batches[0].values()))), shuffle=True, num_workers=threads,
                                       persistent_workers=threads > 0)


def epochs(loader, way):
    while True:
        yield from by_hand(loader) if way == "by hand" else loader


def take(batches, seconds):
    """[samples a second, microseconds of this thread's a batch]"""
    first = next(batches)  # asked for its length once, since that takes PyTorch longer than a batch of Stoker's
    n_rows = len(next(iter(first.values())) if isinstance(first, dict) else first[0])
    n, start, used = 0, time.perf_counter(), time.thread_time()
    for batch in batches:
        n += 1
        if n % 16 == 0 and time.perf_counter() - start >= seconds:
            break
    return [n * n_rows / (time.perf_counter() - start), 1e6 * (time.thread_time() - used) / n]


def run_loop(way, recipe, seconds, threads):
    if way == "DALI":
        name = os.path.basename(recipe)[:-len(".yaml")]
        if name not in dali_torch.BATCHES or not importlib.util.find_spec("nvidia.dali"):
            return None
        made = dali_torch.batches(name, os.environ.get("STOKER_DATA", os.path.join(HERE, "..", "shared", "data")), threads)
        take(made, seconds / 4)
        return take(made, seconds)
    import stoker.torch
    loader = (theirs(recipe, threads) if way == "PyTorch" else stoker.torch.DataLoader(recipe, num_workers=threads) if way == "loader"
              else stoker.Loader(recipe, threads=threads))
    if loader is None:
        return None
    batches = epochs(loader, way)
    take(batches, seconds / 4)  # threads and slots settle
    return take(batches, seconds)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recipes", nargs="*", default=["photos", "bench-cifar-jpeg", "bench-tfrecord", "bench-memory"], metavar="RECIPE")
    p.add_argument("--build", default=os.path.join(HERE, "build"))
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--loop", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.loop:
        print(json.dumps(run_loop(args.loop, args.recipes[0], args.seconds, args.threads)))
        return
    ways = ("bench", "arrays", "by hand", "loader", "PyTorch", "DALI")
    print("| Recipe | " + " | ".join(ways) + " |\n" + "|---" * (1 + len(ways)) + "|")
    for name in args.recipes:
        recipe = os.path.join(HERE, "recipes", name + ".yaml")
        found = {way: [] for way in ways}
        for _ in range(args.rounds):
            for way in ways:
                found[way].append(bench(args, recipe) if way == "bench" else loop(args, recipe, way))
        cells = []
        for way in ways:
            if found[way][0] is None:
                cells.append("")
                continue
            rate = statistics.median(r for r, _ in found[way])
            used = "" if way == "bench" else ", %.1f us" % statistics.median(u for _, u in found[way])
            cells.append("{:,.0f}/s{}".format(rate, used))
        print("| %s | %s |" % (name, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
