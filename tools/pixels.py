#!/usr/bin/env python3
"""Stoker's resizing beside the systems whose pixels it promises, on sizes and images drawn at random.

usage: pixels.py draw N SEED OUT.json          compares with each of Pillow, OpenCV and TensorFlow that this Python has
       pixels.py table IN.json...              docs/pixels.md, up to torchvision's part
       pixels.py torchvision IN.json           that part, of what tools/pixels_torchvision.py found

Stoker's package must be importable (PYTHONPATH=build/python). A kind of resizing is drawn N times: sides of 1 to 500, half of them
below 50; noise, black and white noise, or a smooth picture; 1 or 3 channels. Seed 1 is the one to tune with, others are there to judge.
"""
import json
import math
import random
import sys

import numpy as np

KINDS = [("pil", "nearest", None), ("pil", "bilinear", None), ("pil", "bicubic", None),
         ("opencv", "nearest", None), ("opencv", "bilinear", None), ("opencv", "bicubic", None),
         ("tf", "nearest", None), ("tf", "bilinear", False), ("tf", "bicubic", False), ("tf", "bilinear", True), ("tf", "bicubic", True)]


def draw_side(rng):
    return max(1, round(math.exp(rng.uniform(0, math.log(500)))))


def draw_image(rng, height, width, channels):
    noise = np.random.default_rng(rng.getrandbits(32))
    kind = rng.randrange(3)
    if kind == 0:
        return noise.integers(0, 256, (height, width, channels), dtype=np.uint8)
    if kind == 1:
        return (noise.integers(0, 2, (height, width, channels)) * 255).astype(np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    waves = [127.5 + 127.5 * np.sin(x * rng.uniform(0, 0.3) + y * rng.uniform(0, 0.3) + rng.uniform(0, 6)) for _ in range(channels)]
    return np.stack(waves, axis=-1).astype(np.uint8)


def of_stoker(image, height, width, like, name, antialias):
    import stoker
    keys = {"height": height, "width": width, "filter": name, "like": like}
    if antialias is not None:
        keys["antialias"] = antialias
    ds = stoker.Dataset.arrays(x=stoker.Array(np.ascontiguousarray(image[None])))
    batch = next(iter(stoker.Loader(ds.map(stoker.stages.resize(**keys), "x").batch(1), threads=1)))
    return np.array(batch["x"])[0]


def of_pil(image, height, width, name, _):
    from PIL import Image
    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    return np.asarray(picture.resize((width, height), getattr(Image.Resampling, name.upper()))).reshape(height, width, -1)


def of_opencv(image, height, width, name, _):
    import cv2
    how = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}[name]
    return cv2.resize(image, (width, height), interpolation=how).reshape(height, width, -1)


def of_tf(image, height, width, name, antialias):
    import tensorflow as tf
    return tf.image.resize(image, (height, width), method=name, antialias=bool(antialias)).numpy()


def version_of(like):
    try:
        if like == "pil":
            import PIL
            return f"Pillow {PIL.__version__}"
        if like == "opencv":
            import cv2
            return f"OpenCV {cv2.__version__}"
        import tensorflow as tf
        return f"TensorFlow {tf.__version__}"
    except ImportError:
        return None


def draw(n, seed, out):
    rows = []
    for like, name, antialias in KINDS:
        version = version_of(like)
        if not version:
            continue
        rng = random.Random(f"{seed} {like} {name} {antialias}")
        peer = {"pil": of_pil, "opencv": of_opencv, "tf": of_tf}[like]
        worst, n_values, n_equal, n_over, worst_case = 0, 0, 0, 0, None
        for _ in range(n):
            height, width, to_height, to_width = (draw_side(rng) for _ in range(4))
            image = draw_image(rng, height, width, rng.choice((1, 3)))
            a = of_stoker(image, to_height, to_width, like, name, antialias)
            b = peer(image, to_height, to_width, name, antialias)
            off = np.abs(a.astype(np.float64) - b.astype(np.float64))
            if off.max() > worst:
                worst, worst_case = float(off.max()), [height, width, to_height, to_width]
            n_over += bool(off.max() > (0 if name == "nearest" else 0.001 if like == "tf" else 1))
            n_values += off.size
            n_equal += int((off == 0).sum())
        rows.append({"like": like, "filter": name, "antialias": antialias, "version": version, "n": n, "seed": seed, "worst": worst,
                     "worst_case": worst_case, "over": n_over, "equal": n_equal / n_values})
        print(rows[-1], flush=True)
    with open(out, "w") as f:
        json.dump(rows, f)


