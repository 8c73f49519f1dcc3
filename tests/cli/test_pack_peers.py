#!/usr/bin/env python3
"""Packs and other systems, both ways: webdataset reads tar packs and writes tars that are packed; TensorFlow reads
TFRecord packs, and writes shards that are packed. Needs Pythons that have them: STOKER_WDS_PYTHON, STOKER_TF_PYTHON.

usage: test_pack_peers.py STOKER WORK_FOLDER
"""
import os
import subprocess
import sys

from program import accepted, begin, check, end

WDS = """
import glob, webdataset as wds
n = 0
for s in wds.WebDataset(sorted(glob.glob('tar/*.tar')), shardshuffle=False):
    n += s['jpg'][:2] == bytes([255, 216]) and 0 <= int(s['cls']) < 10
with wds.TarWriter('theirs.tar') as w:
    for i in range(5):
        w.write({'__key__': 's%03d' % i, 'jpg': s['jpg'], 'cls': i})
print(n)
"""
TF = """
import glob, tensorflow as tf
features = {k: tf.io.FixedLenFeature([], t) for k, t in (('image', tf.string), ('label', tf.int64), ('key', tf.string))}
n = 0
with tf.io.TFRecordWriter('theirs.tfrecord') as w:
    for r in tf.data.TFRecordDataset(sorted(glob.glob('tfrecord/*.tfrecord'))):
        e = tf.io.parse_single_example(r, features)
        n += tf.io.decode_jpeg(e['image']).shape == (28, 28, 1) and 0 <= int(e['label']) < 10
        w.write(r.numpy())
print(n)
"""
RECIPE = """
name: theirs
data:
  train:
    source: {tfrecord: {files: theirs.tfrecord, parse_example: {image: encoded, label: i64}}}
    stages: [decode]
batch: 10
"""


def ask(python, program):
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=200)
    check(done.returncode == 0, f"{python}: {done.stderr[-500:]}")
    return done.stdout.strip()


wds, tf = os.environ.get("STOKER_WDS_PYTHON"), os.environ.get("STOKER_TF_PYTHON")
if not wds and not tf:
    print("SKIP: neither STOKER_WDS_PYTHON nor STOKER_TF_PYTHON is set")
    sys.exit(77)
begin()
if wds:
    accepted(["pack", "digits/train", "--out", "tar"])
    check(ask(wds, WDS) == "200", "webdataset reads all samples")
    accepted(["pack", "theirs.tar", "--out", "of-theirs"], "packed 5 images")
else:
    print("SKIP webdataset: STOKER_WDS_PYTHON is not set")
if tf:
    accepted(["pack", "digits/train", "--out", "tfrecord", "--format", "tfrecord"])
    check(ask(tf, TF) == "200", "TensorFlow reads all samples")
    with open("theirs.yaml", "w") as f:
        f.write(RECIPE)
    accepted(["pack", "theirs.yaml", "--out", "of-theirs-tfrecord"], "packed 200 images")
    accepted(["data", "verify", "of-theirs-tfrecord"], "all 200 records are whole")
else:
    print("SKIP TensorFlow: STOKER_TF_PYTHON is not set")
end()
