"""Jobs in Python, PyTorch, JAX and TensorFlow for generate.py: job.py FRAMEWORK MODE SECONDS WORK_MS WAIT_MS JITTER N PATH, as those of job.c.
With GENERATED_GPU the step runs on a played GPU (../meter.py), and the host sleeps or spins meanwhile, as CUDA's does."""
import ctypes
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
GPU = os.environ.get("GENERATED_GPU", "")  # "sleep" or "spin"
if FRAMEWORK == "torch":
    import torch
if FRAMEWORK in ("jax", "tensorflow"):
    import pools
if GPU:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from meter import Gpu


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


class GpuStep:
    """On a played GPU; before the first steps of a job that starts slowly, libraries are loaded and kernels tried."""

    def __init__(self, index=0):
        self.gpu = Gpu(index, 40000)
        self.use = float(os.environ["GENERATED_USE"])
        start = float(os.environ["GENERATED_START"]) if index == 0 else 0
        if start:
            self.gpu.run(0.2)
            spin(start / 2)
            end = time.perf_counter() + start / 2
            while time.perf_counter() < end:
                self.gpu.run(0.01, 0.5)
                spin(0.05)

    def __call__(self, s):
        if MODE == "busy":  # the next kernels are there before the last ones have ended
            self.gpu.end()
            self.gpu.begin(self.use, 40 << 20)
            return (spin_c if GPU == "spin" else self.gpu.wait)(s)
        if MODE == "launch":
            self.gpu.begin(0.25, 1 << 16)
            spin(0.007)
            self.gpu.end()
            return spin(0.003)
        self.gpu.begin(self.use, 40 << 20, s)
        (spin_c if GPU == "spin" else self.gpu.wait)(s)
        self.gpu.end()


class Step:
    """The driver's own part."""

    def __init__(self):
        if FRAMEWORK != "torch":
            return
        torch.set_num_threads(N if MODE == "all" else len(os.sched_getaffinity(0)) if MODE == "shared" else 1)
        self.layer = torch.nn.Linear(512, 512)
        self.x = torch.randn(256, 512)

    def __call__(self, s):
        if FRAMEWORK != "torch":
            return spin(s)
        end = time.perf_counter() + s
        while time.perf_counter() < end:
            self.layer(self.x).sum().backward()


def make_step():
    return GpuStep() if GPU else pools.make_step(FRAMEWORK, MODE) if FRAMEWORK in ("jax", "tensorflow") else Step()


class Samples:
    """A data set whose records take their time, in the mode's own way."""

    def __len__(self):
        return 10 ** 7

    def __getitem__(self, i):
        if MODE == "sleep":
            time.sleep(vary(WAIT))
        elif MODE in ("decode", "shared"):
            spin_c(vary(WAIT))
        elif MODE == "http":
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
            end = time.thread_time() + vary(WAIT)  # of its own: the others' turns are no work of this one
            while time.thread_time() < end:
                sum(i * i for i in range(500))
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
            fcntl.flock(f, fcntl.LOCK_EX)
            fcntl.flock(f, fcntl.LOCK_UN)
            yield


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


KEPT = []


def grown():
    """Keeps N MiB a second."""
    owed, before = 0.0, time.perf_counter()
    while True:
        now = time.perf_counter()
        owed, before = owed + N * (now - before), now
        while owed >= 1:
            KEPT.append(b"x" * (1 << 20))
            owed -= 1
        yield


