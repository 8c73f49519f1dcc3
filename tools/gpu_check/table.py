"""The rows of a check as a short page: what is wrong first, then figures, kernels, and what was left out."""
import datetime
import json
import re
import sys

import figures


def number(value, form="{:,.0f}"):
    if value is None:
        return "-"
    return form.format(value) if abs(value) >= 100 or form != "{:,.0f}" else f"{value:.3g}"


def percent(value):
    return "-" if value is None else f"{value * 100:.1f} %"


def table(head, rows, n_left=1):
    rule = ["---" if i < n_left else "---:" for i in range(len(head))]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in [head, rule, *rows]) + "\n" if rows else ""


def pick(rows, group, **wanted):
    return [r for r in rows if r["group"] == group and all(r.get(k) == v for k, v in wanted.items())]


def card(rows):
    """What it was measured on, in words, and whether that is a GPU."""
    device = next(iter(pick(rows, "card", what="device")), {})
    smi = next(iter(pick(rows, "card", what="nvidia-smi", ok=True)), {})
    machine = next(iter(pick(rows, "card", what="machine")), {})
    words = [smi.get("name") or device.get("chip") or "unknown device", f"`{device.get('name', '?')}`", device.get("detail", "")]
    if smi:
        words.append(f"driver {smi['driver_version']}, {smi['power_limit']}, {smi['clocks_max_sm']}")
    peers = next(iter(pick(rows, "card", what="PyTorch", ok=True)), None)
    words.append(f"PyTorch {peers['torch']}" if peers else "no PyTorch")
    words.append(f"{machine.get('cores', '?')} cores, commit {machine.get('commit', 'unknown')}")
    # A played GPU says that it is one; nvidia-smi knows better.
    is_gpu = bool(device.get("gpu")) and (bool(smi) or not device["name"].startswith("cuda"))
    return "; ".join(w for w in words if w), is_gpu


def write_correctness(rows):
    lines = []
    for group in ("values", "trainings", "sanitizer"):
        own = pick(rows, group)
        if not own:
            continue
        good, bad, open_ = (sum(r["ok"] is v for r in own) for v in (True, False, None))
        said = f"{sum(r.get('compared', 0) for r in own):,} calls compared, {sum(r.get('wrong', 0) for r in own)} wrong" if group == "values" else \
            ", ".join(f"{r['what']} {number(r.get('apart'), '{:.1e}')} apart" for r in own if r["ok"]) if group == "trainings" else \
            f"{sum(r.get('errors', 0) for r in own)} errors"
        lines.append([group, good, bad, open_, said])
    return table(["correctness", "good", "**wrong**", "undecided", "what"], lines)


def ratio(name, ours, compiled):
    """How much faster ours is; airbench counts seconds."""
    if not ours or not compiled or not ours.get("value") or not compiled.get("value"):
        return "-"
    return f"{compiled['value'] / ours['value'] if name == 'airbench' else ours['value'] / compiled['value']:.2f}x"


def write_figures(rows):
    lines = []
    for figure in figures.FIGURES:
        ours = next(iter(pick(rows, "figures", what=figure.name, who="stoker")), None)
        peer = {mode: next(iter(pick(rows, "peers", what=figure.name, who=mode, ok=True)), None) for mode in ("eager", "compile")}
        if not ours and not any(peer.values()):
            continue
        r = ours or {}
        goal = number(r.get("goal"), "{:,.2f}" if figure.unit == "s" else "{:,.0f}") if figure.name != "photos" else percent(r.get("goal"))
        if figure.name == "bert-128":
            goal = "1.2x compiled"
        value = number(r.get("value"), "{:,.2f}" if figure.unit == "s" else "{:,.0f}")
        if "accuracy" in r and r["accuracy"] is not None:
            value += f" ({percent(r['accuracy'])})"
        if r.get("of_step_or_cores"):
            value += f" ({percent(r['of_step_or_cores'])} of step or cores)"
        lines.append([figure.title, figure.unit, value, goal, *(number(p and p["value"]) for p in peer.values()),
                      ratio(figure.name, ours, peer["compile"] or peer["eager"]), number(r.get("step_ms"), "{:,.2f}"),
                      number(r.get("predicted_ms"), "{:,.1f}"), percent(r.get("roofline_share")), number(r.get("cold_first_step_s"), "{:.2f}"),
                      number(r.get("first_step_s"), "{:.2f}"), percent(r.get("input_wait_share")), percent(r.get("compute_share"))])
    return table(["bf16", "unit", "Stoker", "goal", "PyTorch eager", "compiled", "ours / theirs", "step, ms", "predicted, ms", "predicted / measured",
                  "first step, s", "again, s", "input wait", "in kernels"], lines, 2)


def write_kernels(rows):
    lines = [[r["figure"], r["op"], r["shape"], r["impl"], r["times"], number(r["ms"], "{:,.3f}"), percent(r["share"]), percent(r["roofline"]), r["bound"] or "-"]
             for r in pick(rows, "kernels") if "op" in r]
    whole = [f"{r['what']}: {r['kernels_ms']:,.2f} ms in kernels that run alone, {percent(r['of_step'])} of the step; rates: {r['rates']}"
             for r in pick(rows, "kernels") if "kernels_ms" in r]
    return "".join(f"- {line}\n" for line in whole) + "\n" * bool(whole) + table(["step", "kernel", "shape", "by", "times", "ms", "of the step", "of the roofline", "bound by"], lines, 4)


def write(rows):
    about, _ = card(rows)
    text = f"# GPU check, {datetime.date.today()}\n\n{about}\n\n{write_correctness(rows)}{write_figures(rows)}{write_kernels(rows)}"
    if any(r.get("small") for r in rows):
        text += "Tiny sizes, to try the check itself: the figures mean nothing.\n\n"
    wrong = [r for r in rows if r["ok"] is False]
    if wrong:
        text += "**Wrong:**\n\n" + "".join(f"- {r['group']}: {r['what']}: {r.get('error', '?')}\n" for r in wrong) + "\n"
    missed = [r for r in rows if r.get("met") is False]
    if missed:
        text += "Goals that were missed: " + ", ".join(r["what"] for r in missed) + ".\n\n"
    left = [r for r in rows if r["ok"] is None and r.get("error")]
    if left:
        text += "Not decided, or left out:\n\n" + "".join(
            f"- {r['group']}: {r['what']}{' (' + r['who'] + ')' if r.get('who') else ''}: {r['error']}\n" for r in left) + "\n"
    return text.rstrip("\n") + "\n"


def record(rows, text, folder):
    """docs/gpu/CARD.md and its rows; nothing where it was no GPU."""
    _, is_gpu = card(rows)
    if not is_gpu or any(r.get("small") for r in rows):
        print("gpu-check: this was no GPU, or tiny sizes, so nothing is recorded", file=sys.stderr)
        return
    device = pick(rows, "card", what="device")[0]
    words = re.findall(r"[a-z0-9]+", device["chip"].lower())
    name = "-".join(w for w in words if w not in ("nvidia", "80gb", "hbm3", "hbm3e", "sxm")) or "gpu"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}-check.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    print(f"gpu-check: wrote {folder / name}.md and {name}-check.jsonl", file=sys.stderr)
