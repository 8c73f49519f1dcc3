"""examples/python: trainers of others, fed by Stoker, where they are here."""

import contextlib
import importlib.util
import io
import os
import unittest
import warnings

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")


def run(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
        return module.main()


def has(*names):
    return all(importlib.util.find_spec(name) for name in names)


class Trainers(unittest.TestCase):
    @unittest.skipUnless(has("torch") and (has("lightning") or has("pytorch_lightning")), "there is no PyTorch Lightning")
    def test_lightning(self):
        losses = run("lightning_trainer")
        self.assertEqual(len(losses), 3 * 16)
        self.assertLess(losses[-1], 1e-2 * losses[0])

    @unittest.skipUnless(has("torch", "transformers", "accelerate"), "there is no transformers with accelerate")
    def test_hugging_face(self):
        losses = run("hf_trainer")
        self.assertEqual(len(losses), 3 * 16)
        self.assertLess(losses[-1], 0.5 * losses[0])


if __name__ == "__main__":
    unittest.main()
