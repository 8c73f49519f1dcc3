"""Modules of PyTorch as layers of recipes, by way of ONNX."""

import os
import warnings


def _stays(module):
    """Layers that are other than in PyTorch's training, by name."""
    import torch

    found = {"batch norms, whose running statistics stay as they are": [], "dropouts, which drop nothing": []}
    norms, drops = found
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            found[norms].append(name)
        elif isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.p > 0:
            found[drops].append(name)
    return ["%s: %s" % (what, ", ".join(names[:8]) + (" and %d more" % (len(names) - 8) if len(names) > 8 else ""))
            for what, names in found.items() if names]


def from_torch(module, example, path):
    """Writes a torch.nn.Module to `path` as ONNX, and gives the layer of a recipe that trains it on, {"onnx": {"file": path}}.

        layer = stoker.from_torch(module, torch.zeros(1, 3, 32, 32), "net.onnx")
        stoker.train({..., "model": {"layers": [layer]}})

    The network begins with the module's weights. example is one input, [N, ...] float32, as the module takes it; images come in as
    Stoker has them, [N,H,W,C], and are turned. Batch norms and dropouts are those of evaluation, and a warning names them; so are
    the operators in errors that Stoker does not have. docs/onnx.md tells what cannot be a layer. Needs onnxscript.
    """
    import torch

    for text in _stays(module):
        warnings.warn("from_torch: %s" % text, stacklevel=2)
    path, was_training = os.fspath(path), module.training
    module.eval()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own
            torch.onnx.export(module, (example,), path, input_names=["image"], dynamo=True, external_data=False, verbose=False,
                              dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    finally:
        module.train(was_training)
    return {"onnx": {"file": os.path.abspath(path)}}
