#!/usr/bin/env python3
"""Writes images_golden.h and resize_golden.h: small files with the pixels that PIL reads from them, resized images of
PIL (antialiased, u8) and OpenCV (plain, f32), and what random resized crops are like on average.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install pillow numpy opencv-python-headless
    /tmp/golden/bin/python tests/golden/make_stages.py

The grey of a colour JPEG is its Y, as PIL's draft mode gives it; 16-bit PNGs keep the high byte, as PIL does for RGB and
OpenCV for both. The crops are drawn by draw_crops() below, which is written after torchvision's documented
RandomResizedCrop.get_params; torchvision itself is not run.
"""
import io
import math
import pathlib
import struct
import zlib

import cv2
import numpy as np
import PIL
from PIL import Image

HERE = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 13, 19


def picture(height, width, seed):
    """Smooth colours with some noise: edges, gradients, and nothing that looks alike in two channels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    smooth = [128 + 100 * np.sin(x / 3 + seed), 128 + 100 * np.cos(y / 2), 255 * (x + y) / (height + width)]
    return np.clip(np.stack(smooth, -1) + rng.integers(-25, 26, (height, width, 3)), 0, 255).astype(np.uint8)


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def raw_png(samples, depth, colour, interlaced=False, extra=b""):
    """A PNG made by hand, for what PIL does not write. samples [H,W,C], unfiltered rows."""
    height, width = samples.shape[:2]
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b""
    for top, left, step_y, step_x in passes:
        part = samples[top::step_y, left::step_x]
        for row in part if part.size else ():
            rows += b"\0" + row.astype(">u2" if depth == 16 else np.uint8).tobytes()
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows, 9)) +
            chunk(b"IEND", b""))


def jpegs():
    image = Image.fromarray(picture(HEIGHT, WIDTH, 1))
    return {
        "jpeg_444": save(image, "JPEG", quality=90, subsampling=0),
        "jpeg_420": save(image, "JPEG", quality=90, subsampling=2),
        "jpeg_422": save(image, "JPEG", quality=80, subsampling=1),
        "jpeg_grey": save(image.convert("L"), "JPEG", quality=85),
        "jpeg_progressive": save(image, "JPEG", quality=75, progressive=True, subsampling=2),
        "jpeg_rgb": save(image, "JPEG", quality=90, keep_rgb=True),
    }


def cmyk():
    return save(Image.fromarray(picture(HEIGHT, WIDTH, 1)).convert("CMYK"), "JPEG", quality=60)


def ycck(encoded):
    """The same bytes as Y, Cb, Cr and K: what Adobe's marker says of them."""
    at = encoded.index(b"Adobe")
    return encoded[:at + 11] + b"\x02" + encoded[at + 12:]


def pngs():
    pixels = picture(HEIGHT, WIDTH, 2)
    rng = np.random.default_rng(3)
    image = Image.fromarray(pixels)
    alpha = np.concatenate([pixels, rng.integers(0, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)], -1)
    palette = image.quantize(16)
    grey16 = rng.integers(0, 65536, (HEIGHT, WIDTH, 1))
    gamma = chunk(b"gAMA", struct.pack(">I", 100000))
    return {
        "png_rgb": save(image, "PNG"),
        "png_rgba": save(Image.fromarray(alpha), "PNG"),
        "png_grey": save(image.convert("L"), "PNG"),
        "png_grey_alpha": save(Image.fromarray(alpha).convert("LA"), "PNG"),
        "png_bilevel": save(image.convert("1"), "PNG"),
        "png_grey16": raw_png(grey16, 16, 0),
        "png_rgb16": raw_png(rng.integers(0, 65536, (HEIGHT, WIDTH, 3)), 16, 2),
        "png_palette": save(palette, "PNG"),
        "png_palette_transparent": save(palette, "PNG", transparency=bytes(range(0, 256, 16))),
        "png_interlaced": raw_png(pixels, 8, 2, interlaced=True),
        "png_gamma": raw_png(pixels, 8, 2, extra=gamma),
    }


def decode(encoded):
    """RGB and grey as PIL gives them."""
    image = Image.open(io.BytesIO(encoded))
    if image.mode == "I;16":
        high = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        assert (np.asarray(high) == cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_GRAYSCALE)).all()
        return np.asarray(high.convert("RGB")), np.asarray(high)
    draft = Image.open(io.BytesIO(encoded))
    draft.draft("L", draft.size)
    return np.asarray(image.convert("RGB")), np.asarray(draft.convert("L"))


def numbers(values, form="%d"):
    lines, line = [], "   "
    for value in values:
        text = " " + form % value + ","
        if len(line) + len(text) > 118:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join(lines + [line])


def array(ctype, name, values, form="%d"):
    return f"static const {ctype} {name}[] = {{\n{numbers(values, form)}\n}};\n"


