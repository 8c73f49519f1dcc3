#!/usr/bin/env python3
"""Writes scan_golden.h: what tf.data does with filters, padded batches,
buckets, windows, unbatch and flat_map.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tensorflow-cpu
    /tmp/golden/bin/python tests/golden/make_scan.py
"""
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
Dataset = tf.data.Dataset

# f3: keeps what 3 divides; s4: skips 4; t2: takes 2 * 5; r2: two passes; h3: shard 1 of 3. Of 40 numbers.
FILTERS = ["f3", "s4f3", "f3s4", "t4f3", "f3t1", "h3f2", "f2h3", "f2r2", "r2f3", "s1t5f2f3", "t6h2f5r3", "f1", "f2f3f5"]


# Lengths of the samples, batch size, drop_remainder, T (0: the longest), value. Sample i is 100 * i, 100 * i + 1, ...
PADDED = [
    ([3, 1, 4, 1, 5], 2, False, 0, 0),
    ([3, 1, 4, 1, 5], 2, True, 0, -1),
    ([3, 1, 4, 1, 5], 2, False, 6, 9),
    ([3, 1, 4, 1, 5], 2, False, 4, 0),
    ([0, 0, 2], 2, False, 0, 7),
    ([2, 6, 0, 3, 3, 1], 4, False, 0, 1),
]


def ragged(lengths):
    return Dataset.from_generator(lambda: ([100 * i + k for k in range(n)] for i, n in enumerate(lengths)),
                                  output_signature=tf.TensorSpec([None], tf.int32))


def padded(lengths, n, drop, length, value):
    dataset = ragged(lengths).padded_batch(n, [length or None], tf.constant(value, tf.int32), drop)
    shapes, values, failed = [], [], 0
    try:
        for batch in dataset:
            shapes += batch.shape
            values += batch.numpy().ravel().tolist()
    except tf.errors.OpError:
        failed = 1
    return shapes, values, failed


def print_padded():
    print("\n/* Padded batches of int32, sample i being 100 * i, 100 * i + 1, ...; failed: the next batch is an error. */")
    print("static const struct {\n    int n_samples;\n    int64_t length[8];\n    int n;\n    bool drop;\n"
          "    int64_t to;\n    double value;\n    int n_batches, failed;\n    int shape[16]; /* [n_batches, 2] */\n"
          "    int32_t values[48];\n} golden_padded[] = {")
    for lengths, n, drop, length, value in PADDED:
        shapes, values, failed = padded(lengths, n, drop, length, value)
        print(f"    {{{len(lengths)}, {numbers(lengths)}, {n}, {str(drop).lower()}, {length}, {value}, {len(shapes) // 2}, "
              f"{failed}, {numbers(shapes)}, {numbers(values)}}},")
    print("};")


# Lengths, boundaries, batch sizes, pad_to_bucket_boundary, drop_remainder.
LENGTHS = [i * 7 % 23 for i in range(40)]
BUCKETS = [
    ([0, 2, 5, 3, 9, 1, 4, 7, 3, 3], [3, 5], [2, 2, 2], False, False),
    ([0, 2, 5, 3, 9, 1, 4, 7, 3, 3], [3, 5], [2, 2, 2], False, True),
    (LENGTHS, [8, 12, 20], [4, 3, 2, 1], False, False),
    (LENGTHS, [8, 12, 20], [4, 3, 5, 2], False, True),
    (LENGTHS, [4, 9, 23], [6, 1, 3, 3], True, False),
    (LENGTHS, [1, 23], [1, 30, 1], True, True),
    (LENGTHS, [100], [16, 1], False, False),
]


def bucketed(lengths, boundaries, sizes, to_boundary, drop):
    dataset = Dataset.from_tensor_slices(tf.range(len(lengths)))
    dataset = dataset.map(lambda i: (i, tf.range(tf.constant(lengths)[i])))
    dataset = dataset.bucket_by_sequence_length(
        lambda i, x: tf.shape(x)[0], boundaries, sizes, padded_shapes=([], [None]), padding_values=(0, -1),
        pad_to_bucket_boundary=to_boundary, drop_remainder=drop)
    shapes, ids = [], []
    for i, x in dataset:
        shapes += x.shape
        ids += i.numpy().tolist()
    return shapes, ids


