#!/usr/bin/env python3
"""Stoker compared with PyTorch and ONNX Runtime with the same weights: random ones, saved by torchvision and transformers,
imported, exported and loaded there again; exports in ONNX; models that PyTorch exported. Writes docs/exchange.md.

usage: exchange.py BUILD_FOLDER WORK_FOLDER [--write FILE] [NETWORK]...

Needs torch, torchvision, transformers, safetensors, onnx, onnxruntime and onnxscript (./dev exchange installs them).
Nothing is downloaded. Ends with 1 where a figure is above its bound. A quarter of an hour on two cores, 4 GB.
"""
import argparse
import dataclasses
import glob
import json
import os
import shutil
import subprocess
import sys
import time
import typing
import warnings

import onnx
import onnxruntime
import safetensors.torch
import torch
import torchvision
import transformers

from machine import machine

ROWS, BOUND = 2, 1e-4
SHARD_MIB = 64
bad = []


# --- the networks ---

def recipe(source, model):
    return (f"name: exchange\ndata:\n  train:\n    source: {{synthetic: {source}}}\nbatch: 2\nmodel: {model}\n"
            "optimizer: {sgd: {lr: 0.001}}\nepochs: 1\n")


@dataclasses.dataclass
class Network:
    name: str
    whose: str
    make: typing.Callable   # None: no library has it; it is trained here for some steps
    recipe: str
    below: int = 0          # tokens; 0: images
    side: int = 224         # of images
    names: str = "pytorch"  # stoker export --names
    loader: typing.Any = None  # transformers' class, for from_pretrained


def image_recipe(model, side=224):
    return recipe(f"{{fields: {{image: [{side}, {side}, 3]}}, classes: 1000}}", model)


NETWORKS = [
    Network("resnet50", "torchvision", torchvision.models.resnet50, image_recipe("{resnet50: {classes: 1000}}")),
    Network("resnet50-hf", "transformers", lambda: transformers.ResNetForImageClassification(
        transformers.ResNetConfig(num_labels=1000)), image_recipe("{resnet50: {classes: 1000}}"), names="hf-resnet",
        loader=transformers.ResNetForImageClassification),
    Network("vgg16", "torchvision", torchvision.models.vgg16, image_recipe("{vgg16: {classes: 1000}}")),
    Network("mobilenet_v2", "torchvision", torchvision.models.mobilenet_v2, image_recipe("{mobilenet_v2: {classes: 1000}}")),
    Network("vit-b/16", "torchvision", torchvision.models.vit_b_16, image_recipe("{vit: {size: base, classes: 1000}}")),
    Network("vit-b/16-hf", "transformers", lambda: transformers.ViTForImageClassification(
        transformers.ViTConfig(num_labels=1000)), image_recipe("{vit: {size: base, classes: 1000, eps: 1e-12}}"),
        names="hf-vit", loader=transformers.ViTForImageClassification),
    Network("bert-base", "transformers", lambda: transformers.BertForSequenceClassification(transformers.BertConfig()),
            recipe("{fields: {tokens: {shape: [128], below: 30522}}, classes: 2}", "{bert: {size: base, classes: 2, length: 128}}"),
            below=30522, loader=transformers.BertForSequenceClassification),
    Network("gpt2-124m", "transformers", lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
            recipe("{fields: {tokens: {shape: [128], below: 50257}, targets: {shape: [128], below: 50257}}}",
                   "{gpt2: {size: 124m, length: 128}}"), below=50257, loader=transformers.GPT2LMHeadModel),
    Network("unet", "none", None, recipe("{fields: {image: [64, 64, 3], mask: {shape: [64, 64], below: 2}}}", "{unet: {classes: 2}}"),
            side=64),
    Network("group norms", "none", None, image_recipe("""
  layers:
    - conv2d: {filters: 8, kernel: 3}
    - group_norm: 4
    - relu
    - max_pool: 2
    - group_norm: {groups: 8}
    - flatten
    - dense: 16
    - group_norm: 2
    - dense: 1000""", 16), side=16),
]


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
        elif tensor.is_floating_point() and tensor.eq(tensor.flatten()[0]).all():
            tensor.normal_(0, 0.05)  # torchvision's ViT has a head of zeros
    return model.eval()


def inputs(net):
    """PyTorch's, and ours."""
    torch.manual_seed(2)
    if net.below:
        x = torch.randint(0, net.below, (ROWS, 128))
        return x, {"tokens": x.to(torch.int32)}
    x = torch.randn(ROWS, 3, net.side, net.side)
    return x, {"image": x.permute(0, 2, 3, 1).contiguous()}


