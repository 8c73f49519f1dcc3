"""The package's programs, called for what they print."""

import os
import subprocess

from . import _core
from .__main__ import program


def run(name, words):
    """What the program prints; its error as an exception."""
    # Notebooks ask for colours, even where nobody sees them.
    plain = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    done = subprocess.run([program(name), *words], env=dict(plain, NO_COLOR="1"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    text = done.stderr.decode("utf-8", "replace").strip()
    kind = _core.NoMemoryError if "the limit is " in text or "too small" in text else _core.Error
    raise kind(text[len("stoker: "):] if text.startswith("stoker: ") else text)
