#!/usr/bin/env python3
"""Writes tfrecord_golden.h: TFRecord files as TensorFlow writes them, plain, GZIP and ZLIB, and single Examples with
what parse_single_example makes of them.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tensorflow-cpu
    /tmp/golden/bin/python tests/golden/make_tfrecord.py
"""
import os
import pathlib
import struct
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
N_RECORDS = 5
LABELS = [7, -1, 0, 1 << 40, -(1 << 63)]


def example(i):
    feature = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes((7 * i + k) & 255 for k in range(6))])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[LABELS[i]])),
        "score": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5 * i, -1.25, 1e-30])),
        "sizes": tf.train.Feature(int64_list=tf.train.Int64List(value=[i, 300, -2])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def varint(x):
    x &= (1 << 64) - 1
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def features(**feature):
    return field(1, b"".join(field(1, field(1, k.encode()) + field(2, v)) for k, v in feature.items()))


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


# How protobuf may spell it too, by hand: (name, Example, what a FixedLenFeature of two numbers "x" gives)
UNPACKED_FLOATS = b"".join(varint(1 << 3 | 5) + f32(v) for v in (1.5, -2))
UNPACKED_INTS = b"".join(varint(1 << 3) + varint(v) for v in (5, -6))
PACKED_INTS = field(1, varint(5) + varint(-6))
UNKNOWN = varint(15 << 3) + varint(1 << 35) + varint(16 << 3 | 1) + bytes(8) + varint(17 << 3 | 5) + bytes(4)
GROUP = varint(9 << 3 | 3) + varint(2 << 3 | 3) + UNKNOWN + varint(2 << 3 | 4) + varint(9 << 3 | 4)
SPELLINGS = [
    ("unpacked_floats", features(x=field(2, UNPACKED_FLOATS)), tf.float32),
    ("unpacked_ints", features(x=field(3, UNPACKED_INTS)), tf.int64),
    ("packed_ints", features(x=field(3, PACKED_INTS)), tf.int64),
    ("unknown_fields", UNKNOWN + features(y=b"", x=field(3, PACKED_INTS)) + field(7, b"abc"), tf.int64),
    ("value_before_key", field(1, field(1, field(2, field(3, PACKED_INTS)) + field(1, b"x"))), tf.int64),
    ("last_of_two", features(x=field(3, field(1, varint(1) + varint(2)))) + features(x=field(3, PACKED_INTS)), tf.int64),
    ("empty_feature", features(x=b""), tf.int64),  # the default, 8 and 9
    ("no_feature", b"", tf.int64),
]
LENIENT = [
    ("packed_floats_in_two", features(x=field(2, field(1, f32(1.5)) + field(1, f32(-2)))), tf.float32),
    ("packed_and_not", features(x=field(3, field(1, varint(5)) + varint(1 << 3) + varint(-6))), tf.int64),
    ("list_in_two", features(x=field(3, field(1, varint(5))) + field(3, field(1, varint(-6)))), tf.int64),
    ("last_kind", features(x=field(2, UNPACKED_FLOATS) + field(3, PACKED_INTS)), tf.int64),
    ("groups", GROUP + features(x=field(3, PACKED_INTS)) + GROUP, tf.int64),
]
# What TensorFlow refuses.
REFUSED = [
    ("too_few", features(x=field(3, field(1, varint(5)))), tf.int64),
    ("too_many", features(x=field(3, field(1, varint(5) * 3))), tf.int64),
    ("empty_list", features(x=field(3, b"")), tf.int64),
    ("other_kind", features(x=field(2, UNPACKED_FLOATS)), tf.int64),
    ("bytes_for_floats", features(x=field(1, field(1, b"ab") + field(1, b"cd"))), tf.float32),
    ("cut_floats", features(x=field(2, field(1, f32(1.5, -2)[:-1]))), tf.float32),
    ("cut_short", features(x=field(3, PACKED_INTS))[:-3], tf.int64),
    ("long_length", varint(1 << 3 | 2) + varint(1 << 60) + b"abc", tf.int64),
]


def parse(data, dtype, default):
    spec = {"x": tf.io.FixedLenFeature([2], dtype, default_value=default)}
    return tf.io.parse_single_example(data, spec)["x"].numpy().tolist()


def parse_leniently(data, dtype):
    """The protobuf library's reading, where TensorFlow's own parser knows one spelling less."""
    feature = tf.train.Example.FromString(data).features.feature["x"]
    return list(feature.float_list.value if dtype == tf.float32 else feature.int64_list.value)


def c_array(name, data):
    lines = [f"static const uint8_t {name}[] = {{"]
    for at in range(0, len(data), 20):
        lines.append("    " + ", ".join(f"{b}" for b in data[at:at + 20]) + ",")
    return "\n".join(lines + (["    0,"] if not data else [])) + "\n};\n"


text = f"""/* Written by make_tfrecord.py with TensorFlow {tf.__version__}. */
/* clang-format off */
#ifndef TESTS_GOLDEN_TFRECORD_GOLDEN_H
#define TESTS_GOLDEN_TFRECORD_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Record i has image: the bytes 7 i to 7 i + 5; label: golden_labels[i]; score: 0.5 i, -1.25, 1e-30; sizes: i, 300, -2 */
enum {{ N_GOLDEN_RECORDS = {N_RECORDS} }};
static const int64_t golden_labels[] = {{{", ".join(f"{x}" if x > -(1 << 63) else "INT64_MIN" for x in LABELS)}}};
"""
for name in ("", "GZIP", "ZLIB"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x")
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=name)) as writer:
            for i in range(N_RECORDS):
                writer.write(example(i))
        text += c_array(f"golden_{name.lower() or 'plain'}", pathlib.Path(path).read_bytes())
for name, data, _ in SPELLINGS + LENIENT + REFUSED:
    text += c_array(f"example_{name}", data)
text += """
typedef struct golden_example {
    const char *name;
    const uint8_t *bytes;
    size_t n;
    bool is_float, is_refused;
    double x[2]; /* of TensorFlow */
} golden_example;

static const golden_example golden_examples[] = {
"""
for name, data, dtype in SPELLINGS + LENIENT:
    a, b = parse(data, dtype, [8, 9]) if (name, data, dtype) in SPELLINGS else parse_leniently(data, dtype)
    text += f'    {{"{name}", example_{name}, {len(data)}, {str(dtype == tf.float32).lower()}, false, {{{a}, {b}}}}},\n'
for name, data, dtype in REFUSED:
    try:
        parse(data, dtype, [8, 9])
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # the latter: its message quotes the bytes
        text += f'    {{"{name}", example_{name}, {len(data)}, {str(dtype == tf.float32).lower()}, true, {{0, 0}}}},\n'
    else:
        raise SystemExit(f"TensorFlow accepts '{name}'")
(HERE / "tfrecord_golden.h").write_text(text + "};\n\n#endif\n")