def logits_of(model, x):
    with torch.no_grad():
        y = model(x)
    return y if torch.is_tensor(y) else y.logits


# --- running and comparing ---

# A process of its own between, since a child's peak begins with its parent's size, and this one is large.
LAUNCH = """import os, sys
pid = os.fork()
if not pid:
    os.dup2(2, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def run(*command):
    """Seconds and the peak of its memory in MiB."""
    begin = time.time()
    done = subprocess.run([sys.executable, "-S", "-E", "-c", LAUNCH, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return time.time() - begin, int(done.stdout) / 1024


def check(net, what, difference, logits):
    """The difference as text; one that is too large is remembered."""
    largest = abs(difference).max().item()
    if not largest <= BOUND * max(1, abs(logits).max().item()):
        bad.append(f"{net.name}: {what} differs by {largest:.1e}")
        return f"**{largest:.1e}**"
    return f"{largest:.1e}"


def agree(net, what, true):
    if not true:
        bad.append(f"{net.name}: {what}")
    return "yes" if true else "**no**"


def load_all(path):
    """The tensors of a file, or of all shards that an index names."""
    if not path.endswith(".json"):
        return safetensors.torch.load_file(path)
    files = set(json.load(open(path))["weight_map"].values())
    return {k: v for f in files for k, v in safetensors.torch.load_file(os.path.join(os.path.dirname(path), f)).items()}


def same_tensors(a, b):
    """Equal to the last bit, but for counters that nothing is computed with and second names of tied weights."""
    a, b = ({k: v for k, v in x.items() if "num_batches" not in k and k != "lm_head.weight"} for x in (a, b))
    return a.keys() == b.keys() and all(torch.equal(v.view(torch.uint8), b[k].view(torch.uint8)) for k, v in a.items() if v.dim()) \
        and all(torch.equal(v, b[k]) for k, v in a.items())


def save_theirs(net, model):
    """As their library writes it: one file, and shards where it can write some."""
    if net.loader:
        model.save_pretrained("theirs")
        model.save_pretrained("theirs-shards", max_shard_size=f"{SHARD_MIB}MB")
    else:
        os.makedirs("theirs")
        safetensors.torch.save_file(model.state_dict(), "theirs/model.safetensors")


def load_ours(net, folder, state):
    """A model of theirs with our file's weights, as their library loads it."""
    if net.loader:
        model, info = net.loader.from_pretrained(folder, output_loading_info=True)
        return model.eval(), not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    model = net.make()
    missing = model.load_state_dict(state, strict=False)
    return model.eval(), not missing.unexpected_keys and all("num_batches" in k for k in missing.missing_keys)


def compare_weights(net, tools):
    """Import, logits, export, load there, import again, shards; one line of the first table."""
    model = fill(net.make())
    x, _ = inputs(net)
    want = logits_of(model, x)
    save_theirs(net, model)
    into, peak = run(tools.stoker, "import", "theirs", "--recipe", "recipe.yaml", "--out", "run")
    run(tools.logits, "run", "in.safetensors", "out.safetensors")
    got = load_all("out.safetensors")["logits"]
    export = [tools.stoker, "export", "run", "--safetensors", "--names", net.names]
    out, out_peak = run(*export)
    ours = load_all("run/model.safetensors")
    same = same_tensors(ours, load_all("theirs/model.safetensors"))
    os.makedirs("ours")
    shutil.copy("run/model.safetensors", "ours/model.safetensors")
    if net.loader:
        shutil.copy("theirs/config.json", "ours/config.json")
    again, all_loaded = load_ours(net, "ours", ours)
    back = logits_of(again, x)
    # Our own file once more, and in shards.
    run(tools.stoker, "import", "ours", "--recipe", "recipe.yaml", "--out", "run2")
    run(*export[:2], "run2", *export[3:])
    same_again = open("run/model.safetensors", "rb").read() == open("run2/model.safetensors", "rb").read()
    sharded = compare_shards(net, tools, export, ours, x, want)
    print_row([net.name, net.whose, f"{sum(p.numel() for p in model.parameters()):,}", f"{want.abs().max():.3g}",
               check(net, "our logits", got - want, want), agree(net, "the tensors exported are not the same bits", same),
               agree(net, "their library misses tensors", all_loaded), check(net, "their logits of our file", back - want, want),
               agree(net, "the second round trip", same_again), sharded, f"{into:.1f} s, {peak:.0f} MiB", f"{out:.1f} s, {out_peak:.0f} MiB"])


