#!/usr/bin/env python3
"""Trains the long recipes, each going on from where it stopped, and writes their rows of docs/results.md. Run by ./dev recipes."""
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from machine import processor

ROOT = Path(__file__).resolve().parent.parent
STOKER = "build/stoker"
RUNS = Path("runs/recipes")
DATA = Path(os.environ.get("STOKER_DATA", ROOT.parent / "shared" / "data"))
LOCAL = ROOT / "data"  # made or unpacked here; git ignores it

COLUMNS = ["recipe", "device", "precision", "epochs", "expected", "test accuracy", "test loss", "images/s", "input wait",
           "first step", "peak planned", "peak RSS", "time", "date"]


def say(text):
    print(f"recipes: {text}", flush=True)


def run(command, **options):
    """The exit code of a command. On Ctrl-C it is the command that saves and ends; we wait for it."""
    process = subprocess.Popen(command, **options)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def find_digits():
    if not (LOCAL / "digits").is_dir() and run([STOKER, "get", "digits", "--out", "data/digits"]) != 0:
        return None, "the digits could not be made"
    return LOCAL, None


def find_made(name):
    """A set that `stoker get` makes."""
    def find():
        if not (LOCAL / name).is_dir() and run([STOKER, "get", name, "--out", f"data/{name}"]) != 0:
            return None, f"'{name}' could not be made"
        return LOCAL, None
    return find


def fetch(name):
    """A set that `stoker get` downloads, what is not there yet, where no data lie next to the checkout."""
    if run([STOKER, "get", name, "--out", f"data/{name}"]) != 0:
        return None, f"'{name}' could not be fetched; set STOKER_DATA to the folder that has it"
    return LOCAL, None


def find_mnist():
    return (DATA, None) if (DATA / "mnist" / "train-images-idx3-ubyte.gz").exists() else fetch("mnist")


def find_cifar10():
    for folder in (DATA, LOCAL):
        if (folder / "cifar10" / "train").is_dir():
            return folder, None
    archive = DATA / "cifar10.tar.zst"
    if not archive.exists():
        return fetch("cifar10")
    say(f"unpack '{archive}' once into data/cifar10")
    partial = LOCAL / "cifar10.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if run(["tar", "-I", "zstd", "-xf", str(archive), "-C", str(partial)]) != 0:
        shutil.rmtree(partial, ignore_errors=True)
        return None, f"'{archive}' could not be unpacked"
    (partial / "cifar10").rename(LOCAL / "cifar10")
    partial.rmdir()
    return LOCAL, None


def find_text():
    wanted = DATA / "text"
    return (wanted, None) if wanted.is_dir() else (None, f"'{wanted}' is not there; set STOKER_DATA")


def find_shakespeare():
    """Bytes as tokens; the last tenth is held out."""
    folder, text = LOCAL / "shakespeare", DATA / "text" / "tinyshakespeare.txt"
    if (folder / "valid.bin").exists():
        return LOCAL, None
    if not text.exists():
        return fetch("shakespeare")
    mirror = LOCAL / "shakespeare.text"  # the file by its published name
    mirror.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(text, mirror / "input.txt")
    if run([STOKER, "get", "shakespeare", "--out", str(folder), "--mirror", str(mirror)]) != 0:
        return None, "the text could not be tokenized"
    shutil.rmtree(mirror)
    return LOCAL, None


def find_masked():
    """The same text as the tokens of a WordPiece vocabulary, which has a token [MASK]."""
    data, why = find_shakespeare()
    folder = LOCAL / "shakespeare"
    if data is None or (folder / "masked-valid.bin").exists():
        return data, why
    if run([STOKER, "tokenizer", "train", str(folder / "train.txt"), "--wordpiece", "--vocab", "600", "--out",
            str(folder / "wordpiece.json")]) != 0:
        return None, "the tokenizer could not be trained"
    for name in ("train", "valid"):
        if run([STOKER, "tokenize", str(folder / f"{name}.txt"), "--tokenizer", str(folder / "wordpiece.json"),
                "--separator", "none", "--out", str(folder / f"masked-{name}.bin")]) != 0:
            return None, "the text could not be tokenized"
    return LOCAL, None


