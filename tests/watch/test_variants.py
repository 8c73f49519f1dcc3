#!/usr/bin/env python3
"""Drivers as they are found: libraries that lack calls, that fail in any way, at once or later, that tell junk, machines of 1 to 32
GPUs; and texts that others have chosen, in the report, its page and its JSON.

usage: test_variants.py BUILD_FOLDER WORK_FOLDER SOURCE_FOLDER [CC]
"""
import concurrent.futures
import html.parser
import json
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import meter

BUILD, WORK, SOURCE = (os.path.abspath(x) for x in sys.argv[1:4])
CC = sys.argv[4] if len(sys.argv) > 4 else "cc"
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
        print(f"FAILED: {what}")


# --- drivers ---

# Error codes of NVML, and what is said to help.
CODES = {4: "needs root", 9: "modprobe", 13: "newer driver", 15: "bus", 18: "a reboot", 999: "nvidia-smi"}
# Parts of the library that older drivers, or other cards, lack.
LACKING = [["nvmlInit_v2"], ["nvmlDeviceGetCount_v2"], ["nvmlErrorString"], ["nvmlShutdown"], ["nvmlDeviceGetName"],
           ["nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"],
           ["nvmlGpmSampleFree"], ["nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"],
           ["nvmlDeviceGetProcessUtilization", "nvmlDeviceGetMigMode", "nvmlDeviceGetTotalEnergyConsumption"],
           ["nvmlDeviceGetUtilizationRates"]]


def library_without(symbols):
    path = f"{WORK}/lacks-{symbols[0]}-{len(symbols)}.so"
    renamed = [f"-D{symbol}=gone_{symbol}" for symbol in symbols]
    subprocess.run([CC, "-shared", "-fPIC", "-O0", "-w", *renamed, f"-I{SOURCE}/src", f"-I{SOURCE}/include", f"-I{SOURCE}/tests",
                    f"{HERE}/fake_nvml.c", "-lm", "-o", path], check=True)
    return path


def drivers():
    """(name, library, environment, what must hold of the report)"""
    fake = f"{BUILD}/tests/libfake_nvml.so"
    good = [("well", fake, {}, lambda r: r["signals"]["gpus"] == 1)]
    for symbols in LACKING:
        whole = symbols[0] in ("nvmlInit_v2", "nvmlDeviceGetCount_v2")
        silent = symbols[0] in ("nvmlErrorString", "nvmlShutdown", "nvmlGpmSampleFree")
        good.append((f"lacks {symbols}", library_without(symbols), {"FAKE_NVML_GPM": "1"},
                     lambda r, whole=whole, silent=silent: (r["signals"].get("gpus", 0) == 0) == whole and
                     (silent or any("newer driver" in m or "GPM" in m for m in r["missing"]))))
    for code, help_text in CODES.items():
        for symbol in "nvmlInit_v2", "nvmlDeviceGetUtilizationRates":
            good.append((f"{symbol} says {code}", fake, {"FAKE_NVML_FAIL": symbol, "FAKE_NVML_CODE": str(code)},
                         lambda r, text=help_text: any(text in m for m in r["missing"])))
    for code in 15, 999:
        good.append((f"all fail later with {code}", fake, {"FAKE_NVML_FAIL": "all", "FAKE_NVML_CODE": str(code), "FAKE_NVML_LATE": "0.4"},
                     lambda r, code=code: any(CODES[code] in m for m in r["missing"]) and r["signals"]["gpus"] == 1))
    for n in 1, 2, 3, 8, 16, 31, 32:
        good.append((f"{n} GPUs", fake, {"FAKE_NVML_GPUS": str(n)}, lambda r, n=n: r["signals"]["gpus"] == n and len(r["gpus"]) == n))
    good += [
        ("no GPU", fake, {"FAKE_NVML_GPUS": "0"}, lambda r: r["signals"]["gpus"] == 0),
        ("more GPUs than it has handles for", fake, {"FAKE_NVML_GPUS": "200"}, lambda r: any("of GPU" in m for m in r["missing"])),
        ("lost of three", fake, {"FAKE_NVML_GPUS": "3", "FAKE_NVML_LOST": "0"}, lambda r: r["signals"]["gpus"] == 2),
        ("parts, and lost", fake, {"FAKE_NVML_MIG": "1", "FAKE_NVML_GPUS": "2", "FAKE_NVML_LOST": "1"}, lambda r: r["signals"]["gpus"] == 1),
        ("a desktop", fake, {"FAKE_NVML_DRAWN": "2000"}, lambda r: r["signals"].get("unowned_memory", 0) < 0.1),
        ("junk", fake, {"FAKE_NVML_JUNK": "1"}, lambda r: all(-1e-6 <= r["signals"].get(key, 0) <= 1 for key in
                                                           ("gpu_busy", "idle", "power", "gpu_memory", "link_low", "unused"))),
        ("junk of 32 with counters", fake, {"FAKE_NVML_JUNK": "1", "FAKE_NVML_GPUS": "32", "FAKE_NVML_GPM": "1"}, lambda r: True),
        ("no library", f"{WORK}/none.so", {}, lambda r: any("libnvidia" in m or "none.so" in m for m in r["missing"])),
        ("no library but a text", f"{HERE}/meter.py", {}, lambda r: bool(r["missing"])),
        ("a library of another kind", "libm.so.6", {}, lambda r: any("newer driver" in m for m in r["missing"])),
    ]
    return good


