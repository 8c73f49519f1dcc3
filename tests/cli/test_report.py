#!/usr/bin/env python3
"""stoker report: the page is whole HTML, needs no network, shows the numbers of the run folders, and Chromium, where there
is one, draws all of its charts without a complaint, in light and in dark.

usage: test_report.py STOKER WORK_FOLDER
"""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser

from program import STOKER, accepted, begin, check, end, refused, run

VOID = {"meta", "link", "img", "br", "hr"}


class Page(HTMLParser):
    """Checks that elements close in order, and collects rows of tables, headings and what refers outside."""

    def __init__(self):
        super().__init__()
        self.open, self.errors, self.rows, self.headings, self.outside, self.count = [], [], [], [], [], {}
        self.items = []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.outside += [v for k, v in attrs if k in ("src", "href", "xlink:href") or (v and "url(" in v)]
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag == "li":
            self.items.append("")

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if "td" in self.open[-3:] or "th" in self.open[-3:]:
            self.rows[-1][-1] += data
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings[-1] += data
        if self.open and self.open[-1] == "li":
            self.items[-1] += data


def read(path):
    page = Page()
    with open(path, encoding="utf-8") as f:
        text = f.read()
    page.feed(text)
    check(not page.errors and not page.open, f"{path} is well formed: {page.errors[:3]} {page.open}")
    text = re.sub(r"<pre>.*?</pre>", "", text, flags=re.S) # the recipe's own words
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    allowed = re.findall(r"script-src 'sha256-([^']*)'", text)
    sums = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    check(len(sums) == 1 and sums == allowed, f"{path} has one script, the one that its policy allows: {sums} {allowed}")
    text = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    check(not page.outside and "http" not in text.replace("http-equiv", "") and "<script" not in text,
          f"{path} needs no network: {page.outside}")
    check("nan" not in text.lower().replace("nanosecond", "") and "inf " not in text, f"{path} has no broken number")
    return page


def profile(folder):
    with open(f"{folder}/profile.json") as f:
        return json.load(f)


def check_profile():
    p = profile("one")
    result = json.load(open("one/result.json"))
    check(abs(sum(p["time"].values()) - 1) < 1e-3, f"the shares add up to 1: {p['time']}")
    check(result["time"] == {k: v for k, v in result["time"].items()} and abs(result["time"]["compute"] - p["time"]["compute"]) < 0.2,
          "result.json has them too")
    flops = sum(k["flops"] for k in p["kernels"])
    check(abs(flops - p["step"]["flops"]) < 1e-5 * flops, "kernels add up to the step")
    check(abs(sum(w["flops"] for w in p["work"]) - p["step"]["flops"]) < 1e-5 * flops, "and so do kinds of work")
    check({"conv", "normalisation", "optimiser"} <= {w["work"] for w in p["work"]}, f"kinds of work: {p['work']}")
    s = sum(w["s"] for w in p["work"])
    check(s <= p["step"]["mean_s"] * 3, "kernels take no longer than steps")
    check(p["peaks"]["flops_per_s"] > 0 and p["step"]["mfu"] > 0, "with --trace the peaks are measured")
    check(any(st["name"].startswith("decode") for st in p["input"]["stages"]), f"stages: {p['input']['stages']}")
    m = p["memory"]
    check(m["arena_bytes"] + m["variable_bytes"] + m["packed_bytes"] == result["peak_planned_bytes"], "memory is the plan's")
    for offset, n, first, last, _, _ in m["buffers"]:
        check(offset + n <= m["arena_bytes"] + m["spread_bytes"] and 0 <= first <= last, "buffers lie in the arena")
    used = max(o + n for o, n, *_ in m["buffers"])
    check(used == m["arena_bytes"] + m["spread_bytes"], "and fill it")


