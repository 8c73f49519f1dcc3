#!/usr/bin/env python3
"""The GPUs' kernels compiled for chips that are not here, and what their compilers say of them. Writes docs/gpu-kernels.md and
docs/gpu-roofline.md. Run by ./dev gpu-kernels.

usage: gpu_kernels.py [--only NAME]... [--jobs N]

Every case of the harness, and every program of every recipe, in build/gpu-kernels: by NVRTC (STOKER_NVRTC) for sm_80, sm_90 and
sm_100, by clang for gfx90a and SPIR-V. What is there and no older than the program and the recipe is not built again. With --only
some of them, and no page is written. Ends with 1 where something does not compile, an op has no kernel, a hot kernel spills, or one
that should multiply tiles does not.
"""
import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gpu_roofline
import recipes

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/tests/gpu_compile"
WORK = ROOT / "build/gpu-kernels"
TEXT_CHIP = 3

# What a multiprocessor has: warps, groups, registers, shared memory; the last, and 1 KiB of it for each group is the system's.
Chip = collections.namedtuple("Chip", "number arch name warps groups registers shared")
CHIPS = [Chip(0, "sm_80", "A100", 64, 32, 65536, 164 << 10), Chip(1, "sm_90", "H100, H200", 64, 32, 65536, 228 << 10),
         Chip(2, "sm_100", "B200", 64, 32, 65536, 228 << 10)]

# Without optimisation for SPIR-V: LLVM 14's translator does not know what comes of it.
CL = ["clang", "-x", "cl", "-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt", "-w"]
TARGETS = {"gfx90a": CL + ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-c"],
           "SPIR-V": CL + ["-O0", "-target", "spirv64", "-c"]}

failures = []


def say(text):
    print(f"gpu-kernels: {text}", flush=True)


# --- what is compiled ---

class Subject:
    """The harness's cases, or a recipe with changes."""
    def __init__(self, name, recipe=None, sets=(), data=None, options=()):
        self.name, self.recipe, self.sets, self.data, self.options = name, recipe, list(sets), data, list(options)
        self.lines, self.why, self.texts = {}, None, []  # lines: by chip's number

    def command(self, chip):
        folder = WORK / "text" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        what = [str(self.recipe.relative_to(ROOT)), *self.sets] if self.recipe else ["cases"]
        return [str(PROGRAM), *self.options, str(chip), str(folder), *what]

    def run(self, chip):
        """Lines of JSON, or why there are none."""
        command = self.command(chip)
        stamp = "\n".join([*command[1:], os.environ["STOKER_NVRTC"], self.recipe.read_text() if self.recipe else ""])
        place = WORK / f"{self.name}-{chip}-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}.jsonl"
        if not place.exists() or place.stat().st_mtime < PROGRAM.stat().st_mtime:
            if chip == TEXT_CHIP:
                for old in (WORK / "text" / self.name).iterdir():
                    old.unlink()
            environment = {**os.environ, "STOKER_CACHE": str(WORK / "cache"), "STOKER_DATA": str(self.data or ROOT)}
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
            partial = place.with_suffix(".tmp")
            partial.write_text(done.stdout)
            partial.rename(place)
        return [json.loads(line) for line in place.read_text().splitlines()], None


def find_subjects(only):
    """The cases, and all recipes that train a network; those whose data are absent come with the reason."""
    found, left_out = [Subject("cases")] if not only or "cases" in only else [], []
    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        if only and path.stem not in only:
            continue
        if not re.search(r"^model:", path.read_text(), re.MULTILINE):
            left_out.append((path.stem, "it has no network"))
            continue
        data, why = recipes.RECIPES.get(path.stem, lambda: (None, None))()
        if why:
            left_out.append((path.stem, why))
        else:
            found.append(Subject(path.stem, path, data=data and Path(data).resolve()))
    return found, left_out


def compile_all(subjects, jobs):
    def one(task):
        subject, number = task
        lines, why = subject.run(number)
        return subject, number, lines, why

    tasks = [(s, c.number) for s in subjects for c in CHIPS] + [(s, TEXT_CHIP) for s in subjects]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for subject, number, lines, why in pool.map(one, tasks):
            if why:
                subject.why = subject.why or why
                failures.append(f"{subject.name} for {CHIPS[number].arch if number < TEXT_CHIP else 'OpenCL'}: {why}")
                say(failures[-1])
            else:
                subject.lines[number] = lines
        for subject in subjects:
            subject.texts = sorted((WORK / "text" / subject.name).glob("*.cl"))


# --- clang ---

