#!/usr/bin/env python3
"""Writes filters_golden.h (PIL and OpenCV, u8) and filters_tf_golden.h (tf.image.resize, f32): resize_rgb of
resize_golden.h, [29,37,3], resized by all their filters; hard: with 255 for what is above 127, and 0 for the rest, so that
cubics overshoot. Run once with each; which one is there decides what is written.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install pillow numpy opencv-python-headless
    /tmp/golden/bin/python tests/golden/make_filters.py
    python3 -m venv /tmp/golden-tf && /tmp/golden-tf/bin/pip install tensorflow
    /tmp/golden-tf/bin/python tests/golden/make_filters.py
"""
import pathlib
import re

import numpy as np

HERE = pathlib.Path(__file__).parent
SIZES = ((10, 12), (31, 12), (12, 50), (29, 37))


def source():
    text = (HERE / "resize_golden.h").read_text()
    numbers = re.search(r"resize_rgb\[\] = \{([^}]*)\}", text).group(1)
    return np.array([int(n) for n in numbers.split(",") if n.strip()], np.uint8).reshape(29, 37, 3)


def lines(values, form):
    out, line = [], "   "
    for value in values.ravel():
        text = " " + form % value + ","
        if len(line) + len(text) > 118:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def header(name, title, ctype, form, cases):
    guard = f"TESTS_GOLDEN_{name.upper()}_H"
    out = [f"/* {title} Made by make_filters.py. */\n#ifndef {guard}\n#define {guard}\n"]
    out.append('#include "stoker/data/dataset.h"\n\n/* clang-format off */')
    out.append(f"typedef struct {name}_case {{\n    stk_filter filter;\n    stk_resize_like like;\n    bool antialias, hard;\n"
               f"    int64_t height, width;\n    const {ctype} *pixels; /* [height,width,3] */\n}} {name}_case;\n")
    table = []
    for i, (words, pixels) in enumerate(cases):
        out.append(f"static const {ctype} {name}_{i}[] = {{\n{lines(pixels, form)}\n}};\n")
        table.append(f"    {{{words}, {pixels.shape[0]}, {pixels.shape[1]}, {name}_{i}}},")
    out.append(f"static const {name}_case {name}[] = {{\n" + "\n".join(table) + "\n};\n/* clang-format on */\n\n#endif\n")
    (HERE / f"{name}.h").write_text("\n".join(out))


def write_u8(cv2, Image, version):
    soft, cases = source(), []
    for hard, height, width in [(False, *size) for size in SIZES] + [(True, 10, 12), (True, 33, 41)]:
        src = np.where(soft > 127, 255, 0).astype(np.uint8) if hard else soft
        tail = str(hard).lower()
        for filter, pil, cv in (("BILINEAR", Image.BILINEAR, cv2.INTER_LINEAR), ("BICUBIC", Image.BICUBIC, cv2.INTER_CUBIC),
                                ("NEAREST", Image.NEAREST, cv2.INTER_NEAREST)):
            cases.append((f"STK_FILTER_{filter}, STK_LIKE_PIL, true, {tail}",
                          np.asarray(Image.fromarray(src).resize((width, height), pil))))
            cases.append((f"STK_FILTER_{filter}, STK_LIKE_OPENCV, false, {tail}",
                          cv2.resize(src, (width, height), interpolation=cv)))
    header("filters_golden", f"u8 images resized by PIL {version} and OpenCV {cv2.__version__}.", "uint8_t", "%d", cases)


def write_tf(tf):
    src, cases = source(), []
    for height, width in SIZES[:3]:
        for filter in ("bilinear", "bicubic", "nearest"):
            for antialias in (False, True) if filter != "nearest" else (False,):
                pixels = tf.image.resize(src, (height, width), method=filter, antialias=antialias).numpy()
                cases.append((f"STK_FILTER_{filter.upper()}, STK_LIKE_TF, {str(antialias).lower()}, false",
                              pixels.astype(np.float32)))
    header("filters_tf_golden", f"u8 images resized by tf.image.resize of TensorFlow {tf.__version__}.", "float", "%.3ff",
           cases)


if __name__ == "__main__":
    try:
        import cv2
        import PIL.Image
        write_u8(cv2, PIL.Image, PIL.__version__)
    except ImportError:
        import tensorflow
        write_tf(tensorflow)
