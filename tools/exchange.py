#!/usr/bin/env python3
"""Stoker beside PyTorch with the same weights: random ones, saved by torchvision and transformers, imported, exported
and loaded there again. Prints a table in Markdown (docs/files.md).

usage: exchange.py STOKER BENCH_LOGITS WORK_FOLDER [NETWORK]...

Needs torch, torchvision, transformers and safetensors; with onnx and onnxruntime, exports in ONNX too.
"""
import os
import shutil
import subprocess
import sys

import safetensors.torch
import torch
import torchvision
import transformers

STOKER, LOGITS, WORK = map(os.path.abspath, sys.argv[1:4])
ROWS = 2

try:
    import onnx
    import onnxruntime
except ImportError:
    onnxruntime = None


def recipe(name, source, model):
    return (f"name: {name}\ndata:\n  train:\n    source: {{synthetic: {source}}}\nbatch: 2\nmodel: {model}\n"
            "optimizer: {sgd: {lr: 0.01}}\nepochs: 1\n")


IMAGE = "{fields: {image: [224, 224, 3]}, classes: 1000}"
NETWORKS = {
    "resnet18": (lambda: torchvision.models.resnet18(), recipe("r", IMAGE, "{resnet18: {classes: 1000}}")),
    "resnet50": (lambda: torchvision.models.resnet50(), recipe("r", IMAGE, "{resnet50: {classes: 1000}}")),
    "bert-base": (lambda: transformers.BertForSequenceClassification(transformers.BertConfig()),
                  recipe("b", "{fields: {tokens: {shape: [128], below: 30522}}, classes: 2}",
                         "{bert: {size: base, classes: 2, length: 128}}")),
    "gpt2": (lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
             recipe("g", "{fields: {tokens: {shape: [128], below: 50257}, targets: {shape: [128], below: 50257}}}",
                    "{gpt2: {size: 124m, length: 128}}")),
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def fill(model):
    """Weights that are random everywhere, running statistics and what begins as 0 or 1 too."""
    torch.manual_seed(1)
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif name.endswith("running_mean") or name.endswith("bias"):
            tensor.normal_(0, 0.1)
        elif tensor.dim() == 1 and tensor.is_floating_point():
            tensor.uniform_(0.2, 0.6)  # logits of a usual size
    return model.eval()


def inputs(name):
    torch.manual_seed(2)
    if name.startswith("resnet") or name.startswith("vit"):
        x = torch.randn(ROWS, 3, 224, 224)
        return x, {"image": x.permute(0, 2, 3, 1).contiguous()}
    x = torch.randint(0, 30522, (ROWS, 128))
    return x, {"tokens": x.to(torch.int32)}


def logits_of(model, x):
    with torch.no_grad():
        y = model(x)
    return y if torch.is_tensor(y) else y.logits


def onnx_difference(ours, got):
    """Largest difference of ONNX Runtime's logits of our export from ours; the model passes the checker."""
    if not onnxruntime:
        return "no onnxruntime"
    run(STOKER, "export", "run", "--onnx")
    onnx.checker.check_model("run/model.onnx", full_check=True)
    session = onnxruntime.InferenceSession("run/model.onnx", providers=["CPUExecutionProvider"])
    theirs = session.run(None, {name: tensor.numpy() for name, tensor in ours.items()})[0]
    return f"{abs(theirs - got.numpy()).max():.1e}"


def compare(name):
    make, text = NETWORKS[name]
    folder = f"{WORK}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    open("recipe.yaml", "w").write(text)
    model = fill(make())
    x, ours = inputs(name)
    want = logits_of(model, x)
    if hasattr(model, "save_pretrained"):
        model.save_pretrained("theirs")
    else:
        os.makedirs("theirs")
        safetensors.torch.save_file(model.state_dict(), "theirs/model.safetensors")
    safetensors.torch.save_file(ours, "in.safetensors")
    run(STOKER, "import", "theirs", "--recipe", "recipe.yaml", "--out", "run")
    run(LOGITS, "run", "in.safetensors", "out.safetensors")
    got = safetensors.torch.load_file("out.safetensors")["logits"]
    run(STOKER, "export", "run", "--safetensors")
    back = safetensors.torch.load_file("run/model.safetensors")
    again = make().eval()
    missing = again.load_state_dict(back, strict=False)
    if hasattr(again, "tie_weights"):
        again.tie_weights()
    same = all(torch.equal(back[k], v) for k, v in model.state_dict().items() if k in back and "num_batches" not in k)
    lacks = [k for k in missing.missing_keys if k != "lm_head.weight"] + missing.unexpected_keys
    theirs = logits_of(again, x)
    print(f"| {name} | {sum(p.numel() for p in model.parameters()):,} | {want.abs().max():.3g} "
          f"| {(got - want).abs().max():.1e} | {'same bits' if same and not lacks else f'differs: {lacks}'} "
          f"| {(theirs - want).abs().max():.1e} | {onnx_difference(ours, got)} |", flush=True)
    return (got - want).abs().max() <= 1e-4 * max(1, want.abs().max()) and same and not lacks


print("| Network | Parameters | Largest logit | Largest difference of logits | Tensors exported | Their logits again | ONNX Runtime |")
print("|---|---:|---:|---:|---|---:|---:|", flush=True)
ok = [compare(name) for name in sys.argv[4:] or NETWORKS]
sys.exit(0 if all(ok) else "a network differs")
