"""Recipes as files, texts or dicts, and what changes in them."""

import contextlib
import json
import os
import tempfile

from .dataset import _plain, _text


def sets(overrides):
    """["optimizer.sgd.lr=0.1"] of a dict or of such texts, as bytes."""
    if overrides is None:
        return []
    if not isinstance(overrides, dict):
        return [os.fsencode(text) for text in overrides]
    texts = []
    for key, value in overrides.items():
        texts.append(os.fsencode("%s=%s" % (key, value if isinstance(value, str) else _text(value))))
    return texts


@contextlib.contextmanager
def recipe_file(recipe):
    """The path of a recipe: of a file as it is, of a dict as a file for the time being, in the working folder's place."""
    if not isinstance(recipe, dict):
        yield os.fspath(recipe)
        return
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
        path = os.path.join(folder, "recipe.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(_plain(recipe), file)
        yield path
