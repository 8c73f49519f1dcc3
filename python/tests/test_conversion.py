"""Modules of PyTorch as layers of recipes, where PyTorch and onnxscript are here: they train as there."""

import importlib.util
import os
import unittest
import warnings

import stoker
from support import Folder

if not all(importlib.util.find_spec(name) for name in ("torch", "onnxscript")):
    raise unittest.SkipTest("there is no PyTorch with onnxscript")

import numpy as np
import torch


def losses_of_ours(layer, x, y, folder):
    found = []
    for name, array in (("x", x), ("y", y)):
        np.save(os.path.join(folder, name + ".npy"), array.numpy())
    data = {"train": {"source": {"npy": {"image": os.path.join(folder, "x.npy"), "label": os.path.join(folder, "y.npy")}}}}
    recipe = {"name": "r", "batch": 16, "epochs": 1, "precision": "f32", "data": data, "model": {"layers": [layer]}, "loss": "cross_entropy",
              "optimizer": {"sgd": {"lr": 0.1}}}
    stoker.train(recipe, out=os.path.join(folder, "run"), progress=False,
                 callbacks=lambda event: found.append(event["loss"]) if event["kind"] == "step" else None)
    return found


def losses_of_theirs(module, x, y):
    optimizer, found = torch.optim.SGD(module.parameters(), 0.1), []
    for a, b in zip(x.split(16), y.split(16)):
        loss = torch.nn.functional.cross_entropy(module(a.permute(0, 3, 1, 2)), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


class Conversion(unittest.TestCase):
    def test_a_module_trains_as_in_pytorch(self):
        torch.manual_seed(1)
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.GELU(),
                               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
        x, y = torch.randn(320, 12, 12, 3), torch.randint(0, 5, (320,))
        with Folder() as folder:
            layer = stoker.from_torch(module, torch.zeros(2, 3, 12, 12), os.path.join(folder, "net.onnx"))
            self.assertTrue(module.training)
            ours, theirs = losses_of_ours(layer, x, y, folder), losses_of_theirs(module, x, y)
        self.assertEqual(len(ours), 20)
        for a, b in zip(ours, theirs):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_what_stays_is_named(self):
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5))
        with Folder() as folder, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stoker.from_torch(module, torch.zeros(2, 1, 6, 6), os.path.join(folder, "net.onnx"))
        texts = [str(w.message) for w in caught if "from_torch" in str(w.message)]
        self.assertEqual(len(texts), 2)
        self.assertIn(": 1", texts[0])
        self.assertIn(": 2", texts[1])


if __name__ == "__main__":
    unittest.main()
