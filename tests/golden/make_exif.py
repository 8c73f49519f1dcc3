#!/usr/bin/env python3
"""Writes exif_golden.h: one small JPEG with each EXIF orientation, in both byte orders, and the upright pixels that PIL's
exif_transpose gives.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install pillow numpy
    /tmp/golden/bin/python tests/golden/make_exif.py
"""
import io
import pathlib
import struct

import numpy as np
import PIL
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent


def jpeg():
    rng = np.random.default_rng(5)
    pixels = np.repeat(np.repeat(rng.integers(0, 256, (3, 2, 3), dtype=np.uint8), 4, 0)[:11], 5, 1)[:, :7]
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, "JPEG", quality=70, subsampling=0, optimize=True)
    return out.getvalue()


def with_orientation(encoded, value):
    """An Exif block after the start, little-endian for odd values; another entry comes first."""
    order = "<" if value % 2 else ">"
    entries = struct.pack(order + "HHII", 0x010E, 2, 1, 0) + struct.pack(order + "HHIHH", 0x0112, 3, 1, value, 0)
    tiff = (b"II*\0" if value % 2 else b"MM\0*") + struct.pack(order + "IH", 8, 2) + entries + struct.pack(order + "I", 0)
    block = b"Exif\0\0" + tiff
    return encoded[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + encoded[2:]


def numbers(values):
    out, line = [], "   "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > 118:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def main():
    out = [f"""/* JPEGs with EXIF orientations, and how PIL {PIL.__version__} turns them. Made by make_exif.py. */
#ifndef TESTS_GOLDEN_EXIF_GOLDEN_H
#define TESTS_GOLDEN_EXIF_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
typedef struct golden_exif {{
    const uint8_t *encoded;
    size_t n;
    int height, width;     /* upright */
    const uint8_t *pixels; /* [height,width,3] */
}} golden_exif;
"""]
    table = []
    for value in range(1, 9):
        encoded = with_orientation(jpeg(), value)
        image = Image.open(io.BytesIO(encoded))
        assert image.getexif()[0x0112] == value
        upright = np.asarray(ImageOps.exif_transpose(image))
        out.append(f"static const uint8_t exif_{value}[] = {{\n{numbers(encoded)}\n}};\n")
        out.append(f"static const uint8_t exif_{value}_upright[] = {{\n{numbers(upright.ravel())}\n}};\n")
        table.append(f"    {{exif_{value}, sizeof(exif_{value}), {upright.shape[0]}, {upright.shape[1]}, exif_{value}_upright}},")
    out.append("/* golden_exifs[i] has orientation i + 1. */\nstatic const golden_exif golden_exifs[] = {\n" + "\n".join(table) +
               "\n};\n/* clang-format on */\n\n#endif\n")
    (HERE / "exif_golden.h").write_text("\n".join(out))


if __name__ == "__main__":
    main()
