#!/usr/bin/env python3
"""Checks a GPU, and measures on it, in under 8 minutes and without a network. Run by ./dev gpu-check.

usage: gpu_check [--device NAME] [--seconds N] [--only GROUP...] [--small] [--out FOLDER] [--record] [--build FOLDER]
       gpu_check --carry                   makes build-gpu/carried.tar.xz, for a machine that cannot build
       gpu_check --from FOLDER [--record]  the table of an earlier check's rows

Groups, in this order: card, values, trainings, sanitizer, figures, kernels, peers. Each has a limit of its own, and what it has
found is in rows.jsonl at once, so that no time-out takes anything along; log.txt has all that was printed. --device gpu (default)
takes CUDA's GPU before OpenCL's, and never a processor; name `opencl` with --small to try all of this without one. --record
writes docs/gpu/<card>.md, where the device is a GPU. The exit code is 1 where something is wrong; a goal that is missed is not.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import carry  # noqa: E402
import correct  # noqa: E402
import figures  # noqa: E402
import kernels  # noqa: E402
import pytorch  # noqa: E402
import table  # noqa: E402
from session import PLACE, ROOT, Session  # noqa: E402

# Seconds: what correctness leaves is for the figures, and the peers have the rest.
GROUPS = {"card": (correct.check_card, 20), "values": (correct.check_values, 110), "trainings": (correct.check_trainings, 50),
          "sanitizer": (correct.check_sanitizer, 35), "figures": (figures.measure_figures, 150), "kernels": (kernels.measure_kernels, 40),
          "peers": (pytorch.measure_peers, 300)}
SECONDS = 460


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="gpu")
    p.add_argument("--seconds", type=float, default=SECONDS)
    p.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP")
    p.add_argument("--small", action="store_true")
    p.add_argument("--out", type=Path)
    p.add_argument("--record", action="store_true")
    p.add_argument("--carry", action="store_true")
    p.add_argument("--from", dest="earlier", type=Path)
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--python", help="the Python that has PyTorch; default: STOKER_PEERS_VENVS' pt, else python3")
    return p.parse_args()


def find_python(args):
    venv = Path(os.environ.get("STOKER_PEERS_VENVS", ROOT / "build-peers/venvs")) / "pt/bin/python"
    return args.python or (str(venv) if venv.exists() else "python3")


def find_device(programs, name):
    """`gpu` by the name that it stands for; else this ends with what is missing."""
    done = subprocess.run([str(programs.folder / "stoker"), "devices", "--json"], env={**os.environ, **programs.environment},
                          stdout=subprocess.PIPE, text=True, check=True)
    devices = [d for d in json.loads(done.stdout)["devices"] if d["name"] in ("cuda", "opencl") or d["name"] == name.split(":")[0]]
    fitting = [d for d in devices if d["available"] and (d["gpu"] if name == "gpu" else d["name"] == name.split(":")[0])]
    if not fitting:
        sys.exit(f"gpu-check: no device '{name}': {'; '.join(d['name'] + ': ' + d['detail'] for d in devices)}")
    return fitting[0]["name"] + ":0" if name == "gpu" else name


def use_wheels():
    """NVIDIA's libraries of the environment that python3 is in, which Stoker looks for by this variable."""
    told = subprocess.run(["python3", "-c", "import sys; print(sys.prefix if sys.prefix != sys.base_prefix else '')"],
                          stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if told:
        os.environ.setdefault("VIRTUAL_ENV", told)


def check(args):
    use_wheels()
    programs = carry.find(args.build.resolve())
    out = args.out or PLACE / "results"
    s = Session(find_device(programs, args.device), args.small, args.seconds, out, programs, find_python(args))
    groups = [name for name in GROUPS if name in args.only or name == "card"]
    try:
        for name in groups:
            do, limit = GROUPS[name]
            s.begin(name, limit if not args.small else args.seconds)
            if name == "values" and "peers" in groups:
                pytorch.begin_compiling(s)
            if s.left() < 2:
                s.row("not begun", False if name in groups[:4] else None, error="no time was left")
                continue
            try:
                do(s)
            except Exception as error:  # one group's failure is its own
                s.row("failed", False, error=f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        s.row("interrupted", False)
    finally:
        s.end_aside()
    return s.rows, out


def main():
    args = arguments()
    if args.carry:
        return carry.make(args.build.resolve())
    if args.earlier:
        rows, out = [json.loads(line) for line in (args.earlier / "rows.jsonl").read_text().splitlines()], None
    else:
        rows, out = check(args)
    text = table.write(rows)
    print(text)
    if out:
        (out / "table.md").write_text(text)
    if args.record:
        table.record(rows, text, ROOT / "docs/gpu")
    return 1 if any(row["ok"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
