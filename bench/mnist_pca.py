#!/usr/bin/env python3
"""The mean squared error a pixel that principal components of MNIST's training images leave, for recipes/mnist-autoencoder.yaml.

    python3 mnist_pca.py FOLDER [N]      (numpy; FOLDER holds MNIST's files, N components, 32 unless said)
"""
import gzip
import sys
from pathlib import Path

import numpy as np


def load(folder, name):
    data = gzip.open(Path(folder) / name).read()
    return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 784) / 255.0


def main(folder, n=32):
    train, test = (load(folder, f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    mean = train.mean(0)
    _, vectors = np.linalg.eigh((train - mean).T @ (train - mean))  # the largest are the last
    kept = vectors[:, -int(n):]
    for name, images in (("training", train), ("test", test)):
        rest = images - mean
        rest = rest - rest @ kept @ kept.T
        print(f"{n} components leave {(rest ** 2).mean():.5f} on {name} images")


main(*sys.argv[1:])
