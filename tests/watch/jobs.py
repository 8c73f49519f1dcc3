"""Jobs with one planted fault each, as real processes: jobs.py KIND SECONDS X, where X from 0 to 1 varies the parameters.
Kernels of a GPU are played (meter.py); all the rest is what it looks like."""
import glob
import io
import mmap
import multiprocessing
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from meter import Gpu, free_mb

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 8
X = float(sys.argv[3]) if len(sys.argv) > 3 else 0.5
WORK = os.environ.get("BENCH_WORK", "/tmp")
PHOTOS = os.environ.get("BENCH_PHOTOS", "")
COPIED = 40 << 20  # bytes of a batch


def tell_stuck():
    """For the bench, which waits a while and then stops the job."""
    open(WORK + "/stuck", "w").close()


def until(seconds):
    end = time.time() + seconds
    while time.time() < end:
        yield


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def spin_c(seconds):
    """Work that gives up Python's lock."""
    block = b"some text " * 20000
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        zlib.compress(block, 6)


# --- PyTorch ---

def photos():
    return sorted(glob.glob(PHOTOS + "/**/*.[jJ][pP]*[gG]", recursive=True))[:400]


def torch_data(heavy):
    import torch
    from PIL import Image
    paths = photos()

    class Photos(torch.utils.data.Dataset):
        def __len__(self):
            return 100000

        def __getitem__(self, i):
            with open(paths[i % len(paths)], "rb") as f:
                image = Image.open(io.BytesIO(f.read())).convert("RGB")
            for _ in range(heavy):
                image = image.resize((224, 224)).rotate(5, resample=Image.BICUBIC).resize((300, 300))
            return torch.frombuffer(bytearray(image.resize((64, 64)).tobytes()), dtype=torch.uint8)

    return Photos()


def torch_loop(workers, heavy, kernel_s, batch=8):
    import torch
    torch.set_num_threads(1)
    gpu = Gpu()
    loader = torch.utils.data.DataLoader(torch_data(heavy), batch_size=batch, num_workers=workers)
    end = None
    for _ in loader:
        end = end or time.time() + SECONDS
        gpu.run(kernel_s, copied=COPIED)
        if time.time() > end:
            os._exit(0)


def torch_no_workers():
    torch_loop(0, 1, 0.03 + 0.04 * X, batch=6)


def torch_pil():
    torch_loop(2 + int(2.9 * X), 3, 0.02 + 0.03 * X)


def torch_healthy():
    """Small pictures, one worker, a GPU that always has work."""
    import torch
    torch.set_num_threads(1)
    gpu = Gpu(memory_mb=60000)

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 10 ** 7

        def __getitem__(self, i):
            return torch.full((64,), i)

    end = None
    for _ in torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=1, prefetch_factor=4):
        end = end or time.time() + SECONDS
        gpu.end()
        gpu.begin(0.85 + 0.1 * X, COPIED)
        time.sleep(0.05 + 0.05 * X)
        if time.time() > end:
            os._exit(0)


