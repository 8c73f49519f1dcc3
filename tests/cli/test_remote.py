#!/usr/bin/env python3
"""Data over HTTP: a pack on a server trains as the folder does, through a cache on disk; faults of servers pass or are told.

usage: test_remote.py STOKER WORK_FOLDER [FAULTS_LIBRARY]
"""
import json
import os
import shutil
import signal
import subprocess

from program import STOKER, accepted, begin, can_kill, check, end, killed as killed_at, losses, refused, run
from range_server import RangeServer

BIG = ["--train", "6000", "--test", "10", "--size", "64"]


def train(source, out, **options):
    return ["train", "small.yaml", "--out", out, "--steps", "12", "--set", f"data.train.source.images={source}"]


def blocks():
    return sum(len(files) for _, _, files in os.walk("cache/remote"))


def empty_cache():
    shutil.rmtree("cache", ignore_errors=True)


def a_pack_on_a_server():
    server = RangeServer(".")
    accepted(train("packed", "local"))
    accepted(train(f"{server.url}/packed", "remote"))
    check(losses("local") == losses("remote"), "the losses are those of the folder")
    check(blocks() >= 2, f"blocks are kept: {blocks()}")
    server.forget()
    accepted(train(f"{server.url}/packed", "again"))
    check(losses("local") == losses("again"), "and again from the cache")
    check(all(wanted == "bytes=0-0" for _, wanted in server.requests), f"no byte comes twice: {server.requests}")
    server.close()
    refused(train(f"{server.url}/packed", "gone"), 1, f"{server.url}/packed/stoker-pack.json", "6 times", lines=None)


def faults_that_pass():
    os.environ["STOKER_TIMEOUT"] = "1"
    for fault in "503", "later", "cut", "reset", "range", "stall":
        empty_cache()
        server = RangeServer(".", lambda n, path: fault if n % (6 if fault == "stall" else 3) == 1 else None)
        accepted(train(f"{server.url}/packed", fault))
        check(losses("local") == losses(fault), f"the losses in spite of {fault}")
        server.close()
    del os.environ["STOKER_TIMEOUT"]


def faults_that_are_told():
    def told(fault, code, *parts):
        empty_cache()
        server = RangeServer(".", fault)
        refused(train(f"{server.url}/packed", "told"), code, *parts, lines=None)
        server.close()
    told(lambda n, path: "404", 1, "there is no 'http://", "(404)")
    told(lambda n, path: "whole", 1, "gives whole files only")
    told(lambda n, path: "changed" if n > 3 and path.endswith(".tar") else None, 1, "has changed while it was in use")
    told(lambda n, path: "silent" if n > 3 and path.endswith(".tar") else None, 1, "has changed while it was in use")
    told(lambda n, path: "503" if path.endswith(".tar") else None, 1, ".tar'", "the server says 503, 6 times")
    told(lambda n, path: "403" if n > 1 else None, 1, "the server refuses it (403)")
    told(lambda n, path: "range" if path.endswith(".tar") and n > 3 else None, 1, "was asked for byte 0 and sent what begins "
         "at 1, 6 times")
    server = RangeServer(".")
    refused(train(f"{server.url}/digits", "told"), 1, "stoker-pack.json", "(404)", "stoker pack FOLDER --out DIR")
    refused(train(f"{server.url}/packed/shard-*.tar", "told"), 1, "(404); web servers list no files")
    server.close()


def whole_blocks():
    """Each block of 1 MiB has its checksum, and what was not finished has another name."""
    names = [(os.path.join(at, name), name) for at, _, files in os.walk("cache/remote") for name in files]
    return all(not name.isdigit() or os.path.getsize(path) <= (1 << 20) + 8 for path, name in names)


def killed_and_shared():
    """Processes that are killed while they fetch leave a cache that others can use, and two may use it at once."""
    empty_cache()
    accepted(["get", "digits", "--out", "big", *BIG])
    accepted(["pack", "big/train", "--out", "bigpack", "--shard-size", "4"])
    server = RangeServer(".", latency_s=0.02)
    command = [STOKER, "data", "bench", "big.yaml", "--seconds", "2", "--json"]
    with open("big.yaml", "w") as f:
        f.write("data: {train: {source: {images: %s/bigpack}, shuffle: true, stages: [{decode: {channels: 1}}]}}\n"
                "batch: 50\n" % server.url)
    n_killed = 0
    for i in range(30 if can_kill() else 0):
        if i % 5 == 0:
            empty_cache()
        # The first calls of a process, and later ones in a cache that others have begun.
        n_killed += killed_at(1 + i // 5 + i % 5 * 4, "cache", *command[1:]) == -signal.SIGKILL
    check(n_killed >= 20 or not can_kill(), f"{n_killed} of 30 were killed while they wrote")
    check(whole_blocks(), "what was killed left whole blocks only")
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        text, _ = process.communicate(timeout=120)
        check(process.returncode == 0 and json.loads(text)["samples_per_s"] > 0, f"two at once: {text}")
    server.close()


def damage_and_limit():
    server = RangeServer(".")
    for folder, _, files in os.walk("cache/remote"):
        for name in files:
            with open(os.path.join(folder, name), "r+b") as f:
                f.seek(100)
                f.write(b"damaged")
    server_url = server.url
    empty = blocks()
    accepted(train(f"{server_url}/packed", "fresh"))
    check(losses("local") == losses("fresh"), "blocks that were damaged on disk are fetched again")
    with open("big.yaml", "w") as f:
        f.write("data: {train: {source: {images: %s/bigpack}, stages: [{decode: {channels: 1}}]}}\nbatch: 50\n" % server_url)
    os.environ["STOKER_CACHE_LIMIT"] = "3MiB"
    empty_cache()
    accepted(["data", "bench", "big.yaml", "--seconds", "1"])
    n = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, files in os.walk("cache/remote") for name in files)
    check(0 < n <= 4 << 20, f"the limit is kept: {n} bytes, {empty} blocks before")
    del os.environ["STOKER_CACHE_LIMIT"]
    server.close()


begin()
os.environ["STOKER_CACHE"] = os.path.abspath("cache")
if "libcurl" in run("data", "bench", "small.yaml", "--set", "data.train.source.images=http://127.0.0.1:9/x").stderr:
    print("SKIP: this build has no libcurl")
    raise SystemExit(77)
accepted(["pack", "digits/train", "--out", "packed"])
a_pack_on_a_server()
faults_that_pass()
faults_that_are_told()
killed_and_shared()
damage_and_limit()
end()
