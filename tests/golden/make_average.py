#!/usr/bin/env python3
"""Writes average_golden.h: a running mean of weights (EMA) next to six steps of SGD, by torch.optim.swa_utils.

    python3 make_average.py > average_golden.h
"""
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(3)
STEPS, N, LR, DECAY = 6, 5, 0.5, 0.75


def words(rows):
    return ",\n    ".join(", ".join("%.9gf" % x for x in row) for row in rows)


model = torch.nn.Linear(N, 1, bias=False)
mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
first, grads, weights, means = model.weight[0].tolist(), torch.rand(STEPS, N) * 2 - 1, [], []
for grad in grads:
    model.weight.grad = grad.reshape(1, N).clone()
    optimizer.step()
    mean.update_parameters(model)
    weights.append(model.weight[0].tolist())
    means.append(mean.module.weight[0].tolist())

print(f"/* Written by make_average.py with PyTorch {torch.__version__}. */\n/* clang-format off */")
print(f"enum {{ N_STEPS = {STEPS}, N = {N} }};")
print(f"static const double golden_lr = {LR}, golden_decay = {DECAY};")
print("static const float golden_first[N] = {" + words([first]) + "};")
for name, rows in (("grads", grads.tolist()), ("weights", weights), ("means", means)):
    print(f"static const float golden_{name}[N_STEPS * N] = {{\n    {words(rows)}}};")
