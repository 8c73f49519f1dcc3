#!/usr/bin/env python3
"""Data parallelism of PyTorch (DDP with Gloo) on the networks of bench-resnet18.yaml and sst2-bert-mini.yaml: one random
batch, N processes of one thread each, and one process of N threads.

usage: ddp_torch.py resnet18|bert-mini [--ranks 2] [--steps 16] [--bf16]

Beside it: stoker train recipes/bench-resnet18.yaml --replicas 2 --threads 2 --steps 16. Preload tcmalloc for PyTorch's best.
"""
import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(n_out), nn.BatchNorm2d(n_out)
        self.short = nn.Identity() if stride == 1 and n_in == n_out else nn.Sequential(
            nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def resnet18():
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *[Block(*w) for w in widths],
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def bert_mini():
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(
        vocab_size=6000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
        max_position_embeddings=32, num_labels=2))


def make(name, rows):
    if name == "resnet18":
        model = resnet18().to(memory_format=torch.channels_last)
        x = torch.randn(rows, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        y = torch.randint(0, 10, (rows,))
        return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lambda m: F.cross_entropy(m(x), y)
    model = bert_mini()
    x, y = torch.randint(1, 6000, (rows, 32)), torch.randint(0, 2, (rows,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)
    return model, optimizer, lambda m: F.cross_entropy(m(input_ids=x).logits, y)


def train(rank, n_ranks, n_threads, args):
    batch = 128 if args.network == "resnet18" else 32
    torch.set_num_threads(n_threads)
    torch.manual_seed(rank)
    model, optimizer, loss_of = make(args.network, batch // n_ranks)
    if n_ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
        dist.init_process_group("gloo", rank=rank, world_size=n_ranks)
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    times = []
    for _ in range(args.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            loss = loss_of(model)
        loss.backward()
        if args.network == "bert-mini":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(f"{args.network}, {n_ranks} x {n_threads}: {batch / statistics.median(times[3:]):.1f} samples/s", flush=True)
    if n_ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("network", choices=["resnet18", "bert-mini"])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=16)
    p.add_argument("--bf16", action="store_true")
    a = p.parse_args()
    mp.spawn(train, args=(1, a.ranks, a), nprocs=1)
    mp.spawn(train, args=(a.ranks, 1, a), nprocs=a.ranks)
