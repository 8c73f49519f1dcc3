#!/usr/bin/env python3
"""Networks of PyTorch that stoker.from_torch takes over: 20 steps of SGD here and there, from the same weights, on the same batches.

usage: from_torch.py [--write PAGE] [NETWORK...]

PYTHONPATH=build/python; needs torch, torchvision, transformers and onnxscript. Both train, batch norms by the statistics of each batch;
dropouts are 0, as their random numbers differ. --write replaces the table between the marks "from-torch" in the page.
"""
import os
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torchvision
import transformers

import stoker

STEPS, BATCH = 20, 8
RATES = {True: 3e-4, False: 0.01}  # of images, where more lets PyTorch drift from itself after a change of 1e-7; and of texts


class Logits(torch.nn.Module):
    """Of a network of transformers: tokens in, logits out. A causal one gets its mask, since transformers gather theirs from one that
    has the batch in front, which no layer can."""

    def __init__(self, network, causal=False):
        super().__init__()
        self.network, self.causal = network, causal

    def forward(self, tokens):
        n = tokens.shape[1]
        mask = torch.full((n, n), -1e9).triu(1)[None, None] if self.causal else None
        return self.network(input_ids=tokens, attention_mask=mask).logits


def images(network):
    return lambda: (network(weights=None, num_classes=10), torch.randn(BATCH * STEPS, 3, 224, 224), torch.randint(0, 10, (BATCH * STEPS,)))


def bert():
    settings = transformers.BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
                                       max_position_embeddings=64, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    network = transformers.BertForSequenceClassification(settings)
    return Logits(network), torch.randint(0, 1000, (BATCH * STEPS, 32)), torch.randint(0, 2, (BATCH * STEPS,))


def gpt2():
    settings = transformers.GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=2, n_positions=64, use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    network = transformers.GPT2LMHeadModel(settings)
    return Logits(network, causal=True), torch.randint(0, 1000, (BATCH * STEPS, 32)), torch.randint(0, 1000, (BATCH * STEPS, 32))


NETWORKS = {
    "resnet18": images(torchvision.models.resnet18),
    "mobilenet_v3_small": images(torchvision.models.mobilenet_v3_small),
    "vit_b_16": images(torchvision.models.vit_b_16),
    "bert": bert,
    "gpt2": gpt2,
}


def theirs(module, x, y):
    optimizer, found = torch.optim.SGD(module.parameters(), RATES[x.is_floating_point()]), []
    for a, b in zip(x.split(BATCH), y.split(BATCH)):
        loss = torch.nn.functional.cross_entropy(module(a).flatten(0, -2), b.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def ours(layer, x, y, folder):
    is_image, found = x.is_floating_point(), []
    names = ("image" if is_image else "tokens", "label")
    for name, array in zip(names, (x.permute(0, 2, 3, 1).contiguous() if is_image else x, y)):
        np.save(f"{folder}/{name}.npy", array.numpy() if array.is_floating_point() else array.numpy().astype(np.int32))
    data = {"train": {"source": {"npy": {name: f"{folder}/{name}.npy" for name in names}}}}
    stoker.train({"name": "r", "batch": BATCH, "epochs": 1, "precision": "f32", "data": data, "model": {"layers": [layer]},
                  "loss": "cross_entropy", "optimizer": {"sgd": {"lr": RATES[is_image]}}}, out=f"{folder}/run", progress=False,
                 callbacks=lambda event: found.append(event["loss"]) if event["kind"] == "step" else None)
    return found


def compare(name):
    """A row of the table, and whether the losses are within 1e-3 of PyTorch's."""
    torch.manual_seed(1)
    module, x, y = NETWORKS[name]()
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        layer = stoker.from_torch(module, x[:BATCH], os.path.join(folder, "net.onnx"))
        taken = time.perf_counter() - start
        a = ours(layer, x, y, folder)
    b = theirs(module, x, y)
    off = max(abs(p - q) for p, q in zip(a, b))
    print(f"{name}: loss {a[0]:.4f} -> {a[-1]:.4f} in {len(a)} steps, at most {off:.1e} from PyTorch's; taken over in {taken:.1f} s", flush=True)
    n = sum(p.numel() for p in module.parameters())
    return f"| {name} | {n:,} | {b[0]:.4f} to {b[-1]:.4f} | {off:.1e} |", len(a) == STEPS and off < 1e-3


def main():
    names = sys.argv[1:]
    page = names.pop(names.index("--write") + 1) if "--write" in names else None
    names = [n for n in names if n != "--write"] or list(NETWORKS)
    rows = [compare(name) for name in names]
    if page:
        with open(page) as f:
            text = f.read()
        before, rest = text.split("<!-- from-torch -->\n")
        after = rest.split("<!-- end from-torch -->\n")[1]
        table = "".join(row + "\n" for row, _ in rows)
        with open(page, "w") as f:
            f.write(f"{before}<!-- from-torch -->\ntorch {torch.__version__}, torchvision {torchvision.__version__}, transformers "
                    f"{transformers.__version__}:\n\n| Network | Parameters | PyTorch's loss | Largest difference of a step |\n|---|---:|---:|---:|\n"
                    f"{table}<!-- end from-torch -->\n{after}")
    return 0 if all(fits for _, fits in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