def check_hostile():
    """Every text of a profile that somebody else has written is shown as text, however it looks."""
    evil = "<img src=x onerror=alert(1)>\"'&\x1b[31m\u202e"

    def spoil(value):
        if isinstance(value, dict):
            return {k: spoil(v) for k, v in value.items()}
        return [spoil(v) for v in value] if isinstance(value, list) else evil if isinstance(value, str) else value

    shutil.copytree("one", "hostile")
    spoiled = spoil(profile("one"))
    with open("hostile/profile.json", "w") as f:
        json.dump(spoiled, f)
    accepted(["report", "hostile"])
    with open("hostile/report.html", encoding="utf-8") as f:
        text = f.read()
    check("<img" not in text and "\x1b" not in text and "\u202e" not in text, "markup of a profile is text")
    check("&lt;img" in text and "Content-Security-Policy" in text, "which is shown, on a page that forbids scripts")


def check_one():
    done = accepted(["report", "one"], "one/report.html")
    page = read("one/report.html")
    for heading in ("What to change next", "In numbers", "Curves", "Where the time went", "Input pipeline, by stage",
                    "Memory: plan and use", "Kernels against the roofline", "Machine, versions, recipe"):
        check(heading in page.headings, f"'{heading}' is in {page.headings}")
    rows = {r[0]: r[1] for r in page.rows if len(r) > 1}
    result = json.load(open("one/result.json"))
    check(rows["test accuracy"] == f"{100 * result['test_accuracy']:.2f} %", f"accuracy: {rows}")
    check(rows["test loss"] == f"{result['test_loss']:.4f}", "loss")
    shares = [r for r in page.rows if r[0] == "compute"][0]
    check(shares[1] == f"{100 * profile('one')['time']['compute']:.1f} %", f"compute: {shares}")
    named = {r[0] for r in page.rows}
    check({"input", "host", "launch", "communication", "idle", "compute"} <= named, f"all categories: {named}")
    check(page.count["svg"] >= 6, f"charts: {page.count}")
    check(any("falls short of its recipe: 'test_accuracy >= 1.1'" in i for i in page.items), f"advice: {page.items}")
    check_roofline("one/report.html")
    return done


def check_roofline(path):
    """All kernels lie in the picture, and so do the numbers at its axes."""
    with open(path, encoding="utf-8") as f:
        svg = re.search(r'viewBox="0 0 (\d+) (\d+)" role=img aria-label=roofline>(.*?)</svg>', f.read(), flags=re.S)
    width, height = int(svg[1]), int(svg[2])
    dots = [tuple(map(float, d)) for d in re.findall(r"<circle class=kernel cx=(\S+) cy=(\S+) r=(\S+)", svg[3])]
    kernels = [k for k in profile("one")["kernels"] if k["flops"] > 0 and k["bytes"] > 0 and k["s"] > 0]
    check(len(dots) == len(kernels) > 5, f"{len(dots)} dots of {len(kernels)} kernels")
    check(all(92 <= x <= width - 22 and 12 <= y <= height - 40 for x, y, _ in dots), f"dots outside: {dots}")
    # FLOP/s grow upwards, as much for each power of ten.
    ys = sorted((dots[i][1], kernels[i]["flops"] / kernels[i]["s"]) for i in range(len(dots)))
    check(all(a[1] >= b[1] * 0.9 for a, b in zip(ys, ys[1:])), f"the order of rates: {ys}")


def check_two():
    accepted(["report", "one", "two", "--out", "both.html"], "both.html")
    page = read("both.html")
    check("one, two" in page.headings and "What differs" in page.headings, f"both: {page.headings}")
    check(any("optimizer.adam.lr (0.003 -> 0.001)" in c for r in page.rows for c in r), "what differs is said")
    rows = {r[0]: r for r in page.rows}
    check(rows["test loss"][1] != rows["test loss"][2] != "", "two columns")


def path_of(folder):
    """The tables of the critical path: kinds, the longest, what is next to it, and the paragraph that says the step."""
    accepted(["report", folder])
    page = read(f"{folder}/report.html")
    check("Critical path of a step" in page.headings, f"headings: {page.headings}")
    with open(f"{folder}/report.html", encoding="utf-8") as f:
        text = f.read().split("<h2>Critical path of a step</h2>")[1].split("</section>")[0]
    tables, at = [], None
    for row in page.rows:
        if row and row[0] in ("the path", "piece", "next to the path"):
            tables.append([])
            at = tables[-1]
        elif at is not None and len(row) < 5:
            at = None
        elif at is not None:
            at.append(row)
    return tables, text


def seconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}[unit]


def check_critical():
    """The path of a real step adds up to it; a made-up one is as it was made; without a trace the page says how to get one."""
    tables, text = path_of("one")
    with open("one/trace.json") as f:
        trace = json.load(f)
    step = [e for e in trace["traceEvents"] if e.get("name") == "ProfilerStep#10"][0]
    check("Step 10, of" in text and "the only one traced" in text, f"which step: {text[:200]}")
    check(len(tables) >= 2 and len(tables[0]) == 7 and 3 <= len(tables[1]) <= 10, f"tables: {tables}")
    # Three digits of each, and as many of their sum.
    s = sum(seconds(r[1]) if r[1] != "0 ns" and r[1] != "0" else 0 for r in tables[0])
    check(abs(s - step["dur"] * 1e-6) < 0.02 * s, f"the path takes {s} s of {step['dur']} us: {tables[0]}")
    share = sum(float(r[2].split()[0]) for r in tables[0])
    check(abs(share - 100) < 0.5 and all(r[2] == r[3] for r in tables[0]), f"shares of one step: {tables[0]}")
    kernels = {(e["name"], e["args"]["layer"]) for e in trace["traceEvents"] if e.get("cat") == "kernel"}
    found = [r for r in tables[1] if r[2] == "compute"]
    check(found and all((r[0], r[1]) in kernels for r in found), f"the longest: {tables[1]}")
    check(text.count("<svg") == 1 and "training loop" in text, "a picture of it")

    shutil.copytree("two", "made")
    _, text = path_of("made")
    check("--trace 10-20" in text and "<table" not in text, f"without a trace: {text}")

    def slice_of(category, name, tid, begin, end, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 5, "tid": tid, "ts": begin, "dur": end - begin, "args": args}
    evil = "<img src=x onerror=alert(1)>\u202e"
    events = [{"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "args": {"name": evil}}]
    for i in range(3): # 1, 2 and 1.5 ms
        begin, more = 10000 * i, (0, 1000, 500)[i]
        events += [slice_of("user_annotation", f"ProfilerStep#{i + 4}", 5, begin, begin + 1000 + more),
                   slice_of("input", "wait for a batch", 5, begin, begin + 500 + more),
                   slice_of("data", "rows", 6, begin - 100 if i else 0, begin + 500 + more),
                   slice_of("cuda_runtime", "launch", 5, begin + 500 + more, begin + 510 + more, correlation=i),
                   {**slice_of("kernel", evil, 7, begin + 510 + more, begin + 910 + more, correlation=i, layer=evil), "pid": 0},
                   slice_of("data", "rows", 8, begin + 600 + more, begin + 700 + more)]
    with open("made/trace.json", "w") as f:
        json.dump({"traceEvents": events}, f)
    tables, text = path_of("made")
    check("Step 6, of 1.50 ms" in text and "the median of 3 traced" in text, f"the median: {text[:100]}")
    kinds = {r[0]: r[1:4] for r in tables[0]}
    check(kinds["making input"][1:] == ["66.7 %", "66.7 %"] and kinds["compute"][1:] == ["26.7 %", "26.7 %"], f"kinds: {kinds}")
    check(kinds["host"][1:] == ["6.0 %", "6.0 %"] and kinds["waiting for input"][1] == "0.0 %", f"kinds: {kinds}")
    check(tables[1][0][0] == "rows" and tables[1][1][5] == "26.7 %", f"the longest: {tables[1]}")
    check(tables[2] == [["making input", "other threads", "0.100 ms", "6.7 %", "\u2013"]], f"next to it: {tables[2:]}")
    check("<img" not in text and "\u202e" not in text and text.count("&lt;img") >= 3, "names are text")
    for bad in ("", "{", "[]", '{"traceEvents": [1, {"ph": "X"}]}', '{"traceEvents": {}}'):
        with open("made/trace.json", "w") as f:
            f.write(bad)
        tables, text = path_of("made")
        check(not tables and "trace.json" in text, f"of {bad!r}: {text}")


def check_difference():
    """A kernel that takes a second more comes first, and one that the other run has not."""
    shutil.copytree("one", "slow")
    slow = profile("one")
    slow["kernels"][2]["s"] += 1
    slow["kernels"].append({**slow["kernels"][0], "op": "<new>", "s": 2.0})
    with open("slow/profile.json", "w") as f:
        json.dump(slow, f)
    accepted(["report", "one", "slow", "--out", "slower.html"])
    page = read("slower.html")
    at = [i for i, r in enumerate(page.rows) if r[:2] == ["op", "layer"] and "more" in r]
    check(len(at) == 1, f"the table is there: {page.rows}")
    first, second = page.rows[at[0] + 1], page.rows[at[0] + 2]
    check(first[0] == "<new>" and first[2] == "–" and first[4].startswith("+2"), f"what is new: {first}")
    check(second[:2] == [slow["kernels"][2]["op"], slow["kernels"][2]["layer"]] and second[4].startswith("+1"), f"what is slower: {second}")


def check_confusion():
    """The matrix of a result: each count a cell at its place, names as in data.json, mistakes in order."""
    shutil.copytree("one", "confused")
    result = json.load(open("one/result.json"))
    result["test_confusion"] = [[50, 0, 3], [10, 40, 0], [0, 0, 0]]
    with open("confused/result.json", "w") as f:
        json.dump(result, f)
    with open("confused/data.json", "w") as f:
        json.dump({"test": {"classes": ["cat", "a <dog> of many, many words", "caf\u00e9"]}}, f)
    accepted(["report", "confused"])
    page = read("confused/report.html")
    check("What is taken for what" in page.headings, f"headings: {page.headings}")
    at = [i for i, r in enumerate(page.rows) if r == ["label", "given as", "samples", "of the label's"]]
    check(at and page.rows[at[0] + 1:at[0] + 3] == [["a <dog> of many, many words", "cat", "10", "20.0 %"], ["cat", "caf\u00e9", "3", "5.7 %"]],
          f"mistakes: {page.rows[at[0]:at[0] + 4] if at else None}")
    with open("confused/report.html", encoding="utf-8") as f:
        svg = re.search(r'aria-label="confusion matrix">(.*?)</svg>', f.read(), flags=re.S)[1]
    cells = re.findall(r"<rect class=(\w+) x=(\S+) y=(\S+) width=(\S+) .*?<title>(.*?)</title>", svg)
    check([c[0] for c in cells] == ["cell", "wrong", "wrong", "cell"], f"cells: {cells}")
    x, y = [[float(c[i]) for c in cells] for i in (1, 2)]
    check(x[0] == x[2] < x[3] < x[1] and y[0] == y[1] < y[2] == y[3], f"places of cells: {x} {y}")
    check(cells[2][4] == "a &lt;dog&gt; of many, many words given as cat: 10, 20.0 %", f"title: {cells[2]}")
    check(svg.count("a &lt;dog&gt; of many,…") == 2 and svg.count(">caf\u00e9</text>") == 2, "names are cut between characters")
    # As many classes as a picture shows, more than it shows, and rows that do not fit.
    for n, pictures in ((41, 1), (300, 0)):
        result["test_confusion"] = [[int(i == k) + 2 * int(k == 0) for k in range(n)] for i in range(n)]
        with open("confused/result.json", "w") as f:
            json.dump(result, f)
        accepted(["report", "confused"])
        page = read("confused/report.html")
        check(["1", "0", "2", "66.7 %"] in page.rows, f"numbers for names: {page.rows[:3]}")
        check(open("confused/report.html", encoding="utf-8").read().count("confusion matrix") == pictures, f"{n} classes")
    for bad in ([[1, 2], [3]], [[1]], [], {"a": 1}, [1, 2], [["x", None], [{}, -1]]):
        result["test_confusion"] = bad
        with open("confused/result.json", "w") as f:
            json.dump(result, f)
        accepted(["report", "confused"])
        read("confused/report.html")


def check_damage():
    shutil.copytree("one", "bare")
    for name in ("profile.json", "result.json", "trace.json"):
        os.remove(f"bare/{name}")
    with open("bare/metrics.jsonl", "a") as f:
        f.write('{"kind": "step", "step": 3')
    accepted(["report", "bare"])
    read("bare/report.html")
    with open("bare/profile.json", "w") as f:
        f.write('{"name": "<b>&", "time": 3, "work": [1, {"s": "x"}], "kernels": {}, "input": {"stages": 7, "ready": [[]]}, '
                '"memory": {"buffers": [[], 1, ["a"]], "arena_bytes": 5, "n_nodes": 2}, "machine": []}')
    accepted(["report", "bare"])
    page = read("bare/report.html")
    check("b" not in page.count or page.count["b"] < 3, "texts of files are no HTML")
    refused(["report"], 2, "needs a run's folder")
    refused(["report", "none"], 1, "no run folder 'none'")
    os.mkdir("empty")
    refused(["report", "empty"], 1, "holds no run")
    refused(["report", *["one"] * 9], 1, "1 to 8 runs")
    refused(["report", "one", "--png", "none/x.png"], 1, "cannot write 'none/x.png'")
    bare_path = {**os.environ, "PATH": "/none"}
    done = subprocess.run([STOKER, "report", "one", "--png", "x.png"], capture_output=True, text=True, env=bare_path)
    check(done.returncode == 1 and "no Chromium" in done.stderr and "apt install chromium" in done.stderr,
          f"without a browser: {done.stderr!r}")
    check(done.stdout.count("report  ") == 1, f"what was printed before is printed once: {done.stdout!r}")


def ends_empty(path):
    """Whether the last rows of a PNG are all alike, which leaves them what they are however they are filtered."""
    with open(path, "rb") as f:
        data = f.read()
    width, at, packed = int.from_bytes(data[16:20], "big"), 8, b""
    while at < len(data):
        n = int.from_bytes(data[at:at + 4], "big")
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + n]
        at += n + 12
    rows, stride = zlib.decompress(packed), width * {2: 3, 6: 4}[data[25]] + 1
    return len({rows[len(rows) - (i + 1) * stride:len(rows) - i * stride] for i in range(100)}) == 1


# Points at the middle of the first chart, then drags over its middle third, and goes back.
DRIVER = """
const [chart] = document.querySelectorAll('svg.chart'), box = chart.getBoundingClientRect(), seen = {};
const send = (name, share) => chart.dispatchEvent(new PointerEvent(name, {clientX: box.left + share * box.width, clientY: box.top + 20, button: 0}));
const look = () => ({tips: [...document.querySelectorAll('.tip')].map(t => t.hidden ? '' : t.innerText), ticks:
    [...chart.querySelectorAll('text[data-along=x]')].map(t => t.textContent), lines: [...document.querySelectorAll('path.line')].map(p => p.getAttribute('d'))});
seen.rest = look();
send('pointermove', 0.5);
seen.pointed = look();
send('pointerdown', 0.4); send('pointermove', 0.7); send('pointerup', 0.7);
seen.closer = look();
chart.dispatchEvent(new MouseEvent('dblclick'));
send('pointerleave', 0.5);
seen.back = look();
const out = document.body.appendChild(document.createElement('pre'));
out.id = 'seen';
out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
"""


def check_charts(common):
    """The charts' script runs by the page's policy, another does not; values at the pointer, a closer look and back."""
    with open("both.html", encoding="utf-8") as f:
        page = f.read()
    with open("other.html", "w", encoding="utf-8") as f:
        f.write(page.replace("Point at a chart", "Do point at a chart"))
    with open("driven.html", "w", encoding="utf-8") as f:
        f.write(re.sub(r"<meta http-equiv[^>]*>", "", page).replace("</body>", f"<script>{DRIVER}</script></body>"))
    doms = {}
    for name in ("both", "other", "driven"):
        done = subprocess.run([*common, "--dump-dom", f"file://{os.path.abspath(name)}.html"], capture_output=True, text=True)
        doms[name] = re.sub(r"<script>.*?</script>", "", done.stdout, flags=re.S)
    check("oint at a chart for its values" in doms["both"], "the page's own script runs")
    check("oint at a chart for its values" not in doms["other"], "and no other does")
    found = re.search(r'<pre id="seen">([^<]*)', doms["driven"])
    check(found, "the charts were driven")
    seen = json.loads(base64.b64decode(found.group(1))) if found else None
    if not seen:
        return
    check(not any(seen["rest"]["tips"]), "nothing is told at rest")
    tip = seen["pointed"]["tips"][0]
    check(tip.startswith("step ") and "one" in tip and "two" in tip and sum(map(bool, seen["pointed"]["tips"])) >= 4, f"values of both runs: {tip!r}")
    check(seen["closer"]["ticks"] != seen["rest"]["ticks"] and seen["closer"]["lines"] != seen["rest"]["lines"], "a closer look")
    first = [int(t.replace(",", "")) for t in seen["closer"]["ticks"]]
    check(first == sorted(first), f"ticks grow: {first}")
    check(seen["back"] == seen["rest"], f"and back: {seen['back']['ticks']}")


def check_widths():
    """Pages of reports and of the doctor on a telephone, a tablet and a screen, in light and in dark: nothing is wider than the page,
    the colours are those asked for, and what is printed is black on white."""
    run("watch", "--quiet", "--html", "watched.html", "--", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo " + "x" * 300)
    accepted(["report", "one", "--out", "alone.html"])
    pages = ["alone.html", "both.html", "watched.html"]
    sizes = [(page, width) for page in pages for width in (375, 768, 1440)]
    with open("frames.html", "w") as f:
        f.write("".join(f'<iframe src="{page}" width="{width}" height="900"></iframe>' for page, width in sizes))
        f.write("<pre id=found></pre><script>onload = () => { document.getElementById('found').textContent = JSON.stringify([...document.querySelectorAll("
                "'iframe')].map(f => { const d = f.contentDocument; return [d.documentElement.scrollWidth, "
                "getComputedStyle(d.body).backgroundColor, d.body.innerText.length]; })); };</script>")
    for dark in False, True:
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                               "--disable-background-networking", "--allow-file-access-from-files", "--window-size=1600,1000",
                               f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom",
                               "file://" + os.path.abspath("frames.html")], capture_output=True, text=True)
        found = re.search(r"<pre id=\"found\">(.*?)</pre>", done.stdout, re.S)
        check(found and found.group(1), f"Chromium measures the pages: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}")
        for (page, width), (scrolls, ground, letters) in zip(sizes, json.loads(found.group(1)) if found else []):
            light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
            check(scrolls <= width and letters > 100, f"{page} at {width} px is {scrolls} px wide, {letters} letters")
            check(light != dark, f"{page} at {width} px, {'dark' if dark else 'light'}: its ground is {ground}")


