#!/usr/bin/env python3
"""stoker get: archives from a server, unpacked to folders that appear whole, and archives that mean harm.

usage: test_archives.py STOKER WORK_FOLDER [FAULTS_LIBRARY]
"""
import glob
import hashlib
import io
import os
import shutil
import signal
import sys
import tarfile
import zipfile

import program
from program import STOKER, WORK, accepted, can_kill, check, killed as killed_at, refused, run
from range_server import RangeServer


def tar(path, members, mode="w:gz"):
    """members: (name, bytes) for files; (name, a function on the TarInfo) for others."""
    with tarfile.open(path, mode) as out:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if callable(content):
                content(info)
                out.addfile(info)
            else:
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))


def sum_of(path):
    with open(path, "rb") as f:
        return "sha256:" + hashlib.sha256(f.read()).hexdigest()


def tree(folder):
    """Path below the folder: what it holds; links as their targets."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in files + [f for f in folders if os.path.islink(f"{at}/{f}")]:
            path = f"{at}/{name}"
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = f"link to {os.readlink(path)}"
            else:
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
    return found


def get(server, name, out, checksum=None):
    return ["get", f"{server.url}/{name}", "--checksum", checksum or sum_of(f"site/{name}"), "--out", out]


def link(target, kind=tarfile.SYMTYPE):
    def make(info):
        info.type, info.linkname = kind, target
    return make


def of_type(kind):
    def make(info):
        info.type = kind
    return make


FILES = {"pets/cat/1.jpg": b"c" * 700, "pets/dog/2.jpg": b"d" * 513, "pets/dog/3.jpg": b""}


def all_kinds(server):
    tar("site/a.tgz", FILES.items())
    tar("site/a.tar.gz", FILES.items())
    tar("site/a.tar", FILES.items(), "w")
    with zipfile.ZipFile("site/a.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in FILES.items():
            out.writestr(name, content)
        out.writestr("pets/empty/", b"")
        out.writestr("__MACOSX/pets/cat/._1.jpg", b"hidden")
    for name in "a.tgz", "a.tar.gz", "a.tar", "a.zip":
        out = "out-" + name
        accepted(get(server, name, out), "3 files" if name != "a.zip" else "5 files", f"is in {out}")
        found = tree(out)
        about = found.pop("stoker-source.txt", b"").decode()
        check(found == FILES, f"{name}: {found.keys()}")
        check(name in about and sum_of(f"site/{name}") in about and "licence" in about, f"where it came from: {about!r}")
        check(not os.path.exists(out + ".download") and not glob.glob(".stoker-tmp-*"), "nothing is left next to it")
    server.forget()
    accepted(get(server, "a.tgz", "out-a.tgz"), "is in out-a.tgz")
    check(server.requests == [], "what is there is not fetched again")
    refused(get(server, "a.tgz", "out-a.tar.gz"), 1, "out-a.tar.gz", "is not what 'a' gives", "remove it or name another")
    refused(get(server, "a.tgz", "site"), 1, "'site'", "remove it or name another")
    accepted(get(server, "a.tgz", "unchecked", "none"), "is in unchecked")
    check(b"checksum was not asked for" in tree("unchecked")["stoker-source.txt"], "and says so")


def harmful(server):
    """Nothing appears, inside or outside of the folder."""
    def cut(path):
        tar(path, FILES.items())
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) - 20)

    def bomb(path):
        """70 MB of zeros in 70 kB."""
        tar(path, [("zeros", bytes(70 << 20))])

    cases = {
        "up": ([("a/b", b"x"), ("../up.txt", b"x")], "would be written outside of the folder"),
        "inner": ([("a/../../up.txt", b"x")], "would be written outside of the folder"),
        "root": ([("/tmp/stoker-escape.txt", b"x")], "would be written outside of the folder"),
        "back": ([("..\\up.txt", b"x")], "backslash"),
        "control": ([("a\nb", b"x")], "control character"),
        "twice": ([("a", b"x"), ("a", b"y")], "'a' comes twice"),
        "under": ([("a", b"x"), ("a/b", b"y")], "a file is in the way"),
        "long": ([("x" * 300, b"x")], "too long a name"),
        "nothing": ([(".hidden", b"x")], "holds no files"),
        "bomb": (bomb, "unpacks to more than"),
        "cut": (cut, "cut short"),
    }
    before = set(os.listdir("."))
    for name, (content, message) in cases.items():
        path = f"site/{name}.tgz"
        content(path) if callable(content) else tar(path, content)
        refused(get(server, f"{name}.tgz", f"h/{name}"), 1, message, f"{name}.tgz")
        check(not os.path.exists(f"h/{name}") and not glob.glob("h/.stoker-tmp-*"), f"{name}: nothing is there")
    check(set(os.listdir(".")) - before == {"h"} and not os.path.exists("h/up.txt"), "nothing next to it")
    check(not os.path.exists("/tmp/stoker-escape.txt"), "nothing elsewhere")
    with zipfile.ZipFile("site/zip-up.zip", "w") as out:
        out.writestr("a.txt", b"x")
        out.writestr("../../up.txt", b"x")
    refused(get(server, "zip-up.zip", "h/zip"), 1, "would be written outside of the folder")
    # Links and devices are passed over, so that what comes after them cannot go through them.
    tar("site/links.tgz", [("out", link("/tmp")), ("hard", link("/etc/passwd", tarfile.LNKTYPE)),
                           ("device", of_type(tarfile.CHRTYPE)), ("pipe", of_type(tarfile.FIFOTYPE)),
                           ("out/stoker-escape.txt", b"inside")])
    accepted(get(server, "links.tgz", "h/links"), "is in h/links")
    found = tree("h/links")
    check(set(found) == {"stoker-source.txt", "out/stoker-escape.txt"} and not os.path.islink("h/links/out"),
          f"no links: {found.keys()}")
    check(not os.path.exists("/tmp/stoker-escape.txt"), "nothing through a link")


def killed(server):
    """Killed while it unpacks, the folder is not there; the next one finishes it without fetching anything."""
    tar("site/many.tgz", [(f"many/{i % 10}/{i}.txt", b"%d" % i) for i in range(4000)])
    words = get(server, "many.tgz", "many")
    if not can_kill():
        print("SKIP: kills, for want of the library that counts calls")
        return
    code = killed_at(3000, ".stoker-tmp-", *words)
    check(code == -signal.SIGKILL, f"killed in the middle: {code}")
    check(not os.path.exists("many") and glob.glob(".stoker-tmp-*"), "what was begun has another name")
    server.forget()
    accepted(words, "is in many")
    check(server.requests == [], "the archive is still there")
    check(len(tree("many")) == 4001 and not glob.glob(".stoker-tmp-*"), "all of it, and what was begun is gone")


def messages(server):
    address = f"{server.url}/a.tgz"
    refused(["get", address], 2, "--checksum sha256:", "none", lines=None)
    refused(["get", address, "--checksum", "sha256:12"], 2, "64 digits", lines=None)
    refused(["get", "file:///a.tgz", "--checksum", "none"], 2, "they begin with http://", lines=None)
    refused(["get", "http://127.0.0.1:9/", "--checksum", "none"], 2, "does not end in the name of a file", lines=None)
    refused(["get", address, "--checksum", "md5:" + 32 * "0", "--out", "m"], 1, "should have md5:0000", "a.tgz.wrong")
    shutil.rmtree("m.download")
    with open("site/no.tgz", "wb") as f:
        f.write(b"<html>not here</html>" * 100)
    refused(get(server, "no.tgz", "m"), 1, "no.tgz", "tar header")
    os.makedirs("closed", mode=0o500)
    if os.getuid():
        refused(get(server, "a.tgz", "closed/x"), 1, "closed/x", "permission denied")
    listed = accepted(["get", "--list"], "cifar10: ", "source: {images: cifar10/train}", "imagenette: ", "glue-sst2: ")
    check("(null)" not in listed.stdout, "every set has its texts")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(f"{WORK}/site")
os.chdir(WORK)
if "without lib" in run("get", "http://127.0.0.1:9/x", "--checksum", "none").stderr:
    print("SKIP: a build without libcurl")
    sys.exit(77)
site = RangeServer("site")
all_kinds(site)
harmful(site)
killed(site)
messages(site)
site.close()
program.end()
