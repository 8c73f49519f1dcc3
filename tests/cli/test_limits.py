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
TRAINED = """
name: small
data:
  train:
    source: {synthetic: {fields: {x: [64]}, classes: 10, samples: %d}}
    %s
  valid:
    source: {synthetic: {fields: {x: [64]}, classes: 10, samples: 512}}
batch: %d
model: {layers: [{dense: 64}, relu, {dense: 64}, relu, {dense: 64}, relu, {dense: 10}]}
optimizer: {adam: {lr: 0.01}}
epochs: 1
"""


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


def a_limit_holds_with_many_micro_batches():
    """The list of kernels stands there once for each: 8,192 of them took 147 MiB under a limit of 32."""
    small = recipe("many.yaml", TRAINED % (16384, "", 8192))
    status, said = holds(32 << 20, "8,192 micro-batches", "train", small, "--memory", "32MiB", "--set", "micro_batch=1",
                         "--out", "many", "--steps", "1")
    check(status == 1 and "largest buffers" in said and "micro-batch" in said, f"and refused for its lists: {said}")
    status, _ = holds(32 << 20, "64 micro-batches", "train", small, "--memory", "32MiB", "--set", "micro_batch=128",
                      "--out", "few", "--steps", "1")
    check(status == 0, "while fewer are trained with")


def the_input_pipeline_is_part_of_the_limit():
    """Slots of 8 MiB each, 8 of them, took 80 MiB against a limit of 60."""
    big = recipe("slots.yaml", """
name: slots
data:
  train:
    source: {synthetic: {fields: {image: {dtype: u8, shape: [512, 512, 1]}}, classes: 10, samples: 64}}
    stages: [random_flip, {scale: 1/255}]
batch: 8
threads: 8
model: {layers: [{max_pool: 16}, flatten, {dense: 10}]}
optimizer: {sgd: {lr: 0.01}}
epochs: 1
checkpoint: {end: false}
""")
    status, _ = holds(44 << 20, "large batches", "train", big, "--memory", "44MiB", "--out", "slots")
    check(status == 0, "the pipeline has fewer slots")
    status, _ = holds(12 << 20, "too large batches", "train", big, "--memory", "12MiB", "--out", "none")
    check(status == 1, "two of them do not fit")


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
            check("b.jpg" in said and "600 MiB" in said, f"data {verb} names the file and its size: {said}")
    holds(32 << 20, "data lint", "data", "lint", files)
    done = subprocess.run([STOKER, "data", "verify", files], capture_output=True, text=True, check=False)
    check("b.jpg" in done.stdout and "memory" in done.stdout, f"verify lists it with the bound: {done.stdout}")
    check("1 of 3" in done.stderr, f"and reads the others: {done.stderr}")


def an_index_is_made_within_a_limit():
    """Its threads read whole files, of any size."""
    os.makedirs("indexed")
    make_png("indexed/a.png", 64)
    make_sparse("indexed/b.jpg", 600 << 20)
    make_sparse("indexed/d.jpg", 500 << 20)
    make_png("indexed/e.png", 64)
    for threads in "1", "3":
        status, said = holds(32 << 20, "index", "index", "indexed", "--memory", "32", "--threads", threads)
        check(status == 1 and "'indexed/b.jpg'" in said and "600 MiB" in said and "limit of 32" in said,
              f"it names the file, its size and the bound: {said}")
        check("2 of 4 files are too large" in said, f"and how many there are: {said}")
    for name in "indexed/b.jpg", "indexed/d.jpg":
        os.truncate(name, 20 << 20)
    status, said = holds(32 << 20, "index", "index", "indexed", "--memory", "32", "--threads", "2")
    check(status == 0, f"two that fit one after the other are read so: {said}")


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
    check(status == 1 and "big-idx" in said and "400 MiB" in said, f"it is named, with its size: {said}")


def what_a_source_keeps_is_counted_before_it_is_read():
    """Files that are kept in memory, and where the lines of a text begin: 8 bytes for each."""
    with open("large.txt", "wb") as f:
        f.write(b"a line\n")
        f.truncate(400 << 20)
    with open("large.csv", "wb") as f:
        f.write(b"x,label\n1,0\n1")
        f.truncate(400 << 20)
    with open("lines.txt", "wb") as f:
        f.write(b"\n" * (12 << 20))
    with open("large.npy", "wb") as f:
        head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1024), }" % (200 << 10)
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117) + b"\n")
        f.truncate(128 + (200 << 20))
    for what, source, words in (
            ("a text in memory", "text: {files: large.txt, in_memory: true}", ("large.txt", "400 MiB")),
            ("a table in memory", "csv: {files: large.csv, in_memory: true, fields: {x: f32, label: i32}}", ("large.csv", "400 MiB")),
            ("a text of many lines", "text: {files: lines.txt}", ("lines.txt",))):
        kept = recipe("kept.yaml", "name: kept\ndata: {memory: 32MiB, train: {source: {%s}}}\nbatch: 1\n" % source)
        for verb in "explain", "verify":
            status, said = holds(32 << 20, f"{what}, data {verb}", "data", verb, kept)
            check(status == 1 and all(word in said for word in words), f"{what}, data {verb}: it is named: {said}")
    kept = recipe("kept.yaml", "name: kept\ndata: {memory: 32MiB, train: {source: {npy: {x: large.npy}}}}\nbatch: 1\n")
    status, said = holds(32 << 20, "an array", "data", "explain", kept)
    check(status == 0, f"an array is read row by row: {said}")


def small_files_are_not_read_whole_where_they_are_large():
    """A recipe, a tokenizer and the note next to a file of tokens: what is larger than any of its kind is not read."""
    with open("few.bin", "wb") as f:
        f.write(bytes(64))
    for name in "few.bin.json", "tokenizer.json", "large.yaml":
        with open(name, "wb") as f:
            f.write(b"{ ")
            f.truncate(600 << 20)
    noted = recipe("noted.yaml", "name: noted\ndata: {train: {source: {tokens: {files: few.bin, length: 4}}}}\nbatch: 1\n")
    for name, *args in (("few.bin.json", "data", "explain", noted), ("large.yaml", "train", "large.yaml"),
                        ("tokenizer.json", "tokenize", noted, "--tokenizer", "tokenizer.json", "--out", "out.bin")):
        status, resident, said = measure(*args)
        check(resident < 64 << 20 and status == 1 and f"{name}' has {600 << 20} bytes" in said,
              f"{name}: {resident / 2**20:.1f} MiB: {status} {said}")


def main():
    begin()
    a_limit_holds_with_many_micro_batches()
    the_input_pipeline_is_part_of_the_limit()
    a_record_above_the_limit_is_named_and_not_read()
    an_index_is_made_within_a_limit()
    a_file_that_is_read_whole_is_bounded()
    what_a_source_keeps_is_counted_before_it_is_read()
    small_files_are_not_read_whole_where_they_are_large()
    end()


main()
