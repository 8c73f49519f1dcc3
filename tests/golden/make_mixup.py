#!/usr/bin/env python3
"""Writes mixup_golden.h: torchvision.transforms.v2's MixUp and CutMix with given draws, and the distribution of Beta(a, a).

Run with torch and torchvision: python3 make_mixup.py > mixup_golden.h
"""
import math

import torch
import torchvision
from torchvision.transforms import v2

N, H, W, C, CLASSES = 3, 5, 4, 2, 4


def numbers(name, values, kind="float"):
    text = ", ".join(float(v).hex() if kind == "float" else repr(v) for v in values)
    return f"static const {kind} {name}[{len(values)}] = {{{text}}};"


def batch():
    x = torch.tensor([(i * 37 % 101) / 7 - 5 for i in range(N * H * W * C)], dtype=torch.float32)
    return x.reshape(N, H, W, C).permute(0, 3, 1, 2).contiguous(), torch.tensor([2, 0, 3])


class Given:
    def __init__(self, value):
        self.value = value

    def sample(self, shape):
        return torch.tensor(self.value, dtype=torch.float64)


def mixup(lam):
    transform = v2.MixUp(alpha=1.0, num_classes=CLASSES)
    transform._dist = Given(lam)
    image, label = transform(*batch())
    return image.permute(0, 2, 3, 1).reshape(-1).tolist(), label.reshape(-1).tolist()


def cutmix(lam, x, y):
    transform = v2.CutMix(alpha=1.0, num_classes=CLASSES)
    transform._dist = Given(lam)
    draws, real = [x, y], torch.randint
    torch.randint = lambda *a, **k: torch.tensor([draws.pop(0)])
    image, label = transform(*batch())
    torch.randint = real
    return image.permute(0, 2, 3, 1).reshape(-1).tolist(), label.reshape(-1).tolist()


def beta_cdf(a, x):
    """Simpson's rule after t = u**(1/a), which takes away the pole at 0; x up to 1/2."""
    n, top = 20000, x**a
    f = lambda u: (1 - u ** (1 / a)) ** (a - 1)
    h = top / n
    s = f(0) + f(top) + sum((4 if i % 2 else 2) * f(i * h) for i in range(1, n))
    b = math.gamma(a) ** 2 / math.gamma(2 * a)
    return s * h / 3 / (a * b)


print(f"""/* Mixup and cutmix by torchvision {torchvision.__version__}. Made by make_mixup.py. */
#ifndef TESTS_GOLDEN_MIXUP_GOLDEN_H
#define TESTS_GOLDEN_MIXUP_GOLDEN_H

/* clang-format off */""")
for i, lam in enumerate((0.3, 0.9375)):
    image, label = mixup(lam)
    print(numbers(f"mixup_image_{i}", image))
    print(numbers(f"mixup_label_{i}", label))
for i, (lam, x, y) in enumerate(((0.5, 1, 2), (0.1, 3, 0), (0.99, 2, 2), (0.0, 2, 2))):
    image, label = cutmix(lam, x, y)
    print(numbers(f"cutmix_image_{i}", image))
    print(numbers(f"cutmix_label_{i}", label))
print("/* P(lambda < x) for alpha and x. */")
rows = [(a, x, beta_cdf(a, x)) for a in (0.05, 0.2, 1.0, 4.0) for x in (0.01, 0.1, 0.3, 0.5)]
print("static const double beta_golden[16][3] = {" + ", ".join("{%r, %r, %r}" % r for r in rows) + "};")
print("/* clang-format on */\n#endif")
