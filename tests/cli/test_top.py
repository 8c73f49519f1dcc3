#!/usr/bin/env python3
"""stoker top: --once shows a run by folder, by process and by itself; the live view fits 80 x 24 and ends with q.

usage: test_top.py STOKER WORK_FOLDER
"""
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request

from program import STOKER, accepted, begin, check, end, refused


def live(folder):
    """The screen's lines of the first pictures."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    top = subprocess.Popen([STOKER, "top", folder, "--every", "1"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen, deadline = b"", time.time() + 30
    while seen.count(b"q ends") < 2 and time.time() < deadline:
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 65536)
    os.write(master, b"q")
    try:
        code = top.wait(timeout=20)
    except subprocess.TimeoutExpired:
        top.kill()
        code = "it did not end"
    check(code == 0, f"q ends it: {code}")
    os.close(master)
    pictures = seen.decode().split("\033[H")[1:]
    check(len(pictures) >= 2, f"it is drawn again: {seen[:200]}")
    for picture in pictures[:2]:
        lines = [re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", line).rstrip("\r") for line in picture.split("\n")]
        check(len(lines) <= 24 and all(len(line) < 80 for line in lines), f"it fits 80 x 24: {lines}")
    return pictures[0] if pictures else ""


def keys():
    """Processes are sorted and ended from the live view, the latter only after a question."""
    child = "import time; x = bytearray(120 << 20); time.sleep(60)"
    script = f"sleep 60 & python3 -c '{child}' & while :; do :; done"
    job = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    top = subprocess.Popen([STOKER, "top", str(job.pid), "--every", "1"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""

    def until(found):
        """Reads on until it is shown in what comes; returns what matched."""
        nonlocal seen
        seen, deadline = b"", time.time() + 30
        while time.time() < deadline:
            match = re.search(found, seen, re.S)
            if match:
                return match
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 65536)
        check(False, f"{found} is not shown: {seen[-1500:]}")
        return None

    try:
        until(rb"pid name.*?\n *%d sh" % job.pid)
        os.write(master, b"m")
        until(rb"pid name[^\n]*\n *\d+ python3")
        os.write(master, b"p")
        until(rb"pid name[^\n]*\n *%d sh" % job.pid)
        sleeper = until(rb"\n *(\d+) sleep ")
        number = int(sleeper.group(1)) if sleeper else 0
        for answer, said in (b"n", rb"nothing was ended"), (b"y", rb"asked process %d to end" % number):
            os.write(master, b"k%d\r" % number)
            until(rb"end %d \(sleep\)\?" % number)
            check(os.path.exists(f"/proc/{number}"), "nothing is ended before the answer")
            os.write(master, answer)
            until(said)
        os.write(master, b"k1\r")
        until(rb"no process '1' in this job")
        for _ in range(100):
            try:
                with open(f"/proc/{number}/stat") as f:
                    state = f.read().rpartition(") ")[2][:1]
            except OSError:  # It is gone, perhaps between open() and read().
                state = ""
            if state in ("", "Z"):
                break
            time.sleep(0.1)
        check(state in ("", "Z"), f"what was confirmed is ended: {state}")
        os.write(master, b"q")
        check(top.wait(timeout=20) == 0, "q ends it")
    finally:
        top.kill()
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        os.close(master)


def gpus():
    """Two lines for each of two played GPUs, in 80 columns."""
    played = os.path.join(os.path.dirname(STOKER), "tests", "libfake_nvml.so")
    if not os.path.exists(played):
        print("skipped: GPUs in top need tests/libfake_nvml.so")
        return
    os.makedirs("driver")
    os.symlink(played, "driver/libnvidia-ml.so.1")
    text = accepted(["top", "--once"], "gpu 0", "gpu 1", env=dict(os.environ, LD_LIBRARY_PATH="driver", FAKE_NVML_GPUS="2", FAKE_NVML_NAME="NVIDIA X\x1b[2JY 80GB")).stdout
    lines = text.splitlines()
    at = [i for i, line in enumerate(lines) if line.startswith("gpu ")]
    check("  X" in text and "\x1b" not in text, f"the name, made harmless: {text!r}")
    check(len(at) == 2 and all(re.search(r" W .* MHz .* C$", lines[i + 1]) for i in at), f"power, clock, heat: {text}")
    check(all(len(line) < 80 for line in lines), f"it fits 80 columns: {text}")
    # A job that keeps the played GPU busy: its share and its memory stand in its line.
    watch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "watch")
    sys.path.insert(0, watch)
    import meter
    meter.make("meter")
    env = dict(os.environ, LD_LIBRARY_PATH="driver", FAKE_NVML_METER=os.path.abspath("meter"))
    code = f"import sys, time; sys.path.insert(0, {watch!r}); from meter import Gpu\ng = Gpu(0, 20480)\ng.begin(0.9)\ntime.sleep(60)"
    job = subprocess.Popen([sys.executable, "-c", code], env=env)
    try:
        time.sleep(1.5)
        text = accepted(["top", str(job.pid), "--once"], env=env).stdout
        line = [line for line in text.splitlines() if line.startswith(f"{job.pid:7d} ")]
        share = re.search(r" (\d+)% 20.0 GiB ", line[0]) if line else None
        check(share and int(share.group(1)) > 50, f"its share of the GPU and its memory: {text}")
        check(all(len(line) < 80 for line in text.splitlines()), f"80 columns: {text}")
    finally:
        job.kill()
        job.wait()
    # What cannot be read is told as that, and not as a number.
    for symbol in "MemoryInfo", "Temperature", "PowerUsage", "ClockInfo", "UtilizationRates", "Name":
        text = accepted(["top", "--once"], env=dict(os.environ, LD_LIBRARY_PATH="driver", FAKE_NVML_FAIL=f"nvmlDeviceGet{symbol}")).stdout
        shown = [line for i, line in enumerate(text.splitlines()) if line.startswith("gpu ") or (i and text.splitlines()[i - 1].startswith("gpu "))]
        check(shown and not any(re.search(r"(^|[^\w])-\d|nan", line) for line in shown), f"without {symbol}: {shown}")


def joined_gpus():
    """stoker devices: links of NVLink, ways by PCIe, parts, as nvidia-smi's topo -m and mig -lgi have them."""
    played = os.path.join(os.path.dirname(STOKER), "tests", "libfake_nvml.so")
    if not os.path.exists(played):
        return

    def told(**settings):
        env = dict(os.environ, **{f"FAKE_NVML_{name}": str(value) for name, value in settings.items()})
        text = accepted(["devices", "--nvml", played], "GPUs, as NVIDIA's driver 580.65.06 numbers them", env=env).stdout
        return text, json.loads(accepted(["devices", "--nvml", played, "--json"], env=env).stdout)["nvidia"]
    text, gpus = told(GPUS=8, LINKS="switch", NAME="NVIDIA X\x1b[2JY")
    check("\x1b" not in text and "NVLink 4, 18 links up" in text, f"links, and a harmless name: {text!r}")
    check(all(gpu["ways"][to] == ("-" if to == i else "NV18") for i, gpu in enumerate(gpus) for to in range(8)), f"{gpus}")
    text, gpus = told(GPUS=8, LINKS="pairs", LINK=3)
    check(gpus[2]["ways"] == ["NODE", "NODE", "-", "NV4", "SYS", "SYS", "SYS", "SYS"], f"straight links, else PCIe: {gpus[2]}")
    check("    2  NODE  NODE     -   NV4   SYS" in text and "PCIe 3 x16, generation 5 when busy" in text, f"the table: {text}")
    text, gpus = told(GPUS=2, MIG=1, PARTS=3)
    check(gpus[1]["mig"] and [part["name"] for part in gpus[1]["parts"]] == ["Played GPU MIG 1g.10gb"] * 3, f"parts: {gpus}")
    check("cut into parts (MIG): 3" in text and "1: Played GPU MIG 1g.10gb, 10.0 GiB" in text, f"in words: {text}")
    check(gpus[0]["ways"] == ["-", "PIX"] and gpus[0]["nvlink"] == {"version": 0, "links": 0}, f"without NVLink: {gpus}")
    for settings in {"FAIL": "all"}, {"FAIL": "nvmlDeviceGetTopology,nvmlDeviceGetPci,NvLink"}, {"LOST": 1}, {"JUNK": 1}:
        env = dict(os.environ, FAKE_NVML_GPUS="3", FAKE_NVML_LINKS="pairs",
                   **{f"FAKE_NVML_{name}": str(value) for name, value in settings.items()})
        accepted(["devices", "--nvml", played], "processor", env=env)
        json.loads(accepted(["devices", "--nvml", played, "--json"], env=env).stdout)
    for symbol in "nvmlInit_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetTopologyCommonAncestor":
        done = accepted(["devices", "--nvml", played], "processor", env=dict(os.environ, FAKE_NVML_BLOCK=symbol, FAKE_NVML_GPUS="2"))
        check("does not answer" in done.stderr, f"a driver that hangs in {symbol}: {done.stderr}")
    check("no '/nowhere.so'" in accepted(["devices", "--nvml", "/nowhere.so"], "processor").stderr, "a library that is not there is said")


