"""Figures of the program itself, `stoker train` with recipes in bf16, and what the issue wants of them."""
import collections
import json
import re
import shutil
import statistics
import subprocess
from pathlib import Path

import gpu_roofline
import inputs
from session import ROOT, last_line

SECONDS = 5  # of steps that are timed

# peer: its name in bench/gpu_torch.py; predicted: the heading in docs/gpu-roofline.md and the times of its batch;
# goal: by card, or of all (""); small: instead of sets.
Figure = collections.namedtuple("Figure", "name title unit recipe sets small batch peer predicted goal", defaults=(None, {}))


def step_sets(name):
    return list(next(step.sets for step in gpu_roofline.STEPS if step.name == name))


def tokens(length, below):
    field = f"{{shape: [{length}], below: {below}}}"
    return ["data.train.source.synthetic.fields.tokens=" + field, "data.train.source.synthetic.fields.targets=" + field]


BERT384 = ["batch=64", "precision=bf16", "model.bert.length=384", "data.train.source.synthetic.fields.tokens.shape=[384]"]
SMALL_GPT = ["batch=2", "precision=bf16", "model={gpt2: {size: mini, layers: 1, heads: 2, width: 32, vocabulary: 101, positions: 16}}",
             *tokens(16, 101)]
SMALL_RESNET = ["batch=2", "precision=bf16", "model={cnn: {classes: 10, widths: [8, 16]}}",
                "data.train.source.synthetic={fields: {image: [32, 32, 3]}, classes: 10}"]
SMALL_BERT = ["batch=2", "precision=bf16", "model={bert: {size: mini, layers: 1, heads: 2, width: 32, vocabulary: 101, positions: 16, classes: 2}}",
              "data.train.source.synthetic.fields.tokens={shape: [16], below: 101}"]
GPT, RESNET, BERT = "recipes/bench-gpt2.yaml", "recipes/bench-resnet50.yaml", "recipes/bench-bert.yaml"
FIGURES = [
    Figure("gpt2", "GPT-2 124M, 64 x 1,024", "tokens/s", GPT, step_sets("gpt2"), SMALL_GPT, 64, "gpt2", ("GPT-2 124M", 1), {"": 600e3}),
    Figure("resnet50-256", "ResNet-50, 256", "images/s", RESNET, step_sets("resnet50"), SMALL_RESNET, 256, "resnet50-256",
           ("ResNet-50", 1), {"H100": 7500, "H200": 8500}),
    Figure("bert-128", "BERT-base, 256 x 128", "sequences/s", BERT, step_sets("bert"), SMALL_BERT, 256, "bert-128", ("BERT-base", 1)),
    Figure("bert-384", "BERT-base, 64 x 384", "sequences/s", BERT, BERT384, SMALL_BERT, 64, "bert-384", None, {"": 2000}),
    Figure("resnet50-400", "ResNet-50, 400", "images/s", RESNET, ["batch=400", "precision=bf16"], SMALL_RESNET, 400, "resnet50-400",
           ("ResNet-50", 400 / 256), {"H100": 7500, "H200": 8500}),
    Figure("gpt2-fp8", "GPT-2 124M, 64 x 1,024, fp8", "tokens/s", GPT,
           [w if w != "precision=bf16" else "precision=fp8" for w in step_sets("gpt2")],
           [w if w != "precision=bf16" else "precision=fp8" for w in SMALL_GPT], 64, None, None, {"": 750e3}),
    Figure("airbench", "cifar-airbench", "s", "recipes/cifar-airbench.yaml", [], [], 1024, "airbench", None, {"": 2.0}),
    Figure("photos", "JPEG photos -> ResNet-50, 256", "images/s", "recipes/photos.yaml", [], [], 256, "photos"),
]


