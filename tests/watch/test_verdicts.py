#!/usr/bin/env python3
"""Verdicts: recordings of real jobs are judged as they were, a few planted jobs live, and with each call of NVML failing
in turn the rest still works.

usage: test_verdicts.py BUILD_FOLDER WORK_FOLDER
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench
import meter

BUILD, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def watch(*args, **env):
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", *args], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"watch {args}: {done.returncode} {done.stdout!r} {done.stderr!r}")


def recordings():
    """recordings/VERDICT.NAME.rec"""
    names = sorted(os.listdir(f"{HERE}/recordings"))
    check(len(names) >= 5, "there are recordings")
    for name in names:
        verdicts = [v["name"] for v in watch("--replay", f"{HERE}/recordings/{name}")["verdicts"]]
        check(verdicts and verdicts[0] == name.split(".")[0], f"{name}: {verdicts}")


def live():
    """Jobs that mostly sleep, so that a busy machine changes nothing."""
    names = ["healthy, compute-bound", "memory taken, GPU idle", "collective that never ends"]
    left = [case for case in bench.CASES if case.name in names]
    said = {}
    for case in left:
        case.seconds = 5
    for i in range(2):  # once more where something else took the machine
        bench.run_some([(case, i, 0.5) for case in left], WORK, BUILD)
        said = {case.name: bench.verdicts(BUILD, WORK, case, i) for case in left}
        left = [case for case in left if said[case.name][0] != case.expected]
    for case in left:
        check(False, f"{case.name}: {said[case.name]}, not {case.expected}")


def failing_calls():
    with open(f"{HERE}/fake_nvml.c") as f:
        symbols = sorted(set(re.findall(r"\bnvml[A-Z]\w+_?v?\d?", f.read())) - {"nvmlShutdown", "nvmlErrorString", "nvmlGpmSampleFree"})
    check(len(symbols) > 20, f"the played library has {len(symbols)} calls")
    meter.make(f"{WORK}/meter")

    def run(symbol):
        return symbol, watch("--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so", "--", "sleep", "0.4",
                             FAKE_NVML_METER=f"{WORK}/meter", FAKE_NVML_FAIL=symbol, FAKE_NVML_GPM="1")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for symbol, report in pool.map(run, [*symbols, "all"]):
            # That a GPU has no MIG, that nothing ran on it of late, and a first sample of counters are no faults.
            silent = symbol in ("nvmlDeviceGetMigMode", "nvmlDeviceGetProcessUtilization", "nvmlGpmMetricsGet")
            missing = [m for m in report["missing"] if "NVML" in m or "GPM" in m]
            check(report["exit_code"] == 0 and (missing or silent), f"{symbol} fails: {report['missing']}")
            check(symbol in ("nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "all")
                  or report["signals"].get("gpus") == 1, f"{symbol} fails, and the GPU is gone")


def blocking_calls():
    """A driver that hangs, at once or later, stops neither the job nor the watching of it, and is named."""
    def run(symbol):
        begin = time.monotonic()
        report = watch("--interval", "50", "--nvml", f"{BUILD}/tests/libfake_nvml.so", "--record", f"{WORK}/{symbol}.rec",
                       "--", "sleep", "3", FAKE_NVML_METER=f"{WORK}/meter", FAKE_NVML_BLOCK=symbol)
        return symbol, report, time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for symbol, report, s in pool.map(run, ["nvmlInit_v2", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPcieThroughput"]):
            check(report["exit_code"] == 0 and s < 15, f"{symbol} blocks: exit code {report['exit_code']} after {s:.1f} s")
            check(any("no answer" in m for m in report["missing"]), f"{symbol} blocks: {report['missing']}")
            with open(f"{WORK}/{symbol}.rec") as f:
                n = sum(line.startswith("T ") for line in f)
            check(n >= 3, f"{symbol} blocks: {n} samples")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
recordings()
live()
failing_calls()
blocking_calls()
if n_failed:
    sys.exit(f"{n_failed} checks failed")
shutil.rmtree(WORK)
print("all checks passed")
