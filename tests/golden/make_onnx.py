"""Writes tests/golden/onnx/*.onnx, tiny networks exported by PyTorch, and onnx_golden.h: what PyTorch computes with them.

    python3 make_onnx.py        (PyTorch 2.15, transformers 5.23, onnx 1.23, onnxscript)

Each by the TorchScript exporter, opset 17, and by the newer one, opset 18, whose weights lie in a file next to it; "norms"
by opsets 20, PyTorch's standard, and 21, which have Gelu and GroupNormalization. The first dimension is open and called N.
"""
import pathlib
import warnings

import onnx
import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "onnx"
warnings.filterwarnings("ignore")


class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(n, n, 3, padding=1, bias=False), torch.nn.BatchNorm2d(n)
        self.conv2, self.bn2 = torch.nn.Conv2d(n, n, 3, padding=1, bias=False), torch.nn.BatchNorm2d(n)

    def forward(self, x):
        return torch.relu(x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


class Residual(torch.nn.Module):
    """What a ResNet is made of, a few channels wide."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False),
                                        torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1))
        self.block, self.pool, self.fc = Block(4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.block(self.stem(x))), 1))


class Norms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = torch.nn.Conv2d(3, 6, 3, stride=3), torch.nn.GroupNorm(3, 6), torch.nn.Linear(6, 4)

    def forward(self, x):
        y = torch.nn.functional.gelu(self.norm(self.conv(x)))
        y = torch.nn.functional.mish(self.fc(y.mean((2, 3))))
        return torch.nn.functional.gelu(y, approximate="tanh")


class Logits(torch.nn.Module):
    def __init__(self, net, masked):
        super().__init__()
        self.net, self.masked = net, masked

    def forward(self, x):
        y = self.net(x, attention_mask=torch.ones_like(x)) if self.masked else self.net(x)
        return y if torch.is_tensor(y) else y.logits


def networks():
    bert = transformers.BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                   intermediate_size=16, max_position_embeddings=8, num_labels=3)
    gpt2 = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_inner=16, n_positions=8,
                                   bos_token_id=0, eos_token_id=0, use_cache=False)
    image = torch.arange(2 * 3 * 16 * 16).mul(7919).remainder(1009).float().div(1009).sub(0.5).reshape(2, 3, 16, 16)
    tokens = (torch.arange(12) * 7 % 20).reshape(2, 6)
    yield "residual", Logits(Residual(), False), image
    yield "bert", Logits(transformers.BertForSequenceClassification(bert), False), tokens
    yield "gpt2", Logits(transformers.GPT2LMHeadModel(gpt2), True), tokens
    yield "norms", Logits(Norms(), False), image


def shake(model):
    """No weight is 0 or 1 any more, and logits are of a usual size."""
    torch.manual_seed(3)
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif tensor.is_floating_point():
            tensor.normal_(0, 0.3) if tensor.dim() > 1 or not name.endswith("weight") else tensor.uniform_(0.5, 1.5)
    return model.eval()


def strip(path):
    """Without what tells where in PyTorch a node came from, so that the files are small."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    del model.graph.value_info[:], model.metadata_props[:], model.graph.metadata_props[:]
    for info in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        del info.metadata_props[:]
    path.write_bytes(model.SerializeToString())


def emit(out, name, values):
    flat = values.detach().flatten().tolist()
    out.append(f"static const float {name}[{len(flat)}] = {{")
    texts = [f"{v:.9g}f" if "." in f"{v:.9g}" or "e" in f"{v:.9g}" else f"{v:.9g}.0f" for v in flat]
    out += ["    " + ", ".join(texts[i:i + 8]) + "," for i in range(0, len(texts), 8)] + ["};"]


def main():
    FOLDER.mkdir(exist_ok=True)
    out = ["/* Made by make_onnx.py. */"]
    for name, model, x in networks():
        model = shake(model)
        with torch.no_grad():
            emit(out, f"{name}_logits", model(x))
        for new in (False, True):
            path = FOLDER / f"{name}-{'new' if new else 'script'}.onnx"
            open_batch = {"dynamic_shapes": ({0: torch.export.Dim("N")},)} if new else {"dynamic_axes": {"x": {0: "N"}}}
            opset = (20, 21)[new] if name == "norms" else (17, 18)[new]
            torch.onnx.export(shake(model), (x,), str(path), opset_version=opset, input_names=["x"],
                              output_names=["logits"], dynamo=new, **open_batch)
            strip(path)
            onnx.checker.check_model(str(path))
    (FOLDER.parent / "onnx_golden.h").write_text("\n".join(out) + "\n")


main()
