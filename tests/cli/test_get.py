#!/usr/bin/env python3
"""stoker get: downloads from a server that cuts, fails and lies, from where they were cut off, and checked.

usage: test_get.py STOKER WORK_FOLDER
"""
import os
import shutil
import signal
import subprocess
import sys

from program import STOKER, TIMEOUT, WORK, accepted, check, refused, run
from range_server import RangeServer

NAME, BYTES = "input.txt", 1115394


def plan(kind):
    """Bytes of the right length; the test needs no Shakespeare, since a wrong checksum is what is to be seen."""
    return bytes(i * 31 % 251 for i in range(BYTES)) if kind == "wrong" else None


def words(path):
    return open(path, "rb").read() if os.path.exists(path) else None


def without_libcurl():
    done = run("get", "tinyshakespeare", "--mirror", "http://127.0.0.1:9")
    if "without lib" in done.stderr:
        print(f"SKIP: {done.stderr.strip()}")
        sys.exit(77)


def wrong_bytes():
    server = RangeServer("site")
    refused(["get", "tinyshakespeare", "--out", "t", "--mirror", server.url], 1, "checksum sha256:", "86c4e6aa9db7",
            "input.txt.wrong")
    check(not os.path.exists("t/input.txt") and words("t/input.txt.wrong") == plan("wrong"), "it is put aside")
    check(not os.path.exists("t/input.txt.part"), "and not gone on with")
    server.close()


def cut_off():
    """The second block never comes; then it does, and the first is not asked for again."""
    os.environ["STOKER_TIMEOUT"] = "1"
    server = RangeServer("site", lambda n, path: "404" if n >= 3 else None)
    refused(["get", "tinyshakespeare", "--out", "c", "--mirror", server.url], 1, "404", lines=None)
    check(words("c/input.txt.part") == plan("wrong")[:1 << 20], "what came is kept")
    server.close()
    server = RangeServer("site", lambda n, path: "cut" if n == 2 else None)
    refused(["get", "tinyshakespeare", "--out", "c", "--mirror", server.url], 1, "checksum", lines=None)
    asked = [wanted for _, wanted in server.requests]
    check(asked[0] == "bytes=0-0" and all(w.startswith(f"bytes={1 << 20}-") for w in asked[1:]), f"goes on: {asked}")
    check(words("c/input.txt.wrong") == plan("wrong"), "all of it, whole")
    server.close()


def stopped():
    """Ctrl-C keeps what has come and says where."""
    def stop(n, path):
        if n == 3:
            process.send_signal(signal.SIGINT)
    server = RangeServer("site", stop)
    process = subprocess.Popen([STOKER, "get", "tinyshakespeare", "--out", "s", "--mirror", server.url],
                               stdout=subprocess.PIPE, text=True)
    said, _ = process.communicate(timeout=TIMEOUT)
    check(process.returncode == 130, f"Ctrl-C: exit code {process.returncode}")
    check("kept in 's'" in said and "the same command goes on" in said, f"it says what is kept: {said!r}")
    check(len(words("s/input.txt.part") or b"") >= 1 << 20 and not os.path.exists("s/input.txt"), "it is kept")
    server.close()


def changed_since():
    """The part is of a file that is another one now: it begins again."""
    server = RangeServer("site", lambda n, path: "404" if n >= 3 else None)
    refused(["get", "tinyshakespeare", "--out", "d", "--mirror", server.url], 1, "404", lines=None)
    server.close()
    os.utime("site/input.txt", (1, 1))
    server = RangeServer("site")
    run("get", "tinyshakespeare", "--out", "d", "--mirror", server.url)
    check(server.requests[1][1].startswith("bytes=0-"), f"from the beginning: {server.requests}")
    server.close()


def other_lengths():
    with open("site/short/input.txt", "wb") as f:
        f.write(b"To be")
    server = RangeServer("site/short")
    refused(["get", "tinyshakespeare", "--out", "e", "--mirror", server.url], 1, "5 bytes", "should have 1115394")
    server.close()


def from_a_folder():
    text = None
    for place in os.environ.get("STOKER_DATA", ""), "../../../shared/data", "../../../../shared/data":
        path = f"{place}/text/tinyshakespeare.txt"
        if os.path.exists(path):
            text = path
    if not text:
        print("SKIP: no tinyshakespeare next to the checkout, so that a right checksum was not seen")
        return
    os.makedirs("mirror", exist_ok=True)
    shutil.copy(text, "mirror/input.txt")
    server = RangeServer("mirror")
    accepted(["get", "tinyshakespeare", "--out", "f", "--mirror", server.url], "licence: public domain", "is in f")
    check(words("f/input.txt") == words("mirror/input.txt") and os.listdir("f") == ["input.txt"], "the file alone")
    server.forget()
    accepted(["get", "tinyshakespeare", "--out", "f", "--mirror", server.url], "is in f")
    check(server.requests == [], "what is there is not asked for")
    server.close()
    accepted(["get", "tinyshakespeare", "--out", "g", "--mirror", "mirror"], "is in g")
    with open("f/input.txt", "ab") as f:
        f.write(b"!")
    refused(["get", "tinyshakespeare", "--out", "f"], 1, "checksum")
    as_the_readme_does()


def as_the_readme_does():
    """From the text on a server to a text of the network's own, by README's commands: here of one step."""
    server = RangeServer("mirror")
    accepted(["get", "shakespeare", "--mirror", server.url], "is in data/shakespeare")
    check(sorted(os.listdir("data/shakespeare")) == ["stoker-source.txt", "train.bin", "train.bin.json", "train.txt",
                                                     "valid.bin", "valid.bin.json", "valid.txt"], "texts and tokens")
    check(words("data/shakespeare/train.txt") + words("data/shakespeare/valid.txt") == words("mirror/input.txt"), "in two")
    server.forget()
    accepted(["get", "shakespeare", "--mirror", server.url], "is in data/shakespeare")
    check(server.requests == [], "what is there is not asked for")
    server.close()
    recipes = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "recipes")
    accepted(["train", f"{recipes}/shakespeare-gpt.yaml", "--steps", "1"], "gpt2")
    accepted(["generate", "runs/shakespeare-gpt", "ROMEO:", "--tokens", "3"], "ROMEO:")
    shutil.rmtree("runs")
    masked = [line.strip("# \n") for line in open(f"{recipes}/shakespeare-masked.yaml") if line.startswith("#   ")]
    check(masked[:2] == ["stoker get shakespeare", "cd data/shakespeare"] and len(masked) == 5, f"the recipe's steps: {masked}")
    for line in masked[2:]:
        accepted(line.split()[1:], cwd="data/shakespeare")
    accepted(["train", f"{recipes}/shakespeare-masked.yaml", "--steps", "1"], "bert")


def messages():
    done = accepted(["get", "--list"], "digits", "mnist", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", "licence: ")
    check(done.stdout.count("https://ossci-datasets") == 4, "all files of MNIST")
    refused(["get", "tinyshakespear"], 2, "did you mean 'tinyshakespeare'?", lines=None)


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(f"{WORK}/site/short")
os.chdir(WORK)
with open("site/input.txt", "wb") as out:
    out.write(plan("wrong"))
without_libcurl()
wrong_bytes()
cut_off()
stopped()
changed_since()
other_lengths()
from_a_folder()
messages()
import program

os.chdir("..")
if program.n_failed:
    sys.exit(f"{program.n_failed} checks failed")
shutil.rmtree(WORK)
print("all checks passed")
