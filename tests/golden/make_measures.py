#!/usr/bin/env python3
"""Writes measures_golden.h: metrics as scikit-learn has them.

    python3 make_measures.py > measures_golden.h        (scikit-learn; the version is written into the file)
"""
import numpy as np
import sklearn
from sklearn import metrics as sk

rng = np.random.default_rng(3)
out, cases = [], []


def array(x):
    name = f"measure_{len(out)}"
    is_int = x.dtype.kind == "i"
    words = [str(v) if is_int else "%.9g" % v for v in x.flatten()]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = "   "
        line += f" {word},"
    out.append(f"static const {'int32_t' if is_int else 'float'} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};")
    return name


def dims(x):
    return "{.rank = %d, .dim = {%s}}" % (x.ndim, ", ".join(map(str, x.shape)))


def case(name, x, y, wants, extra=""):
    """wants: (kind, other fields, value)."""
    x = x.astype(np.float32)
    is_int = y.dtype.kind == "i"
    y = y.astype(np.int32 if is_int else np.float32)
    list_ = ", ".join("{{.kind = STK_MEASURE_%s%s}, %.12g}" % (k, e, v) for k, e, v in wants)
    cases.append(f'    {{.name = "{name}", .x_shape = {dims(x)}, .y_shape = {dims(y)}, .x = {array(x)}, '
                 f'.{"labels" if is_int else "y"} = {array(y)}, .n = {len(wants)}, .want = {{{list_}}}{extra}}},')


def rates(y, p, **options):
    macro = dict(average="macro", zero_division=0, **options)
    return [("ACCURACY", "", sk.accuracy_score(y, p)), ("PRECISION", "", sk.precision_score(y, p, **macro)),
            ("RECALL", "", sk.recall_score(y, p, **macro)), ("F1", "", sk.f1_score(y, p, **macro)),
            ("IOU", "", sk.jaccard_score(y, p, **macro)),
            ("F1", ", .average = STK_AVERAGE_MICRO", sk.f1_score(y, p, average="micro"))]


# Five classes, of which one never occurs and one is never guessed.
y = rng.choice([0, 1, 2, 4], 60)
x = rng.normal(size=(60, 5)) + 1.5 * np.eye(5)[y]
x[:, 3] = -9
x[:, 4] = -8
p = x.argmax(1)
top2 = np.mean([t in np.argsort(-r)[:2] for r, t in zip(x, y)])
case("classes", x, y, rates(y, p) + [("TOP_K", ", .k = 2", top2)], ", .confusion = " + array(
    sk.confusion_matrix(y, p, labels=range(5)).astype(np.int32)))

# Every class is there, so that each has a curve.
y3 = rng.integers(0, 3, 90)
x3 = rng.normal(size=(90, 3)) + np.eye(3)[y3]
soft = np.exp(x3) / np.exp(x3).sum(1, keepdims=True)
case("three curves", x3, y3, [("AUC", "", sk.roc_auc_score(y3, soft, multi_class="ovr"))])

# Two classes, with ties.
y2 = rng.integers(0, 2, 80)
x2 = np.stack([np.zeros(80), np.round(rng.normal(size=80) + y2, 1)], 1)
p2 = x2.argmax(1)
case("two classes", x2, y2, [("AUC", "", sk.roc_auc_score(y2, x2[:, 1])),
                             ("PRECISION", ", .average = STK_AVERAGE_BINARY", sk.precision_score(y2, p2)),
                             ("RECALL", ", .average = STK_AVERAGE_BINARY", sk.recall_score(y2, p2)),
                             ("IOU", ", .average = STK_AVERAGE_BINARY", sk.jaccard_score(y2, p2))])

# A map with positions that do not count.
ym = rng.integers(0, 3, (6, 5, 4))
xm = rng.normal(size=(6, 5, 4, 3)) + np.eye(3)[ym]
hole = rng.random(ym.shape) < 0.3
keep = ~hole
pm = xm.argmax(-1)
case("map with holes", xm, np.where(hole, 255, ym), rates(ym[keep], pm[keep]), ", .ignores = true")

# Three labels a sample.
yl = (rng.random((50, 3)) > 0.5).astype(float)
xl = rng.normal(size=(50, 3)) + 1.2 * (2 * yl - 1)
pl = (xl > 0).astype(float)
macro = dict(average="macro")
case("labels", xl, yl, [("ACCURACY", "", np.mean(yl == pl)), ("PRECISION", "", sk.precision_score(yl, pl, **macro)),
                        ("RECALL", "", sk.recall_score(yl, pl, **macro)), ("F1", "", sk.f1_score(yl, pl, **macro)),
                        ("F1", ", .average = STK_AVERAGE_MICRO", sk.f1_score(yl, pl, average="micro")),
                        ("AUC", "", sk.roc_auc_score(yl, xl, **macro))])

# Numbers far from 0.
yn = 100 + rng.normal(size=(40, 2)) * [1, 3]
xn = yn + rng.normal(size=(40, 2)) * 0.5
yn, xn = yn.astype(np.float32).astype(float), xn.astype(np.float32).astype(float)
case("numbers", xn, yn, [("MSE", "", sk.mean_squared_error(yn, xn)), ("RMSE", "", sk.mean_squared_error(yn, xn)**0.5),
                         ("MAE", "", sk.mean_absolute_error(yn, xn)), ("R2", "", sk.r2_score(yn, xn))])

print(f"/* Written by make_measures.py with scikit-learn {sklearn.__version__}. */")
print("/* clang-format off */")
print("\n".join(out))
print("static const measure_case measure_cases[] = {\n" + "\n".join(cases) + "\n};")
print("/* clang-format on */")
