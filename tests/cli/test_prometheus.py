#!/usr/bin/env python3
"""prometheus: true keeps metrics.prom, which promtool takes without a word, with the numbers of metrics.jsonl.

usage: test_prometheus.py STOKER WORK_FOLDER
"""
import json
import re
import shutil
import subprocess
import sys

from program import accepted, begin, check, end

begin()
accepted(["train", "small.yaml", "--out", "run", "--set", "prometheus=true", "--set", "name=a-run"])
with open("run/metrics.prom") as f:
    text = f.read()
values = {m[1]: float(m[2]) for m in re.finditer(r"^(\w+\{[^}]*\}) (\S+)$", text, flags=re.M)}
with open("run/metrics.jsonl") as f:
    last = [json.loads(line) for line in f][-1]
label = '{run="a-run"}'
check(values[f"stoker_steps_total{label}"] == last["step"] == 20, f"steps: {values}")
check(abs(values[f"stoker_learning_rate{label}"] - last["lr"]) < 1e-9, "the rate")
check(abs(values[f"stoker_train_accuracy_ratio{label}"] - last["accuracy"]) < 1e-5, "the accuracy")
shares = sum(v for k, v in values.items() if k.startswith("stoker_time_ratio"))
check(abs(shares - 1) < 1e-3, f"shares of the time add up to 1: {shares}")
accepted(["train", "small.yaml", "--out", "none", "--steps", "2"])
check(not shutil.os.path.exists("none/metrics.prom"), "off by default")
have = shutil.which("promtool")
if have:
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    check(done.returncode == 0 and not done.stdout + done.stderr, f"promtool: {done.stdout}{done.stderr}")
end()
if not have:
    print("SKIP: no promtool to check metrics.prom with: apt install prometheus")
    sys.exit(77)
