#!/usr/bin/env python3
"""A run of recipes/sst2-lstm.yaml or sst2-bert-mini.yaml compared with PyTorch, step by step: from the same first weights, on the same
sentences in the same order, and for the LSTM with the same dropout, each loss is compared.

usage: sst2_steps.py lstm|bert FOLDER WEIGHTS [--run RUN] [--seed 0]

Without --run it writes PyTorch's first weights to WEIGHTS, for

    stoker train recipes/sst2-lstm.yaml --set init.weights=WEIGHTS --set log.every="1 step" --out RUN

(bert: also --set model.bert.dropout=0). FOLDER as for sst2_torch.py. Needs torch, numpy, tokenizers and safetensors.
"""
import argparse
import json
import math
import pathlib

import numpy
import torch
from safetensors.torch import load_file, save_file

from sst2_torch import BATCH, LENGTH, Bert, Lstm, evaluate, make_optimizer, read

WORD = (1 << 64) - 1


# --- Stoker's random numbers: src/base/rng.h, src/data/order/permutation.c, src/graph/dropout.h ---

def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def shuffled(n, seed, epoch):
    """The record at each place of an epoch, for 4,096 records or more."""
    a = math.isqrt(n - 1) + 1
    b = -(-n // a)

    def draw(key, half, n_numbers):
        h = ((key ^ half) * 0xD6E8FEB86659FD93) & WORD
        h = ((h ^ (h >> 32)) * 0x9E3779B97F4A7C15) & WORD
        return ((h >> 32) * n_numbers) >> 32

    def place(x):
        while True:
            left, right = divmod(x, b)
            key = mix(seed ^ mix(epoch))
            for _ in range(3):
                left = (left + draw(key, right, a)) % a
                key = (key + 0xA0761D6478BD642F) & WORD
                right = (right + draw(key, left, b)) % b
                key = (key + 0xA0761D6478BD642F) & WORD
            x = left * b + right
            if x < n:
                return x
    return torch.tensor([place(x) for x in range(n)])


def philox(key, hi, lo):
    c = [lo & 0xffffffff, lo >> 32, hi & 0xffffffff, hi >> 32]
    k0, k1 = key & 0xffffffff, key >> 32
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ k0, q & 0xffffffff, (p >> 32) ^ c[3] ^ k1, p & 0xffffffff]
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return c


class Dropout(torch.nn.Module):
    """Both of the LSTM's, called in turn; `sample` is the number of the batch's first sample since the start of the run."""
    def __init__(self, seed, rate):
        super().__init__()
        self.seed, self.rate, self.stream, self.sample = seed, rate, 0, 0

    def forward(self, x):
        if not self.training:
            return x
        n_rows, n = x.shape[0], x[0].numel()
        hi = numpy.repeat(numpy.arange(self.sample, self.sample + n_rows, dtype=numpy.uint64), n // 8)
        lo = numpy.tile(numpy.arange(n // 8, dtype=numpy.uint64), n_rows)
        words = numpy.stack(philox(self.seed ^ mix(self.stream), hi, lo), -1)
        halves = numpy.stack([words & 0xffff, words >> 16], -1).reshape(n_rows, n)
        kept = torch.from_numpy((halves >= math.ceil(self.rate * 65536)).astype(numpy.float32))
        self.stream = 1 - self.stream
        return x * kept.view(x.shape) / (1 - self.rate)


# --- the comparison ---

def without_dropout(model):
    for module in model.modules():
        for name in ("p", "dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def compare(kind, model, args):
    lines = [json.loads(line) for line in (args.run / "metrics.jsonl").read_text().splitlines()]
    steps = {line["step"]: line for line in lines if line["kind"] == "step"}
    epochs = {line["step"]: line for line in lines if line["kind"] == "epoch"}
    (ids, labels), valid = read(args.folder, "train.tsv", LENGTH), read(args.folder, "dev.tsv", LENGTH)
    if kind == "lstm":
        model.dropout = Dropout(args.seed, 0.5)
    else:
        without_dropout(model)
    optimizer, _ = make_optimizer(kind, model)
    per_epoch, worst = len(ids) // BATCH, 0
    model.train()
    for i in range(max(steps)):
        if i % per_epoch == 0:
            order = shuffled(len(ids), args.seed, i // per_epoch)
        rows = order[i % per_epoch * BATCH:][:BATCH]
        for group in optimizer.param_groups:
            group["lr"] = steps[i + 1]["lr"]
        if kind == "lstm":
            model.dropout.sample = i * BATCH
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids[rows]), labels[rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        worst = max(worst, abs(loss.item() - steps[i + 1]["loss"]))
        if (i + 1) in epochs or i + 1 == max(steps):
            said = f"step {i + 1}: losses so far differ by at most {worst:.1e}"
            if (i + 1) in epochs:
                found = evaluate(model, valid)
                said += (f"; validation {found[0]:.6f}, {100 * found[1]:.2f} %, Stoker's {epochs[i + 1]['valid_loss']:.6f}, "
                         f"{100 * epochs[i + 1]['valid_accuracy']:.2f} %")
                model.train()
            print(said, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=("lstm", "bert"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = Lstm() if args.kind == "lstm" else Bert()
    inner = model if args.kind == "lstm" else model.net
    if not args.run:
        save_file({name: p.contiguous() for name, p in inner.state_dict().items()}, args.weights)
        return
    inner.load_state_dict(load_file(args.weights))
    compare(args.kind, model, args)


if __name__ == "__main__":
    main()
