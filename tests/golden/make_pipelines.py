#!/usr/bin/env python3
"""Writes pipelines_golden.h: what tf.data gives for sequences of take, skip, repeat and shard with a batch in the end,
drawn at random, and for zips.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tensorflow-cpu
    /tmp/golden/bin/python tests/golden/make_pipelines.py
"""
import contextlib
import os
import pathlib
import random

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
Dataset = tf.data.Dataset
MOST_OPS, MOST_OUT, MOST_CHILDREN = 5, 96, 3


def numbers(values):
    return "{" + ", ".join(str(v) for v in values) + "}"



def draw_ops(rng, n):
    """Operations that leave some samples, each as (name, a, b)."""
    ops = []
    for _ in range(rng.randint(1, MOST_OPS)):
        kind = rng.choice(["take", "skip", "repeat", "shard"])
        if kind == "take":
            op = (kind, rng.randint(1, n), 0)  # more is an error in Stoker
            after = op[1]
        elif kind == "skip":
            op = (kind, rng.randint(0, n - 1), 0)
            after = n - op[1]
        elif kind == "repeat":
            op = (kind, rng.randint(1, 3), 0)
            after = n * op[1]
        else:
            count = rng.randint(1, min(n, 4))
            op = (kind, count, rng.randrange(count))
            after = (n - op[2] + count - 1) // count
        if after < 1 or after > MOST_OUT:
            continue
        ops.append(op)
        n = after
    return ops


def print_pipelines():
    rng = random.Random(20261121)
    print("/* take a, skip a, repeat a, shard a of index b: t, s, r, h. Then batches of N, the last one kept or not. */")
    print("static const struct {\n    int n, n_ops;\n    struct {\n        char kind;\n        int a, b;\n    } op[%d];\n"
          "    int batch;\n    bool drop;\n    int n_batches, n_last, n_samples;\n    int sample[%d];\n"
          "} golden_pipeline[] = {" % (MOST_OPS, MOST_OUT))
    n_cases = 0
    while n_cases < 80:
        n = rng.randint(1, 30)
        ops, batch, drop = draw_ops(rng, n), rng.randint(1, 9), rng.random() < 0.5
        dataset = Dataset.range(n)
        for kind, a, b in ops:
            dataset = {"take": lambda: dataset.take(a), "skip": lambda: dataset.skip(a),
                       "repeat": lambda: dataset.repeat(a), "shard": lambda: dataset.shard(a, b)}[kind]()
        batches = [[int(x) for x in b] for b in dataset.batch(batch, drop_remainder=drop)]
        samples = [x for b in batches for x in b]
        if not ops or not batches:
            continue
        letters = {"take": "t", "skip": "s", "repeat": "r", "shard": "h"}
        text = ", ".join(f"{{'{letters[k]}', {a}, {b}}}" for k, a, b in ops)
        print(f"    {{{n}, {len(ops)}, {{{text}}}, {batch}, {str(drop).lower()}, {len(batches)}, {len(batches[-1])}, "
              f"{len(samples)}, {numbers(samples)}}},")
        n_cases += 1
    print("};\n")


def print_zips():
    print("/* zip of data sets of these lengths: as many samples as the shortest has, each the number of its place. */")
    print("static const struct {\n    int n_children;\n    int64_t n[%d];\n    int n_samples;\n    int sample[%d][%d];\n"
          "} golden_zip[] = {" % (MOST_CHILDREN, 8, MOST_CHILDREN))
    for lengths in ([3, 5], [5, 3], [4, 4, 4], [7, 2, 5], [1, 6]):
        rows = [[int(x) for x in row] for row in Dataset.zip(tuple(Dataset.range(100 * i, 100 * i + n) for i, n in enumerate(lengths)))]
        print(f"    {{{len(lengths)}, {numbers(lengths)}, {len(rows)}, {{{', '.join(numbers(r) for r in rows)}}}}},")
    print("};\n")


def main():
    with open(HERE / "pipelines_golden.h", "w") as f, contextlib.redirect_stdout(f):
        print("/* Written by make_pipelines.py with TensorFlow %s. */" % tf.__version__)
        print("/* clang-format off */\n#ifndef TESTS_GOLDEN_PIPELINES_GOLDEN_H\n#define TESTS_GOLDEN_PIPELINES_GOLDEN_H\n")
        print("#include <stdbool.h>\n#include <stdint.h>\n")
        print_pipelines()
        print_zips()
        print("#endif")


if __name__ == "__main__":
    main()