def find_sst2():
    """The three files, and a WordPiece vocabulary of the training sentences."""
    folder, (text, why) = LOCAL / "sst2", find_text()
    if (folder / "tokenizer.json").exists() or text is None:
        return (LOCAL, None) if text or (folder / "tokenizer.json").exists() else (None, why)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        shutil.copyfile(text / "sst2" / name, folder / name)
    lines = (folder / "train.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "sentences.txt").write_text("".join(line.split("\t")[0] + "\n" for line in lines), encoding="utf-8")
    if run([STOKER, "tokenizer", "train", str(folder / "sentences.txt"), "--wordpiece", "--vocab", "6000", "--out",
            str(folder / "tokenizer.json")]) != 0:
        return None, "the tokenizer could not be trained"
    return LOCAL, None


RECIPES = {"digits": find_digits, "mnist-mlp": find_mnist, "cifar-cnn": find_cifar10, "shapes-unet": find_made("shapes"),
           "solids-cnn3d": find_made("solids"), "clicks-wide-and-deep": find_made("clicks"),
           "notes-labels": find_made("notes"), "prices-regression": find_made("prices"),
           "cifar-resnet18": find_cifar10, "cifar-resnet34": find_cifar10, "cifar-resnet50": find_cifar10,
           "cifar-resnet101": find_cifar10, "cifar-mobilenet": find_cifar10, "cifar-vgg16": find_cifar10,
           "cifar-vit": find_cifar10, "cifar-airbench": find_cifar10, "mnist-vit-b16": find_mnist,
           "shakespeare-gpt": find_shakespeare, "shakespeare-gpt2-124m": find_shakespeare,
           "shakespeare-masked": find_masked, "sst2-lstm": find_sst2, "sst2-gru": find_sst2, "sst2-bert-mini": find_sst2,
           "sst2-bert-base": find_sst2, "mnist-autoencoder": find_mnist, "mnist-triplet": find_mnist,
           "f16-plain": find_digits, "f16-scaled": find_digits}


def read_result(name):
    path = RUNS / name / "result.json"
    try:
        return json.loads(path.read_text()), datetime.date.fromtimestamp(path.stat().st_mtime)
    except (OSError, ValueError):
        return None, None


def shown(result, key, form):
    value = result.get(key)
    return form(value) if value is not None else "-"


def mebibytes(n):
    return f"{n / 2**20:,.0f} MiB"


def duration(seconds):
    return str(datetime.timedelta(seconds=round(seconds)))


def expected(result):
    """What the recipe expects, and what it came to."""
    return "; ".join(f"{e['what']}: {e['value']:.4g}{'' if e['met'] else ', **not met**'}"
                     for e in result.get("expected", []) if e["value"] is not None) or "-"


def row(name, result, date):
    return [f"[{name}](../recipes/{name}.yaml)",
            shown(result, "device", str),
            shown(result, "precision", str),
            shown(result, "epochs", str) + ("" if result.get("finished") else ", unfinished"),
            expected(result),
            shown(result, "test_accuracy", lambda v: f"{100 * v:.2f} %"),
            shown(result, "test_loss", lambda v: f"{v:.4f}"),
            shown(result, "samples_per_s", lambda v: f"{v:,.0f}"),
            shown(result, "input_wait_share", lambda v: f"{100 * v:.1f} %"),
            shown(result, "first_step_s", lambda v: f"{v:.2f} s"),
            shown(result, "peak_planned_bytes", mebibytes),
            shown(result, "peak_rss_bytes", mebibytes),
            shown(result, "wall_s", duration),
            str(date)]


def rows_written():
    """The rows of docs/results.md by recipe, so that what was trained on another machine stays."""
    found, columns = {}, None
    path = Path("docs/results.md")
    for line in path.read_text().splitlines() if path.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0].startswith("---"):
            continue
        if columns is None:
            columns = cells
        elif len(cells) == len(columns):
            found[cells[0].partition("]")[0].lstrip("[")] = [dict(zip(columns, cells)).get(c, "-") for c in COLUMNS]
    return found


def write_table(names):
    """New rows for the recipes of that name that have finished, or have no row yet; all others stay."""
    found, changed = rows_written(), []
    for name in names:
        result, date = read_result(name)
        if not result or (name in found and not result.get("finished")):
            continue
        new = row(name, result, date)
        if found.get(name) != new:
            changed.append(name)
        found[name] = new
    if not changed:
        return say("no new results, so docs/results.md stays as it is")
    rows = [found.pop(name) for name in RECIPES if name in found] + list(found.values())
    lines = ["# What the recipes reach", "",
             f"Written by `./dev recipes`, last on {datetime.date.today()}: {processor()}, "
             f"{len(os.sched_getaffinity(0))} cores.", "",
             "| " + " | ".join(COLUMNS) + " |",
             "|---|---|---|" + "---:|" * (len(COLUMNS) - 3)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    lines += ["", "Images/s: the batch over the median step after the first three. Input wait: the share of the time in "
              "which the step waited", "for data. First step: from process start. Time: of the last process, where a run "
              "was resumed. Speeds are for", "no comparison: other work ran alongside some of them.", ""]
    Path("docs").mkdir(exist_ok=True)
    Path("docs/results.md").write_text("\n".join(lines))
    say(f"wrote docs/results.md: {', '.join(changed)}. The file is the project's record; where this is not the machine that it "
        "is about, git checkout docs/results.md takes that back")


def main(names):
    os.chdir(ROOT)
    for name in names:
        if name not in RECIPES:
            sys.exit(f"recipes: no long recipe '{name}'; there are: {' '.join(RECIPES)}")
    failed, skipped, trained = [], [], []
    for name in names or RECIPES:
        data, why = RECIPES[name]()
        if data is None:
            say(f"SKIP {name}: {why}")
            skipped.append(name)
            continue
        say(f"train {name}")
        trained.append(name)
        command = [STOKER, "train", f"recipes/{name}.yaml", "--out", str(RUNS / name), "--resume"]
        # An absolute path, because the run keeps it for later.
        code = run(command, env={**os.environ, "STOKER_DATA": str(Path(data).resolve())})
        result, _ = read_result(name)
        if code != 0 or result is None:
            say(f"{name} has not finished (exit code {code}); ./dev recipes {name} goes on with it")
            failed.append(name)
            if code in (130, -2):
                break
    write_table(trained)
    if skipped:
        say(f"skipped for want of data: {' '.join(skipped)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
