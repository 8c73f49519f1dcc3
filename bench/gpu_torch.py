#!/usr/bin/env python3
"""PyTorch's training steps next to Stoker's on a GPU: the networks of recipes/bench-*.yaml, bf16 by autocast, eager or compiled.

usage: gpu_torch.py WORKLOAD... [--mode eager|compile] [--device cuda|cpu] [--seconds 4] [--small] [--warm] [--folder FOLDER]

Workloads: gpt2 resnet50-256 resnet50-400 bert-128 bert-384, on one random batch that lies on the device; photos, a DataLoader of
JPEG files in FOLDER/CLASS; airbench, bench/airbench_torch.py on FOLDER/train and FOLDER/test. Prints a line of JSON for each: value is
the batch over the median step, of airbench the seconds of training. --small: tiny networks. --warm: a step of each, which fills
Inductor's cache and times nothing. torch.compile is the default mode. Needs torch, for some torchvision and transformers.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

ARGS = None


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 124M: tied embedding, no dropout."""

    def __init__(self, vocabulary=50257, d=768, layers=12, heads=12, context=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                nn.init.normal_(m.weight, 0.0, 0.02)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def on_device(module):
    return module.to(ARGS.device).train()


def wrapped(module):
    return torch.compile(module) if ARGS.mode == "compile" else module


def autocast():
    return torch.autocast(ARGS.device, torch.bfloat16)


def make_step(loss_of, optimizer):
    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = loss_of()
        loss.backward()
        optimizer.step()
        step.loss = loss.detach()
    return step


# --- one random batch ---

def gpt2():
    batch, length, sizes = (2, 16, dict(vocabulary=101, d=32, layers=1, heads=2, context=16)) if ARGS.small else (64, 1024, {})
    model = on_device(Gpt2(**sizes))
    ids = torch.randint(0, sizes.get("vocabulary", 50257), (batch, length + 1), device=ARGS.device)
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    forward = wrapped(model)
    step = make_step(lambda: forward(x, y), torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True))
    return step, batch * length, "tokens/s"


def make_resnet50():
    import torchvision
    return torchvision.models.resnet18(num_classes=10) if ARGS.small else torchvision.models.resnet50()


def resnet50(batch):
    batch, side = (2, 32) if ARGS.small else (batch, 224)
    model = on_device(make_resnet50()).to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, side, side, device=ARGS.device).to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,), device=ARGS.device)
    forward = wrapped(model)
    step = make_step(lambda: F.cross_entropy(forward(x), y), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
    return step, batch, "images/s"


def bert(batch, length):
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig()
    if ARGS.small:
        batch, length = 2, 16
        config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=101)
    model = on_device(BertForSequenceClassification(config))
    ids = torch.randint(0, config.vocab_size, (batch, length), device=ARGS.device)
    y = torch.randint(0, 2, (batch,), device=ARGS.device)
    forward = wrapped(model)
    step = make_step(lambda: F.cross_entropy(forward(input_ids=ids).logits.float(), y),
                     torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True))
    return step, batch, "sequences/s"


STEPS = {"gpt2": gpt2, "resnet50-256": lambda: resnet50(256), "resnet50-400": lambda: resnet50(400),
         "bert-128": lambda: bert(256, 128), "bert-384": lambda: bert(64, 384)}


def wait():
    if ARGS.device == "cuda":
        torch.cuda.synchronize()


def time_steps(step):
    """Median seconds and how many; the first steps, which compile and choose, are not counted."""
    start = time.perf_counter()
    step()
    wait()
    first = time.perf_counter() - start
    if ARGS.warm:
        return None, 1, first
    for _ in range(3):
        step()
    wait()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < ARGS.seconds or len(times) < 5:
        start = time.perf_counter()
        for _ in range(4):  # some at a time, so that the host runs ahead as in a training
            step()
        wait()
        times.append((time.perf_counter() - start) / 4)
    return statistics.median(times), 4 * len(times), first


def measure_steps(workload):
    step, n, unit = STEPS[workload]()
    seconds, n_steps, first = time_steps(step)
    loss = step.loss.item()
    assert math.isfinite(loss), f"the loss is {loss}"
    return {"value": n / seconds if seconds else None, "unit": unit, "step_ms": seconds and seconds * 1e3, "steps": n_steps,
            "first_step_s": first}


# --- from files ---

class Photos(torch.utils.data.Dataset):
    def __init__(self, folder, side):
        from torchvision import transforms
        classes = sorted(p for p in folder.iterdir() if p.is_dir())
        self.files = [(str(path), i) for i, c in enumerate(classes) for path in sorted(c.iterdir())] * (1 if ARGS.small else 2000)
        self.change = transforms.Compose([transforms.RandomResizedCrop(side, antialias=True), transforms.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        from torchvision import io
        path, label = self.files[i]
        return self.change(io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)), label


def photos():
    """Bytes travel, and are normalised on the device."""
    batch, side = (4, 32) if ARGS.small else (256, 224)
    n_workers = min(16, os.cpu_count() or 1)
    loader = torch.utils.data.DataLoader(Photos(ARGS.folder, side), batch, shuffle=True, num_workers=n_workers, drop_last=True,
                                         pin_memory=ARGS.device == "cuda")
    model = on_device(make_resnet50()).to(memory_format=torch.channels_last)
    forward, optimizer = wrapped(model), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    mean, deviation = (torch.tensor(v, device=ARGS.device).view(1, 3, 1, 1) for v in ((123.7, 116.3, 103.5), (58.4, 57.1, 57.4)))
    begin, n = None, 0
    for i, (x, y) in enumerate(loader):
        x, y = (v.to(ARGS.device, non_blocking=True) for v in (x, y))
        x = ((x.float() - mean) / deviation).contiguous(memory_format=torch.channels_last)
        make_step(lambda: F.cross_entropy(forward(x), y), optimizer)()
        if i == 7:  # the workers' start and the first steps
            wait()
            begin = time.perf_counter()
        elif begin:
            n += batch
            if time.perf_counter() - begin > ARGS.seconds + 2:
                break
    wait()
    return {"value": n / (time.perf_counter() - begin), "unit": "images/s", "workers": n_workers}


def airbench():
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import airbench_torch
    airbench_torch.DEVICE = ARGS.device
    if ARGS.small:
        airbench_torch.BATCH = 20
    data = [airbench_torch.read(ARGS.folder / part) for part in ("train", "test")]
    results = []
    for _ in range(1 if ARGS.small else 2):  # the first one warms up
        plain, views, seconds = airbench_torch.train(data, 0, 1 if ARGS.small else 10, True, quiet=True)
        results.append({"value": seconds, "unit": "s", "accuracy": views / 100, "accuracy_plain": plain / 100})
    return results[-1]


def main():
    global ARGS
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    p.add_argument("workloads", nargs="+", choices=[*STEPS, "photos", "airbench"])
    p.add_argument("--mode", choices=["eager", "compile"], default="eager")
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--small", action="store_true")
    p.add_argument("--warm", action="store_true")
    p.add_argument("--folder", type=pathlib.Path)
    ARGS = p.parse_args()
    torch.manual_seed(0)
    if ARGS.small:
        torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    for workload in ARGS.workloads:
        line = {"photos": photos, "airbench": airbench}.get(workload, lambda: measure_steps(workload))()
        peak = {"peak_bytes": torch.cuda.max_memory_allocated()} if ARGS.device == "cuda" else {}
        print(json.dumps({"workload": workload, "mode": ARGS.mode, "version": torch.__version__, **line, **peak}), flush=True)
        if ARGS.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
