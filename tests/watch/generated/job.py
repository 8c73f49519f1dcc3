"""Jobs in Python and PyTorch for generate.py: job.py FRAMEWORK MODE SECONDS WORK_MS WAIT_MS JITTER N PATH, as those of job.c."""
import fcntl
import multiprocessing
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zlib

FRAMEWORK, MODE = sys.argv[1:3]
SECONDS, WORK, WAIT, JITTER = (float(x) for x in sys.argv[3:7])
N, PATH = int(sys.argv[7]), sys.argv[8]
WORK, WAIT = WORK / 1000, WAIT / 1000
BLOCK = b"some text " * 3000
if FRAMEWORK == "torch":
    import torch


def vary(s):
    return s * (1 + JITTER * random.uniform(-1, 1))


def spin(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end:
        sum(i * i for i in range(500))


def spin_c(s):
    """Work that gives up Python's lock."""
    end = time.perf_counter() + s
    while time.perf_counter() < end:
        zlib.compress(BLOCK, 6)


class Step:
    """The driver's own part."""

    def __init__(self):
        if FRAMEWORK != "torch":
            return
        torch.set_num_threads(N if MODE == "all" else 1)
        self.layer = torch.nn.Linear(512, 512)
        self.x = torch.randn(256, 512)

    def __call__(self, s):
        if FRAMEWORK != "torch":
            return spin(s)
        end = time.perf_counter() + s
        while time.perf_counter() < end:
            self.layer(self.x).sum().backward()


class Samples:
    """A data set whose records take their time, in the mode's own way."""

    def __len__(self):
        return 10 ** 7

    def __getitem__(self, i):
        if MODE.startswith("sleep"):
            time.sleep(vary(WAIT))
        elif MODE.startswith("decode"):
            spin_c(vary(WAIT))
        elif MODE.startswith("http"):
            urllib.request.urlopen(f"http://127.0.0.1:{PATH}/", timeout=20).read()
        return torch.zeros(8) if FRAMEWORK == "torch" else 0


def work(results):
    samples = Samples()
    while True:
        results.put(samples[0])


def batches():
    """From the data set: in this process, or from N workers."""
    if FRAMEWORK == "torch":
        yield from torch.utils.data.DataLoader(Samples(), batch_size=1, num_workers=N)
    elif N == 0:
        samples = Samples()
        while True:
            yield samples[0]
    else:
        results = multiprocessing.Queue(2)
        for _ in range(N):
            multiprocessing.Process(target=work, args=(results,), daemon=True).start()
        while True:
            yield results.get()


def from_thread():
    ready = queue.Queue(1)

    def feed():
        while True:
            spin_c(vary(WAIT))
            ready.put(1)

    threading.Thread(target=feed, daemon=True).start()
    while True:
        yield ready.get()


def from_many():
    """Threads that all work in Python."""
    ready = queue.Queue(4)

    def feed():
        while True:
            spin(vary(WAIT))
            ready.put(1)

    for _ in range(N):
        threading.Thread(target=feed, daemon=True).start()
    while True:
        yield ready.get()


def whole(read, n):
    data = b""
    while len(data) < n:
        more = read(n - len(data))
        if not more:
            os._exit(0)
        data += more


def from_socket():
    with socket.create_connection(("127.0.0.1", int(PATH))) as s:
        while True:
            yield whole(s.recv, 4096)


def from_fifo():
    with open(PATH, "rb", buffering=0) as f:
        while True:
            yield whole(f.read, 4096)


def from_stdin():
    while True:
        yield whole(lambda n: os.read(0, n), 4096)


def locked():
    with open(PATH, "w") as f:
        while True:
            yield fcntl.flock(f, fcntl.LOCK_EX)
            fcntl.flock(f, fcntl.LOCK_UN)


def printed():
    while True:
        yield os.write(1, b"step 1 loss 0.1\n" * 4096)


def faulted():
    while True:
        end = time.perf_counter() + vary(WAIT)
        while time.perf_counter() < end:
            bytearray(48 << 20)
        yield


def kerneled():
    with open("/dev/urandom", "rb", buffering=0) as f:
        while True:
            end = time.perf_counter() + vary(WAIT)
            while time.perf_counter() < end:
                f.read(16384)
            yield


def saved():
    data = os.urandom(1 << 20) * N
    while True:
        if FRAMEWORK == "torch":
            with open(PATH, "wb") as f:
                torch.save(torch.zeros(N << 18), f)
                f.flush()
                os.fsync(f.fileno())
        else:
            with open(PATH, "wb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        yield


def cold():
    i = 0
    while True:
        with open(f"{PATH}/{i % 200:03}", "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while f.read(65536):
                pass
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        i += 1
        yield


def spawned():
    while True:
        end = time.perf_counter() + vary(WAIT)
        while time.perf_counter() < end:
            subprocess.run(["/bin/sh", "-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"], check=True)
        yield


def nothing():
    while True:
        yield


SOURCES = {"sleep": batches, "decode": batches, "http": batches, "thread": from_thread, "gil": from_many, "network": from_socket,
           "fifo": from_fifo, "stdin": from_stdin, "flock": locked, "output": printed, "faults": faulted, "kernel": kerneled,
           "save": saved, "disk": cold, "spawn": spawned, "all": nothing, "one": nothing}

if MODE == "feeder":
    while True:
        spin_c(vary(WAIT))
        os.write(1, bytes(4096))
if os.environ.get("GENERATED_MONITOR"):  # a thread that looks at something now and then, as loggers do
    threading.Thread(target=lambda: [time.sleep(0.2) for _ in range(10 ** 6)], daemon=True).start()
step, end = Step(), None
for _ in SOURCES[MODE]():
    end = end or time.time() + SECONDS
    step(vary(WORK))
    if time.time() > end:
        os._exit(0)
