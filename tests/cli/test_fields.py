#!/usr/bin/env python3
"""Samples of several fields from a recipe: pairs of folders, and stages with several fields.

usage: test_fields.py STOKER WORK_FOLDER
"""
import os
import re
import shutil

from program import accepted, begin, check, end, refused

RECIPE = """
data:
  train:
    source: {pairs: {image: digits/train, mask: digits/train}}
    shuffle: true
    stages:
      - decode: {channels: 1}
      - with: {fields: mask, stages: [{decode: {channels: 1}}]}
      - with: {fields: [image, mask], stages: [{random_crop: {size: 24, pad: 2}}, random_flip]}
      - scale: 1/255
batch: 20
"""


def write(name, text):
    with open(name, "w") as f:
        f.write(text)


begin()
write("pairs.yaml", RECIPE)
accepted(["data", "explain", "pairs.yaml"], "pairs: 200 records", "mask: encoded -> u8[24,24,1]",
         "image: encoded -> f32[24,24,1]", "decode + random_crop (random) + random_flip (random) + scale")
done = accepted(["data", "bench", "pairs.yaml", "--seconds", "1"], "mask: decode + random_crop")
bounds = re.findall(r"([\d.]+) (us|ms) or more .* less than ([\d.]+) (us|ms) it is", done.stdout)
check(len(bounds) == 1 and all(float(n) > 0 for n in bounds[0][::2]), f"bounds that say something: {done.stdout}")
accepted(["data", "verify", "pairs.yaml"])
write("bad.yaml", RECIPE.replace("random_flip]", "{scale: 2}]"))
refused(["data", "explain", "bad.yaml"], 1, "bad.yaml:9:", "'scale' changes values, not places")
write("bad.yaml", RECIPE.replace("[image, mask]", "[image, masks]"))
refused(["data", "explain", "bad.yaml"], 1, "did you mean 'mask'?")
shutil.copytree("digits/train", "other")
os.remove("other/3/00003.jpg")
write("bad.yaml", RECIPE.replace("mask: digits/train", "mask: other"))
refused(["data", "explain", "bad.yaml"], 1, "3/00003.jpg' has no partner in ")
end()
