#!/usr/bin/env python3
"""What torchvision's v2 functions take for one u8 tensor of 224 x 224, on one thread: the same work as bench_stages, the
median of several rounds in microseconds. Needs torch and torchvision."""
import statistics
import sys
import time

import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

ROUNDS, SAMPLES = 15, 20


def main():
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 224
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = torch.arange(side).expand(3, side, side).to(torch.int32) + torch.randint(0, 60, (3, side, side))
    x = (x % 256).to(torch.uint8).contiguous()
    small = [side * 4 // 7] * 2
    bicubic, nearest, bilinear = (v2.InterpolationMode.BICUBIC, v2.InterpolationMode.NEAREST, v2.InterpolationMode.BILINEAR)
    work = {
        "resize bilinear": lambda: F.resize(x, small, antialias=True),
        "resize bicubic": lambda: F.resize(x, small, bicubic, antialias=True),
        "resize nearest": lambda: F.resize(x, small, nearest),
        "brightness": lambda: F.adjust_brightness(x, 1.2),
        "contrast": lambda: F.adjust_contrast(x, 1.2),
        "saturation": lambda: F.adjust_saturation(x, 1.2),
        "hue": lambda: F.adjust_hue(x, 0.05),
        "color_jitter, all four": lambda j=v2.ColorJitter(0.4, 0.4, 0.4, 0.1): j(x),
        "grayscale": lambda: F.rgb_to_grayscale(x, 3).contiguous(),
        "gaussian_blur 9": lambda: F.gaussian_blur(x, [9, 9], [1.0, 1.0]),
        "gaussian_blur 23": lambda: F.gaussian_blur(x, [23, 23], [1.0, 1.0]),
        "random_erasing": lambda e=v2.RandomErasing(p=1): e(x),
        "rotation nearest": lambda: F.rotate(x, 20.0),
        "affine bilinear": lambda: F.affine(x, 20.0, [0, 0], 1.0, [0.0, 0.0], bilinear),
        "flip, vertical": lambda: F.vertical_flip(x),
        "randaugment 2, 9": lambda r=v2.RandAugment(2, 9): r(x),
        "pad 4": lambda: F.pad(x, [4]),
        "layout": lambda: x.permute(1, 2, 0).contiguous(),
        "sharpness": lambda: F.adjust_sharpness(x, 1.27),
        "posterize": lambda: F.posterize(x, 7),
        "solarize": lambda: F.solarize(x, 178.5),
        "autocontrast": lambda: F.autocontrast(x),
        "equalize": lambda: F.equalize(x),
    }
    for name, run in work.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(SAMPLES):
                run()
            times.append((time.perf_counter() - start) * 1e6 / SAMPLES)
        print(f"{name:28s} {statistics.median(times):8.1f} us", flush=True)


if __name__ == "__main__":
    main()