class Meter:
    """nvidia-smi's power, clocks and temperature while a figure is taken; nothing where there is none."""
    KEYS = {"power_w": "power.draw", "clock_mhz": "clocks.sm", "celsius": "temperature.gpu"}

    def __enter__(self):
        command = ["nvidia-smi", f"--query-gpu={','.join(self.KEYS.values())}", "--format=csv,noheader,nounits", "-lms", "250"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        self.told = {}
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        self.process.terminate()
        lines = [re.findall(r"[\d.]+", line) for line in self.process.communicate()[0].splitlines()]
        columns = list(zip(*(line for line in lines if len(line) == len(self.KEYS))))
        self.told = {k: statistics.median(map(float, c)) for k, c in zip(self.KEYS, columns)}


def card_of(s):
    """ "H100", "H200", ... of the rows that tell the chip."""
    name = next((row.get("chip", "") for row in s.rows if row["what"] == "device"), "")
    return next((c.name for c in gpu_roofline.CHIPS if c.name in name), name)


def train(s, recipe, sets, out, *options, limit=None):
    """(result.json, None) or (None, why not)."""
    shutil.rmtree(out, ignore_errors=True)
    words = [w for one in sets for w in ("--set", one)]
    done = s.run(s.stoker("train", ROOT / recipe, "--device", s.device, "--out", out, "--json", *words, *options), limit,
                 STOKER_DATA=str(s.data))
    if done.rc != 0 or not (Path(out) / "result.json").exists():
        return None, last_line(done)
    return json.loads((Path(out) / "result.json").read_text()), None


def predicted_ms(figure, card):
    """Of docs/gpu-roofline.md; None: it says nothing of this card or figure."""
    page = ROOT / "docs/gpu-roofline.md"
    if not figure.predicted or not page.exists():
        return None
    heading, times = figure.predicted
    section = re.search(rf"^## {re.escape(heading)}.*?(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    found = section and re.search(rf"^- {re.escape(card or '?')}: \*\*([\d.,]+) ms a step", section[0], re.MULTILINE)
    return float(found[1].replace(",", "")) * times if found else None


def describe(result, unit):
    time = result["time"]
    return {"value": result["tokens_per_s" if unit == "tokens/s" else "samples_per_s"], "unit": unit, "step_ms": result.get("step_ms_median"),
            "steps": result["steps"], "first_step_s": result["first_step_s"], "input_wait_share": result["input_wait_share"],
            "compute_share": time["compute"], "host_share": time["host"], "idle_share": time["idle"], "planned_bytes": result["peak_planned_bytes"],
            "used_bytes": result["peak_used_bytes"], "precision": result["precision"]}


def goal_of(figure, card, s):
    goal = figure.goal.get(card, figure.goal.get(""))
    return None if s.small else goal


def measure_steps(s, figure, limit):
    """Six steps first, which build and say how long one takes; then as many as the time allows."""
    sets, out = figure.small if s.small else figure.sets, s.work / figure.name
    first, why = train(s, figure.recipe, sets, out, "--steps", 6, limit=limit)
    if not first:
        absent = figure.name.endswith("fp8")
        return s.row(figure.name, None if absent else False, who="stoker", error=why)
    seconds = 0.3 if s.small else min(SECONDS, max(1, limit / 4))
    n = int(min(2000, max(6 if s.small else 12, seconds * 1e3 / (first["step_ms_median"] or 1e3))))
    with Meter() as meter:
        result, why = train(s, figure.recipe, sets, out, "--steps", n)
    result = result or first  # six steps are better than none
    card = card_of(s)
    value, predicted, goal = describe(result, figure.unit), None if s.small else predicted_ms(figure, card), goal_of(figure, card, s)
    share = predicted / value["step_ms"] if predicted and value["step_ms"] else None
    return s.row(figure.name, True, who="stoker", **value, cold_first_step_s=first["first_step_s"], goal=goal,
                 met=value["value"] >= goal if goal else None, predicted_ms=predicted, roofline_share=share, **meter.told,
                 **({"error": why} if why else {}))


def measure_airbench(s, figure, limit):
    """Ten epochs from JPEG files; once before with few steps, as all kernels are to be there."""
    sets, why = inputs.airbench(s)
    if why:
        return s.row(figure.name, None, who="stoker", error=why)
    out = s.work / figure.name
    first, why = train(s, figure.recipe, sets, out, "--steps", 6, limit=limit)
    result = None
    if first:
        with Meter() as meter:
            result, why = train(s, figure.recipe, sets, out)
    if not result:
        return s.row(figure.name, False, who="stoker", error=why)
    epochs = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    seconds = sum(e["epoch_s"] for e in epochs if "epoch_s" in e)
    goal = goal_of(figure, card_of(s), s)
    value = {**describe(result, figure.unit), "value": seconds}
    return s.row(figure.name, True, who="stoker", **value, images_per_s=result["samples_per_s"], accuracy=result["test_accuracy"],
                 cold_first_step_s=first["first_step_s"], goal=goal, met=seconds <= goal if goal else None, **meter.told)


def whole_rate(out, batch):
    """Samples a second, waiting included, of the later steps: the first ones live on batches that were ready before."""
    steps = [r for r in map(json.loads, (out / "metrics.jsonl").read_text().splitlines()) if r["kind"] == "step"]
    later = steps[len(steps) // 3:]
    seconds = later[-1]["time"] - later[0]["time"] if len(later) > 1 else 0
    return batch * (len(later) - 1) / seconds if seconds > 0 else None


def measure_photos(s, figure, limit):
    """End to end; next to it what the cores alone deliver of these photos, and what `stoker report` would explain."""
    sets, why = inputs.photos(s)
    if why:
        return s.row(figure.name, None, who="stoker", error=why)
    words = [w for one in sets for w in ("--set", one)]
    done = s.run(s.stoker("data", "bench", ROOT / figure.recipe, "--json", "--seconds", 1 if s.small else 3, *words))
    rate = json.loads(done.text.splitlines()[-1])["samples_per_s"] if done.rc == 0 else None
    alone = next((r["value"] for r in s.rows if r["what"] == "resnet50-256" and r.get("who") == "stoker" and r["ok"]), None)
    n = 8 if s.small else int(max(20, min(400, 8 * min(rate or 1e9, alone or 2000) / figure.batch)))
    out = s.work / figure.name
    with Meter() as meter:
        result, why = train(s, figure.recipe, [*sets, "log.every=1 step"], out, "--steps", n, limit=limit)
    if not result:
        return s.row(figure.name, False, who="stoker", error=why)
    value = describe(result, figure.unit)
    value["value"] = whole_rate(out, inputs.SMALL_BATCH if s.small else figure.batch) or value["value"]
    share = value["value"] / min(alone, rate) if alone and rate else None
    s.run(s.stoker("report", out, "--out", s.work / "photos.html"))
    return s.row(figure.name, True, who="stoker", **value, cores_images_per_s=rate, of_step_or_cores=share, goal=None if s.small else 0.95,
                 met=None if s.small or not share else share >= 0.95, **meter.told)


WAYS = {"airbench": measure_airbench, "photos": measure_photos}


def measure_figures(s):
    """Each has its part of what is left, and what it leaves is the next ones'."""
    s.end_aside()
    for i, figure in enumerate(FIGURES):
        if s.left() < 5:
            s.row(figure.name, None, who="stoker", error="no time was left")
            continue
        WAYS.get(figure.name, measure_steps)(s, figure, s.left() / (len(FIGURES) - i) * 1.5)
