#!/usr/bin/env python3
"""What tools/recipes.py does to docs/results.md: new rows for what was trained and has finished, and no others.

usage: test_recipes.py STOKER WORK_FOLDER
"""
import contextlib
import io
import json
import os
import pathlib
import sys

from program import begin, check, end

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
sys.dont_write_bytecode = True
import recipes  # noqa: E402: the path comes first


def result(name, accuracy, finished=True):
    folder = pathlib.Path("runs/recipes") / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps({"test_accuracy": accuracy, "finished": finished, "epochs": 1}))


def write(*names):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        recipes.write_table(names)
    table = pathlib.Path("docs/results.md")
    return said.getvalue(), table.read_text() if table.exists() else None


def rows(text):
    return {line.split("]")[0][3:]: line for line in text.splitlines() if line.startswith("| [")}


begin()
said, table = write("digits")
check(table is None and "stays as it is" in said, f"without results there is no table: {said}")
result("digits", 0.5)
result("cifar-cnn", 0.6)
said, table = write("digits")
check(list(rows(table)) == ["digits"], f"the result of what was not trained now is left out: {table}")
said, table = write("cifar-cnn")
check(list(rows(table)) == ["digits", "cifar-cnn"] and "results.md: cifar-cnn." in said and "git checkout" in said, said)
before = rows(table)["digits"]
result("digits", 0.9)
check(rows(write("cifar-cnn")[1])["digits"] == before, "a row of what was not trained now stays")
result("cifar-cnn", 0.1, finished=False)
check("stays as it is" in write("cifar-cnn")[0], "one that was interrupted keeps its row")
check("90.00 %" in rows(write("digits")[1])["digits"], "one that has finished gets a new row")
end()
