"""Training of recipes, plans of their memory, and trained networks."""

import contextlib
import os
import sys
import tempfile
import time

from . import _core
from .notebook import Curve, is_notebook
from .recipe import recipe_file, sets
from .reporting import report


def _settings(set, overrides):
    texts = sets(set)
    return texts + sets(overrides)


class _Progress:
    """A line on a terminal or in a notebook that tells where a training is."""

    def __init__(self, stream):
        self._stream = stream
        self._next_s = 0.0
        self._is_open = False

    def __call__(self, event):
        kind = event["kind"]
        if kind == "step":
            now = time.monotonic()
            if now < self._next_s:
                return
            self._next_s = now + 0.2
            self._write("\repoch %d/%d  step %d/%d  loss %s  %.0f samples/s  waits %.0f %%  %.0f s left   " % (
                event["epoch"], event["n_epochs"], event["step"], event["n_steps"],
                "-" if event["loss"] is None else "%.4f" % event["loss"], event["samples_per_s"],
                100 * event["input_wait_share"], event["left_s"]))
            self._is_open = True
        elif kind == "epoch":
            parts = ["%s %s" % (name, ", ".join("%s %.4f" % (k, v) for k, v in (event[name] or {}).items() if k != "samples"))
                     for name in ("train", "valid") if event[name]]
            self._line("epoch %d/%d  %s" % (event["epoch"], event["n_epochs"], "  ".join(parts)))
        elif kind == "warning":
            self._line("warning: %s" % event["text"])

    def _line(self, text):
        self._write(("\r%-100s\n" if self._is_open else "%s\n") % text)
        self._is_open = False

    def _write(self, text):
        self._stream.write(text)
        self._stream.flush()

    def end(self):
        if self._is_open:
            self._write("\n")


def train(recipe, *, out=None, resume=False, callbacks=(), progress=None, max_steps=0, set=None, **overrides):
    """Trains a recipe (a path, or a dict) and gives the `Run`.

    out         the run's folder; runs/NAME
    resume      goes on from the folder's last checkpoint, where there is one
    callbacks   functions of an event, a dict: event["kind"] is "plan", "step", "eval", "epoch", "saved", "warning" or "end".
                One that raises stops the run, saved, and the exception is train's
    progress    a line of progress, in notebooks a curve; None: on a terminal and in notebooks
    set         changes of keys: {"optimizer.sgd.lr": 0.1}
    overrides   the same for keys without a dot: epochs=3, model={"mlp": {"hidden": [64]}}

    Ctrl-C ends the step, saves, and raises KeyboardInterrupt; `resume=True` goes on. It is acted upon when the data are open, and when
    a batch that is waited for is there.
    """
    if callable(callbacks):
        callbacks = (callbacks,)
    callbacks = list(callbacks)
    bar = None
    if progress is None:
        progress = is_notebook() or sys.stderr.isatty()
    if progress:
        bar = Curve() if is_notebook() else _Progress(sys.stderr)
        callbacks.append(bar)

    history = []

    def tell(event):
        if event["kind"] == "epoch":
            history.append(event)
        for callback in callbacks:
            callback(event)

    if not isinstance(recipe, (dict, str, bytes, os.PathLike)):
        raise TypeError("a recipe is a path or a dict, not %s; stoker.from_torch makes a layer of one of a PyTorch module" % type(recipe).__name__)
    with recipe_file(recipe) as path:
        folder = os.fspath(out) if out is not None else None
        core = _core.run_open(path, _settings(set, overrides), folder, resume, max_steps, tell, False, None, False)
        try:
            result = core.train()
            saved = core.saved
        except KeyboardInterrupt:
            saved = core.saved
            if not saved:
                raise
            raise KeyboardInterrupt("saved in '%s': resume=True goes on" % os.path.dirname(saved)) from None
        finally:
            core.close()
            if bar:
                bar.end()
    return Run(os.path.dirname(saved) if saved else folder, result, history)


class Run:
    """What a training came to: `result` (a dict), `history` (its epochs' events) and `folder`."""

    def __init__(self, folder, result=None, history=()):
        self.folder = folder
        self.result = result
        self.history = list(history)

    def model(self, checkpoint=None, **options):
        """The trained network: `load(self.folder)`."""
        return load(self.folder, checkpoint, **options)

    def weights(self):
        """Parameters by PyTorch's names and in its layouts, as arrays."""
        return weights(self.folder)

    def report(self):
        """The run's report, which shows itself in notebooks."""
        return report(self)

    def _repr_html_(self):
        return self.report()._repr_html_()

    def __repr__(self):
        return "<stoker.Run %r>" % self.folder