def serves_gpus():
    """By dcgm-exporter's names and labels; a name from the driver stays within its label."""
    played = os.path.join(os.path.dirname(STOKER), "tests", "libfake_nvml.so")
    if not os.path.exists(played):
        return
    env = dict(os.environ, LD_LIBRARY_PATH="driver", FAKE_NVML_GPUS="2", FAKE_NVML_GPM="1", FAKE_NVML_NAME='X"} 1\ny')
    process = subprocess.Popen([STOKER, "top", "--serve", "0"], stdout=subprocess.PIPE, text=True, env=env)
    said = process.stdout.readline()
    check(said.startswith("2 GPUs at http://127.0.0.1:"), f"it says where: {said!r}")
    lines, until = [], time.time() + 20
    while not any("PROF" in line for line in lines) and time.time() < until:  # these are of two readings
        with urllib.request.urlopen(said.split()[3].rstrip(";"), timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        time.sleep(0.1)
    numbers = [re.fullmatch(r'(\w+)\{gpu="(\d)",UUID="GPU-[0-9-]+\2",pci_bus_id="00000000:4[12]:00.0",device="nvidia\2",'
                            r'modelName="X\\"\} 1\\\\ny",Hostname="[^"]+"\} [0-9.e+]+', line)
               for line in lines if line.startswith("DCGM_")]
    check(all(numbers) and len(numbers) >= 30, f"each line is of one form: {lines}")
    told = {match.group(1) for match in numbers if match}
    for name in "DEV_GPU_UTIL", "DEV_FB_USED", "DEV_FB_FREE", "DEV_POWER_USAGE", "DEV_SM_CLOCK", "PROF_DRAM_ACTIVE":
        check(f"DCGM_FI_{name}" in told, f"{name} is told: {told}")
    check(sum(line.startswith("# TYPE") for line in lines) == len(told) + 1, "a type for each name, once")
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=20) == 0, f"Ctrl-C ends it: {process.returncode}")
    refused(["top", "--serve", "0"], 1, "there is no GPU to tell of", env=dict(env, FAKE_NVML_GPUS="0"))
    refused(["top", "--serve", "0"], 1, "driver does not answer", env=dict(env, FAKE_NVML_BLOCK="nvmlInit_v2"))
    served_while_it_hangs(env)
    hostile_gpu_names(env)