def run_driver(variant):
    name, library, env, holds = variant
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", "--interval", "50", "--nvml", library, "--", "sleep",
                           "1.6" if "FAKE_NVML_LATE" in env else "0.8"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "FAKE_NVML_METER": f"{WORK}/meter", **env})
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"{name}: {done.returncode} {done.stdout[-300:]!r} {done.stderr[-2000:]!r}"
    if done.returncode != 0 or report["exit_code"] != 0 or not holds(report):
        return f"{name}: {done.returncode}, {report['signals']}, {report['missing']}, {report['gpus']}"
    return None


def all_drivers():
    meter.make(f"{WORK}/meter")
    variants = drivers()
    check(len(variants) >= 26, f"{len(variants)} variants")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, what in enumerate(pool.map(run_driver, variants)):
            # Once more where a busy machine left no time to ask.
            check(what is None or run_driver(variants[i]) is None, what)


# --- texts ---

TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "table", "tr", "td", "th", "ul", "ol", "li", "svg", "path",
        "polyline", "line", "rect", "text", "g", "span", "section", "main", "header", "footer", "code", "pre", "small", "b", "strong", "em",
        "figure", "figcaption", "dl", "dt", "dd", "circle", "defs", "thead", "tbody", "br", "a", "details", "summary"}
PIECES = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</style>", "]]>", "<!--", "&lt;", "&", "\"", "'", "`", "%s%n", "\\", "\\u0041",
          "\x1b[2J", "\x1b]0;x\x07", "\x07", "\x08", "\r", "\n", "\t", "\x7f", "\x85", "\u202e", "\u2066", "\u200b", "\ufeff", "\u6a21\u578b",
          "\u00e9", "\U0001f525", "e\u0301", "\udcff", "\udcc3", "\ud800", "javascript:", "{}", "x" * 400, "M 0 0:1", "T 5", " "]


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS or any(key.startswith("on") or (value or "").lower().startswith("javascript") for key, value in attrs):
            self.wrong.append((tag, attrs))


def hostile(r):
    text, wanted = "", r.choice([1, 5, 40, 300, 4096])
    while len(text) < wanted:
        text += r.choice(PIECES)
    return text[:4096]


def as_bytes(text):
    """In UTF-8, but for characters that stand for a byte that is none."""
    return b"".join(bytes([ord(c) - 0xdc00]) if 0xdc80 <= ord(c) <= 0xdcff else c.encode("utf-8", "surrogatepass") for c in text)


def unclean(text):
    """Characters that may steer a terminal or turn its lines around."""
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def texts():
    """Each field of a recording that others have chosen, hostile in turn: nothing of it gets through."""
    r = random.Random(4)
    with open(f"{HERE}/recordings/input-one-thread.torch.rec", "rb") as f:
        first, rest = f.read().split(b"\n", 1)
    for i in range(24):
        word = hostile(r)
        fields = r.sample(["command", "gpu", "missing", "process", "framework", "remote", "exit", "own", "nothing"], 4)
        lines = [b"I " + field.encode() + b" " + as_bytes(word).replace(b"\n", b" ").replace(b"\0", b" ")[:380] for field in fields]
        with open(f"{WORK}/hostile.rec", "wb") as f:
            f.write(b"\n".join([first, *lines, rest]))
        judge_texts(["--replay", f"{WORK}/hostile.rec"], f"recording {i}, {fields}: {word[:60]!r}")
    for i in range(8):  # live: a command, and a GPU's name
        word = as_bytes(hostile(r)).replace(b"\0", b"")
        judge_texts(["--nvml", f"{BUILD}/tests/libfake_nvml.so", "--", "true", word], f"command {i}: {word[:60]!r}",
                    {**os.environb, b"FAKE_NVML_NAME": word, b"FAKE_NVML_METER": f"{WORK}/meter".encode()})


def lines_of_a_recording():
    """A name with line ends in it makes no lines of a recording."""
    word = "x\nM 0 0:-7777\nI exit 5\nT -1\nnonsense"
    path = f"{WORK}/lines.rec"
    subprocess.run([f"{BUILD}/stoker-watch", "--quiet", "--record", path, "--", "sleep", "0.3", word], capture_output=True, timeout=60)
    with open(path) as f:
        lines = f.read().splitlines()
    check(sum("nonsense" in line for line in lines) == 1 and not any(line.startswith(("nonsense", "I exit 5", "T -")) for line in lines),
          f"lines of a recording: {[line for line in lines if 'I' in line][:8]}")
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", "--replay", path], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and "nonsense" in json.loads(done.stdout or "{}").get("command", ""), f"and is replayed: {done.stderr}")


def judge_texts(args, what, env=None):
    page_path = f"{WORK}/page.html"
    done = subprocess.run([f"{BUILD}/stoker-watch", "--json", "--html", page_path, *args], capture_output=True, timeout=60, env=env)
    try:
        json.loads(done.stdout.decode())
    except ValueError:
        return check(False, f"{what}: JSON {done.stdout[-200:]!r} {done.stderr[-300:]!r}")
    with open(page_path, encoding="utf-8", newline="") as f:  # fails where it is no UTF-8
        text = f.read()
    page = Page()
    page.feed(text)
    check(not page.wrong, f"{what}: on the page: {page.wrong[:3]}")
    check(not unclean(text), f"{what}: on the page: {unclean(text)[:5]}")
    os.remove(page_path)
    done = subprocess.run([f"{BUILD}/stoker-watch", *args], capture_output=True, timeout=60, env=env)
    shown = (done.stdout + done.stderr).decode()
    check(not unclean(shown), f"{what}: in the terminal: {unclean(shown)[:5]}")
    return None


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
all_drivers()
texts()
lines_of_a_recording()
if n_failed:
    sys.exit(f"{n_failed} checks failed")
shutil.rmtree(WORK)
print("all checks passed")
