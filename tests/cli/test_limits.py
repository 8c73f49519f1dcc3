#!/usr/bin/env python3
"""A memory limit is the process's: what was resident at most stays below it and 24 MiB, or the run is refused.

usage: test_limits.py STOKER WORK_FOLDER
"""
import os
import struct
import subprocess
import zlib

from program import STOKER, begin, check, end

ALLOWED = 24 << 20


def measure(*args):
    """(exit status, what was resident at most, standard error)."""
    with open("said.txt", "w+") as said:
        child = subprocess.Popen([STOKER, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return child.returncode, usage.ru_maxrss * 1024, said.read()


def recipe(name, text):
    with open(name, "w") as f:
        f.write(text)
    return name


def holds(limit, what, *args):
    """Either kept, or refused with a message; in both cases within the limit. Returns the exit status and the message."""
    status, resident, said = measure(*args)
    check(resident < limit + ALLOWED, f"{what}: {resident / 2**20:.1f} MiB resident of {limit / 2**20:.1f} + 24")
    check(status == 0 or (status == 1 and "limit" in said), f"{what}: kept or refused: {status} {said}")
    return status, said


def make_sparse(path, n_bytes):
    with open(path, "wb") as f:
        f.write(b"\xff\xd8\xff\xe0")
        f.truncate(n_bytes)


def make_png(path, side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)))
        f.write(chunk(b"IDAT", zlib.compress(bytes((side + 1) * side), 1)) + chunk(b"IEND", b""))


def a_record_above_the_limit_is_named_and_not_read():
    """A sparse file was read whole by explain and verify, whatever data.memory said."""
    os.makedirs("sparse")
    make_png("sparse/a.png", 64)
    make_png("sparse/c.png", 64)
    make_sparse("sparse/b.jpg", 600 << 20)
    files = recipe("sparse.yaml", """
name: sparse
data:
  memory: 32MiB
  train:
    source: {files: sparse}
    stages: [decode, {resize: 32}]
batch: 1
""")
    for verb, more in (("explain", []), ("verify", []), ("bench", ["--seconds", "1"]), ("show", ["--out", "s.png"])):
        status, said = holds(32 << 20, f"data {verb}", "data", verb, files, *more)
        check(status == 1, f"data {verb} refuses it")
        if verb != "verify":
            check("b.jpg" in said and f"{600 << 20}"[:5] in said, f"data {verb} names the file and its size: {said}")
    holds(32 << 20, "data lint", "data", "lint", files)
    done = subprocess.run([STOKER, "data", "verify", files], capture_output=True, text=True, check=False)
    check("b.jpg" in done.stdout and "memory" in done.stdout, f"verify lists it with the bound: {done.stdout}")
    check("1 of 3" in done.stderr, f"and reads the others: {done.stderr}")


def a_file_that_is_read_whole_is_bounded():
    """An IDX file is read before anything is known of it."""
    with open("big-idx", "wb") as f:
        f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 1 << 20, 20, 20))
        f.truncate(16 + (400 << 20))
    idx = recipe("idx.yaml", """
name: idx
data:
  memory: 32MiB
  train:
    source: {idx: {images: big-idx, labels: big-idx}}
batch: 1
""")
    status, said = holds(32 << 20, "an IDX file", "data", "explain", idx)
    check(status == 1 and "big-idx" in said and f"{16 + (400 << 20)}" in said, f"it is named, with its size: {said}")


def main():
    begin()
    a_record_above_the_limit_is_named_and_not_read()
    a_file_that_is_read_whole_is_bounded()
    end()


main()
