#!/usr/bin/env python3
"""Writes ops_golden.h: what PyTorch computes for a few calls of each library op, and for five steps of each optimiser.

    python3 make_ops.py > ops_golden.h        (PyTorch 2; the version is written into the file)

Inputs are small random numbers that f32 can hold; PyTorch computes in f64. Its layouts NCHW and OIHW become NHWC and
OHWI here.
"""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(20)
arrays, cases = [], []


def rand(*shape, low=-1.0, high=1.0):
    x = torch.rand(*shape, dtype=torch.float32) * (high - low) + low
    return x.double()


def nhwc(x):
    return x.permute(0, 2, 3, 1).contiguous()


def array(x):
    """A C array with the values of x; its name."""
    name = f"data_{len(arrays)}"
    ctype = "int64_t" if x.dtype == torch.int64 else "int32_t" if x.dtype == torch.int32 else "float"
    form = "%d" if ctype != "float" else "%.9g"
    words = [form % v for v in x.flatten().tolist()]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    lines.append(line)
    arrays.append(f"static const {ctype} {name}[] = {{\n" + "\n".join(lines) + "\n};")
    return name


def tensor(x):
    dtype = {torch.int32: "STK_I32", torch.int64: "STK_I64"}.get(x.dtype, "STK_F32")
    shape = "{0}" if x.dim() == 0 else "DIMS(" + ", ".join(map(str, x.shape)) + ")"
    return f"{{{dtype}, {shape}, {array(x)}}}"


def case(name, op, attrs, inputs, outputs):
    """One call. outputs: tensors, None where PyTorch has no such value."""
    ins = ",\n         ".join(tensor(x) for x in inputs)
    outs = ",\n         ".join("{0}" if x is None else tensor(x) for x in outputs)
    cases.append(f'    {{"{name}",\n     STK_OP_{op},\n     {{{attrs}}},\n     {len(inputs)},\n     {len(outputs)},\n'
                 f"     1,\n     -1,\n     {{{ins}}},\n     {{{outs}}}}},")


def steps(name, op, attrs, state, grads, lr, history, with_step):
    """Several steps of an optimiser. state: first values; grads [n, ...]; history[i] [n, ...]: output i after each."""
    inputs = state + [grads, lr] + ([torch.zeros((), dtype=torch.int64)] if with_step else [])
    ins = ",\n         ".join(tensor(x) for x in inputs)
    outs = ",\n         ".join(tensor(torch.stack(x)) for x in history)
    cases.append(f'    {{"{name}",\n     STK_OP_{op},\n     {{{attrs}}},\n     {len(inputs)},\n     {len(history)},\n'
                 f"     {len(grads)},\n     {len(state)},\n     {{{ins}}},\n     {{{outs}}}}},")


def window(kernel, stride=(1, 1), low=(0, 0), high=None, dilation=(1, 1), groups=1):
    high = low if high is None else high
    pair = lambda p: "{%d, %d}" % tuple(p)
    return (f".window = {{{pair(kernel)}, {pair(stride)}, {pair(low)}, {pair(high)}, {pair(dilation)}, {groups}}}")


def conv(name, x, weight, stride=(1, 1), low=(0, 0), high=None, dilation=(1, 1), groups=1):
    high = low if high is None else high
    x.requires_grad_()
    weight.requires_grad_()
    padded = F.pad(x, (low[1], high[1], low[0], high[0]))
    y = F.conv2d(padded, weight, stride=stride, dilation=dilation, groups=groups)
    dy = rand(*y.shape)
    dx, dweight = torch.autograd.grad(y, (x, weight), dy)
    attrs = window(weight.shape[2:], stride, low, high, dilation, groups)
    x, weight, y, dy, dx, dweight = (nhwc(t.detach()) for t in (x, weight, y, dy, dx, dweight))
    shape = lambda t: ".shape = DIMS(" + ", ".join(map(str, t.shape)) + "), "
    case(name, "conv2d", attrs, [x, weight], [y])
    case(name + ", dx", "conv2d_grad_data", shape(x) + attrs, [dy, weight], [dx])
    case(name + ", dweight", "conv2d_grad_weight", shape(weight) + attrs, [x, dy], [dweight])


