#!/usr/bin/env python3
"""Stoker's stages beside torchvision's v2 functions on u8 tensors: values, not speed, for images and parameters drawn at random.

usage: pixels_torchvision.py draw N SEED OUT.json

Stoker's package must be importable (PYTHONPATH=build/python), and libstoker.so lie beside it or at STOKER_LIBRARY: a stage draws its
parameters by a key, and the same draws are asked of the library here, so that torchvision's function gets the same numbers. For each
stage N images: sides of 8 to 120, noise, black and white noise, or smooth; 3 channels, for what knows no colours 1 or 3.
"""
import ctypes
import json
import math
import os
import random
import sys

import numpy as np
import stoker
import torch
import torchvision
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

from pixels import draw_image

MODES = {"nearest": v2.InterpolationMode.NEAREST, "nearest-exact": v2.InterpolationMode.NEAREST_EXACT, "bilinear": v2.InterpolationMode.BILINEAR, "bicubic": v2.InterpolationMode.BICUBIC}
JITTER = ("brightness", "contrast", "saturation", "hue")


class Stream(ctypes.Structure):
    """stk_rng of stoker/rng.h."""
    _fields_ = [("key", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("i_block", ctypes.c_uint64), ("block", ctypes.c_uint32 * 4),
                ("n_left", ctypes.c_int)]


def open_library():
    place = os.path.join(os.path.dirname(stoker.__file__), "..", "..", "libstoker.so")
    library = ctypes.CDLL(os.environ.get("STOKER_LIBRARY", place))
    library.stk_rng_make.restype, library.stk_rng_make.argtypes = Stream, [ctypes.c_uint64] * 4
    library.stk_rng_uniform.restype = ctypes.c_float
    library.stk_rng_u32.restype = library.stk_rng_below.restype = ctypes.c_uint32
    return library


LIBRARY = open_library()


class Draws:
    """What the first stage of a chain draws for the first record of epoch 0."""

    def __init__(self, seed):
        self.stream = LIBRARY.stk_rng_make(seed, 0, 0, 0)

    def uniform(self):
        return float(LIBRARY.stk_rng_uniform(ctypes.byref(self.stream)))

    def below(self, n):
        return int(LIBRARY.stk_rng_below(ctypes.byref(self.stream), n))

    def bit(self):
        return int(LIBRARY.stk_rng_u32(ctypes.byref(self.stream))) >> 31

    def between(self, low, high):
        """As stages do that draw in f32."""
        low, high = np.float32(low), np.float32(high)
        return float(low + (high - low) * np.float32(self.uniform()))

    def between_f64(self, low, high):
        return low + (high - low) * self.uniform()


def of_stoker(image, stage, seed):
    ds = stoker.Dataset.arrays(x=stoker.Array(np.ascontiguousarray(image[None])))
    batch = next(iter(stoker.Loader(ds.map(stage, "x").batch(1), threads=1, seed=seed)))
    return np.array(batch["x"])[0]


# --- each takes Python's random numbers, torch's image and the draws, and gives the stage and torchvision's result ---

def center_crop(rng, x, _):
    height, width = rng.randint(1, x.shape[1]), rng.randint(1, x.shape[2])
    return stoker.stages.center_crop(height=height, width=width), F.center_crop(x, [height, width])


def random_crop(border):
    def make(rng, x, draws):
        pad, size = rng.randint(0, 6), rng.randint(1, min(x.shape[1:]))
        top, left = draws.below(x.shape[1] + 2 * pad - size + 1), draws.below(x.shape[2] + 2 * pad - size + 1)
        mode = "constant" if border == "zero" else "reflect"
        return (stoker.stages.random_crop(size=size, pad=pad, border=border),
                F.crop(F.pad(x, [pad] * 4, padding_mode=mode), top, left, size, size))
    return make


def flip(axis):
    def make(_, x, draws):
        turned = F.horizontal_flip(x) if axis == "horizontal" else F.vertical_flip(x)
        return stoker.stages.random_flip(axis=axis), x if draws.bit() else turned
    return make


def pad(rng, x, _):
    top, left, bottom, right, value = (rng.randint(0, 9) for _ in range(5))
    return (stoker.stages.pad(top=top, left=left, bottom=bottom, right=right, value=value),
            F.pad(x, [left, top, right, bottom], fill=value))


def resize(name, like, antialias, mode=None):
    def make(rng, x, _):
        height, width = rng.randint(1, 200), rng.randint(1, 200)
        keys = {} if name == "nearest" or like == "opencv" else {"antialias": antialias}
        return (stoker.stages.resize(height=height, width=width, filter=name, like=like, **keys),
                F.resize(x, [height, width], MODES[mode or name], antialias=antialias))
    return make


def bicubic_of_f32(rng, x, _):
    """torchvision's bicubic of u8 rounds between its two passes, its bicubic of f32 does not."""
    height, width = rng.randint(1, 200), rng.randint(1, 200)
    theirs = F.resize(x.float(), [height, width], MODES["bicubic"], antialias=False)
    return (stoker.stages.resize(height=height, width=width, filter="bicubic", like="opencv"),
            theirs.round().clamp(0, 255).to(torch.uint8))


def random_resized_crop(rng, x, draws):
    size, (height, width) = rng.randint(4, 120), x.shape[1:]
    for _ in range(10):
        part = height * width * (0.08 + 0.92 * draws.uniform())
        ratio = math.exp(math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * draws.uniform())
        w, h = round(math.sqrt(part * ratio)), round(math.sqrt(part / ratio))
        if w < 1 or h < 1 or w > width or h > height:
            continue
        top, left = draws.below(height - h + 1), draws.below(width - w + 1)
        return stoker.stages.random_resized_crop(size=size), F.resized_crop(x, top, left, h, w, [size, size], antialias=True)
    return None


def cast(_, x, __):
    return stoker.stages.cast(dtype="f32"), F.to_dtype(x, torch.float32)


def scale(_, x, __):
    return stoker.stages.scale(factor=1 / 255), F.to_dtype(x, torch.float32, scale=True)


def normalize(rng, x, _):
    mean, std = ([round(rng.uniform(low, 1), 3) for _ in range(x.shape[0])] for low in (0, 0.1))
    return stoker.stages.normalize(mean=mean, std=std), F.normalize(F.to_dtype(x, torch.float32, scale=True), mean, std)


def clip(rng, x, _):
    low, high = sorted(rng.sample(range(256), 2))
    return stoker.stages.clip(low=low, high=high), x.clamp(low, high)


def jitter(kinds):
    def make(rng, x, draws):
        strength = {kind: round(rng.uniform(0.05, 0.5 if kind == "hue" else 1.5), 2) if kind in kinds else 0 for kind in JITTER}
        ops = []
        for kind in JITTER:
            s, share = np.float32(strength[kind]), np.float32(draws.uniform())
            if s == 0:
                continue
            low = -s if kind == "hue" else max(np.float32(1) - s, np.float32(0))
            high = s if kind == "hue" else np.float32(1) + s
            ops.append((kind, float(low + (high - low) * share)))
        for i in range(len(ops) - 1, 0, -1):
            k = draws.below(i + 1)
            ops[i], ops[k] = ops[k], ops[i]
        for kind, amount in ops:
            x = getattr(F, "adjust_" + kind)(x, amount)
        return stoker.stages.color_jitter(**strength), x
    return make


def grayscale(_, x, __):
    return stoker.stages.random_grayscale(p=1), F.rgb_to_grayscale(x, 3)


def blur(rng, x, draws):
    kernel = 2 * rng.randint(0, min(11, (min(x.shape[1:]) - 1) // 2)) + 1
    sigma = draws.between(0.25, 4)
    return stoker.stages.gaussian_blur(kernel=kernel, sigma=[0.25, 4]), F.gaussian_blur(x, [kernel] * 2, [sigma] * 2)


def erasing(rng, x, draws):
    value, (height, width) = rng.randint(0, 255), x.shape[1:]
    draws.uniform()
    low, high = np.float32(0.02), np.float32(0.33)
    for _ in range(10):
        share = float(low) + float(high - low) * draws.uniform()
        least, most = (math.log(float(np.float32(ratio))) for ratio in (0.3, 3.3))
        ratio = math.exp(least + (most - least) * draws.uniform())
        h, w = round(math.sqrt(height * width * share * ratio)), round(math.sqrt(height * width * share / ratio))
        if h >= height or w >= width:
            continue
        top, left = draws.below(height - h + 1), draws.below(width - w + 1)
        fill = torch.full((x.shape[0], 1, 1), value, dtype=torch.uint8)
        return stoker.stages.random_erasing(p=1, value=value), F.erase(x, top, left, h, w, fill)
    return None


def rotation(name, fills):
    def make(rng, x, draws):
        fill = rng.randint(0, 255) if fills else 0
        angle = -draws.between_f64(-180, 180)
        return (stoker.stages.random_rotation(degrees=[-180, 180], filter=name, fill=fill),
                F.rotate(x, angle, MODES[name], fill=[float(fill)] if fills else None))
    return make


def affine(name, fills):
    def make(rng, x, draws):
        fill, moves = rng.randint(0, 255) if fills else 0, [0.25, 0.125]
        angle = draws.between_f64(-90, 90)
        move = [round(moves[i] * x.shape[2 - i] * (2 * draws.uniform() - 1)) for i in range(2)]
        factor, shear = draws.between_f64(0.5, 2), [draws.between_f64(-30, 30), draws.between_f64(-15, 15)]
        return (stoker.stages.random_affine(degrees=[-90, 90], translate=moves, scale=[0.5, 2], shear=[-30, 30], shear_y=[-15, 15],
                                            filter=name, fill=fill),
                F.affine(x, angle, move, factor, shear, MODES[name], fill=[float(fill)] if fills else None))
    return make


def randaugment(wanted):
    """None where another operation is drawn."""
    def make(rng, x, draws):
        augment, magnitude = v2.RandAugment(), rng.randint(0, 30)
        number, minus = draws.below(len(augment._AUGMENTATION_SPACE)), draws.bit()
        name, (table, signed) = list(augment._AUGMENTATION_SPACE.items())[number]
        if name != wanted:
            return None
        amounts = table(31, *x.shape[1:])
        amount = 0.0 if amounts is None else float(amounts[magnitude]) * (-1 if signed and minus else 1)
        return (stoker.stages.randaugment(n=1, magnitude=magnitude),
                augment._apply_image_or_video_transform(x, name, amount, augment.interpolation, augment._fill))
    return make


# name, torchvision's counterpart, how it is made, whether grey images too, the most that counts as no difference
KINDS = [("center_crop", "center_crop", center_crop, True, 0),
         ("random_crop, border: zero", "pad, crop", random_crop("zero"), True, 0),
         ("random_crop, border: reflect", "pad, crop", random_crop("reflect"), True, 0),
         ("random_flip", "horizontal_flip", flip("horizontal"), True, 0),
         ("random_flip, axis: vertical", "vertical_flip", flip("vertical"), True, 0),
         ("pad", "pad", pad, True, 0),
         ("resize, nearest", "resize, nearest-exact", resize("nearest", "pil", False, "nearest-exact"), True, 0),
         ("resize, bilinear", "resize", resize("bilinear", "pil", True), True, 1),
         ("resize, bicubic", "resize", resize("bicubic", "pil", True), True, 1),
         ("resize, nearest, like: opencv", "resize", resize("nearest", "opencv", False), True, 0),
         ("resize, bilinear, like: opencv", "resize, antialias=False", resize("bilinear", "opencv", False), True, 1),
         ("resize, bicubic, like: opencv", "resize, antialias=False", resize("bicubic", "opencv", False), True, 1),
         ("resize, bicubic, like: opencv", "resize of f32, rounded, antialias=False", bicubic_of_f32, True, 1),
         ("random_resized_crop", "resized_crop", random_resized_crop, True, 1),
         ("cast, f32", "to_dtype", cast, True, 0), ("scale, 1/255", "to_dtype, scale", scale, True, 1e-6),
         ("normalize", "to_dtype, normalize", normalize, True, 1e-5), ("clip", "clamp", clip, True, 0),
         *((f"color_jitter, {kind}", f"adjust_{kind}", jitter([kind]), False, 1) for kind in JITTER),
         ("color_jitter, all four", "the four of them", jitter(JITTER), False, 1),
         ("random_grayscale", "rgb_to_grayscale", grayscale, False, 1),
         ("gaussian_blur", "gaussian_blur", blur, True, 1),
         ("random_erasing", "erase", erasing, True, 0),
         ("random_rotation, nearest", "rotate", rotation("nearest", True), True, 0),
         ("random_rotation, bilinear", "rotate", rotation("bilinear", False), True, 1),
         ("random_rotation, bilinear, fill", "rotate, fill", rotation("bilinear", True), True, 1),
         ("random_affine, nearest", "affine", affine("nearest", True), True, 0),
         ("random_affine, bilinear", "affine", affine("bilinear", False), True, 1),
         ("random_affine, bilinear, fill", "affine, fill", affine("bilinear", True), True, 1),
         *((f"randaugment, {name}", f"RandAugment, {name}", randaugment(name), False, 0 if signed in ("ShearX", "ShearY") else 1)
           for name, signed in ((n, n) for n in v2.RandAugment()._AUGMENTATION_SPACE if n != "Identity"))]


def compare(name, counterpart, make, grey, most, n, seed):
    rng = random.Random(f"{seed} {name}")
    worst, n_values, n_equal, n_over, n_done, worst_case = 0.0, 0, 0, 0, 0, None
    while n_done < n:
        height, width = rng.randint(8, 120), rng.randint(8, 120)
        image = draw_image(rng, height, width, rng.choice((1, 3)) if grey else 3)
        loader_seed = rng.getrandbits(62)
        made = make(rng, torch.from_numpy(image).permute(2, 0, 1).contiguous(), Draws(loader_seed))
        if made is None:
            continue
        stage, theirs = made
        ours, theirs = of_stoker(image, stage, loader_seed), theirs.permute(1, 2, 0).numpy()
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            sys.exit(f"{name}: {ours.dtype}{ours.shape} and {theirs.dtype}{theirs.shape} of {image.shape}")
        off = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if off.max() > worst:
            worst, worst_case = float(off.max()), [height, width, image.shape[2], loader_seed]
        n_over += bool(off.max() > most)
        n_values += off.size
        n_equal += int((off == 0).sum())
        n_done += 1
    return {"stage": name, "counterpart": counterpart, "version": f"torchvision {torchvision.__version__.split('+')[0]}", "n": n, "seed": seed, "torch": torch.__version__.split("+")[0],
            "worst": worst, "worst_case": worst_case, "most": most, "over": n_over, "equal": n_equal / n_values}


def main():
    if len(sys.argv) < 5 or sys.argv[1] != "draw":
        sys.exit(__doc__)
    torch.set_num_threads(1)
    rows = []
    for kind in KINDS:
        if len(sys.argv) > 5 and sys.argv[5] not in kind[0]:
            continue
        rows.append(compare(*kind, int(sys.argv[2]), sys.argv[3]))
        print(rows[-1], flush=True)
    with open(sys.argv[4], "w") as f:
        json.dump(rows, f)


if __name__ == "__main__":
    main()
