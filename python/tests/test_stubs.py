"""Type stubs say what the modules have: the same classes, functions and parameters. mypy, where it is here, reads them with a program."""

import ast
import importlib.util
import os
import subprocess
import sys
import unittest

import stoker
from support import Folder

PACKAGE = os.path.dirname(os.path.realpath(stoker.dataset.__file__))

PROGRAM = '''
import stoker
import stoker.torch
from stoker import Dataset, Loader, stages

ds = Dataset.images("photos").filter(drop=3).map([stages.decode(), stages.resize(shorter=256)]).shuffle(seed=1).batch(64)
loader: Loader = Loader(ds, threads=2)
for batch in loader:
    shape: tuple[int, ...] = batch["image"].shape
state: dict[str, int] = loader.state_dict()
run: stoker.Run = stoker.train({"name": "r"}, epochs=3, callbacks=print)
with run.model() as model:
    model.predict("cat.png")
print(stoker.plan("recipe.yaml", memory="8GiB").text)
with stoker.watch() as w:
    pass
print(w.verdict)


def line(x: stoker.Value, y: stoker.Value) -> stoker.Value:
    loss = ((x @ stoker.variable("w", (2, 1)) + 0.5 - y) ** 2).mean()
    stoker.minimize(stoker.losses.mse(stoker.layers.dense(x, 1), y) + loss, stoker.optimizers.sgd(lr=0.1))
    return loss


step: stoker.Step = stoker.Session("cpu", seed=1).compile(line, training=True, x=(4, 2), y=(4, 1))
try:
    ds.build()
except stoker.CorruptError as error:
    print(error)
'''
WRONG = '''
from stoker import Dataset
Dataset.images(3).batch("many").nonsense()
'''


def parsed(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def parameters(function):
    a = function.args
    names = [("/" if i < len(a.posonlyargs) else "") + p.arg for i, p in enumerate(a.posonlyargs + a.args)]
    names += ["*" + a.vararg.arg] if a.vararg else []
    return names + ["=" + p.arg for p in a.kwonlyargs] + (["**" + a.kwarg.arg] if a.kwarg else []), len(a.defaults)


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__iter__", "__len__", "__enter__", "__exit__")


def described(tree, prefix=""):
    """What a module or class has that is public: functions with their parameters, other names with None."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and is_public(node.name):
            found[prefix + node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            found.update(described(node, prefix + node.name + "."))
        elif prefix and isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:  # another name of a method
                found[prefix + target.id] = found.get(prefix + node.value.id)
    return found


class Stubs(unittest.TestCase):
    def test_they_are_complete(self):
        for name in ("dataset", "loader", "torch", "tf", "jax", "training", "reporting", "watching", "notebook", "conversion", "graph", "compiled", "showing",
                     "building", "session"):
            self.maxDiff = None
            ours, stub = described(parsed(name + ".py")), described(parsed(name + ".pyi"))
            self.assertEqual(ours, stub, name)

    def test_the_package_says_all_its_names(self):
        stub = parsed("__init__.pyi")
        names = {a.asname for node in stub.body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}
        self.assertEqual(names, set(stoker.__all__))

    def test_the_core_has_what_its_stub_says(self):
        for node in parsed("_core.pyi").body:
            if isinstance(node, ast.ClassDef):
                ours = getattr(stoker._core, node.name)
                self.assertTrue(all(hasattr(ours, member.name) for member in node.body if isinstance(member, ast.FunctionDef)))
                bases = [base.__name__ for base in ours.__bases__ if base is not object]
                self.assertEqual([base.id for base in node.bases], bases)

    def test_the_reference_is_what_they_say(self):
        root = os.path.dirname(os.path.dirname(PACKAGE))
        tool = os.path.join(root, "tools", "python_api.py")
        if not os.path.exists(tool):
            self.skipTest("the package is installed, and its repository is not here")
        written = subprocess.run([sys.executable, tool], stdout=subprocess.PIPE, check=True, env=dict(os.environ, LD_PRELOAD="")).stdout
        with open(os.path.join(root, "docs", "python-api.md"), "rb") as file:
            self.assertTrue(file.read() == written, "tools/python_api.py > docs/python-api.md")

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "there is no mypy (Debian: mypy)")
    def test_mypy_reads_them(self):
        with Folder() as folder:
            for name, text in (("right", PROGRAM), ("wrong", WRONG)):
                path = os.path.join(folder, name + ".py")
                with open(path, "w") as file:
                    file.write(text)
                where = dict(os.environ, MYPYPATH=os.path.dirname(os.path.dirname(os.path.abspath(stoker.__file__))), LD_PRELOAD="")
                done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-site-packages", "--ignore-missing-imports", "--follow-imports", "silent",
                                       "--cache-dir", folder, path], stdout=subprocess.PIPE, text=True, cwd=folder, env=where)
                errors = [line for line in done.stdout.splitlines() if ": error:" in line]
                self.assertEqual(len(errors), 0 if name == "right" else 3, done.stdout)


if __name__ == "__main__":
    unittest.main()
