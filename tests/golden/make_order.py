#!/usr/bin/env python3
"""Writes order_golden.h: what tf.data does with interleave, shard policies, shuffle windows and mixing.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tensorflow-cpu
    /tmp/golden/bin/python tests/golden/make_order.py
"""
import contextlib
import os
import pathlib
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

HERE = pathlib.Path(__file__).parent
Dataset = tf.data.Dataset
Policy = tf.data.experimental.AutoShardPolicy
MOST_CHILDREN, MOST_SAMPLES = 6, 64

# Lengths of the data sets, cycle, block. The first is the example of tf.data's guide: five of three, cycle 2, block 4.
INTERLEAVES = [
    ([6, 6, 6, 6, 6], 2, 4),
    ([3, 2, 4], 2, 1),
    ([4, 2, 6, 0, 3], 2, 2),
    ([5, 5, 5], 3, 2),
    ([1, 2, 3, 4], 3, 3),
    ([4, 4, 4, 4], 2, 2),
    ([0, 0, 5, 1], 2, 3),
    ([7, 1, 1, 1, 1, 9], 3, 2),
    ([3, 5, 2], 9, 1),
    ([3, 0, 5], 1, 2),
    ([10, 3], 2, 7),
]


def child(i, n):
    return Dataset.range(100 * i, 100 * i + n)


def interleaved(lengths, cycle, block):
    starts = [100 * i for i in range(len(lengths))]
    tensors = (tf.constant(starts, tf.int64), tf.constant(lengths, tf.int64))
    dataset = Dataset.from_tensor_slices(tensors).interleave(
        lambda start, n: Dataset.range(start, start + n), cycle_length=cycle, block_length=block)
    return [int(x) for x in dataset]


def numbers(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def print_interleaves():
    print("static const struct {\n    int n_children;\n    int64_t n[%d];\n    int64_t cycle, block;\n    int n_samples;\n"
          "    int sample[%d]; /* 100 * data set + place in it */\n} golden_interleave[] = {" % (MOST_CHILDREN, MOST_SAMPLES))
    for lengths, cycle, block in INTERLEAVES:
        samples = interleaved(lengths, cycle, block)
        print(f"    {{{len(lengths)}, {numbers(lengths)}, {cycle}, {block}, {len(samples)}, {numbers(samples)}}},")
    print("};\n")


def print_shards():
    folder = tempfile.mkdtemp()
    paths, n = [], 0
    for i in range(5):
        paths.append(f"{folder}/{i}.tfrecord")
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(2 + i):
                writer.write(str(n).encode())
                n += 1

    def shard(dataset, policy, n_shards, i_shard):
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        try:
            return [int(x.numpy()) for x in distribute._AutoShardDataset(dataset.with_options(options), n_shards, i_shard)]
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
            return None

    def files():
        return tf.data.TFRecordDataset(paths)

    def plain():
        return Dataset.range(20)

    def hinted():
        return Dataset.range(20).shard(distribute.SHARD_HINT, distribute.SHARD_HINT).skip(1)

    print("/* Files of 2, 3, 4, 5 and 6 records, 20 records that are not in files, and range(20).shard(HINT).skip(1).\n"
          " * -1 samples: an error. */")
    print("static const struct {\n    int source; /* 0: files; 1: none; 2: with a place for a shard */\n"
          "    int policy, n_shards, i_shard, n_samples;\n    int sample[20];\n} golden_shard[] = {")
    for policy in (Policy.OFF, Policy.AUTO, Policy.FILE, Policy.DATA, Policy.HINT):
        for source, make in enumerate((files, plain, hinted)):
            if source == 2 and policy != Policy.HINT:
                continue
            if source == 1 and policy == Policy.HINT:
                continue  # a range without a place is searched for files, which fails
            for n_shards, i_shard in ((1, 0), (3, 0), (3, 1), (3, 2), (7, 1)):
                samples = shard(make(), policy, n_shards, i_shard)
                count = -1 if samples is None else len(samples)
                print(f"    {{{source}, {policy.value}, {n_shards}, {i_shard}, {count}, {numbers(samples or [0])}}},")
    print("};\n")


def print_window():
    n, size, rounds = 8, 3, 20000
    counts = [[0] * n for _ in range(n)]
    dataset = Dataset.range(n).shuffle(size, seed=1).batch(n).repeat(rounds)
    for row in dataset.as_numpy_iterator():
        for place, sample in enumerate(row):
            counts[place][sample] += 1
    print(f"/* range({n}).shuffle({size}), {rounds} epochs: how often each place holds each sample. */")
    print(f"static const int golden_window[{n}][{n}] = {{")
    for row in counts:
        print(f"    {numbers(row)},")
    print("};\n")


def print_mix():
    print("/* sample_from_datasets([range(3), range(100, 105)]) by weights of 0 and 1, where nothing is drawn at random. */")
    print("static const struct {\n    double weight[2];\n    int stop_at_empty, n_samples, sample[8];\n} golden_mix[] = {")
    for weights, stop in (([1.0, 0.0], True), ([0.0, 1.0], True)):
        dataset = Dataset.sample_from_datasets([child(0, 3), child(1, 5)], weights, stop_on_empty_dataset=stop)
        samples = [int(x) for x in dataset]
        print(f"    {{{numbers(weights)}, {int(stop)}, {len(samples)}, {numbers(samples)}}},")
    print("};")
    same = Dataset.sample_from_datasets([child(0, 30), child(1, 50)], [0.5, 0.5], seed=1, stop_on_empty_dataset=True)
    epochs = [[int(x) for x in same] for _ in range(3)]
    print(f"/* Whether its draws are the same in each epoch. */\nenum {{ GOLDEN_MIX_REPEATS = {int(epochs[0] == epochs[1] == epochs[2])} }};")


def main():
    with open(HERE / "order_golden.h", "w") as f, contextlib.redirect_stdout(f):
        print("/* Written by make_order.py with TensorFlow %s. */" % tf.__version__)
        print("/* clang-format off */\n#ifndef TESTS_GOLDEN_ORDER_GOLDEN_H\n#define TESTS_GOLDEN_ORDER_GOLDEN_H\n")
        print("#include <stdint.h>\n")
        print_interleaves()
        print_shards()
        print_window()
        print_mix()
        print("\n#endif")


if __name__ == "__main__":
    main()
