#!/usr/bin/env python3
"""Writes layers_golden.h: layers without parameters of their own (or with those they begin with) as PyTorch has them.

    python3 make_layers.py > layers_golden.h        (PyTorch; the version is written into the file)

Each case: x and y in our layout, channels last, and the gradient of sum(y * r) by x, where r is the third array.
"""
import torch
import torch.nn.functional as F

torch.manual_seed(11)
out, cases = [], []


def array(t):
    name = f"layer_{len(out)}"
    lines, line = [], "   "
    for word in ["%.9g" % v for v in t.detach().flatten().tolist()]:
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    out.append(f"static const float {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return name


def dims(t):
    return "{.rank = %d, .dim = {%s}}" % (t.dim(), ", ".join(map(str, t.shape)))


def case(kind, x, f, number=0):
    x = x.clone().requires_grad_()
    y = f(x.movedim(-1, 1) if x.dim() > 2 else x)
    y = y.movedim(1, -1) if y.dim() > 2 else y
    r = torch.randn(y.shape)
    (y * r).sum().backward()
    cases.append(f"    {{.kind = {kind}, .number = {number}, .x_shape = {dims(x)}, .y_shape = {dims(y)}, "
                 f".x = {array(x)}, .y = {array(y)}, .r = {array(r)}, .grad = {array(x.grad)}}},")


image, volume = torch.randn(2, 3, 2, 4), torch.randn(2, 2, 3, 2, 2)
row = torch.cat([torch.randn(3, 5) * 3, torch.tensor([[0.0, 90, -90, 7, -4]])])
case("GROUP_NORM", image, lambda x: F.group_norm(x, 2), 2)
case("GROUP_NORM", volume, lambda x: F.group_norm(x, 2), 2)
case("NEAREST", image, lambda x: F.interpolate(x, scale_factor=2), 2)
case("NEAREST", volume, lambda x: F.interpolate(x, scale_factor=2), 2)
case("LINEAR", image, lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), 2)
case("LINEAR", image, lambda x: F.interpolate(x, scale_factor=3, mode="bilinear"), 3)
case("LINEAR", volume, lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), 2)
case("MAX_POOL", image, lambda x: x.amax((2, 3)))
case("MEAN", volume, lambda x: x.mean((2, 3, 4)))
case("RELU6", row, F.relu6)
case("LEAKY", row, lambda x: F.leaky_relu(x, 0.2), 0.2)
case("ELU", row, F.elu)
case("HARD_SIGMOID", row, F.hardsigmoid)
case("HARD_SWISH", row, F.hardswish)
case("SOFTPLUS", row, F.softplus)

print(f"/* Written by make_layers.py with PyTorch {torch.__version__.split('+')[0]}. */")
print("/* clang-format off */")
print("\n".join(out))
print("static const layer_case layer_cases[] = {\n" + "\n".join(cases) + "\n};")
print("/* clang-format on */")
