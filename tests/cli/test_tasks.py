#!/usr/bin/env python3
"""Other tasks than images to classes: regression and several labels from tables, losses from recipes, what they refuse.

usage: test_tasks.py STOKER WORK_FOLDER
"""
import json
import random

from program import accepted, begin, check, end, losses, refused

TABLE = """
data:
  train:
    source: {csv: {files: table.csv, fields: {image: {dtype: f32, columns: [a, b, c]}, LABEL}}}
    shuffle: true
batch: 16
model: {mlp: {hidden: [16], classes: N}}
loss: LOSS
optimizer: {adam: {lr: 0.02}}
epochs: 4
log: {every: 1 step}
checkpoint: {end: false, every: 1000 epochs}
"""
ONE, TWO = "label: {dtype: f32, columns: y}", "label: {dtype: f32, columns: [p, q]}"


def write_table():
    random.seed(5)
    with open("table.csv", "w") as f:
        f.write("a,b,c,y,p,q,k\n")
        for _ in range(256):
            a, b, c = (random.uniform(-1, 1) for _ in range(3))
            k = 0 if a > 0.2 else 1 if b > 0 else 2
            f.write(f"{a:.5f},{b:.5f},{c:.5f},{2 * a - b * c:.5f},{int(a > b)},{int(c > 0)},{k}\n")


def recipe(name, loss, n, label):
    with open(f"{name}.yaml", "w") as f:
        f.write(TABLE.replace("LOSS", loss).replace("LABEL", label).replace("N}}", f"{n}}}}}"))
    return f"{name}.yaml"


def learns(name, loss, n, label, share=0.7):
    accepted(["train", recipe(name, loss, n, label), "--out", name])
    seen = losses(name)
    check(len(seen) == 64, f"{name} has {len(seen)} steps")
    first, last = sum(seen[:8]), sum(seen[-8:])
    check(last < share * first, f"the loss of {name} goes from {first / 8:.4f} to {last / 8:.4f}")


def every_loss():
    learns("mse", "mse", 1, ONE)
    learns("mae", "{mae: {}}", 1, ONE, 0.8)
    learns("huber", "{huber: {delta: 0.5}}", 1, ONE)
    learns("mse2", "mse", 2, TWO, 0.8)
    learns("bce", "{bce: {positive_weight: 2}}", 2, TWO, 0.8)
    learns("bce1", "bce", 1, "label: {dtype: u8, columns: p}", 0.8)
    learns("dice", "{dice: {smooth: 0.1}}", 2, TWO, 0.9)
    learns("weighted", "{cross_entropy: {class_weights: [1, 2, 0.5]}}", 3, "label: {dtype: i32, columns: k}")
    learns("named", "{mse: {target: goal}}", 1, ONE.replace("label", "goal"))
    learns("itself", "{mse: {target: image}}", 3, ONE, 0.9)


def refusals():
    refused(["train", recipe("bad", "mse", 3, ONE)], 1, "loss 'mse' needs vectors for labels: add the stage {one_hot: 3}")
    refused(["train", recipe("bad", "bce", 3, TWO)], 1, "the model's output is [3] a sample, and the field 'label' f32[2]",
            "'bce' compares numbers of equal shapes")
    refused(["train", recipe("bad", "{mse: {target: nothing}}", 1, ONE)], 1, "bad.yaml:", "'nothing'")
    refused(["train", recipe("bad", "{cross_entropy: {class_weights: [1, 2]}}", 3, "label: {dtype: i32, columns: k}")], 1,
            "'class_weights' has 2 numbers, the model tells 3 classes apart")
    refused(["train", recipe("bad", "{huber: {delta: 0}}", 1, ONE)], 1, "delta")
    refused(["train", recipe("bad", "hubert", 1, ONE)], 1, "no loss 'hubert'", "huber")


begin()
write_table()
every_loss()
refusals()
end()
