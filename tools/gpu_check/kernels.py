"""The kernels of a step that take longest, by the device's own clock, next to what the chip could do: `stoker train --trace` runs
some steps kernel by kernel, and the run's profile.json has the times, FLOPs and bytes."""
import collections
import json

import gpu_roofline
from figures import FIGURES, card_of, train

TRACED = "6-7"
N_SHOWN = 10

Rates = collections.namedtuple("Rates", "tiles floats bytes source")


def rates_of(s, profile):
    """The data sheet's, or for a processor what the run measured."""
    chip = next((c for c in gpu_roofline.CHIPS if c.name == card_of(s)), None)
    if chip:
        return Rates(chip.tiles, chip.floats, chip.bytes, f"data sheet, {chip.name}")
    peaks = profile.get("peaks") or {}
    if not peaks.get("flops_per_s") or not peaks.get("bytes_per_s"):
        return None
    return Rates(peaks["flops_per_s"], peaks["flops_per_s"], peaks["bytes_per_s"], "measured on the processor, f32")


def least_s(k, rates):
    """What the kernel must compute or move at least, at the full rates."""
    product = k["op"].startswith(gpu_roofline.PRODUCTS) and k["shape"].startswith(("bf16", "f16"))
    compute = k["flops"] / (rates.tiles if product else rates.floats)
    memory = k["bytes"] / rates.bytes
    return (compute, "tiles" if product else "arithmetic") if compute > memory else (memory, "memory")


def together(kernels):
    """Those of the same op, shape and implementation, in all layers."""
    found = {}
    for k in kernels:
        one = found.setdefault((k["op"], k["shape"], k["impl"]), {**k, "s": 0, "flops": 0, "bytes": 0, "n": 0})
        for key in ("s", "flops", "bytes", "n"):
            one[key] += k[key]
    return sorted(found.values(), key=lambda k: -k["s"])


def profile_step(s, figure):
    sets, out = figure.small if s.small else figure.sets, s.work / f"trace-{figure.name}"
    result, why = train(s, figure.recipe, sets, out, "--steps", 8, "--trace", TRACED)
    if not result:
        return s.row(figure.name, False, error=why)
    profile = json.loads((out / "profile.json").read_text())
    kernels = profile.get("kernels") or []
    if not kernels:
        return s.row(figure.name, False, error="profile.json has no kernels")
    rates, whole = rates_of(s, profile), sum(w["s"] for w in profile["work"])
    for i, k in enumerate(together(kernels)[:N_SHOWN]):
        least, bound = least_s(k, rates) if rates else (None, None)
        s.row(f"{figure.name} {i + 1}", True, figure=figure.name, op=k["op"], shape=k["shape"], impl=k["impl"], times=k["n"], ms=k["s"] * 1e3,
              share=k["s"] / whole, roofline=least / k["s"] if least and k["s"] > 0 else None, bound=bound, layer=k["layer"])
    step_ms = next((r["step_ms"] for r in s.rows if r["what"] == figure.name and r["group"] == "figures" and r["ok"]), None)
    return s.row(figure.name, True, kernels_ms=whole * 1e3, of_step=whole * 1e3 / step_ms if step_ms else None,
                 rates=rates.source if rates else "not known")


def measure_kernels(s):
    for name in ("gpt2", "resnet50-256"):
        profile_step(s, next(f for f in FIGURES if f.name == name))
