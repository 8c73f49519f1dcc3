#!/usr/bin/env python3
"""Checks every #include "folder/..." in src and cli against tools/layers.txt, which must not go round in circles.

usage: check_layers.py [ROOT]   another tree than this one, as tests/tools/test_check_layers.py makes them
"""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
KERNELS = ROOT / "src/device/gpu/kernels"
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def read_layers(path):
    """folder -> the set of folders that it may include; complains about unknown names and circles."""
    layers = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, arrow, allowed = line.partition("<-")
        if not arrow:
            sys.exit(f"{path.relative_to(ROOT)}:{number}: expected 'folder <- folders'")
        layers[name.strip()] = allowed.split()
    for name, allowed in layers.items():
        for other in [name.partition("/")[0], *allowed]:
            if other not in layers:
                sys.exit(f"{path.relative_to(ROOT)}: '{name}' names '{other}', which has no line")
        circle = find_circle(name, layers)
        if circle:
            sys.exit(f"{path.relative_to(ROOT)}: a circle: {' <- '.join(circle)}")
    return layers


def find_circle(name, layers):
    """A way from a folder back to itself, or None."""
    seen, ways = set(), [[name]]
    while ways:
        way = ways.pop()
        for other in layers.get(way[-1], []):
            if other == name:
                return [*way, name]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def room_of(parts, layers):
    """The folder of tools/layers.txt that holds a file: a/b or a for a/b/c/file.c. None: it has no line."""
    names = ["/".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]
    return next((name for name in names if name in layers), None)


def may_include(own, other, layers):
    """Whether files of the room `own` may include headers of the room `other`."""
    layer = own.partition("/")[0]
    return other == own or other in layers[own] or other.partition("/")[0] in set(layers[layer]) - {layer}


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
            # A bare name is a file of the program's own folder, or a text that device/gpu/unit.c puts in its place; the
            # library always writes the folder.
            if path.parent == KERNELS and (KERNELS / target).exists():
                continue
            if own != "cli" or not any((p / target).exists() for p in (path.parent, ROOT / "cli")):
                yield f"{where}: \"{target}\" lacks its folder"
        elif folder == ".." or folder == ".":
            yield f"{where}: \"{target}\" is relative; write it from src"
        elif folder == "stoker":
            if not (ROOT / "include" / target).exists():
                yield f"{where}: there is no include/{target}"
        elif folder not in layers:
            yield f"{where}: '{folder}' is not in tools/layers.txt"
        elif not may_include(own, room_of(target.split("/"), layers), layers):
            yield f"{where}: '{own}' may not include '{room_of(target.split('/'), layers)}'"
        else:
            base = ROOT if folder == "cli" else ROOT / "src"
            if not (base / target).exists():
                yield f"{where}: there is no {(base / target).relative_to(ROOT)}"


def check_public(path):
    """Public headers include each other and the system, nothing from src."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and not match.group(1).startswith("stoker/"):
            yield f"{path.relative_to(ROOT)}:{number}: public headers may include 'stoker/' only"


def main():
    layers = read_layers(ROOT / "tools" / "layers.txt")
    with_rooms = {name.partition("/")[0] for name in layers if "/" in name}
    complaints = []
    for base in (ROOT / "src", ROOT / "cli"):
        for path in sorted([*base.rglob("*.c"), *base.rglob("*.h")]):
            parts = path.relative_to(base.parent if base.name == "cli" else base).parts
            own = room_of(parts, layers)
            if own is None or (own == parts[0] and len(parts) > 2 and parts[0] in with_rooms):
                complaints.append(f"{path.relative_to(ROOT)}: '{'/'.join(parts[:2])}' is not in tools/layers.txt")
                continue
            complaints += check_file(path, own, layers)
    for path in sorted((ROOT / "include").rglob("*.h")):
        complaints += check_public(path)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
