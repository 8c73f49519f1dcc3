#!/usr/bin/env python3
"""Writes masks_golden.h: PNG files of class numbers as Pillow writes them, with palettes and grey of several depths.

    python3 tests/golden/make_masks.py    (with Pillow)
"""
import io
import pathlib

import PIL
from PIL import Image

H, W = 5, 7
HERE = pathlib.Path(__file__).parent


def encode(mode, n_classes, **options):
    image = Image.new(mode, (W, H))
    image.putdata([(i * 5 + i // W) % n_classes for i in range(H * W)])
    if mode == "P":
        image.putpalette([c for i in range(n_classes) for c in (255 - i, i * 7 % 256, 3)])
    data = io.BytesIO()
    image.save(data, "PNG", **options)
    return data.getvalue()


FILES = (("palette of 2 bits", encode("P", 4), 4), ("palette of 4 bits", encode("P", 11), 11),
         ("palette of 8 bits", encode("P", 200), 200), ("palette with transparency", encode("P", 30, transparency=2), 30),
         ("grey of 8 bits", encode("L", 21), 21))
BAD = (("RGB", Image.new("RGB", (W, H))), ("16 bits", Image.new("I;16", (W, H))))

with open(HERE / "masks_golden.h", "w") as f:
    f.write(f"/* Masks by Pillow {PIL.__version__}: number i is (i * 5 + i / W) % n_classes. Made by make_masks.py. */\n"
            "#ifndef TESTS_GOLDEN_MASKS_GOLDEN_H\n#define TESTS_GOLDEN_MASKS_GOLDEN_H\n\n#include <stdint.h>\n\n"
            f"/* clang-format off */\nenum {{ MASK_HEIGHT = {H}, MASK_WIDTH = {W} }};\n"
            "typedef struct golden_mask {\n    const char *what;\n    int n_classes; /* 0: to be refused */\n"
            "    int n;\n    uint8_t data[1024];\n} golden_mask;\nstatic const golden_mask golden_masks[] = {\n")
    for what, data, n in FILES:
        f.write(f'    {{"{what}", {n}, {len(data)}, {{{", ".join(map(str, data))}}}}},\n')
    for what, image in BAD:
        data = io.BytesIO()
        image.save(data, "PNG")
        data = data.getvalue()
        f.write(f'    {{"{what}", 0, {len(data)}, {{{", ".join(map(str, data))}}}}},\n')
    f.write("};\n/* clang-format on */\n\n#endif\n")
