#!/usr/bin/env python3
"""Tables of the best ways to compute products and convolutions by family of processor (src/device/cpu/tuned), made and
checked by measuring: './dev tune' and './dev tune --check'. docs/kernels.md has more.

tune.py BUILD [--family NAME] [--threads N] [--fit]
    Times every way of the calls that a generator draws from the seeds of SEEDS and of those that the recipes of RECIPES
    make, and writes the family's table. What has been measured stays in FAMILY.tsv next to it, line by line, so that it
    goes on where it was stopped; remove that file to begin again. --fit: only the table, of what is there.
tune.py BUILD --check [--measured] [--seed S] [--calls N] [--threads N]
    Times calls of other seeds on this machine, and says how far the table's choice and the rule's are behind the best
    way; a choice that is more than 5 % behind is measured again before it counts. Exits with 1 where the table's are
    behind in more than a quarter of the calls of a kind, or by more than 5 % of time in the geometric mean. --measured:
    the same of what a run measures on a processor without a table (src/device/cpu/measured.h), instead of the table's;
    a run has its second for all of its calls, this has it for each.
"""

import argparse
import datetime
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from machine import processor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "src/device/cpu/tuned"
SEEDS = range(1, 21)  # for tables; those of a check begin behind them
CALLS_A_SEED = 32
FIRST_CHECK_SEED = 1001
RECIPES = ["bench-resnet18", "bench-resnet50", "bench-gpt2", "bench-bert", "cifar-cnn", "cifar-mobilenet", "sst2-bert-mini", "sst2-lstm"]
PRECISIONS = ["f32", "bf16"]
KINDS = [(op, dtype) for dtype in PRECISIONS for op in ("matmul", "conv2d", "conv2d_grad_data", "conv2d_grad_weight")]

# Of a table: a row must win that much in all (a sum of logarithms of ratios of times), that much on the average call,
# and have that many calls; a call counts for no more than a factor of e either way.
LEAST_GAIN, LEAST_MEAN, LEAST_CALLS, MOST_BOUNDS = 0.35, 0.03, 8, 4
# And tables that are made without some of its calls must win that much in these, and as much in all as above.
LEAST_ELSEWHERE = 1.01
BEHIND = 1.05


# --- calls that nobody chose ---

def by_size(rng, least, most):
    return int(round(least * (most / least) ** rng.random()))


