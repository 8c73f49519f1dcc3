#!/usr/bin/env python3
"""Holds the memory that processes take against the limits that they were given: docs/memory-limits.md.

    ./dev memory                    # goes on where the table ends, and writes each row as it is done
    ./dev memory --again             # from the first row
    ./dev memory --only digits      # rows whose recipe has that in its name, printed and not written
    ./dev memory --seeds 0-9        # others of the generator's recipes, printed and not written
    ./dev memory --minutes 10       # stops after the row that is under way then

Each recipe is trained for a few steps, with validation and a checkpoint, under limits of 100, 60 and 30 % of what
`stoker plan` says of it without a limit: the step's peak, the program and the input pipeline. A process keeps its limit where the most that was resident, shared libraries
included, stays below the limit and 24 MiB; one that cannot is to refuse, with a message. Ten recipes are the
repository's, whose data are replaced by random ones of the same shapes, or by images made here; ten are made by a
generator. Verbs of `data` have the limit `data.memory` instead.
"""
import argparse
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
STOKER = os.environ.get("STOKER", str(ROOT / "build/stoker"))
DOC = ROOT / "docs/memory-limits.md"
BEGIN, END = "<!-- memory: begin -->", "<!-- memory: end -->"
MIB = 1 << 20
ALLOWED = 24 * MIB
SHARES = [100, 60, 30]
JUDGED = range(200, 210)  # seeds of the generator's recipes in the table
HEAD = ["| recipe | from | verb | limit | | resident | |", "|---|---|---|---:|---:|---:|---|"]

# What stands for a recipe's data. images: PNG files of that size in folders of classes; else random numbers.
OWN = {
    "bench-resnet18": None,  # random already
    "cifar-resnet18": "images 32",
    "cifar-mobilenet": "images 32",
    "cifar-vit": "images 32",
    "digits": "images 28",
    "mnist-mlp": "fields: {image: {dtype: u8, shape: [28, 28, 1]}}, classes: 10",
    "mnist-autoencoder": "fields: {image: {dtype: u8, shape: [28, 28, 1]}}, classes: 10",
    "prices-regression": "fields: {x: [6], label: []}",
    "shakespeare-gpt": "fields: {tokens: {shape: [128], below: 257}, targets: {shape: [128], below: 257}}",
    "bench-gpt2": None,
}
DATA = {
    "photos": "[decode, {random_resized_crop: 224}, random_flip, {normalize: imagenet}]",
    "photos-centre": "[decode, {resize: {shorter: 256}}, {center_crop: 224}, {normalize: imagenet}]",
}
# Of the repository's recipes: what is not about the network.
LEFT_OUT = ("name", "data", "epochs", "expect", "checkpoint", "whiten", "freeze")


# --- recipes ---