def compare_shards(net, tools, export, ours, x, want):
    """Our shards, loaded there and read here; theirs, read here."""
    os.makedirs("ours-shards")
    run(*export, "--shard", str(SHARD_MIB), "--out", "ours-shards/model.safetensors")
    index = "ours-shards/model.safetensors.index.json"
    if not os.path.exists(index):
        return agree(net, f"one file of more than {SHARD_MIB} MiB", os.path.getsize("ours-shards/model.safetensors") >> 20 < SHARD_MIB) \
            and "one file"
    ok = same_tensors(load_all(index), ours)
    if net.loader:
        shutil.copy("theirs/config.json", "ours-shards/config.json")
        model, all_loaded = load_ours(net, "ours-shards", None)
        ok = ok and all_loaded and torch.equal(logits_of(model, x), want)
        run(tools.stoker, "import", "theirs-shards", "--recipe", "recipe.yaml", "--out", "run4")
        run(*export[:2], "run4", *export[3:])
        ok = ok and same_tensors(load_all("run4/model.safetensors"), ours)
    run(tools.stoker, "import", "ours-shards", "--recipe", "recipe.yaml", "--out", "run3")
    run(*export[:2], "run3", *export[3:])
    ok = ok and same_tensors(load_all("run3/model.safetensors"), ours)
    n = len(glob.glob("ours-shards/*.safetensors"))
    return agree(net, "shards", ok) + f", {n}"


# --- ONNX ---

def compare_onnx_export(net, tools):
    """ONNX Runtime and our own importer on our export, next to our logits; one line of the second table."""
    if net.make is None:
        run(tools.stoker, "train", "recipe.yaml", "--out", "run", "--steps", "3")
        run(tools.logits, "run", "in.safetensors", "out.safetensors")
    got = load_all("out.safetensors")["logits"]
    seconds, peak = run(tools.stoker, "export", "run", "--onnx")
    file = "run/model.onnx"
    onnx.checker.check_model(file, full_check=True)
    _, ours = inputs(net)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    theirs = torch.from_numpy(session.run(None, {name: tensor.numpy() for name, tensor in ours.items()})[0])
    del session
    # In two files, as models above 2 GiB are.
    os.makedirs("two", exist_ok=True)
    run(tools.stoker, "export", "run", "--onnx", "--shard", "1", "--out", "two/model.onnx")
    onnx.checker.check_model("two/model.onnx", full_check=True)
    session = onnxruntime.InferenceSession("two/model.onnx", providers=["CPUExecutionProvider"])
    two = torch.from_numpy(session.run(None, {name: tensor.numpy() for name, tensor in ours.items()})[0])
    del session
    again, again_peak = run(tools.onnx, file, "in.safetensors", "again.safetensors")
    back = load_all("again.safetensors")["logits"]
    second_file = agree(net, "weights in a second file", torch.equal(two, theirs))
    if not os.path.exists("two/model.onnx.data"):
        second_file = agree(net, "a large model in one file", os.path.getsize(file) < 2 << 20) and "one file"
    print_row([net.name, f"{os.path.getsize(file) >> 20} MiB", f"{abs(got).max():.3g}", check(net, "ONNX Runtime", theirs - got, got),
               second_file, check(net, "our import of our export", back - got, got), f"{seconds:.1f} s, {peak:.0f} MiB",
               f"{again:.1f} s, {again_peak:.0f} MiB"])


class Logits(torch.nn.Module):
    """What is exported: one input, one output. The older exporter has no ONNX for what GPT-2 does without a mask."""

    def __init__(self, net, masked):
        super().__init__()
        self.net, self.masked = net, masked

    def forward(self, x):
        y = self.net(x, attention_mask=torch.ones_like(x)) if self.masked else self.net(x)
        return y if torch.is_tensor(y) else y.logits