def clang(path, target):
    """None, or the first error. A text that was compiled before is not compiled again."""
    place = WORK / "clang" / f"{path.stem}-{target}"
    if place.exists():
        return place.read_text() or None
    done = subprocess.run([*TARGETS[target], str(path), "-o", f"{place}.o"], stderr=subprocess.PIPE, text=True)
    error = next((line for line in done.stderr.splitlines() if "error" in line), "it fails") if done.returncode else ""
    Path(f"{place}.o").unlink(missing_ok=True)
    if error and "llvm-spirv" in error:
        return error
    place.write_text(error)
    return error or None


def clang_all(subjects, jobs):
    """By target: errors by text."""
    (WORK / "clang").mkdir(parents=True, exist_ok=True)
    texts = {path.stem: path for s in subjects for path in s.texts}
    tasks = [(target, path) for target in TARGETS for path in texts.values()]
    results = {target: {} for target in TARGETS}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (target, path), error in zip(tasks, pool.map(lambda task: clang(task[1], task[0]), tasks)):
            results[target][path.stem] = error
            if error:
                failures.append(f"{target}: {error}")
                say(failures[-1])
    return results


def file_verdicts(subjects, results):
    """By target and file of kernels: whether all texts that have the file compile, or at least it is not the file's fault."""
    verdicts = {target: {} for target in TARGETS}
    for path in {p.stem: p for s in subjects for p in s.texts}.values():
        files = set(re.findall(r'^#line 1 "([^"]+)"', path.read_text(), re.MULTILINE))
        for target in TARGETS:
            error = results[target][path.stem]
            blamed = re.match(r"([\w.]+):\d+", error or "")
            for file in files:
                good = not error or (blamed is not None and blamed[1] != file)
                verdicts[target][file] = verdicts[target].get(file, True) and good
    return verdicts


# --- kernels ---

