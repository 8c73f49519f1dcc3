#!/usr/bin/env python3
"""Writes webp_golden.h: small WebP files of each kind with the pixels that PIL reads from them, an animation; and the seeds
of the fuzz target, which are the same files.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install pillow numpy
    /tmp/golden/bin/python tests/golden/make_webp.py
"""
import io
import pathlib

import numpy as np
import PIL
from PIL import Image, features

HERE = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 21, 35  # odd, and more than two rows of macroblocks


def pixels(channels):
    """Slopes with an edge and some noise: what a lossy file makes of it depends on every part of the decoder."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [4 * x + 2 * y, 200 - 3 * x + y, (x * y) % 256, 5 * y + x][:channels]
    image = np.stack([plane % 256 for plane in planes], -1) + rng.integers(0, 24, (HEIGHT, WIDTH, channels))
    image[8:20, 10:30, :3] = [220, 30, 60]
    return np.clip(image, 0, 255).astype(np.uint8)


def encode(channels, **options):
    out = io.BytesIO()
    Image.fromarray(pixels(channels)).save(out, "WEBP", **options)
    return out.getvalue()


def animation():
    out = io.BytesIO()
    frames = [Image.fromarray(np.roll(pixels(3), i, 1)) for i in (0, 5)]
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], duration=40)
    return out.getvalue()


FILES = [("lossy", encode(3, quality=60)), ("lossy_simple", encode(3, quality=10, method=0)),
         ("lossy_alpha", encode(4, quality=60)), ("lossless", encode(3, lossless=True)),
         ("lossless_alpha", encode(4, lossless=True, exact=True)),
         ("metadata", encode(3, quality=50, exif=b"Exif\0\0II*\0\x08\0\0\0\0\0", xmp=b"<x/>"))]


def numbers(values):
    out, line = [], "   "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > 118:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def array(name, values):
    return f"static const uint8_t {name}[] = {{\n{numbers(values)}\n}};\n"


def main():
    out = [f"""/* Small WebP files and the pixels that PIL {PIL.__version__} (libwebp {features.version('webp')}) reads from them. Made by make_webp.py. */
#ifndef TESTS_GOLDEN_WEBP_GOLDEN_H
#define TESTS_GOLDEN_WEBP_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
enum {{ WEBP_HEIGHT = {HEIGHT}, WEBP_WIDTH = {WIDTH} }};

typedef struct golden_webp_file {{
    const char *name;
    const uint8_t *encoded;
    size_t n;
    const uint8_t *rgb;  /* [{HEIGHT},{WIDTH},3] */
    const uint8_t *grey; /* [{HEIGHT},{WIDTH}] */
}} golden_webp_file;
"""]
    table = []
    corpus = HERE.parent / "fuzz" / "corpus" / "webp"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, encoded in FILES:
        rgb = Image.open(io.BytesIO(encoded)).convert("RGB")
        out += [array(f"webp_{name}", encoded), array(f"webp_{name}_rgb", np.asarray(rgb).ravel()),
                array(f"webp_{name}_grey", np.asarray(rgb.convert("L")).ravel())]
        table.append(f'    {{"{name}", webp_{name}, sizeof(webp_{name}), webp_{name}_rgb, webp_{name}_grey}},')
        (corpus / f"{name}.webp").write_bytes(encoded)
    out.append(array("webp_animation", animation()))
    (corpus / "animation.webp").write_bytes(animation())
    (corpus / "cut.webp").write_bytes(FILES[0][1][:200])
    out.append("static const golden_webp_file golden_webp[] = {\n" + "\n".join(table) + "\n};\n")
    out.append("/* clang-format on */\n#endif\n")
    (HERE / "webp_golden.h").write_text("\n".join(out))


main()
