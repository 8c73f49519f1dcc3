"""The package's programs, called for what they print."""

import subprocess

from . import _core
from .__main__ import program


def run(name, words):
    """What the program prints; its error as an exception."""
    done = subprocess.run([program(name), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    text = done.stderr.decode("utf-8", "replace").strip()
    kind = _core.NoMemoryError if "does not fit" in text or "memory" in text and "too small" in text else _core.Error
    raise kind(text[len("stoker: "):] if text.startswith("stoker: ") else text)
