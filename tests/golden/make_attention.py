#!/usr/bin/env python3
"""Writes attention_golden.h: attention and linear_cross_entropy with their gradients, as PyTorch computes them in f64.

    python3 make_attention.py > attention_golden.h        (PyTorch 2; the version is written into the file)

Its heads [N,H,T,D] become [N,T,H,D] here.
"""
import math
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(22)
arrays, cases = [], []
NAMES = {torch.float32: ("STK_F32", "float", "%.9g"), torch.float64: ("STK_F32", "float", "%.9g"),
         torch.int32: ("STK_I32", "int32_t", "%d"), torch.bool: ("STK_BOOL", "uint8_t", "%d")}


def rand(*shape, size=1.0):
    return ((torch.rand(*shape, dtype=torch.float32) * 2 - 1) * size).double()


def tensor(x):
    dtype, ctype, form = NAMES[x.dtype]
    lines, line = [], "   "
    for v in x.flatten().tolist():
        word = form % v
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    name = f"attention_{len(arrays)}"
    arrays.append(f"static const {ctype} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return f"{{{dtype}, DIMS({', '.join(map(str, x.shape))}), {name}}}"


def case(name, op, attrs, inputs, outputs):
    ins = ",\n         ".join(tensor(x) for x in inputs)
    outs = ",\n         ".join(tensor(x) for x in outputs)
    cases.append(f'    {{"{name}",\n     STK_OP_{op},\n     {{{attrs}}},\n     {len(inputs)},\n     {len(outputs)},\n'
                 f"     1,\n     -1,\n     {{{ins}}},\n     {{{outs}}}}},")


def attention(name, n, t, s, h, d, scale=0.0, causal=False, mask=None, size=1.0):
    scale = scale or float(torch.tensor(1 / math.sqrt(d)).float())
    q, k, v = (rand(n, h, r, d, size=size).requires_grad_() for r in (t, s, s))
    see = torch.ones(n, 1, t, s, dtype=torch.bool)
    if causal:
        see &= torch.ones(t, s, dtype=torch.bool).tril()
    if mask is not None:
        see &= mask[:, None, None, :]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=see, scale=scale)
    dy = rand(n, h, t, d)
    grads = torch.autograd.grad(y, (q, k, v), dy)
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~see, -math.inf)
    lse = torch.logsumexp(scores, -1).detach()
    heads_last = lambda x: x.detach().permute(0, 2, 1, 3).contiguous()
    q, k, v, y, dy = map(heads_last, (q, k, v, y, dy))
    attrs = f".attention = {{.scale = {scale!r}, .causal = {int(causal)}}}"
    rest = [] if mask is None else [mask]
    case(name, "attention", attrs, [q, k, v] + rest, [y, lse])
    case(name + ", gradients", "attention_grad", attrs, [dy, q, k, v, y, lse] + rest, [heads_last(g) for g in grads])


def linear_loss(name, m, v, d, smoothing=0.0, ignored=-100):
    x, weight = rand(m, d).requires_grad_(), rand(v, d, size=2.0).requires_grad_()
    labels = torch.randint(0, v, (m,))
    labels[::3] = ignored if ignored < 0 else labels[::3]
    y = F.cross_entropy(x @ weight.T, labels, reduction="none", label_smoothing=smoothing, ignore_index=ignored)
    dloss = rand(m)
    grads = torch.autograd.grad(y, (x, weight), dloss)
    attrs = f".linear_cross_entropy = {{{smoothing}, {ignored}}}"
    x, weight, y, labels = x.detach(), weight.detach(), y.detach(), labels.to(torch.int32)
    case(name, "linear_cross_entropy", attrs, [x, weight, labels], [y])
    case(name + ", gradients", "linear_cross_entropy_grad", attrs, [x, weight, labels, dloss], [*grads, y])


attention("heads", 2, 5, 5, 2, 4)
attention("more keys", 1, 3, 7, 2, 5)
attention("causal", 1, 9, 9, 2, 3, causal=True)
attention("causal, more queries", 1, 6, 3, 1, 4, causal=True)
attention("causal, more keys", 1, 3, 6, 1, 4, causal=True)
attention("masked", 2, 3, 6, 2, 4, mask=torch.tensor([[1, 1, 0, 1, 0, 1], [1, 1, 1, 1, 0, 0]], dtype=torch.bool))
attention("masked, causal", 1, 5, 5, 2, 4, causal=True, mask=torch.tensor([[1, 1, 0, 1, 1]], dtype=torch.bool))
attention("own scale, large scores", 1, 4, 4, 1, 8, scale=2.0, size=3.0)
linear_loss("classes", 6, 11, 4)
linear_loss("smoothed", 5, 7, 3, smoothing=0.1)
linear_loss("ignored class", 7, 4, 3, ignored=2)

sys.stdout.write(f"""/* Made by tests/golden/make_attention.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */
/* clang-format off */
""" + "\n".join(arrays) + "\n\nstatic const golden_case attention_cases[] = {\n" + "\n".join(cases) + "\n};\n")
