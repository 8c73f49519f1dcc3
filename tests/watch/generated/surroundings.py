"""What stands around a generated job: servers that answer late, programs that hold a lock or feed a FIFO, slow disks, neighbours."""
import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time

import bench
from drawn import CORES

NEIGHBOURS = 0  # of each job, by --neighbours: programs that want a core all the time
HERE = os.path.dirname(os.path.abspath(__file__))


def serve(job, plain):
    """A server on this machine, not of the job, that answers late."""
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    r = random.Random(job["seed"])

    def late():
        time.sleep(job["wait_ms"] / 1000 * (1 + job["jitter"] * r.uniform(-1, 1)))

    def talk(connection):
        with contextlib.suppress(OSError), connection:
            while plain:
                late()
                connection.sendall(bytes(4096))
            connection.recv(65536)
            late()
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4096\r\n\r\n" + bytes(4096))

    return accept(server, talk)


def serve_files(job):
    """One that has the data that the job fetches before it starts, and is slow."""
    def talk(connection):
        end = time.monotonic() + job["late_s"]
        with contextlib.suppress(OSError), connection:
            while time.monotonic() < end:
                connection.sendall(bytes(65536))
                time.sleep(0.05)

    return accept(socket.create_server(("127.0.0.1", 0), backlog=4), talk)


def accept(server, talk):
    def loop():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return server


def program(code, path, job):
    """That Python, with a pause(): as long as the job is to wait."""
    pause = ("import random, sys, time\ndef pause(): time.sleep(float(sys.argv[2]) * (1 + float(sys.argv[3]) * random.uniform(-1, 1)))\n")
    return [sys.executable, "-c", pause + code, path, str(job["wait_ms"] / 1000), str(job["jitter"])]


HOLD = "import fcntl\nf = open(sys.argv[1], 'w')\nwhile True:\n    fcntl.flock(f, 2)\n    pause()\n    fcntl.flock(f, 8)\n    time.sleep(0.001)"
FEED = "f = open(sys.argv[1], 'wb', buffering=0)\nwhile True:\n    pause()\n    f.write(bytes(4096))"
SPIN = "import time\nwhile True:\n    t = time.perf_counter()\n    while time.perf_counter() < t + 0.01: pass\n    time.sleep(0.09)"


def programs(job, path):
    """The commands of all that runs next to the job."""
    others = []
    if job["mode"] == "fifo":
        os.mkfifo(path)
        others.append(program(FEED, path, job))
    elif job["mode"] == "flock":
        open(path, "w").close()
        others.append(program(HOLD, path, job))
    if job["how"] == "tenant":
        others.append([sys.executable, f"{os.path.dirname(HERE)}/jobs.py", "shared_gpu", "60", "1"])
    if job["how"] == "others":
        others += [[sys.executable, "-c", "while True: pass"]] * (CORES * 2)
    others += [[sys.executable, "-c", "while True: pass"]] * NEIGHBOURS
    if job["around"] == "noise":
        others.append([sys.executable, "-c", SPIN])
    return others


def limits(job, work, stack):
    """What stands before the command."""
    if job["mode"] == "disk":
        return stack.enter_context(bench.throttled_disk({}, 0.3, work))
    if job["mode"] == "save":
        return stack.enter_context(in_write_group(os.stat(work).st_dev, job["n"] << 20))
    if job["how"] == "quota":
        return stack.enter_context(bench.in_group("cores", int(100000 * (0.4 if job["mode"] == "one" else 0.3 * CORES))))
    if job["how"] == "bound":
        if CORES < 2:
            raise bench.Missing("two cores")
        return ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    return []


@contextlib.contextmanager
def around(job, work, preexec=None):
    """Programs of others are sessions of their own, as the job is one: the kernel gives each session its share. Yields what stands before the command, its path, how its output is read (bytes a second; 0: at once), and more environment."""
    path, rate, env = f"{work}/path", 0, {}
    with contextlib.ExitStack() as stack:
        if job["mode"] in ("network", "http"):
            path = str(stack.enter_context(serve(job, job["mode"] == "network")).getsockname()[1])
        if job["around"] == "download":
            env["GENERATED_DOWNLOAD"] = str(stack.enter_context(serve_files(job)).getsockname()[1])
        if job["around"] == "load":
            env["GENERATED_LOAD"] = str(job["late_s"])
        others = programs(job, path)
        prefix = limits(job, work, stack)
        if job["mode"] == "disk":
            path = f"{work}/../files"
        elif job["mode"] == "output":
            rate = (65536 if job["framework"] == "c" else 16 * 4096) / (job["wait_ms"] / 1000)
        running = [subprocess.Popen(other, env={**os.environ, "FAKE_NVML_METER": f"{work}/meter"}, start_new_session=True,
                                    preexec_fn=preexec) for other in others]
        try:
            yield prefix, path, rate, env
        finally:
            for other in running:
                other.kill()
                other.wait()


@contextlib.contextmanager
def in_write_group(device, bytes_each):
    """A disk that takes about a second and a half for a file of that size."""
    number = f"{os.major(device)}:{os.minor(device)}"
    base = f"{bench.GROUPS}/blkio"
    if not os.path.isdir(base):
        yield []
        return
    path = f"{base}/stoker-generated-{os.getpid()}-{time.monotonic_ns()}"
    try:
        os.mkdir(path)
        with open(f"{path}/blkio.throttle.write_bps_device", "w") as f:
            f.write(f"{number} {int(bytes_each / 1.5)}")
    except OSError as error:
        raise bench.Missing(f"a control group that may be written ({error})") from error
    try:
        yield ["sh", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "sh"]
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.1)