class Model:
    """A run's network, for evaluation and prediction."""

    def __init__(self, folder, checkpoint=None, set=None, without_data=True, **overrides):
        self.folder = os.fspath(folder)
        self._core = _core.run_open(self.folder, _settings(set, overrides), None, False, 0, None, True, checkpoint,
                                    without_data)

    def predict(self, what, top=5):
        """Of an image file the `top` likeliest classes, [(name, probability), ...]; of arrays outputs.

        An array is one sample [...] or several [N, ...] as the network takes them, after all stages; it gives float32 [n] or
        [N, n]: probabilities, or the numbers themselves.
        """
        if isinstance(what, (str, os.PathLike)):
            return self._core.predict_file(os.fspath(what), top)
        return self._core.predict_array(what)

    def evaluate(self, part="test"):
        """Metrics of a part of the recipe's data, a dict. Opens the data: `load(folder, without_data=False)`."""
        return self._core.evaluate(part)

    @property
    def step(self):
        """The checkpoint's."""
        return self._core.step

    def close(self):
        self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def load(folder, checkpoint=None, **options):
    """Opens a run's folder for evaluation and prediction. checkpoint: "best", "last" or a step; None: the best, else the last."""
    return Model(folder, checkpoint, **options)


def weights(source):
    """Tensors by name as arrays: of a run's folder (PyTorch's names and layouts), or of a file in safetensors."""
    path = os.fspath(source)
    if not os.path.isdir(path) or not os.path.exists(os.path.join(path, "recipe.yaml")):
        return _core.load_tensors(path)
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
        return _core.load_tensors(_core.export(path, os.path.join(folder, "model.safetensors"), "safetensors"))


def save_weights(path, tensors):
    """Writes arrays by name as a file in safetensors.

    >>> import stoker, tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "x.safetensors")
    >>> stoker.save_weights(path, {"w": stoker.Array(bytes([1, 2, 3]))})
    >>> stoker.weights(path)["w"].tolist()
    [1, 2, 3]
    """
    _core.save_tensors(os.fspath(path), list(tensors.items()))


def import_weights(tensors, recipe=None, *, out=None, leave=None, network=None, set=None, **overrides):
    """A run with these weights: arrays by name, or a file in safetensors. As `stoker import`; gives a `Run`.

    leave: parts of names, comma-separated, that keep their first content. network: "resnet50" and others, without a recipe.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(tensors, dict):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stoker-"))
            path = os.path.join(folder, "model.safetensors")
            save_weights(path, tensors)
        else:
            path = os.fspath(tensors)
        at = stack.enter_context(recipe_file(recipe)) if recipe is not None else None
        return Run(_core.import_run(at, path, _settings(set, overrides), None if out is None else os.fspath(out), leave, network))


def export(run, out=None, format=None):
    """Writes a run's network as "safetensors" or "onnx"; gives the path. Without format the ending of `out` tells: safetensors, but for .onnx."""
    if format is None:
        format = "onnx" if out is not None and os.fspath(out).endswith(".onnx") else "safetensors"
    if format not in ("safetensors", "onnx"):
        raise ValueError("'format' is \"safetensors\" or \"onnx\", not %r" % (format,))
    folder = run.folder if isinstance(run, (Run, Model)) else os.fspath(run)
    return _core.export(folder, None if out is None else os.fspath(out), format)


class Plan(dict):
    """What a training step needs, as `stoker plan --json` tells it; `text` is for people."""

    def __init__(self, values, text):
        super().__init__(values)
        self.text = text

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        import html
        return "<pre>%s</pre>" % html.escape(self.text)


def plan(recipe, *, memory=None, device=None, precision=None, batch=None, set=None, **overrides):
    """Memory by purpose and layer, arithmetic and expected time of a recipe's step; nothing is trained.

    memory: a limit to fit into, "8GiB" or "60%"; NoMemoryError tells what is too large.
    """
    import json

    from .programs import run
    words = []
    for name, value in (("memory", memory), ("device", device), ("precision", precision), ("batch", batch)):
        if value is not None:
            words += ["--" + name, str(value)]
    for text in _settings(set, overrides):
        words += ["--set", os.fsdecode(text)]
    with recipe_file(recipe) as path:
        values = json.loads(run("stoker", ["plan", path, "--json", *words]))
        text = run("stoker", ["plan", path, *words])
    return Plan(values, text.rstrip("\n"))
