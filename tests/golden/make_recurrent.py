"""torch.nn.LSTM and GRU in f64: outputs, last states and gradients. Writes recurrent_golden.h next to this file.

Parameters and inputs are waves, made alike here and in tests/nn/test_recurrent.c, so that only results are written.
"""
import pathlib

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

N, T, C, H = 3, 5, 4, 3
LENGTHS = [5, 2, 4]


def wave(shape, frequency, phase):
    n = int(torch.tensor(shape).prod())
    return 0.5 * torch.sin(frequency * torch.arange(n, dtype=torch.float64) + phase).reshape(shape)


def run(kind, layers, bidirectional, packed):
    net = getattr(torch.nn, kind)(C, H, layers, batch_first=True, bidirectional=bidirectional).double()
    for j, (_, p) in enumerate(net.named_parameters()):
        p.data = wave(tuple(p.shape), 0.7, 1.3 * j)
    x = (2 * wave((N, T, C), 0.9, 0.2)).requires_grad_()
    if packed:
        y, end = net(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=T)
    else:
        y, end = net(x)
    end = end[0] if kind == "LSTM" else end
    d = 2 if bidirectional else 1
    last = torch.cat(list(end[-d:]), dim=1)
    loss = (y * wave(tuple(y.shape), 0.3, 0)).sum() + (last * wave(tuple(last.shape), 0.8, 1)).sum()
    loss.backward()
    return [y, last, x.grad] + [p.grad for p in net.parameters()]


def main():
    cases = [(kind, layers, both, packed) for kind in ("LSTM", "GRU")
             for layers, both, packed in ((1, False, False), (2, True, False), (1, True, True), (2, False, True))]
    out = [f"/* Written by make_recurrent.py with torch {torch.__version__}. */", "/* clang-format off */", ""]
    out += ["static const struct {", "    int is_gru, layers, bidirectional, masked, n;", "} golden_cases[] = {"]
    values = []
    for kind, layers, both, packed in cases:
        flat = torch.cat([r.detach().flatten() for r in run(kind, layers, both, packed)])
        out.append(f"    {{{int(kind == 'GRU')}, {layers}, {int(both)}, {int(packed)}, {len(flat)}}},")
        values += flat.tolist()
    out += ["};", "", "/* By case: outputs, last states, gradients of the input and of the parameters in their order. */"]
    out += ["static const double golden_values[] = {"]
    texts = [f"{v:.10g}," for v in values]
    out += ["    " + " ".join(texts[i:i + 8]) for i in range(0, len(texts), 8)] + ["};", ""]
    pathlib.Path(__file__).with_name("recurrent_golden.h").write_text("\n".join(out))


main()