def pool(name, kind, x, kernel, stride, low):
    x.requires_grad_()
    if kind == "max":
        y = F.max_pool2d(x, kernel, stride, low)
    else:
        y = F.avg_pool2d(x, kernel, stride, low, count_include_pad=False)
    dy = rand(*y.shape)
    dx, = torch.autograd.grad(y, x, dy)
    attrs = window(kernel, stride, low)
    x, y, dy, dx = (nhwc(t.detach()) for t in (x, y, dy, dx))
    case(name, f"{kind}_pool2d", attrs, [x], [y])
    if kind == "max":
        case(name + ", dx", "max_pool2d_grad", attrs, [x, y, dy], [dx])
    else:
        shape = ".shape = DIMS(" + ", ".join(map(str, x.shape)) + "), "
        case(name + ", dx", "avg_pool2d_grad", shape + attrs, [dy], [dx])


def batch_norm(name, n, c, h, w, relu, eps=1e-5, momentum=0.1):
    x = rand(n, c, h, w).requires_grad_()
    scale, bias = rand(c, low=0.5, high=2.0).requires_grad_(), rand(c).requires_grad_()
    mean0, var0 = rand(c), rand(c, low=0.5, high=2.0)
    running_mean, running_var = mean0.clone(), var0.clone()
    y = F.batch_norm(x, running_mean, running_var, scale, bias, True, momentum, eps)
    y = F.relu(y) if relu else y
    dy = rand(*y.shape)
    dx, dscale, dbias = torch.autograd.grad(y, (x, scale, bias), dy)
    x = x.detach()
    mean, inv_std = x.mean((0, 2, 3)), 1 / torch.sqrt(x.var((0, 2, 3), unbiased=False) + eps)
    attrs = f".batch_norm = {{{eps}, {momentum}, 1, {int(relu)}}}"
    x, y, dy, dx = nhwc(x), nhwc(y.detach()), nhwc(dy), nhwc(dx)
    scale, bias = scale.detach(), bias.detach()
    case(name, "batch_norm", attrs, [x, scale, bias, mean0, var0], [y, mean, inv_std, running_mean, running_var])
    case(name + ", gradients", "batch_norm_grad", attrs, [dy, x, scale, bias, mean, inv_std], [dx, dscale, dbias])


def layer_norm(name, *shape, eps=1e-5):
    x, c = rand(*shape, low=-2, high=5).requires_grad_(), shape[-1]
    scale, bias = rand(c, low=0.5, high=2.0).requires_grad_(), rand(c).requires_grad_()
    y = F.layer_norm(x, (c,), scale, bias, eps)
    dy = rand(*y.shape)
    dx, dscale, dbias = torch.autograd.grad(y, (x, scale, bias), dy)
    x, scale, bias = x.detach(), scale.detach(), bias.detach()
    mean, inv_std = x.mean(-1), 1 / torch.sqrt(x.var(-1, unbiased=False) + eps)
    case(name, "layer_norm", f".layer_norm = {{{eps}}}", [x, scale, bias], [y.detach(), mean, inv_std])
    case(name + ", gradients", "layer_norm_grad", "0", [dy, x, scale, mean, inv_std], [dx, dscale, dbias])


def group_norm(name, n, c, h, w, groups, eps=1e-5):
    x = rand(n, c, h, w, low=-2, high=5).requires_grad_()
    scale, bias = rand(c, low=0.5, high=2.0).requires_grad_(), rand(c).requires_grad_()
    y = F.group_norm(x, groups, scale, bias, eps)
    dy = rand(*y.shape)
    dx, dscale, dbias = torch.autograd.grad(y, (x, scale, bias), dy)
    flat = x.detach().reshape(n, groups, -1)
    mean, inv_std = flat.mean(-1), 1 / torch.sqrt(flat.var(-1, unbiased=False) + eps)
    x, y, dy, dx = nhwc(x.detach()), nhwc(y.detach()), nhwc(dy), nhwc(dx)
    scale, bias, attrs = scale.detach(), bias.detach(), f".group_norm = {{{eps}, {groups}}}"
    case(name, "group_norm", attrs, [x, scale, bias], [y, mean, inv_std])
    case(name + ", gradients", "group_norm_grad", attrs, [dy, x, scale, mean, inv_std], [dx, dscale, dbias])