def torch_on_cpu():
    import torch
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3), torch.nn.Flatten(),
                                torch.nn.LazyLinear(10))
    x, y = torch.randn(16 + int(16 * X), 3, 48, 48), torch.zeros(16 + int(16 * X), dtype=torch.long)
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in until(SECONDS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def torch_locked():
    """A worker that waits for a lock for ever, and all with it."""
    import torch
    gpu = Gpu()
    begin = multiprocessing.Value("d", 0)
    lock = multiprocessing.Lock()

    class Locked(torch.utils.data.Dataset):
        def __len__(self):
            return 10 ** 6

        def __getitem__(self, i):
            if begin.value and time.time() > begin.value + 2.5 + 2 * X:
                tell_stuck()
                lock.acquire()
                lock.acquire()
            return torch.zeros(8)

    for _ in torch.utils.data.DataLoader(Locked(), batch_size=8, num_workers=2):
        begin.value = begin.value or time.time()
        gpu.run(0.05, copied=COPIED)
        spin(0.01)


# --- input ---

def one_thread():
    """A thread that prepares batches in C code, and a main thread that waits for it."""
    gpu, ready = Gpu(), queue.Queue(2)

    def load():
        while True:
            spin_c(0.06 + 0.06 * X)
            ready.put(1)

    threading.Thread(target=load, daemon=True).start()
    for _ in until(SECONDS):
        ready.get()
        gpu.run(0.03, copied=COPIED)


def gil():
    """Threads that prepare batches in Python."""
    gpu, ready = Gpu(), queue.Queue(4)

    def load():
        while True:
            sum(i * i % 7 for i in range(int(300000 * (1 + X))))
            ready.put(1)

    for _ in range(3 + int(2 * X)):
        threading.Thread(target=load, daemon=True).start()
    for _ in until(SECONDS):
        ready.get()
        gpu.run(0.02, copied=COPIED)


def read_worker(paths, results, offset):
    """Reads files that are not in memory, and does a little with them."""
    n = offset
    while True:
        with open(paths[n % len(paths)], "rb") as f:
            data = f.read()
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        zlib.crc32(data)
        results.put(len(data))
        n += 7


def files():
    """Readers of $BENCH_FILES; the storage is what the bench makes it."""
    gpu, results = Gpu(), multiprocessing.Queue(4)
    paths = sorted(glob.glob(os.environ["BENCH_FILES"] + "/*"))
    n = 1 + int(2.9 * X)
    workers = [multiprocessing.Process(target=read_worker, args=(paths, results, i), daemon=True) for i in range(n)]
    for worker in workers:
        worker.start()
    for _ in until(SECONDS):
        results.get()
        gpu.run(0.006, copied=COPIED)


def mapped():
    """Random reads of a mapped file that is larger than the memory limit."""
    gpu = Gpu()
    with open(WORK + "/mapped", "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    draw = random.Random(X)
    for _ in until(SECONDS):
        total = sum(data[draw.randrange(len(data))] for _ in range(400))
        gpu.run(0.005 + 0 * total, copied=COPIED)


def swapped():
    """More memory of its own than the limit, so that it goes to swap and back."""
    gpu = Gpu()
    data, draw = bytearray(int((120 + 20 * X) * 2 ** 20)), random.Random(X)
    for i in range(0, len(data), 4096):
        data[i] = i & 255
        if i % (1 << 20) == 0:
            time.sleep(0.02)  # a disk that cannot keep pace with what must go to swap ends in a kill
    for _ in until(SECONDS):
        for _ in range(1000):
            data[draw.randrange(len(data))] += 1
            data[draw.randrange(len(data))] = 1
        gpu.run(0.005, copied=COPIED)


def burn(_):
    for _ in until(SECONDS + 5):
        spin_c(0.05)


def workers():
    """Workers that need cores; the bench gives them a quota, a core or neighbours."""
    gpu, results = Gpu(), multiprocessing.Queue(4)

    def work():
        while True:
            spin_c(0.03 + 0.02 * X)
            results.put(1)

    for _ in range(2 + int(1.9 * X)):
        multiprocessing.Process(target=work, daemon=True).start()
    for _ in until(SECONDS):
        results.get()
        gpu.run(0.01, copied=COPIED)


def keras():
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import numpy
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    gpu = Gpu()

    def decode(i):
        x = tf.random.stateless_uniform((384, 384), [i, 1])
        for _ in range(2 + int(2 * X)):
            x = tf.sort(x)
        return tf.reduce_mean(x, 0)[:32], 1.0

    data = tf.data.Dataset.range(10 ** 9).map(decode).batch(8)
    options = tf.data.Options()
    options.threading.private_threadpool_size = options.threading.max_intra_op_parallelism = 1
    data = data.with_options(options)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")

    class Step(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.end = getattr(self, "end", 0) or time.time() + SECONDS
            gpu.run(0.03, copied=COPIED)
            if time.time() > self.end:
                os._exit(0)

    model.fit(data, steps_per_epoch=10 ** 6, verbose=0, callbacks=[Step()])


# --- computing ---

def healthy():
    gpu = Gpu(memory_mb=40000 + int(30000 * X))
    for _ in until(SECONDS):
        gpu.end()
        gpu.begin(0.8 + 0.15 * X, COPIED)
        spin(0.002)
        time.sleep(0.05)


def small_batch():
    gpu = Gpu(memory_mb=1500 + int(3000 * X))
    for _ in until(SECONDS):
        gpu.begin(0.1 + 0.15 * X, 1 << 16)
        spin(0.004 + 0.004 * X)
        time.sleep(0.003)
        gpu.end()
        spin(0.003)


def launches():
    """Kernels so short that starting them takes longer."""
    gpu = Gpu(memory_mb=40000)
    for _ in until(SECONDS):
        gpu.begin(0.2 + 0.15 * X, 1 << 16)
        spin(0.006 + 0.002 * X)
        gpu.end()
        spin(0.003)


def idle_memory():
    gpu = Gpu(memory_mb=30000 + int(40000 * X))
    gpu.run(0.3)
    time.sleep(SECONDS)


def hung():
    """A kernel that waits for another rank: busy, without power and without traffic."""
    gpu = Gpu(memory_mb=50000)
    for _ in until(2.5 + X):
        gpu.run(0.05, copied=COPIED)
        spin(0.01)
    gpu.begin(0.15)
    tell_stuck()
    threading.Event().wait()


def checkpoints():
    gpu, state = Gpu(), os.urandom(1 << 20) * int(120 + 60 * X)
    for _ in until(SECONDS):
        for _ in until(0.9):
            gpu.end()
            gpu.begin(copied=COPIED)
            time.sleep(0.03)
        gpu.end()
        # As much as the disk takes a part of the time for, however fast it is.
        with open(WORK + "/checkpoint", "wb") as f:
            for _ in until(0.2 + 0.1 * X):
                f.seek(0)
                f.write(state)
                f.flush()
                os.fsync(f.fileno())


def recompiles():
    gpu = Gpu()
    source = WORK + "/kernel.c"
    with open(source, "w") as f:
        for i in range(600 + int(500 * X)):
            f.write(f"double f{i}(double *x) {{ double s = 0; for (int i = 0; i < 100; i++) s += x[i] * {i}; return s; }}\n")
    for _ in until(SECONDS):
        for _ in until(0.6):
            gpu.end()
            gpu.begin(copied=COPIED)
            time.sleep(0.03)
        gpu.end()
        subprocess.run(["gcc", "-O3", "-c", source, "-o", WORK + "/kernel.o"], check=True)


def shared_gpu():
    """This job; the bench starts another one on the same GPU, which is none of its children."""
    gpu = Gpu()
    for _ in until(SECONDS):
        gpu.run(0.03 + 0.02 * X, copied=COPIED)
        time.sleep(0.03)


def one_of_two():
    healthy()


def rank(index, share):
    gpu = Gpu(index)
    for _ in until(SECONDS):
        gpu.run(0.1 * share, copied=COPIED)
        if share < 1:
            time.sleep(0.1 * (1 - share))


def two_ranks():
    ranks = [multiprocessing.Process(target=rank, args=(i, [1, 0.5 - 0.2 * X][i])) for i in range(2)]
    for r in ranks:
        r.start()
    for r in ranks:
        r.join()


def reduce_ranks(index, barrier):
    """A short computation, and long exchanges of gradients that all wait for."""
    gpu = Gpu(index, 50000)
    for _ in until(SECONDS):
        gpu.run(0.025, copied=COPIED)
        barrier.wait(10)
        gpu.run(0.06 + 0.03 * X, use=0.2, copied=600 << 20)
    os._exit(0)


def communication():
    barrier = multiprocessing.Barrier(2)
    ranks = [multiprocessing.Process(target=reduce_ranks, args=(i, barrier)) for i in range(2)]
    for r in ranks:
        r.start()
    for r in ranks:
        r.join()


def lagging_rank(index, done):
    """Says how many collectives it has begun; the last rank stops for ever before one that the others wait in."""
    gpu = Gpu(index, 50000)
    for _ in until(2.5 + X):
        done[index] += 1
        gpu.run(0.05, copied=COPIED)
        spin(0.01)
    if index == len(done) - 1:
        threading.Event().wait()
    done[index] += 1
    gpu.begin(0.15)
    tell_stuck()
    threading.Event().wait()


def answer_ras(done):
    """As NCCL's service for the health of a job: what it says follows from the ranks' counts."""
    with socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_PORT"]))) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                most = max(done)
                late = [i for i, n in enumerate(done) if n < most]
                text = "NCCL version 2.24.3\nJob summary\n"
                if late and most - min(done) == 1 and time.time() - done_at(done) > 1:
                    text += f"#0-0 MISMATCH\n  {len(done) - len(late)} ranks have launched up to operation {most}\n"
                    text += "".join(f"  Rank {i} -- GPU {i} has launched up to operation {done[i]}\n" for i in late)
                connection.sendall(text.encode())


def done_at(done, last={}):
    """When the counts last changed."""
    if last.get("done") != list(done):
        last.update(done=list(done), at=time.time())
    return last["at"]


def lagging():
    done = multiprocessing.Array("q", 2)
    threading.Thread(target=answer_ras, args=(done,), daemon=True).start()
    ranks = [multiprocessing.Process(target=lagging_rank, args=(i, done)) for i in range(2)]
    for r in ranks:
        r.start()
    for r in ranks:
        r.join()


def copies():
    """Batches that take their time on the PCIe link: 4 GB/s in its first generation, twice that in each later one."""
    gpu = Gpu(memory_mb=40000)
    speed = 2e9 * 2 ** int(os.environ.get("FAKE_NVML_LINK", 5))
    for _ in until(SECONDS):
        time.sleep((160 << 20) / speed)
        gpu.run(0.04 + 0.03 * X, copied=160 << 20)


def grows():
    """Keeps every sample that it has seen, until nearly all memory of its group is taken, or more than all."""
    gpu, kept, limit = Gpu(), [], int(os.environ["BENCH_LIMIT"])
    end = 0.9 if X < 0.5 else 2
    while len(kept) << 20 < end * limit:
        kept.append(b"x" * (1 << 20))
        gpu.run(0.04 * (200 << 20) / limit, copied=1 << 20)


def wants_memory():
    """Tries for a while to get memory on a GPU."""
    for _ in until(SECONDS):
        if free_mb() > 60000:
            Gpu(memory_mb=60000).run(SECONDS)
        spin(0.005)
        time.sleep(0.3)


def crashes():
    """Takes memory of a GPU, says so, and waits to be killed."""
    Gpu(memory_mb=30000 + int(20000 * X)).run(0.1)
    tell_stuck()
    time.sleep(60)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