def made():
    """Makes code in this process, as XLA does."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    while True:
        spin_c(vary(WAIT))
        page = libc.mmap(None, 8192, 3, 0x22, -1, 0)
        ctypes.memset(page, 0xc3, 8192)
        libc.mprotect(page, 8192, 5)
        yield


def compiled():
    """Has a compiler make a library, and loads it, as inductor does; WORK is of the time that takes."""
    global WORK
    share = WAIT / (WORK + WAIT)
    for i in range(10 ** 6):
        begin, name = time.perf_counter(), f"{os.environ['BENCH_WORK']}/k{i}"
        with open(f"{name}.c", "w") as f:
            f.writelines(f"double f{k}(double *x) {{ double s = 0; for (int i = 0; i < {k + i}; i++) s += x[i] * {k}; return s; }}\n"
                         for k in range(60))
        subprocess.run(["gcc", "-O3", "-shared", "-fPIC", f"{name}.c", "-o", f"{name}.so"], check=True)
        ctypes.CDLL(f"{name}.so")
        WORK = (time.perf_counter() - begin) * (1 - share) / share
        yield


def retraced():
    """Compiles for another shape each time; WORK is of the time that takes."""
    global WORK
    share, retrace = WAIT / (WORK + WAIT), pools.make_retrace(FRAMEWORK)
    while True:
        begin = time.perf_counter()
        retrace()
        WORK = (time.perf_counter() - begin) * (1 - share) / share
        yield


def mapped():
    yield from pools.mapped(1000 * WAIT)


def nothing():
    while True:
        yield


def stuck():
    """From half of the time on waits for a lock that nobody gives back."""
    lock, begin = threading.Lock(), time.time()
    while True:
        if time.time() > begin + SECONDS / 2:
            lock.acquire()
            lock.acquire()
        yield


SOURCES = {"sleep": batches, "decode": batches, "shared": batches, "stuck": stuck, "http": batches, "thread": from_thread, "gil": from_many, "network": from_socket,
           "fifo": from_fifo, "stdin": from_stdin, "flock": locked, "output": printed, "faults": faulted, "kernel": kerneled,
           "save": saved, "disk": cold, "spawn": spawned, "all": nothing, "one": nothing, "busy": nothing, "launch": nothing,
           "grow": grown, "jit": made, "compile": compiled, "retrace": retraced, "map": mapped}

if MODE == "feeder":
    while True:
        spin_c(vary(WAIT))
        os.write(1, bytes(4096))
if os.environ.get("GENERATED_MONITOR"):  # a thread that looks at something now and then, as loggers do
    threading.Thread(target=lambda: [time.sleep(0.2) for _ in range(10 ** 6)], daemon=True).start()
if os.environ.get("GENERATED_CACHE"):  # one that is filled at first and then stays
    threading.Thread(target=lambda: [(KEPT.append(b"x" * (1 << 20)), time.sleep(0.012)) for _ in range(250)], daemon=True).start()


def come_late():
    """What comes before the first step: data that are fetched from a slow server, or loaded and prepared by one thread."""
    if os.environ.get("GENERATED_DOWNLOAD"):
        with socket.create_connection(("127.0.0.1", int(os.environ["GENERATED_DOWNLOAD"]))) as s:
            while s.recv(65536):
                pass
    late_end = time.perf_counter() + float(os.environ.get("GENERATED_LOAD", 0))
    while time.perf_counter() < late_end:
        spin(0.02)
        if len(KEPT) < 200:
            KEPT.append(b"x" * (1 << 20))


def gloo():
    """Two ranks that sum gradients in each step, one of which has more to do; a launcher waits for both."""
    pids = []
    for rank in range(2):
        pid = os.fork()
        if pid == 0:
            import torch.distributed as dist
            dist.init_process_group("gloo", init_method=f"file://{os.environ['BENCH_WORK']}/meet", rank=rank, world_size=2)
            step, gradients, begin = Step(), torch.zeros(1 << 16), time.time()
            while True:
                step(vary(WORK + (WAIT if rank == N else 0)))
                gradients[0] = time.time() - begin > SECONDS
                dist.all_reduce(gradients)
                if gradients[0] > 0:
                    os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    os._exit(0)


come_late()
if MODE == "gloo":
    gloo()
if MODE == "ranks":  # one GPU each; all but the slow one work all the time
    index = 1 if os.fork() else 0
    step, share = GpuStep(index), WORK / (WORK + WAIT) if index else 1
    end = time.time() + SECONDS
    while time.time() < end:
        step(0.1 * share)
        time.sleep(0.1 * (1 - share))
    if index:
        os.wait()
    os._exit(0)
step, end = make_step(), None
if MODE == "busy" and N > 1:
    more = [GpuStep(i) for i in range(1, N)]
    one = step
    step = lambda s: ([m.gpu.end() for m in more], [m.gpu.begin(m.use, 40 << 20) for m in more], one(s))
for _ in SOURCES[MODE]():
    end = end or time.time() + SECONDS
    step(vary(WORK))
    if time.time() > end:
        if os.environ.get("GENERATED_TIDIES"):
            sys.exit()
        os._exit(0)