def images_header():
    out = [f"""/* Small image files and the pixels that PIL {PIL.__version__} reads from them. Made by make_stages.py. */
#ifndef TESTS_GOLDEN_IMAGES_GOLDEN_H
#define TESTS_GOLDEN_IMAGES_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
enum {{ GOLDEN_HEIGHT = {HEIGHT}, GOLDEN_WIDTH = {WIDTH} }};

typedef struct golden_image {{
    const char *name;
    const uint8_t *encoded;
    size_t n;
    const uint8_t *rgb;  /* [13,19,3] */
    const uint8_t *grey; /* [13,19] */
}} golden_image;
"""]
    for group, files in (("jpeg", jpegs()), ("png", pngs())):
        table = []
        for name, encoded in files.items():
            rgb, grey = decode(encoded)
            assert rgb.shape == (HEIGHT, WIDTH, 3) and grey.shape == (HEIGHT, WIDTH)
            out.append(array("uint8_t", name, encoded))
            out.append(array("uint8_t", name + "_as_rgb", rgb.ravel()))
            out.append(array("uint8_t", name + "_as_grey", grey.ravel()))
            table.append(f'    {{"{name}", {name}, sizeof({name}), {name}_as_rgb, {name}_as_grey}},')
        out.append(f"static const golden_image golden_{group}[] = {{\n" + "\n".join(table) + "\n};\n")
    out.append(array("uint8_t", "jpeg_cmyk", cmyk()))
    for name, encoded in (("cmyk", cmyk()), ("ycck", ycck(cmyk()))):
        rgb = Image.open(io.BytesIO(encoded)).convert("RGB")
        out.append(array("uint8_t", f"jpeg_{name}_rgb", np.asarray(rgb).reshape(-1)))
        out.append(array("uint8_t", f"jpeg_{name}_grey", np.asarray(rgb.convert("L")).reshape(-1)))
    return "\n".join(out) + "/* clang-format on */\n\n#endif\n"


def draw_crops(height, width, n=200000):
    """Mean and deviation of the share of the area, and mean of the logarithm of the ratio."""
    rng = np.random.default_rng(0)
    areas, logs = [], []
    for _ in range(n):
        for _ in range(10):
            area = height * width * rng.uniform(0.08, 1)
            ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w, h = min(width, round(height * 4 / 3)), min(height, round(width / (3 / 4)))
        areas.append(w * h / (height * width))
        logs.append(math.log(w / h))
    return np.mean(areas), np.std(areas), np.mean(logs)


def resize_header():
    out = [f"""/* Resized images: PIL {PIL.__version__} BILINEAR on u8, OpenCV {cv2.__version__} INTER_LINEAR on f32. Made by make_stages.py. */
#ifndef TESTS_GOLDEN_RESIZE_GOLDEN_H
#define TESTS_GOLDEN_RESIZE_GOLDEN_H

#include <stdint.h>

/* clang-format off */
typedef struct golden_resize {{
    int64_t height, width, channels, to_height, to_width;
    const uint8_t *src;
    const uint8_t *antialiased; /* [to_height,to_width,channels] */
    const float *plain;         /* the same; src / 255 resized */
}} golden_resize;
"""]
    rgb = picture(29, 37, 4)
    table = []
    out.append(array("uint8_t", "resize_rgb", rgb.ravel()))
    out.append(array("uint8_t", "resize_grey", rgb[..., 0].ravel()))
    for name, src in (("rgb", rgb), ("grey", np.ascontiguousarray(rgb[..., 0]))):
        channels = 3 if src.ndim == 3 else 1
        for height, width in ((10, 12), (41, 50), (29, 9), (1, 1)) if channels == 3 else ((12, 45),):
            case = f"resize_{name}_{height}x{width}"
            pil = np.asarray(Image.fromarray(src).resize((width, height), Image.BILINEAR))
            plain = cv2.resize(src.astype(np.float32) / 255, (width, height), interpolation=cv2.INTER_LINEAR)
            out.append(array("uint8_t", case + "_antialiased", pil.ravel()))
            out.append(array("float", case + "_plain", plain.ravel(), "%.5ff"))
            table.append(f"    {{29, 37, {channels}, {height}, {width}, resize_{name}, {case}_antialiased, {case}_plain}},")
    out.append("static const golden_resize golden_resizes[] = {\n" + "\n".join(table) + "\n};\n")
    area, deviation, log_ratio = draw_crops(300, 400)
    out.append(f"""/* Random resized crops of 300 x 400: share of the area, its deviation, logarithm of the ratio. */
static const double golden_crop_area = {area:.4f}, golden_crop_deviation = {deviation:.4f};
static const double golden_crop_log_ratio = {log_ratio:.4f};
""")
    return "\n".join(out) + "/* clang-format on */\n\n#endif\n"


if __name__ == "__main__":
    (HERE / "images_golden.h").write_text(images_header())
    (HERE / "resize_golden.h").write_text(resize_header())
