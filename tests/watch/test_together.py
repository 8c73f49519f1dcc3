#!/usr/bin/env python3
"""Recordings of several ranks judged together: who holds the others back, as text, JSON and page.

usage: test_together.py BUILD_FOLDER WORK_FOLDER
"""
import html.parser
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


def watch(*args, **env):
    return subprocess.run([f"{BUILD}/stoker-watch", *args], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env}, stdin=subprocess.DEVNULL)


def names(job):
    return [f"{HERE}/together/{job}-{i}.rec" for i in range(3)]


def odd_ones():
    for order in itertools.permutations(names("slow")):
        told = json.loads(watch("--together", *order, "--json").stdout)
        check(told["joint"] == "straggler" and told["odd"] == ["rank 1 on node1"] and told["at_one_time"], f"{told['joint']} {told['odd']}")
        check(0.5 < told["cost"] < 0.9, f"cost {told['cost']}")
    alone = [m["verdict"] for m in told["members"] if not m["odd"]]
    check(alone == ["input-network"] * 2, f"alone those that wait look like slow input: {alone}")
    check(all(m["report"]["length_s"] > 5 for m in told["members"]), "each has its whole report")
    told = json.loads(watch("--together", *names("fails"), "--json").stdout)
    check(told["joint"] == "rank-ended" and told["odd"] == ["rank 2 on node2"], f"{told['joint']} {told['odd']}")
    text = watch("--together", *names("fails")).stdout
    check("rank 2 on node2: one failed" in text and "exit code 9" in text, text)
    twice = json.loads(watch("--together", names("slow")[0], names("slow")[0], "--json").stdout)
    check(twice["joint"] == "communication" and not twice["odd"], f"two that wait: {twice['joint']}")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        check(not any(name.startswith("on") for name, _ in attributes), f"{tag} {attributes}")
        if tag not in ("meta", "path", "rect", "polyline", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()


def page(*recordings):
    watch("--together", *recordings, "--html", f"{WORK}/page.html")
    with open(f"{WORK}/page.html") as f:
        text = f.read()
    parsed = Page()
    parsed.feed(text)
    check([tag for tag in parsed.open if tag not in ("p", "li")] == [], f"open: {parsed.open}")
    check("script" not in parsed.seen and "img" not in parsed.seen, f"{set(parsed.seen)}")
    return text


def pages():
    text = page(*names("slow"))
    check("rank 1 on node1: the others wait for it" in text, "the joint verdict")
    first = re.search(r"<figure>.*?</figure>", text, re.S)[0]
    check(all(f'class="c{i}"' in first for i in range(3)), "a curve for each")
    check(text.count("Content-Security-Policy") == 1, "no script runs")
    with open(names("slow")[1]) as f:
        lines = f.read().replace("I host node1", "I host <script>alert(1)</script>\x1b[2J").splitlines()
    with open(f"{WORK}/<img src=x onerror=y>.rec", "w") as f:
        f.write("\n".join(lines) + "\n")
    hostile = f"{WORK}/<img src=x onerror=y>.rec"
    check("alert(1)" in page(hostile, hostile, names("slow")[0]), "the name is shown")
    text = watch("--together", hostile, names("slow")[0]).stdout
    check("\x1b" not in text, f"{text!r}")
    json.loads(watch("--together", hostile, names("slow")[0], "--json").stdout)


def recording():
    """Ranks of one launcher record to files of their own, which tell where they are from."""
    for rank, env in (3, {"RANK": "3"}), (4, {"SLURM_PROCID": "4"}), (0, {}), (0, {"RANK": "x/../y"}):
        clean = {name: "" for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")}
        watch("--record", f"{WORK}/of-%r-100%-%h.rec", "--", "sleep", "0.3", **{**clean, **env})
        path = f"{WORK}/of-{rank}-100%-{os.uname().nodename.split('.')[0]}.rec"
        check(os.path.exists(path), f"{path}: {os.listdir(WORK)}")
        with open(path) as f:
            text = f.read()
        check(bool(re.search(r"^I began \d+\.\d+$", text, re.M)) and bool(re.search(r"^I host \S", text, re.M)), text[:300])
        check(("I rank " in text) == (env.get("RANK", "1").isdigit() and bool(env)), f"{env}: {text[:300]}")
        os.unlink(path)


def messages():
    for args, words in ([names("slow")[0]], "needs 2 to"), ([*names("slow"), "--assert", "idle>1"], "of one recording"):
        done = watch("--together", *args)
        check(done.returncode == 2 and words in done.stderr, f"{done.returncode} {done.stderr}")
    done = watch("--together", names("slow")[0], "none.rec")
    check(done.returncode == 1 and "none.rec" in done.stderr and not done.stdout, f"{done.returncode} {done.stderr}")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
for test in odd_ones, pages, recording, messages:
    test()
print(f"{n_failed} failed" if n_failed else "all passed")
sys.exit(n_failed > 0)
