#!/usr/bin/env python3
"""What watching costs the watched: a fixed job on all cores, with and without `stoker watch`, in turn; the job times itself, so
that neither start counts.

usage: overhead.py BUILD [SECONDS]
"""
import os
import random
import re
import subprocess
import sys
import time

JOB = """
import sys, threading, time, zlib
block = b"some text " * 20000
def work():
    for _ in range(int(sys.argv[1])):
        zlib.compress(block, 6)
threads = [threading.Thread(target=work) for _ in range(int(sys.argv[2]))]
begin = time.perf_counter()
[t.start() for t in threads]
[t.join() for t in threads]
print(time.perf_counter() - begin)
"""


def run(prefix, n):
    done = subprocess.run([*prefix, sys.executable, "-c", JOB, str(n), str(os.cpu_count())], capture_output=True, text=True, check=True)
    found = re.search(r"overhead +([\d.]+) %", done.stderr)
    return float(done.stdout.split()[0]), float(found[1]) if found else None


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def main():
    watch = [os.path.abspath(sys.argv[1]) + "/stoker-watch", "--quiet", "--"]
    end = time.time() + float(sys.argv[2] if len(sys.argv) > 2 else 50)
    n = max(1, int(100 * 1.5 / run([], 100)[0]))  # about 1.5 s
    ratios, shares = [], []
    while time.time() < end - 4:
        # Each pair in the other order, so that a drift of the machine's speed cancels.
        if len(ratios) % 2:
            bare, (watched, share) = run([], n)[0], run(watch, n)
        else:
            (watched, share), bare = run(watch, n), run([], n)[0]
        ratios.append(watched / bare)
        shares.append(share)
    draw = random.Random(1)
    middles = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    print(f"{len(ratios)} pairs: the watched job takes {100 * median(ratios) - 100:+.2f} % "
          f"(95 % interval {100 * middles[50] - 100:+.2f} to {100 * middles[1949] - 100:+.2f}); "
          f"watching took {median(s for s in shares if s is not None):.2f} % of one core")


if __name__ == "__main__":
    main()