def embedding(name, rows, width, *shape):
    weight, ids = rand(rows, width).requires_grad_(), torch.randint(0, rows, shape)
    y = F.embedding(ids, weight)
    dy = rand(*y.shape)
    dweight, = torch.autograd.grad(y, weight, dy)
    ids = ids.to(torch.int32)
    case(name, "gather", ".axis = 0", [weight.detach(), ids], [y.detach()])
    case(name + ", gradient", "scatter_add", f".shape = DIMS({rows}, {width}), .axis = 0", [dy, ids], [dweight])


def loss(name, logits, labels, smoothing):
    logits.requires_grad_()
    y = F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
    dloss = rand(logits.shape[0])
    dlogits, = torch.autograd.grad(y, logits, dloss)
    attrs = f".cross_entropy = {{{smoothing}}}"
    labels = labels.to(torch.int32) if labels.dtype == torch.int64 else labels
    case(name, "cross_entropy", attrs, [logits.detach(), labels], [y.detach()])
    case(name + ", dlogits", "cross_entropy_grad", attrs, [logits.detach(), labels, dloss], [dlogits])


def softmax(name, x):
    x.requires_grad_()
    y = F.softmax(x, -1)
    dy = rand(*y.shape)
    dx, = torch.autograd.grad(y, x, dy)
    case(name, "softmax", "0", [x.detach()], [y.detach()])
    case(name + ", dx", "softmax_grad", "0", [y.detach(), dy], [dx])


def matmul(name, a, b, ta, tb):
    a_, b_ = (a.transpose(-1, -2) if ta else a), (b.transpose(-1, -2) if tb else b)
    case(name, "matmul", f".matmul = {{{int(ta)}, {int(tb)}}}", [a, b], [a_ @ b_])


def run_optimizer(make, n_params, keys, n_steps=5):
    """Values before the first step, gradients, and values after each step, of one parameter."""
    param = torch.nn.Parameter(rand(n_params))
    optimizer = make([param])
    read = lambda: [param.detach().clone()] + [
        optimizer.state[param][k].clone() if k in optimizer.state[param] else torch.zeros_like(param) for k in keys]
    first, grads, history = read(), [], []
    for _ in range(n_steps):
        grads.append(rand(n_params))
        param.grad = grads[-1].clone()
        optimizer.step()
        history.append(read())
    return first, torch.stack(grads), [list(x) for x in zip(*history)]


def sgd(name, lr=0.1, momentum=0.0, weight_decay=0.0, nesterov=False):
    keys = ["momentum_buffer"] if momentum else []
    first, grads, history = run_optimizer(
        lambda p: torch.optim.SGD(p, lr, momentum, 0, weight_decay, nesterov), 13, keys)
    attrs = f".sgd = {{{momentum}, {weight_decay}, {int(nesterov)}, 0}}"
    steps(name, "sgd_update", attrs, first, grads, torch.tensor(lr), history, False)


