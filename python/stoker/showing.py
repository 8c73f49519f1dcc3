"""What a data set is, and what it gives, for people: both show themselves in notebooks."""

import base64
import html

WIDTH, HEIGHT, GAP, LETTER = 760, 26, 14, 6.6
COLOURS = {"source": "#d9e8f6", "order": "#e6e0f3", "stage": "#e3f1dc", "random": "#fbe6cf", "batch": "#d9e8f6"}


def _size(n_bytes):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024 or unit == "GiB":
            return "%.0f %s" % (n_bytes, unit) if unit == "B" or n_bytes >= 100 else "%.1f %s" % (n_bytes, unit)
        n_bytes /= 1024


def _many(n, what):
    if n < 0:
        return "an unknown number of " + what + ("es" if what[-1] in "sh" else "s")
    return "{:,} {}{}".format(n, what, "" if n == 1 else "es" if what[-1] in "sh" else "s")


def _passes(stages):
    """Stages by field, those of one pass together: [(field, [[stage, ...], ...]), ...]"""
    fields = {}
    for stage in stages:
        passes = fields.setdefault(stage["field"], [])
        if passes and stage["pass"] and passes[-1][-1]["pass"] == stage["pass"]:
            passes[-1].append(stage)
        else:
            passes.append([stage])
    return list(fields.items())


class Explanation(dict):
    """What a pipeline is made of, what it promises and what it needs, as `stoker data explain --json` tells it.

    `svg()` draws it, which notebooks show; `str()` is for people.
    """

    def _source(self):
        classes = ", " + _many(self["classes"], "class") if self["classes"] else ""
        about = ", about %s each" % _size(self["record_bytes"]) if self["record_bytes"] else ""
        return "%s: %s%s%s%s" % (self["source"], _many(self["records"], "record"), classes, about, ", in memory" if self["in_memory"] else "")

    def _batch(self):
        left = ", %s left out" % _many(self["dropped"], "sample") if self["dropped"] else ""
        return "an epoch is %s in %s of %d%s" % (_many(self["samples"], "sample"), _many(self["batches"], "batch"), self["batch"], left)

    def _needs(self):
        return "%d threads, %d slots of %s; cache: %s; the same batches for any number of threads: %s; exact resume: %s" % (
            self["threads"], self["slots"], _size(self["slot_bytes"]), self["cache"], "yes" if self["same_batches"] else "no",
            "yes" if self["exact_resume"] else "no")

    def __str__(self):
        lines = ["source   " + self._source()]
        lines += ["order    " + text for text in self["order"] or ["as the source has them"]]
        for field, passes in _passes(self["stages"]):
            for group in passes:
                names = " + ".join(s["name"] + (" (random)" if s["random"] else "") for s in group)
                lines.append("stages   %s: %s -> %s%s" % (field, names, group[-1]["output"], ", as one pass over rows" if len(group) > 1 else ""))
        lines += ["fields   %s: %s -> %s" % (f["name"], f["input"], f["output"]) for f in self["fields"]]
        lines += ["epoch    " + self._batch(), "needs    " + self._needs()]
        if self["n_corrupt"]:
            lines.append("corrupt  %s, as %s" % (_many(self["n_corrupt"], "record"), self["corrupt"]))
        return "\n".join(lines + (["note     " + self["note"]] if self["note"] else []))

    def svg(self):
        """Source, order, the stages of each field with what is random in another colour, and the batch."""
        parts, y = [], 0

        def box(x, text, kind, width=None):
            width = width or 16 + LETTER * len(text)
            parts.append('<rect x="%.0f" y="%d" width="%.0f" height="%d" rx="4" fill="%s" stroke="#667"/><text x="%.0f" y="%d">%s</text>' % (
                x, y, width, HEIGHT, COLOURS[kind], x + 8, y + 17, html.escape(text)))
            return x + width

        def below(x=20):
            nonlocal y
            parts.append('<path d="M%d %dv%d" stroke="#667" marker-end="url(#arrow)"/>' % (x, y + HEIGHT, GAP - 2))
            y += HEIGHT + GAP

        right = box(0, self._source(), "source")
        for text in self["order"]:
            below()
            right = max(right, box(0, text, "order"))
        for field in self["fields"]:
            below()
            x = box(0, "%s: %s" % (field["name"], field["input"]), "source")
            for group in dict(_passes(self["stages"])).get(field["name"], []):
                start = x + GAP + 4
                parts.append('<path d="M%.0f %dh%d" stroke="#667" marker-end="url(#arrow)"/>' % (x, y + HEIGHT // 2, GAP + 2))
                x = start
                for stage in group:
                    x = box(x, stage["name"], "random" if stage["random"] else "stage") + 2
                if len(group) > 1:
                    parts.append('<rect x="%.0f" y="%d" width="%.0f" height="%d" rx="6" fill="none" stroke="#667" stroke-dasharray="3 2"/>' % (
                        start - 3, y - 3, x - start + 4, HEIGHT + 6))
            parts.append('<text x="%.0f" y="%d" fill="#667">&#8594; %s</text>' % (x + 8, y + 17, html.escape(field["output"])))
            right = max(right, x + 24 + LETTER * len(field["output"]))
        below()
        right = max(right, box(0, self._batch(), "batch"))
        y += HEIGHT + 16
        parts.append('<text x="0" y="%d" fill="#667">%s</text>' % (y, html.escape(self._needs())))
        right = max(right, LETTER * len(self._needs()), WIDTH)
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="-6 -6 %.0f %d" font-family="sans-serif" font-size="12">'
                '<defs><marker id="arrow" markerWidth="6" markerHeight="6" refX="5" refY="3" orient="auto"><path d="M0 0L6 3L0 6z" fill="#667"/>'
                '</marker></defs>%s</svg>' % (right + 12, y + 18, right + 12, y + 18, "".join(parts)))

    def _repr_html_(self):
        return self.svg()


class Sheet:
    """A picture of samples with their labels, as `png` (bytes). Notebooks show it; `save(path)` writes it."""

    def __init__(self, png, n_samples, height, width):
        self.png, self.n_samples, self.height, self.width = png, n_samples, height, width

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.png)

    def _repr_html_(self):
        return '<img src="data:image/png;base64,%s" width="%d" height="%d">' % (base64.b64encode(self.png).decode(), self.width, self.height)

    def __repr__(self):
        return "<stoker.Sheet of %d samples, %d x %d>" % (self.n_samples, self.width, self.height)
