#!/usr/bin/env python3
"""Runs test programs on a processor with AVX-512 that this machine need not have: an emulated one.

    tools/emulate.py BUILD [TEST[:ARGUMENT...]...] [--cpu MODEL] [--limit MINUTES] [--write DOC]

Bochs (Debian's package) emulates a PC with a Skylake-X, which has AVX-512 F, CD, BW, DQ and VL. It boots Debian's own
kernel, straight from its package, with an initramfs that holds the programs and their libraries, and whose /init runs
one after the other. What they print arrives over the serial port. Exit status 0: all passed. --write puts the table of
results into DOC, between the lines that mark its place.

It is slow, about a hundredth of the machine's speed: the kernel alone takes some three minutes to come up.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

DEFAULT_TESTS = ["test_cpu_variants", "test_cpu_conv2d", "test_cpu_program", "test_op_values:cpu", "test_isa"]
NEEDED_FLAGS = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
KERNEL = "linux-image-cloud-amd64"
MARKS = ("<!-- emulate: begin -->", "<!-- emulate: end -->")

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0 HOME=/tmp
echo "CPU $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')"
echo "FLAGS $(grep -m1 flags /proc/cpuinfo)"
%s
echo DONE
# Writing this word to the port ends the emulator.
for c in S h u t d o w n; do printf $c | dd of=/dev/port bs=1 count=1 seek=35072 2>/dev/null; done
poweroff -f
"""

ISOLINUX = """default x
prompt 0
label x
kernel vmlinuz
initrd initrd
append console=ttyS0 quiet mitigations=off nokaslr nosmp tsc=reliable
"""

BOCHSRC = """config_interface: textconfig
display_library: term
megs: 1024
cpu: model=%s, count=1, ips=100000000, reset_on_triple_fault=0
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial.txt
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
"""


def fail(text):
    sys.exit(f"emulate: {text}")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        fail(f"'{' '.join(map(str, command))}' failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def get_kernel(folder):
    """Downloads and unpacks the kernel's package, which is not installed."""
    found = sorted(folder.glob("kernel/boot/vmlinuz-*"))
    if found:
        return found[-1]
    names = re.findall(r"Depends: (linux-image-\d\S+)", run("apt-cache", "depends", KERNEL))
    if not names:
        fail(f"apt-cache knows no '{KERNEL}': this needs Debian's package lists (apt-get update)")
    run("apt-get", "download", names[0], cwd=folder)
    package = next(folder.glob("linux-image-*.deb"))
    run("dpkg-deb", "-x", package, folder / "kernel")
    package.unlink()
    return sorted(folder.glob("kernel/boot/vmlinuz-*"))[-1]


def copy_program(path, root):
    """The program and the libraries that it loads, each at its own path."""
    shutil.copy(path, root / "tests" / path.name)
    run("strip", root / "tests" / path.name)
    for library in re.findall(r"(/\S+) \(0x", run("ldd", path)):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(os.path.realpath(library), target)


def make_disc(folder, build, tests, cpu):
    root, iso = folder / "root", folder / "iso"
    shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(iso, ignore_errors=True)
    for name in ("bin", "dev", "proc", "tmp", "tests", "usr/bin", str(build).lstrip("/")):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin")
    calls = []
    for test in tests:
        name, *arguments = test.split(":")
        path = build / "tests" / name
        if not path.exists():
            fail(f"there is no program '{path}': build it first")
        copy_program(path, root)
        calls.append(f"echo 'BEGIN {test}'; cd {build}; /tests/{name} {' '.join(arguments)}; echo 'END {test} '$?")
    (root / "init").write_text(INIT % "\n".join(calls))
    (root / "init").chmod(0o755)
    iso.mkdir()
    files = run("find", ".", cwd=root)
    with open(iso / "initrd", "wb") as initrd:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=files.encode(), stdout=initrd, cwd=root,
                       check=True)
    shutil.copy(get_kernel(folder), iso / "vmlinuz")
    shutil.copy("/usr/lib/ISOLINUX/isolinux.bin", iso)
    shutil.copy("/usr/lib/syslinux/modules/bios/ldlinux.c32", iso)
    (iso / "isolinux.cfg").write_text(ISOLINUX)
    run("xorriso", "-as", "mkisofs", "-quiet", "-o", folder / "disc.iso", "-b", "isolinux.bin", "-c", "boot.cat",
        "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", iso)
    (folder / "bochsrc").write_text(BOCHSRC % cpu)
    (folder / "continue").write_text("c\n")  # Debian's Bochs starts in its debugger.


