#!/usr/bin/env python3
"""./dev gpu-check in tiny sizes, on the devices that are always here: its groups run, its rows and its table hold what they should,
and what goes wrong or takes too long is told without losing the rest.

usage: test_gpu_check.py BUILD WORK_FOLDER
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUILD, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TOOLS = Path(__file__).resolve().parents[2] / "tools"
shutil.rmtree(WORK, ignore_errors=True)
WORK.mkdir(parents=True)
os.environ.update(STOKER_GPU_CHECK=str(WORK / "place"), STOKER_CACHE=str(WORK / "cache"))
sys.path[:0] = [str(TOOLS / "gpu_check"), str(TOOLS)]
import carry  # noqa: E402
import correct  # noqa: E402
import table  # noqa: E402
from session import Session  # noqa: E402

n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def gpu_check(out, *options):
    done = subprocess.run([sys.executable, str(TOOLS / "gpu_check"), "--build", str(BUILD), "--python", "no-python", "--small", "--out", str(WORK / out),
                           *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    rows = WORK / out / "rows.jsonl"
    return done, [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []


def all_groups():
    done, rows = gpu_check("cpu", "--device", "cpu", "--only", "values", "sanitizer", "figures", "kernels", "peers")
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stdout}")
    groups = list(dict.fromkeys(r["group"] for r in rows))
    check(groups == ["card", "values", "sanitizer", "figures", "kernels", "peers"], f"groups {groups}")
    check(any(r["group"] == "values" and r["compared"] > 0 and r["wrong"] == 0 for r in rows if r["ok"]), "no values")
    for name in ("gpt2", "resnet50-256", "resnet50-400", "bert-128", "bert-384", "airbench", "photos"):
        row = next((r for r in rows if r["group"] == "figures" and r["what"] == name), {})
        check(row.get("ok") and row["value"] > 0 and row["goal"] is None, f"the figure {name}: {row}")
    kernels = [r for r in rows if r["group"] == "kernels" and "op" in r]
    check(len([r for r in kernels if r["figure"] == "gpt2"]) == 10 and all(r["ms"] > 0 for r in kernels), f"kernels: {kernels}")
    text = (WORK / "cpu/table.md").read_text()
    check(text in done.stdout and "| GPT-2 124M" in text and "| gpt2 | " in text and "figures mean nothing" in text, f"the table: {text}")
    check("=== figures: " in (WORK / "cpu/log.txt").read_text(), "the log has all commands")
    again = subprocess.run([sys.executable, str(TOOLS / "gpu_check"), "--from", str(WORK / "cpu")], stdout=subprocess.PIPE, text=True)
    check(again.stdout.rstrip() == text.rstrip(), "the same table from the rows alone")


def trainings():
    done, rows = gpu_check("reference", "--device", "reference", "--only", "trainings")
    row = next((r for r in rows if r["group"] == "trainings"), {})
    check(done.returncode == 0 and row.get("ok") and row["apart"] is not None, f"{row}: {done.stdout}")


def refusals():
    done, rows = gpu_check("no", "--device", "rocm")
    check(done.returncode == 1 and "no device 'rocm': cuda: " in done.stdout and not rows, f"a device that is not there: {done.stdout}")
    done = subprocess.run([sys.executable, str(TOOLS / "gpu_check"), "--build", str(WORK / "nowhere")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 1 and "--carry" in done.stdout and "no '" in done.stdout, f"nothing is built: {done.stdout}")
    done, rows = gpu_check("short", "--device", "cpu", "--seconds", "0.5", "--only", "values", "kernels")
    check(done.returncode == 1 and any(r["ok"] is False for r in rows), f"no time: {rows}")


def session_parts():
    """Time-outs end what a command began; a sanitizer's findings; what is recorded, and what is not."""
    s = Session("cuda:0", False, 60, WORK / "parts", carry.Programs(WORK, WORK, {}), "no-python")
    s.begin("sanitizer", 30)
    start = time.monotonic()
    done = s.run(["sh", "-c", "echo before; sleep 60 & sleep 60"], 0.5)
    check(done.late and time.monotonic() - start < 5 and "before" in done.text, f"a command that takes too long: {done}")
    (WORK / "bin").mkdir()
    fake = WORK / "bin/compute-sanitizer"
    fake.write_text("#!/bin/sh\ncase \"$*\" in\n*memcheck*softmax*) echo '========= ERROR SUMMARY: 2 errors'; exit 99 ;;\n"
                    "*memcheck*) echo '========= ERROR SUMMARY: 0 errors' ;;\n*) echo '========= RACECHECK SUMMARY: 0 hazards displayed' ;;\nesac\n")
    fake.chmod(0o755)
    os.environ["PATH"] = f"{WORK / 'bin'}:{os.environ['PATH']}"
    with contextlib.redirect_stderr(io.StringIO()):
        correct.check_sanitizer(s)
    wrong = [r["what"] for r in s.rows if r["ok"] is False]
    check(wrong == ["memcheck: softmax"] and len(s.rows) == 2 * len(correct.WATCHED), f"the sanitizer's rows: {s.rows}")
    rows = [{"group": "card", "what": "device", "ok": True, "gpu": True, "chip": "NVIDIA H100 80GB HBM3", "name": "cuda:0", "detail": ""},
            {"group": "figures", "what": "gpt2", "who": "stoker", "ok": True, "value": 5e5, "goal": 6e5, "met": False}]
    smi = {"group": "card", "what": "nvidia-smi", "ok": True, "name": "NVIDIA H100", "driver_version": "580", "power_limit": "700 W", "clocks_max_sm": "1980 MHz"}
    text = table.write([*rows, smi])
    check("missed: gpt2" in text, text)
    with contextlib.redirect_stderr(io.StringIO()):
        table.record([*rows, smi], text, WORK / "docs")
        table.record(rows, text, WORK / "none")  # a GPU that is played
        table.record([{**rows[0], "gpu": False}], text, WORK / "none")
    check(sorted(p.name for p in (WORK / "docs").iterdir()) == ["h100-check.jsonl", "h100.md"] and not (WORK / "none").exists(), "what is recorded")


if __name__ == "__main__":
    all_groups()
    trainings()
    refusals()
    session_parts()
    if n_failed:
        sys.exit(f"{n_failed} checks failed")
    shutil.rmtree(WORK)
    print("all checks passed")