def channels(rng, least=8, most=1024):
    kind = rng.random()
    if kind < 0.35:
        return 1 << rng.randint(3, 10)
    n = by_size(rng, least, most)
    return n if kind < 0.5 else max(8, n // 8 * 8) if kind < 0.75 else max(16, n // 16 * 16)


def draw_product(rng, dtype):
    while True:
        m, n, k = (by_size(rng, 8, 4096) for _ in range(3))
        grain = rng.choice([1, 8, 16, 64])
        m, n, k = (max(1, v // grain * grain) or grain for v in (m, n, k))
        turned = rng.choice([(0, 0), (0, 1), (1, 0)])
        batches = 1
        if rng.random() < 0.15:
            batches = by_size(rng, 2, 96)
        elif rng.random() < 0.08:
            m = 1
        out = "f32" if dtype == "f32" or turned[0] else dtype
        if 1 << 13 <= batches * m * n * k <= 1 << 32 and batches * max(m * k, k * n, m * n) <= 1 << 24:
            return f"matmul {dtype} {out} {batches} {m} {n} {k} {turned[0]} {turned[1]} 0"


def draw_long_product(rng, dtype):
    """Of a dense or recurrent layer on many rows: forward, its data's gradient, its weights' gradient."""
    while True:
        rows = by_size(rng, 4096, 65536) // 64 * 64
        n, k = (rng.choice([1, 3]) << rng.randint(5, 11) if rng.random() < 0.7 else by_size(rng, 16, 3072) for _ in range(2))
        if rows * n * k <= 1 << 34 and rows * max(n, k) <= 1 << 26:
            weights = f"matmul {dtype} f32 1 {n} {k} {rows} 1 0 0"
            return rng.choice([f"matmul {dtype} {dtype} 1 {rows} {n} {k} 0 {rng.choice([0, 1])} 0", weights])


def draw_convolution(rng, op, dtype):
    while True:
        images, side = by_size(rng, 2, 64), by_size(rng, 4, 96)
        if rng.random() < 0.3:
            side = rng.choice([7, 8, 14, 16, 28, 32, 56, 64])
        c, o = channels(rng), channels(rng)
        if op != "conv2d_grad_data" and rng.random() < 0.08:
            c = rng.choice([1, 3, 4])
        kernel = rng.choice([1, 1, 1, 3, 3, 3, 5, 7])
        stride = rng.choice([1, 1, 1, 2])
        groups = 1
        if kernel > 1 and rng.random() < 0.15:
            o = groups = c
        pad = kernel // 2
        work = images * (side / stride) ** 2 * (c / groups) * o * kernel * kernel
        most = 1 << (31 if dtype == "bf16" else 30)
        if kernel <= side and 1 << 16 <= work <= most and images * side * side * max(c, o) <= 1 << 26:
            out = "f32" if op == "conv2d_grad_weight" else dtype
            return f"{op} {dtype} {out} {images} {side} {side} {c} {o} {kernel} {kernel} {stride} {pad} {pad} 1 {groups}"


def draw_large_convolution(rng, op, dtype):
    """As in the networks that photographs are put into: most of their arithmetic is in convolutions larger than those above."""
    while True:
        images, side = by_size(rng, 8, 64), rng.choice([7, 8, 14, 16, 28, 32, 56, 64])
        c, o = channels(rng, 32, 2048), channels(rng, 32, 2048)
        kernel = rng.choice([1, 1, 3])
        work = images * side * side * c * o * kernel * kernel
        most = 1 << (33 if dtype == "bf16" else 32)
        if most >> 3 <= work <= most and images * side * side * max(c, o) <= 1 << 26:
            out = "f32" if op == "conv2d_grad_weight" else dtype
            return f"{op} {dtype} {out} {images} {side} {side} {c} {o} {kernel} {kernel} 1 {kernel // 2} {kernel // 2} 1 1"


def draw(seed, n):
    """n calls, the kinds of KINDS in turn, and large ones."""
    rng = random.Random(seed)
    for i in range(n):
        op, dtype = KINDS[i % len(KINDS)]
        yield draw_product(rng, dtype) if op == "matmul" else draw_convolution(rng, op, dtype)
    for i in range(n // 4):
        yield draw_long_product(rng, PRECISIONS[i % len(PRECISIONS)])
    convolutions = [kind for kind in KINDS if kind[0] != "matmul"]
    for i in range(n // 5):
        yield draw_large_convolution(rng, *convolutions[i % len(convolutions)])


def recipe_calls(build):
    calls = {}
    for recipe in RECIPES:
        for precision in PRECISIONS:
            done = subprocess.run([build / "bench/bench_step", "--calls", "--set", f"precision={precision}", f"recipes/{recipe}.yaml"],
                                  cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                print(f"tune: without {recipe} in {precision}: {done.stderr.strip()}")
            for line in done.stdout.splitlines():
                calls.setdefault(line, f"{recipe}, {precision}")
    return calls


# --- measuring ---

class Ways:
    """bench_ways as a process: calls in, measured calls out."""

    def __init__(self, build, threads, cache=None):
        """cache: an empty folder, for choices that are measured; None: the table's."""
        self.command = [build / "bench/bench_ways", str(threads), *(["measured"] if cache else [])]
        self.environment = {**os.environ, "STOKER_CACHE": cache} if cache else None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=self.environment)
        self.about = self.process.stdout.readline().strip()

    def time(self, call):
        """None: the process died of it."""
        self.process.stdin.write(call + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().rstrip("\n")
        if not line:
            print(f"tune: bench_ways ended with {self.process.wait()} at '{call}'")
            self.start()
            return None
        return Measured(line)


class Measured:
    def __init__(self, line, source=""):
        self.call, self.tuned, self.rule, sizes, times = line.split("\t")[:5]
        self.source = source
        self.sizes = {k: int(v) for k, v in (part.split("=") for part in sizes.split())}
        self.times = {k: float(v) for k, v in (part.split("=") for part in times.split())}
        op, dtype = self.call.split()[:2]
        self.kind = (op, dtype)

    def text(self):
        sizes = " ".join(f"{k}={v}" for k, v in self.sizes.items() if v)
        times = " ".join(f"{k}={v:.0f}" for k, v in self.times.items())
        return "\t".join((self.call, self.tuned, self.rule, sizes, times, self.source))

    def time_of(self, way):
        """A way that cannot do it leaves it to the rule."""
        return self.times.get(way, self.times.get(self.rule))

    def best(self):
        return min(self.times.values())

    def merge(self, other):
        self.times = {k: min(v, other.times.get(k, v)) for k, v in self.times.items()}


def read_measured(path):
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line for line in lines if not line.startswith("#")]
    return lines[0][2:] if lines else None, [Measured(row, row.split("\t")[5]) for row in rows if row.count("\t") == 5]


def measure(build, family, threads, path):
    ways = Ways(build, threads)
    table = re.search(r"kernels by table (\S+?)(,|$)", ways.about)
    if not family:
        if not table:
            sys.exit(f"tune: this processor's family has no table yet ({ways.about}): src/device/cpu/tuned/tuned.c lists them")
        family = table.group(1)
    path = path or TABLES / f"{family.replace('-', '_')}.tsv"
    about, done = read_measured(path)
    if about is None:
        about = f"{datetime.date.today()}, {processor()}, {ways.about.split(', kernels')[0]}"
        path.write_text(f"# {about}\n")
    have = {m.call for m in done}
    todo = dict(recipe_calls(build))
    for seed in SEEDS:
        for call in draw(seed, CALLS_A_SEED):
            todo.setdefault(call, f"seed {seed}")
    todo = {call: source for call, source in todo.items() if call not in have}
    print(f"tune: {len(done)} calls measured, {len(todo)} to go")
    with open(path, "a") as file:
        for i, (call, source) in enumerate(todo.items()):
            m = ways.time(call)
            if not m:
                continue
            m.source = source
            file.write(m.text() + "\n")
            file.flush()
            if i % 50 == 49:
                print(f"tune: {i + 1} of {len(todo)}", flush=True)
    return family, path


# --- the table ---

def gain(m, way):
    """How much faster than the rule, as a logarithm, at most 1."""
    if m.rule not in m.times:
        return 0.0
    return max(-1.0, min(1.0, math.log(m.times[m.rule] / m.time_of(way))))


def best_of(calls, ways):
    """The way that wins most over the rule, None where that is not enough for a row."""
    best = (0.0, None)
    for way in ways:
        if sum(way in m.times for m in calls) < LEAST_CALLS:
            continue
        total = sum(gain(m, way) for m in calls)
        if total > max(best[0], LEAST_GAIN) and total >= LEAST_MEAN * len(calls):
            best = (total, way)
    return best


def round_between(a, b):
    """A number with few digits from a up to, but not, b."""
    for digits in range(1, 12):
        step = 10 ** max(0, len(str(b)) - digits)
        n = (b - 1) // step * step
        if a <= n < b:
            return n
    return a


def splits(calls):
    for size in calls[0].sizes if calls else ():
        values = sorted({m.sizes[size] for m in calls})
        for a, b in zip(values, values[1:]):
            yield size, round_between(a, b)


def grow(calls, ways, bounds):
    """Rows for these calls, [(bounds, way, calls)], and what they win."""
    total, way = best_of(calls, ways)
    leaf = ([(bounds, way, calls)] if way else [], total)
    best = None
    for size, at in splits(calls):
        if size not in bounds and len(bounds) == MOST_BOUNDS:
            continue
        low, high = [m for m in calls if m.sizes[size] <= at], [m for m in calls if m.sizes[size] > at]
        if min(len(low), len(high)) < LEAST_CALLS:
            continue
        (win_low, _), (win_high, _) = best_of(low, ways), best_of(high, ways)
        # Equal ones: those that leave less for others to be wrong about.
        score = win_low + win_high
        if best is None or score > best[0]:
            best = (score, size, at, low, high)
    if best is None or best[0] < total + LEAST_GAIN:
        return leaf
    _, size, at, low, high = best
    least, most = bounds.get(size, (0, None))
    parts = [grow(low, ways, {**bounds, size: (least, at)}), grow(high, ways, {**bounds, size: (at + 1, most)})]
    rows = parts[0][0] + parts[1][0]
    won = parts[0][1] + parts[1][1]
    return (rows, won) if won >= total + LEAST_GAIN else leaf


def prepare(measured):
    for m in measured:
        full = dict.fromkeys(SIZES, 0)
        full.update(m.sizes)
        m.sizes = full


def sizes_of_header():
    text = (TABLES / "tuned.h").read_text()
    return re.findall(r"X\((\w+)\)", text[text.index("SIZE_LIST(X)") + 12:text.index("typedef enum")])


SIZES = sizes_of_header()


def choose(rows, m):
    for kind, bounds, way in rows:
        if kind == m.kind and all(least <= m.sizes[size] and (most is None or m.sizes[size] <= most)
                                  for size, (least, most) in bounds.items()):
            return way if way in m.times else m.rule
    return m.rule


def fit(measured):
    """Convolutions of 1x1, which are products, apart from the others: few ways can do both."""
    rows = []
    for kind in KINDS:
        for taps in [(0, 1), (2, None)] if kind[0] != "matmul" else [None]:
            least, most = taps or (0, None)
            calls = [m for m in measured if m.kind == kind and least <= m.sizes["taps"] <= (most or m.sizes["taps"])]
            ways = sorted({way for m in calls for way in m.times})
            if calls:
                rows += [(kind, bounds, way, of) for bounds, way, of in grow(calls, ways, {"taps": taps} if taps else {})[0]]
    return rows


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def ratios_elsewhere(measured):
    """Of each call: the rule's time over that by tables that are made without it and a fifth of the others, the mean of some."""
    parts, shuffles, ratios = 5, 3, {}
    for shuffle in range(shuffles):
        order = list(range(len(measured)))
        random.Random(shuffle).shuffle(order)
        for part in range(parts):
            left_out = {i for at, i in enumerate(order) if at % parts == part}
            rows = [(kind, bounds, way) for kind, bounds, way, _ in fit([m for i, m in enumerate(measured) if i not in left_out])]
            for i in left_out:
                m = measured[i]
                if m.rule in m.times:
                    ratios.setdefault(m.call, []).append(m.times[m.rule] / m.times[choose(rows, m)])
    return {call: mean(values) for call, values in ratios.items()}


def holds_elsewhere(ratios):
    return mean(ratios) >= LEAST_ELSEWHERE and len(ratios) * math.log(mean(ratios)) >= LEAST_GAIN


def write_table(family, path, about, measured):
    elsewhere = ratios_elsewhere(measured)
    rows = [row for row in fit(measured) if holds_elsewhere([elsewhere[m.call] for m in row[3] if m.call in elsewhere])]
    name = family.replace("-", "_")
    lines = [f"/* Made by './dev tune' of {path.name}, which has the measured times: do not edit. Rows that are not here are the",
             " * lists' own choice. */", '#include "device/cpu/tuned/tuned.h"', "", "/* clang-format off */",
             "static const stk_tuned_row rows[] = {"]
    for kind, bounds, way, calls in rows:
        text = ", ".join(f"{{STK_TUNED_{size}, {least}, {'STK_TUNED_ANY' if most is None else most}}}"
                         for size, (least, most) in bounds.items())
        won = mean(m.times[m.rule] / m.time_of(way) for m in calls if m.rule in m.times)
        lines += [f"    /* {len(calls)} calls: {1 / won:.2f}x of the time. */",
                  f"    {{STK_OP_{kind[0]}, STK_{kind[1].upper()}, \"{way}\", {len(bounds)}, {{{text or '{0}'}}}}},"]
    lines += ["};", "/* clang-format on */", "",
              f"const stk_tuned_table stk_tuned_{name} = {{", f"    .name = \"{family}\",", f"    .measured = \"{about}\",",
              "    .row = rows,", "    .n_rows = sizeof(rows) / sizeof(rows[0]),", "};", ""]
    (TABLES / f"{name}.c").write_text("\n".join(lines))
    short = [row[:3] for row in rows]
    print(f"\n{about}: {len(measured)} calls, {len(rows)} rows\n")
    print("| kind | calls | rule / best | table / best | table / rule | table / rule on calls left out of it |\n|---|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        calls = [m for m in measured if m.kind == kind and m.rule in m.times]
        if calls:
            by_rule = mean(m.times[m.rule] / m.best() for m in calls)
            by_table = mean(m.times[choose(short, m)] / m.best() for m in calls)
            apart = mean(elsewhere[m.call] if choose(short, m) != m.rule else 1 for m in calls)
            print(f"| {kind[0]} {kind[1]} | {len(calls)} | {by_rule:.3f} | {by_table:.3f} | {by_table / by_rule:.3f} | {1 / apart:.3f} |")


# --- checking ---

def check(build, threads, seed, n_calls, cache):
    ways = Ways(build, threads, cache)
    about = ways.about.split(", kernels")[0] + ", kernels as a run measures them" if cache else ways.about
    print(f"{datetime.date.today()}, {processor()}, {about}; {n_calls} calls of seed {seed}\n")
    measured = []
    for call in draw(seed, n_calls):
        m = ways.time(call)
        if not m:
            continue
        if m.tuned in m.times and m.times[m.tuned] > BEHIND * m.best():
            m.merge(ways.time(call) or m)
        measured.append(m)
    bad = False
    name = "measured" if cache else "table"
    print(f"| kind | calls | {name} / best | more than 5 % behind | rule / best | more than 5 % behind |\n|---|---:|---:|---:|---:|---:|")
    for kind in KINDS + [None]:
        calls = [m for m in measured if (kind is None or m.kind == kind) and m.rule in m.times and m.tuned in m.times]
        if not calls:
            continue
        cells = []
        for pick in ("tuned", "rule"):
            ratios = [m.times[getattr(m, pick)] / m.best() for m in calls]
            behind = sum(r > BEHIND for r in ratios)
            cells.append(f"{mean(ratios):.3f} | {behind}")
            bad |= pick == "tuned" and kind is not None and (mean(ratios) > BEHIND or behind * 4 > len(calls))
        print(f"| {' '.join(kind) if kind else 'all'} | {len(calls)} | {' | '.join(cells)} |")
    behind = sorted((m for m in measured if m.tuned in m.times and m.times[m.tuned] > BEHIND * m.best()),
                    key=lambda m: -m.times[m.tuned] / m.best())
    print(f"\n{len(behind)} calls whose choice is more than 5 % behind another way, the worst first:\n")
    for m in behind:
        best = min(m.times, key=m.times.get)
        print(f"  {m.times[m.tuned] / m.best():.2f}x  {m.tuned} instead of {best}: {m.call}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--family")
    parser.add_argument("--seed", type=int, default=FIRST_CHECK_SEED)
    parser.add_argument("--calls", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    build = args.build.resolve()
    if args.check:
        if args.seed in SEEDS:
            sys.exit(f"tune: the table was made with the seeds {SEEDS[0]} to {SEEDS[-1]}")
        with tempfile.TemporaryDirectory() as cache:
            sys.exit(check(build, args.threads, args.seed, args.calls, cache if args.measured else None))
    family, path = args.family, args.family and TABLES / f"{args.family.replace('-', '_')}.tsv"
    if not args.fit:
        family, path = measure(build, family, args.threads, path)
    if not family:
        sys.exit("tune: --fit wants --family")
    about, measured = read_measured(path)
    prepare(measured)
    write_table(family, path, about, measured)


if __name__ == "__main__":
    main()
