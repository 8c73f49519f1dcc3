#!/usr/bin/env python3
"""Networks of one's own: branches by name, blocks, several inputs, layers in C, and messages that name line and shapes.

usage: test_layers.py STOKER WORK_FOLDER
"""
import os
import random
import shutil
import subprocess

from program import accepted, begin, check, end, losses, refused

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include")

IMAGES = """
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 20
optimizer: {adam: {lr: 0.003}}
epochs: 1
log: {every: 1 step}
checkpoint: {end: false, every: 1000 epochs}
model:
  layers:
"""
BRANCHES = """
    - {conv2d: {filters: 8, stride: 2}}
    - {group_norm: 4}
    - {leaky_relu: 0.1}
    - {name: half}
    - {conv2d: {filters: 8, stride: 2}}
    - hard_swish
    - {upsample: {scale: 2, mode: linear}}
    - {concat: half}
    - {conv2d: {filters: 16, kernel: 1}}
    - {name: wide}
    - block: {scope: stage, repeat: 2, layers: [{conv2d: 16}, batch_norm, relu6]}
    - {add: [wide]}
    - {name: gated}
    - global_pool
    - {dense: 16}
    - sigmoid
    - {reshape: [1, 1, 16]}
    - {mul: gated}
    - {max_pool: 2}
    - {reshape: [49, -1]}
    - {positions: 49}
    - {attention_block: {heads: 4, norm_first: true}}
    - {attention_block: {heads: 2, dropout: 0.1}}
    - layer_norm
    - global_max_pool
    - {dense: 10}
"""
TABLE = """
data:
  train:
    source: {csv: {files: table.csv, fields: {user: {dtype: i32}, item: {dtype: i64},
             numbers: {dtype: f32, columns: [a, b]}, label: {dtype: i32, columns: k}}}}
    shuffle: true
batch: 32
optimizer: {adam: {lr: 0.03}}
epochs: 4
log: {every: 1 step}
checkpoint: {end: false, every: 1000 epochs}
model:
  layers:
    - {from: user}
    - {embedding: {rows: 5, width: 4}}
    - {name: of_user}
    - {from: item}
    - {embedding: {rows: 7, width: 4}}
    - {concat: [of_user, numbers]}
    - {dense: 16}
    - relu
    - {dense: 2}
"""
PLUGIN = """
#include <stdlib.h>
#include <stoker/nn/plugin.h>
static stk_value gate(stk_value x, const char *settings)
{
    return stk_mul(stk_dense(x, atoi(settings)), stk_sigmoid(stk_dense(x, atoi(settings))));
}
static stk_value nothing(stk_value x, const char *settings)
{
    (void)settings;
    return (stk_value){x.graph, -1};
}
static const stk_layer_plugin layers[] = {{"gate", gate}, {"nothing", nothing}, {NULL, NULL}};
STK_EXPORT_LAYERS(layers)
"""


def write(name, text):
    with open(name, "w") as f:
        f.write(text)
    return name


