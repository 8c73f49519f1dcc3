"""The doctor on a part of a program: `with stoker.watch() as w: ...`."""

import os
import signal
import subprocess
import tempfile

from . import _core
from .__main__ import program
from .reporting import Report


class Watch:
    """Watches this process from outside while its block runs; afterwards `verdict` (a dict) and `html`.

    Both are None where the block was over before the doctor had begun.

        with stoker.watch() as w:
            for batch in loader: ...
        print(w)
    """

    def __init__(self, interval_ms=None, html=True):
        self._words = [] if interval_ms is None else ["--interval", str(interval_ms)]
        self._has_html = html
        self._process = self._folder = None
        self.verdict = None
        self.html = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="stoker-")
        words = [program("stoker-watch"), "--pid", str(os.getpid()), "--json", "--quiet", *self._words]
        if self._has_html:
            words += ["--html", os.path.join(self._folder.name, "watch.html")]
        self._output = open(os.path.join(self._folder.name, "watch.json"), "wb")
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.PIPE,
                                         start_new_session=True)
        return self

    def __exit__(self, error, *rest):
        import json

        self._process.send_signal(signal.SIGINT)
        said = self._process.communicate(timeout=60)[1].decode("utf-8", "replace").strip()
        self._output.close()
        try:
            with open(self._output.name, encoding="utf-8") as file:
                text = file.read()
            if text.strip():
                self.verdict = json.loads(text)
            elif error is None and self._process.returncode != -signal.SIGINT:  # else it was over before the doctor began
                raise _core.Error(said or "the doctor said nothing")
            page = os.path.join(self._folder.name, "watch.html")
            if os.path.exists(page):
                with open(page, encoding="utf-8") as file:
                    self.html = file.read()
        finally:
            self._folder.cleanup()
        return False

    def __repr__(self):
        if self.verdict is None:
            return "<stoker.watch: no verdict>"
        lines = []
        for found in self.verdict["verdicts"]:
            lines.append("%s (confidence %.0f %%)" % (found["title"], 100 * found["confidence"]))
            lines += ["  " + text for text in found["evidence"]] + ["  try: " + remedy["text"] for remedy in found["remedies"]]
        return "\n".join(lines) or "nothing was found that holds it back"

    def _repr_html_(self):
        return Report(self.html)._repr_html_() if self.html else None


def watch(interval_ms=None, html=True):
    """What holds the block below back, as `stoker watch` tells it of this process."""
    return Watch(interval_ms, html)
