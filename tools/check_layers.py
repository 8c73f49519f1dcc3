#!/usr/bin/env python3
"""Checks every #include "folder/..." in src and cli against tools/layers.txt."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def read_layers(path):
    """folder -> the set of folders that it may include; complains about unknown names."""
    layers = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, arrow, allowed = line.partition("<-")
        if not arrow:
            sys.exit(f"{path.relative_to(ROOT)}:{number}: expected 'folder <- folders'")
        layers[name.strip()] = set(allowed.split())
    for name, allowed in layers.items():
        for other in allowed - layers.keys():
            sys.exit(f"{path.relative_to(ROOT)}: '{name}' names '{other}', which has no line")
    return layers


def check_file(path, own, layers):
    """The complaints about one file of the folder `own`."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        where = f"{path.relative_to(ROOT)}:{number}"
        folder, slash, _ = target.partition("/")
        if not slash:
            # A bare name is a file of the program's own folder; the library always writes the folder.
            if own != "cli" or not any((p / target).exists() for p in (path.parent, ROOT / "cli")):
                yield f"{where}: \"{target}\" lacks its folder"
        elif folder == ".." or folder == ".":
            yield f"{where}: \"{target}\" is relative; write it from src"
        elif folder == "stoker":
            if not (ROOT / "include" / target).exists():
                yield f"{where}: there is no include/{target}"
        elif folder == own or folder in layers[own]:
            base = ROOT if folder == "cli" else ROOT / "src"
            if not (base / target).exists():
                yield f"{where}: there is no {(base / target).relative_to(ROOT)}"
        elif folder not in layers:
            yield f"{where}: '{folder}' is not in tools/layers.txt"
        else:
            yield f"{where}: '{own}' may not include '{folder}'"


def check_public(path):
    """Public headers include each other and the system, nothing from src."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and not match.group(1).startswith("stoker/"):
            yield f"{path.relative_to(ROOT)}:{number}: public headers may include 'stoker/' only"


def main():
    layers = read_layers(ROOT / "tools" / "layers.txt")
    complaints = []
    for base in (ROOT / "src", ROOT / "cli"):
        for path in sorted([*base.rglob("*.c"), *base.rglob("*.h")]):
            own = "cli" if base.name == "cli" else path.relative_to(base).parts[0]
            if own not in layers:
                complaints.append(f"{path.relative_to(ROOT)}: '{own}' is not in tools/layers.txt")
                continue
            complaints += check_file(path, own, layers)
    for path in sorted((ROOT / "include").rglob("*.h")):
        complaints += check_public(path)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