def compare_onnx_import(net, tools):
    """What PyTorch's two exporters make of the same network; lines of the third table."""
    model = Logits(fill(net.make()), net.name.startswith("gpt2")).eval()
    if hasattr(model.net, "config"):
        model.net.config.use_cache = False
    x, _ = inputs(net)
    want = logits_of(model, x)
    safetensors.torch.save_file({"x": x}, "x.safetensors")
    for name, new in (("TorchScript, opset 17", False), ("torch.export, opset 18", True)):
        folder = "new" if new else "script"
        os.makedirs(folder)
        opened = {"dynamic_shapes": ({0: torch.export.Dim("N")},)} if new else {"dynamic_axes": {"x": {0: "N"}}}
        torch.onnx.export(model, (x,), f"{folder}/model.onnx", opset_version=18 if new else 17, input_names=["x"],
                          output_names=["logits"], dynamo=new, verbose=False, **opened)
        seconds, peak = run(tools.onnx, f"{folder}/model.onnx", "x.safetensors", "theirs.safetensors", f"N={ROWS}")
        got = load_all("theirs.safetensors")["logits"]
        size = sum(os.path.getsize(f) for f in glob.glob(f"{folder}/*"))
        print_row([net.name, net.whose, name, f"{size >> 20} MiB", f"{want.abs().max():.3g}",
                   check(net, f"import of what {name} wrote", got - want, want), f"{seconds:.1f} s, {peak:.0f} MiB"])


# --- the document ---

lines = []


def write(text=""):
    lines.append(text)
    print(text, flush=True)


def print_row(cells):
    write(f"| {' | '.join(cells)} |")


def each(title, tools, names, part):
    """One table: its head, and each network in a folder of its own."""
    write()
    print_row(title)
    print_row(["---:" if i > 1 else "---" for i in range(len(title))])
    for net in NETWORKS:
        if names and net.name not in names:
            continue
        folder = f"{tools.work}/{net.name.replace('/', '-').replace(' ', '-')}"
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        with open("recipe.yaml", "w") as f:
            f.write(net.recipe)
        safetensors.torch.save_file(inputs(net)[1], "in.safetensors")
        if net.make or part is compare_onnx_export:  # what no library has can only be exported
            part(net, tools)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--write")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    unknown = set(args.names) - {net.name for net in NETWORKS}
    if unknown:
        sys.exit(f"exchange: no network '{unknown.pop()}'; there are {', '.join(net.name for net in NETWORKS)}")
    out = args.write and os.path.abspath(args.write)
    tools = argparse.Namespace(stoker=os.path.abspath(f"{args.build}/stoker"), logits=os.path.abspath(f"{args.build}/bench/bench_logits"),
                               onnx=os.path.abspath(f"{args.build}/bench/bench_onnx"), work=os.path.abspath(args.work))
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    shutil.rmtree(args.work, ignore_errors=True)
    write("# Compared with PyTorch and ONNX Runtime\n\nMade by `./dev exchange`: torch "
          f"{torch.__version__}, torchvision {torchvision.__version__}, transformers {transformers.__version__}, onnx "
          f"{onnx.__version__}, onnxruntime {onnxruntime.__version__}.\n\n"
          f"Networks of those libraries with random weights, two samples each, f32. A difference is the largest of any logit; {BOUND:g}\n"
          "(times the largest logit, where that is above 1) is allowed. Times and peaks are those of our whole process, on a shared machine\n"
          f"({machine()}).\n\n## Weights\n\n"
          "Saved there, imported, exported, loaded there again. *Same bits*: each tensor that we export is theirs. *All loaded*: their\n"
          "library finds every tensor in our file and no other. *Again*: our file, imported and exported once more, is the same file.\n"
          f"*Shards*: of {SHARD_MIB} MiB, ours loaded there and here, and (transformers) theirs here, with the same bits and logits.")
    each(["Network", "Whose", "Parameters", "Largest logit", "Ours differ by", "Same bits", "All loaded", "Theirs differ by", "Again",
          "Shards", "Import", "Export"], tools, args.names, compare_weights)
    write("\n## ONNX out\n\n`stoker export --onnx`, which passes `onnx.checker` with its shapes. *Runtime*: ONNX Runtime compared with our logits; "
          "*in two files*:\nits logits are the same bits with the weights next to the model. *Read again*: our own importer compared with our logits.")
    each(["Network", "Size", "Largest logit", "Runtime differs by", "In two files", "Read again differs by", "Export", "Import and run"],
         tools, args.names, compare_onnx_export)
    write("\n## ONNX in\n\nWhat PyTorch's exporters write of the same networks, read here and computed, compared with PyTorch's logits.")
    each(["Network", "Whose", "Exporter", "Size", "Largest logit", "Ours differ by", "Import and run"], tools, args.names, compare_onnx_import)
    if out and not args.names:
        with open(out, "w") as f:
            f.write("\n".join(lines) + "\n")
    if bad:
        sys.exit("exchange: " + "; ".join(bad))


main()
