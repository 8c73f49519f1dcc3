#!/usr/bin/env python3
"""Writes networks_golden.h: logits of torchvision's networks in evaluation, with weights that a formula gives.

    python3 make_networks.py > networks_golden.h        (torchvision; the version is written into the file)

Element i of a tensor, in PyTorch's layout, is v = ((i * 7919 + sum of the name's bytes) % 1009) / 1009 - 0.5; weights of
two and more sides are 2 v / sqrt(inputs), scales 1 + v / 5, running variances 1 + |v|, all others v. Images: v with 0 for
the sum of bytes, in our layout.
"""
import numpy as np
import torch
import torchvision


def formula(n, start):
    return ((np.arange(n, dtype=np.int64) * 7919 + start) % 1009) / 1009 - 0.5


def fill(model):
    state = model.state_dict()
    for name, t in state.items():
        if t.dtype != torch.float32:
            continue
        v = formula(t.numel(), sum(name.encode())).reshape(tuple(t.shape))
        if name.endswith("running_var"):
            v = 1 + abs(v)
        elif t.dim() >= 2 and name.endswith("weight"):
            v = 2 * v / np.sqrt(np.prod(t.shape[1:]))
        elif name.endswith("weight") and t.dim() == 1:
            v = 1 + v / 5
        state[name] = torch.from_numpy(v).float()
    model.load_state_dict(state)
    return model.eval()


def record(name, model, side):
    x = torch.from_numpy(formula(2 * side * side * 3, 0).reshape(2, side, side, 3)).float()
    with torch.no_grad():
        y = fill(model)(x.permute(0, 3, 1, 2))
    words = ", ".join("%.9g" % v for v in y.flatten().tolist())
    print(f"static const float {name}_logits[] = {{{words}}};")


print(f"/* Written by make_networks.py with torchvision {torchvision.__version__.split('+')[0]}. */")
print("/* clang-format off */")
vit = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32,
                                           mlp_dim=64, num_classes=5)
record("vit", vit, 32)
record("mobilenet", torchvision.models.mobilenet_v2(num_classes=5), 32)
print("/* clang-format on */")
