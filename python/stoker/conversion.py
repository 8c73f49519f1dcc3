"""Modules of PyTorch as layers of recipes, by way of ONNX."""

import contextlib
import os
import warnings


def _named(names):
    return ", ".join(names[:8]) + (" and %d more" % (len(names) - 8) if len(names) > 8 else "")


def _look(module):
    """Layers that train otherwise than in inference, {name: layer}: batch norms; others that draw, of which ONNX has nothing."""
    import torch

    others = ("AlphaDropout", "FeatureAlphaDropout", "StochasticDepth", "DropPath")
    named = dict(module.named_modules())
    norms = {name: layer for name, layer in named.items() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)}
    draw = {name: layer for name, layer in named.items() if layer.training and type(layer).__name__ in others and not _axes_drawn(layer)}
    return norms, draw


def _axes_drawn(layer):
    """Of layers that drop whole channels, or whole samples, how many axes they draw for; 0: others."""
    kind = type(layer).__name__
    if kind in ("Dropout1d", "Dropout2d", "Dropout3d"):
        return 2
    return 1 if kind == "StochasticDepth" and layer.mode == "row" else 0


def _drop(rate, n_axes):
    """What such a layer does, by the dropout that ONNX has, of ones."""
    import torch

    def forward(x):
        return x * torch.nn.functional.dropout(x.new_ones(x.shape[:n_axes] + (1,) * (x.ndim - n_axes)), rate)
    return forward


@contextlib.contextmanager
def _exportable(module, layers):
    """The module as it is, but for these layers, which are as in inference, and those that drop whole channels or samples."""
    states = [(layer, layer.training) for layer in module.modules()]
    drops = [layer for layer, trains in states if trains and _axes_drawn(layer)]
    try:
        for layer in drops:
            layer.forward = _drop(layer.p, _axes_drawn(layer))
        for layer in layers:
            layer.eval()
        yield
    finally:
        for layer in drops:
            del layer.forward
        for layer, trains in states:
            layer.training = trains


def _say_what_drops(graph):
    """Attention's dropouts come without the word that they drop in training, and would be folded away."""
    import onnx_ir as ir

    for node in list(graph):
        if node.op_type == "Dropout" and len(node.inputs) == 2:
            word = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.tensor(True))])
            graph.insert_before(node, word)
            node.resize_inputs(3)
            node.replace_input_with(2, word.outputs[0])
            node.resize_outputs(1)


def _of_no_weight(node):
    """What is folded: of weights nothing, which would be no parameters then."""
    return False if any(v is not None and v.is_initializer() for v in node.inputs) else None


def _without_parameters(proto, module, norms):
    """Makes constants of the numbers that PyTorch does not train: buffers but for running statistics, and what the exporter adds."""
    import onnx

    there, names = {t.name for t in proto.graph.initializer}, {}
    for name, p in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    lost = [names[id(p)][0] for p in module.parameters() if p.requires_grad and not there & set(names[id(p)])]
    if lost:
        raise ValueError("from_torch: the exporter made something else of these parameters, which could not be trained: %s" % _named(lost))
    kept = {name for name, p in module.named_parameters(remove_duplicate=False) if p.requires_grad}
    kept.update("%s.%s" % (name, what) if name else what for name in norms for what in ("running_mean", "running_var"))
    others = [t for t in proto.graph.initializer if t.name not in kept]
    nodes = [onnx.helper.make_node("Constant", [], [t.name], value=t) for t in others] + list(proto.graph.node)
    stay = [t for t in proto.graph.initializer if t.name in kept]
    scalars = {t.name: t.name + ".scalar" for t in stay if not t.dims}  # as which they would be constants
    for node in nodes if scalars else ():
        names = [scalars.get(name, name) for name in node.input]
        del node.input[:]
        node.input.extend(names)
    for t in stay:
        if t.name in scalars:
            t.dims.append(1)
            nodes.insert(0, onnx.helper.make_node("Squeeze", [t.name], [scalars[t.name]]))
    for field, items in ((proto.graph.initializer, stay), (proto.graph.node, nodes)):
        del field[:]
        field.extend(items)
    return proto


def from_torch(module, example, path):
    """Writes a torch.nn.Module to `path` as ONNX, and gives the layer of a recipe that trains it on, {"onnx": {"file": path, ...}}.

        layer = stoker.from_torch(module, torch.zeros(2, 3, 32, 32), "net.onnx")
        stoker.train({..., "model": {"layers": [layer]}})

    The network begins with the module's weights. example is one input, [N, ...] float32, or whole numbers, as the module takes it, or
    several, a tuple or a dict of them by the names of forward's parameters; then each reads the field of the data that has its name, or
    what layer["onnx"]["inputs"], {input: field}, is changed to. Images come in as Stoker has them, [N,H,W,C], and are turned. Of a module
    in training mode batch norms train as in PyTorch, by the statistics of each batch, and dropouts drop in training, by other random
    numbers; after module.eval() running statistics stay, and nothing drops. What draws otherwise, as AlphaDropout, does nothing, and a
    warning names it; errors name the operators that Stoker does
    not have. docs/onnx.md tells what cannot be a layer. Needs onnxscript.
    """
    import onnxscript.optimizer
    import torch

    path, is_named = os.fspath(path), isinstance(example, dict)
    is_one = not is_named and not isinstance(example, (tuple, list))
    arrays = [torch.as_tensor(x).contiguous() for x in ([example] if is_one else example.values() if is_named else example)]
    shapes = [{0: torch.export.Dim.DYNAMIC} for _ in arrays]
    norms, draw = _look(module)
    trains = any(layer.training for layer in norms.values())
    bad = [name for name, layer in norms.items() if not layer.track_running_stats or layer.momentum is None or not layer.training]
    if trains and bad:
        raise ValueError("from_torch: batch norms without running statistics or momentum, or in eval() while others train: %s" % _named(bad))
    if draw:
        warnings.warn("from_torch: layers that draw, which do nothing: %s" % _named(list(draw)), stacklevel=2)
    with _exportable(module, [*norms.values(), *draw.values()]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own
        # Its whole optimiser would fold batch norms into convolutions, and make one parameter of several that begin alike.
        program = torch.onnx.export(module, () if is_named else tuple(arrays), None, kwargs=dict(zip(example, arrays)) if is_named else None,
                                    input_names=["x"] if is_one else None, dynamo=True, external_data=False, verbose=False, optimize=False,
                                    dynamic_shapes=dict(zip(example, shapes)) if is_named else tuple(shapes))
        _say_what_drops(program.model.graph)
        onnxscript.optimizer.fold_constants(program.model, should_fold=_of_no_weight)
        onnxscript.optimizer.remove_unused_nodes(program.model)
        with open(path, "wb") as f:
            f.write(_without_parameters(program.model_proto, module, norms if trains else ()).SerializeToString())
    layer = {"file": os.path.abspath(path)}
    if not is_one:
        layer["inputs"] = {x.name: x.name for x in program.model.graph.inputs}
    return {"onnx": {**layer, "batch_norm": "train"} if trains else layer}
