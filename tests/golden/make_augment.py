#!/usr/bin/env python3
"""Writes augment_golden.h: what torchvision's v2 functions on u8 tensors make of one small image, for each augmentation
whose numbers are given.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install torch torchvision numpy
    /tmp/golden/bin/python tests/golden/make_augment.py
"""
import pathlib

import numpy as np
import torch
import torchvision
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

HERE = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 18, 23
COLORS = ("brightness", "contrast", "saturation", "hue", "grayscale")
FILTERS = {"bilinear": 0, "nearest": 2}


def picture():
    """Smooth colours with some noise, and corners of black, white, grey and one pure colour."""
    rng = np.random.default_rng(11)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = [128 + 110 * np.sin(x / 3), 120 + 100 * np.cos(y / 2 + 1), 255 * (x + y) / (HEIGHT + WIDTH)]
    image = np.clip(np.stack(smooth, -1) + rng.integers(-30, 31, (HEIGHT, WIDTH, 3)), 0, 255).astype(np.uint8)
    image[:3, :3], image[:3, -3:], image[-3:, :3], image[-3:, -3:] = 0, 255, 77, (200, 0, 0)
    return image


def adjust(image, kind, amount):
    if kind == "grayscale":
        return F.rgb_to_grayscale(image, num_output_channels=image.shape[0])
    return getattr(F, "adjust_" + kind)(image, amount)


def color_cases(image):
    for kind, amounts in (("brightness", (0.4, 1.7)), ("contrast", (0, 0.5, 1.9)), ("saturation", (0, 0.3, 2.5)),
                          ("hue", (-0.5, -0.13, 0.02, 0.31)), ("grayscale", (0,))):
        for amount in amounts:
            yield f"{kind} {amount}", "COLOR", [COLORS.index(kind), amount], adjust(image, kind, amount)
    for chain in ((1, 0.7, 3, 0.1, 0, 1.3), (2, 1.6, 1, 1.4, 0, 0.8), (0, 1.2, 3, -0.2, 2, 0.5), (1, 0.5, 1, 1.5, 1, 1.1)):
        done = image
        for kind, amount in zip(chain[::2], chain[1::2]):
            done = adjust(done, COLORS[kind], amount)
        yield "chain " + str(chain), "COLOR", list(chain), done


def randaugment_cases(image):
    augment = v2.RandAugment()
    for number, (name, (table, signed)) in enumerate(augment._AUGMENTATION_SPACE.items()):
        amounts = table(31, HEIGHT, WIDTH)
        for magnitude, sign in ((9, 1), (30, -1), (17, 1)) if amounts is not None else ((9, 1),):
            sign = sign if signed else 1
            amount = float(amounts[magnitude]) * sign if amounts is not None else 0
            done = augment._apply_image_or_video_transform(image, name, amount, augment.interpolation, augment._fill)
            yield f"{name} {magnitude} {sign}", "AUGMENT", [number, magnitude, sign], done


def warp_cases(image):
    for name, code in FILTERS.items():
        for angle in (-33.3, 10, 123):
            yield f"rotate {angle} {name}", "ROTATE", [angle, code], F.rotate(image, angle, interpolation=name)
        for angle, tx, ty, scale, sx, sy in ((12, 3, -2, 1.3, 0, 0), (-70, 0, 4, 0.6, 15, -7), (5, 0, 0, 1, -30, 20)):
            done = F.affine(image, angle=angle, translate=[tx, ty], scale=scale, shear=[sx, sy], interpolation=name)
            yield f"affine {angle} {name}", "AFFINE", [angle, tx, ty, scale, sx, sy, code], done


def blur_cases(image):
    for kernel, sigma in ((3, 0.1), (5, 1.1), (9, 2.0), (23, 4.5), (1, 1)):
        yield f"blur {kernel} {sigma}", "BLUR", [kernel, sigma], F.gaussian_blur(image, [kernel, kernel], [sigma, sigma])


def numbers(pixels):
    out, line = [], "   "
    for value in pixels.permute(1, 2, 0).reshape(-1).tolist():
        text = f" {value},"
        if len(line) + len(text) > 118:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def main():
    rgb = torch.from_numpy(picture()).permute(2, 0, 1).contiguous()
    grey = rgb[1:2].contiguous()
    out = [f"""/* One image, augmented by torchvision {torchvision.__version__}. Made by make_augment.py. */
#ifndef TESTS_GOLDEN_AUGMENT_GOLDEN_H
#define TESTS_GOLDEN_AUGMENT_GOLDEN_H

#include <stdint.h>

/* clang-format off */
enum {{ AUGMENT_HEIGHT = {HEIGHT}, AUGMENT_WIDTH = {WIDTH} }};

/* The numbers: COLOR: up to three of (stk_color_kind, amount); AUGMENT: stk_augment_kind, magnitude, sign; ROTATE: degrees,
 * stk_filter; AFFINE: degrees, move x, y, scale, shear x, y, stk_filter; BLUR: kernel, sigma. */
typedef enum golden_augment_kind {{ COLOR, AUGMENT, ROTATE, AFFINE, BLUR, N_GOLDEN_KINDS }} golden_augment_kind;
typedef struct golden_augment {{
    const char *name;
    golden_augment_kind kind;
    int channels, n_numbers;
    double number[7];
    const uint8_t *pixels;
}} golden_augment;
"""]
    table = []
    for name, image in (("rgb", rgb), ("grey", grey)):
        out.append(f"static const uint8_t augment_{name}[] = {{\n{numbers(image)}\n}};\n")
        for make in (color_cases, randaugment_cases, warp_cases, blur_cases):
            if name == "grey" and make is randaugment_cases:
                cases = [case for case in make(image) if case[2][1] == 9]
            else:
                cases = list(make(image))
            for i, (text, kind, values, done) in enumerate(cases):
                if name == "grey" and make is not randaugment_cases and i % 3:
                    continue
                assert done.shape == image.shape and done.dtype == torch.uint8
                out.append(f"static const uint8_t augment_{len(table)}[] = {{\n{numbers(done)}\n}};\n")
                table.append(f'    {{"{text} {name}", {kind}, {image.shape[0]}, {len(values)}, '
                             f'{{{", ".join(str(v) for v in values)}}}, augment_{len(table)}}},')
    out.append("static const golden_augment golden_augments[] = {\n" + "\n".join(table) + "\n};\n/* clang-format on */\n\n#endif\n")
    (HERE / "augment_golden.h").write_text("\n".join(out))


if __name__ == "__main__":
    main()