def table(paths):
    rows = [row for path in paths for row in json.load(open(path))]
    first = rows[0]
    print("# Whose pixels: sizes drawn at random\n\n"
          f"`./dev pixels {first['n']} {first['seed']}` writes this page: {first['n']} pairs of sizes for each line, sides of 1 to 500, noise, black and white\n"
          f"noise and smooth pictures, drawn with seed {first['seed']} ({'which the code was tuned with' if first['seed'] == '1' else 'the code was tuned with seed 1'}). Sizes over: pairs in which some value is more than 1 of\n"
          "255 away (nearest: differs at all; TensorFlow, f32: more than 0.001).\n\n"
          "| `like` | `filter` | `antialias` | Compared with | Largest difference, of 255 | Sizes over | Values equal |\n|---|---|---|---|---:|---:|---:|")
    for r in rows:
        antialias = {None: "as by default", True: "true", False: "false"}[r["antialias"]]
        worst = "0" if r["worst"] == 0 else f"{r['worst']:.0f}" if r["worst"] >= 1 and r["like"] != "tf" else f"{r['worst']:.2g}"
        print(f"| {r['like']} | {r['filter']} | {antialias} | {r['version']} | {worst} | {r['over']} | {100 * r['equal']:.2f} % |")


TORCHVISION = """
## torchvision's functions beside every stage that has one

The same command draws {n} images for each line, sides of 8 to 120, noise, black and white noise and smooth pictures, with seed {seed}, and
parameters for each: a stage draws them by its key, and torchvision's function gets the same numbers. Both work on u8, as torchvision's v2
functions do on tensors; {version}, PyTorch {torch}. Images over: in which some value is further away than the line's bound.

| Stage | {version} | Bound | Largest difference, of 255 | Images over | Values equal |
|---|---|---:|---:|---:|---:|
{rows}

Where a line is over its bound, it is so by design:

- `resize, bicubic`: Pillow's pixels, which torchvision does not have: its u8 rounds otherwise between the two passes, its f32 not at all, and
  the two are up to 32 apart from each other on black and white noise. With `like: opencv` ours are those of its f32, rounded.
- `nearest`, and the shears and turns of `randaugment`, which are by the nearest: a place half-way between two pixels falls to the one or the
  other by the last bit of f32 in torchvision; here as in Pillow and OpenCV where resized, and to the right and lower one where turned. All rows
  that differ under ShearX are of such places, to 1e-6 of a pixel.
- `bilinear, fill`: at the image's edge a pixel is mixed from a share m of what is inside, v, and the fill. Here that is m v + (1 - m) fill;
  torchvision weighs what is inside twice, m m v + (1 - m) fill, up to a quarter of the range (64) away. Without `fill` it does what is done here.
- `color_jitter, all four`: a value that one operation rounds to the other side is 1 off, and those behind it multiply that, up to 4.
- `random_resized_crop`: 2 in one image of all, of black and white noise, as `resize` has beside Pillow.

`mixup` and `cutmix` belong to batches: `data/dataset/test_mixup` compares them with torchvision's MixUp and CutMix for given draws. There is no
stage for `perspective`, `elastic` or `invert` alone; `posterize`, `solarize`, `equalize`, `autocontrast` and `sharpness` are operations of `randaugment`.
"""


def difference(worst):
    return "0" if worst == 0 else f"{worst:.0f}" if worst >= 1 else f"{worst:.1e}"


def torchvision(path):
    rows = json.load(open(path))
    lines = [f"| `{r['stage']}` | {r['counterpart']} | {r['most']:g} | {difference(r['worst'])} | {r['over']} | {100 * r['equal']:.2f} % |" for r in rows]
    print(TORCHVISION.format(rows="\n".join(lines), **rows[0]), end="")


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "draw":
        draw(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    elif len(sys.argv) > 2 and sys.argv[1] == "table":
        table(sys.argv[2:])
    elif len(sys.argv) == 3 and sys.argv[1] == "torchvision":
        torchvision(sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