def occupancy(chip, kernel):
    """The share of a multiprocessor's warps that can be there at once. Registers are given out by 256 for a warp."""
    warps = -(-kernel["group"] // 32)
    registers = -(-kernel["registers"] * 32 // 256) * 256 * warps
    shared = kernel["shared"] + 1024
    groups = min(chip.groups, chip.warps // warps, chip.registers // registers, chip.shared // shared)
    return groups * warps / chip.warps


def shown_settings(text):
    """Those that are a name or a number, "T bf16, TILE_M 128"."""
    parts = [p for p in text.split(", ") if re.fullmatch(r"\w+ [\w.-]{1,16}", p)]
    return ", ".join(parts)


def list_kernels(subjects):
    """By file, kernel and settings: by arch, all kernels of that name."""
    rows, seen = {}, set()
    for s in subjects:
        for chip in CHIPS:
            for line in s.lines.get(chip.number, []):
                if "kernel" not in line or (chip.arch, line["kernel"]) in seen:
                    continue
                seen.add((chip.arch, line["kernel"]))
                name = line["kernel"].rsplit("_", 1)[0]
                settings = "" if line["file"] == "fused" else shown_settings(line["settings"])
                rows.setdefault((line["file"], name, settings), {}).setdefault(chip.arch, []).append(line)
    return rows


def spill(kernel):
    return kernel["spill_stores"] + kernel["spill_loads"]


def find_missing(subject):
    """Ops of its programs without a kernel. The harness asks in f64, too, which no GPU's kernel has."""
    lines = subject.lines.get(CHIPS[0].number, [])
    missing = [line["missing"] for line in lines if "missing" in line and "f64" not in line["missing"]]
    return sorted({m.split(" ")[0] for m in missing})


def check(subjects, rows):
    for s in subjects:
        for op in find_missing(s):
            failures.append(f"{s.name}: there is no kernel for {op}")
            say(failures[-1])
    for row, by_arch in sorted(rows.items()):
        for arch, kernels in by_arch.items():
            for k in kernels:
                if k["hot"] and spill(k):
                    failures.append(f"{arch}: {k['kernel']} of {row[0]} ({row[2]}) spills {spill(k)} bytes")
                    say(failures[-1])
                if k["wants_tiles"] and not k["mma"] + k["wgmma"]:
                    failures.append(f"{arch}: {k['kernel']} of {row[0]} ({row[2]}) has neither mma.sync nor wgmma, and "
                                    f"{k['fma']} fma of one float")
                    say(failures[-1])


# --- pages ---

def span(numbers, form="{}"):
    low, high = form.format(min(numbers)), form.format(max(numbers))
    return low if low == high else f"{low} to {high}"


def kernel_row(row, by_arch, verdicts):
    first = [k for kernels in by_arch.values() for k in kernels]
    cells = [row[0], f"`{row[1]}`" + (f", {max(map(len, by_arch.values()))} of them" if max(map(len, by_arch.values())) > 1 else ""),
             row[2], span([k["group"] for k in first]), span([k["shared"] for k in first])]
    for chip in CHIPS:
        kernels = by_arch.get(chip.arch, [])
        cells += [span([k["registers"] for k in kernels]), span([spill(k) for k in kernels]),
                  span([100 * occupancy(chip, k) for k in kernels], "{:.0f} %")] if kernels else ["-"] * 3
    tiles = [("wgmma" if k["wgmma"] else "mma.sync") for k in first if k["mma"] + k["wgmma"]]
    cells.append(", ".join(sorted(set(tiles))))
    return cells + [{True: "yes", False: "**no**", None: "-"}[verdicts[target].get(row[0])] for target in TARGETS]


def recipe_row(s, results):
    if s.why:
        return [s.name, f"**no**: {s.why}"] + [""] * (len(CHIPS) + len(TARGETS) + 1)
    lines = s.lines[CHIPS[0].number]
    programs = ", ".join(dict.fromkeys(line["program"] for line in lines if "program" in line)) or "each case alone"
    cells = [s.name, programs] + [str(len({line.get("kernel") for line in s.lines[c.number]} - {None})) for c in CHIPS]
    cells += ["**no**" if any(results[target][p.stem] for p in s.texts) else "yes" for target in TARGETS]
    return cells + [", ".join(find_missing(s)) or "none"]


def table(head, rows, right=()):
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in [head, rule, *rows])


def tool_version(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return f"no {command[0]}"


def write_page(path, subjects, left_out, rows, results, verdicts):
    compiler = next((line["compiler"] for s in subjects for c in s.lines.values() for line in c if line.get("compiler")), "?")
    recipe_head = ["what", "programs", *(f"kernels, {c.arch}" for c in CHIPS), *TARGETS, "ops without a kernel"]
    head = ["file", "kernel", "settings", "group", "shared, bytes"]
    for chip in CHIPS:
        head += [f"{chip.arch}: registers", "spilt, bytes", "occupancy"]
    head += ["tiles", *TARGETS]
    n_kernels = len({line["kernel"] for s in subjects for c in CHIPS for line in s.lines.get(c.number, []) if "kernel" in line})
    text = f"""# GPU kernels, compiled

`./dev gpu-kernels` on {datetime.date.today()}: {n_kernels} kernels, by {compiler} for {', '.join(f'{c.arch} ({c.name})' for c in CHIPS)};
by {tool_version(['clang', '--version'])} for AMD's gfx90a (without device libraries) and SPIR-V. No GPU is needed, and none was used: the
figures are the compilers'. f64 is refused by name, and so not here.

## What is compiled

Every case of the harness in every dtype; of every recipe the training step, the evaluations, the prediction of one sample or the
generation of text, each program whole, as the device builds it. Each launch was checked against its kernel: name, size of the group, number and bytes of arguments.

{table(recipe_head, [recipe_row(s, results) for s in subjects], range(2, 2 + len(CHIPS)))}
Left out: {'; '.join(f'{name} ({why})' for name, why in left_out) or 'nothing'}.

## Kernels

Registers of one work-item; what it spills to memory and reads back; the share of a multiprocessor's warps that can be there at once, by
registers, shared memory and size of the group. A spill in a hot kernel is a failure, and so are products of 16-bit tiles without
mma.sync or wgmma; `tests/device/paper/rules.c` says which these are. Elsewhere the compiler may spill a little to have more groups at a
time. Printed groups (`fused`) are one row.

{table(head, [kernel_row(row, by_arch, verdicts) for row, by_arch in sorted(rows.items())], range(3, 5 + 3 * len(CHIPS)))}
"""
    if failures:
        text += "\n## What fails\n\n" + "".join(f"- {f}\n" for f in failures)
    path.write_text(text)
    say(f"wrote {path.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", default=[], help="the cases, or a recipe; may be given often")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if shutil.which("llvm-spirv") is None and shutil.which("llvm-spirv-14"):
        (WORK / "bin").mkdir(parents=True, exist_ok=True)
        link = WORK / "bin/llvm-spirv"
        if not link.is_symlink():
            link.symlink_to(shutil.which("llvm-spirv-14"))
        os.environ["PATH"] += f":{WORK / 'bin'}"
    WORK.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    subjects, left_out = find_subjects(args.only)
    compile_all(subjects, args.jobs)
    results = clang_all(subjects, args.jobs)
    rows = list_kernels(subjects)
    check(subjects, rows)
    if not args.only:
        write_page(ROOT / "docs/gpu-kernels.md", subjects, left_out, rows, results, file_verdicts(subjects, results))
        steps = [Subject(f"roofline-{step.name}", ROOT / step.recipe, step.sets, options=["--all"]) for step in gpu_roofline.STEPS]
        gpu_roofline.write_page(ROOT / "docs/gpu-roofline.md", [s.run(1) for s in steps], lambda k: occupancy(CHIPS[1], k))
        say("wrote docs/gpu-roofline.md")
    say(f"{len(subjects)} of cases and recipes, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
