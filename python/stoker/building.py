"""Layers, networks, losses and optimisers by the names that recipes have for them (docs/recipe.md), for functions of values.

    >>> from stoker import optimizers
    >>> optimizers.sgd(lr=0.1, momentum=0.9)
    {'sgd': {'lr': 0.1, 'momentum': 0.9}}
"""

from ._names import Names
from .dataset import _text
from .graph import Value, _need_training, maximum


def _words(kind, name, value, keys):
    if len(value) > 1 or (value and keys):
        raise TypeError("%s '%s' takes one setting alone, or keys by their names, as recipes have them (docs/recipe.md)" % (kind, name))
    if value:
        return {name: value[0]}
    return {name: keys} if keys else name


class _Names(Names):
    """Attributes are functions, by the names of recipes; docs/recipe.md has all of them with their keys, and help() of each."""

    def __init__(self, title, kind, call, text):
        super().__init__(kind)
        self._title, self._call = title, call
        self.__doc__ = text

    def _function(self, name):
        return lambda *values, **keys: self._call(name, values, keys)

    def __repr__(self):
        return "<stoker.%s>" % self._title


def _layer(name, values, keys):
    if not values or not isinstance(values[0], Value):
        raise TypeError("layer '%s': the value that it works on comes first" % name)
    x = values[0]
    return x._make(x._core.layers(x._id, _text(_words("layer", name, values[1:], keys))))


def _network(name, values, keys):
    if not values or not isinstance(values[0], Value):
        raise TypeError("network '%s': the value that it works on comes first" % name)
    x = values[0]
    return x._make(x._core.network(x._id, keys.get("classes") or 0, _text(_words("network", name, values[1:], keys))))


def _loss(name, values, keys):
    if len(values) < 2 or not all(isinstance(v, Value) for v in values[:2]):
        raise TypeError("loss '%s': the output and the target come first" % name)
    reduction = keys.pop("reduction", "mean")
    if reduction not in ("mean", "none"):
        raise ValueError("the reduction is 'mean' or 'none', not %r" % (reduction,))
    output, target = values[:2]
    loss, weight = output._core.loss(output._id, output._other(target), _text(_words("loss", name, values[2:], keys)))
    loss = output._make(loss)
    if reduction == "none":
        return loss
    if weight < 0:
        return loss.mean()
    weight = output._make(weight)
    return (loss * weight).sum() / maximum(weight.sum(), 1e-30)


layers = _Names("layers", "layer", _layer, """Layers on values: `layers.dense(x, 10)`, `layers.conv2d(x, filters=32, kernel=5)`, `layers.relu(x)`.

Names and keys are those of recipes (docs/recipe.md); what a layer takes in its short form comes behind x. Images are [N,H,W,C]. Each call
has parameters of its own, named "dense", "dense_1" and so on within its scopes, in PyTorch's layouts: a network that works on two values
works on both at once, by `graph.concatenate`.""")
networks = _Names("networks", "model", _network, """Whole networks: `networks.resnet18(x, classes=10)`, as a recipe's `model`.""")
losses = _Names("losses", "loss", _loss, """Losses of an output and a target: `losses.cross_entropy(logits, labels)`, a scalar.

As in PyTorch the mean over the batch, or with weights what they count for; reduction="none": one for each sample.""")
optimizers = _Names("optimizers", "optimizer", lambda name, values, keys: _words("optimizer", name, values, keys),
                    """Optimisers for `minimize`: `optimizers.sgd(lr=0.1, momentum=0.9)`, by the names and keys of recipes.""")


def minimize(loss, optimizer="adam", *, clip_norm=0.0, only=None):
    """Each run of the step, which is compiled with training=True, updates the variables that loss, a scalar, depends on; once a step.

    optimizer   by name, or with settings: `optimizers.adam(lr=1e-3)`
    clip_norm   of all gradients together; 0: none
    only        names or patterns, comma-separated: "generator" is all in that scope; the others stay as they are
    """
    _need_training("minimize")
    loss._core.minimize(loss._id, _text(optimizer), clip_norm, only)
