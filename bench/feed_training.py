#!/usr/bin/env python3
"""ResNet-18 trained by PyTorch on CIFAR-10's JPEG files, fed by Stoker, PyTorch's own DataLoader and DALI in turns: images a second
of the whole loop, and the share of its time that it waits for a batch.

usage: feed_training.py [--build FOLDER] [--seconds S] [--rounds N] [--precision f32|bf16] [--compute N] [--loading N] [FEED...]

STOKER_DATA has cifar10/train. The network computes in `--compute` threads, and batches of 128 are made by `--loading` others, so
that each has its core (1 and 1). Each is a process of its own; medians of the rounds, and the range. FEEDs:
  constant             one batch, again and again: what the network alone can do
  stoker               stoker.torch.DataLoader on recipes/bench-cifar-jpeg.yaml
  pil-0, pil-2         torch.utils.data.DataLoader with no worker and with 2, by PIL and torchvision's transforms
  tensor-0, tensor-2   the same by torchvision's decode_image
  dali                 DALI's iterator, where it is installed
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FEEDS = ["constant", "stoker", "pil-0", "pil-2", "tensor-0", "tensor-2", "dali"]
BATCH = 128


def by_pytorch(decoder, workers, folder):
    import torch
    from torchvision import io, transforms
    from torchvision.datasets import ImageFolder
    usual = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
    norm = transforms.Normalize([0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616])
    if decoder == "pil":
        images = ImageFolder(folder, transforms.Compose([*usual, transforms.ToTensor(), norm]))
    else:
        images = ImageFolder(folder, transforms.Compose([*usual, lambda image: image / 255, norm]),
                             loader=lambda path: io.decode_image(io.read_file(path), io.ImageReadMode.RGB))
    return torch.utils.data.DataLoader(images, BATCH, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=workers > 0)


def endless(loader):
    while True:
        yield from loader


def batches(feed, threads, data):
    if feed == "stoker":
        import stoker.torch
        recipe = os.path.join(HERE, "recipes", "bench-cifar-jpeg.yaml")
        return endless(stoker.torch.DataLoader(recipe, num_workers=threads, drop_last=True, fields=("image", "label")))
    if feed == "dali":
        import dali_torch
        return dali_torch.batches("bench-cifar-jpeg", data, threads)
    decoder, _, workers = feed.partition("-")
    loader = by_pytorch("pil" if feed == "constant" else decoder, int(workers or 0), os.path.join(data, "cifar10", "train"))
    if feed != "constant":
        return endless(loader)
    one = next(iter(loader))
    return iter(lambda: one, None)


def train(args, feed):
    """[images a second, share of time waiting]"""
    import torch
    import torch.nn.functional as F

    from ddp_torch import resnet18
    torch.manual_seed(1)
    torch.set_num_threads(args.compute)
    model = resnet18().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    made = batches(feed, args.loading, os.environ.get("STOKER_DATA", os.path.join(HERE, "..", "shared", "data")))

    def step():
        begin = time.perf_counter()
        images, labels = next(made)
        waited = time.perf_counter() - begin
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = F.cross_entropy(model(images.contiguous(memory_format=torch.channels_last)), labels.long())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return waited

    for _ in range(2):
        step()
    begin, waited, n = time.perf_counter(), 0, 0
    while n < 3 or time.perf_counter() - begin < args.seconds:
        waited += step()
        n += 1
    took = time.perf_counter() - begin
    return [n * BATCH / took, waited / took]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("feeds", nargs="*", default=FEEDS, metavar="FEED")
    p.add_argument("--build", default=os.path.join(HERE, "build"))
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    p.add_argument("--compute", type=int, default=1)
    p.add_argument("--loading", type=int, default=1)
    p.add_argument("--one", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        print(json.dumps(train(args, args.one)))
        return
    found = {feed: [] for feed in args.feeds}
    environment = dict(os.environ, PYTHONPATH=os.path.join(args.build, "python"), OMP_NUM_THREADS=str(args.compute))
    for _ in range(args.rounds):
        for feed in args.feeds:
            command = [sys.executable, os.path.abspath(__file__), "--one", feed, "--seconds", str(args.seconds), "--precision", args.precision,
                       "--compute", str(args.compute), "--loading", str(args.loading)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
            if done.returncode:
                print(f"without {feed}: {(done.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr, flush=True)
                continue
            found[feed].append(json.loads(done.stdout.splitlines()[-1]))
    alone = statistics.median(rate for rate, _ in found["constant"]) if found.get("constant") else 0
    print("| Fed by | images/s | range | of constant | waiting |\n|---|---:|---:|---:|---:|")
    for feed, of in found.items():
        if not of:
            continue
        rates = [rate for rate, _ in of]
        share = f"{statistics.median(rates) / alone:.2f}" if alone else ""
        print(f"| {feed} | {statistics.median(rates):,.1f} | {min(rates):,.1f}-{max(rates):,.1f} | {share} | "
              f"{100 * statistics.median(w for _, w in of):.1f} % |")


if __name__ == "__main__":
    main()
