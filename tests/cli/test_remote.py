#!/usr/bin/env python3
"""Data over HTTP: a pack on a server trains as the folder does, through a cache on disk; faults of servers pass or are told.

usage: test_remote.py STOKER WORK_FOLDER [FAULTS_LIBRARY]
"""
import json
import os
import shutil
import signal
import ssl
import subprocess
import time

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


def a_server_that_dies_is_no_corrupt_record():
    """Under skip and replace, too, the run ends after six tries of one block, and passes over nothing."""
    for policy in "skip", "replace":
        for fault, part in ("dead", "6 times"), ("403", "refuses it"), ("404", "(404)"), ("changed", "has changed"):
            empty_cache()
            tries = {}

            def answers(n, path):
                if not path.endswith(".tar") or n <= 4:
                    return None
                tries[path] = tries.get(path, 0) + 1
                return "reset" if fault == "dead" else fault
            server = RangeServer(".", answers)
            with open("dying.yaml", "w") as f:
                f.write("data: {train: {source: {images: %s/bigpack}, shuffle: true, on_error: %s, "
                        "stages: [{decode: {channels: 1}}]}}\nbatch: 50\n" % (server.url, policy))
            done = refused(["data", "bench", "dying.yaml", "--seconds", "60"], 1, server.url, ".tar", part, lines=None)
            check("skipped" not in done.stdout, f"{policy}, {fault}: nothing is passed over: {done.stdout}")
            n = sum(tries.values())
            check(0 < n < 200, f"{policy}, {fault}: the run ends with the first block that cannot be had: {n} requests")
            server.close()


def a_bench_ends_in_time():
    """Of 2 s, whatever the server does. Its tries alone would take 6 s, or 90 where it hangs."""
    def bench(name, code, fault, *parts):
        empty_cache()
        server = RangeServer(".", fault)
        with open("late.yaml", "w") as f:
            f.write("data: {train: {source: {images: %s/bigpack}, on_error: skip, stages: [{decode: {channels: 1}}]}}\n"
                    "batch: 50\n" % server.url)
        if fault is None:
            server.close()
        start = time.monotonic()
        done = run("data", "bench", "late.yaml", "--seconds", "2")
        seconds = time.monotonic() - start
        check(done.returncode == code and all(part in done.stdout + done.stderr for part in parts),
              f"a bench of a server that is {name}: {done.returncode}: {done.stdout}{done.stderr}")
        check(seconds < 5.5, f"a bench of 2 s of a server that is {name} ends after {seconds:.1f} s")
        server.close()

    def later(fault):
        return lambda n, path: fault if n > 5 and path.endswith(".tar") else None
    bench("gone", 1, None, "stoker-pack.json")
    bench("silent", 1, lambda n, path: "hang", "stoker-pack.json", "no whole answer came within the time that was given")
    bench("silent later", 1, later("hang"), "within the time that was given")
    bench("slow", 1, lambda n, path: "slow" if path.endswith(".tar") else None, "within the time that was given")
    bench("slow later", 1, later("slow"), "within")
    bench("resetting", 1, later("reset"), ".tar'")


def bad_bytes_on_a_server_are_passed_over():
    empty_cache()
    shutil.copytree("packed", "torn")
    shard = os.path.join("torn", sorted(name for name in os.listdir("torn") if name.endswith(".tar"))[0])
    with open(shard, "r+b") as f:
        data = bytearray(f.read())
        at = data.index(b"\xff\xd8\xff")
        data[at:at + 3] = b"bad"
        f.seek(0)
        f.write(data)
    server = RangeServer(".")
    accepted([*train(f"{server.url}/torn", "torn-run"), "--set", "data.train.on_error=skip", "--set", "epochs=1"],
             "skipped 1 record", f"{server.url}/torn/", "not a JPEG")
    server.close()


def private_authority():
    """A server with a certificate of its own making is refused, unless a file says that it is trusted."""
    made = shutil.which("openssl") and subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "ca.pem", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True)
    if not made or made.returncode:
        print("SKIP: no openssl to make a certificate with")
        return
    for name in "CURL_CA_BUNDLE", "SSL_CERT_FILE":
        os.environ.pop(name, None)
    server = RangeServer(".")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("ca.pem", "key.pem")
    server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    empty_cache()
    refused(train(f"{url}/packed", "tls"), 1, "certificate", lines=None)
    trusted = os.path.abspath("ca.pem")
    for name, more, env in (("ca", ["--set", "data.ca=ca.pem"], {}), ("bundle", [], {"CURL_CA_BUNDLE": trusted}),
                            ("file", [], {"SSL_CERT_FILE": trusted})):
        empty_cache()
        accepted([*train(f"{url}/packed", f"tls-{name}"), *more], env={**os.environ, **env})
        check(losses("local") == losses(f"tls-{name}"), f"the losses over TLS with {name}")
    refused([*train(f"{url}/packed", "tls"), "--set", "data.ca=none.pem"], 1, "none.pem", lines=None)
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
private_authority()
faults_that_pass()
faults_that_are_told()
killed_and_shared()
a_server_that_dies_is_no_corrupt_record()
bad_bytes_on_a_server_are_passed_over()
a_bench_ends_in_time()
damage_and_limit()
end()
