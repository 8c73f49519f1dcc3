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
    """x: images, or {field: array}."""
    found, fields = [], {**(x if isinstance(x, dict) else {"image": x}), "label": y}
    for name, array in fields.items():
        np.save(os.path.join(folder, name + ".npy"), array.numpy())
    data = {"train": {"source": {"npy": {name: os.path.join(folder, name + ".npy") for name in fields}}}}
    recipe = {"name": "r", "batch": 16, "epochs": 1, "precision": "f32", "data": data, "model": {"layers": [layer]}, "loss": "cross_entropy",
              "optimizer": {"sgd": {"lr": 0.1}}}
    stoker.train(recipe, out=os.path.join(folder, "run"), progress=False,
                 callbacks=lambda event: found.append(event["loss"]) if event["kind"] == "step" else None)
    return found


def first_channels(x):
    return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def losses_of_theirs(module, x, y):
    optimizer, found = torch.optim.SGD(module.parameters(), 0.1), []
    for i in range(0, len(y), 16):
        named = {name: first_channels(array[i:i + 16]) for name, array in x.items()} if isinstance(x, dict) else {}
        given = () if named else (first_channels(x[i:i + 16]),)
        loss = torch.nn.functional.cross_entropy(module(*given, **named), y[i:i + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def images(sides, channels, classes):
    torch.manual_seed(1)
    return torch.randn(320, sides, sides, channels), torch.randint(0, classes, (320,))


class Conversion(unittest.TestCase):
    def follows(self, module, x, y, example=None):
        with Folder() as folder:
            layer = stoker.from_torch(module, first_channels(x[:2]) if example is None else example, os.path.join(folder, "net.onnx"))
            ours, theirs = losses_of_ours(layer, x, y, folder), losses_of_theirs(module, x, y)
        self.assertEqual(len(ours), 20)
        for a, b in zip(ours, theirs):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_a_module_trains_as_in_pytorch(self):
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.GELU(),
                               nn.AdaptiveAvgPool2d(2), nn.Flatten(2), nn.Linear(4, 4), nn.Flatten(), nn.Linear(64, 5))
        self.follows(module, *images(12, 3, 5))
        self.assertTrue(module.training)

    def test_parameters_of_one_number_train_too(self):
        class Scaled(torch.nn.Module):
            def __init__(self, layer):
                super().__init__()
                self.layer, self.factor = layer, torch.nn.Parameter(torch.tensor(0.5))

            def forward(self, x):
                return self.layer(x) * self.factor

        nn = torch.nn
        self.follows(Scaled(nn.Sequential(nn.Conv2d(3, 1, 3), nn.BatchNorm2d(1), nn.PReLU(), nn.Flatten(), nn.Linear(100, 5))), *images(12, 3, 5))

    def test_several_inputs(self):
        nn = torch.nn

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.image, self.row, self.end = nn.Conv2d(3, 4, 3), nn.Linear(6, 8), nn.Linear(4 * 8 * 8 + 8, 5)

            def forward(self, image, row):
                return self.end(torch.cat([self.image(image).relu().flatten(1), self.row(row).relu()], 1))

        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.attention, self.end = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 5)

            def forward(self, tokens, mask):
                x = self.words(tokens)
                x = self.attention(x, x, x, key_padding_mask=mask == 0, need_weights=False)[0]
                return self.end((x * mask[:, :, None]).sum(1))

        torch.manual_seed(2)
        y, image, row = torch.randint(0, 5, (320,)), torch.randn(320, 10, 10, 3), torch.randn(320, 6)
        self.follows(Both(), {"image": image, "row": row}, y, (first_channels(image[:2]), row[:2]))
        self.follows(Both(), {"image": image, "row": row}, y, {"row": row[:2].numpy(), "image": first_channels(image[:2])})
        tokens, mask = torch.randint(0, 9, (320, 7)), (torch.arange(7) < torch.randint(1, 8, (320, 1))).int()
        self.follows(Masked(), {"tokens": tokens, "mask": mask}, y, {"tokens": tokens[:2], "mask": mask[:2]})
        with Folder() as folder:
            layer = stoker.from_torch(Both(), (first_channels(image[:2]), row[:2]), os.path.join(folder, "net.onnx"))
            self.assertEqual(layer["onnx"]["inputs"], {"image": "image", "row": "row"})
            layer["onnx"]["inputs"]["row"] = "rwo"
            with self.assertRaisesRegex(stoker.Error, "nothing before is named 'rwo'"):
                losses_of_ours(layer, {"image": image, "row": row}, y, folder)
            del layer["onnx"]["inputs"]["row"]
            with self.assertRaisesRegex(stoker.Error, "several inputs|input 0 is missing|has no input"):
                losses_of_ours(layer, {"image": image, "row": row}, y, folder)

    def test_batch_norms_train_as_in_pytorch_too(self):
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(800, 16),
                               nn.BatchNorm1d(16, momentum=0.2), nn.ReLU(), nn.Linear(16, 5))
        self.follows(module, *images(12, 3, 5))
        module.eval()
        self.follows(module, *images(12, 3, 5))

    def test_dropouts_of_nothing_follow_too(self):
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout2d(0.0), nn.ReLU(), nn.Dropout(0.0), nn.Flatten(), nn.Linear(800, 5))
        self.follows(module, *images(12, 3, 5))

    def squares(self, module):
        """(of training, of evaluation): the mean of what the module makes of ones, squared; what drops a share p makes 1 / (1 - p) of 1."""
        with Folder() as folder:
            for name, array in (("image", np.ones((4096, 2, 2, 1), np.float32)), ("value", np.zeros((4096, 1), np.float32))):
                np.save(os.path.join(folder, name + ".npy"), array)
            part = {"source": {"npy": {name: os.path.join(folder, name + ".npy") for name in ("image", "value")}}}
            layer = stoker.from_torch(module, torch.ones(2, 1, 2, 2), os.path.join(folder, "net.onnx"))
            run = stoker.train({"name": "r", "batch": 256, "epochs": 1, "precision": "f32", "data": {"train": part, "test": part},
                                "model": {"layers": [layer]}, "loss": {"mse": {"target": "value"}}, "optimizer": {"sgd": {"lr": 1e-20}}},
                               out=os.path.join(folder, "run"), progress=False)
            return run.result["train"]["loss"], run.result["test"]["loss"]

    def test_dropouts_drop_where_they_train(self):
        nn, functional = torch.nn, torch.nn.functional
        rate = 0.25

        class Ending(nn.Module):  # the mean of all that is not a layer's own
            def __init__(self, layer):
                super().__init__()
                self.layer, self.weight = layer, nn.Parameter(torch.ones(1))

            def forward(self, x):
                return self.layer(x).flatten(1).mean(1, keepdim=True) * self.weight

        class Attention(nn.Module):  # of one key, so that its one weight is 1, or dropped
            def forward(self, x):
                row = x.flatten(1)[:, None, None, :]
                return functional.scaled_dot_product_attention(row, row, row, dropout_p=rate if self.training else 0.0)

        class Rows(nn.Module):  # two rows of each sample; the mean is of the first
            def forward(self, x):
                return functional.dropout(x.reshape(-1, 2), rate, self.training).reshape(x.shape[0], 4)[:, :1]

        class StochasticDepth(nn.Module):  # as torchvision's
            p, mode = rate, "row"

            def forward(self, x):
                return x * x.new_empty(x.shape[0], 1, 1, 1).bernoulli_(1 - self.p) / (1 - self.p) if self.training else x

        for layer in (nn.Dropout2d(rate), StochasticDepth(), Attention(), Rows()):
            module = Ending(layer)
            trains, is_tested = self.squares(module)
            self.assertAlmostEqual(trains, 1 / (1 - rate), delta=0.06, msg=repr(layer))
            self.assertEqual(is_tested, 1)
            self.assertEqual(self.squares(module.eval()), (1, 1))
        # Each of 4 numbers for itself.
        self.assertAlmostEqual(self.squares(Ending(nn.Dropout(rate)))[0], 1 + rate / (1 - rate) / 4, delta=0.03)

    def test_what_stays_is_named(self):
        nn = torch.nn
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.AlphaDropout(0.5), nn.Dropout2d(0.5))
        with Folder() as folder, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer = stoker.from_torch(module, torch.zeros(2, 1, 6, 6), os.path.join(folder, "net.onnx"))
            self.assertEqual(layer["onnx"]["batch_norm"], "train")
            self.assertTrue(all(one.training and "forward" not in vars(one) for one in module.modules()))
            module[1].eval()
            module.append(nn.BatchNorm2d(2))
            with self.assertRaisesRegex(ValueError, "eval\\(\\) while others train: 1"):
                stoker.from_torch(module, torch.zeros(2, 1, 6, 6), os.path.join(folder, "net.onnx"))
        texts = [str(w.message) for w in caught if "from_torch" in str(w.message)]
        self.assertEqual(len(texts), 1)
        self.assertIn(": 2", texts[0])


if __name__ == "__main__":
    unittest.main()