def print_bucketed():
    print("\n/* bucket_by_sequence_length: shapes [N, T] and samples of the batches. */")
    print("static const struct {\n    int n_samples;\n    int64_t length[40];\n    int n_boundaries;\n"
          "    int64_t boundary[4], size[5];\n    bool to_boundary, drop;\n    int n_batches;\n"
          "    int shape[64]; /* [n_batches, 2] */\n    int sample[40];\n} golden_buckets[] = {")
    for lengths, boundaries, sizes, to_boundary, drop in BUCKETS:
        shapes, ids = bucketed(lengths, boundaries, sizes, to_boundary, drop)
        print(f"    {{{len(lengths)}, {numbers(lengths)}, {len(boundaries)}, {numbers(boundaries)}, {numbers(sizes)}, "
              f"{str(to_boundary).lower()}, {str(drop).lower()}, {len(shapes) // 2}, {numbers(shapes)}, {numbers(ids)}}},")
    print("};")


# Samples, size, shift, stride, drop_remainder.
WINDOWS = [(7, 3, 3, 1, False), (7, 3, 3, 1, True), (7, 3, 1, 1, False), (7, 3, 1, 1, True), (7, 3, 1, 2, True),
           (10, 3, 2, 3, False), (10, 2, 4, 1, False), (10, 2, 7, 5, True), (3, 5, 5, 1, False), (8, 1, 3, 2, False)]


def windowed(n, size, shift, stride, drop):
    dataset = Dataset.range(n).window(size, shift, stride, drop)
    windows = [[int(x) for x in window] for window in dataset]
    return [len(w) for w in windows], [x for w in windows for x in w]


def print_windows():
    print("\n/* Windows of 0 to n - 1: how long they are, and their samples. */")
    print("static const struct {\n    int n, size, shift, stride;\n    bool drop;\n    int n_windows, length[16], "
          "sample[32];\n} golden_windows[] = {")
    for n, size, shift, stride, drop in WINDOWS:
        lengths, samples = windowed(n, size, shift, stride, drop)
        print(f"    {{{n}, {size}, {shift}, {stride}, {str(drop).lower()}, {len(lengths)}, {numbers(lengths)}, "
              f"{numbers(samples)}}},")
    print("};")


def print_parts():
    lengths = [3, 0, 2, 5, 0, 1]
    unbatched = [int(x) for x in ragged(lengths).unbatch()]
    mapped = Dataset.from_tensor_slices(lengths).enumerate().flat_map(
        lambda i, n: Dataset.range(tf.cast(n, tf.int64)).map(lambda k: 100 * i + 7 * k))
    mapped = [int(x) for x in mapped.skip(2).shard(2, 1)]
    print("\n/* unbatch of samples of these lengths; and flat_map to 100 * i + 7 * k, then skip(2).shard(2, 1). */")
    print(f"static const int64_t golden_lengths[] = {numbers(lengths)};")
    print(f"static const int golden_unbatched[] = {numbers(unbatched)};")
    print(f"static const int golden_mapped[] = {numbers(mapped)};")


def filtered(ops):
    dataset = Dataset.range(40)
    for op, arg in zip(ops[::2], map(int, ops[1::2])):
        if op == "f":
            dataset = dataset.filter(lambda x, arg=arg: x % arg == 0)
        elif op == "s":
            dataset = dataset.skip(arg)
        elif op == "t":
            dataset = dataset.take(5 * arg)
        elif op == "r":
            dataset = dataset.repeat(arg)
        elif op == "h":
            dataset = dataset.shard(arg, 1)
    return [int(x) for x in dataset]


def numbers(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def print_filters():
    print("/* Operations on 0 to 39, as make_scan.py says. */")
    print("static const struct {\n    const char *ops;\n    int n;\n    int sample[48];\n} golden_filter[] = {")
    for ops in FILTERS:
        samples = filtered(ops)
        print(f'    {{"{ops}", {len(samples)}, {numbers(samples)}}},')
    print("};")


def main():
    import contextlib
    with open(HERE / "scan_golden.h", "w") as out, contextlib.redirect_stdout(out):
        print(f"/* Written by make_scan.py with TensorFlow {tf.__version__}. */\n/* clang-format off */")
        print("#ifndef TESTS_GOLDEN_SCAN_GOLDEN_H\n#define TESTS_GOLDEN_SCAN_GOLDEN_H\n\n#include <stdbool.h>\n#include <stdint.h>\n")
        print_filters()
        print_padded()
        print_bucketed()
        print_windows()
        print_parts()
        print("\n#endif")


main()
