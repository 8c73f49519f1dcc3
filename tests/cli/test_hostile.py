#!/usr/bin/env python3
"""Names that would steer a terminal, and addresses with passwords: what the program prints and keeps shows neither.

usage: test_hostile.py STOKER WORK_FOLDER
"""
import base64
import json
import os
import re
import shutil

from program import accepted, begin, check, end, refused, run
from range_server import RangeServer

ESCAPE, OVERRIDE, C1 = "\x1b[2J\x1b]0;x\x07", "\u202egpj", "\x9b31m"
CLASSES = {"0": f"zero{ESCAPE}", "1": f"one{OVERRIDE}", "2": f"two{C1}", "3": "three\nfour"}
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def is_quiet(text, where):
    found = STEERS.search(text)
    check(not found, f"{where}: {text[max(0, found.start() - 40):found.start() + 20]!r}" if found else where)


def quiet(args, code=0):
    done = run(*args)
    check(done.returncode == code, f"{args}: {done.returncode}, {done.stderr}")
    is_quiet(done.stdout + done.stderr, f"{args} prints")
    return done


def names_that_steer_terminals():
    os.makedirs("odd")
    for part in "train", "test":
        shutil.copytree(f"digits/{part}", f"odd/{part}")
        for old, new in CLASSES.items():
            os.rename(f"odd/{part}/{old}", f"odd/{part}/{new}")
    folder = f"odd/test/{CLASSES['0']}"
    file = f"{folder}/{ESCAPE}.jpg"
    os.rename(f"{folder}/{sorted(os.listdir(folder))[0]}", file)
    with open("odd.yaml", "w") as f:
        f.write(open("small.yaml").read().replace("digits/", "odd/").replace("epochs: 2", "epochs: 1")
                + "prometheus: {file: true}\ntensorboard: true\nmetrics: [accuracy, confusion]\n")
    quiet(["train", "odd.yaml", "--out", "odd-run"])
    answer = quiet(["predict", "odd-run", file])
    check("zero\\x1b[2J\\x1b]0;x\\x07" in answer.stdout, f"the class is told: {answer.stdout}")
    first = json.loads(quiet(["predict", "odd-run", file, "--json"]).stdout.splitlines()[0])
    check(first["file"] == file, "JSON tells the file's true name")
    check(CLASSES["0"] in [c["name"] for c in first["classes"]] or len(first["classes"]) == 5, "and classes'")
    quiet(["eval", "odd-run"])
    quiet(["data", "explain", "odd.yaml"])
    quiet(["data", "lint", "odd.yaml"])
    quiet(["train", "odd.yaml", "--out", f"no{ESCAPE}such/../../run", "--set", f"data.test.source.images={ESCAPE}"], 1)
    quiet(["report", "odd-run"])
    for name in os.listdir("odd-run"):
        if name.endswith((".html", ".prom", ".json", ".jsonl", ".yaml")):
            with open(f"odd-run/{name}", encoding="utf-8") as f:
                is_quiet(f.read(), f"odd-run/{name}")
    with open(file, "wb") as f:
        f.write(b"\xff\xd8 no image")
    quiet(["data", "verify", "odd/test"], 1)
    quiet(["data", "verify", "odd/test", "--json"], 1)
    quiet(["predict", "odd-run", file], 1)


def holds(folder, word):
    found = []
    for place, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(place, name), "rb") as f:
                if word.encode() in f.read() or word in name:
                    found.append(os.path.join(place, name))
    return found


def passwords_in_addresses():
    os.environ["STOKER_CACHE"] = os.path.abspath("cache")
    seen = []
    accepted(["pack", "digits/train", "--out", "packed"])
    server = RangeServer(".", seen=seen)
    address = server.url.replace("http://", "http://anna:geheim@") + "/packed"
    wanted = "Basic " + base64.b64encode(b"anna:geheim").decode()
    command = ["train", "small.yaml", "--out", "kept", "--set", f"data.train.source.images={address}", "--set",
               "tensorboard=true", "--set", "prometheus.file=true", "--trace", "2-4"]

    def secret(args, code=0, **options):
        done = run(*args, **options)
        check(done.returncode == code, f"{args}: {done.returncode}, {done.stderr}")
        check("geheim" not in done.stdout + done.stderr, f"{args} prints the password: {done.stdout}{done.stderr}")
        return done

    secret([*command, "--steps", "6"])
    check(seen and all(h.get("Authorization") == wanted for h in seen), "the server is given the password")
    secret(["report", "kept"])
    check(not holds("kept", "geheim") and not holds("cache", "geheim"), f"files have it: {holds('.', 'geheim')}")
    check("anna:***@" in open("kept/recipe.yaml").read(), "the recipe has the address")
    # The same recipe goes on, and so does one with another password: it is the same data.
    secret([*command, "--resume", "--steps", "8"])
    check(not holds("kept", "geheim"), "files have it when the run goes on")
    for json_option in [], ["--json"]:
        secret(["data", "explain", "small.yaml", "--set", f"data.train.source.images={address}", *json_option])
    secret(["train", "small.yaml", "--out", "none", "--set", f"data.train.source.images={address}-not"], 1)
    secret(["train", "small.yaml", "--out", "none", "--set",
            f"data.train.source.images={server.url}/nothing?token=geheim&x=1"], 1)
    # The run alone has no password: that is said, and the environment may have it.
    refused(["eval", "kept", "--part", "train"], 1, "anna:***@", "STOKER_ADDRESS_SECRET")
    secret(["eval", "kept", "--part", "train"], env={**os.environ, "STOKER_ADDRESS_SECRET": "geheim"})
    watched = secret(["watch", "--json", "--", "true", address])
    check("anna:***@" in watched.stdout, f"watch tells the command: {watched.stdout}")
    server.close()
    del os.environ["STOKER_CACHE"]


begin()
names_that_steer_terminals()
passwords_in_addresses()
end()
