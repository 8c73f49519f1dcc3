"""Modules of PyTorch as layers of recipes, by way of ONNX."""

import os
import warnings


def _named(names):
    return ", ".join(names[:8]) + (" and %d more" % (len(names) - 8) if len(names) > 8 else "")


def _look(module):
    """Names of the layers that train otherwise than in inference: batch norms, those of them that cannot be taken over, dropouts."""
    import torch

    norms, bad, drops = [], [], []
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            norms.append(name)
            if not layer.track_running_stats or layer.momentum is None or not layer.training:
                bad.append(name)
        elif isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.p > 0:
            drops.append(name)
    return norms, bad, drops


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

    The network begins with the module's weights. example is one input, [N, ...] float32, or whole numbers, as the module takes it;
    images come in as Stoker has them, [N,H,W,C], and are turned. Batch norms of a module in training mode train as in PyTorch, by the
    statistics of each batch; after module.eval() their running statistics stay. Dropouts drop nothing, and a warning names them; errors
    name the operators that Stoker does not have. docs/onnx.md tells what cannot be a layer. Needs onnxscript.
    """
    import onnxscript.optimizer
    import torch

    path, states = os.fspath(path), [(layer, layer.training) for layer in module.modules()]
    norms, bad, drops = _look(module)
    trains = module.training and norms
    if trains and bad:
        raise ValueError("from_torch: batch norms without running statistics or momentum, or in eval() while others train: %s" % _named(bad))
    if module.training and drops:
        warnings.warn("from_torch: dropouts, which drop nothing: %s" % _named(drops), stacklevel=2)
    module.eval()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own
            # Its whole optimiser would fold batch norms into convolutions, and make one parameter of several that begin alike.
            program = torch.onnx.export(module, (example.contiguous(),), None, input_names=["x"], dynamo=True, external_data=False, verbose=False,
                                        optimize=False, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
            onnxscript.optimizer.fold_constants(program.model, should_fold=_of_no_weight)
            onnxscript.optimizer.remove_unused_nodes(program.model)
            with open(path, "wb") as f:
                f.write(_without_parameters(program.model_proto, module, norms if trains else []).SerializeToString())
    finally:
        for one, was_training in states:
            one.training = was_training
    layer = {"file": os.path.abspath(path)}
    return {"onnx": {**layer, "batch_norm": "train"} if trains else layer}
