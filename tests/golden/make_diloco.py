#!/usr/bin/env python3
"""Writes diloco_golden.h: two replicas of a softmax regression that take local steps of SGD with momentum, and an outer
step with Nesterov's momentum after every third and at the end of an epoch (Douillard et al. 2023, algorithm 1).

    python3 make_diloco.py > diloco_golden.h
"""
import numpy as np

N, BATCH, RANKS, EPOCHS, EVERY, FEATURES, CLASSES = 16, 4, 2, 2, 3, 5, 3
LR, MOMENTUM, OUTER_LR, OUTER_MOMENTUM = 0.5, 0.8, 0.7, 0.9
x = np.array([[(i * 7 + k * 3) % 11 / 11 - 0.4 for k in range(FEATURES)] for i in range(N)])
label = np.array([i * 5 % 7 % CLASSES for i in range(N)])
begun = np.array([[(c * 5 + k * 2) % 7 / 7 - 0.5 for k in range(FEATURES + 1)] for c in range(CLASSES)])  # the last: bias
outer_velocity = np.zeros_like(begun)
weight, velocity = [begun.copy() for _ in range(RANKS)], [np.zeros_like(begun) for _ in range(RANKS)]
losses = []

for step in range(N // BATCH * EPOCHS):
    first, share, loss = step % (N // BATCH) * BATCH, BATCH // RANKS, 0
    for r in range(RANKS):
        rows = slice(first + r * share, first + (r + 1) * share)
        z = np.hstack([x[rows], np.ones((share, 1))])
        logits = z @ weight[r].T
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss -= np.log(p[np.arange(share), label[rows]]).sum() / BATCH
        p[np.arange(share), label[rows]] -= 1
        velocity[r] = MOMENTUM * velocity[r] + p.T @ z / share
        weight[r] = weight[r] - LR * velocity[r]
    losses.append(loss)
    if (step + 1) % EVERY == 0 or (step + 1) % (N // BATCH) == 0:
        way = begun - sum(weight) / RANKS
        outer_velocity = OUTER_MOMENTUM * outer_velocity + way
        begun = begun - OUTER_LR * (way + OUTER_MOMENTUM * outer_velocity)
        weight = [begun.copy() for _ in range(RANKS)]

print(f"/* Written by make_diloco.py with NumPy {np.__version__}. */\n/* clang-format off */")
for name in ("N", "BATCH", "EPOCHS", "EVERY", "FEATURES", "CLASSES"):
    print(f"#define DILOCO_{name} {globals()[name]}")
for name in ("LR", "MOMENTUM", "OUTER_LR", "OUTER_MOMENTUM"):
    print(f"#define DILOCO_{name} {globals()[name]}")
print("static const double diloco_loss[] = {" + ", ".join("%.12g" % a for a in losses) + "};")
print("static const double diloco_weight[] = { /* a class a row, its bias last */\n    " +
      ",\n    ".join(", ".join("%.12g" % a for a in row) for row in begun) + "};")
