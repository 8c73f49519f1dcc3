"""Jupyter and IPython: `%load_ext stoker` gives the cell magic `%%stoker_watch`; `stoker.train` draws its curve below the cell."""

import sys
import time

WIDTH, HEIGHT = 480, 120


def shell():
    """IPython's, where this program runs in it; else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def is_notebook():
    """Whether what is displayed is seen as HTML, and may change."""
    return getattr(shell(), "kernel", None) is not None


def stoker_watch(line, cell):
    """%%stoker_watch: runs the cell, and says below it what held it back. A number on the line: milliseconds between samples."""
    from IPython.display import display

    from .watching import watch
    with watch(int(line) if line.strip() else None) as w:
        shell().run_cell(cell)
    display(w)


class Curve:
    """The loss as a curve, and below it the share of time in which training waited for data; a callback of `stoker.train`."""

    def __init__(self, every_s=0.5):
        self._every_s = every_s
        self._next_s = 0.0
        self._handle = None
        self._steps, self._losses, self._waits = [], [], []
        self._title = ""

    def __call__(self, event):
        if event["kind"] == "step" and event["loss"] is not None:
            self._steps.append(event["step"])
            self._losses.append(event["loss"])
            self._waits.append(event["input_wait_share"])
            self._title = "step %d of %d, epoch %d of %d, loss %.4f, %.0f samples/s, waits %.0f %%" % (
                event["step"], event["n_steps"], event["epoch"], event["n_epochs"], event["loss"], event["samples_per_s"],
                100 * event["input_wait_share"])
            if len(self._steps) > 2 * WIDTH:  # every other one, so that it stays small
                self._steps, self._losses, self._waits = self._steps[::2], self._losses[::2], self._waits[::2]
        if time.monotonic() >= self._next_s:
            self._show()

    def _repr_html_(self):
        return self.svg()

    def svg(self):
        """The drawing; empty before the first step."""
        if not self._steps:
            return ""
        first, last = self._steps[0], self._steps[-1]
        low, high = min(self._losses), max(self._losses)
        x = [WIDTH * (s - first) / max(last - first, 1) for s in self._steps]
        y = [HEIGHT - HEIGHT * (v - low) / ((high - low) or 1) for v in self._losses]
        waits = " ".join("%.1f,%.1f" % (a, HEIGHT - HEIGHT * min(max(w, 0), 1)) for a, w in zip(x, self._waits))
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="-4 -4 %d %d" font-family="sans-serif" font-size="11">'
                '<polygon fill="#f3c6a5" points="0,%d %s %.1f,%d"/><polyline fill="none" stroke="#2b6cb0" stroke-width="1.5" points="%s"/>'
                '<text x="0" y="%d">%s</text><text x="%d" y="10" text-anchor="end">%.4f</text></svg>' % (
                    WIDTH + 8, HEIGHT + 30, WIDTH + 8, HEIGHT + 30, HEIGHT, waits, x[-1], HEIGHT,
                    " ".join("%.1f,%.1f" % pair for pair in zip(x, y)), HEIGHT + 18, self._title, WIDTH, high))

    def _show(self):
        from IPython.display import HTML, display
        self._next_s = time.monotonic() + self._every_s
        text = HTML(self.svg())
        if self._handle is None:
            self._handle = display(text, display_id=True)
        else:
            self._handle.update(text)

    def end(self):
        self._show()
