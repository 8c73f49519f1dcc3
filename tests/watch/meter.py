"""A played GPU for jobs: says in a shared file when a kernel runs (meter.h), and fake_nvml.c derives the rest."""
import mmap
import os
import select
import struct
import time

GPUS, SLOTS, FIELDS, TOTAL_MB = 32, 8, 8, 81920
PID, SINCE, BUSY, WORK, PERMILLE, MEMORY, PCIE, UNTIL = range(8)
BYTES = GPUS * SLOTS * FIELDS * 8


def make(path):
    """An empty shared file."""
    with open(path, "wb") as f:
        f.write(b"\0" * BYTES)


def free_mb():
    """Memory of the first GPU that nobody has taken."""
    with open(os.environ["FAKE_NVML_METER"], "rb") as f:
        slots = f.read(SLOTS * FIELDS * 8)
    return TOTAL_MB - sum(struct.unpack_from("q", slots, (i * FIELDS + MEMORY) * 8)[0] for i in range(SLOTS))


class Gpu:
    """One GPU as this process uses it. Without FAKE_NVML_METER there is none, and kernels only take their time."""

    def __init__(self, index=0, memory_mb=20000):
        path = os.environ.get("FAKE_NVML_METER")
        self.map = None
        if not path:
            return
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), BYTES)
        for slot in range(SLOTS):
            self.at = (index * SLOTS + slot) * FIELDS * 8
            if self._get(PID) in (0, os.getpid()):
                break
        self._put(PID, os.getpid())
        self._put(MEMORY, memory_mb)

    def _get(self, field):
        return struct.unpack_from("q", self.map, self.at + 8 * field)[0]

    def _put(self, field, value):
        struct.pack_into("q", self.map, self.at + 8 * field, value)

    def begin(self, use=0.9, copied=0, seconds=0):
        """A kernel starts that uses that share of the GPU, after N bytes were copied; it ends after N seconds,
        whatever the host does then, or when the host says so."""
        if self.map:
            self.end()
            now = time.monotonic_ns()
            self._put(PCIE, self._get(PCIE) + copied)
            self._put(PERMILLE, int(1000 * use))
            self._put(UNTIL, now + int(seconds * 1e9) if seconds else 0)
            self._put(SINCE, now)

    def end(self):
        if self.map and self._get(SINCE):
            end = min(time.monotonic_ns(), self._get(UNTIL) or 1 << 62)
            ns = end - self._get(SINCE)
            self._put(SINCE, 0)
            self._put(BUSY, self._get(BUSY) + ns)
            self._put(WORK, self._get(WORK) + ns // 1000 * self._get(PERMILLE))

    @staticmethod
    def wait(seconds):
        """Asleep as those who wait for a GPU are: for an event, and in no timer."""
        if not hasattr(os, "eventfd"):
            return time.sleep(seconds)
        fd = os.eventfd(0)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(1000 * seconds)
        return os.close(fd)

    def run(self, seconds, use=0.9, copied=0):
        """A kernel that the host sleeps for."""
        self.begin(use, copied, seconds)
        self.wait(seconds)
        self.end()