def drain_screen(log):
    """Bochs draws on a terminal that it opens, and stops when nobody reads it."""
    for _ in range(600):
        found = re.search(r'connected to screen "(\S+)"', log.read_text(errors="replace"))
        if found:
            with open(found[1], "rb", buffering=0) as screen:
                try:
                    while screen.read(4096):
                        pass
                except OSError:
                    pass  # The emulator has ended.
            return
        time.sleep(0.1)


def follow(serial, process, deadline, report):
    """Reads the serial port until all is done; report(line) for each whole line."""
    n_seen, last = 0, ""
    while True:
        ended = process.poll() is not None
        text = serial.read_text(errors="replace") if serial.exists() else ""
        lines = (text if ended else text[: text.rfind("\n") + 1]).splitlines()
        for line in lines[n_seen:]:
            report(line)
            last = line
        n_seen = max(n_seen, len(lines))
        if last == "DONE" or ended:
            return last == "DONE"
        if time.time() > deadline:
            print("emulate: the time is over", flush=True)
            return False
        time.sleep(0.5)


class Results:
    """What became of each test, from the lines of the serial port."""

    def __init__(self):
        self.rows, self.cpu, self.flags, self.begin = [], "", set(), 0.0

    def take(self, line):
        if line.startswith("CPU "):
            self.cpu = line[4:]
        elif line.startswith("FLAGS "):
            self.flags = set(line.split())
            if not NEEDED_FLAGS <= self.flags:
                print("emulate: the processor lacks " + " ".join(sorted(NEEDED_FLAGS - self.flags)), flush=True)
        elif line.startswith("BEGIN "):
            self.begin = time.time()
            self.rows.append([line[6:], "did not end", 0.0, ""])
        elif line.startswith("END ") and self.rows:
            status = line.split()[-1]
            self.rows[-1][1] = {"0": "passed", "77": "skipped"}.get(status, f"failed ({status})")
            self.rows[-1][2] = time.time() - self.begin
        elif re.search(r"\d+ (calls compared|test\(s\) run)", line) and self.rows:
            self.rows[-1][3] += ("; " if self.rows[-1][3] else "") + re.sub(r"^\[=*\] ", "", line).rstrip(".")
        if not line.startswith("FLAGS "):
            print(line, flush=True)

    def passed(self):
        return bool(self.rows) and NEEDED_FLAGS <= self.flags and all(row[1] == "passed" for row in self.rows)

    def table(self):
        text = f"On an emulated {self.cpu} (AVX-512 {', '.join(sorted(f[6:].upper() for f in self.flags if f.startswith('avx512')))}):\n\n"
        text += "| Test | Result | What it says | Minutes |\n|---|---|---|---|\n"
        for name, result, said, seconds in self.rows:
            text += f"| `{name}` | {result} | {said} | {seconds / 60:.1f} |\n"
        return text


def write_table(doc, table):
    text = doc.read_text()
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    doc.write_text(f"{text[:begin]}\n{table}{text[end:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--cpu", default="corei7_skylake_x", help="one of 'bochs --help cpu'")
    parser.add_argument("--limit", type=float, default=120, help="minutes for all of it")
    parser.add_argument("--write", type=pathlib.Path, help="the document that takes the table")
    options = parser.parse_args()
    build = options.build.resolve()
    folder = build / "emulate"
    folder.mkdir(exist_ok=True)
    make_disc(folder, build, options.tests or DEFAULT_TESTS, options.cpu)
    for name in ("serial.txt", "disc.iso.lock"):
        (folder / name).unlink(missing_ok=True)
    screen_log = folder / "screen.txt"
    results = Results()
    with open(screen_log, "wb") as log:
        process = subprocess.Popen(["bochs-bin", "-q", "-f", "bochsrc", "-rc", "continue"], cwd=folder, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "linux"},
                                   start_new_session=True)
        threading.Thread(target=drain_screen, args=(screen_log,), daemon=True).start()
        try:
            done = follow(folder / "serial.txt", process, time.time() + options.limit * 60, results.take)
        finally:
            process.kill()
            process.wait()
    print("\n" + results.table(), end="")
    if options.write:
        write_table(options.write, results.table())
    sys.exit(0 if done and results.passed() else 1)


main()
