#!/usr/bin/env python3
"""stoker bench drives a foreign training: PyTorch's script of shared/peers, whose throughput by a pattern must be the
script's own figure, within 2 %: of each run to the digit, and of all together by their medians.

usage: test_bench_torch.py STOKER WORK_FOLDER
STOKER_TORCH: a Python that has PyTorch, where the one that runs this has none. STOKER_DATA: the folder with mnist/.
"""
import json
import os
import statistics
import subprocess
import sys

from program import accepted, begin, check, end

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "..", "shared", "peers", "train_torch.py")
PYTHON = os.environ.get("STOKER_TORCH", sys.executable)
DATA = os.path.abspath(os.environ.get("STOKER_DATA", os.path.join(ROOT, "data")))
RUNS = 2


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


if not os.path.exists(SCRIPT):
    skip(f"there is no {os.path.relpath(SCRIPT, ROOT)} next to this checkout")
if not os.path.isdir(f"{DATA}/mnist"):
    skip(f"there is no MNIST in {DATA} (STOKER_DATA; stoker get mnist)")
if subprocess.run([PYTHON, "-c", "import torch, numpy"], capture_output=True).returncode:
    skip(f"{PYTHON} has no PyTorch (STOKER_TORCH names one that has)")

command = [PYTHON, os.path.abspath(SCRIPT), "mnist-mlp", "--loader", "direct", "--data", DATA, "--threads", str(min(2, os.cpu_count()))]
begin()
with open("keep.sh", "w") as f:  # what it prints, for us, too
    f.write('"$@" | tee -a printed.jsonl\n')
for i in range(RUNS):
    accepted(["bench", "--runs", "1", "--most-runs", "1", "--warmup", "0", "--count-marked", "--out", f"torch{i}", "--pattern", '"value": ([0-9.]+)',
              "--unit", "s/epoch", "--", "sh", "keep.sh", *command], "s/epoch")
with open("printed.jsonl") as f:
    printed = [json.loads(line) for line in f]
measured = []
for i in range(RUNS):
    with open(f"torch{i}/result.json") as f:
        case, = json.load(f)["cases"]
    run, = case["runs"]
    measured.append(run["figure"])
    check(case["better"] == "less" and case["unit"] == printed[i]["unit"] == "s/epoch", f"its unit: {case}")
    check(run["figure"] == printed[i]["value"], f"the figure is what the script printed: {run['figure']}, {printed[i]}")
    check(run["wall_s"] > 4 * run["figure"], "five epochs take longer than one")
own = statistics.median(line["value"] for line in printed)
check(abs(statistics.median(measured) / own - 1) <= 0.02, f"within 2 %: {measured} and {own}")
print(f"{60000 / own:.0f} samples/s by the script, {60000 / statistics.median(measured):.0f} by stoker bench")
end()
