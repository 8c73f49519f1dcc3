"""Reports of runs, which show themselves in notebooks."""

import os
import tempfile

from . import _core


class Report:
    """One HTML page, `html`. In a notebook it shows itself; `save(path)` writes it."""

    def __init__(self, html):
        self.html = html

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self):
        import html
        return '<iframe srcdoc="%s" width="100%%" height="600" style="border:0"></iframe>' % html.escape(self.html, quote=True)

    def __repr__(self):
        return "<stoker.Report, %d bytes of HTML>" % len(self.html)


def report(*runs):
    """The report of a run (a `Run`, or its folder), or of several side by side."""
    folders = [os.fsencode(getattr(run, "folder", run)) for run in runs]
    if not folders:
        raise TypeError("a run is wanted")
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
        path = os.path.join(folder, "report.html")
        _core.report(folders, path)
        with open(path, encoding="utf-8") as file:
            return Report(file.read())
