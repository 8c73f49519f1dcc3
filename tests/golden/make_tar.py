#!/usr/bin/env python3
"""Writes tar_golden.h: tar archives as WebDataset's TarWriter and Python's tarfile write them, in every format, with what
WebDataset reads from them.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install webdataset numpy
    /tmp/golden/bin/python tests/golden/make_tar.py
"""
import io
import os
import pathlib
import tarfile
import tempfile
import zlib

import webdataset

HERE = pathlib.Path(__file__).parent
LONG = "d" * 60 + "/" + "e" * 60 + "/" + "f" * 60
FILES = [  # name, data
    ("a/0001.jpg", b"first"), ("a/0001.cls", b"7"), ("a/0001.txt", b"a caption"),
    ("a/0002.cls", b"-3"), ("a/0002.jpg", b"x" * 600),
    ("__key__.meta__", b"left out"), ("no_extension", b"left out"),
    (LONG + ".seg.png", b"mask"), (LONG + ".PNG", b"image"), (LONG + ".cls", b"12"),
    ("last.one/b.jpeg", b""), ("last.one/b.cls", b"0"),
]


def tar(kind):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        folder = tarfile.TarInfo("a")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in FILES:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("a/0003.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "0001.jpg"
        archive.addfile(link)
    return out.getvalue()


def web():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.tar")
        with webdataset.TarWriter(path) as writer:
            for i in range(3):
                writer.write({"__key__": f"s{i}", "jpg": bytes([i]) * 5, "cls": i * i})
        return pathlib.Path(path).read_bytes()


def read(data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.tar")
        pathlib.Path(path).write_bytes(data)
        return [{k: v for k, v in sample.items() if k not in ("__url__", "__local_path__")}
                for sample in webdataset.WebDataset(path, shardshuffle=False)]


def c_array(name, data):
    """Archives are mostly zeros, so they come deflated."""
    packed = zlib.compress(data, 9)
    lines = [f"static const uint8_t {name}[{len(packed)}] = {{"]
    for at in range(0, len(packed), 20):
        lines.append("    " + ", ".join(f"{b}" for b in packed[at:at + 20]) + ",")
    return f"enum {{ {name}_bytes = {len(data)} }};\n" + "\n".join(lines) + "\n};\n"


text = f"""/* Written by make_tar.py with WebDataset {webdataset.__version__} and Python's tarfile. Deflated (zlib). */
/* clang-format off */
#ifndef TESTS_GOLDEN_TAR_GOLDEN_H
#define TESTS_GOLDEN_TAR_GOLDEN_H

#include <stdint.h>

"""
archives = {"gnu": tar(tarfile.GNU_FORMAT), "pax": tar(tarfile.PAX_FORMAT), "web": web()}
FILES = [(name.replace(LONG, LONG[:121].rstrip("f/")), data) for name, data in FILES]
archives["ustar"] = tar(tarfile.USTAR_FORMAT)
for name, data in archives.items():
    text += c_array(f"golden_{name}", data)
text += """
/* What WebDataset reads: the sample's key, and the file of each extension, NULL where there is none. */
typedef struct golden_sample {
    const char *key, *jpg, *jpeg, *png, *cls;
} golden_sample;
"""
for name, data in archives.items():
    text += f"static const golden_sample golden_{name}_samples[] = {{\n"
    for sample in read(data):
        if "jpg" not in sample and "jpeg" not in sample and "png" not in sample:
            continue
        values = ", ".join(f'"{sample[k].decode()}"' if k in sample and b"\0" not in sample[k][:1] else
                           ('""' if k in sample else "NULL") for k in ("jpg", "jpeg", "png", "cls"))
        text += f'    {{"{sample["__key__"]}", {values}}},\n'.replace("\x01", "\\1").replace("\x02", "\\2")
    text += "};\n"
(HERE / "tar_golden.h").write_text(text + "\n#endif\n")
