#!/usr/bin/env python3
"""Training steps of LSTM and GRU next to PyTorch's, in turns: build/bench/bench_recurrent runs a step, then PyTorch, and so on.

usage: recurrent_torch.py [--bench build/bench/bench_recurrent] [--steps 3000] [--batch 16] [--threads 2] [--rounds 5] [--both] [SIZE]...

Prints a line of a table for each of lstm and gru of each size (16, 128, 512): time to compile, without the plan's
memory and with it, medians of a step's time, their ratio, and the plan next to what the process took. Needs torch.
"""
import argparse
import pathlib
import statistics
import subprocess
import time

import torch


def step_of(kind, size, args):
    torch.manual_seed(0)
    layer = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(args.width, size, batch_first=True, bidirectional=args.both)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    x = torch.rand(args.batch, args.steps, args.width) * 2 - 1

    def step():
        start = time.perf_counter()
        optimizer.zero_grad()
        y, _ = layer(x)
        (y * y).mean().backward()
        optimizer.step()
        return time.perf_counter() - start
    return step


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default=str(here / "build/bench/bench_recurrent"))
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--both", action="store_true", help="bidirectional")
    parser.add_argument("size", type=int, nargs="*", default=[16, 128, 512])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"| PyTorch {torch.__version__}, {args.steps} steps, batch {args.batch}, {args.threads} threads | compiled, s | with memory, s | step, ms "
          "| PyTorch's, ms | of its speed | planned, MiB | process, MiB |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for size in args.size:
        for kind in ("lstm", "gru"):
            words = [args.bench, kind, size, args.steps, args.batch, args.width, args.threads] + (["both"] if args.both else [])
            ours = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            first = ours.stdout.readline().split()
            step = step_of(kind, size, args)
            step()
            times = [], []
            for _ in range(args.rounds):
                ours.stdin.write("\n")
                ours.stdin.flush()
                times[0].append(float(ours.stdout.readline().split()[0]))
                times[1].append(step())
            ours.stdin.close()
            ours.wait()
            a, b = (statistics.median(t) * 1e3 for t in times)
            print(f"| {kind} of {size}{', both ways' if args.both else ''} | {first[2]} | {first[6]} | {a:.0f} | {b:.0f} | {b / a:.2f}x "
                  f"| {first[9]} | {first[12]} |", flush=True)


if __name__ == "__main__":
    main()
