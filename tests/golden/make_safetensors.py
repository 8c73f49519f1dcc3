#!/usr/bin/env python3
"""Writes small.safetensors with the package safetensors, for the reader's test.

    python3 make_safetensors.py        (safetensors 0.8 and PyTorch 2)
"""
import math
import pathlib

import safetensors.torch
import torch

tensors = {
    "conv.weight": torch.arange(12, dtype=torch.float32).reshape(2, 3, 2) / 8,
    "steps": torch.tensor([2**62 + 1, -5], dtype=torch.int64),
    "double": torch.tensor([math.pi], dtype=torch.float64),
    "mask": torch.tensor([1, 0, 255], dtype=torch.uint8),
    "half": torch.tensor([0.5, -2.0], dtype=torch.bfloat16),
    "scalar": torch.tensor(-7, dtype=torch.int32),
}
out = pathlib.Path(__file__).parent / "small.safetensors"
out.write_bytes(safetensors.torch.save(tensors, {"format": "pt"}))
