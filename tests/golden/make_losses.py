#!/usr/bin/env python3
"""Writes losses_golden.h: losses and their gradients as PyTorch has them.

    python3 make_losses.py > losses_golden.h        (PyTorch; the version is written into the file)

Each case: x, y (numbers f32, or class numbers i32), a second and third input for triplets, the loss of each sample and
the gradient of their sum by x.
"""
import torch
import torch.nn.functional as F

torch.manual_seed(7)
out, cases = [], []


def array(t):
    name = f"loss_{len(out)}"
    is_int = t.dtype in (torch.int32, torch.int64)
    words = [str(int(v)) if is_int else "%.9g" % v for v in t.detach().flatten().tolist()]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    out.append(f"static const {'int32_t' if is_int else 'float'} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return name


def dims(t):
    return "{.rank = %d, .dim = {%s}}" % (t.dim(), ", ".join(map(str, t.shape)))


def by_sample(loss):
    return loss.reshape(loss.shape[0], -1).mean(1)


def case(name, kind, x, y, f, extra="", more=(), mean=None):
    x = x.clone().requires_grad_()
    loss = f(x)
    loss.sum().backward()
    is_int = y.dtype in (torch.int32, torch.int64)
    extra += ", .mean = %.9g" % mean if mean is not None else ""
    more = "".join(f", .more[{i}] = {array(m)}" for i, m in enumerate(more))
    cases.append(f'    {{.name = "{name}", .kind = {kind}, .x_shape = {dims(x)}, .y_shape = {dims(y)}, '
                 f'.{"labels" if is_int else "y"} = {array(y)}, .x = {array(x)}, .loss = {array(loss)}, '
                 f'.grad = {array(x.grad)}{extra}{more}}},')


x, y = torch.randn(5, 3) * 2, torch.randn(5, 3)
case("mse", "MSE", x, y, lambda x: by_sample((x - y) ** 2))
case("mae", "MAE", x, y, lambda x: by_sample((x - y).abs()))
case("huber", "HUBER", x, y, lambda x: by_sample(F.huber_loss(x, y, reduction="none", delta=0.75)), ", .number = 0.75")
hard = torch.cat([x, torch.tensor([[0, 40, -40], [0, -90, 90.0]])])
bits = torch.tensor([[1, 0, 1], [0, 1, 0], [0.25, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1], [1, 0, 0.5]])
case("bce", "BCE", hard, bits, lambda x: by_sample(F.binary_cross_entropy_with_logits(x, bits, reduction="none")))
case("bce with weight", "BCE", hard, bits,
     lambda x: by_sample(F.binary_cross_entropy_with_logits(x, bits, pos_weight=torch.tensor(3.5), reduction="none")),
     ", .number = 3.5")

labels = torch.tensor([2, 0, 1, 2, 1])
weights = torch.tensor([0.5, 2.0, 0.0])
W = ", .weights = {0.5, 2, 0}, .n_weights = 3"
case("classes", "CLASSES", x, labels, lambda x: F.cross_entropy(x, labels, reduction="none"),
     mean=F.cross_entropy(x, labels))
case("weighted", "CLASSES", x, labels, lambda x: F.cross_entropy(x, labels, weights, reduction="none"), W,
     mean=F.cross_entropy(x, labels, weights))
case("smooth", "CLASSES", x, labels, lambda x: F.cross_entropy(x, labels, label_smoothing=0.1, reduction="none"),
     ", .smoothing = 0.1", mean=F.cross_entropy(x, labels, label_smoothing=0.1))
case("weighted smooth", "CLASSES", x, labels,
     lambda x: F.cross_entropy(x, labels, weights, label_smoothing=0.1, reduction="none"), W + ", .smoothing = 0.1")
half = torch.tensor([0.5, 2.0, 0.5])
case("weighted smooth mean", "CLASSES", x, labels,
     lambda x: F.cross_entropy(x, labels, half, label_smoothing=0.1, reduction="none"),
     W.replace("2, 0}", "2, 0.5}") + ", .smoothing = 0.1", mean=F.cross_entropy(x, labels, half, label_smoothing=0.1))
shares = torch.softmax(torch.randn(5, 3), 1)
case("weighted shares", "CLASSES", x, shares, lambda x: F.cross_entropy(x, shares, weights, reduction="none"), W,
     mean=F.cross_entropy(x, shares, weights))

maps, map_labels = torch.randn(3, 4, 2, 3) * 2, torch.randint(0, 3, (3, 4, 2))
map_labels[0, 0, 0] = map_labels[1, 2, 1] = map_labels[1, 3, 0] = 255
map_labels[2] = 255


def positions(x, ignore=None, weight=None):
    logits = x.movedim(-1, 1)
    loss = F.cross_entropy(logits, map_labels, weight, ignore_index=255, reduction="none").reshape(3, -1)
    return loss.sum(1) / (map_labels != 255).reshape(3, -1).sum(1).clamp(min=1)


case("map with holes", "CLASSES", maps, map_labels, positions, ", .ignores = true, .ignore_index = 255",
     mean=F.cross_entropy(maps.movedim(-1, 1), map_labels, ignore_index=255))
case("weighted map with holes", "CLASSES", maps, map_labels, lambda x: positions(x, weight=weights),
     ", .ignores = true, .ignore_index = 255" + W,
     mean=F.cross_entropy(maps.movedim(-1, 1), map_labels, weights, ignore_index=255))
full = map_labels % 3
case("map", "CLASSES", maps, full, lambda x: by_sample(F.cross_entropy(x.movedim(-1, 1), full, reduction="none")))


def dice(p, y, smooth):
    p, y = p.reshape(p.shape[0], -1, p.shape[-1]), y.reshape(y.shape[0], -1, y.shape[-1])
    return (1 - (2 * (p * y).sum(1) + smooth) / (p.sum(1) + y.sum(1) + smooth)).mean(1)


case("dice of classes", "DICE", maps, full, lambda x: dice(x.softmax(-1), F.one_hot(full, 3).float(), 1.0),
     ", .number = 1")
mask = (torch.rand(3, 4, 2, 3) > 0.6).float()
mask[1] = 0
case("dice of masks", "DICE", maps, mask, lambda x: dice(x.sigmoid(), mask, 1e-2), ", .number = 1e-2")

a, p, n = torch.randn(4, 6), torch.randn(4, 6), torch.randn(4, 6)
p[1] = a[1]
case("triplet", "TRIPLET", a, p, lambda x: F.triplet_margin_loss(x, p, n, margin=0.5, reduction="none"),
     ", .number = 0.5", [n])


def mined(x, labels, semi, margin):
    """Triplets as the papers have them, one after the other; a row that has none costs nothing."""
    d = ((x[:, None] - x[None]) ** 2).sum(2).clamp(min=1e-12).sqrt()
    out, weights = [], []
    for i in range(len(x)):
        own = [j for j in range(len(x)) if labels[j] == labels[i] and j != i]
        other = [j for j in range(len(x)) if labels[j] != labels[i]]
        losses = []
        if own and other and not semi:
            losses = [(d[i, own].max() - d[i, other].min() + margin).clamp(min=0)]
        for j in own if other and semi else []:
            beyond = [k for k in other if d[i, k] > d[i, j]]
            negative = d[i, beyond].min() if beyond else d[i, other].max()
            losses.append((d[i, j] - negative + margin).clamp(min=0))
        out.append(sum(losses) / len(losses) if losses else x.sum() * 0)
        weights.append(len(losses))
    return torch.stack(out), torch.tensor(weights)


rows = torch.randn(9, 5)
rows[4] = rows[3]  # twice the same
for name, classes in (("three classes", [0, 1, 2, 0, 0, 1, 2, 2, 1]), ("one is alone", [7, 1, 1, 7, 1, 3, 7, 7, 1]),
                      ("no other class", [2] * 9)):
    classes = torch.tensor(classes)
    for kind, semi in (("HARD", False), ("SEMI_HARD", True)):
        loss, n = mined(rows, classes, semi, 0.7)
        case(f"{kind.lower()} of {name}", kind, rows, classes, lambda x: mined(x, classes, semi, 0.7)[0], ", .number = 0.7",
             mean=float((loss * n).sum() / n.sum()) if n.sum() else None)

print(f"/* Written by make_losses.py with PyTorch {torch.__version__.split('+')[0]}. */")
print("/* clang-format off */")
print("\n".join(out))
print("static const loss_case loss_cases[] = {\n" + "\n".join(cases) + "\n};")
print("/* clang-format on */")
