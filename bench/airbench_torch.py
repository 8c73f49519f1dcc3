#!/usr/bin/env python3
"""The network and schedule of recipes/cifar-airbench.yaml in PyTorch, on the same JPEG files, after "94% on CIFAR-10 in 3.29
Seconds on a Single GPU" (Jordan 2024).

usage: airbench_torch.py FOLDER [--epochs 10] [--seeds 1] [--threads 2] [--bf16] [--rate]

FOLDER holds train/CLASS/*.jpg and test/CLASS/*.jpg. Prints the accuracy without and with test-time augmentation for each
seed; with --rate only the FLOP/s of large products in bf16, which is what the time of a run is held against. Needs torch and
Pillow. A run takes ten minutes on two cores that multiply bf16, and hours on others.
"""
import argparse
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

BATCH, WIDTHS = 1024, (64, 256, 256)
DEVICE = "cpu"  # bench/gpu_torch.py has it be a GPU
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def read(folder):
    classes = sorted(p for p in folder.iterdir() if p.is_dir())
    files = [(path, i) for i, c in enumerate(classes) for path in sorted(c.iterdir())]
    pixels = np.stack([np.asarray(Image.open(path).convert("RGB")) for path, _ in files])
    x = (torch.from_numpy(pixels).float() / 255 - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    return x.to(DEVICE), torch.tensor([i for _, i in files], device=DEVICE)


def conv(n_in, n_out):
    layer = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight.data[:n_in])
    return layer


def norm(n):
    layer = nn.BatchNorm2d(n, eps=1e-12, momentum=0.4)
    layer.weight.requires_grad_(False)
    return layer


class Net(nn.Module):
    def __init__(self, images):
        super().__init__()
        self.first = nn.Conv2d(3, 24, 2)
        self.first.weight.requires_grad_(False)
        nn.init.zeros_(self.first.bias)
        layers, n = [nn.GELU()], 24
        for width in WIDTHS:
            layers += [conv(n, width), nn.MaxPool2d(2), norm(width), nn.GELU(), conv(width, width), norm(width), nn.GELU()]
            n = width
        self.body = nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(n, 10, bias=False))
        self.whiten(images)

    def whiten(self, images, eps=5e-4):
        patches = F.unfold(images, 2).transpose(1, 2).reshape(-1, 12).double()
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        filters = (vectors / torch.sqrt(values + eps)).T.flip(0).reshape(12, 3, 2, 2).float().cpu()
        self.first.weight.data.copy_(torch.cat([filters, -filters]))

    def forward(self, x):
        return self.body(self.first(x)) / 9


def batches(x, y, epoch, mirrored):
    """Mirrored by turns, moved by up to two pixels, in random order."""
    flip = mirrored ^ bool(epoch % 2)
    padded = F.pad(torch.where(flip.to(x.device)[:, None, None, None], x.flip(-1), x), (2, 2, 2, 2), "reflect")
    windows = padded.unfold(2, x.shape[2], 1).unfold(3, x.shape[3], 1)  # [n,3,5,5,...], no copy
    for rows in torch.randperm(len(x))[: len(x) // BATCH * BATCH].split(BATCH):
        moves = torch.randint(0, 5, (len(rows), 2)).to(x.device)
        rows = rows.to(x.device)
        yield windows[rows, :, moves[:, 0], moves[:, 1]].contiguous(memory_format=torch.channels_last), y[rows]


def mean_of_views(net, x):
    padded = F.pad(x, (1, 1, 1, 1), "reflect")
    views = [(0.5, x), (0.25, padded[:, :, :-2, :-2]), (0.25, padded[:, :, 2:, 2:])]
    return sum(share / 2 * (net(v) + net(v.flip(-1))) for share, v in views)


def accuracy(net, x, y, output):
    net.eval()
    with torch.no_grad():
        right = sum((output(net, part).argmax(1) == labels).sum().item() for part, labels in zip(x.split(500), y.split(500)))
    net.train()
    return 100 * right / len(y)


def make_optimizer(net):
    biases = [p for name, p in net.named_parameters() if p.requires_grad and name.startswith("body") and p.dim() == 1]
    others = [p for p in net.parameters() if p.requires_grad and not any(p is b for b in biases)]
    rate = 11.5 / (1 + 1 / (1 - 0.85))  # of the mean loss
    return torch.optim.SGD([{"params": biases, "lr": 64 * rate, "weight_decay": 0.0153 / 11.5 / 64},
                            {"params": others, "lr": rate, "weight_decay": 0.0153 / 11.5}], momentum=0.85, nesterov=True)


def train(data, seed, epochs, bf16, quiet=False):
    """Accuracies without and with views, and the seconds of the training."""
    (x, y), (test_x, test_y) = data
    torch.manual_seed(seed)
    net = Net(x[torch.randperm(len(x))[:5000]]).to(DEVICE, memory_format=torch.channels_last).train()
    optimizer = make_optimizer(net)
    n_steps = epochs * (len(x) // BATCH)
    n_up = int(0.23 * n_steps)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: float(np.interp(t, [0, n_up, n_steps], [0.2, 1, 0.07])))
    slow = {name: v.clone() for name, v in net.state_dict().items() if v.is_floating_point()}
    mirrored, step, begin = torch.rand(len(x)) < 0.5, 0, time.time()
    for epoch in range(epochs):
        net.first.bias.requires_grad_(epoch < 3)
        start, last = time.time(), torch.zeros(())
        for images, labels in batches(x, y, epoch, mirrored):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=bf16):
                logits = net(images)
            loss = F.cross_entropy(logits.float(), labels, label_smoothing=0.2)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            step, last = step + 1, loss.detach()
            if step % 5 == 0:
                held = 0.95**5 * (step / n_steps)**3
                for name, v in net.state_dict().items():
                    if name in slow:
                        slow[name].lerp_(v, 1 - held)
                        v.copy_(slow[name])
        last = last.item()  # which waits for the device
        if not quiet:
            print(f"seed {seed} epoch {epoch + 1}/{epochs} last loss {last:.4f} {time.time() - start:.0f} s", flush=True)
    seconds = time.time() - begin
    return accuracy(net, test_x, test_y, lambda n, part: n(part)), accuracy(net, test_x, test_y, mean_of_views), seconds


def rate():
    """FLOP/s of the fastest of twenty products of 2,048 x 2,048 in bf16."""
    a, b = (torch.randn(2048, 2048).bfloat16() for _ in range(2))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - start)
    return 2 * 2048**3 / min(times)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--rate", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.rate:
        print(f"products in bf16: {rate() / 1e12:.3f} TFLOP/s")
        return
    data = read(args.folder / "train"), read(args.folder / "test")
    results = []
    for seed in range(args.seeds):
        plain, views, _ = train(data, seed, args.epochs, args.bf16)
        results.append(views)
        print(f"seed {seed} accuracy {plain:.2f} %, with views {views:.2f} %", flush=True)
    mean = sum(results) / len(results)
    spread = math.sqrt(sum((r - mean)**2 for r in results) / max(1, len(results) - 1))
    print(f"mean {mean:.2f} %, deviation {spread:.2f}")


if __name__ == "__main__":
    main()