def check_browser():
    """What the browser makes of it: each chart has a size, and nothing is wider than the page."""
    common = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
              "--disable-background-networking", "--window-size=1240,1000"]
    done = subprocess.run([*common, "--dump-dom", "file://" + os.path.abspath("both.html")], capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout.count("<svg") >= 6, f"Chromium shows the charts: {done.returncode} {done.stderr[-300:]}")
    check_charts(common)
    check_widths()
    accepted(["report", "one", "--png", "one.png", "--pdf", "one.pdf"])
    with open("one.png", "rb") as f:
        check(f.read(8) == b"\x89PNG\r\n\x1a\n" and os.path.getsize("one.png") > 50000, "a picture of it")
    check(ends_empty("one.png"), "the picture holds the whole page")
    shutil.copytree("one", "a #1 %41?")  # in an address these would be a fragment, an escape and a question
    accepted(["report", "a #1 %41?", "--png", "odd.png"])
    check(os.path.getsize("odd.png") > 50000, "a picture of a run with an odd name")
    with open("one.pdf", "rb") as f:
        check(f.read(5) == b"%PDF-", "a PDF of it")


begin()
run("train", "small.yaml", "--out", "one", "--set", "valid=20%", "--trace", "10", "--set", "expect=test_accuracy >= 1.1")
accepted(["train", "small.yaml", "--out", "two", "--set", "valid=20%", "--set", "optimizer.adam.lr=0.001"])
check_profile()
check_one()
check_hostile()
check_two()
check_critical()
check_difference()
check_confusion()
check_damage()
have = shutil.which("chromium") is not None
if have:
    check_browser()
end()
if not have:
    print("SKIP: no Chromium to draw the report with: apt install chromium")
    sys.exit(77)