def learns(name, text, share):
    accepted(["train", write(f"{name}.yaml", text), "--out", name])
    seen = losses(name)
    n = max(2, len(seen) // 8)
    check(sum(seen[-n:]) < share * sum(seen[:n]), f"the loss of {name}: {seen[:n]} to {seen[-n:]}")


def refuses(layers, *parts):
    refused(["train", write("bad.yaml", IMAGES + layers)], 1, "bad.yaml:", *parts)


def branches():
    learns("branches", (IMAGES + BRANCHES).replace("epochs: 1", "epochs: 3"), 0.95)
    random.seed(2)
    rows = ["user,item,a,b,k"]
    for _ in range(320):
        user, item, a = random.randrange(5), random.randrange(7), random.uniform(-1, 1)
        rows.append(f"{user},{item},{a:.4f},0.5,{int((user + item) % 2 == 0 or a > 0.8)}")
    write("table.csv", "\n".join(rows) + "\n")
    learns("table", TABLE, 0.9)


def messages():
    refuses("    - {conv2d: 8}\n    - {add: image}\n", "bad.yaml:15:13", "the layers so far give [?,28,28,8], and 'image' is "
            "[?,28,28,1]; they must be equal to be added")
    refuses("    - {name: a}\n    - {max_pool: 2}\n    - {concat: a}\n", "all sides but the last must be equal")
    refuses("    - {add: b}\n", "nothing before is named 'b', and source 'images' has no field 'b'; it has 'image', 'label'")
    refuses("    - {name: a}\n    - {add: b}\n", "nothing before is named 'b' (the names are a), and source")
    refuses("    - {name: a}\n    - {name: a}\n", "the name 'a' is given twice")
    refuses("    - {reshape: [3, 5]}\n", "[?,28,28,1] a sample has 784 numbers, which these sides do not hold")
    refuses("    - {from: nowhere}\n", "nothing before is named 'nowhere'")
    refuses("    - {conv2d: 6}\n    - {group_norm: 4}\n", "bad.yaml:15:7", "layer 'group_norm': 6 channels do not divide")
    refuses("    - {attention_block: 2}\n", "layer 'attention_block.attention.attention': its input is [?,28,28,1]", "[N,T,C]")


def dead_ends():
    """What the output does not depend on is a mistake; the list above begins in line 13."""
    whole = ["{conv2d: {filters: 8, stride: 2}}", "{name: half}", "{conv2d: 8}", "relu", "{name: side}", "{from: half}",
             "{concat: side}", "global_pool", "{dense: 10}"]
    lay = lambda lines: "".join(f"    - {line}\n" for line in lines)
    accepted(["train", write("joined.yaml", IMAGES + lay(whole)), "--out", "joined", "--steps", "1"])
    without = [line for line in whole if "concat" not in line]
    refuses(lay(without), "bad.yaml:18:", "does not depend on 'side'", "add, mul or concat")
    refuses(lay([line for line in without if "side" not in line]), "bad.yaml:17:", "does not depend on this layer, 'relu'")
    # Two ends of one dead branch: the last is the one to mend. Within blocks and residuals as well.
    chain = without[:5] + ["{conv2d: 4}", "{name: twig}"] + without[5:]
    refuses(lay(chain), "bad.yaml:20:", "does not depend on 'twig'")
    refuses(lay(whole[:2] + ["residual: {layers: [{conv2d: 8}, tanh, {from: half}]}"] + whole[-2:]), "layer, 'tanh'")
    refuses(lay(whole[:2] + ["block: {layers: [{from: image}, {conv2d: 3}]}"] + whole[-2:]), "bad.yaml:15:", "'half'")
    refuses(lay(whole + ["{from: image}", "global_pool", "{dense: 10}"]), "bad.yaml:22:", "layer, 'dense'")
    refused(["train", write("bad.yaml", TABLE.replace("{concat: [of_user, numbers]}", "{concat: numbers}"))], 1,
            "does not depend on 'of_user'")


def plugins():
    if not shutil.which("cc"):
        print("SKIP of plug-ins: there is no C compiler")
        return
    write("gate.c", PLUGIN)
    write("old.c", PLUGIN.replace("STK_EXPORT_LAYERS(layers)",
                                  "const stk_plugin_info stoker_plugin = {STK_PLUGIN_ABI + 7, 16, layers};"))
    write("none.c", "int nothing_here;\n")
    for name in ("gate", "old", "none"):
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", f"-I{INCLUDE}", f"{name}.c", "-o", f"{name}.so"], check=True)
    dense = "    - flatten\n    - {plugin: {file: FILE, SETTINGS}}\n    - {dense: 10}\n"
    use = lambda file, settings="settings: '24'": dense.replace("FILE", file).replace("SETTINGS", settings)
    learns("plugin", IMAGES + use("gate.so"), 0.9)
    refuses(use("missing.so"), "missing.so")
    refuses(use("none.so"), "is no plug-in: it has no 'stoker_plugin'")
    refuses(use("old.so"), "was built for plug-ins of version 8, this program takes 1: rebuild it")
    refuses(use("gate.so", "layer: door"), "the plug-in has no layer 'door'; it has gate, nothing")
    refuses(use("gate.so", "layer: nothing"), "the layer 'nothing' of", "gave no value of this network")
    refuses(use("gate.so", "settings: none"), "bad.yaml:", "layer 'dense': units is 0, and must be 1 or more")


def blocks_multiply():
    """Blocks in blocks: 400 bytes for a million million layers."""
    def nest(repeats, inner):
        for n in reversed(repeats):
            inner = f"{{block: {{repeat: {n}, layers: [{inner}]}}}}"
        return f"    - {inner}\n"
    refuses(nest([1000] * 4, "{dense: 4}"), "bad.yaml:14:", "more than 10000 layers")
    refuses(nest([1000] * 30, "relu"), "bad.yaml:14:", "nested more than 64 deep")
    refuses(nest([1000] * 2, "{attention_block: 1}").replace("- {", "- flatten\n    - {reshape: [1, 784]}\n    - {", 1),
            "bad.yaml:16:", "may have 250000")
    refuses("    - block: {scope: " + "a" * 2000 + ", layers: [relu]}\n", "bad.yaml:14:", "1024 bytes")


begin()
branches()
messages()
dead_ends()
blocks_multiply()
plugins()
end()
