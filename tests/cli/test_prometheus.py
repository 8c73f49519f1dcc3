#!/usr/bin/env python3
"""prometheus: true keeps metrics.prom, and prometheus.port serves the same text while the run trains; promtool takes both
without a word, and the numbers are those of metrics.jsonl. A port that is taken is a warning, and the run goes on.

usage: test_prometheus.py STOKER WORK_FOLDER
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

from program import STOKER, accepted, begin, check, end, refused

promtool = shutil.which("promtool")


def read_values(text):
    return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+\{[^}]*\}) (\S+)$", text, flags=re.M)}


def check_tool(text):
    if promtool:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        check(done.returncode == 0 and not done.stdout + done.stderr, f"promtool: {done.stdout}{done.stderr}")


def check_file():
    accepted(["train", "small.yaml", "--out", "run", "--set", "prometheus=true", "--set", "name=a-run", "--set",
              "valid=20%"])
    with open("run/metrics.prom") as f:
        text = f.read()
    values = read_values(text)
    with open("run/metrics.jsonl") as f:
        last = [json.loads(line) for line in f][-1]
    label = f'{{run="a-run",folder="{os.path.realpath("run")}"}}'
    check(values[f"stoker_steps_total{label}"] == last["step"] == 16, f"steps: {values}")
    check(abs(values[f"stoker_learning_rate{label}"] - last["lr"]) < 1e-9, "the rate")
    check(abs(values[f"stoker_train_accuracy_ratio{label}"] - last["accuracy"]) < 1e-5, "the accuracy")
    check(abs(values[f"stoker_valid_loss{label}"] / last["valid_loss"] - 1) < 1e-5, f"the validation's loss: {last}")
    check(abs(values[f"stoker_valid_accuracy_ratio{label}"] - last["valid_accuracy"]) < 1e-5, "and its accuracy")
    shares = sum(v for k, v in values.items() if k.startswith("stoker_time_ratio"))
    check(abs(shares - 1) < 1e-3, f"shares of the time add up to 1: {shares}")
    check_tool(text)
    accepted(["train", "small.yaml", "--out", "none", "--steps", "2"])
    check(not os.path.exists("none/metrics.prom"), "off by default")
    accepted(["train", "small.yaml", "--out", "two", "--steps", "2", "--set", "prometheus=true"])
    with open("two/metrics.prom") as f:
        check(read_values(f.read())[f'stoker_steps_total{{run="small",folder="{os.path.realpath("two")}"}}'] == 2, "the last step counts, within a second too")


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode(), answer.headers


def check_served():
    """Scrapes while the run trains."""
    with subprocess.Popen([STOKER, "train", "small.yaml", "--out", "served", "--epochs", "100000", "--set",
                           "prometheus={file: true, port: 0}", "--set", "checkpoint.every=100000"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        line = next((x for x in job.stdout if x.startswith("metrics ")), "")
        check(re.fullmatch(r"metrics http://127\.0\.0\.1:\d+/metrics\n", line), f"the address is told: {line!r}")
        url = line.split()[1]
        texts, equal = [], False
        while len(texts) < 500 and not (equal and len(texts) >= 20):
            text, headers = get(url)
            if not text or not os.path.exists("served/metrics.prom"):
                continue  # before the first step, and between serving and writing its numbers
            texts.append(text)
            # The file is replaced after what is served: the same before and after it means that nothing came between.
            with open("served/metrics.prom") as f:
                file = f.read()
            equal = equal or (get(url)[0] == text and file == text)
        check(equal, "what is served is what is in the file")
        check(headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", f"the type: {headers}")
        steps = [read_values(t)[f'stoker_steps_total{{run="small",folder="{os.path.realpath("served")}"}}'] for t in texts]
        check(steps == sorted(steps) and steps[0] > 0, f"steps only grow: {steps[:5]}")
        check_tool(texts[-1])
        try:
            get(url.replace("/metrics", "/other"))
            check(False, "there is nothing else")
        except urllib.error.HTTPError as error:
            check(error.code == 404, f"there is nothing else: {error.code}")
        # Somebody else's run on the same port hears of it, and trains all the same.
        port = url.split(":")[2].split("/")[0]
        done = accepted(["train", "small.yaml", "--out", "second", "--steps", "3", "--set", f"prometheus.port={port}"],
                        f"warning: no numbers for Prometheus: cannot listen at '127.0.0.1:{port}': address already in use",
                        "another 'prometheus.port'")
        check("metrics http" not in done.stdout, "and says nothing of an address")
        job.terminate()
        job.communicate(timeout=60)
    with socket.socket() as s:
        check(s.connect_ex(("127.0.0.1", int(port))) != 0, "the port is free again")
    accepted(["train", "small.yaml", "--out", "third", "--steps", "3", "--set", f"prometheus.port={port}"],
             f"metrics http://127.0.0.1:{port}/metrics")


def check_keys():
    refused(["train", "small.yaml", "--set", "prometheus.port=70000"], 1, "'port'", "65535")
    refused(["train", "small.yaml", "--set", "prometheus.prot=1"], 1, "did you mean 'port'")


begin()
check_file()
check_served()
check_keys()
end()
if not promtool:
    print("SKIP: no promtool to check the numbers' form with: apt install prometheus")
    sys.exit(77)
