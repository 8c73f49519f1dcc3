"""How far a verdict is to be trusted: fits the table of src/watch/trust.c to generated jobs, and says by cross-validation how good it is.

A first verdict's strength is a number from 0 to 1 that the doctor computes: by how much its part of the account leads, or how clearly
its signals agree. Runs that other programs disturbed count, too, since that is how machines are; naming those programs is right then. Of each kind of rule (account, other, healthy) the share that is right is isotonic in it: of the jobs in the order
of strength, neighbours are united until the shares rise (pool adjacent violators; Zadrozny and Elkan 2002), each with four right
and half a wrong one added, since few jobs say little. What is written are some points of that curve."""
import random

from judged import calibration_error

PRIOR_RIGHT, PRIOR_WRONG = 4.0, 0.5
LEAST, POINTS = 12, 6  # jobs in a step of the curve at the least; points in the table


def pool(pairs):
    """(strength, is right) -> steps of (strength, number, share that is right), rising. The first lies where its jobs begin (a tenth
    of them are weaker), others in their middle."""
    blocks = []
    pairs = sorted(pairs)
    begin = pairs[len(pairs) // 10][0]
    groups = [pairs[i:i + LEAST] for i in range(0, len(pairs), LEAST)]
    if len(groups) > 1 and len(groups[-1]) < LEAST:
        last = groups.pop()
        groups[-1] += last
    for group in groups:
        blocks.append([sum(s for s, _ in group), len(group), sum(r for _, r in group)])
        while len(blocks) > 1 and blocks[-2][2] / blocks[-2][1] >= blocks[-1][2] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    steps = [(s / n, n, (right + PRIOR_RIGHT) / (n + PRIOR_RIGHT + PRIOR_WRONG)) for s, n, right in blocks]
    return [(begin, *steps[0][1:]), *steps[1:]]


def points_of(pairs, anchor):
    """The table of one kind: POINTS of (strength, confidence), from the anchor on."""
    steps = pool(pairs) if pairs else [(0.5, 0, PRIOR_RIGHT / (PRIOR_RIGHT + PRIOR_WRONG))]
    while len(steps) > POINTS - 1:  # the two that differ least become one
        i = min(range(len(steps) - 1), key=lambda k: abs(steps[k][2] - steps[k + 1][2]))
        (s, n, p), (t, m, q) = steps[i:i + 2]
        steps[i:i + 2] = [((s * n + t * m) / (n + m), n + m, (p * n + q * m) / (n + m))]
    out = [anchor, *((round(s, 3), round(min(MOST, p), 3)) for s, _, p in steps)]
    return out + [out[-1]] * (POINTS - len(out))


def confidence(points, strength):
    """As trust() in src/watch/trust.c."""
    if strength <= points[0][0]:
        return points[0][1]
    for (a, p), (b, q) in zip(points, points[1:]):
        if strength <= b:
            return p + (q - p) * (strength - a) / (b - a) if b > a else q
    return points[-1][1]


def cross_validated(samples, folds=10, seed=1):
    """(confidence, is right) of each sample, by a fit that has not seen it."""
    order = list(range(len(samples)))
    random.Random(seed).shuffle(order)
    out = []
    for fold in range(folds):
        held = set(order[fold::folds])
        tables = fit_all([s for i, s in enumerate(samples) if i not in held])
        out += [(confidence(tables[samples[i][0]], samples[i][1]), samples[i][2]) for i in sorted(held)]
    return out


# Where nothing leads, or signals agree as little as they may, a verdict is one of about two; jobs are seldom drawn there.
KINDS = {"account": (0.0, 0.6), "other": (0.4, 0.6), "healthy": (0.4, 0.6)}
MOST = 0.97  # others' jobs are less regular than those that are drawn


def fit_all(samples):
    return {kind: points_of([(s, right) for k, s, right in samples if k == kind], anchor) for kind, anchor in KINDS.items()}


def main(results, path):
    samples = []
    for job, said, _, report in results:
        if said:
            first = report["verdicts"][0]
            samples.append((first["kind"], first["strength"], said == job["cause"]))
    tables = fit_all(samples)
    crossed = cross_validated(samples)
    n_right = sum(right for _, _, right in samples)
    error = calibration_error(crossed)
    rows = "\n".join(f"    [STK_WATCH_OF_{kind.upper()}] = {{" + ", ".join(f"{{{s}, {p}}}" for s, p in tables[kind]) + "}," for kind in KINDS)
    with open(path) as f:
        head, rest = f.read().split("/* --- made by ./dev doctor-generate --fit --- */\n")
    tail = rest.split("/* --- until here --- */\n")[1]
    with open(path, "w") as f:
        f.write(f"{head}/* --- made by ./dev doctor-generate --fit --- */\n/* Of {len(samples)} first verdicts, {n_right} of them right; expected calibration "
                f"error {error:.3f} (10-fold). */\n{{\n{rows}\n}};\n/* --- until here --- */\n{tail}")
    for kind in KINDS:
        some = [s for s in samples if s[0] == kind]
        print(f"{kind}: {sum(s[2] for s in some)} of {len(some)} right; {tables[kind]}")
    print(f"expected calibration error by 10-fold cross-validation: {error:.3f} over {len(samples)} verdicts")