def adam(name, cls, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    first, grads, history = run_optimizer(
        lambda p: cls(p, lr, (beta1, beta2), eps, weight_decay), 13, ["exp_avg", "exp_avg_sq"])
    attrs = f".adam = {{{beta1}, {beta2}, {eps}, {weight_decay}, {int(cls is torch.optim.AdamW)}, 0}}"
    steps(name, "adam_update", attrs, first, grads, torch.tensor(lr), history, True)


matmul("plain", rand(5, 7), rand(7, 6), False, False)
matmul("both transposed", rand(3, 7, 5), rand(3, 6, 7), True, True)
conv("1x1", rand(2, 5, 3, 4), rand(6, 5, 1, 1))
conv("3x3 same", rand(2, 3, 5, 6), rand(4, 3, 3, 3), low=(1, 1))
conv("stride 2, asymmetric pads", rand(2, 3, 6, 8), rand(4, 3, 3, 3), stride=(2, 2), low=(0, 0), high=(1, 1))
conv("stride 2, odd sizes", rand(1, 2, 7, 9), rand(3, 2, 3, 3), stride=(2, 2), low=(1, 1))
conv("dilated", rand(1, 2, 8, 7), rand(3, 2, 3, 2), low=(2, 1), dilation=(2, 3))
conv("grouped", rand(2, 6, 4, 5), rand(4, 3, 3, 3), low=(1, 1), groups=2)
conv("depthwise, strided", rand(2, 4, 5, 5), rand(4, 1, 3, 3), stride=(2, 1), low=(1, 1), groups=4)
pool("2x2", "max", rand(2, 3, 4, 6), (2, 2), (2, 2), (0, 0))
pool("3x3, overlapping, padded", "max", rand(2, 3, 5, 7), (3, 3), (2, 2), (1, 1))
pool("2x2", "avg", rand(2, 3, 4, 6), (2, 2), (2, 2), (0, 0))
pool("3x3, overlapping, padded", "avg", rand(2, 3, 5, 7), (3, 3), (2, 1), (1, 1))
batch_norm("images", 3, 4, 5, 2, False)
batch_norm("images, ReLU", 3, 4, 5, 2, True, eps=1e-3, momentum=0.3)
softmax("rows", rand(4, 9, low=-4, high=4))
loss("classes", rand(6, 7, low=-4, high=4), torch.randint(0, 7, (6,)), 0.0)
loss("classes, smoothed", rand(6, 7, low=-4, high=4), torch.randint(0, 7, (6,)), 0.1)
loss("shares, smoothed", rand(6, 7, low=-4, high=4), F.softmax(rand(6, 7).float(), -1).double(), 0.2)
sgd("plain")
sgd("weight decay", weight_decay=0.01)
sgd("momentum", momentum=0.9)
sgd("momentum, weight decay", momentum=0.9, weight_decay=5e-4)
sgd("nesterov", momentum=0.9, nesterov=True, weight_decay=5e-4)
adam("Adam", torch.optim.Adam)
adam("Adam, weight decay", torch.optim.Adam, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1)
adam("AdamW", torch.optim.AdamW, weight_decay=0.01)
adam("AdamW, large decay", torch.optim.AdamW, lr=0.1, beta2=0.95, weight_decay=0.5)

# New records stand at the end, so that the numbers drawn for those before them stay the same.
layer_norm("rows", 4, 9)
layer_norm("a batch of rows, eps 1e-3", 2, 3, 17, eps=1e-3)
embedding("tokens", 11, 5, 3, 7)
group_norm("images", 2, 6, 3, 4, 3)
group_norm("instances", 2, 5, 3, 4, 5)
x, ids = rand(3, 4, 5), torch.tensor([3, 0, 3], dtype=torch.int32)
case("in the middle", "gather", ".axis = 1", [x, ids], [torch.index_select(x, 1, ids)])
case("rows", "cumsum", ".cumsum = {1, 0, 0}", [x], [torch.cumsum(x, 1)])
case("rows", "reduce", ".reduce = {STK_REDUCE_PROD, 2}", [x], [torch.prod(x, 1)])
case("rows, least", "reduce", ".reduce = {STK_REDUCE_MIN, 2}", [x], [torch.amin(x, 1)])

sys.stdout.write(f"""/* Made by tests/golden/make_ops.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */
/* clang-format off */
""" + "\n".join(arrays) + "\n\nstatic const golden_case golden_cases[] = {\n" + "\n".join(cases) + "\n};\n")