def scrape(said):
    with urllib.request.urlopen(said.split()[3].rstrip(";"), timeout=5) as answer:
        return answer.read().decode()


def served_while_it_hangs(env):
    """A driver that stops to answer leaves no old numbers, the time of the last answer, and a server that ends."""
    process = subprocess.Popen([STOKER, "top", "--serve", "0"], stdout=subprocess.PIPE, text=True,
                               env=dict(env, FAKE_NVML_BLOCK="nvmlDeviceGetMemoryInfo", FAKE_NVML_LATE="1.5"))
    said = process.stdout.readline()
    check("DCGM_FI_DEV_GPU_UTIL" in scrape(said), "it answers at first")
    text, until = "DCGM", time.time() + 30
    while "DCGM" in text and time.time() < until:
        text = scrape(said)
        time.sleep(0.2)
    read = re.search(r"^stoker_gpus_read_timestamp_seconds (\d+)$", text, re.M)
    check("DCGM" not in text and read and 0 < time.time() - int(read.group(1)) < 60, f"no numbers, and since when: {text}")
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=20) == 0, f"Ctrl-C ends it: {process.returncode}")


def hostile_gpu_names(env):
    """Names that a driver may tell, drawn by number: lines stay lines, labels labels, and nothing steers a terminal."""
    parts = ["\x1b[2J", "\x1b]0;x\x07", "\r", "\n", "\t", '"', "\\", "{", "}", "#", "<b>", "&amp;", "\x7f", "\x9b", "é", "漢", "🚀", "\u202e", "A", " ", "%s", "%n"]
    for seed in range(12):
        draw = random.Random(seed)
        name = "".join(draw.choice(parts) for _ in range(draw.choice([1, 8, 30, 2000]))).encode()
        if seed % 3 == 0:
            name += bytes(draw.randrange(1, 256) for _ in range(40))  # no UTF-8
        shown = accepted(["top", "--once"], "gpu 0", env=dict(os.environ, LD_LIBRARY_PATH="driver", FAKE_NVML_NAME=name)).stdout
        check(not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), f"seed {seed}: harmless in top: {shown!r}")
        check(all(len(line) < 80 for line in shown.splitlines()), f"seed {seed}: 80 columns: {shown}")
        process = subprocess.Popen([STOKER, "top", "--serve", "0"], stdout=subprocess.PIPE, text=True,
                                   env=dict(env, FAKE_NVML_NAME=name))
        text = scrape(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        lines = text.removesuffix("\n").split("\n")
        good = re.compile(r'# (HELP|TYPE) [A-Z_a-z]+ .*|\w+(\{\w+="([^"\\\n]|\\[\\"n])*"(,\w+="([^"\\\n]|\\[\\"n])*")*\})? [-0-9.e+]+')
        bad = [line for line in lines if not good.fullmatch(line)]
        check(not bad and len(lines) > 20, f"seed {seed}: Prometheus text: {bad}")


def once_shows_pressure():
    """With more work than cores, tasks wait for one, and that share of half a second is shown."""
    try:
        with open("/proc/pressure/cpu") as f:
            f.read()
    except OSError:
        print("SKIP pressure in top --once: the kernel tells none")
        return
    work = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count() + 2)]
    time.sleep(0.5)
    try:
        text = accepted(["top", "--once"], "pressure").stdout
        share = float(re.search(r"pressure cpu ([0-9.]+) %", text).group(1))
        check(share > 1, f"tasks wait for cores, and top --once says so: {text}")
    finally:
        for one in work:
            one.kill()
            one.wait()