def write_png(path, height, width, rng):
    noise = rng.randbytes(width * 3)
    rows = b"".join(b"\0" + noise[i % 97:] + noise[:i % 97] for i in range(height))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def make_images(folder, side, n, spread=0):
    rng = random.Random(side)
    if folder.exists():
        return
    for i in range(n):
        place = folder / f"class{i % 10}"
        place.mkdir(parents=True, exist_ok=True)
        more = rng.randrange(spread + 1)
        write_png(place / f"{i}.png", side + more, side + more // 2, rng)


def steps_of(text):
    """The stages lines of data.train and of the first other part, as they are."""
    stages = {}
    part = None
    lines = text.splitlines()
    for i, line in enumerate(lines):
        found = re.match(r"  (train|valid|test):", line)
        if found:
            part = found[1]
        if part and re.match(r"    stages:", line):
            kept = [line]
            for other in lines[i + 1:]:
                if not re.match(r"     ", other):
                    break
                kept.append(other)
            stages[part] = "\n".join(kept)
    return stages


def own_recipe(name, scratch):
    """A recipe of the repository, with data that are there everywhere, for about three steps."""
    text = (ROOT / f"recipes/{name}.yaml").read_text()
    batch = int(re.search(r"^batch: (\d+)", text, re.M)[1])
    blocks = re.split(r"^(?=[a-z_]+:)", text, flags=re.M)
    kept = "".join(b for b in blocks if b.split(":")[0] not in LEFT_OUT and not b.startswith("#"))
    if OWN[name] is None:
        source = re.search(r"synthetic: \{(.*)\}\}?\s*$", text, re.M)[1]
        source = source[:-1] if source.count("}") > source.count("{") else source
    else:
        source = OWN[name]
    stages = steps_of(text)
    data = ""
    for part, n in (("train", 3 * batch), ("valid", batch)):
        if source.startswith("images"):
            side = int(source.split()[1])
            folder = scratch / f"images{side}"
            make_images(folder, side, 1600)
            own = stages.get(part, stages.get("test", stages.get("train", "")))
            data += f"  {part}:\n    source: {{images: {folder}}}\n    take: {n}\n{own}\n"
        else:
            own = "    stages: [{scale: 1/255}]\n" if "dtype: u8" in source else ""
            data += f"  {part}:\n    source: {{synthetic: {{{source}, samples: {n}}}}}\n{own}"
    return f"name: {name}\ndata:\n{data}epochs: 1\n{kept}"


def generated_recipe(seed):
    """A network, a batch, an optimiser, a precision and perhaps micro-batches, drawn by the seed."""
    rng = random.Random(f"memory {seed}")
    batch = rng.choice([12, 16, 24, 32, 48, 64, 96, 128, 200, 256])
    kind = rng.choice(["mlp", "conv", "conv", "resnet", "gpt2", "lstm", "vit", "unet"])
    classes = rng.choice([2, 10, 100])
    labels = f", classes: {classes}"
    stages = ""
    if kind == "mlp":
        width, depth = rng.choice([256, 1024, 2048]), rng.randint(1, 4)
        n = rng.choice([64, 784, 3072])
        source = f"fields: {{x: [{n}]}}{labels}"
        layers = ", ".join(f"{{dense: {width}}}, {rng.choice(['relu', 'gelu', 'tanh'])}" for _ in range(depth))
        model = f"{{layers: [{layers}, {{dropout: 0.1}}, {{dense: {classes}}}]}}"
    elif kind == "conv":
        side = rng.choice([24, 32, 48, 64])
        source = f"fields: {{image: {{dtype: u8, shape: [{side}, {side}, 3]}}}}{labels}"
        stages = "    stages: [random_flip, {scale: 1/255}]\n"
        layers = []
        width = rng.choice([8, 16, 32])
        for _ in range(rng.randint(2, 4)):
            layers.append(f"{{conv2d: {{filters: {width}, kernel: {rng.choice([1, 3, 5])}}}}}")
            layers += rng.choice([["batch_norm", "relu"], ["relu"], ["gelu"]])
            if rng.random() < 0.6:
                layers.append("{max_pool: 2}")
                width *= 2
        model = f"{{layers: [{', '.join(layers)}, global_pool, {{dense: {classes}}}]}}"
    elif kind == "resnet":
        side = rng.choice([32, 64])
        source = f"fields: {{image: [{side}, {side}, 3]}}{labels}"
        model = f"{{{rng.choice(['resnet18', 'resnet34'])}: {{classes: {classes}}}}}"
        batch = min(batch, 64)
    elif kind == "vit":
        source = f"fields: {{image: [32, 32, 3]}}{labels}"
        width = rng.choice([64, 128, 192])
        model = (f"{{vit: {{size: tiny, patch: 4, width: {width}, layers: {rng.randint(2, 6)}, heads: 4, "
                 f"hidden: {2 * width}, classes: {classes}}}}}")
        batch = min(batch, 128)
    elif kind == "unet":
        side = rng.choice([32, 64])
        source = (f"fields: {{image: [{side}, {side}, 3], "
                  f"mask: {{shape: [{side}, {side}], below: 4}}}}")
        model = f"{{unet: {{widths: [8, 16, {rng.choice([32, 64])}], classes: 4}}}}"
        batch = min(batch, 48)
    else:
        length, words = rng.choice([32, 64, 128]), rng.choice([100, 1000, 8000])
        if kind == "gpt2":
            source = (f"fields: {{tokens: {{shape: [{length}], below: {words}}}, "
                      f"targets: {{shape: [{length}], below: {words}}}}}")
            model = (f"{{gpt2: {{size: mini, layers: {rng.randint(1, 4)}, heads: 4, width: {rng.choice([64, 128, 256])}, "
                     f"vocabulary: {words}, positions: {length}}}}}")
            batch = min(batch, 64)
        else:
            source = f"fields: {{tokens: {{shape: [{length}], below: {words}}}}}{labels}"
            model = (f"{{lstm: {{vocabulary: {words}, width: {rng.choice([32, 64])}, units: {rng.choice([32, 64, 128])}, "
                     f"classes: {classes}}}}}")
    optimizer = rng.choice(["sgd: {lr: 0.01, momentum: 0.9}", "sgd: {lr: 0.01}", "adam: {lr: 1e-4}",
                            "adamw: {lr: 1e-4, weight_decay: 0.1}", "rmsprop: {lr: 1e-4}", "muon: {lr: 0.005}"])
    micro = rng.choice([None, None, None, 1, 2, batch // 4])
    precision = rng.choice(["f32", "f32", "bf16", "f16"])
    extra = f"micro_batch: {micro}\n" if micro else ""
    extra += rng.choice(["", "clip_norm: 1\n", "ema: {decay: 0.99}\n"])
    data = "".join(f"  {part}:\n    source: {{synthetic: {{{source}, samples: {n}}}}}\n{stages}"
                   for part, n in (("train", 3 * batch), ("valid", batch)))
    return (f"name: made-{seed}\ndata:\n{data}batch: {batch}\nmodel: {model}\noptimizer: {{{optimizer}}}\n"
            f"precision: {precision}\n{extra}epochs: 2\n")


# --- processes ---

def measure(command, cwd, limit_s):
    """(exit status, most that was resident, what it said last)."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        end = time.monotonic() + limit_s
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                sys.exit(f"memory: '{' '.join(command)}' took longer than {limit_s:.0f} s")
            time.sleep(0.02)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return child.returncode, usage.ru_maxrss * 1024, said.read().decode(errors="replace")


def plan_bytes(recipe, cwd, memory=None):
    command = [STOKER, "plan", str(recipe), "--json"] + (["--memory", memory] if memory else [])
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"memory: '{' '.join(command)}' failed: {done.stderr.strip()}")
    plan = json.loads(done.stdout)
    return plan["peak_bytes"] + plan["program_bytes"] + plan["pipeline_bytes"]


def judge(status, resident, limit, text):
    if status == 0 and resident < limit + ALLOWED:
        return "kept"
    last = [line for line in text.strip().splitlines() if line.strip()] or [""]
    if status > 0 and re.search(r"limit|do not fit|memory", text):
        return "refused" if resident < limit + ALLOWED else "refused late"
    if status != 0:
        return f"FAILED: exit {status}: {last[-1][:120]}"
    return "EXCEEDED"


def mib(n):
    return f"{n / MIB:.1f}"


# --- rows ---

def training_rows(name, kind, text, scratch):
    """Rows of one recipe, each a function, so that what is in the table is not run again."""
    def row(share):
        recipe = scratch / f"{name}.yaml"
        recipe.write_text(text())
        limit = plan_bytes(recipe, scratch) * share // 100
        out = scratch / "run"
        status, resident, said = measure([STOKER, "train", str(recipe), "--memory", str(limit), "--out", str(out),
                                          "--quiet"], scratch, 1800)
        subprocess.run(["rm", "-rf", str(out), f"{out}.previous"], check=True)
        return limit, resident, judge(status, resident, limit, said), said
    return [((name, kind, "train", share), lambda share=share: row(share)) for share in SHARES]


def data_rows(name, scratch):
    def prepare():
        recipe = scratch / f"{name}.yaml"
        photos = scratch / "photos"
        make_images(photos, 500, 96, 300)
        recipe.write_text(f"name: {name}\ndata:\n  train:\n    source: {{files: {photos}}}\n    shuffle: true\n"
                          f"    stages: {DATA[name]}\nbatch: 16\n")
        done = subprocess.run([STOKER, "data", "bench", str(recipe), "--seconds", "2", "--json"], cwd=scratch,
                              capture_output=True, text=True, check=True)
        return recipe, json.loads(done.stdout)["memory_peak_bytes"]

    def row(verb, share):
        recipe, most = prepare()
        limit = most * share // 100
        more = {"bench": ["--seconds", "2"], "show": ["--out", str(scratch / "sheet.png")]}.get(verb, [])
        status, resident, said = measure([STOKER, "data", verb, str(recipe), "--set", f"data.memory={limit}", *more],
                                         scratch, 600)
        return limit, resident, judge(status, resident, limit, said), said
    return [((name, "repository", f"data {verb}", share), lambda verb=verb, share=share: row(verb, share))
            for verb in ("explain", "verify", "bench", "show", "lint") for share in SHARES]


def all_rows(seeds, scratch):
    rows = []
    for name in OWN:
        rows += training_rows(name, "repository", lambda name=name: own_recipe(name, scratch), scratch)
    slow = rows[-len(SHARES):]
    del rows[-len(SHARES):]
    for seed in seeds:
        rows += training_rows(f"made-{seed}", "generator", lambda seed=seed: generated_recipe(seed), scratch)
    for name in DATA:
        rows += data_rows(name, scratch)
    return rows + slow


# --- the table ---

def read_table():
    text = DOC.read_text()
    inside = text[text.index(BEGIN):text.index(END)].splitlines()
    return [line for line in inside if line.startswith("| ") and not line.startswith("| recipe")]


def write_table(lines):
    text = DOC.read_text()
    verdicts = [line.split("|")[7].strip() for line in lines]
    kept, refused = verdicts.count("kept"), verdicts.count("refused")
    summary = f"{len(lines)} rows: {kept} kept their limit, {refused} were refused, {len(lines) - kept - refused} neither."
    DOC.write_text(text[:text.index(BEGIN)] + "\n".join([BEGIN, *HEAD, *lines, "", summary, END]) +
                   text[text.index(END) + len(END):])


def key_of(line):
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    return cells[0], cells[1], cells[2], int(cells[3].rstrip(" %"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="from the first row")
    parser.add_argument("--only", default="", help="rows with that in the recipe's name or the verb; nothing is written")
    parser.add_argument("--seeds", help="FROM-TO: others of the generator's recipes; nothing is written")
    parser.add_argument("--minutes", type=float, default=1e9, help="begins no row after N")
    parser.add_argument("--verbose", action="store_true", help="shows what was said")
    parser.add_argument("--keep", action="store_true", help="keeps the recipes, and says where")
    args = parser.parse_args()
    end = time.monotonic() + 60 * args.minutes
    prints = bool(args.only or args.seeds)
    seeds = JUDGED
    if args.seeds:
        first, last = args.seeds.split("-")
        seeds = range(int(first), int(last) + 1)
    lines = [] if args.again or prints else read_table()
    done = {key_of(line) for line in lines}
    bad = 0
    with tempfile.TemporaryDirectory(prefix="stoker-memory-") as folder:
        scratch = pathlib.Path(folder)
        if args.keep:
            scratch = pathlib.Path(tempfile.mkdtemp(prefix="stoker-memory-"))
            print(scratch)
        for key, run in all_rows(seeds, scratch):
            if key in done or not (args.only in key[0] or args.only in key[2]) or (args.seeds and key[1] != "generator"):
                continue
            if time.monotonic() > end:
                break
            limit, resident, verdict, said = run()
            line = f"| {key[0]} | {key[1]} | {key[2]} | {key[3]} % | {mib(limit)} | {mib(resident)} | {verdict} |"
            print(line, flush=True)
            if args.verbose:
                print(said, flush=True)
            bad += verdict not in ("kept", "refused")
            lines.append(line)
            if not prints:
                write_table(lines)
    if not prints:
        bad = sum(line.split("|")[7].strip() not in ("kept", "refused") for line in lines)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
