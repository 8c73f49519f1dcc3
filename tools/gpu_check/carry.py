"""The programs that are checked: this checkout's build, or what was built elsewhere and carried here in one archive, since a machine
with a GPU may have neither a network nor the packages that a build needs.

The archive holds our two programs, the libraries that they load (not libc's), and the data of the figures.
"""
import collections
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import recipes
from session import PLACE, ROOT

ARCHIVE, CARRIED = PLACE / "carried.tar.xz", PLACE / "carried"
PROGRAMS = {"stoker": "stoker", "test_op_values": "tests/test_op_values"}  # in the build's folder
# libc's own, which must be the machine's; and OpenCL's loader where it has one.
NOT_CARRIED = ("libc.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so", "libresolv.so", "linux-vdso")
N_PHOTOS = 64

Programs = collections.namedtuple("Programs", "folder data environment")


def say(text):
    print(f"gpu-check: {text}", file=sys.stderr, flush=True)


# --- making it ---

def libraries(program):
    text = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and not name.startswith(NOT_CARRIED):
            if not rest.startswith("/"):
                sys.exit(f"gpu-check: {program} needs '{name}', which is not here")
            found[name] = Path(rest.split(" ")[0]).resolve()
    return found


def add_programs(archive, scratch, build):
    needed = {}
    for name, path in PROGRAMS.items():
        stripped = Path(scratch) / name
        shutil.copyfile(build / path, stripped)
        subprocess.run(["strip", str(stripped)], check=False)
        os.chmod(stripped, 0o755)
        archive.add(stripped, f"bin/{name}")
        needed.update(libraries(build / path))
    for name, path in sorted(needed.items()):
        archive.add(path, f"lib/{name}")


def add_data(archive, scratch):
    photos = recipes.DATA / "photos"
    if photos.is_dir():
        for path in sorted(photos.iterdir())[:N_PHOTOS]:
            archive.add(path, f"data/photos/{path.name}")
    else:
        say(f"without photographs: no '{photos}'")
    folder, why = recipes.find_cifar10()
    if why:
        return say(f"without CIFAR-10: {why}")
    with tarfile.open(Path(scratch) / "cifar10.tar", "w") as cifar10:
        cifar10.add(folder / "cifar10", "cifar10")
    archive.add(Path(scratch) / "cifar10.tar", "data/cifar10.tar")
    return None


def make(build):
    PLACE.mkdir(exist_ok=True)
    partial = ARCHIVE.with_suffix(".tmp")
    with tempfile.TemporaryDirectory(dir=PLACE) as scratch:
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], stdout=subprocess.PIPE, text=True).stdout
        (Path(scratch) / "commit").write_text(commit or "unknown\n")
        with tarfile.open(partial, "w:xz", preset=3) as archive:
            archive.add(Path(scratch) / "commit", "commit")
            add_programs(archive, scratch, build)
            add_data(archive, scratch)
    partial.rename(ARCHIVE)
    say(f"{ARCHIVE} has {ARCHIVE.stat().st_size / 2**20:.0f} MiB; on the other machine: ./dev gpu-check")


# --- finding it ---

def why_not(folder, environment):
    """None where the programs start."""
    for name in PROGRAMS:
        if not (folder / name).exists():
            return f"no '{folder / name}'"
    done = subprocess.run([str(folder / "stoker"), "--version"], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout.strip().splitlines()[-1]


def unpack():
    if not (CARRIED / "commit").exists() or CARRIED.stat().st_mtime < ARCHIVE.stat().st_mtime:
        shutil.rmtree(CARRIED, ignore_errors=True)
        CARRIED.mkdir(parents=True)
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(CARRIED)


def find(build):
    """A build, else what was carried; else this ends, and says what is missing."""
    links = PLACE / "bin"
    links.mkdir(parents=True, exist_ok=True)
    for name, path in PROGRAMS.items():
        (links / name).unlink(missing_ok=True)
        if (build / path).exists():
            (links / name).symlink_to(build / path)
    why = why_not(links, {})
    if not why:
        return Programs(links, recipes.LOCAL, {})
    if not ARCHIVE.exists():
        sys.exit(f"gpu-check: {why}; and no '{ARCHIVE}', which ./dev gpu-check --carry makes where Stoker can be built")
    unpack()
    environment = {"LD_LIBRARY_PATH": f"{CARRIED / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}
    told = why_not(CARRIED / "bin", environment)
    if told:
        sys.exit(f"gpu-check: neither the build ({why}) nor what was carried starts: {told}")
    return Programs(CARRIED / "bin", CARRIED / "data", environment)
