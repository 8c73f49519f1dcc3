#!/usr/bin/env python3
"""Writes steps_golden.h: PyTorch's losses of 100 training steps of a ResNet-18, a small BERT and a small GPT-2, the latter
also with ignored targets.

    python3 make_steps.py [NAME]... > steps_golden.h   (PyTorch 2, torchvision, transformers; the versions are written
                                                        into the file)

First weights and data are made by a formula, the same as in tests/train/test_same_mathematics.c: element i of a tensor is
a function of splitmix64(hash of its name + i). Tensors are filled in Stoker's layouts. Each network is trained with one
and with two threads; that both agree to 1e-4 shows that the losses are steady enough to compare with.

A ResNet is not steady by itself: with torchvision's first weights and a rate of 5e-4 rounding errors grow tenfold in five
steps. Here the last batch norm of each residual block begins at a scale of 0.15 (Goyal et al. 2017 begin at 0), the rate is
small, and no loss comes near 0, where small differences would count much: each batch is new, and every second image shows
a class drawn apart from its label.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
import transformers

STEPS, BATCHES = 100, 4
MASK = (1 << 64) - 1


def hash_name(name):
    h = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def words(name, start, n):
    x = np.uint64(hash_name(name)) + np.arange(start, start + n, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uniform(name, start, n):
    """In [-1, 1), 24 bits."""
    return (words(name, start, n) >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1


def first_content(name, shape):
    """Of a tensor in Stoker's layout."""
    u = uniform(name, 0, int(np.prod(shape)))
    if len(shape) == 1:
        x = 0.02 * u if name.endswith("bias") else (0.15 if name.endswith("bn2.weight") else 1) + 0.1 * u
    else:
        x = ((6 / np.prod(shape[1:])) ** 0.5 if len(shape) == 4 else 0.08) * u
    return torch.from_numpy(x.astype(np.float32)).reshape(shape)


def fill(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 4:
                p.copy_(first_content(name, tuple(p.permute(0, 2, 3, 1).shape)).permute(0, 3, 1, 2))
            else:
                p.copy_(first_content(name, tuple(p.shape)))
    return model


def field(name, n_samples, shape, below=0):
    n = int(np.prod(shape))
    if below:
        x = (words(name, 0, n_samples * n) >> np.uint64(40)).astype(np.int64) % below
        return torch.from_numpy(x).reshape(n_samples, *shape)
    return torch.from_numpy(uniform(name, 0, n_samples * n).astype(np.float32)).reshape(n_samples, *shape)


def train(make, threads):
    torch.set_num_threads(threads)
    forward, optimizer = make()
    losses = []
    for i in range(STEPS):
        optimizer.zero_grad()
        loss = forward(i)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def resnet18():
    """Images of 8 x 8: noise, and a pattern for each class."""
    rows, side = 16, 8
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1, model.maxpool = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.Identity()
    fill(model).train()
    n = STEPS * rows
    y, other = field("label", n, (), 10), field("shown", n, (), 10)
    patterns = field("pattern", 10, (side, side, 3))
    x = field("image", n, (side, side, 3)) + 0.5 * patterns[torch.where(torch.arange(n) % 2 == 0, other, y)]
    x = x.permute(0, 3, 1, 2)

    def forward(i):
        return F.cross_entropy(model(x[rows * i:rows * i + rows]), y[rows * i:rows * i + rows])
    return forward, torch.optim.SGD(model.parameters(), lr=RATES["resnet18"], momentum=0.9)


def bert():
    config = transformers.BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=256, max_position_embeddings=16, hidden_dropout_prob=0,
                                     attention_probs_dropout_prob=0, num_labels=4, pad_token_id=None)  # with one, its embedding would not be trained
    model = fill(transformers.BertForSequenceClassification(config)).train()
    x, y = field("tokens", BATCHES * 8, (16,), 100), field("label", BATCHES * 8, (), 4)

    def forward(i):
        i %= BATCHES
        return F.cross_entropy(model(input_ids=x[8 * i:8 * i + 8], attention_mask=(x[8 * i:8 * i + 8] != 0).long()).logits,
                               y[8 * i:8 * i + 8])
    return forward, torch.optim.AdamW(model.parameters(), lr=RATES["bert"])


def gpt2(ignored=False):
    config = transformers.GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=16, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0)
    model = fill(transformers.GPT2LMHeadModel(config)).train()
    x, y = field("tokens", BATCHES * 8, (16,), 100), field("targets", BATCHES * 8, (16,), 100)
    if ignored:  # in some samples many, in others few
        y[x % 8 < torch.arange(BATCHES * 8)[:, None] % 8] = -100

    def forward(i):
        i %= BATCHES
        logits = model(input_ids=x[8 * i:8 * i + 8]).logits
        return F.cross_entropy(logits.view(-1, 100), y[8 * i:8 * i + 8].reshape(-1))
    return forward, torch.optim.AdamW(model.parameters(), lr=RATES["gpt2"])


def gpt2_ignored():
    return gpt2(True)


RATES = {"resnet18": 1.5e-4, "bert": 5e-4, "gpt2": 5e-4, "gpt2_ignored": 5e-4}
np.seterr(over="ignore")
print(f"/* Written by make_steps.py with PyTorch {torch.__version__}, torchvision {torchvision.__version__}, transformers "
      f"{transformers.__version__}. */\n/* clang-format off */")
for name, make in (("resnet18", resnet18), ("bert", bert), ("gpt2", gpt2), ("gpt2_ignored", gpt2_ignored)):
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    one, two = train(make, 1), train(make, 2)
    apart = max(abs(a - b) / abs(a) for a, b in zip(one, two))
    print(f"{name}: {one[0]:.4f} to {one[-1]:.4f}; one and two threads are {apart:.1e} apart", file=sys.stderr)
    if apart > 1e-4:
        sys.exit(f"{name}: PyTorch does not agree with itself; lower the rate")
    print(f"/* One and two threads: {apart:.1e} apart. */")
    print(f"static const double {name}_rate = {RATES[name]}, {name}_losses[{STEPS}] = {{")
    for i in range(0, STEPS, 10):
        print("    " + ", ".join(f"{x:.7f}" for x in one[i:i + 10]) + ",")
    print("};")
