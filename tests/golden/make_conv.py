#!/usr/bin/env python3
"""Writes conv_golden.h: convolution, transposed convolution and pooling of volumes and, depthwise and transposed, of
images, with their gradients, as PyTorch computes them in f64.

    python3 make_conv.py > conv_golden.h        (PyTorch 2; the version is written into the file)

Its layouts NCDHW and OIDHW become NDHWC and ODHWI here.
"""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(23)
arrays, cases = [], []


def rand(*shape):
    return (torch.rand(*shape, dtype=torch.float32) * 2 - 1).double()


def last(x):
    """Channels last."""
    return x.detach().permute(0, *range(2, x.dim()), 1).contiguous()


def tensor(x):
    lines, line = [], "   "
    for v in x.flatten().tolist():
        word = "%.9g" % v
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    name = f"conv_{len(arrays)}"
    arrays.append(f"static const float {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return f"{{STK_F32, DIMS({', '.join(map(str, x.shape))}), {name}}}"


def case(name, op, attrs, inputs, outputs):
    ins = ",\n         ".join(tensor(last(x)) for x in inputs)
    outs = ",\n         ".join(tensor(last(x)) for x in outputs)
    cases.append(f'    {{"{name}",\n     STK_OP_{op},\n     {{{attrs}}},\n     {len(inputs)},\n     {len(outputs)},\n'
                 f"     1,\n     -1,\n     {{{ins}}},\n     {{{outs}}}}},")


def window(kernel, stride, low, high, dilation, groups=1):
    words = lambda p: "{" + ", ".join(map(str, p)) + "}"
    return (f".window = {{{words(kernel)}, {words(stride)}, {words(low)}, {words(high)}, {words(dilation)}, {groups}}}")


def shape(x):
    return f".shape = DIMS({', '.join(map(str, last(x).shape))}), "


def conv(name, x, weight, stride, low, high, dilation, groups=1):
    n = x.dim() - 2
    x.requires_grad_()
    weight.requires_grad_()
    pads = [p for i in reversed(range(n)) for p in (low[i], high[i])]
    y = (F.conv3d if n == 3 else F.conv2d)(F.pad(x, pads), weight, stride=stride, dilation=dilation, groups=groups)
    dy = rand(*y.shape)
    dx, dweight = torch.autograd.grad(y, (x, weight), dy)
    attrs = window(weight.shape[2:], stride, low, high, dilation, groups)
    case(name, f"conv{n}d", attrs, [x, weight], [y])
    case(name + ", dx", f"conv{n}d_grad_data", shape(x) + attrs, [dy, weight], [dx])
    case(name + ", dweight", f"conv{n}d_grad_weight", shape(weight) + attrs, [x, dy], [dweight])


def transposed(name, x, weight, stride, pad, more, dilation, groups=1):
    """The transposed convolution is the gradient of data, its gradients are the other two."""
    n = x.dim() - 2
    x.requires_grad_()
    weight.requires_grad_()
    f = F.conv_transpose3d if n == 3 else F.conv_transpose2d
    y = f(x, weight, stride=stride, padding=pad, output_padding=more, dilation=dilation, groups=groups)
    dy = rand(*y.shape)
    dx, dweight = torch.autograd.grad(y, (x, weight), dy)
    attrs = window(weight.shape[2:], stride, pad, pad, dilation, groups)
    case(name, f"conv{n}d_grad_data", shape(y) + attrs, [x, weight], [y])
    case(name + ", dx", f"conv{n}d", attrs, [dy, weight], [dx])
    case(name + ", dweight", f"conv{n}d_grad_weight", shape(weight) + attrs, [dy, x], [dweight])


def pool(name, x, kernel, stride, pad):
    x.requires_grad_()
    attrs = window(kernel, stride, pad, pad, [1] * 3)
    y = F.max_pool3d(x, kernel, stride, pad)
    dy = rand(*y.shape)
    case(name, "max_pool3d", attrs, [x], [y])
    case(name, "max_pool3d_grad", attrs, [x, y, dy], torch.autograd.grad(y, x, dy))
    y = F.avg_pool3d(x, kernel, stride, pad, count_include_pad=False)
    case(name, "avg_pool3d", attrs, [x], [y])
    case(name, "avg_pool3d_grad", shape(x) + attrs, [dy], torch.autograd.grad(y, x, dy))


ONE, NO = (1, 1, 1), (0, 0, 0)
conv("cube", rand(2, 3, 3, 4, 5), rand(4, 3, 3, 3, 3), ONE, ONE, ONE, ONE)
conv("strided, dilated, padded unevenly", rand(1, 2, 6, 5, 7), rand(3, 2, 2, 3, 1), (2, 1, 3), (0, 1, 0), (1, 2, 0),
     (1, 2, 1))
conv("grouped", rand(1, 4, 3, 5, 4), rand(6, 2, 3, 1, 2), (1, 2, 1), (1, 0, 1), (1, 0, 0), ONE, groups=2)
conv("depthwise", rand(2, 11, 5, 4), rand(11, 1, 3, 3), (1, 1), (1, 1), (1, 1), (1, 1), groups=11)
conv("depthwise, strided and dilated", rand(1, 9, 9, 8), rand(9, 1, 3, 2), (2, 1), (2, 0), (1, 1), (2, 3), groups=9)
transposed("transposed 2x2", rand(2, 3, 3, 4), rand(3, 5, 2, 2), (2, 2), (0, 0), (0, 0), (1, 1))
transposed("transposed, more pixels", rand(1, 4, 3, 4), rand(4, 2, 3, 3), (2, 3), (1, 1), (1, 2), (1, 1))
transposed("transposed, grouped, dilated", rand(1, 4, 4, 3), rand(4, 3, 3, 2), (1, 2), (1, 0), (0, 1), (2, 3), groups=2)
transposed("transposed volumes", rand(1, 2, 2, 3, 2), rand(2, 3, 2, 3, 2), (2, 1, 2), (0, 1, 0), (1, 0, 1), ONE)
pool("twos", rand(2, 3, 4, 5, 6), (2, 2, 2), (2, 2, 2), NO)
pool("overlapping", rand(1, 2, 5, 6, 5), (3, 2, 3), (2, 1, 2), (1, 1, 1))

sys.stdout.write(f"""/* Made by tests/golden/make_conv.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */
/* clang-format off */
""" + "\n".join(arrays) + "\n\nstatic const golden_case conv_cases[] = {\n" + "\n".join(cases) + "\n};\n")
