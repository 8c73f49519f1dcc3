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
    done = accepted(["train", recipe(name, loss, n, label), "--out", name], "256 samples", " samples/s")
    check("image" not in done.stdout, f"rows of a table are no images: {done.stdout}")
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


def epochs(folder):
    with open(f"{folder}/metrics.jsonl") as f:
        return [m for m in map(json.loads, f) if m["kind"] == "epoch"]


TEST = """data:
  test:
    source: {csv: {files: table.csv, fields: {image: {dtype: f32, columns: [a, b, c]}, LABEL}}}
"""
VALUES = ("accuracy", "f1", "auc", "r2", "rmse", "perplexity", "top2")


def measured(name, metrics, loss, n, label, keys):
    """A run in two parts, cut in the middle of an epoch, measures what a whole one does."""
    path = recipe(name, loss, n, label)
    with open(path, "a") as f:
        f.write(f"metrics: {metrics}\nvalid: 25%\n")
        f.write("micro_batch: 6\n" if name == "parts" else "")
    with open(path) as f:
        text = f.read().replace("checkpoint: {end: false, every: 1000 epochs}\n", "")
    with open(path, "w") as f:
        f.write(text.replace("data:\n", TEST.replace("LABEL", label)))
    accepted(["train", path, "--out", f"{name}-whole"], *keys)
    accepted(["train", path, "--out", f"{name}-cut", "--steps", "17"])
    accepted(["train", path, "--out", f"{name}-cut", "--resume"])
    whole, cut = epochs(f"{name}-whole"), epochs(f"{name}-cut")
    check(len(whole) == 4 and set(keys) <= set(whole[0]), f"{name} has {sorted(whole[0])}")
    pick = lambda lines: [{k: m[k] for k in m if k.removeprefix("valid_") in VALUES} for m in lines]
    check(pick(whole) == pick(cut), f"{name}: {pick(whole)} and, resumed, {pick(cut)}")
    with open(f"{name}-whole/result.json") as f:
        result = json.load(f)
    tested = json.loads(accepted(["eval", f"{name}-whole", "--json", "--batch", "50"]).stdout)
    for key in keys:
        check(abs(result[f"test_{key}"] - tested[key]) < 1e-5 and tested[key] == tested[key],
              f"{name}: {key} is {result[f'test_{key}']} and {tested[key]}")
    return result


def metrics():
    r = measured("numbers", "[r2, rmse]", "mse", 1, ONE, ["r2", "rmse"])
    check(0.5 < r["test_r2"] <= 1, f"r2 is {r['test_r2']}")
    r = measured("labels", "[accuracy, f1, auc]", "bce", 2, TWO, ["accuracy", "f1", "auc"])
    check(r["test_accuracy"] > 0.7 and r["test_auc"] > 0.8, f"labels come to {r}")
    r = measured("parts", "[{top_k: 2}, f1, confusion]", "cross_entropy", 3, "label: {dtype: i32, columns: k}",
                 ["f1", "top2"])
    matrix = r["test_confusion"]
    right = sum(matrix[i][i] for i in range(3))
    check(sum(map(sum, matrix)) == 256 and abs(right / 256 - r["test_accuracy"]) < 1e-9, f"the confusion is {matrix}")
    told = json.loads(accepted(["eval", "parts-whole", "--json"]).stdout)
    check("test_top5" not in r and "top5" not in told, f"top-5 of three classes says nothing: {r} {told}")
    check("top-5" not in accepted(["eval", "parts-whole"], "accuracy").stdout, "nor does it for people")
    refused(["train", "parts.yaml", "--out", "best", "--set", "checkpoint.best=top5"], 1, "no 'top5' is measured")
    measured("five", "[{top_k: 5}]", "cross_entropy", 5, "label: {dtype: i32, columns: k}", ["top5"])  # asked for by name
    accepted(["train", "five.yaml", "--out", "five", "--set", "expect=test_top5 >= 1"], "test_top5 >= 1: reached")
    accepted(["eval", "numbers-whole"], "r2 0.", "rmse 0.")


def rows():
    """Embeddings: triplets of the batch; the nearest of the whole data set, however it is cut into batches."""
    label = "label: {dtype: i32, columns: k}"
    learns("hard", "{triplet: {margin: 0.5}}", 4, label, 0.85)
    learns("semi_hard", "{triplet: {margin: 0.5, mining: semi_hard}}", 4, label, 0.8)
    path = recipe("rows", "triplet", 4, label)
    with open(path) as f:
        text = f.read().replace("checkpoint: {end: false, every: 1000 epochs}", "checkpoint: {best: recall_at_1}")
    with open(path, "w") as f:
        f.write(text.replace("data:\n", TEST.replace("LABEL", label)) + "valid: 25%\nmetrics: [recall_at, {recall_at: 5}]\n")
    accepted(["train", path, "--out", "rows"], "recall_at_1", "recall_at_5")
    lines = epochs("rows")
    check(all("recall_at_1" not in m and 0 < m["valid_recall_at_1"] <= m["valid_recall_at_5"] for m in lines), f"{lines}")
    check(lines[0]["valid_accuracy"] is None, "rows are no classes")
    with open("rows/result.json") as f:
        result = json.load(f)
    check(0.75 < result["test_recall_at_1"] <= result["test_recall_at_5"] <= 1, f"{result}")
    for batch in ("50", "7", "128"):
        tested = json.loads(accepted(["eval", "rows", "--json", "--batch", batch]).stdout)
        check(abs(tested["recall_at_1"] - result["test_recall_at_1"]) < 0.01, f"in batches of {batch}: {tested}")
    refused(["predict", "rows", "table.csv"], 1, "learned from f32[3] a sample, not from pictures", "stoker eval rows")
    refused(["train", path, "--set", "metrics=[f1]"], 1, "which only 'recall_at' measures, not 'f1'")
    refused(["train", path, "--set", "metrics=[{recall_at: 0}]"], 1, "from 1 to 99999")
    refused(["train", recipe("points", "mse", 1, ONE), "--set", "metrics=[recall_at]"], 1, "is of classes")
    with open("words.yaml", "w") as f:
        f.write("data: {train: {source: {synthetic: {fields: {tokens: {shape: [10], below: 13}, label: {shape: [10], below: 13}}, "
                "samples: 16}}}}\nbatch: 8\nmodel: {layers: [{embedding: {rows: 13, width: 4}}, {dense: 13}]}\nloss: {cross_entropy: {}}\n"
                "epochs: 1\nmetrics: [recall_at]\n")
    refused(["train", "words.yaml", "--out", "words"], 1, "compares one row of numbers a sample")
    refused(["train", recipe("bad", "triplet", 4, ONE)], 1, "'triplet' takes one row of numbers, and a class number")


def refusals():
    path = recipe("bad", "mse", 1, ONE)
    refused(["train", path, "--set", "metrics=[f2]"], 1, "no metric 'f2'", "'f1'")
    refused(["train", path, "--set", "metrics=[confusion]"], 1, "metric 'confusion' is of classes")
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
metrics()
rows()
refusals()
end()