begin()
once_shows_pressure()
job = subprocess.Popen([STOKER, "train", "small.yaml", "--epochs", "100000", "--quiet"])
while not (os.path.exists("runs/small/metrics.jsonl") and os.path.getsize("runs/small/metrics.jsonl")) and job.poll() is None:
    time.sleep(0.01)
try:
    for word in ([], ["runs/small"], [str(job.pid)]):
        text = accepted(["top", *word, "--once"], f"process {job.pid}", "loss", "compute", "cores", "memory", "io").stdout
        own = [line for line in text.splitlines() if line.startswith(f"{job.pid:7d} ")]
        check(own and "stoker" in own[0], f"top {word} lists the process: {text}")
        shares = [float(x) for x in re.findall(r"(?:input|host|launch|compute) +[#━╸─-]+ +([0-9.]+) %", text)]
        check(len(shares) == 4 and abs(sum(shares) - 100) < 1, f"the run's shares: {shares}")
    check("loss" in live("runs/small"), "the live view shows the run")
finally:
    job.send_signal(signal.SIGTERM)
    job.wait(timeout=60)
accepted(["top", "runs/small", "--once"], "runs/small on cpu", "not training now", "loss")
os.rename("runs/small/metrics.jsonl", "metrics.jsonl")
os.mkfifo("runs/small/metrics.jsonl")
accepted(["top", "runs/small", "--once"], "no step yet")
os.remove("runs/small/metrics.jsonl")
os.rename("metrics.jsonl", "runs/small/metrics.jsonl")
accepted(["top", "--once"], "no run is training")
gpus()
joined_gpus()
serves_gpus()
keys()
refused(["top", "--once", "--sort", "x"], 2, "cores, memory, gpu or pid")
refused(["top", "runs/none", "--once"], 1, "holds no run")
refused(["top", "999999999", "--once"], 1, "no process 999999999")
refused(["top", "a", "b"], 2, "one run or process")
refused(["top"], 1, "needs a terminal")
end()
