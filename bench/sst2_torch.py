#!/usr/bin/env python3
"""The networks of recipes/sst2-lstm.yaml and sst2-bert-mini.yaml in PyTorch: the same data, tokens, sizes, optimiser and
schedule, with three seeds.

usage: sst2_torch.py lstm|bert FOLDER [--first 1] [--seeds 3] [--epochs N] [--threads 2]

FOLDER holds train.tsv, dev.tsv, test.tsv and tokenizer.json, as data/sst2 does after `./dev recipes sst2-lstm`. Needs torch
and tokenizers; bert needs transformers. The accuracy is that of the last epoch's weights, on test.tsv; that of the epoch
with the least loss on dev.tsv, which varies more from seed to seed, stands next to it.
"""
import argparse
import math
import pathlib
import random

import torch
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pack_padded_sequence

LENGTH, EPOCHS, BATCH = 32, {"lstm": 8, "bert": 3}, 32


def read(folder, name, length):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length, pad_id=0)
    rows = [line.split("\t") for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    ids = torch.tensor([e.ids for e in tokenizer.encode_batch([text for text, _ in rows])])
    return ids, torch.tensor([int(label) for _, label in rows])


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(6000, 128)
        self.lstm = torch.nn.LSTM(128, 128, batch_first=True, bidirectional=True)
        self.dense = torch.nn.Linear(256, 2)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, ids):
        lengths = (ids != 0).sum(1)
        x = pack_padded_sequence(self.dropout(self.embedding(ids)), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(x)
        return self.dense(self.dropout(torch.cat([h[0], h[1]], 1)))


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification
        self.net = BertForSequenceClassification(BertConfig(
            vocab_size=6000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
            max_position_embeddings=LENGTH, num_labels=2))

    def forward(self, ids):
        return self.net(ids, attention_mask=ids != 0).logits


def make_optimizer(kind, model):
    if kind == "lstm":
        return torch.optim.Adam(model.parameters(), lr=1e-3), 0
    plain = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
    decayed = [p for n, p in model.named_parameters() if not ("bias" in n or "LayerNorm" in n)]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=3e-4), 1


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    logits = torch.cat([model(data[0][i:i + 256]) for i in range(0, len(data[0]), 256)])
    loss = torch.nn.functional.cross_entropy(logits, data[1]).item()
    return loss, (logits.argmax(1) == data[1]).float().mean().item()


def train(kind, parts, seed, epochs):
    torch.manual_seed(seed)
    random.seed(seed)
    (ids, labels), valid, test = parts
    model = Lstm() if kind == "lstm" else Bert()
    optimizer, warmup = make_optimizer(kind, model)
    per_epoch = -(-len(ids) // BATCH)
    total, warm = per_epoch * epochs, per_epoch * warmup

    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    best = (math.inf, 0)
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(ids)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(ids[rows]), labels[rows]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            schedule.step()
        loss, accuracy = evaluate(model, valid)[0], evaluate(model, test)[1]
        if loss < best[0]:
            best = (loss, accuracy)
    return accuracy, best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=("lstm", "bert"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts = [read(args.folder, name, LENGTH) for name in ("train.tsv", "dev.tsv", "test.tsv")]
    found = []
    for seed in range(args.first, args.first + args.seeds):
        last, best = train(args.kind, parts, seed, args.epochs or EPOCHS[args.kind])
        found.append(last)
        print(f"{args.kind} seed {seed}: test accuracy {100 * last:.2f} %, of the least validation loss {100 * best:.2f} %",
              flush=True)
    print(f"{args.kind}: mean {100 * sum(found) / len(found):.2f} %; torch {torch.__version__}")


if __name__ == "__main__":
    main()
